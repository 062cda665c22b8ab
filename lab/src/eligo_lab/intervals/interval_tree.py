"""Interval tree: each interval at the highest node whose centre it holds, in two lists (Edelsbrunner, McCreight).

               centre                     node k of a heap (heap.py): its centre is tree[k]; centres are the lows
          [───────|──]        by low      edge 2k      taken by points below the centre: the node's intervals by low,
              [───|───────]               ascending;  those whose low is not above the point hold it
                [─|────]      by high     edge 2k + 1  taken by points from the centre on: by high, descending; those
                                          whose high is not below the point hold it

    edge e    its list is start[e] … start[e+1] - 1;  head[e]: its first bound, or the largest integer where it is empty
    entry i   bound[i]: a low, or the complement ~high of a high;  number[i]: the interval

~ turns the order round, so that the lists of both sides ascend: on an odd edge the point itself is turned, and an entry
holds it when its bound is not above. Invariant: an interval stands once in the list of each edge of one node, and this
node is on the way of every point in it. The leaf where a point ends names all edges of its way (heap.py), so that their
heads are looked at without waiting for one another; most say that nothing on that edge holds the point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eligo.compile.compiled import I32, I64
from eligo.jit import inline, kernel, trailing_zeros
from eligo_lab.intervals.heap import LARGEST, descend, different, heap_of, height_of

ONE = np.uint64(1)
_ROOM = 8  # numbers for a point, at first


@dataclass(frozen=True)
class IntervalTree:
    """Intervals by a centre that they hold; see the top of this file."""

    tree: I64
    head: I64
    start: I32
    bound: I64
    number: I32

    @classmethod
    def build(cls, low: I64, high: I64) -> IntervalTree:
        """The tree of the closed intervals [low[i], high[i]]."""
        low, high = np.ascontiguousarray(low, np.int64), np.ascontiguousarray(high, np.int64)
        by_low = np.argsort(low)
        by_low = by_low[low[by_low] <= high[by_low]]
        by_high = by_low[np.argsort(~high[by_low])]
        tree = heap_of(different(low[by_low]))
        node = np.zeros(len(low), np.int64)
        node[by_low] = highest(tree, descend(tree, low[by_low]), descend(tree, high[by_low]))
        return cls(tree, *lists(len(tree), node, low, high, by_low, by_high))

    def locate(self, points: I64) -> I64:
        """The last edge that each point takes."""
        return descend(self.tree, points)  # type: ignore[no-any-return]

    def count(self, points: I64) -> I64:
        """How many intervals hold each point."""
        return counted(self.head, self.start, self.bound, points, descend(self.tree, points))  # type: ignore[no-any-return]

    def matches(self, points: I64) -> tuple[I64, I32]:
        """Offsets, and the numbers of the intervals that hold each point."""
        leaf = descend(self.tree, points)
        return self._listed(points, leaf)

    def _listed(self, points: I64, leaf: I64) -> tuple[I64, I32]:
        """Into what is likely to be enough; if it is not, answers are long, and to count the rest costs little."""
        offsets, found = np.zeros(len(leaf) + 1, np.int64), np.empty(_ROOM * len(leaf), np.int32)
        arrays = (self.head, self.start, self.bound, self.number, points, leaf)
        done = listed(*arrays, 0, len(found), offsets, found)
        if done < len(leaf):
            rest = counted(self.head, self.start, self.bound, points[done:], leaf[done:])
            more = np.empty(offsets[done] + rest.sum(), np.int32)
            more[: offsets[done]] = found[: offsets[done]]
            found = more
            listed(*arrays, done, len(found), offsets, found)
        return offsets, found[: offsets[-1]]

    def bytes(self) -> int:
        """Of all arrays."""
        return sum(array.nbytes for array in (self.tree, self.head, self.start, self.bound, self.number))


@kernel
def highest(tree, first, last):
    """The node of each interval whose ends come to these leaves: of the centres between them the highest.

    Centres are numbered from 1 in order; the higher a node, the more zeros its number ends with. Leaf 2^height + i is
    behind centre i.
    """
    leaves, height = len(tree), height_of(tree)
    node = np.empty(len(first), np.int64)
    for i in range(len(first)):
        a, b = first[i] - leaves, last[i] - leaves  # the interval holds the centres a … b, and a is its low
        level = 0
        while (a - 1) >> level != b >> level:
            level += 1
        level -= 1  # the highest bit by which a-1 and b differ
        node[i] = (1 << (height - 1 - level)) + (b >> (level + 1))
    return node


@kernel
def lists(leaves, node, low, high, by_low, by_high):
    """Heads, starts, bounds and numbers of all edges."""
    edges = 2 * leaves
    start = np.zeros(edges + 1, np.int32)
    for n in by_low:
        start[2 * node[n] + 1] += 1
        start[2 * node[n] + 2] += 1
    for e in range(edges):
        start[e + 1] += start[e]
    filled = start.copy()
    bound = np.empty(2 * len(by_low), np.int64)
    number = np.empty(2 * len(by_low), np.int32)
    for n in by_low:
        at = filled[2 * node[n]]
        bound[at], number[at] = low[n], n
        filled[2 * node[n]] += 1
    for n in by_high:
        at = filled[2 * node[n] + 1]
        bound[at], number[at] = ~high[n], n
        filled[2 * node[n] + 1] += 1
    head = np.full(edges, LARGEST, np.int64)
    for e in range(edges):
        if start[e] < start[e + 1]:
            head[e] = bound[start[e]]
    return head, start, bound, number


@inline
def turned(x, edge):
    """The point as the bounds of an edge are written: itself, or its complement on an odd edge."""
    return x ^ -np.int64(edge & ONE)


@inline
def giving(head, height, x, leaf):
    """A bit for each edge of the way to a leaf, the last edge first: set where the first of its list holds the point.

    No branch: which edges give something cannot be guessed, and a wrong guess would cost more than looking at them all.
    """
    bits = np.uint64(0)
    for up in range(height):
        edge = leaf >> np.uint64(up)
        bits |= np.uint64(head[edge] <= turned(x, edge)) << np.uint64(up)
    return bits


@inline
def end_of(bound, first, stop, key):
    """Up to where the entries of an ascending list are not above the key.

    Steps that double, then halves: it costs the logarithm of what is found.
    """
    at, step = first, ONE
    while at + step <= stop and bound[at + step - ONE] <= key:
        at += step
        step <<= ONE
    stop = min(stop, at + step)
    while at < stop:
        middle = (at + stop) >> ONE
        if bound[middle] <= key:
            at = middle + ONE
        else:
            stop = middle
    return at


@kernel
def counted(head, start, bound, points, leaf):
    height = height_of(head) - 1
    count = np.empty(len(leaf), np.int64)
    for p in range(len(leaf)):
        last, x, held = np.uint64(leaf[p]), points[p], np.uint64(0)
        bits = giving(head, height, x, last)
        while bits:
            edge = last >> trailing_zeros(bits)
            bits &= bits - ONE
            first = np.uint64(start[edge])
            held += end_of(bound, first, np.uint64(start[edge + ONE]), turned(x, edge)) - first
        count[p] = held
    return count


@kernel
def listed(head, start, bound, number, points, leaf, done, room, offsets, found):
    """Numbers for the points from `done` on, as long as there is room; the first point for which there was none."""
    height = height_of(head) - 1
    room = np.uint64(room)
    at = np.uint64(offsets[done])
    for p in range(done, len(leaf)):
        last, x = np.uint64(leaf[p]), points[p]
        bits = giving(head, height, x, last)
        while bits:
            edge = last >> trailing_zeros(bits)
            bits &= bits - ONE
            first = np.uint64(start[edge])
            stop = end_of(bound, first, np.uint64(start[edge + ONE]), turned(x, edge))
            if at + stop - first > room:
                return p
            for i in range(first, stop):
                found[at] = number[i]
                at += ONE
        offsets[p + 1] = at
    return len(leaf)
