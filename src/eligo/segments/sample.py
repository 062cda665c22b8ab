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
        """Know the strings of these numbers no more: they will be given to others."""
        with self._lock:
            for buffer in self.buffers:
                named = buffer.meta & 255 == codes.STRING
                buffer.key[named] = _still_known(buffer.key[named], gone)
                buffer.text_number[:] = _still_known(buffer.text_number, gone)

    @contextmanager
    def some(self) -> Iterator[EventBuffer]:
        """Some of the events, to be searched for; nobody else does meanwhile."""
        with self._lock:
            yield self.buffers[0]

    def held(self, conjunctions: Conjunctions) -> I64:
        """For every predicate how many of the events satisfy it."""
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
    """Numbers of strings, -1 for those that are gone."""
    known = (numbers >= 0) & (numbers < len(gone))
    known[known] = ~gone[numbers[known]]
    return np.where(known, numbers, -1)


def rank_by(held: I64, conjunctions: Conjunctions) -> I64:
    """Higher for predicates that more of the events satisfy; of those alike in this, for those of more spaces."""
    return held * _APART + unlikeliness(conjunctions)


def _some(events: Any) -> Any:
    """At most twice as many events as are kept, evenly spaced."""
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
    """Add to the counts the predicates that each of the events satisfies."""
    for row in range(events):
        n = locate(spaces, e, row)
        update_truth(predicates, e, n, truth)
        for p in range(len(counts)):
            counts[p] += truth.truth[p]
