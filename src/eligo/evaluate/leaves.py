"""Satisfied conjunctions grouped by rule, without sorting: what all evaluators over labels begin with.

Where few conjunctions are satisfied, each looks up its own labels:

    conjunction c    direct[direct_offsets[c] … [c+1]]     rules that it completes alone: rule << 1, + 1 where it is the
                                                            rule's only leaf, so that nothing else has to be asked
                     label[label_offsets[c] … [c+1]]       rule << 6 | leaf, for rules of at most 63 leaves
                     wide, wide_rule[wide_offsets[c] …]    leaf and rule, for larger rules; leaves as numbered below
    rule n           leaves leaf_start[n] … leaf_start[n+1], those that do not complete it alone, in the order that the
                     evaluator wants; leaf_conjunction is what stands there. `size[n]` counts all leaves

    while one event is evaluated:
        mask[n]      a bit for each satisfied leaf of rule n; DONE: complete; MARKED: a large rule, see `marks`
        touched      rules whose mask is not 0
        marks[l]     whether leaf l of a large rule is satisfied
        truth        a bit for each conjunction

Invariant: between events every mask, mark and truth is 0. A satisfied label costs one read in order and one access to a
word of its rule; leaves come out of the mask in their order, so nothing is sorted.

Where many are satisfied, nothing is grouped: only `truth` is set, which fits the first-level cache, and all rules are
gone through in their order, leaf by leaf. One access in order to every leaf is cheaper than one at random to every
seventh.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numba import types
from numba.experimental import structref

from eligo.compile.compiled import I32, I64, Arrays, Compiled
from eligo.compile.labels import label_intervals
from eligo.evaluate.base import EvaluatorScratch
from eligo.jit import define_handle, inline, kernel, trailing_zeros

NARROW = 63  # leaves of a rule whose mask tells all
DONE = np.uint64(1 << 63)
MARKED = np.uint64(1)  # of a rule of more leaves
DENSE = 7  # more than every seventh conjunction satisfied: go through all rules
EVERYTHING = -1


@dataclass(frozen=True)
class Leaves:
    """The arrays drawn above."""

    direct_offsets: I32
    direct: I32
    label_offsets: I32
    label: I64
    wide_offsets: I32
    wide: I32
    wide_rule: I32
    leaf_start: I32
    leaf_conjunction: I32
    size: I32

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def handle(self) -> object:
        return make_leaves_handle(*self.arrays().values())

    @property
    def rules(self) -> int:
        return len(self.size)


LEAVES = tuple(field.name for field in fields(Leaves))


def build_leaves(compiled: Compiled, by_begin: bool) -> tuple[Leaves, I32, I32, I32]:
    """All leaves, ordered by where their intervals begin or else as they stand; each one's token, begin and end."""
    begin, end, span = label_intervals(compiled.tree, compiled.tree_offsets)
    direct_offsets, direct, label_offsets, label, wide_offsets, wide, wide_rule, leaf_start, token = number_leaves(
        compiled.tree, compiled.tree_offsets, compiled.conjunctions, begin, end, span, by_begin
    )
    if compiled.rules < 1 << 26:
        label = label.astype(np.uint32)
    conjunction = compiled.tree[token]
    leaves = Leaves(
        direct_offsets, direct, label_offsets, label, wide_offsets, wide, wide_rule, leaf_start, conjunction, span
    )
    return leaves, token, begin[token], end[token]


