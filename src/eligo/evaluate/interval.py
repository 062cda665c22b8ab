"""`interval`: satisfied leaves must cover the rule's interval without overlap (the paper on complex expressions §4).

    leaf l    span[l] = before | end << half, in ascending order of begin = before + 1
              `half` of a span's bits: 8 if no tree has more than 255 leaves, 16 up to 65,535, else 32

A leaf that holds carries a cover of 1 … before on to one of 1 … end. MATCH (Algorithm 5) goes through a tree's leaves
in ascending order of begin. The paper's array `matched` is a word for trees of up to 63 leaves: bit x says that some
leaves cover 1 … x. A tree is complete when bit M is set, M being its leaf count.

There is no branch for a leaf: to guess whether a conjunction holds, or where a tree can be given up, goes wrong too
often. Only a tree of more leaves is given up, at the first leaf that begins behind all that is covered. Where all trees
are gone through, the results of 64 are gathered in a word before they go to their rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import F64, Arrays, Compiled
from eligo.evaluate.leaves import (
    EVERYTHING,
    LEAVES,
    GroupScratch,
    LeafEvaluator,
    Leaves,
    build_leaves,
    completing,
    finish,
)
from eligo.jit import handle, inline, trailing_zeros

NARROW = 63  # leaves of a tree whose covers fit a word
ONE = np.uint64(1)


class Interval(LeafEvaluator):
    """Evaluator by covers of the rule's interval; see the top of this file."""

    name = "interval"
    summary = "satisfied leaves must cover the rule's interval without overlap (interval IDs)"

    def __init__(self, leaves: Leaves, span: NDArray[Any], rules: int) -> None:
        super().__init__(leaves, rules)
        self.span = span
        self.handle = make_interval(self.group_handle, span, 4 * span.itemsize)

    @classmethod
    def build(cls, compiled: Compiled, likelihood: F64 | None = None) -> Interval:
        leaves, _, begin, end = build_leaves(compiled, by_begin=True)
        kind: Any
        kind = np.uint16 if leaves.widest < 1 << 8 else np.uint32 if leaves.widest < 1 << 16 else np.uint64
        half = kind(4 * np.dtype(kind).itemsize)
        return cls(leaves, (begin - 1).astype(kind) | end.astype(kind) << half, compiled.rules)

    @classmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Interval:
        return cls(Leaves(*(arrays[name] for name in LEAVES)), arrays["span"], compiled.rules)

    def arrays(self) -> Arrays:
        return {**self.leaves.arrays(), "span": self.span}

    def scratch(self) -> GroupScratch:
        # For trees of many leaves: own[x] says that some leaves cover 1 … x.
        return GroupScratch(self.leaves, self.rules, np.zeros(self.leaves.widest + 1, np.uint8))


# The labels as one argument of kernels.
make_interval = handle("IntervalHandle", ("leaves", "span", "half"))


@inline
def covered(cover, before, end, holds):
    """Returns what is covered with one more leaf: lines 5 and 6 of Algorithm 5."""
    return cover | (cover >> before & holds & ONE) << end


@inline
def narrow_trees(leaf_conjunction, span, half, truth, first, size, count):
    """Returns a bit for each of up to 64 adjacent trees of `size` leaves, from leaf `first` on: is it complete?"""
    low = (ONE << half) - ONE
    complete = np.uint64(0)
    leaf = np.uint64(first)
    for i in range(count):
        cover = ONE
        for _ in range(size):
            c, label = np.uint64(leaf_conjunction[leaf]), np.uint64(span[leaf])
            holds = truth[c >> np.uint64(6)] >> (c & np.uint64(63))
            cover = covered(cover, label & low, label >> half, holds)
            leaf += ONE
        complete |= (cover >> np.uint64(size) & ONE) << np.uint64(i)
    return complete


