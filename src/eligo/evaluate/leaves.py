"""From satisfied conjunctions to the rules that may be complete: what all evaluators over labels begin with.

    conjunction c   label[label_offsets[c] … [c+1]]    number << 2 | kind, SOLE and FLAT ones first:
                        SOLE      c is all of rule `number`
                        FLAT      c completes rule `number` alone, as every leaf of that rule does
                        ALONE     c completes rule `number` alone, which is a tree
                        BEGINS    c is another leaf of tree `number`, and its interval begins at 1
                    labelled, alone                     a bit for each conjunction: has it labels? SOLE or FLAT ones?
    tree t          a rule that not every leaf completes alone; trees lie in ascending order of their leaf count
                        rule[t]                         which rule it is
                        leaf_conjunction[leaf_start[t] … [t+1]]    all its leaves, in the order that the evaluator wants
    stretch s       trees stretch[s] … stretch[s+1] have equally many leaves

    while one event is evaluated:
        truth       a bit for each conjunction
        seen        a bit for each tree, `touched` those whose bit is set
        bits        a bit for each rule that is known to be complete

Invariant: between events all bits are 0.

Every cover of a rule's interval begins at 1. So a rule none of whose satisfied leaves begins there is never looked at,
and the other leaves have no labels: those of a rule that is looked at are read from `truth`, which is small enough for
a near cache. Marking the rule for every satisfied leaf would be an access to far memory each time.

Unless they are few, conjunctions are sorted by bitmap before their labels are read, and trees before their leaves are.
Memory is then read in one direction, and as many trees after one another have equally many leaves, the processor can
predict where each one ends; a misprediction costs as much as ten leaves.

Where many conjunctions are satisfied, labels are not used, and all trees are gone through: reading every leaf is faster
than finding out which ones need not be read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, U8, Arrays, Compiled
from eligo.errors import LimitError
from eligo.evaluate.base import Evaluator, EvaluatorScratch
from eligo.evaluate.labels import label_intervals
from eligo.evaluate.leaf_order import BEGINS, FLAT, SOLE, order_leaves, order_trees, write_labels
from eligo.jit import handle, inline, kernel, named_kernel, trailing_zeros

# Measured on 100,000 rules of 1 to 4 levels, 0.1% to 30% of their conjunctions satisfied.
DENSE = 10  # more than every tenth conjunction satisfied: go through all trees
TOUCH = 10  # the same where many trees are touched: finding one costs as much as reading so many leaves
ORDERED = 100  # more than every hundredth conjunction satisfied, or tree touched: put them in order
EVERYTHING = -1


@dataclass(frozen=True)
class Leaves:
    """The arrays drawn above."""

    label_offsets: I32
    label: NDArray[np.uint32]
    labelled: NDArray[np.uint64]
    alone: NDArray[np.uint64]
    rule: I32
    leaf_start: I32
    leaf_conjunction: NDArray[np.uint32]
    stretch: I32

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def handle(self) -> object:
        return make_leaves_handle(*self.arrays().values())

    @property
    def widest(self) -> int:
        """Number of leaves of the largest tree."""
        return int(self.leaf_start[-1] - self.leaf_start[-2]) if len(self.rule) else 0


LEAVES = tuple(field.name for field in fields(Leaves))


def build_leaves(compiled: Compiled, by_begin: bool) -> tuple[Leaves, I32, I32, I32]:
    """Returns the leaves of trees, ordered by where their intervals begin or else as they stand, and their tokens,
    begins and ends. Raises a `LimitError` if there are too many.
    """
    if compiled.rules >= 1 << 30 or len(compiled.tree) >= 1 << 31:
        raise LimitError(
            f"{compiled.rules:,} rules of {len(compiled.tree):,} leaves and nodes in a segment: an evaluator has room "
            "for 2^30 of 2^31; split the rules over several matchers"
        )
    tree, offsets = compiled.tree, compiled.tree_offsets
    begin, end, span = label_intervals(tree, offsets)
    rule, leaf_start, stretch = order_trees(tree, offsets, begin, end, span)
    token = order_leaves(tree, offsets, begin, rule, leaf_start, by_begin)
    label_offsets, label, labelled, alone = write_labels(tree, offsets, compiled.conjunctions, begin, end, span, rule)
    conjunction = tree[token].astype(np.uint32)
    leaves = Leaves(label_offsets, label, labelled, alone, rule, leaf_start, conjunction, stretch)
    return leaves, token, begin[token], end[token]


class GroupScratch(EvaluatorScratch):
    """Bits and lists for one evaluation at a time, and `own`, an array that the evaluator needs besides."""

    def __init__(self, leaves: Leaves, rules: int, own: NDArray[Any]) -> None:
        super().__init__(rules)
        self.own = own
        self.satisfied: tuple[I32, int] = np.zeros(0, np.int32), 0  # what was grouped last
        conjunctions, trees = len(leaves.label_offsets) - 1, len(leaves.rule)
        self.group = make_group(
            np.zeros(len(leaves.labelled), np.uint64),
            np.zeros(
                conjunctions // DENSE if trees else conjunctions, np.int32
            ),  # with more, all trees are gone through
            np.zeros(trees // 64 + 1, np.uint64),
            np.zeros(trees + 1, np.int32),  # one more: a tree is written before it is known to be new
            np.zeros((rules + 63) // 64, np.uint64),
            self.matched,
            np.zeros(1, np.int64),
        )


class LeafEvaluator(Evaluator):
    """Base of evaluators over labels. `completing` makes its two kernels; its `handle` begins with `leaves`."""

    complete_one: ClassVar[Any]
    complete_batch: ClassVar[Any]
    handle: Any

    def __init__(self, leaves: Leaves, rules: int) -> None:
        self.leaves, self.rules = leaves, rules
        self.group_handle = leaves.handle()

    def group(self, found: I32, count: int, scratch: GroupScratch) -> int:
        scratch.satisfied = found, count
        return group_one(self.group_handle, found, count, scratch.group)  # type: ignore[no-any-return]

    def complete(self, touched: int, allowed: U8, scratch: GroupScratch) -> int:
        return self.complete_one(  # type: ignore[no-any-return]
            self.handle, touched, *scratch.satisfied, allowed, scratch.group, scratch.own
        )

    def evaluate_batch(
        self, found: I32, offsets: I64, events: int, allowed: U8, scratch: GroupScratch, ends: I64
    ) -> int:
        args = self.handle, found, offsets, events, allowed, scratch.group, scratch.own, ends
        return (scratch.enter or scratch.bind(self.complete_batch, args))(*args)  # type: ignore[no-any-return]


def completing(complete: Any) -> tuple[Any, Any]:
    """Returns the kernels that complete the trees of one event, and of many, given a function for one.

    complete(labels, touched, found, first, stop, allowed, g, own, start) writes the complete ones of the touched trees,
    and the rules that grouping found, to g.matched from `start` on, ascending, and returns where they end.
    """

    def complete_one(labels, touched, found, count, allowed, g, own):
        return complete(labels, touched, found, 0, count, allowed, g, own, 0)

    def complete_batch(labels, found, offsets, events, allowed, g, own, ends):
        k = 0
        ends[0] = 0
        i = 0
        while i < events and len(g.matched) - k > 64 * len(g.bits):  # not >=: a rule is written before it is known
            first, stop = offsets[i], offsets[i + 1]
            touched = group_leaves(labels.leaves, found, first, stop, g, k)
            k = complete(labels, touched, found, first, stop, allowed, g, own, k)
            i += 1
            ends[i] = k
        return i

    return named_kernel(complete_one, complete), named_kernel(complete_batch, complete)


# The arrays of `Leaves` as one argument of kernels.
make_leaves_handle = handle("LeavesHandle", LEAVES)


# The memory of one evaluation as one argument of kernels. `ordered` is for conjunctions in their order; counts[0] is
# where the rules end that grouping put into `matched`.
make_group = handle("Group", ("truth", "ordered", "seen", "touched", "bits", "matched", "counts"))


@inline
def group_leaves(leaves, found, first, stop, g, start):
    """Finds the trees that found[first:stop] touches. Returns their number, or EVERYTHING; unless it is 0, sets
    `truth`.

    Rules that a conjunction completes alone are found on the way. With EVERYTHING those that are no trees are in
    `bits`; otherwise all are in `matched` from `start` on, and in `bits` if another conjunction may complete them too.
    """
    conjunctions, trees = len(leaves.label_offsets) - 1, len(leaves.rule)
    truth, ordered = g.truth, g.ordered
    dense = (stop - first) * DENSE > conjunctions and trees > 0
    many = dense or (stop - first) * ORDERED > conjunctions
    if many:
        set_truth(truth, found, first, stop)
    touched = EVERYTHING
    if many and not dense:
        touched = touch_trees(leaves, ordered, 0, put_in_order(truth, leaves.labelled, ordered), g, start)
    elif not dense:
        touched = touch_trees(leaves, found, first, stop, g, start)
    if many and touched == 0:
        clear_truth(truth, found, first, stop)
    elif touched != 0 and not many:
        set_truth(truth, found, first, stop)
    if touched == EVERYTHING:
        complete_flat(leaves, g)
    return touched


@inline
def set_truth(truth, found, first, stop):
    for i in range(first, stop):
        c = np.uint64(found[i])
        truth[c >> np.uint64(6)] |= np.uint64(1) << (c & np.uint64(63))


@inline
def clear_truth(truth, found, first, stop):
    for i in range(first, stop):
        truth[np.uint64(found[i]) >> np.uint64(6)] = 0


@inline
def put_in_order(truth, labelled, ordered):
    """Writes the satisfied conjunctions that have labels to `ordered`, ascending. Returns their number."""
    k = 0
    for word in range(len(truth)):
        left = truth[word] & labelled[word]
        while left:
            ordered[k] = (word << 6) + trailing_zeros(left)
            k += 1
            left &= left - np.uint64(1)
    return k


@inline
def touch_trees(leaves, found, first, stop, g, start):
    """Follows the labels of found[first:stop]. Returns how many trees they touch, or EVERYTHING and sets no bits."""
    # Arrays are taken out of their handles before the loops: reading a handle's field counts a reference each time.
    label_offsets, label, trees = leaves.label_offsets, leaves.label, len(leaves.rule)
    seen, touched, bits, matched = g.seen, g.touched, g.bits, g.matched
    width = len(leaves.leaf_conjunction) // max(1, trees)  # leaves of a tree
    most = trees * width // (width + TOUCH)
    n, k = 0, start
    for i in range(first, stop):
        c = found[i]
        for d in range(label_offsets[c], label_offsets[c + 1]):
            number, kind = np.uint64(label[d]) >> np.uint64(2), label[d] & 3
            word, bit = number >> np.uint64(6), np.uint64(1) << (number & np.uint64(63))
            if kind == SOLE:
                matched[k] = number
                k += 1
            elif kind == BEGINS:
                touched[n] = number
                n += seen[word] & bit == 0
                seen[word] |= bit
            else:
                matched[k] = number
                k += bits[word] & bit == 0
                bits[word] |= bit
        if n > most:
            break
    if n * ORDERED > trees:
        take_bits(touched, 0, seen)
    else:
        for i in range(n):
            seen[touched[i] >> 6] = 0
    g.counts[0] = k
    if n <= most:
        return n
    for i in range(start, k):
        bits[matched[i] >> 6] = 0
    return EVERYTHING


@inline
def complete_flat(leaves, g):
    """Sets the bits of the rules that are no trees and that a satisfied conjunction completes."""
    label_offsets, label, alone, truth, bits = leaves.label_offsets, leaves.label, leaves.alone, g.truth, g.bits
    for word in range(len(truth)):
        left = truth[word] & alone[word]
        while left:
            c = (word << 6) + np.int64(trailing_zeros(left))
            left &= left - np.uint64(1)
            for d in range(label_offsets[c], label_offsets[c + 1]):
                if label[d] & 3 < FLAT:
                    break
                number = np.uint64(label[d]) >> np.uint64(2)
                bits[number >> np.uint64(6)] |= np.uint64(1) << (number & np.uint64(63))


@kernel
def group_one(leaves, found, count, g):
    return group_leaves(leaves, found, 0, count, g, 0)


@inline
def finish(touched, found, first, stop, g, start, k, allowed):
    """Writes the rules that are allowed to `matched` from `start` on, ascending, and clears all bits. Returns their
    end.

    They are taken from matched[start:k] or, with EVERYTHING, from `bits`.
    """
    truth, bits, matched = g.truth, g.bits, g.matched
    if touched == EVERYTHING:
        truth[:] = 0
        k = take_bits(matched, start, bits)
    else:
        if touched > 0:
            clear_truth(truth, found, first, stop)
        for i in range(start, k):
            bits[matched[i] >> 6] = 0
    if len(allowed):
        kept = start
        for i in range(start, k):
            matched[kept] = matched[i]
            kept += allowed[matched[i]] != 0
        k = kept
    if touched != EVERYTHING:
        in_order(matched, start, k, bits)
    return k


@inline
def in_order(matched, start, stop, bits):
    """Sorts matched[start:stop], all different: few by insertion, many by a bit for each rule, others by comparing."""
    if stop - start <= 32:
        for i in range(start + 1, stop):
            value = matched[i]
            j = i - 1
            while j >= start and matched[j] > value:
                matched[j + 1] = matched[j]
                j -= 1
            matched[j + 1] = value
    elif (stop - start) * 16 < len(bits):
        matched[start:stop].sort()
    else:
        for i in range(start, stop):
            bits[matched[i] >> 6] |= np.uint64(1) << np.uint64(matched[i] & 63)
        take_bits(matched, start, bits)


@inline
def take_bits(matched, start, bits):
    """Writes the numbers of the bits that are set to `matched` from `start` on, and clears them. Returns their end."""
    k = start
    for word in range(len(bits)):
        left = bits[word]
        bits[word] = 0
        while left:
            matched[k] = (word << 6) + trailing_zeros(left)
            k += 1
            left &= left - np.uint64(1)
    return k
