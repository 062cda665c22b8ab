"""`dewey`: the tree is rebuilt from the Dewey IDs of its satisfied leaves (the paper on complex expressions §3).

    leaf l    code[l]                              the ID packed: components of `width` bits, the first one highest
              parts[starts[l] … starts[l+1]]       or, where IDs do not fit 64 bits, one component each

A component is twice the number of the child, plus one where it is the last child of an AND (the paper's *); none is 0,
so a packed ID ends at the first 0. Nodes at even depths are ANDs, at odd depths ORs, whatever the tree
(evaluate/labels.py).

Leaves lie in the order of their IDs, so the satisfied ones come sorted. EVALUATEAND and EVALUATEOR (Algorithms 2 and 3)
are one loop: going from one ID to the next closes the nodes below their common prefix, which gives each one's result to
its parent, and opens those of the new one. A tree is given up as soon as its root is false.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import F64, I32, I64, Arrays, Compiled
from eligo.evaluate.labels import dewey_components
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
from eligo.jit import handle, inline, kernel

_OWN = ("code", "starts", "parts", "width", "depth")


class Dewey(LeafEvaluator):
    """Evaluator by Dewey IDs; see the top of this file."""

    name = "dewey"
    summary = "rebuilds each tree from the Dewey IDs of its satisfied leaves"

    def __init__(self, leaves: Leaves, own: Arrays, rules: int) -> None:
        super().__init__(leaves, rules)
        self._own = own
        self.handle = make_dewey(self.group_handle, *(own[name] for name in _OWN))

    @classmethod
    def build(cls, compiled: Compiled, likelihood: F64 | None = None) -> Dewey:
        leaves, token, _, _ = build_leaves(compiled, by_begin=False)
        starts, parts = dewey_components(compiled.tree, compiled.tree_offsets)
        number = np.cumsum(compiled.tree >= 0) - 1  # of each leaf token among all leaves
        return cls(leaves, _packed(starts, parts, number[token]), compiled.rules)

    @classmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Dewey:
        return cls(Leaves(*(arrays[name] for name in LEAVES)), {name: arrays[name] for name in _OWN}, compiled.rules)

    def arrays(self) -> Arrays:
        return {**self.leaves.arrays(), **self._own}

    def scratch(self) -> GroupScratch:
        # A row for each node on the way to the leaf at hand; its columns are named below.
        return GroupScratch(self.leaves, self.rules, np.zeros((int(self._own["depth"][0]) + 2, 4), np.int64))


def _packed(starts: I64, parts: I32, kept: NDArray[Any]) -> Arrays:
    """Returns the arrays of `_OWN` for the kept leaves: IDs of 64 bits each if all of them fit, or else components."""
    lengths = np.diff(starts)[kept]
    depth = int(lengths.max(initial=0))
    kept_starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    kept_parts = copy_parts(starts, parts, kept.astype(np.int64), kept_starts)
    width = int(kept_parts.max(initial=0)).bit_length()
    fits = depth * width <= 64
    return {
        "code": pack_parts(kept_starts, kept_parts, width) if fits else np.zeros(0, np.uint64),
        "starts": np.zeros(0, np.int64) if fits else kept_starts,
        "parts": np.zeros(0, np.int32) if fits else kept_parts,
        "width": np.array([width if fits else 0], np.int64),
        "depth": np.array([depth], np.int64),
    }


@kernel
def copy_parts(starts, parts, kept, kept_starts):
    copy = np.empty(kept_starts[-1], np.int32)
    for i in range(len(kept)):
        for k in range(starts[kept[i] + 1] - starts[kept[i]]):
            copy[kept_starts[i] + k] = parts[starts[kept[i]] + k]
    return copy


@kernel
def pack_parts(starts, parts, width):
    code = np.zeros(len(starts) - 1, np.uint64)
    for i in range(len(code)):
        shift = 64
        for k in range(starts[i], starts[i + 1]):
            shift -= width
            code[i] |= np.uint64(parts[k]) << np.uint64(shift)
    return code


# The labels as one argument of kernels.
make_dewey = handle("DeweyHandle", ("leaves", *_OWN))


# Columns of a node: of an AND the number of the last child explored, whether that was the last one, and whether all so
# far hold; of an OR whether some child holds. And the component by which the node was entered.
EXPLORED, LAST, RESULT, ENTERED = 0, 1, 2, 3


@inline
def complete_deweys(labels, n, found, first, stop, allowed, g, node, start):
    """Writes the complete ones of the n touched trees, and the rules that grouping found, to `matched` from `start` on,
    ascending. Returns where they end.
    """
    truth, touched, bits, matched = g.truth, g.touched, g.bits, g.matched
    rule, leaf_start, leaf_conjunction = labels.leaves.rule, labels.leaves.leaf_start, labels.leaves.leaf_conjunction
    code, starts, parts, width = labels.code, labels.starts, labels.parts, labels.width[0]
    component = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    k = g.counts[0]
    everything = n == EVERYTHING
    for i in range(len(rule) if everything else n):
        tree = i if everything else np.int64(touched[i])
        depth = 0  # of the last ID's leaf
        node[0, EXPLORED], node[0, LAST], node[0, RESULT] = 0, 0, 1
        for leaf in range(leaf_start[tree], leaf_start[tree + 1]):
            if node[0, RESULT] == 0:
                break
            c = np.uint64(leaf_conjunction[leaf])
            if truth[c >> np.uint64(6)] >> (c & np.uint64(63)) & np.uint64(1) == 0:
                continue
            # Down the ID; where it parts from the last one, that one's nodes are closed.
            d = 0
            parted = False
            while True:
                if width:
                    shift = 64 - width * (d + 1)
                    part = np.int64(code[leaf] >> np.uint64(shift) & component) if shift >= 0 else 0
                else:
                    part = np.int64(parts[starts[leaf] + d]) if starts[leaf] + d < starts[leaf + 1] else 0
                if part == 0:
                    break
                if not parted and (d >= depth or node[d + 1, ENTERED] != part):
                    close_nodes(node, depth, d)
                    parted = True
                if parted:
                    if d & 1 == 0:  # an AND: its children must come one after another
                        node[d, EXPLORED] += 1
                        node[d, RESULT] &= part >> 1 == node[d, EXPLORED]
                        node[d, LAST] = part & 1
                    node[d + 1, ENTERED] = part
                    node[d + 1, EXPLORED], node[d + 1, LAST] = 0, 0
                    node[d + 1, RESULT] = d & 1  # below an OR is an AND, true so far; an OR is false
                d += 1
            depth = d
            # The leaf itself holds.
            if depth & 1 == 0:
                node[depth - 1, RESULT] = 1
        close_nodes(node, depth, 0)
        if node[0, RESULT] & node[0, LAST]:
            bit = np.uint64(1) << np.uint64(rule[tree] & 63)
            if not everything:
                matched[k] = rule[tree]
                k += bits[rule[tree] >> 6] & bit == 0
            bits[rule[tree] >> 6] |= bit
    return finish(n, found, first, stop, g, start, k, allowed)


@inline
def close_nodes(node, depth, to):
    """Passes the results of the nodes above a leaf at `depth` to their parents, from the deepest to those at to + 1."""
    for d in range(depth - 1, to, -1):
        if d & 1:  # an OR, below an AND
            node[d - 1, RESULT] &= node[d, RESULT]
        else:
            node[d - 1, RESULT] |= node[d, RESULT] & node[d, LAST]


Dewey.complete_one, Dewey.complete_batch = map(staticmethod, completing(complete_deweys))
