"""Counting the values of an attribute in bounded memory.

    counts     value → how often, exactly, for up to MOST different values; then only the most frequent stay
    rest       what was dropped from the counts: how many occurrences, and KEPT values of them, drawn so that a value
               that came twice as often is drawn twice as likely

Tallies of several workers can be merged; the outcome of one seed is always the same.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST: Final = 8192
FREQUENT: Final = 1024
KEPT: Final = 1024
POINTS: Final = 256  # values that stand for the rest

Key = tuple[str, Any]  # kind and value: in Python 1 == True, in rules not


class Tally:
    """The values of one attribute."""

    def __init__(self, seed: int = 0) -> None:
        self.present = 0
        self.counts: Counter[Key] = Counter()
        self.dropped = 0
        self.sample: list[tuple[float, Key]] = []  # a heap: the least likely to stay on top
        self._random = random.Random(seed)

    def add(self, column: pa.Array) -> None:
        """Count the values of a column, those inside lists each for itself."""
        self.present += len(column) - column.null_count
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            column = column.flatten()
        kind, column = _plain(column)
        if not kind:
            return
        found = pc.value_counts(column.drop_null())
        for value, count in zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True):
            if not (isinstance(value, float) and not math.isfinite(value)):
                self.counts[kind, value] += count
        if len(self.counts) > MOST:
            self._trim()

    def _trim(self) -> None:
        """Keep the most frequent; of the others draw some (A-Res: the keys u^(1/weight) that are the largest)."""
        frequent = dict(self.counts.most_common(FREQUENT))
        for key, count in self.counts.items():
            if key not in frequent:
                self.dropped += count
                self._draw(self._random.random() ** (1 / count), key)
        self.counts = Counter(frequent)

    def _draw(self, chance: float, key: Key) -> None:
        if len(self.sample) < KEPT:
            heapq.heappush(self.sample, (chance, key))
        elif chance > self.sample[0][0]:
            heapq.heapreplace(self.sample, (chance, key))

    def merge(self, other: Tally) -> None:
        """Take what another one counted."""
        self.present += other.present
        self.dropped += other.dropped
        self.counts.update(other.counts)
        for chance, key in other.sample:
            self._draw(chance, key)
        if len(self.counts) > MOST:
            self._trim()

    def rows(self) -> Iterator[tuple[str, str, Any, float]]:
        """What, kind, value and count: how many had the attribute, frequent values, and points that share the rest."""
        yield "present", "", "", float(self.present)
        frequent = dict(self.counts.most_common(FREQUENT))
        for (kind, value), count in sorted(frequent.items(), key=itemgetter(0)):
            yield "value", kind, value, float(count)
        others = {key: float(count) for key, count in self.counts.items() if key not in frequent}
        # Each drawn value stands for its share of what was dropped.
        for _, key in self.sample:
            others[key] = others.get(key, 0.0) + self.dropped / len(self.sample)
        yield from _points(others)

    def packed(self) -> dict[str, Any]:
        """For another process, as plain values."""
        return {
            "present": self.present,
            "dropped": self.dropped,
            "counts": [[kind, value, count] for (kind, value), count in sorted(self.counts.items(), key=itemgetter(0))],
            "sample": [[chance, kind, value] for chance, (kind, value) in self.sample],
        }


def unpacked(found: dict[str, Any], seed: int = 0) -> Tally:
    """What `packed` gave."""
    tally = Tally(seed)
    tally.present, tally.dropped = found["present"], found["dropped"]
    tally.counts = Counter({(kind, value): count for kind, value, count in found["counts"]})
    tally.sample = [(chance, (kind, value)) for chance, kind, value in found["sample"]]
    heapq.heapify(tally.sample)
    return tally


def _points(others: dict[Key, float]) -> Iterator[tuple[str, str, Any, float]]:
    """Quantiles of the values that are not frequent, by kind, each with its share."""
    by_kind: dict[str, list[tuple[Any, float]]] = {}
    for (kind, value), count in sorted(others.items(), key=itemgetter(0)):
        by_kind.setdefault(kind, []).append((value, count))
    for kind, values in by_kind.items():
        if len(values) <= POINTS:
            yield from (("value", kind, value, float(count)) for value, count in values)
            continue
        ends = np.cumsum([count for _, count in values])
        share = float(ends[-1]) / POINTS
        for at in np.searchsorted(ends, (np.arange(POINTS) + 0.5) * share):
            yield "quantile", kind, values[int(at)][0], share


def _plain(column: pa.Array) -> tuple[str, pa.Array]:
    """The kind of a column's values, and the column in a type whose values are plain; no kind: nothing to count."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _plain(column.cast(kind.value_type))
    if pa.types.is_boolean(kind):
        return "bool", column
    if pa.types.is_integer(kind):
        return "int", column.cast(pa.int64())
    if pa.types.is_floating(kind):
        return "float", column.cast(pa.float64())
    if pa.types.is_decimal(kind):  # as text, because Arrow's own cast to floats is not to the nearest
        return "float", column.cast(pa.large_string()).cast(pa.float64())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "str", column
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "time", column.cast(pa.timestamp("us", kind.tz if pa.types.is_timestamp(kind) else None)).cast(
            pa.int64()
        )
    return "", column
