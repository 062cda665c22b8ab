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
from eligo.batch.answers import BUCKETS, count_events, count_matches, hand_out, new_range, order_notes, take_notes
from eligo.batch.block import GATHERED, gather_events, locate_events, new_block, new_gathered, new_located
from eligo.batch.layout import LAYOUT_ARRAYS, RULES, STRAIGHT, make_layout
from eligo.batch.search import LOCATED, STATE, new_scratch, plan_search, search_events
from eligo.batch.words import EVENTS
from eligo.compile.compiled import I32, I64, U8, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer
from eligo.threads import ALONE, Team

_MATCHES = 1 << 26  # of events that are searched for together, about
_WORTH = 2_000_000  # nanoseconds of a search that is worth a second thread
_PIECES = 16  # of a search, for each thread
_NAMELESS: I64 = np.zeros(0, np.int64)


def _room(count: int, names: I64 | None) -> NDArray[Any]:
    """Room for so many rows, or names. (Kernels would take memory that has to be cleared, or is in small pages.)"""
    return np.empty(count, np.int32) if names is None else room(count)


class _Searcher:
    """The memory of one thread that searches and hands out, and a handle of its own: kernels count who uses an array,
    and threads that counted in the same place would wait for each other.
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

    def __init__(self, events: EventBuffer, named: U8, gathered: Any, searchers: list[_Searcher], team: Team) -> None:
        self._values = events.count // max(1, events.events)  # of an event
        self._named, self._gathered, self._everyone, self._all_of = named, gathered, searchers, team
        self._handles = [events.handle] + [events.another_handle() for _ in searchers[1:]]
        self._pieces = np.zeros(_PIECES * len(searchers) + 1, np.int64)
        self._searchers, self._team = searchers[:1], ALONE  # of the events at hand

    def find(self, first: int, count: int, allowed: U8) -> I64:
        """Finds the rules of `count` events, from `first` on. Returns how many each thread has to hand out of each."""
        self._choose(LOCATED * self._values * count)
        borders = [count * i // self._team.threads for i in range(self._team.threads + 1)]
        self._team.each(partial(self._locate, first, borders))
        for searcher, (begin, stop) in zip(self._searchers, pairwise(borders), strict=True):
            gather_events(searcher.located, begin, stop - begin, self._gathered)
        one = self._everyone[0]
        self._choose(plan_search(one.layout, count, self._gathered, one.scratch, self._pieces))
        pieces = iter(list(pairwise(self._pieces.tolist())))  # who is done with one takes the next
        self._team.each(partial(self._note, pieces, count, allowed))
        many = np.zeros((len(self._searchers), len(self._searchers), count), np.int64)
        self._team.each(partial(self._order, self._borders(), many))
        total: I64 = many.sum(axis=0)
        return total

    def write(self, position: I64, names: I64, found: NDArray[Any]) -> None:
        """Writes what was found, or the names of that; each thread's of each event from `position` on."""
        self._team.each(lambda i: hand_out(self._searchers[i].range, names, position[i], found))

    def _choose(self, work: int) -> None:
        """Chooses who does work of so many nanoseconds."""
        alone = len(self._everyone) == 1 or work < _WORTH
        self._searchers, self._team = (self._everyone[:1], ALONE) if alone else (self._everyone, self._all_of)

    def _locate(self, first: int, borders: list[int], i: int) -> None:
        mine, count = self._searchers[i], borders[i + 1] - borders[i]
        locate_events(mine.spaces, self._handles[i], first + borders[i], count, self._named, mine.located)

    def _note(self, pieces: Iterator[tuple[int, int]], count: int, allowed: U8, i: int) -> None:
        mine = self._searchers[i]
        mine.state[:] = 0
        for first, stop in pieces:
            search_events(
                mine.layout, self._handles[i], count, self._gathered, mine.block, mine.scratch, first, stop, allowed
            )

    def _order(self, borders: I64, many: I64, i: int) -> None:
        count_events(self._searchers[i].scratch, borders, many.shape[2], many[i].reshape(-1))
        for searcher in self._searchers:
            take_notes(searcher.scratch, borders[i], borders[i + 1], self._searchers[i].range)
        order_notes(self._searchers[i].range)

    def _borders(self) -> I64:
        """Where the ranges of rules begin that each thread hands out, and where the last one ends."""
        rules, threads = self._everyone[0].rules, len(self._searchers)
        if threads == 1:
            return np.array([0, rules])
        counts = np.zeros((threads, BUCKETS), np.int64)
        self._team.each(lambda i: count_matches(self._searchers[i].scratch, rules, counts[i]))
        before = np.cumsum(counts.sum(axis=0))
        middle = np.searchsorted(before, before[-1] * np.arange(1, threads) // threads)
        return np.array([0, *(-(-(middle + 1) * rules // BUCKETS)), rules])


class BatchEngine:
    """Rules as `layout.py` draws them. Never changed; any number of threads may match."""

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        self._conjunctions, self._arrays = conjunctions, arrays
        self._named: U8 = (np.diff(conjunctions.predicates.attribute_offsets) > 0).astype(np.uint8)
        self.shares = bool(arrays["sizes"][STRAIGHT])  # whether several threads can search for the same events
        self.events = self.matches = 0  # so far
        self._gathered: deque[Any] = deque()  # memory that nobody uses now
        self._searchers: deque[_Searcher] = deque()

    def match(
        self, events: EventBuffer, allowed: U8, names: I64 | None = None, team: Team = ALONE
    ) -> tuple[I64, I32 | I64]:
        """For all events of the buffer: ends (n + 1 of them), and the rows that each one matches, ascending, or the
        names of these.
        """
        ends = np.zeros(events.events + 1, np.int64)
        found: NDArray[Any] = _room(0, names)
        gathered, searchers = self._taken(team.threads)
        search = _Search(events, self._named, gathered, searchers, team)
        first = 0
        while left := events.events - first:
            count = -(-left // -(-left // self._at_once()))
            stop, begin = first + count, int(ends[first])
            many = search.find(first, count, allowed)
            ends[first + 1 : stop + 1] = begin + np.cumsum(many.sum(axis=0))
            end = int(ends[stop])
            if end > len(found):  # for the events that are left as well, by what there is
                expected = end * (21 if left > count else 20) // 20 * events.events // stop
                found, before = _room(expected, names), found
                found[:begin] = before[:begin]
            position = ends[first:stop] + np.cumsum(many, axis=0) - many
            search.write(position, _NAMELESS if names is None else names, found)
            self.events += count
            self.matches += end - begin
            first = stop
        self._gathered.append(gathered)
        self._searchers.extend(searchers)
        return ends, found[: ends[first]]

    def _taken(self, threads: int) -> tuple[Any, list[_Searcher]]:
        """Memory for one search of so many threads, which nobody else uses until it is given back."""
        try:
            gathered = self._gathered.pop()
        except IndexError:
            gathered = new_gathered(self._named)
        searchers: list[_Searcher] = []
        while len(searchers) < (threads if self.shares else 1):
            try:
                searchers.append(self._searchers.pop())
            except IndexError:
                searchers.append(_Searcher(self._conjunctions, self._arrays))
        return gathered, searchers

    def _at_once(self) -> int:
        """How many events to search for together: the more the better, as long as their matches fit in memory. Where
        rows open parts, those of one block.
        """
        if not self.shares:
            return EVENTS
        return min(max(EVENTS, _MATCHES * self.events // max(1, self.matches)), GATHERED)

    def arrays(self) -> Arrays:
        return self._arrays

    def counters(self) -> I64:
        """Rows looked at, predicates evaluated, rows that trees asked about, and slots that blocks were filled with; of
        searches that are not under way.
        """
        return sum((searcher.counters for searcher in list(self._searchers)), np.zeros(4, np.int64))
