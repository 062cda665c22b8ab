"""The shape of `interval-tree`: a median endpoint in each node, and its intervals in two orders (§4.1.4).

           endpoint
      [───────|──]        by low     ascending low ends; a value below the endpoint takes those that are not above it
          [───|───────]
            [─|────]      by high    descending high ends; a value above the endpoint takes those that are not below

order of intervals     │ wholly left of it │ wholly right │ those that hold it │     both orders alike, in place
"""

from __future__ import annotations

import numpy as np

from eligo.index.stabbing.tree import HIGH, LEFT, LOW, NO_NODE, RIGHT, SHAPE, push
from eligo.jit import inline, kernel


@inline
def divide(order, first, stop, low, high, centre, spare):
    """Puts the intervals of `order` left of the centre first, then those right of it, then those that hold it.

    Within each part the order stays. Returns where the second and the third part start.
    """
    left, others = first, 0
    for i in range(first, stop):
        if high[order[i]] < centre:
            order[left] = order[i]
            left += 1
        else:
            spare[others] = order[i]
            others += 1
    end = left
    for i in range(others):
        if low[spare[i]] > centre:
            order[end] = spare[i]
            end += 1
    right = end
    for i in range(others):
        if low[spare[i]] <= centre:
            order[end] = spare[i]
            end += 1
    return left, right


@inline
def median(low, high, by_low, by_high, first, stop):
    """Returns the upper median of the endpoints of these intervals, as the paper's Figure 6 has it."""
    i, j = first, stop - 1
    centre = low[by_low[first]]
    for _ in range(stop - first + 1):
        if i < stop and low[by_low[i]] <= high[by_high[j]]:
            centre = low[by_low[i]]
            i += 1
        else:
            centre = high[by_high[j]]
            j -= 1
    return centre


@kernel
def grow_ordered(offsets, low, high, row, by_low, by_high):
    """Returns nodes, roots, starts of the ordered lists (as `with_vectors` wants them), and bounds and rows of these.

    by_low and by_high are the intervals of each attribute in these orders; they are used up.
    """
    nodes = np.empty((len(low), SHAPE), np.int32)
    root = np.full(len(offsets) - 1, NO_NODE, np.int32)
    starts = np.zeros(2 * len(low) + 1, np.int64)
    bound, bound_row = np.empty(2 * len(low), np.int32), np.empty(2 * len(low), np.int32)
    spare = np.empty(len(low), np.int32)
    waiting = np.empty((len(low) + 2, 4), np.int32)  # first, stop, and where its parent names it
    count = end = 0
    for a in range(len(root)):
        if offsets[a] == offsets[a + 1]:
            continue
        root[a] = count
        top = push(waiting, 0, offsets[a], offsets[a + 1], NO_NODE)
        while top:
            top -= 1
            first, stop, parent = waiting[top, 0], waiting[top, 1], waiting[top, 2]
            node = count
            count += 1
            if parent != NO_NODE:
                nodes[parent >> 1, LEFT + (parent & 1)] = node
            centre = median(low, high, by_low, by_high, first, stop)
            nodes[node, LOW] = nodes[node, HIGH] = centre
            nodes[node, LEFT] = nodes[node, RIGHT] = NO_NODE
            divide(by_low, first, stop, low, high, centre, spare)
            left, right = divide(by_high, first, stop, low, high, centre, spare)
            size = stop - right
            for i in range(size):
                one, other = by_low[right + i], by_high[right + i]
                bound[end + i], bound_row[end + i] = low[one], row[one]
                bound[end + size + i], bound_row[end + size + i] = ~high[other], row[other]
            starts[2 * node + 1] = end + size
            end += 2 * size
            starts[2 * node + 2] = end
            if left < right:
                top = push(waiting, top, left, right, 2 * node + 1)
            if first < left:
                top = push(waiting, top, first, left, 2 * node)
    return nodes[:count].copy(), root, starts[: 2 * count + 1].copy(), bound, bound_row
