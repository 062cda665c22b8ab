"""Insertion: rows are placed (place.py), and what overflows is split and partitioned (the BE-Tree paper §4.2–4.3,
Algorithms 5 and 6).

SpacePartitioning and SpaceClustering call each other in the paper and are one loop over a list of c-nodes that may
overflow here. To partition an l-node, each expression votes for the attribute that ranks best for it (rank.py),
among those that `min_size` expressions of the l-node have and no p-node of the c-node has yet. The one with most votes
gets the p-node, and its voters go there.
"""

from __future__ import annotations

import numpy as np

from eligo.index.be_tree.blocks import (
    bits_of_cluster,
    change_block,
    find_partition,
    is_open,
    new_cluster,
    new_partition,
)
from eligo.index.be_tree.nodes import (
    ATOMIC,
    BELOW,
    BLOCK,
    CHILDREN,
    FILL,
    HIGHEST,
    KEY,
    LEAF,
    MAX_CAP,
    MIN_SIZE,
    ROWS,
    SHAPE,
    SLOTS,
    SPLIT,
    TOP,
    UP,
    has_room,
)
from eligo.index.be_tree.place import add_row, is_on_way, place_row
from eligo.index.be_tree.rank import USELESS, common_bits, directory_key, interval_of, note_row, score_of
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.index.rows.line import ANY
from eligo.index.rows.packed_predicate import check_words, first_check, row_words
from eligo.jit import inline, kernel


@kernel
def move_half(t, c, key, to, bit, side):
    """Move the rows of a bucket that lie in one of its halves to the bucket made for it."""
    cluster = t.cluster
    block, used = cluster[8 * c + BLOCK], upper(cluster[8 * c + FILL])
    end, at, kept, moved = block + used, block, block, 0
    while at < end:
        size = row_words(t.words, at)
        _, low, high = interval_of(t.words, at, key)
        if low >> bit == high >> bit and (low >> bit & np.uint64(1)) == np.uint64(side):
            add_row(t, to, t.words, at)
            moved += 1
        else:
            kept = keep_row(t, at, kept, size)
        at += size
    left_behind(t, c, kept - block, moved)


@inline
def keep_row(t, at, to, size):
    """Close the gap before a row that stays; where the next one goes."""
    words = t.words
    if to < at:
        for i in range(size):
            words[to + i] = words[at + i]
    return to + size


@kernel
def left_behind(t, c, used, moved):
    """Say what an l-node has after so many rows have left it."""
    cluster = t.cluster
    cluster[8 * c + FILL] = pair(used, lower(cluster[8 * c + FILL]))
    leaf = cluster[8 * c + LEAF]
    cluster[8 * c + LEAF] = pair(upper(leaf) - moved, lower(leaf))
    if 4 * used < 3 * lower(cluster[8 * c + FILL]):
        change_block(t, c, used)


@kernel
def split_bucket(t, b):
    """Cut a bucket in halves and move down what one of them encloses; the two buckets, -1 where a half has nothing."""
    cluster, partition = t.cluster, t.partition
    owner = lower(cluster[8 * b + UP])
    key = upper(partition[4 * owner + KEY])
    bits = bits_of_cluster(cluster[8 * b + SHAPE])
    cluster[8 * b + SHAPE] |= SPLIT
    made = np.full(2, -1, np.int64)
    bit = np.uint64(63 - bits)
    for side in range(2):
        # As deep as all that lies in this half has in common.
        block, used = cluster[8 * b + BLOCK], upper(cluster[8 * b + FILL])
        at, count, one, level = block, 0, np.uint64(0), np.int64(64)
        while at < block + used:
            _, low, high = interval_of(t.words, at, key)
            if low >> bit == high >> bit and (low >> bit & np.uint64(1)) == np.uint64(side):
                if count == 0:
                    one = low
                level = min(level, common_bits(one, low), common_bits(one, high))
                count += 1
            at += row_words(t.words, at)
        if count == 0:
            continue
        keep = ~np.uint64(0) << np.uint64(64 - level)
        child = new_cluster(t, np.int64(one & keep), level, b, owner)
        children = cluster[8 * b + CHILDREN]
        cluster[8 * b + CHILDREN] = pair(upper(children), child) if side else pair(child, lower(children))
        move_half(t, b, key, child, bit, side)
        made[side] = child
    return made[0], made[1]


@inline
def vote_of(t, c, at):
    """The key that ranks best for a row of an l-node, of those that have no p-node yet and enough rows there; or -1."""
    words, tally, few = t.words, t.tally, t.state[MIN_SIZE]
    q, end = first_check(words, at), at + row_words(words, at)
    best, least = np.int64(-1), USELESS
    while q < end:
        key = directory_key(words[q])
        if (
            key >= 0
            and tally[key] & 0xFFFF_FFFF >= few
            and not is_on_way(t, c, key >> 3)
            and find_partition(t, c, key) < 0
        ):
            score = score_of(t, words, q, key)
            if score < least:
                best, least = key, score
        q += check_words(words[q])
    return best


