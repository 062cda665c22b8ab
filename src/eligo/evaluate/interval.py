"""`interval`: satisfied leaves must cover the rule's interval without overlap (complex-boolean-expressions.txt §4).

A conjunction that covers the whole interval completes its rule at once. For the others, MATCH (Algorithm 5) walks the
rule's leaves in ascending order of begin; they are stored in that order, so satisfied leaves are marked and the
rule's stretch of marks is walked: nothing is sorted.

    state[n]    0 untouched, 1 has a satisfied leaf, 2 matched        marks[l]   whether leaf l is satisfied
    reached[x]  the number of the walk in which a cover of 1 … x was found, so that nothing needs to be cleared
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.experimental import structref

from eligo.compile.compiled import I32, I64, U8, Arrays, Compiled
from eligo.compile.labels import IntervalLabels, interval_labels
from eligo.evaluate.base import Evaluator, EvaluatorScratch
from eligo.evaluate.registry import register
from eligo.jit import define_handle, inline, kernel, trailing_zeros


class _IntervalScratch(EvaluatorScratch):
    def __init__(self, labels: IntervalLabels) -> None:
        rules = len(labels.span)
        super().__init__(rules)
        self.handle = make_interval_scratch(
            np.zeros(rules, np.uint8),
            np.zeros(len(labels.begin), np.uint8),
            np.zeros(rules, np.int32),
            np.zeros(int(labels.span.max(initial=0)) + 1, np.int64),
            np.zeros(1, np.int64),
            np.zeros((rules + 63) // 64, np.uint64),
            self.matched,
        )


@register
class Interval(Evaluator):
    """Covers of the rule's interval; see the top of this file."""

    name = "interval"
    summary = "satisfied leaves must cover the rule's interval without overlap (interval IDs)"

    def __init__(self, labels: IntervalLabels) -> None:
        self.labels = labels
        self.handle = make_label_handle(*labels.arrays().values())

    @classmethod
    def build(cls, compiled: Compiled) -> Interval:
        return cls(interval_labels(compiled))

    @classmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Interval:
        return cls(IntervalLabels(**arrays))

    def arrays(self) -> Arrays:
        return self.labels.arrays()

    def scratch(self) -> _IntervalScratch:
        return _IntervalScratch(self.labels)

    def evaluate(self, found: I32, count: int, allowed: U8, scratch: _IntervalScratch) -> int:
        return interval_one(self.handle, found, count, allowed, scratch.handle)  # type: ignore[no-any-return]

    def group(self, found: I32, count: int, scratch: _IntervalScratch) -> int:
        return interval_group_one(self.handle, found, count, scratch.handle)  # type: ignore[no-any-return]

    def complete(self, touched: int, allowed: U8, scratch: _IntervalScratch) -> int:
        return interval_complete_one(self.handle, touched, allowed, scratch.handle)  # type: ignore[no-any-return]

    def evaluate_batch(
        self, found: I32, offsets: I64, events: int, allowed: U8, scratch: _IntervalScratch, ends: I64
    ) -> int:
        return interval_batch(self.handle, found, offsets, events, allowed, scratch.handle, ends)  # type: ignore[no-any-return]


_LABELS = ("direct_offsets", "direct", "leaf_offsets", "leaf", "begin", "end", "rule_leaves", "span", "leaf_rule")
_SCRATCH = ("state", "marks", "touched", "reached", "walk", "bits", "matched")


@structref.register
class LabelHandleType(types.StructRef):
    """The arrays of `IntervalLabels` as one argument of kernels."""


class LabelHandle(structref.StructRefProxy):
    pass


define_handle(LabelHandle, LabelHandleType, list(_LABELS))


@structref.register
class IntervalScratchType(types.StructRef):
    """The arrays of one evaluation at a time."""


class IntervalScratch(structref.StructRefProxy):
    pass


define_handle(IntervalScratch, IntervalScratchType, list(_SCRATCH))


@kernel
def make_label_handle(direct_offsets, direct, leaf_offsets, leaf, begin, end, rule_leaves, span, leaf_rule):  # type: ignore[no-untyped-def]
    return LabelHandle(direct_offsets, direct, leaf_offsets, leaf, begin, end, rule_leaves, span, leaf_rule)


