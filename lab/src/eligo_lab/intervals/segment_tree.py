"""Segment tree: each interval in the lists of the few nodes that it covers wholly, as high up as can be (Bentley).

    values       ···|······|···|·········|·····       cut wherever an interval begins, and behind each end
    leaves        8   9     10     11       12 …       the leaves of a heap (heap.py), whose keys are the cuts
    interval          [─────────────]                 covers leaves 9 … 11: it is in the lists of 9 and of 5, that
                                                       being all of 10 and 11

    leaf 2^height + i    cover[i]: the lowest node with a list among the leaf and those above it; 0 where there is none
    node j (with a list) record[3j]: where its list starts; it ends where the next one starts
                         record[3j+1]: the next node with a list above it, or 0
                         record[3j+2]: how long the lists of j and of all above it are together
    number[…]            the lists, one behind the other

Invariant: the intervals that hold a point are those in the lists of its leaf and of the nodes above, each once. The
textbook's tree asks every node on the way; here those without a list are not there, and to count takes no way at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eligo.compile.compiled import I32, I64
from eligo.errors import LimitError
from eligo.jit import kernel
from eligo_lab.intervals.heap import LARGEST, descend, different, ends, heap_of, height_of

_MOST = 2**31 - 1  # entries of all lists: places are 32 bits
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)


@dataclass(frozen=True)
class SegmentTree:
    """Intervals by the nodes that they cover; see the top of this file."""

    tree: I64
    cover: I32
    record: I32
    number: I32

    @classmethod
    def build(cls, low: I64, high: I64) -> SegmentTree:
        """The tree of the closed intervals [low[i], high[i]]."""
        low, high = np.ascontiguousarray(low, np.int64), np.ascontiguousarray(high, np.int64)
        some = np.flatnonzero(low <= high)
        if len(some) < len(low):
            low, high = low[some], high[some]
        behind = high[high < LARGEST] + 1  # behind the largest integer there is nothing
        tree = heap_of(different(np.concatenate((low, behind))))
        first, last = descend(tree, low), descend(tree, high)
        size, entries = sizes(first, last, 2 * len(tree))
        if entries > _MOST:
            raise LimitError(
                f"a segment tree of {len(low):,} intervals has {entries:,} entries in its lists, and {_MOST:,} is the "
                "most: build several trees of fewer intervals"
            )
        cover, record, place = nodes_with_lists(size)
        number = fill(first, last, some.astype(np.int32), record, place, entries)
        return cls(tree, cover, record, number)

    def locate(self, points: I64) -> I64:
        """The leaf of each point."""
        return descend(self.tree, points)  # type: ignore[no-any-return]

    def count(self, points: I64) -> I64:
        """How many intervals hold each point."""
        return counted(self.cover, self.record, descend(self.tree, points))  # type: ignore[no-any-return]

    def matches(self, points: I64) -> tuple[I64, I32]:
        """Offsets, and the numbers of the intervals that hold each point."""
        leaf = descend(self.tree, points)
        offsets = ends(counted(self.cover, self.record, leaf))
        return offsets, listed(self.cover, self.record, self.number, leaf, offsets)

    def bytes(self) -> int:
        """Of all arrays."""
        return sum(array.nbytes for array in (self.tree, self.cover, self.record, self.number))


@kernel
def sizes(first, last, nodes):
    """How many intervals the list of each node of the heap has, and how many all have."""
    size = np.zeros(nodes, np.int32)
    entries = 0
    for i in range(len(first)):
        left, right = np.uint64(first[i]), np.uint64(last[i]) + ONE
        while left < right:
            # A left end that is a right child, or a right end that is a left one: no node above is covered wholly.
            if left & ONE:
                size[left] += 1
                entries += 1
                left += ONE
            if right & ONE:
                right -= ONE
                size[right] += 1
                entries += 1
            left >>= ONE
            right >>= ONE
    return size, entries


@kernel
def nodes_with_lists(size):
    """`cover` and `record`; and for each node of the heap, where its list is to be filled.

    Nodes are numbered from left to right, those above between those below: a way up stays in few cache lines.
    """
    nodes, leaves = len(size), len(size) // 2
    height = height_of(size)
    kept = 0
    for k in range(1, nodes):
        kept += size[k] > 0
    record = np.zeros(3 * (kept + 2), np.int32)
    name = np.zeros(nodes, np.int32)
    place = np.zeros(nodes, np.int32)
    j = start = 0
    for i in range(1, nodes):
        level = 0
        while i >> level & 1 == 0:
            level += 1
        k = (1 << (height - 1 - level)) + (i >> (level + 1))
        if size[k]:
            j += 1
            record[3 * j] = start
            name[k] = j
            place[k] = start
            start += size[k]
    record[3 * (kept + 1)] = start
    for k in range(1, nodes):
        above, j = name[k >> 1], name[k]
        if j:
            record[3 * j + 1] = above
            record[3 * j + 2] = record[3 * above + 2] + size[k]
        else:
            name[k] = above
    return name[leaves:].copy(), record, place


@kernel
def fill(first, last, numbers, record, place, entries):
    """The lists; `place` is moved on."""
    number = np.empty(entries, np.int32)
    for i in range(len(first)):
        left, right = np.uint64(first[i]), np.uint64(last[i]) + ONE
        while left < right:
            if left & ONE:
                number[place[left]] = numbers[i]
                place[left] += 1
                left += ONE
            if right & ONE:
                right -= ONE
                number[place[right]] = numbers[i]
                place[right] += 1
            left >>= ONE
            right >>= ONE
    return number


@kernel
def counted(cover, record, leaf):
    leaves = np.uint64(len(cover))
    count = np.empty(len(leaf), np.int64)
    for p in range(len(leaf)):
        node = np.uint64(cover[np.uint64(leaf[p]) - leaves])
        count[p] = record[THREE * node + TWO]
    return count


@kernel
def listed(cover, record, number, leaf, offsets):
    leaves = np.uint64(len(cover))
    found = np.empty(offsets[-1], np.int32)
    at = np.uint64(0)
    for p in range(len(leaf)):
        node = np.uint64(cover[np.uint64(leaf[p]) - leaves])
        while node:
            place = THREE * node
            for i in range(np.uint64(record[place]), np.uint64(record[place + THREE])):
                found[at] = number[i]
                at += ONE
            node = np.uint64(record[place + ONE])
    return found
