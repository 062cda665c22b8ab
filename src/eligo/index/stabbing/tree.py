"""The tree of one attribute, in one layout for all five structures, and how a value stabs it.

    node    LOW, HIGH      a value below LOW goes left, one above HIGH right, any other ends here.
                           A key k is LOW = k, HIGH = k - 1: nothing ends there. NO_KEY: all of the node's values do
            LEFT, RIGHT    the nodes below, or NO_NODE
            cover          bit vector: intervals that hold all values that come to this node, but not to its parent
            own            bit vector: further intervals, for the values that end here
            by low         intervals by ascending low ends: a value not above HIGH walks them as long as they hold it
            by high        the same by descending high ends, for values above HIGH

                           LOW, HIGH                  own                           by low, by high
    stab-cluster           a key; a leaf has none     of a leaf: they may match     –
    stab-interval          an elementary interval     those that hold it            –
    stab-hybrid            first the one, then the other
    segment-tree           a key; a leaf has none     –                             –
    interval-tree          an endpoint                –                             those that hold the endpoint

Invariant: what a value collects on its way (`cover` of each node, `own` of the last, what it walks of the ordered
lists) is the intervals that hold it, and at a leaf of `stab-cluster` also some that do not. `cover` is what the paper
proposes in §4.1.5, to store only bits that the parent's vector does not give: an interval is in at most four vectors a
level of the tree, instead of one in each elementary interval that it covers.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I32, I64
from eligo.index.stabbing.vectors import Vectors
from eligo.jit import inline, kernel

NO_NODE, NO_KEY = -1, -1

# Columns of a node. A vector or list ends where the next begins; OWN and BY_HIGH at the next node.
LOW, HIGH, LEFT, RIGHT = 0, 1, 2, 3
SHAPE = 4
COVER_ROWS, OWN_ROWS, COVER_WORDS, OWN_WORDS, BY_LOW, BY_HIGH = 4, 5, 6, 7, 8, 9
COLUMNS = 10
ONE = np.uint64(1)


def with_vectors(shape: I32, vectors: Vectors, ordered: I64) -> I32:
    """Returns whole nodes. Node j has vector 2j as `cover` and 2j + 1 as `own`, and ordered lists that start at
    ordered[2j] and ordered[2j + 1].
    """
    nodes = np.zeros((len(shape) + 1, COLUMNS), np.int32)
    nodes[:-1, :SHAPE] = shape
    columns = (COVER_ROWS, OWN_ROWS, vectors.row_offsets), (COVER_WORDS, OWN_WORDS, vectors.word_offsets)
    for first, second, offsets in (*columns, (BY_LOW, BY_HIGH, ordered)):
        nodes[:, first], nodes[:-1, second] = offsets[::2], offsets[1::2]
    return nodes


@inline
def push(waiting, top, first, second, third, fourth=0):
    """Puts a task on a stack. Returns the new top."""
    waiting[top, 0], waiting[top, 1], waiting[top, 2], waiting[top, 3] = first, second, third, fourth
    return top + 1


@kernel
def post(offsets, low, high, row, space_count, shape, root, most):
    """Returns offsets and rows of all vectors, as `with_vectors` wants them; no rows if there are more than `most`.

    Attribute a has the intervals offsets[a] … offsets[a+1] - 1, sorted by row.
    """
    ends = np.zeros(2 * len(shape) + 1, np.int64)
    filled = ends
    rows = np.empty(0, np.int32)
    waiting = np.empty((len(shape) + 1, 4), np.int32)  # a node, and the first and last value that come to it
    for filling in range(2):
        for a in range(len(root)):
            for i in range(offsets[a], offsets[a + 1]):
                top = push(waiting, 0, root[a], 0, space_count[a] - 1)
                while top:
                    top -= 1
                    node, first, last = waiting[top, 0], waiting[top, 1], waiting[top, 2]
                    node_low, node_high = shape[node, LOW], shape[node, HIGH]
                    covers = low[i] <= first and last <= high[i]
                    meets = node_low <= node_high and low[i] <= node_high and node_low <= high[i]
                    if covers or meets:
                        vector = 2 * node + (not covers)
                        if filling:
                            rows[filled[vector]] = row[i]
                            filled[vector] += 1
                        else:
                            ends[vector + 1] += 1
                    if not covers and node_high < min(high[i], last):
                        top = push(waiting, top, shape[node, RIGHT], node_high + 1, last)
                    if not covers and max(low[i], first) < node_low:
                        top = push(waiting, top, shape[node, LEFT], first, node_low - 1)
        if not filling:
            for v in range(len(ends) - 1):
                ends[v + 1] += ends[v]
            if ends[-1] > most:
                return ends, rows
            filled = ends[:-1].copy()
            rows = np.empty(ends[-1], np.int32)
    return ends, rows


@inline
def collect(nodes, row, place, bits, bound, bound_row, node, x, part):
    """Sets in `part` the bits of the intervals that hold x, from a root on. Returns the predicate evaluations as the
    paper counts them: comparisons of x with a key or an elementary interval, and with an entry of an ordered list.
    """
    evaluations = 0
    while node != NO_NODE:
        low, high = nodes[node, LOW], nodes[node, HIGH]
        evaluations += low != NO_KEY
        for i in range(nodes[node, COVER_ROWS], nodes[node, OWN_ROWS]):
            part[row[i] >> 6] |= ONE << np.uint64(row[i] & 63)
        for i in range(nodes[node, COVER_WORDS], nodes[node, OWN_WORDS]):
            part[place[i]] |= bits[i]
        above = x > high
        i, stop = nodes[node, BY_LOW], nodes[node, BY_HIGH]
        if above:
            i, stop = stop, nodes[node + 1, BY_LOW]
        key = ~x if above else x  # by_high has the complements of its ends, so that both ascend
        while i < stop:
            evaluations += 1
            if bound[i] > key:
                break
            part[bound_row[i] >> 6] |= ONE << np.uint64(bound_row[i] & 63)
            i += 1
        if x < low:
            node = nodes[node, LEFT]
        elif above:
            node = nodes[node, RIGHT]
        else:
            for i in range(nodes[node, OWN_ROWS], nodes[node + 1, COVER_ROWS]):
                part[row[i] >> 6] |= ONE << np.uint64(row[i] & 63)
            for i in range(nodes[node, OWN_WORDS], nodes[node + 1, COVER_WORDS]):
                part[place[i]] |= bits[i]
            return evaluations
    return evaluations