@inline
def wide_tree(leaf_conjunction, span, half, truth, reached, first, stop):
    """Returns 1 if the tree of the leaves from `first` to below `stop` is complete, however many they are, else 0."""
    low = (ONE << half) - ONE
    reached[: stop - first + 1] = 0
    reached[0] = 1
    furthest = np.uint64(0)
    for leaf in range(first, stop):
        before, end = np.uint64(span[leaf]) & low, np.uint64(span[leaf]) >> half
        if before > furthest:
            break
        c = np.uint64(leaf_conjunction[leaf])
        if truth[c >> np.uint64(6)] >> (c & np.uint64(63)) & ONE and reached[before]:
            reached[end] = 1
            furthest = max(furthest, end)
    return np.uint64(reached[stop - first])


@inline
def complete_touched(labels, n, g, reached):
    """Appends the complete ones of the n touched trees to `matched`. Returns where they end."""
    truth, touched, bits, matched = g.truth, g.touched, g.bits, g.matched
    rule, leaf_start, leaf_conjunction = labels.leaves.rule, labels.leaves.leaf_start, labels.leaves.leaf_conjunction
    span, half = labels.span, np.uint64(labels.half)
    low = (ONE << half) - ONE
    k = g.counts[0]
    for i in range(n):
        first, stop = leaf_start[touched[i]], leaf_start[touched[i] + 1]
        if stop - first <= NARROW:
            cover = ONE
            for leaf in range(first, stop):
                c, label = np.uint64(leaf_conjunction[leaf]), np.uint64(span[leaf])
                holds = truth[c >> np.uint64(6)] >> (c & np.uint64(63))
                cover = covered(cover, label & low, label >> half, holds)
            complete = cover >> np.uint64(stop - first) & ONE
        else:
            complete = wide_tree(leaf_conjunction, span, half, truth, reached, first, stop)
        r = np.uint64(rule[touched[i]])
        matched[k] = r
        k += np.int64(complete & ~(bits[r >> np.uint64(6)] >> (r & np.uint64(63))))  # unless it was known before
    return k


@inline
def complete_everything(labels, g, reached):
    """Goes through all trees and sets the bits of the complete ones."""
    truth, bits = g.truth, g.bits
    rule, leaf_start, conjunction = labels.leaves.rule, labels.leaves.leaf_start, labels.leaves.leaf_conjunction
    stretch, span, half = labels.leaves.stretch, labels.span, np.uint64(labels.half)
    for s in range(len(stretch) - 1):
        size = leaf_start[stretch[s] + 1] - leaf_start[stretch[s]]
        for tree in range(stretch[s], stretch[s + 1], 64):
            count = min(64, stretch[s + 1] - tree)
            first = leaf_start[tree]
            # Written out for small trees: with a constant size the compiled loop takes a third less time.
            if size == 2:
                complete = narrow_trees(conjunction, span, half, truth, first, 2, count)
            elif size == 3:
                complete = narrow_trees(conjunction, span, half, truth, first, 3, count)
            elif size == 4:
                complete = narrow_trees(conjunction, span, half, truth, first, 4, count)
            elif size == 5:
                complete = narrow_trees(conjunction, span, half, truth, first, 5, count)
            elif size == 6:
                complete = narrow_trees(conjunction, span, half, truth, first, 6, count)
            elif size <= NARROW:
                complete = narrow_trees(conjunction, span, half, truth, first, size, count)
            else:
                complete = np.uint64(0)
                for i in range(count):
                    start = first + i * size
                    one = wide_tree(conjunction, span, half, truth, reached, start, start + size)
                    complete |= one << np.uint64(i)
            while complete:
                r = np.uint64(rule[tree + np.int64(trailing_zeros(complete))])
                complete &= complete - ONE
                bits[r >> np.uint64(6)] |= ONE << (r & np.uint64(63))


@inline
def complete_intervals(labels, n, found, first, stop, allowed, g, reached, start):
    """Writes the complete ones of the n touched trees, and the rules that grouping found, to `matched` from `start` on,
    ascending. Returns where they end.
    """
    k = g.counts[0]
    if n == EVERYTHING:
        complete_everything(labels, g, reached)
    elif n > 0:
        k = complete_touched(labels, n, g, reached)
    return finish(n, found, first, stop, g, start, k, allowed)


Interval.complete_one, Interval.complete_batch = map(staticmethod, completing(complete_intervals))