@inline
def count_keys(t, block, end, by):
    """Count in `tally` how many rows have each key; `by` 0 clears it again."""
    words, tally = t.words, t.tally
    at = block
    while at < end:
        q, stop = first_check(words, at), at + row_words(words, at)
        while q < stop:
            key = directory_key(words[q])
            if key >= 0:
                tally[key] = tally[key] * by + by
            q += check_words(words[q])
        at = stop


@kernel
def partition_leaf(t, c):
    """One step of SpacePartitioning (Algorithm 5): a p-node for the best attribute, and its expressions below it.

    The new top bucket, or -1: no attribute occurs often enough, and the l-node is allowed to be larger.
    """
    cluster, partition, tally, state, work = t.cluster, t.partition, t.tally, t.state, t.work
    block = cluster[8 * c + BLOCK]
    end = block + upper(cluster[8 * c + FILL])
    last = len(work) - 1  # votes lie at the end, where nobody else writes
    count_keys(t, block, end, 1)
    at, i, chosen, most = block, 0, np.int64(-1), np.int64(0)
    while at < end:
        key = vote_of(t, c, at)
        work[last - i] = key
        if key >= 0:
            tally[key] += np.int64(1) << 32
            if tally[key] >> 32 > most:
                chosen, most = key, tally[key] >> 32
        at += row_words(t.words, at)
        i += 1
    count_keys(t, block, end, 0)
    full = 4 * state[SLOTS] > 3 * len(t.slot_key)  # until there is room for more
    if chosen < 0 or most < 2 or full:
        leaf = cluster[8 * c + LEAF]
        cluster[8 * c + LEAF] = pair(upper(leaf), lower(leaf) + state[MAX_CAP])
        return np.int64(-1)
    p = new_partition(t, c, chosen, ATOMIC if chosen & 7 == ANY else 0)
    top = partition[4 * p + TOP]
    at, kept, moved, i = block, block, 0, 0
    while at < end:
        size = row_words(t.words, at)
        if work[last - i] == chosen:
            add_row(t, top, t.words, at)
            moved += 1
        else:
            kept = keep_row(t, at, kept, size)
        at += size
        i += 1
    left_behind(t, c, kept - block, moved)
    partition[4 * p + BELOW] = moved
    return np.int64(top)


@kernel
def settle(t, c):
    """SpaceClustering and SpacePartitioning (Algorithms 5 and 6) until no l-node overflows."""
    cluster, work, state = t.cluster, t.work, t.state
    waiting = 1
    work[0] = c
    while waiting:
        c = np.int64(work[waiting - 1])
        if upper(cluster[8 * c + LEAF]) <= lower(cluster[8 * c + LEAF]):
            waiting -= 1
            continue
        if not is_open(cluster[8 * c + SHAPE]):
            top = partition_leaf(t, c)
            if top >= 0:
                # The capacity follows what is left (§4.2).
                left = upper(cluster[8 * c + LEAF])
                cap = max(1, (left + state[MAX_CAP] - 1) // state[MAX_CAP]) * state[MAX_CAP]
                cluster[8 * c + LEAF] = pair(left, cap)
                work[waiting] = top
                waiting += 1
            continue
        a, b = split_bucket(t, c)
        if a >= 0:
            work[waiting] = a
            waiting += 1
        if b >= 0:
            work[waiting] = b
            waiting += 1


@kernel
def insert_row(t, source, at):
    """InsertBETree from the root, and what follows from it."""
    state = t.state
    note_row(t, source, at, 1)
    state[ROWS] += 1
    c = place_row(t, source, at, 0)
    state[HIGHEST] = max(state[HIGHEST], (source[at] >> 32) + 1)
    if upper(t.cluster[8 * c + LEAF]) > lower(t.cluster[8 * c + LEAF]):
        settle(t, c)


@kernel
def insert_rows(t, source, offsets, first, stop):
    """Insert rows first … stop-1 of source; the first that it did not, because some pool ran short."""
    for r in range(first, stop):
        if not has_room(t, 4 * row_words(source, offsets[r])):
            return r
        insert_row(t, source, offsets[r])
    return stop


@kernel
def foresee_rows(t, source, offsets, first, stop, by):
    """Note what rows that will be inserted have, so that even the first of them is placed by it; or forget it again."""
    for r in range(first, stop):
        note_row(t, source, offsets[r], by)
    t.state[ROWS] += by * (stop - first)
