"""How the tree of `gryphon` grows: conjunctions as paths of tests in one order, sorted, and cut into nodes.

    test t                    test_code[t] = attribute << 1 │ 0: which space has it?  │ 1: does a predicate hold?
    path of conjunction c     path[path_offsets[c] … [c+1]], ascending: a step for each predicate that can lead to it
    step                      test << 32 | result: the space of an equality or, one by one, the number of any other

Steps ascend by test, so all paths meet the tests in one order: first the attributes of equalities, then those of other
predicates; of both the rarest attribute first. A conjunction is thus reached by the test that fewest events pass.

Nodes are finished in the order in which they were made. The rows of a node are sorted by their next step, so that every
subtree is one stretch of rows, and an edge is a run of equal steps. No recursion, however long the paths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import I32, I64, Arrays, grown
from eligo.compile.conjunctions import Conjunctions
from eligo.index.access import leading
from eligo.jit import inline, kernel

LEAF = 32  # a subtree of so many conjunctions, or fewer, is no node: its rows are verified
FEW = 24  # what is sorted by insertion


@dataclass(frozen=True)
class Tree:
    """The arrays of the tree (gryphon.py), and the rows that stand in it."""

    arrays: Arrays
    tested: I32  # predicates of the edges that test one
    order: I32  # conjunctions by row; those without a path come last
    always: int  # the first of these
    left_offsets: I64  # predicates of each row that the way to it does not guarantee
    left: I32


def build_tree(conjunctions: Conjunctions, leaf: int, generic: bool) -> Tree:
    """The tree of all conjunctions. `generic`: equalities, too, are tested one by one."""
    p = conjunctions.predicates
    attribute, leads = p.attribute(), leading(conjunctions)
    test_of, test_code = order_of_tests(conjunctions)
    other = np.ones(len(p), np.bool_) if generic else (p.low != p.high) | (p.flags & codes.RESIDUAL != 0)
    step = test_of[2 * attribute + other].astype(np.int64) << 32 | np.where(other, np.arange(len(p)), p.low)
    step[~leads] = -1
    offsets, items = conjunctions.offsets, conjunctions.items
    path_offsets, path = sorted_steps(offsets, items, step)
    has_path = np.diff(path_offsets) > 0
    order, without = np.nonzero(has_path)[0].astype(np.int32), np.nonzero(~has_path)[0].astype(np.int32)
    steps, node, group, equal, other_edge, tested = grow_tree(path_offsets, path, order, test_code, leaf)
    order = np.concatenate((order, without))
    steps = np.concatenate((steps, np.zeros(len(without), np.int32)))
    left_offsets, left = remaining(offsets, items, step, path_offsets, path, order, steps)
    arrays = {"test_of": test_of, "node": node, "group": group, "equal": equal, "other": other_edge}
    return Tree(arrays, tested, order, len(order) - len(without), left_offsets, left)


def order_of_tests(conjunctions: Conjunctions) -> tuple[I32, I32]:
    """The place of test attribute << 1 | kind in the order, and which test stands in each place."""
    attributes = len(conjunctions.spaces.space_count)
    leading_items = conjunctions.items[leading(conjunctions)[conjunctions.items]]
    uses = np.bincount(conjunctions.predicates.attribute()[leading_items], minlength=attributes)
    rarest_first = np.argsort(uses, kind="stable")
    test_code = np.concatenate((2 * rarest_first, 2 * rarest_first + 1)).astype(np.int32)
    test_of = np.empty(2 * attributes, np.int32)
    test_of[test_code] = np.arange(2 * attributes, dtype=np.int32)
    return test_of, test_code


@kernel
def sorted_steps(offsets, items, step):
    """The path of every conjunction: offsets and steps."""
    path_offsets = np.zeros(len(offsets), np.int64)
    path = np.empty(len(items), np.int64)
    n = 0
    for c in range(len(offsets) - 1):
        start = n
        insert = offsets[c + 1] - offsets[c] <= FEW
        for i in range(offsets[c], offsets[c + 1]):
            s = step[items[i]]
            if s < 0:
                continue
            j = n
            while insert and j > start and path[j - 1] > s:
                path[j] = path[j - 1]
                j -= 1
            path[j] = s
            n += 1
        if not insert:
            path[start:n].sort()
        path_offsets[c + 1] = n
    return path_offsets, path[:n].copy()


@inline
def sort_stretch(key, order, start, stop):
    """Sort order[start:stop] by key[start:stop], and these too."""
    if stop - start <= FEW:
        for i in range(start + 1, stop):
            k, c = key[i], order[i]
            j = i
            while j > start and key[j - 1] > k:
                key[j], order[j] = key[j - 1], order[j - 1]
                j -= 1
            key[j], order[j] = k, c
        return
    rank = np.argsort(key[start:stop])
    old_key, old_order = key[start:stop].copy(), order[start:stop].copy()
    for i in range(stop - start):
        key[start + i], order[start + i] = old_key[rank[i]], old_order[rank[i]]


@kernel
def grow_tree(path_offsets, path, order, test_code, leaf):
    """Sort `order`, conjunctions with a path, into rows, and cut these into nodes, groups and edges.

    Also how many steps of its path lead to each row.
    """
    n = len(order)
    key, steps = np.empty(n, np.int64), np.zeros(n, np.int32)
    node, group = np.zeros(64, np.int32), np.zeros(64, np.int32)
    equal, other, tested = np.zeros(64, np.int32), np.zeros(64, np.int32), np.zeros(64, np.int32)
    made_of = np.zeros(64, np.int32)  # first and last row of every node, and its depth
    made_of[1] = n
    made, nodes, groups, equals, others = 1, 0, 0, 0, 0
    while nodes < made:
        start, stop, depth = made_of[3 * nodes], made_of[3 * nodes + 1], made_of[3 * nodes + 2]
        for i in range(start, stop):
            at = path_offsets[order[i]] + depth
            key[i] = path[at] if at < path_offsets[order[i] + 1] else -1
        sort_stretch(key, order, start, stop)
        different = 0
        for i in range(start, stop):
            different += i == start or key[i] != key[i - 1]
        node, group = grown(node, 4 * nodes + 4), grown(group, 4 * (groups + different))
        equal, other = grown(equal, 3 * (equals + different)), grown(other, 2 * (others + different))
        tested, made_of = grown(tested, others + different), grown(made_of, 3 * (made + different))
        i = start
        while i < stop and key[i] < 0:
            steps[i] = depth
            i += 1
        node[4 * nodes], node[4 * nodes + 1], node[4 * nodes + 2] = start, i, groups
        test = np.int64(-1)
        while i < stop:
            j = i + 1
            while j < stop and key[j] == key[i]:
                j += 1
            generic = test_code[key[i] >> 32] & 1
            if key[i] >> 32 != test:
                test = key[i] >> 32
                group[4 * groups], group[4 * groups + 1] = test, test_code[test]
                group[4 * groups + 2] = others if generic else equals
                groups += 1
            target = i - j
            if j - i > leaf:
                made_of[3 * made], made_of[3 * made + 1], made_of[3 * made + 2] = i, j, depth + 1
                target = made
                made += 1
            else:
                for row in range(i, j):
                    steps[row] = depth + 1
            result = key[i] & 0xFFFFFFFF
            if generic:
                tested[others] = result
                other[2 * others], other[2 * others + 1] = i, target
                others += 1
            else:
                equal[3 * equals], equal[3 * equals + 1], equal[3 * equals + 2] = result, i, target
                equals += 1
            group[4 * groups - 1] = others if generic else equals
            i = j
        node[4 * nodes + 3] = groups
        nodes += 1
    return (
        steps, node[: 4 * nodes].copy(), group[: 4 * groups].copy(), equal[: 3 * equals].copy(),
        other[: 2 * others].copy(), tested[:others].copy(),
    )  # fmt: skip


@kernel
def remaining(offsets, items, step, path_offsets, path, order, steps):
    """The predicates of every row that the way to it does not guarantee."""
    left_offsets = np.zeros(len(order) + 1, np.int64)
    left = np.empty(len(items), np.int32)
    n = 0
    for r in range(len(order)):
        c = order[r]
        # Of the sorted path the steps up to `last` were taken; steps of one conjunction are all different.
        last = path[path_offsets[c] + steps[r] - 1] if steps[r] else np.int64(-1)
        for i in range(offsets[c], offsets[c + 1]):
            if step[items[i]] < 0 or step[items[i]] > last:
                left[n] = items[i]
                n += 1
        left_offsets[r + 1] = n
    return left_offsets, left[:n].copy()


@kernel
def factored(node, group, equal, attributes, space_base):
    """The root's edges by slot, and its groups by attribute and kind; -1 where there is none."""
    root_equal = np.full(space_base[-1], -1, np.int32)
    root_group = np.full(2 * attributes, -1, np.int32)
    for g in range(node[2], node[3]):
        code = group[4 * g + 1]
        root_group[code] = g
        if code & 1 == 0:
            for x in range(group[4 * g + 2], group[4 * g + 3]):
                root_equal[space_base[code >> 1] + equal[3 * x]] = x
    return root_equal, root_group
