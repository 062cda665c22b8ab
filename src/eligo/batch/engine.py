"""The batch engine of one segment: the rules that each of many events satisfies, a block of events at a time."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.arrow import room
from eligo.batch.block import GATHERED, new_block, new_gathered
from eligo.batch.layout import LAYOUT_ARRAYS, STRAIGHT, make_layout
from eligo.batch.search import match_events, new_scratch, take_rules
from eligo.batch.words import EVENTS
from eligo.compile.compiled import I32, I64, U8, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer

_MATCHES = 1 << 26  # of events that are searched for together, about
_NAMELESS: I64 = np.zeros(0, np.int64)


def _room(count: int, names: I64 | None) -> NDArray[Any]:
    """Room for so many rows, or names. (Kernels would take memory that has to be cleared, or is in small pages.)"""
    return np.empty(count, np.int32) if names is None else room(count)


class BatchEngine:
    """Rules as `layout.py` draws them. Never changed; any number of threads may match."""

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        self._conjunctions, self._arrays = conjunctions, arrays
        self._handle = make_layout(
            conjunctions.space_handle, conjunctions.predicate_handle, *(arrays[name] for name in LAYOUT_ARRAYS)
        )
        self.events = self.matches = 0  # so far
        self._scratches: deque[tuple[Any, Any, Any, I64]] = deque()  # each for one thread at a time

    def match(self, events: EventBuffer, allowed: U8, names: I64 | None = None) -> tuple[I64, I32 | I64]:
        """For all events of the buffer: ends (n + 1 of them), and the rows that each one matches, ascending, or the
        names of these.
        """
        gathered, block, scratch, _ = memory = self._scratch()
        ends = np.zeros(events.events + 1, np.int64)
        found: NDArray[Any] = _room(0, names)
        first = 0
        while left := events.events - first:
            count = -(-left // -(-left // self._at_once()))
            most = match_events(self._handle, events.handle, first, count, gathered, block, scratch, allowed)
            end = int(ends[first])
            if end + most > len(found):  # for the events that are left as well, by what there is
                expected = (end + most) * (21 if left > count else 20) // 20 * events.events // (first + count)
                found, before = _room(expected, names), found
                found[:end] = before[:end]
            some = take_rules(first, count, scratch, _NAMELESS if names is None else names, ends, found[end:])
            first += count
            self.events += count
            self.matches += some
        self._scratches.append(memory)
        return ends, found[: ends[first]]

    def _at_once(self) -> int:
        """How many events to search for together: the more the better, as long as their matches fit in memory. Where
        rows open parts, those of one block.
        """
        if not self._arrays["sizes"][STRAIGHT]:
            return EVENTS
        return min(max(EVENTS, _MATCHES * self.events // max(1, self.matches)), GATHERED)

    def arrays(self) -> Arrays:
        return self._arrays

    def counters(self) -> I64:
        """Rows looked at, predicates evaluated, rows that trees asked about, and slots that blocks were filled with; of
        searches that are not under way.
        """
        return sum((counters for *_, counters in list(self._scratches)), np.zeros(4, np.int64))

    def _scratch(self) -> tuple[Any, Any, Any, I64]:
        try:
            return self._scratches.pop()
        except IndexError:
            counters = np.zeros(4, np.int64)
            starts = self._arrays["starts"]
            gathered = new_gathered(self._conjunctions, starts)
            return gathered, new_block(starts), new_scratch(self._arrays, counters), counters