@kernel
def number_leaves(tree, offsets, conjunctions, begin, end, span, by_begin):  # type: ignore[no-untyped-def]
    """The arrays of `Leaves`, and the token of each leaf: one walk to count, one to put everything in its place."""
    rules = len(offsets) - 1
    direct_offsets, label_offsets = np.zeros(conjunctions + 1, np.int32), np.zeros(conjunctions + 1, np.int32)
    wide_offsets, leaf_start = np.zeros(conjunctions + 1, np.int32), np.zeros(rules + 1, np.int32)
    last = np.full(conjunctions, -1, np.int32)  # the last rule that a conjunction completes: a rule may name it twice
    widest = 0
    for r in range(rules):
        widest = max(widest, span[r])
        others = 0
        for t in range(offsets[r], offsets[r + 1]):
            others += tree[t] >= 0 and not (begin[t] == 1 and end[t] == span[r])
        leaf_start[r + 1] = leaf_start[r] + others
        for t in range(offsets[r], offsets[r + 1]):
            c = tree[t]
            if c < 0:
                continue
            if begin[t] == 1 and end[t] == span[r]:
                if last[c] != r:
                    last[c] = r
                    direct_offsets[c + 1] += 1
            elif span[r] <= NARROW:
                label_offsets[c + 1] += 1
            else:
                wide_offsets[c + 1] += 1
    for c in range(conjunctions):
        direct_offsets[c + 1] += direct_offsets[c]
        label_offsets[c + 1] += label_offsets[c]
        wide_offsets[c + 1] += wide_offsets[c]
    direct, label = np.empty(direct_offsets[-1], np.int32), np.empty(label_offsets[-1], np.int64)
    wide, wide_rule = np.empty(wide_offsets[-1], np.int32), np.empty(wide_offsets[-1], np.int32)
    token = np.empty(leaf_start[-1], np.int32)
    next_direct, next_label = direct_offsets[:-1].copy(), label_offsets[:-1].copy()
    next_wide = wide_offsets[:-1].copy()
    for c in range(conjunctions):
        last[c] = -1
    starts = np.zeros(widest + 2, np.int32)  # counting sort of a rule's leaves by begin
    for r in range(rules):
        narrow = span[r] <= NARROW
        if by_begin:
            for x in range(span[r] + 2):
                starts[x] = 0
            for t in range(offsets[r], offsets[r + 1]):
                if tree[t] >= 0 and not (begin[t] == 1 and end[t] == span[r]):
                    starts[begin[t] + 1] += 1
            for x in range(span[r] + 1):
                starts[x + 1] += starts[x]
        else:
            starts[0] = 0
        for t in range(offsets[r], offsets[r + 1]):
            c = tree[t]
            if c < 0:
                continue
            if begin[t] == 1 and end[t] == span[r]:
                if last[c] != r:
                    last[c] = r
                    direct[next_direct[c]] = 2 * r + (span[r] == 1)
                    next_direct[c] += 1
                continue
            at = begin[t] if by_begin else 0
            leaf = starts[at]
            starts[at] += 1
            token[leaf_start[r] + leaf] = t
            if narrow:
                label[next_label[c]] = np.int64(r) << 6 | leaf
                next_label[c] += 1
            else:
                wide[next_wide[c]] = leaf_start[r] + leaf
                wide_rule[next_wide[c]] = r
                next_wide[c] += 1
    return (
        direct_offsets, direct, label_offsets, label, wide_offsets, wide, wide_rule, leaf_start, token,
    )  # fmt: skip


