"""The batch engine of one segment: the rules that each of many events satisfies, a block of events at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.arrow import room
from eligo.batch.answers import (
    BUCKETS,
    count_events,
    count_matches,
    hand_out,
    new_range,
    order_notes,
    place_matches,
    take_notes,
)
from eligo.batch.block import GATHERED, gather_events, locate_events, new_block, new_gathered, new_located
from eligo.batch.layout import LAYOUT_ARRAYS, RULES, STRAIGHT, make_layout
from eligo.batch.search import LOCATED, STATE, new_scratch, plan_search, search_events
from eligo.batch.words import EVENTS
from eligo.compile.compiled import I32, I64, U8, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer
from eligo.threads import ALONE, Team

_MATCHES = 1 << 26  # at most, about, of the events that are searched for together
_WORTH = 2_000_000  # nanoseconds of a search that is worth a second thread
_PIECES = 16  # of a search, for each thread
_NAMELESS: I64 = np.zeros(0, np.int64)


def _room(count: int, names: I64 | None) -> NDArray[Any]:
    """Returns room for so many rows, or names. (Memory that kernels take has to be cleared, or is in small pages.)"""
    return np.empty(count, np.int32) if names is None else room(count)


class _Searcher:
    """The memory of one thread that searches and hands out, with a handle of its own: kernels count the references to
    an array, and threads that count in the same place slow each other down.
    """

    def __init__(self, conjunctions: Conjunctions, layout: Arrays) -> None:
        spaces, predicates = conjunctions.spaces.handle(conjunctions.strings), conjunctions.predicates.handle()
        self.spaces = spaces
        self.layout = make_layout(spaces, predicates, *(layout[name] for name in LAYOUT_ARRAYS))
        self.state, self.counters = np.zeros(STATE, np.int64), np.zeros(4, np.int64)
        self.located = new_located()
        self.block = new_block(layout["starts"])
        self.scratch = new_scratch(layout, self.state, self.counters)
        self.rules = int(layout["sizes"][RULES])
        self.range = new_range(self.rules)


class _Search:
    """The search for the events of one buffer, some at a time, by one thread or by several that share the tasks."""

    def __init__(self, engine: BatchEngine, events: EventBuffer, team: Team) -> None:
        self._engine, self._events = engine, events
        self._most = team if engine.shares else ALONE
        self._pieces = np.zeros(_PIECES * self._most.threads + 1, np.int64)
        self._gathered = engine.take_gathered()
        self._everyone, self._handles = [engine.searcher()], [events.handle]
        self._searchers, self._team = self._everyone, ALONE  # those that work at the moment

    def find(self, first: int, count: int, allowed: U8, ends: I64) -> I64:
        """Finds the rules of `count` events, from `first` on, and writes to `ends` where those of each one end. Returns
        position[thread, event]: where those begin that each thread hands out.
        """
        self._choose(LOCATED * self._events.count * count // self._events.events)
        borders = [count * i // self._team.threads for i in range(self._team.threads + 1)]
        self._team.each(partial(self._locate, first, borders))
        for searcher, (begin, stop) in zip(self._searchers, pairwise(borders), strict=True):
            gather_events(searcher.located, begin, stop - begin, self._gathered)
        one = self._everyone[0]
        self._choose(plan_search(one.layout, count, self._gathered, one.scratch, self._pieces))
        pieces = pairwise(self._pieces.tolist()) if self._team.threads > 1 else [(0, int(self._pieces[-1]))]
        self._team.each(partial(self._note, iter(list(pieces)), count, allowed))  # shared by the threads
        threads = self._team.threads
        counts, position = np.zeros((threads, threads * count), np.int64), np.empty((threads, count), np.int64)
        self._team.each(partial(self._order, self._borders(), count, counts))
        place_matches(counts, first, ends, position)
        return position

    def write(self, position: I64, names: I64, found: NDArray[Any]) -> None:
        """Writes the rules that were found, or their names if there are any, to `found`; `position` is of `find`."""
        self._team.each(lambda i: hand_out(self._searchers[i].range, names, position[i], found))

    def end(self) -> None:
        """Gives the memory back to the engine."""
        self._engine.gathered.append(self._gathered)
        self._engine.searchers.extend(self._everyone)

    def _choose(self, work: int) -> None:
        """Chooses the threads for work of so many nanoseconds: the whole team if it is worth it, or this one."""
        self._team = self._most if work >= _WORTH else ALONE
        while len(self._everyone) < self._team.threads:
            self._everyone.append(self._engine.searcher())
            self._handles.append(self._events.another_handle())
        self._searchers = self._everyone[: self._team.threads]

    def _locate(self, first: int, borders: list[int], i: int) -> None:
        mine, count = self._searchers[i], borders[i + 1] - borders[i]
        locate_events(mine.spaces, self._handles[i], first + borders[i], count, self._engine.named, mine.located)

    def _note(self, pieces: Iterator[tuple[int, int]], count: int, allowed: U8, i: int) -> None:
        mine = self._searchers[i]
        mine.state[:] = 0
        for first, stop in pieces:
            search_events(
                mine.layout, self._handles[i], count, self._gathered, mine.block, mine.scratch, first, stop, allowed
            )

    def _order(self, borders: I64, count: int, counts: I64, i: int) -> None:
        count_events(self._searchers[i].scratch, borders, count, counts[i])
        for searcher in self._searchers:
            take_notes(searcher.scratch, borders[i], borders[i + 1], self._searchers[i].range)
        order_notes(self._searchers[i].range)

    def _borders(self) -> I64:
        """Returns where the ranges of rules begin that each thread hands out, and where the last one ends."""
        rules, threads = self._everyone[0].rules, len(self._searchers)
        if threads == 1:
            return np.array([0, rules])
        counts = np.zeros((threads, BUCKETS), np.int64)
        self._team.each(lambda i: count_matches(self._searchers[i].scratch, rules, counts[i]))
        before = np.cumsum(counts.sum(axis=0))
        middle = np.searchsorted(before, before[-1] * np.arange(1, threads) // threads)
        return np.array([0, *(-(-(middle + 1) * rules // BUCKETS)), rules])


class BatchEngine:
    """Searches rules that lie as `layout.py` draws them. It never changes; any number of threads may match."""

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        self._conjunctions, self._arrays = conjunctions, arrays
        self.named: U8 = (np.diff(conjunctions.predicates.attribute_offsets) > 0).astype(np.uint8)
        self.shares = bool(arrays["sizes"][STRAIGHT])  # whether several threads can search for the same events
        self.events = self.matches = 0  # so far
        self.gathered: deque[Any] = deque()  # memory that is free
        self.searchers: deque[_Searcher] = deque()

    def match(
        self, events: EventBuffer, allowed: U8, names: I64 | None = None, team: Team = ALONE
    ) -> tuple[I64, I32 | I64]:
        """Returns, for all n events of the buffer, n + 1 ends and the rows that each one matches, ascending, or the
        names of these if `names` are given.
        """
        ends = np.zeros(events.events + 1, np.int64)
        found: NDArray[Any] = _room(0, names)
        search = _Search(self, events, team)
        first = 0
        while left := events.events - first:
            count = -(-left // -(-left // self._at_once()))
            stop, begin = first + count, int(ends[first])
            position = search.find(first, count, allowed, ends)
            end = int(ends[stop])
            if end > len(found):  # room for the events that are left as well, estimated
                expected = end * (21 if left > count else 20) // 20 * events.events // stop
                found, before = _room(expected, names), found
                found[:begin] = before[:begin]
            search.write(position, _NAMELESS if names is None else names, found)
            self.events += count
            self.matches += end - begin
            first = stop
        search.end()
        return ends, found[: ends[first]]

    def take_gathered(self) -> Any:
        """Returns room for gathered events that no other search has until it is put back in `gathered`."""
        try:
            return self.gathered.pop()
        except IndexError:
            return new_gathered(self.named)

    def searcher(self) -> _Searcher:
        """Returns the memory of a thread that no other has until it is put back in `searchers`."""
        try:
            return self.searchers.pop()
        except IndexError:
            return _Searcher(self._conjunctions, self._arrays)

    def _at_once(self) -> int:
        """Returns how many events to search for together: the more the better, as long as their matches fit in memory.
        Where rows open parts, those of one block.
        """
        if not self.shares:
            return EVENTS
        return min(max(EVENTS, _MATCHES * self.events // max(1, self.matches)), GATHERED)

    def arrays(self) -> Arrays:
        return self._arrays

    def counters(self) -> I64:
        """Returns the totals of rows looked at, predicates evaluated, rows that trees asked about, and slots that
        blocks were filled with. Searches under way are not counted.
        """
        return sum((searcher.counters for searcher in list(self.searchers)), np.zeros(4, np.int64))
