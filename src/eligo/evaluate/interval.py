"""`interval`: satisfied leaves must cover the rule's interval without overlap (complex-boolean-expressions.txt §4).

    leaf l    span[l] = begin | end << half, in ascending order of begin; `half` of a span's bits: 8 if no rule has more
              than 63 leaves, else 16, and 32 if one has more than 65,535

A conjunction that covers the whole interval completes its rule at once (leaves.py). For the others MATCH (Algorithm 5)
goes through the satisfied leaves in ascending order of begin, which is the order of the bits in the rule's mask. The
paper's array `matched` is a word for rules of up to 63 leaves: bit x says that some leaves cover 1 … x. A rule is given
up at the first leaf that begins behind all that is covered, and done when bit M is set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref
from numpy.typing import NDArray

from eligo.compile.compiled import F64, I32, I64, U8, Arrays, Compiled
from eligo.evaluate.base import Evaluator
from eligo.evaluate.leaves import (
    DONE,
    EVERYTHING,
    LEAVES,
    NARROW,
    GroupScratch,
    Leaves,
    build_leaves,
    finish,
    group_leaves,
    group_one,
)
from eligo.evaluate.registry import register
from eligo.jit import define_handle, inline, kernel, trailing_zeros


class IntervalScratch(GroupScratch):
    """For large rules, `reached[x]` is the number of the walk in which a cover of 1 … x was found."""

    def __init__(self, leaves: Leaves) -> None:
        super().__init__(leaves)
        widest = int(leaves.size.max(initial=0))
        self.reached = np.zeros(widest + 2, np.int64)
        self.walk = np.zeros(1, np.int64)


@register
class Interval(Evaluator):
    """Covers of the rule's interval; see the top of this file."""

    name = "interval"
    summary = "satisfied leaves must cover the rule's interval without overlap (interval IDs)"

    def __init__(self, leaves: Leaves, span: NDArray[Any]) -> None:
        self.leaves, self.span = leaves, span
        self.group_handle = leaves.handle()
        self.handle = make_interval(self.group_handle, leaves.leaf_start, leaves.size, span, 4 * span.itemsize)

    @classmethod
    def build(cls, compiled: Compiled, likelihood: F64 | None = None) -> Interval:
        leaves, _, begin, end = build_leaves(compiled, by_begin=True)
        widest = int(leaves.size.max(initial=0))
        kind: Any
        kind, half = (np.uint16, 8) if widest <= NARROW else (np.uint32, 16) if widest < 1 << 16 else (np.uint64, 32)
        return cls(leaves, begin.astype(kind) | end.astype(kind) << kind(half))

    @classmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Interval:
        return cls(Leaves(*(arrays[name] for name in LEAVES)), arrays["span"])

    def arrays(self) -> Arrays:
        return {**self.leaves.arrays(), "span": self.span}

    def scratch(self) -> IntervalScratch:
        return IntervalScratch(self.leaves)

    def evaluate(self, found: I32, count: int, allowed: U8, scratch: IntervalScratch) -> int:
        return interval_one(  # type: ignore[no-any-return]
            self.handle, found, count, allowed, scratch.group, scratch.reached, scratch.walk
        )

    def group(self, found: I32, count: int, scratch: IntervalScratch) -> int:
        return group_one(self.group_handle, found, count, scratch.group)  # type: ignore[no-any-return]

    def complete(self, touched: int, allowed: U8, scratch: IntervalScratch) -> int:
        return interval_complete(  # type: ignore[no-any-return]
            self.handle, touched, allowed, scratch.group, scratch.reached, scratch.walk
        )

    def evaluate_batch(
        self, found: I32, offsets: I64, events: int, allowed: U8, scratch: IntervalScratch, ends: I64
    ) -> int:
        return interval_batch(  # type: ignore[no-any-return]
            self.handle, found, offsets, events, allowed, scratch.group, scratch.reached, scratch.walk, ends
        )


@structref.register
class IntervalHandleType(types.StructRef):
    """The labels as one argument of kernels."""


class IntervalHandle(structref.StructRefProxy):
    pass


define_handle(IntervalHandle, IntervalHandleType, ("leaves", "leaf_start", "size", "span", "half"))


@kernel
def make_interval(leaves, leaf_start, size, span, half):  # type: ignore[no-untyped-def]
    return IntervalHandle(leaves, leaf_start, size, span, half)


