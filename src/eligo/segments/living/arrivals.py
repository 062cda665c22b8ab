"""Rules on their way into a living set: compiled, with all that does not depend on the rules already there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, Compiled, unique
from eligo.compile.strings import Strings
from eligo.evaluate.labels import label_intervals
from eligo.evaluate.leaf_order import order_leaves
from eligo.index.rows.content import row_hashes
from eligo.index.rows.row_encoder import rows_of
from eligo.jit import kernel
from eligo.rule import RuleId
from eligo.segments.rule_table import RuleTable, column_table, packed


@dataclass
class Arrivals:
    """Columns of rules, the rows of their conjunctions (`words`, `offsets`, `hashes`), all of them used, and their
    leaves.

    The leaves of rule n are leaf_start[n] … leaf_start[n+1] - 1, ascending by `begin`. Of each leaf, `leaf` is its
    conjunction, and `begin` and `end` are its interval.
    """

    table: RuleTable
    words: I64
    offsets: I64
    leaf_start: I32
    leaf: I32
    begin: I32
    end: I32
    hashes: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.leaf_start) - 1

    @property
    def conjunctions(self) -> int:
        """Number of conjunctions."""
        return len(self.hashes)


def many_arrivals(table: RuleTable, compiled: Compiled, strings: Strings) -> Arrivals:
    """Returns the arrivals of many rules, which are given as they are compiled for segments."""
    compiled = unique(compiled)
    words, offsets = rows_of(compiled, strings)
    return Arrivals(table, words, offsets, *study(compiled.tree, compiled.tree_offsets, words, offsets))


def one_arrival(
    rule: RuleId, text: str, weight: float, tags: tuple[str, ...], sequence: int, tree: I32, words: I64, offsets: I64
) -> Arrivals:
    """Returns the arrival of one rule, which is given by its tree and the rows of its conjunctions."""
    ids = packed([rule]) if isinstance(rule, str) else np.array([rule], np.int64)
    table = column_table(np.array([sequence], np.int64), ids, packed([text]), np.array([weight]), {0: tags})
    return Arrivals(table, words, offsets, *study(tree, np.array([0, len(tree)], np.int64), words, offsets))


@kernel
def study(tree, tree_offsets, words, offsets):
    """Returns the leaves of rules and the hashes of their conjunctions' rows: the last five fields of `Arrivals`."""
    begin, end, span = label_intervals(tree, tree_offsets)
    leaf_start = np.zeros(len(span) + 1, np.int32)
    for rule in range(len(span)):
        leaf_start[rule + 1] = leaf_start[rule] + span[rule]
    every = np.arange(len(span)).astype(np.int32)
    token = order_leaves(tree, tree_offsets, begin, every, leaf_start, True)
    return leaf_start, tree[token], begin[token], end[token], row_hashes(words, offsets)
