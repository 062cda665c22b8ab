"""Events seen before, kept to tell which predicates hold rarely."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.arrow_events import TableEvents
from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I64
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer, locate
from eligo.compile.predicates import update_truth
from eligo.compile.strings import Strings
from eligo.forking import INNER, fork_lock
from eligo.index.selectivity import unlikeliness
from eligo.jit import kernel
from eligo.segments.encoding import encoded_slices, table_events

_APART = 8_000_000  # more than any rank by spaces
KEPT = 512  # events: enough to tell one in a hundred, few enough that ranking a segment takes milliseconds


class Sample:
    """Some of the observed events, encoded; evenly spaced if there were many."""

    def __init__(self, events: Any, encoder: Encoder) -> None:
        self.buffers = [buffer for _, _, buffer in encoded_slices(_some(events), encoder)]
        self._lock = fork_lock(self, "_lock", INNER)  # locating uses room in the buffers
        self.events = sum(buffer.events for buffer in self.buffers)

    def follow(self, attributes: Attributes, strings: Strings, gone: NDArray[np.bool_]) -> None:
        """Replaces the numbers of strings that are `gone` by -1, because they will be given to other strings."""
        with self._lock:
            for buffer in self.buffers:
                named = buffer.meta & 255 == codes.STRING
                buffer.key[named] = _still_known(buffer.key[named], gone)
                buffer.text_number[:] = _still_known(buffer.text_number, gone)

    @contextmanager
    def some(self) -> Iterator[EventBuffer]:
        """Returns a context with some of the events to search for. No other thread uses their buffer meanwhile."""
        with self._lock:
            yield self.buffers[0]

    def held(self, conjunctions: Conjunctions) -> I64:
        """Returns for every predicate how many of the events satisfy it."""
        counts = np.zeros(len(conjunctions.predicates) + 1, np.int64)
        truth = conjunctions.predicates.no_truth()
        with self._lock:
            for buffer in self.buffers:
                count_truths(
                    conjunctions.space_handle,
                    conjunctions.predicate_handle,
                    buffer.handle,
                    buffer.events,
                    truth,
                    counts,
                )
        return counts[:-1]


def _still_known(numbers: I64, gone: NDArray[np.bool_]) -> I64:
    """Returns numbers of strings, with -1 for those that are gone."""
    known = (numbers >= 0) & (numbers < len(gone))
    known[known] = ~gone[numbers[known]]
    return np.where(known, numbers, -1)


def rank_by(held: I64, conjunctions: Conjunctions) -> I64:
    """Returns ranks of predicates: higher if more of the events satisfy them or, among equals, with more spaces."""
    return held * _APART + unlikeliness(conjunctions)


def _some(events: Any) -> Any:
    """Returns evenly spaced events, fewer than twice as many as are kept."""
    events = table_events(events)
    if isinstance(events, TableEvents):
        step = max(1, len(events) // KEPT)
        return events.filtered(np.arange(len(events)) % step == 0) if step > 1 else events
    kept: list[Any] = []
    step = 1
    for number, event in enumerate(events):
        if number % step == 0:
            kept.append(event)
            if len(kept) == 2 * KEPT:
                kept, step = kept[::2], 2 * step
    return kept


@kernel
def count_truths(spaces, predicates, e, events, truth, counts):
    """Adds 1 to the count of each predicate for each of the events that satisfies it."""
    for row in range(events):
        n = locate(spaces, e, row)
        update_truth(predicates, e, n, truth)
        for p in range(len(counts)):
            counts[p] += truth.truth[p]