@inline
def complete_intervals(labels, n, allowed, g, reached, walks, start):  # type: ignore[no-untyped-def]
    """The complete ones of the n touched rules, and those grouping found, ascending into matched; where they end."""
    mask, marks, touched, matched = g.mask, g.marks, g.touched, g.matched
    leaf_start, size, span, half = labels.leaf_start, labels.size, labels.span, np.uint64(labels.half)
    low = (np.uint64(1) << half) - np.uint64(1)
    all_allowed = len(allowed) == 0
    straight = g.counts[0]
    k = straight
    if n == EVERYTHING:
        k = complete_everything(labels, g, reached, walks, allowed, k)
        return k if straight == start else finish(g, start, straight, k, allowed)  # rules came in their order
    for i in range(n):
        rule = touched[i]
        left = mask[rule]
        mask[rule] = 0
        first = leaf_start[rule]
        complete = left & DONE != 0
        if size[rule] <= NARROW:
            # MATCH (Algorithm 5); `cover` is the paper's array `matched`.
            cover = np.uint64(1)
            left = np.uint64(0) if complete else left
            while left:
                label = np.uint64(span[first + np.int64(trailing_zeros(left))])
                left &= left - np.uint64(1)
                tail = cover >> ((label & low) - np.uint64(1))
                if tail == 0:
                    break
                cover |= (tail & np.uint64(1)) << (label >> half)
            complete |= (cover >> np.uint64(size[rule])) & np.uint64(1) != 0
        else:
            walks[0] += 1
            walk = walks[0]
            reached[0] = walk
            for leaf in range(first, leaf_start[rule + 1]):
                if marks[leaf]:
                    marks[leaf] = 0
                    if reached[(np.uint64(span[leaf]) & low) - np.uint64(1)] == walk:
                        reached[np.uint64(span[leaf]) >> half] = walk
            complete |= reached[size[rule]] == walk
        if complete and (all_allowed or allowed[rule]):
            matched[k] = rule
            k += 1
    return finish(g, start, straight, k, allowed)


@inline
def complete_everything(labels, g, reached, walks, allowed, k):  # type: ignore[no-untyped-def]
    """The complete ones of all rules into `matched` from k on; where they end. MATCH without a branch for a leaf."""
    mask, truth, matched, leaf_conjunction = g.mask, g.truth, g.matched, labels.leaves.leaf_conjunction
    leaf_start, size, span, half = labels.leaf_start, labels.size, labels.span, np.uint64(labels.half)
    low = (np.uint64(1) << half) - np.uint64(1)
    all_allowed = len(allowed) == 0
    one = np.uint64(1)
    for rule in range(len(size)):
        first, stop = leaf_start[rule], leaf_start[rule + 1]
        complete = mask[rule] != 0
        mask[rule] = 0
        if size[rule] <= NARROW:
            cover = np.uint64(size[rule] > 0)  # a rule without leaves is never true
            for leaf in range(first, stop):
                c, label = leaf_conjunction[leaf], np.uint64(span[leaf])
                holds = truth[c >> 6] >> np.uint64(c & 63) & (cover >> ((label & low) - one)) & one
                cover |= holds << (label >> half)
            complete |= (cover >> np.uint64(size[rule])) & one != 0
        else:
            walks[0] += 1
            walk = walks[0]
            reached[0] = walk
            for leaf in range(first, stop):
                c = leaf_conjunction[leaf]
                label = np.uint64(span[leaf])
                if truth[c >> 6] >> np.uint64(c & 63) & one and reached[(label & low) - one] == walk:
                    reached[label >> half] = walk
            complete |= reached[size[rule]] == walk
        matched[k] = rule  # no branch: half of the rules may match
        k += complete and (all_allowed or allowed[rule] != 0)
    for word in range(len(truth)):
        truth[word] = 0
    return k


@kernel
def interval_complete(labels, touched, allowed, g, reached, walks):  # type: ignore[no-untyped-def]
    return complete_intervals(labels, touched, allowed, g, reached, walks, 0)


@kernel
def interval_one(labels, found, count, allowed, g, reached, walks):  # type: ignore[no-untyped-def]
    touched = group_leaves(labels.leaves, found, 0, count, g, 0)
    return complete_intervals(labels, touched, allowed, g, reached, walks, 0)


@kernel
def interval_batch(labels, found, offsets, events, allowed, g, reached, walks, ends):  # type: ignore[no-untyped-def]
    k = 0
    ends[0] = 0
    i = 0
    while i < events and len(g.matched) - k > len(g.mask):  # one more: a rule is written before it is known
        touched = group_leaves(labels.leaves, found, offsets[i], offsets[i + 1], g, k)
        k = complete_intervals(labels, touched, allowed, g, reached, walks, k)
        i += 1
        ends[i] = k
    return i