@kernel
def make_interval_scratch(state, marks, touched, reached, walk, bits, matched):  # type: ignore[no-untyped-def]
    return IntervalScratch(state, marks, touched, reached, walk, bits, matched)


@inline
def group_leaves(labels, found, first, stop, w):  # type: ignore[no-untyped-def]
    """Mark the leaves of found[first:stop] and list their rules in `touched`; how many."""
    # Arrays are taken out of their handles before the loops: reading a handle's field counts a reference each time.
    state, marks, touched = w.state, w.marks, w.touched
    direct_offsets, direct = labels.direct_offsets, labels.direct
    leaf_offsets, leaves, leaf_rule = labels.leaf_offsets, labels.leaf, labels.leaf_rule
    n = 0
    for i in range(first, stop):
        c = found[i]
        for d in range(direct_offsets[c], direct_offsets[c + 1]):
            rule = direct[d]
            if state[rule] == 0:
                touched[n] = rule
                n += 1
            state[rule] = 2
        for d in range(leaf_offsets[c], leaf_offsets[c + 1]):
            leaf = leaves[d]
            rule = leaf_rule[leaf]
            if state[rule] == 0:
                touched[n] = rule
                n += 1
                state[rule] = 1
            marks[leaf] = 1
    return n


@inline
def complete_rules(labels, n, allowed, w, start):  # type: ignore[no-untyped-def]
    """The complete ones of the n touched rules, ascending, into matched from `start` on; where they end."""
    state, marks, touched, reached, matched = w.state, w.marks, w.touched, w.reached, w.matched
    begin, end, rule_leaves, span = labels.begin, labels.end, labels.rule_leaves, labels.span
    all_allowed = len(allowed) == 0
    k = start
    walk = w.walk[0]
    for i in range(n):
        rule = touched[i]
        # MATCH (Algorithm 5) over the marked leaves; takes the marks away.
        walk += 1
        reached[0] = walk
        for leaf in range(rule_leaves[rule], rule_leaves[rule + 1]):
            if marks[leaf]:
                marks[leaf] = 0
                if reached[begin[leaf] - 1] == walk:
                    reached[end[leaf]] = walk
        if (state[rule] == 2 or reached[span[rule]] == walk) and (all_allowed or allowed[rule]):
            matched[k] = rule
            k += 1
        state[rule] = 0
    w.walk[0] = walk
    in_order(matched, start, k, w.bits)
    return k


@inline
def in_order(matched, start, stop, bits):  # type: ignore[no-untyped-def]
    """Sort matched[start:stop], all different: few by insertion, many by a bit for each rule."""
    if stop - start <= 32:
        for i in range(start + 1, stop):
            value = matched[i]
            j = i - 1
            while j >= start and matched[j] > value:
                matched[j + 1] = matched[j]
                j -= 1
            matched[j + 1] = value
        return
    if (stop - start) * 16 < len(bits):
        matched[start:stop].sort()
        return
    for i in range(start, stop):
        bits[matched[i] >> 6] |= np.uint64(1) << np.uint64(matched[i] & 63)
    k = start
    for word in range(len(bits)):
        left = bits[word]
        bits[word] = 0
        while left:
            matched[k] = (word << 6) + trailing_zeros(left)
            k += 1
            left &= left - np.uint64(1)


@kernel
def interval_group_one(labels, found, count, w):  # type: ignore[no-untyped-def]
    return group_leaves(labels, found, 0, count, w)


@kernel
def interval_complete_one(labels, touched, allowed, w):  # type: ignore[no-untyped-def]
    return complete_rules(labels, touched, allowed, w, 0)


@kernel
def interval_one(labels, found, count, allowed, w):  # type: ignore[no-untyped-def]
    return complete_rules(labels, group_leaves(labels, found, 0, count, w), allowed, w, 0)


@kernel
def interval_batch(labels, found, offsets, events, allowed, w, ends):  # type: ignore[no-untyped-def]
    k = 0
    ends[0] = 0
    i = 0
    while i < events and len(w.matched) - k >= len(w.state):
        touched = group_leaves(labels, found, offsets[i], offsets[i + 1], w)
        k = complete_rules(labels, touched, allowed, w, k)
        i += 1
        ends[i] = k
    return i
