"""PS-Tree by itself (the PS-Tree paper §4, Table 3): closed intervals of int64, and which of them hold a point.

    point ─▶ inner nodes (nodes.py, many points at once: locate.py) ─▶ its space
                 ─▶ how many intervals cover the space: a counter
                 ─▶ which ones: the lists of the window that the space lies in (windows.py)

Spaces are exact, and as many as there are different bounds. What `build` makes of many intervals, sorting their bounds
once, goes on with `insert` and `delete` (intervals.py).

    by space      count, rank, seen    by sixteen spaces   owner           windows.py draws them
    by window     window               by interval         bounds: low and ~high; 0 and 0: none
    pools         tree: inner nodes; words: lists          runs            heads of the heap of spaces' numbers
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I32, I64
from eligo.errors import DuplicateRuleError, LimitError, UnknownRuleError
from eligo.index.ps_tree.nodes import (
    LAST,
    build_tree,
)
from eligo.index.ps_tree.pools import Pools
from eligo.index.rows.allocator import FREE, USED, no_blocks
from eligo.index.rows.growable import prefetch, with_room, zeros
from eligo.index.rows.int_pair import lower, upper
from eligo.jit import kernel
from eligo_lab.intervals.divide import divide, fill_lists, list_sizes, make_windows
from eligo_lab.intervals.heap import ends
from eligo_lab.intervals.intervals import delete_interval, insert_interval
from eligo_lab.intervals.locate import TOGETHER, located, position
from eligo_lab.intervals.windows import (
    FEW,
    LINE,
    LISTS,
    RUN,
    SIZES,
    SPACES,
    WINDOWS,
    make_handle,
    move_lists,
    room_of,
    up_to,
)

LEAST, LARGEST = -(2**63), 2**63 - 1
_MOST = 2**29  # intervals: spaces have numbers of 31 bits
_MOST_WORDS = 2**32  # of lists: half a place is 31 bits
_ROOM = 1 << 18  # numbers that there is room for before a change: windows are made anew before the old ones go
_LOOSE = 1 << 13  # words in free blocks that are not worth a move
_NODES = 40  # words of inner nodes that a border takes, at most
INTERVALS = 3  # of state: the highest number ever + 1


class PsTree:
    """Intervals by the spaces that they cover; see the top of this file."""

    def __init__(self) -> None:
        """Without intervals: one space."""
        none = np.zeros(0, np.int64)
        self._lay_out(none, none)

    @classmethod
    def build(cls, low: I64, high: I64) -> PsTree:
        """The tree of the closed intervals [low[i], high[i]], numbered from 0."""
        tree = cls.__new__(cls)
        tree._lay_out(np.ascontiguousarray(low, np.int64), np.ascontiguousarray(high, np.int64))
        return tree

    def _lay_out(self, low: I64, high: I64) -> None:
        count = len(low)
        if count > _MOST:
            raise LimitError(f"{count:,} intervals, and {_MOST:,} is the most of a tree: build several trees")
        self._bounds = zeros(np.int64, 2 * count)
        some = np.flatnonzero(low <= high)
        if len(some) < count:
            low, high = low[some], high[some]
            self._bounds[: 2 * count : 2] = 1  # of those without values; the others' are written over
            self._bounds[1 : 2 * count : 2] = -1
        begin, covering, bounds, first, last = swept(low, high, np.argsort(low), np.argsort(high))
        starts, windows = divide(covering, bounds, len(begin))
        words = int(list_sizes(starts, windows, first, last, len(first))[3])
        if words > _MOST_WORDS:
            raise LimitError(
                f"{count:,} intervals take {words:,} words of lists, and {_MOST_WORDS:,} is the most of a tree: build "
                "several trees of fewer intervals"
            )
        self._pools = Pools(1)
        self._pools.make_room(1, 0, 0)
        self._pools.tree = with_room(self._pools.tree, 2 * _NODES * count + _ROOM, 2)
        self._pools.words = with_room(self._pools.words, words + _ROOM, 2)
        self._pools.refresh()
        numbers = 8 * count + _ROOM  # a window has a fourth more than spaces, or 16
        self._count, self._rank = zeros(np.int32, numbers), zeros(np.uint16, numbers)
        self._owner, self._window = zeros(np.int32, numbers // 16), zeros(np.int64, numbers // 4)
        self._runs, self._seen = no_blocks(), np.zeros(0, np.int64)
        self._state = np.array([0, -1, len(begin), count], np.int64)
        self._refresh()
        lay_out(self._handle, some, low, high, begin, covering, first, last, starts, windows)

    def _refresh(self) -> None:
        self._handle = make_handle(
            self._pools.handle, self._count, self._rank, self._owner, self._window, self._bounds, self._runs,
            self._seen, self._state,
        )  # fmt: skip

    def _make_room(self, number: int) -> None:
        """Before a change, which may divide every window anew."""
        before = self._pools.handle
        if self._pools.heads[FREE] > max(_LOOSE, self._pools.heads[USED] // 2):
            self._compact()
        self._pools.make_room(1, 0, 0)
        words = 4 * int(self._pools.heads[USED]) + _ROOM
        if words > len(self._pools.words):
            self._pools.words = with_room(self._pools.words, words, int(self._pools.heads[USED]))
            self._pools.refresh()
        numbers = 3 * int(self._runs[USED]) + _ROOM
        sizes = {"_count": numbers, "_rank": numbers, "_owner": numbers // 16, "_window": numbers // 4}
        sizes |= {"_bounds": 2 * number + 2, "_seen": numbers if len(self._seen) else 0}
        grown = {name: size for name, size in sizes.items() if size > len(getattr(self, name))}
        for name, size in grown.items():
            array = getattr(self, name)
            setattr(self, name, with_room(array, size, len(array)))
        self._state[INTERVALS] = max(self._state[INTERVALS], number + 1)
        if grown or before is not self._pools.handle:
            self._refresh()

    def _compact(self) -> None:
        """Lists that grow together leave blocks behind that are too small for any of them."""
        heads = no_blocks()
        heads[USED] = 2
        words = zeros(np.int64, int(self._pools.heads[USED]) + _ROOM)
        move_lists(self._handle, words, heads)
        self._pools.words, self._pools.heads = words, heads
        self._pools.refresh()

    def _is_known(self, number: int) -> bool:
        return 0 <= number < self._state[INTERVALS] and bool(self._bounds[2 * number : 2 * number + 2].any())

    def insert(self, number: int, low: int, high: int) -> None:
        """Add an interval (InsertPredicate, the PS-Tree paper Algorithm 1)."""
        if not 0 <= number < _MOST:
            raise LimitError(f"interval number {number}: numbers go from 0 to {_MOST - 1:,}")
        if not (LEAST <= low <= LARGEST and LEAST <= high <= LARGEST):
            raise LimitError(f"interval {number}, [{low}, {high}]: bounds are integers of 64 bits")
        if self._is_known(number):
            raise DuplicateRuleError(f"interval {number} is already there: delete it first")
        self._make_room(number)
        if low <= high:
            insert_interval(self._handle, number, low, high)
        else:
            self._bounds[2 * number : 2 * number + 2] = 1, -1

    def delete(self, number: int) -> None:
        """Take an interval away (DeletePredicate, the PS-Tree paper §4.4)."""
        if not self._is_known(number):
            raise UnknownRuleError(f"interval {number} is not there")
        self._make_room(number)
        low, high = int(self._bounds[2 * number]), ~int(self._bounds[2 * number + 1])
        if low <= high:
            delete_interval(self._handle, number)
        self._bounds[2 * number : 2 * number + 2] = 0

    def locate(self, points: I64) -> I64:
        """The space of each point (MatchPair, the PS-Tree paper Algorithm 3)."""
        return located(self._pools.tree, self._pools.tree.view(np.int32), int(self._pools.root[LINE]), points)  # type: ignore[no-any-return]

    def count(self, points: I64) -> I64:
        """How many intervals hold each point."""
        found: I64 = np.take(self._count, self.locate(points)).astype(np.int64)
        return found

    def matches(self, points: I64) -> tuple[I64, I32]:
        """Offsets, and the numbers of the intervals that hold each point."""
        spaces = self.locate(points)
        offsets = ends(np.take(self._count, spaces))
        return offsets, listed(self._handle, spaces, offsets)[:-1]

    def observe(self, points: I64) -> None:
        """Count events: those that came to each space, of all observed."""
        if not len(self._seen):
            self._seen = zeros(np.int64, len(self._count))
            self._refresh()
        np.add.at(self._seen, self.locate(points), 1)

    def events(self, points: I64) -> I64:
        """How many observed events came to the space of each point."""
        return np.take(self._seen, self.locate(points)) if len(self._seen) else np.zeros(len(points), np.int64)

    @property
    def spaces(self) -> int:
        """How many spaces there are."""
        return int(self._state[SPACES])

    def bytes(self) -> int:
        """Of all arrays, as far as they are in use."""
        numbers, windows = int(self._runs[USED]), int(self._state[WINDOWS])
        tree, lists = self._pools.tree_heads, self._pools.heads
        words = int(tree[USED] + lists[USED]) + 2 * int(self._state[INTERVALS]) + 4 * windows
        heads = self._runs.nbytes + tree.nbytes + lists.nbytes + self._state.nbytes
        by_space = 4 + 2 + 4 / 16 + (8 if len(self._seen) else 0)
        return int(8 * words + by_space * numbers + heads)


@kernel
def swept(low, high, by_low, by_high):
    """The spaces of intervals that are given with their order by either bound: where each begins, how many intervals
    cover it, how many bounds lie where it begins; and the first and the last space of each interval.
    """
    n = len(low)
    begin = np.zeros(2 * n + 1, np.uint64)
    count, bounds = np.zeros(2 * n + 1, np.int64), np.zeros(2 * n + 1, np.int64)
    first, last = np.empty(n, np.int64), np.empty(n, np.int64)
    s, held, i, j = 0, 0, 0, 0
    closing = n  # those that go up to the largest integer end at no border
    while closing and high[by_high[closing - 1]] == LARGEST:
        closing -= 1
    while i < n or j < closing:
        x = position(low[by_low[i]]) if i < n else np.uint64(LAST)
        if j < closing:
            x = min(x, position(high[by_high[j]]) + np.uint64(1))
        if x != begin[s]:
            s += 1
            begin[s] = x
        while j < closing and position(high[by_high[j]]) < x:
            last[by_high[j]] = s - 1
            bounds[s] += 1
            held -= 1
            j += 1
        while i < n and position(low[by_low[i]]) == x:
            first[by_low[i]] = s
            bounds[s] += 1
            held += 1
            i += 1
        count[s] = held
    for k in range(closing, n):
        last[by_high[k]] = s
    return begin[: s + 1], count[: s + 1], bounds[: s + 1], first, last


@kernel
def lay_out(d, numbers, low, high, begin, count, first, last, starts, k):
    """Windows, lists and inner nodes of spaces and intervals."""
    n, t = len(numbers), d.pools
    for i in range(n):
        d.bounds[2 * numbers[i]], d.bounds[2 * numbers[i] + 1] = low[i], ~high[i]
    windows, spaces = make_windows(d, -1, begin, count, count[:0], starts, k, -1, 0)
    fill_lists(d, windows, starts, k, numbers, first, last, n)
    t.root[LINE] = build_tree(t, begin[1:], spaces[1:], len(begin) - 1, spaces[0])


@kernel
def listed(d, spaces, offsets):
    """The numbers of the intervals that cover each space, and one more word."""
    words, halves, owner, rank, window = d.pools.words, d.pools.halves, d.owner, d.rank, d.window
    found = np.empty(offsets[-1] + 1, np.int32)  # one more: what does not cover is written there, and written over
    at, one, four, ranks = np.uint64(0), np.uint64(1), np.uint64(4), np.uint64(0xFFFF)
    count, rows = np.uint64(len(spaces)), np.empty(TOGETHER, np.uint64)
    for first in range(np.uint64(0), count, np.uint64(TOGETHER)):
        last = min(first + np.uint64(TOGETHER), count)
        for p in range(first, last):
            row = np.uint64(owner[np.uint64(spaces[p]) >> four]) * four
            rows[p - first] = row
            prefetch(window, row)
        for p in range(first, last):
            o = np.uint64(upper(window[rows[p - first] + np.uint64(LISTS)])) << one
            prefetch(words, o)
            prefetch(words, o + np.uint64(8))
        for p in range(first, last):
            row, r = rows[p - first], np.uint64(rank[np.uint64(spaces[p])])
            o = np.uint64(upper(window[row + np.uint64(LISTS)])) << one
            sizes = window[row + np.uint64(SIZES)]
            if lower(sizes):
                through = np.uint64(lower(sizes))
                begin = ((o + np.uint64(room_of(upper(sizes), lower(sizes)))) << one) - through
                for i in range(through):
                    found[at + np.uint64(i)] = halves[begin + np.uint64(i)]
                at += through
            begin, stop = o, o + np.uint64(upper(sizes))
            if upper(sizes) > FEW:
                several = window[row + np.uint64(RUN)] & 0x3_FFFF
                at, begin = listed_in_order(words, o, upper(sizes), several, np.int64(r), found, at)
            for i in range(begin, stop):
                word = np.uint64(words[i])
                found[at] = np.int64(word >> np.uint64(32))
                at += np.uint64(r - (word >> np.uint64(16) & ranks) <= word & ranks)  # below the first it is huge
    return found


@kernel
def listed_in_order(words, o, ends, spaces, rank, found, at):
    """Of a window's ends, which are in order, those from its beginning on and those up to its end that cover a rank;
    where the next number goes, and where the other ends begin.
    """
    begin = np.int64(o)
    for i in range(o, o + np.uint64(up_to(words, begin, ends, spaces, spaces - 1 - rank))):
        found[at] = words[i] >> 32
        at += np.uint64(1)
    first = o + np.uint64(up_to(words, begin, ends, spaces, spaces))
    for i in range(first, o + np.uint64(up_to(words, begin, ends, spaces, spaces + rank))):
        found[at] = words[i] >> 32
        at += np.uint64(1)
    return at, o + np.uint64(up_to(words, begin, ends, spaces, 2 * spaces - 1))
