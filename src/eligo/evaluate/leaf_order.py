"""Writes the arrays of leaves.py: trees by leaf count, leaves by where their intervals begin, labels by conjunction."""

from __future__ import annotations

import numpy as np

from eligo.jit import kernel

BEGINS, ALONE, FLAT, SOLE = 0, 1, 2, 3  # kinds of labels, as drawn in leaves.py


@kernel
def order_trees(tree, offsets, begin, end, span):
    """Returns the rules that are trees, in the order of their leaf counts, where each one's leaves start, and where the
    trees of each leaf count start.
    """
    rules = len(offsets) - 1
    is_tree = np.zeros(rules, np.bool_)
    widest = 0
    for r in range(rules):
        for t in range(offsets[r], offsets[r + 1]):
            is_tree[r] |= tree[t] >= 0 and not (begin[t] == 1 and end[t] == span[r])
        if is_tree[r]:
            widest = max(widest, span[r])
    starts = np.zeros(widest + 2, np.int32)  # counting sort
    for r in range(rules):
        if is_tree[r]:
            starts[span[r] + 1] += 1
    stretches = 0
    for size in range(widest + 1):
        stretches += starts[size + 1] > 0
        starts[size + 1] += starts[size]
    stretch = np.zeros(stretches + 1, np.int32)
    s = 0
    for size in range(widest + 1):
        if starts[size + 1] > starts[size]:
            s += 1
            stretch[s] = starts[size + 1]
    rule, leaf_start = np.empty(starts[-1], np.int32), np.zeros(starts[-1] + 1, np.int32)
    for r in range(rules):
        if is_tree[r]:
            rule[starts[span[r]]] = r
            starts[span[r]] += 1
    for i in range(len(rule)):
        leaf_start[i + 1] = leaf_start[i] + span[rule[i]]
    return rule, leaf_start, stretch


@kernel
def order_leaves(tree, offsets, begin, rule, leaf_start, by_begin):
    """Returns the token of each leaf of some rules, whose leaves start at `leaf_start`: in the order of their begins
    or, without `by_begin`, of the tree.
    """
    token, widest = np.empty(leaf_start[-1], np.int32), 0
    for i in range(len(rule)):
        widest = max(widest, leaf_start[i + 1] - leaf_start[i])
    starts = np.zeros(widest + 2, np.int32)  # counting sort of a tree's leaves
    for i in range(len(rule)):
        size = leaf_start[i + 1] - leaf_start[i]
        starts[: size + 2] = 0
        if by_begin:
            for t in range(offsets[rule[i]], offsets[rule[i] + 1]):
                starts[begin[t] + 1] += tree[t] >= 0
            for x in range(size + 1):
                starts[x + 1] += starts[x]
        for t in range(offsets[rule[i]], offsets[rule[i] + 1]):
            if tree[t] >= 0:
                at = begin[t] if by_begin else 0
                token[leaf_start[i] + starts[at]] = t
                starts[at] += 1
    return token


@kernel
def write_labels(tree, offsets, conjunctions, begin, end, span, rule):
    """Returns the labels of each conjunction, as offsets and labels, and two sets of bits: the conjunctions that have
    labels, and those that have FLAT or SOLE ones.
    """
    number = np.full(len(offsets) - 1, -1, np.int32)  # of each rule that is a tree, among the trees
    for i in range(len(rule)):
        number[rule[i]] = i
    label_offsets = np.zeros(conjunctions + 1, np.int32)
    for t in range(len(tree)):
        if tree[t] >= 0:
            label_offsets[tree[t] + 1] += begin[t] == 1
    words = conjunctions // 64 + 1
    labelled, alone = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    for c in range(conjunctions):
        labelled[c >> 6] |= np.uint64(label_offsets[c + 1] > 0) << np.uint64(c & 63)
        label_offsets[c + 1] += label_offsets[c]
    label = np.empty(label_offsets[-1], np.uint32)
    filled = label_offsets[:-1].copy()
    for trees in range(2):
        for r in range(len(offsets) - 1):
            if (number[r] >= 0) != (trees == 1):
                continue
            for t in range(offsets[r], offsets[r + 1]):
                c = tree[t]
                if c < 0 or begin[t] != 1:
                    continue
                if trees:
                    value = r << 2 | ALONE if end[t] == span[r] else number[r] << 2 | BEGINS
                else:
                    value = r << 2 | (SOLE if span[r] == 1 else FLAT)
                    alone[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
                label[filled[c]] = value
                filled[c] += 1
    return label_offsets, label, labelled, alone
