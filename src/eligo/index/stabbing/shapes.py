"""The shapes of `stab-cluster`, `stab-interval`, `stab-hybrid` and `segment-tree`: which keys, in which tree.

Intervals are runs of spaces. Their ends are *edges*; between two neighbouring edges lies an elementary interval:

    spaces          0   1   2   3   4   5   6   7   8
    intervals           [───────────]                        edges   0   1       3   4   6      9
                                [───────────────]            elementary intervals 0 … edges - 2
    started[i]      intervals that begin before edge i
    ended[i]        intervals that end before edge i

Of the elementary intervals first … stop - 1, started[stop] - ended[first] intervals cover one or more. So every number
that the paper's scores need is a difference of two, and no list of intervals has to be divided.

    CLUSTER     split at the edge with the best score, as long as there are more than `least` intervals (§4.1.1), but
                not below DEEPEST levels: where intervals are long, a split may take off only a few at a time
    ELEMENTARY  a binary search tree of those elementary intervals that some interval covers (§4.1.2)
    PAIRS       a tree over all elementary intervals, combined in pairs from below (§4.1.4)
    LEAF        no key: all of the node's values end there
"""

from __future__ import annotations

import numpy as np

from eligo.index.stabbing.tree import HIGH, LEFT, LOW, NO_KEY, NO_NODE, RIGHT, SHAPE, push
from eligo.jit import inline, kernel

LEAF, CLUSTER, ELEMENTARY, PAIRS = 0, 1, 2, 3
FURTHEST = 2**31 - 1
DEEPEST = 64


@inline
def score(started, ended, first, stop, key):
    """Returns the intervals left of the edge `key`, those right of it, and the score of that split: the difference of
    both, and how many are in both (§4.1.1). The least score is best.
    """
    left, right = started[key] - ended[first], started[stop] - ended[key]
    both = left + right - (started[stop] - ended[first])
    return left, right, abs(left - right) + both


@inline
def best_key(started, ended, first, stop):
    """Returns the edge to split elementary intervals first … stop - 1 at; NO_KEY if no split makes both parts smaller.

    The edges are searched as the paper does: the middle one, then the middle of the side with more intervals. A split
    of which one part is the whole scores as much as there are intervals, any other less.
    """
    best, least = NO_KEY, started[stop] - ended[first]
    low, high = first + 1, stop
    while low < high:
        key = low + (high - low - 1) // 2
        left, right, cost = score(started, ended, first, stop, key)
        if cost < least:
            best, least = key, cost
        if right > left:
            low = key + 1
        else:
            high = key
    return best


@inline
def elementary(low, high, spaces):
    """Returns edges, `started` and `ended` of the intervals low[i] … high[i]; see the top of this file."""
    begin, end = np.zeros(spaces + 1, np.int64), np.zeros(spaces + 1, np.int64)
    for i in range(len(low)):
        begin[low[i]] += 1
        end[high[i] + 1] += 1
    count = 0
    for s in range(spaces + 1):
        count += s == 0 or s == spaces or begin[s] + end[s] > 0
    edge, started, ended = np.empty(count, np.int32), np.zeros(count, np.int64), np.zeros(count, np.int64)
    count = begun = over = 0
    for s in range(spaces + 1):
        over += end[s]
        if s == 0 or s == spaces or begin[s] + end[s] > 0:
            edge[count], started[count], ended[count] = s, begun, over
            count += 1
        begun += begin[s]
    return edge, started, ended


@kernel
def grow(offsets, low, high, space_count, stage, leaves, least):
    """Returns the nodes of all attributes and the root of each (NO_NODE where it has no intervals).

    Attribute a has the intervals offsets[a] … offsets[a+1] - 1. `stage` says how its tree begins and `leaves` what a
    cluster becomes that is not split.
    """
    attributes = len(offsets) - 1
    bound = 0
    for a in range(attributes):
        bound += 2 * min(2 * (offsets[a + 1] - offsets[a]) + 1, space_count[a])
    nodes, depth = np.empty((bound, SHAPE), np.int32), np.zeros(bound, np.int32)
    root = np.full(attributes, NO_NODE, np.int32)
    count = 0
    for a in range(attributes):
        if offsets[a] == offsets[a + 1]:
            continue
        edge, started, ended = elementary(low[offsets[a] : offsets[a + 1]], high[offsets[a] : offsets[a + 1]],
                                          space_count[a])  # fmt: skip
        intervals = len(edge) - 1
        kept = np.empty(intervals, np.int32)  # those that some interval covers
        kept_before = np.zeros(intervals + 1, np.int32)
        for i in range(intervals):
            kept[kept_before[i]] = i
            kept_before[i + 1] = kept_before[i] + (started[i + 1] > ended[i])
        waiting = np.empty((2 * intervals + 1, 4), np.int32)  # first, stop, stage, and where its parent names it
        root[a] = count
        top = push(waiting, 0, 0, kept_before[intervals] if stage == ELEMENTARY else intervals, stage, NO_NODE)
        while top:
            top -= 1
            first, stop, how, parent = waiting[top, 0], waiting[top, 1], waiting[top, 2], waiting[top, 3]
            node = count
            count += 1
            if parent != NO_NODE:
                nodes[parent >> 1, LEFT + (parent & 1)] = node
                depth[node] = depth[parent >> 1] + 1
            key = middle = behind = NO_KEY
            if how == CLUSTER:
                if started[stop] - ended[first] > least and depth[node] < DEEPEST:
                    key = best_key(started, ended, first, stop)
                if key == NO_KEY:
                    how = leaves
                    if how == ELEMENTARY:
                        first, stop = kept_before[first], kept_before[stop]
            elif how == PAIRS and stop > first + 1:
                half = 1
                while 2 * half < stop - first:
                    half *= 2
                key = first + half
            if how == ELEMENTARY:
                middle = first + (stop - first - 1) // 2
                behind = middle + 1
                nodes[node, LOW], nodes[node, HIGH] = edge[kept[middle]], edge[kept[middle] + 1] - 1
            elif key != NO_KEY:
                middle = behind = key
                nodes[node, LOW], nodes[node, HIGH] = edge[key], edge[key] - 1
            else:
                middle, behind = first, stop
                nodes[node, LOW], nodes[node, HIGH] = NO_KEY, FURTHEST
            nodes[node, LEFT] = nodes[node, RIGHT] = NO_NODE
            # The left part is taken first, so that it lies right behind its parent.
            if behind < stop:
                top = push(waiting, top, behind, stop, how, 2 * node + 1)
            if first < middle:
                top = push(waiting, top, first, middle, how, 2 * node)
    return nodes[:count].copy(), root
