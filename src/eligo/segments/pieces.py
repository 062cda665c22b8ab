"""Pieces: rules compiled apart from each other, each under numbers of its own, and joined into segments afterwards.

    piece      attributes, strings       its own numbering of names and strings
               table, compiled           its rules, in buckets (compile/signature.py), within one in order of sequence
               bucket_offsets            bucket b is rows bucket_offsets[b] … [b+1]

    join       one part of the line of buckets, of every piece, renumbered, then as one: equal predicates and equal
               conjunctions of different pieces become one, rules lie in the order of their sequence numbers

A piece is nothing but arrays, so it can be written by one process and joined by another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I32, I64, Arrays, Compiled, concatenate, permuted_slices
from eligo.compile.renumber import renumbered, rules_between
from eligo.compile.signature import BUCKETS, positions, rule_buckets, spread
from eligo.compile.strings import StringArrays, Strings
from eligo.segments.pending import BulkPending, Pending
from eligo.segments.rule_table import RuleTable, join_rule_tables, packed, unpacked
from eligo.segments.segment import Recipe, Segment


@dataclass(frozen=True)
class Piece:
    """Some rules, compiled under numbers of their own."""

    attributes: tuple[str, ...]
    strings: StringArrays
    table: RuleTable
    compiled: Compiled
    bucket_offsets: I64

    def __len__(self) -> int:
        return len(self.table)

    def arrays(self) -> Arrays:
        """Returns all arrays by name."""
        name_offsets, name_data = packed(self.attributes)
        return {
            "attributes/offsets": name_offsets,
            "attributes/data": name_data,
            "strings/data": self.strings[0],
            "strings/offsets": self.strings[1],
            "bucket_offsets": self.bucket_offsets,
            **{f"rules/{name}": array for name, array in self.table.arrays().items()},
            **{f"compiled/{name}": array for name, array in self.compiled.arrays().items()},
        }


def restore_piece(arrays: Arrays) -> Piece:
    """Returns the piece whose `arrays` are given."""

    def part(name: str) -> Arrays:
        return {key.removeprefix(name): array for key, array in arrays.items() if key.startswith(name)}

    return Piece(
        tuple(unpacked(arrays["attributes/offsets"], arrays["attributes/data"])),
        (arrays["strings/data"], arrays["strings/offsets"]),
        RuleTable(**part("rules/")),
        Compiled(**part("compiled/")),
        arrays["bucket_offsets"],
    )


def make_piece(pending: Pending | BulkPending, attributes: Attributes, strings: Strings) -> Piece:
    """Returns a piece of the pending rules, which were compiled with these two tables."""
    table, compiled = pending.finish()
    order, starts = spread(rule_buckets(compiled, attributes.names, strings.arrays()))
    tree, tree_offsets = permuted_slices(compiled.tree, compiled.tree_offsets, order)
    return Piece(
        tuple(attributes.names),
        strings.arrays(),
        join_rule_tables([table], [None], order),
        replace(compiled, tree=tree, tree_offsets=tree_offsets),
        starts,
    )


def join_pieces(
    pieces: Sequence[tuple[Piece, I32]], recipe: Recipe, first: float = 0, stop: float = BUCKETS
) -> Segment | None:
    """Returns a segment of the rules from position `first` to below `stop`, or None if there are none.

    Beside each piece stands the number that each of its strings has in the recipe's table.
    """
    tables, parts, kept = [], [], []
    for piece, strings in pieces:
        low, high = int(piece.bucket_offsets[math.floor(first)]), int(piece.bucket_offsets[math.ceil(stop)])
        keep = _between(piece, low, high, first, stop)
        if low == high or (keep is not None and not keep.any()):
            continue
        kept.append(keep)
        attributes = np.array([recipe.attributes.metas[name] >> 8 for name in piece.attributes], np.int32)
        parts.append(renumbered(rules_between(piece.compiled, low, high), attributes, strings))
        tables.append(_rows_between(piece.table, low, high))
    if not parts:
        return None
    sequences = [t.sequence if keep is None else t.sequence[keep] for t, keep in zip(tables, kept, strict=True)]
    order = np.argsort(np.concatenate(sequences), kind="stable")
    compiled = concatenate(parts, kept)
    tree, tree_offsets = permuted_slices(compiled.tree, compiled.tree_offsets, order)
    table = join_rule_tables(tables, kept, order)
    return recipe.build(table, replace(compiled, tree=tree, tree_offsets=tree_offsets))


def _between(piece: Piece, low: int, high: int, first: float, stop: float) -> NDArray[np.bool_] | None:
    """Returns which of the rows low … high-1 lie between the positions, or None for all, if buckets end there."""
    if first == math.floor(first) and stop == math.floor(stop):
        return None
    rows = np.arange(low, high)
    where = positions(np.searchsorted(piece.bucket_offsets, rows, "right") - 1, piece.table.sequence[low:high])
    inside: NDArray[np.bool_] = (where >= first) & (where < stop)
    return inside


def _rows_between(table: RuleTable, first: int, stop: int) -> RuleTable:
    """Returns rows first … stop-1 of a table, without the slots that find a row by its id unless these are all rows."""
    if first == 0 and stop == len(table):
        return table
    sliced: Arrays = {}
    for items, offsets in (("id_data", "id_offsets"), ("text_data", "text_offsets"), ("tag", "tag_offsets")):
        ends = getattr(table, offsets)
        if len(ends) == 1:  # ids are integers
            continue
        sliced[items] = getattr(table, items)[ends[first] : ends[stop]]
        sliced[offsets] = ends[first : stop + 1] - ends[first]
    for name in ("sequence", "ids", "weight"):
        array = getattr(table, name)
        sliced[name] = array[first:stop] if len(array) else array
    return replace(table, slots=np.zeros(16, np.int32), **sliced)
