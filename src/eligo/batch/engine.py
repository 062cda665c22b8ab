"""The batch engine of one segment: the rules that each of many events satisfies, a block of events at a time."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from eligo.batch.block import new_block
from eligo.batch.layout import LAYOUT_ARRAYS, make_layout
from eligo.batch.search import match_block, new_scratch
from eligo.batch.words import EVENTS
from eligo.compile.compiled import I32, I64, U8, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer


class BatchEngine:
    """Rules as `layout.py` draws them. Never changed; any number of threads may match."""

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        self._conjunctions, self._arrays = conjunctions, arrays
        self._handle = make_layout(
            conjunctions.space_handle, conjunctions.predicate_handle, *(arrays[name] for name in LAYOUT_ARRAYS)
        )
        self.events = self.matches = 0  # so far
        self._scratches: deque[tuple[Any, Any, I64]] = deque()  # each for one thread at a time

    def match(self, events: EventBuffer, allowed: U8) -> tuple[I64, I32]:
        """For all events of the buffer: ends (n + 1 of them), and the rows that each one matches, ascending."""
        block, scratch, _ = memory = self._scratch()
        ends = np.zeros(events.events + 1, np.int64)
        found: I32 = np.zeros(0, np.int32)
        for first in range(0, events.events, EVENTS):
            count = min(EVENTS, events.events - first)
            found = match_block(self._handle, events.handle, first, count, block, scratch, allowed, ends)
        found = found.copy()
        self._scratches.append(memory)
        self.events += events.events
        self.matches += len(found)
        return ends, found

    def arrays(self) -> Arrays:
        return self._arrays

    def counters(self) -> I64:
        """Rows looked at, predicates evaluated, and rows that trees asked about; of blocks that are not under way."""
        return sum((counters for _, _, counters in list(self._scratches)), np.zeros(3, np.int64))

    def _scratch(self) -> tuple[Any, Any, I64]:
        try:
            return self._scratches.pop()
        except IndexError:
            counters = np.zeros(3, np.int64)
            return new_block(self._conjunctions, self._arrays["starts"]), new_scratch(self._arrays, counters), counters
