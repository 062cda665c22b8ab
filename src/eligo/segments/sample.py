"""Events seen before, kept to tell which predicates hold rarely."""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.compile.compiled import I64
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer, locate
from eligo.compile.predicates import fill_truth, restore_truth
from eligo.jit import kernel
from eligo.segments.encoding import encoded_slices

KEPT = 512  # events: enough to tell one in a hundred, few enough that ranking a segment takes milliseconds


class Sample:
    """Some of the observed events, encoded; evenly spaced if there were many."""

    def __init__(self, events: Any, encoder: Encoder) -> None:
        self._slices: list[tuple[EventBuffer, I64]] = []
        self.events = 0
        for _, buffer in encoded_slices(events, encoder, fresh=True):
            self._slices.append((buffer, np.arange(buffer.events)))
            self.events += buffer.events
        step = max(1, self.events // KEPT)
        if step > 1:
            self._slices = [(buffer, rows[::step]) for buffer, rows in self._slices]

    def rank(self, conjunctions: Conjunctions) -> I64:
        """How many of the events satisfy each predicate."""
        counts = np.zeros(len(conjunctions.predicates) + 1, np.int64)
        truth = conjunctions.predicates.absent_truth()
        for buffer, rows in self._slices:
            count_truths(conjunctions.space_handle, conjunctions.predicate_handle, buffer.handle, rows, truth, counts)
        return counts


@kernel
def count_truths(spaces, predicates, e, rows, truth, counts):  # type: ignore[no-untyped-def]
    """Add to the counts the predicates that each of the events satisfies."""
    for row in rows:
        n = locate(spaces, e, row)
        fill_truth(predicates, e, n, truth)
        for p in range(len(truth)):
            counts[p] += truth[p]
        restore_truth(predicates, e, n, truth)
