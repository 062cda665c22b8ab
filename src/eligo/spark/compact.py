"""What workers do when the shards of a rule set are made anew: without the dead, with the rules of the deltas.

    used        a task a segment: which strings its living rules name, and how many look at each attribute
    renumber    one task: a dictionary of these strings alone, and for each old number the new one
    compact     a task a shard: its living rules and those of deltas that belong into it, under the new numbers

Strings and attributes of rules that are gone are gone with them. Old numbers mean nothing any more, so a version that
comes out of this begins a lineage.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.codes import STRING_CUT
from eligo.compile.compiled import I32, concatenate, kept_slices
from eligo.compile.naming import attribute_counts
from eligo.compile.renumber import renumbered
from eligo.compile.signature import BUCKETS, positions, rule_buckets
from eligo.compile.strings import Strings, fill_slots, slots_for
from eligo.segments.rule_table import join_rule_tables
from eligo.segments.segment import Segment, merge_segments
from eligo.segments.view import ALL
from eligo.spark.changes import as_mask
from eligo.spark.tasks import Built, built
from eligo.store.arrays import ArrayFile, map_arrays, write_arrays
from eligo.store.opening import open_held
from eligo.store.tables import read_statistics
from eligo.store.versions import DATA, PATIENCE

RENUMBERING = "renumbering.json"


class Used(msgspec.Struct, frozen=True):
    """What the living rules of one segment name."""

    strings: ArrayFile  # their numbers, ascending
    naming: dict[str, int]


class Renumbering(msgspec.Struct, frozen=True):
    """The tables of the version to come; a file in the job's folder."""

    strings: ArrayFile  # data, offsets, slots
    numbers: ArrayFile  # of each old string its new number, -1 for one that is gone
    attributes: tuple[str, ...]


def used(path: str, version: int, folder: str, number: int) -> Used:
    """Finds the strings and attributes that the living rules of a segment name."""
    opened = open_held(path, version, patience=PATIENCE)
    rules = opened.rules
    segment, alive = rules.segments[number], rules.alive[number]
    compiled = concatenate([segment.whole()], [as_mask(alive, len(segment))])
    strings = np.unique(
        np.concatenate(
            (
                compiled.pattern[compiled.pattern >= 0],
                compiled.low_key[compiled.low_kind == STRING_CUT] >> 1,
                compiled.high_key[compiled.high_kind == STRING_CUT] >> 1,
            )
        )
    )
    written = write_arrays(Path(folder), "used", {"strings": strings.astype(np.int32)})
    return Used(written, attribute_counts(compiled, rules.recipe.attributes.names))


def renumber(path: str, version: int, folder: str, parts: list[Used]) -> Renumbering:
    """Write a dictionary of the strings that are used, and the numbers in it."""
    opened = open_held(path, version, patience=PATIENCE)
    data, offsets = opened.rules.recipe.strings.arrays()
    keep = np.zeros(len(offsets) - 1, np.bool_)
    naming: Counter[str] = Counter()
    for one in parts:
        keep[map_arrays(Path(folder), one.strings, verify=True)["strings"]] = True
        naming.update(one.naming)
    data, offsets = kept_slices(data, offsets, keep)
    slots = slots_for(len(offsets) - 1)
    fill_slots(data, offsets, offsets[1:], slots, 0, len(offsets) - 1)
    numbers = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    done = Renumbering(
        strings=write_arrays(Path(folder), "strings", {"data": data, "offsets": offsets, "slots": slots}),
        numbers=write_arrays(Path(folder), "numbers", {"strings": numbers}),
        attributes=tuple(sorted(naming)),
    )
    (Path(folder) / RENUMBERING).write_bytes(msgspec.json.encode(done))
    return done


def compact(path: str, version: int, folder: str, first: float, stop: float) -> list[Built]:
    """The living rules between two positions, of shards and deltas, as a shard; none if there are none."""
    opened = open_held(path, version, patience=PATIENCE)
    content, rules = opened.content, opened.rules
    tables = msgspec.json.decode((Path(folder) / RENUMBERING).read_bytes(), type=Renumbering)
    strings = map_arrays(Path(folder), tables.strings, verify=True)
    numbers: I32 = map_arrays(Path(folder), tables.numbers, verify=True)["strings"]
    before = rules.recipe
    recipe = replace(
        before,
        attributes=Attributes(tables.attributes),
        strings=Strings((strings["data"], strings["offsets"], strings["slots"])),
    )
    if content.statistics is not None:
        where = Path(path) / DATA
        recipe.sample = read_statistics(where, content.statistics, recipe.attributes, recipe.strings)
    metas = recipe.attributes.metas
    attributes: I32 = np.array([metas.get(name, -256) >> 8 for name in before.attributes.names], np.int32)
    chosen: list[Segment] = []
    places = content.shard_positions() + [(-1.0, float(BUCKETS))] * len(content.deltas)
    for segment, alive, (low, high) in zip(rules.segments, rules.alive, places, strict=True):
        if high <= first or low >= stop:
            continue
        mask = as_mask(alive, len(segment))
        if low < first or high > stop:
            buckets = rule_buckets(segment.whole(), before.attributes.names, before.strings.arrays())
            at = positions(buckets, segment.table.sequence)
            mask = mask & (at >= first) & (at < stop)
        if mask.any():
            chosen.append(_living(segment, mask, attributes, numbers))
    if not chosen:
        return []
    merged, _ = merge_segments(chosen, [ALL] * len(chosen), recipe)
    return [built(Path(folder), merged, recipe, (first, stop))]


def _living(segment: Segment, mask: NDArray[np.bool_], attributes: I32, strings: I32) -> Segment:
    """The rules of a mask alone, under new numbers; only table and compiled arrays are right, which merging takes."""
    compiled = renumbered(concatenate([segment.whole()], [mask]), attributes, strings)
    table = join_rule_tables([segment.table], [mask], np.arange(int(mask.sum())))
    return replace(segment, table=table, compiled=compiled)
