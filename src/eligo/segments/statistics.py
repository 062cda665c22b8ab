"""Statistics of many events, attribute by attribute: how often each value occurs.

    events                    how many were seen
    attribute  present        how many had it
               value, count   the frequent values with their counts; of the others some, spread evenly by their order,
                              which share the remaining count

Unlike a `Sample`, which keeps whole events, this does not know which values occur together; but it knows values that
occur once in a million events. Both tell how often each predicate holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.attributes import Attributes
from eligo.compile.compiled import F64, I32, I64
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.encode import PATTERN, TEXT, Encoder
from eligo.compile.events import EventBuffer, locate
from eligo.compile.predicates import update_truth
from eligo.compile.strings import Strings
from eligo.forking import INNER, cached_property, fork_lock
from eligo.jit import kernel

Value = bool | int | float | str | np.datetime64


@dataclass(frozen=True)
class Values:
    """The values that one attribute had: the number of events that had it, and values with their counts."""

    present: int
    counts: tuple[tuple[Value, float], ...]


class Statistics:
    """Values of attributes, encoded for one numbering of attributes and strings."""

    def __init__(self, events: int, seen: Mapping[str, Values], attributes: Attributes, strings: Strings) -> None:
        self.events = max(1, events)
        self._seen = {name: values for name, values in seen.items() if name in attributes.metas}
        self._attributes = attributes
        self._strings = strings
        self._lock = fork_lock(self, "_lock", INNER)  # locating uses room in the buffer

    def follow(self, attributes: Attributes, strings: Strings, gone: NDArray[np.bool_]) -> None:
        """Uses these tables from now on."""
        with self._lock:
            self._seen = {name: values for name, values in self._seen.items() if name in attributes.metas}
            self._attributes, self._strings = attributes, strings
            self.__dict__.pop("_encoded", None)

    def held(self, conjunctions: Conjunctions) -> I64:
        """Returns for every predicate about how many of the events satisfy it."""
        predicates = conjunctions.predicates
        counts = np.zeros(len(predicates))
        buffer, attribute, weight = self._encoded
        known = len(predicates.plain_stop)  # the segment may have been built before the newest attributes came
        with self._lock:
            weigh_truths(
                conjunctions.space_handle,
                conjunctions.predicate_handle,
                buffer.handle,
                np.where(attribute < known, attribute, np.int32(-1)),
                weight,
                predicates.attribute_offsets,
                predicates.no_truth(),
                counts,
            )
        counts += self._absent(known)[predicates.attribute()] * (predicates.flags & codes.ABSENT_HOLDS != 0)
        return np.rint(np.minimum(counts, self.events)).astype(np.int64)

    def _absent(self, known: int) -> F64:
        """Returns for every attribute how many events did not have it; one that was never seen is absent from all."""
        absent = np.full(known, float(self.events))
        for name, values in self._seen.items():
            number = self._attributes.metas[name] >> 8
            if number < known:
                absent[number] -= values.present
        return absent

    @cached_property
    def _encoded(self) -> tuple[EventBuffer, I32, F64]:
        """Every value as an event of its own, its attribute, and how many events it stands for."""
        # With the bytes of text, because a predicate may compare its order or match a pattern.
        encoder = Encoder(self._attributes, self._strings, dict.fromkeys(self._seen, TEXT | PATTERN))
        total = sum(len(values.counts) for values in self._seen.values())
        buffer = EventBuffer(max(1, total), max(1, total))
        attribute, weight = np.zeros(total, np.int32), np.zeros(total)
        at = 0
        for name, values in self._seen.items():
            whole = sum(count for _, count in values.counts)
            for value, count in values.counts:
                encoder.encode({name: value}, buffer)
                attribute[at] = self._attributes.metas[name] >> 8
                # A list has more values than events; no predicate holds for more events than have the attribute.
                weight[at] = count * min(1.0, values.present / whole)
                at += 1
        return buffer, attribute, weight


def values_of(rows: Iterable[tuple[str, str, Any, float]]) -> tuple[int, dict[str, Values]]:
    """Returns the number of events, and the values by attribute, from rows (attribute, what, value, count)."""
    events, present = 0, {}
    counts: dict[str, list[tuple[Value, float]]] = {}
    for attribute, what, value, count in rows:
        if what == "events":
            events = int(count)
        elif what == "present":
            present[attribute] = int(count)
        else:
            counts.setdefault(attribute, []).append((value, count))
    return events, {name: Values(number, tuple(counts.get(name, ()))) for name, number in present.items()}


@kernel
def weigh_truths(spaces, predicates, e, attribute, weight, offsets, truth, counts):
    """Adds the weight of each event, which has one attribute, to the counts of the predicates that it satisfies."""
    for row in range(len(attribute)):
        a = attribute[row]
        if a < 0 or offsets[a] == offsets[a + 1]:
            continue
        n = locate(spaces, e, row)
        update_truth(predicates, e, n, truth)
        for p in range(offsets[a], offsets[a + 1]):
            if truth.truth[p]:
                counts[p] += weight[row]