class GroupScratch(EvaluatorScratch):
    """Masks, marks and lists for one evaluation at a time."""

    def __init__(self, leaves: Leaves) -> None:
        super().__init__(leaves.rules)
        self.counts = np.zeros(1, np.int64)
        self.group = make_group(
            np.zeros(leaves.rules, np.uint64),
            np.zeros(int(leaves.leaf_start[-1]) if len(leaves.wide) else 0, np.uint8),
            np.zeros(leaves.rules, np.int32),
            np.zeros((leaves.rules + 63) // 64, np.uint64),
            np.zeros(len(leaves.direct_offsets) // 64 + 1, np.uint64),
            self.matched,
            self.counts,
        )


@structref.register
class LeavesHandleType(types.StructRef):
    """The arrays of `Leaves` as one argument of kernels."""


class LeavesHandle(structref.StructRefProxy):
    pass


define_handle(LeavesHandle, LeavesHandleType, LEAVES)


@structref.register
class GroupType(types.StructRef):
    """The memory of one evaluation as one argument of kernels."""


class Group(structref.StructRefProxy):
    pass


define_handle(Group, GroupType, ("mask", "marks", "touched", "bits", "truth", "matched", "counts"))


@kernel
def make_leaves_handle(  # type: ignore[no-untyped-def]
    direct_offsets, direct, label_offsets, label, wide_offsets, wide, wide_rule, leaf_start, leaf_conjunction, size
):
    return LeavesHandle(
        direct_offsets, direct, label_offsets, label, wide_offsets, wide, wide_rule, leaf_start, leaf_conjunction, size
    )


@kernel
def make_group(mask, marks, touched, bits, truth, matched, counts):  # type: ignore[no-untyped-def]
    return Group(mask, marks, touched, bits, truth, matched, counts)


@inline
def group_leaves(leaves, found, first, stop, g, start):  # type: ignore[no-untyped-def]
    """Put found[first:stop] by rule into masks and marks; how many rules are touched, or EVERYTHING: `truth` is set.

    Rules whose only leaf is satisfied go straight to `matched`, from `start` on; counts[0] is where they end. Those
    that a conjunction completes beside others have a mask either way.
    """
    # Arrays are taken out of their handles before the loops: reading a handle's field counts a reference each time.
    mask, marks, touched, matched = g.mask, g.marks, g.touched, g.matched
    direct_offsets, direct, label_offsets, label = (
        leaves.direct_offsets, leaves.direct, leaves.label_offsets, leaves.label,
    )  # fmt: skip
    n = 0
    k = start
    dense = (stop - first) * DENSE > len(direct_offsets) and len(leaves.leaf_conjunction) > 0
    unlabelled = dense or len(label) == 0  # then the offsets of labels need not be fetched from memory
    if dense:
        truth = g.truth
        for i in range(first, stop):
            truth[found[i] >> 6] |= np.uint64(1) << np.uint64(found[i] & 63)
    for i in range(first, stop):
        c = found[i]
        for d in range(direct_offsets[c], direct_offsets[c + 1]):
            rule = direct[d] >> 1
            if direct[d] & 1:
                matched[k] = rule
                k += 1
                continue
            if mask[rule] == 0:
                touched[n] = rule
                n += 1
            mask[rule] |= DONE
        if unlabelled:
            continue
        for d in range(label_offsets[c], label_offsets[c + 1]):
            rule = label[d] >> 6
            before = mask[rule]
            if before == 0:
                touched[n] = rule
                n += 1
            mask[rule] = before | np.uint64(1) << np.uint64(label[d] & 63)
    if len(leaves.wide) and not dense:
        wide_offsets, wide, wide_rule = leaves.wide_offsets, leaves.wide, leaves.wide_rule
        for i in range(first, stop):
            c = found[i]
            for d in range(wide_offsets[c], wide_offsets[c + 1]):
                rule = wide_rule[d]
                if mask[rule] == 0:
                    touched[n] = rule
                    n += 1
                mask[rule] |= MARKED
                marks[wide[d]] = 1
    g.counts[0] = k
    return EVERYTHING if dense else n


@kernel
def group_one(leaves, found, count, g):  # type: ignore[no-untyped-def]
    return group_leaves(leaves, found, 0, count, g, 0)


@inline
def finish(g, start, straight, k, allowed):  # type: ignore[no-untyped-def]
    """Leave out what is not allowed of matched[start:straight], which nobody asked about yet, and put all in order."""
    matched = g.matched
    if len(allowed):
        kept = start
        for i in range(start, k):
            if i >= straight or allowed[matched[i]]:
                matched[kept] = matched[i]
                kept += 1
        k = kept
    in_order(matched, start, k, g.bits)
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
