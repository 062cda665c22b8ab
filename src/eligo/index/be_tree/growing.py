"""Insertion, splitting and partitioning (be-tree.txt §4.2–4.3, Algorithms 3–6).

InsertBETree and InsertCDir are one loop down the tree; SpacePartitioning and SpaceClustering call each other in the
paper and are one loop over a list of c-nodes that may overflow here.

Which p-node takes a row, and which attribute an overflowing l-node is partitioned by, is a matter of rank (§5). Gain is
the number of expressions that have the attribute. Loss is what the paper estimates by a histogram: a predicate that is
one value parts from all others, one that is a range from few, so the first counts four times and a presence one.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.index.be_tree.nodes import (
    ATOMIC,
    BELOW,
    BLOCK,
    CHILDREN,
    DIRECTORY,
    FILL,
    HIGHEST,
    KEY,
    LEAF,
    MAX_CAP,
    MIN_SIZE,
    PREFIX,
    ROWS,
    SHAPE,
    SPLIT,
    TOP,
    UP,
    bits_of_cluster,
    change_block,
    find_partition,
    has_room,
    lower,
    new_cluster,
    new_partition,
    pair,
    unsigned,
    upper,
    within,
)
from eligo.index.dynamic.rows import (
    ANY,
    ASK,
    HEADER,
    INSIDE,
    NEGATIVE,
    OUTSIDE,
    check_words,
    high_coordinate_of,
    high_of,
    low_coordinate_of,
    low_of,
    row_words,
)
from eligo.jit import inline, kernel

POINT, RANGE, PRESENCE = 4, 2, 1  # what a predicate counts in the rank of its attribute


@inline
def directory_key(code):  # type: ignore[no-untyped-def]
    """The key of the p-node that a check could lie below, or -1: an absent attribute satisfies it."""
    flags, shape = code >> 8, (code >> 4) & 7
    if flags & codes.ABSENT_HOLDS:
        return np.int64(-1)
    kind = code & 15
    # A negated predicate on several values holds for a list without any.
    if flags & codes.ALL_VALUES or (shape != ASK and shape & NEGATIVE):
        kind = ANY
    return (code >> 40) << 3 | kind


@inline
def check_rank(words, q):  # type: ignore[no-untyped-def]
    code = words[q]
    if directory_key(code) & 7 == ANY:
        return PRESENCE
    return POINT if low_of(code, words, q + 1) == high_of(code, words, q + 1) else RANGE


@inline
def is_subsumed(words, q, prefix, bits):  # type: ignore[no-untyped-def]
    """Whether everything that comes to a bucket satisfies the check: the two are the same set (§5)."""
    code = words[q]
    shape = (code >> 4) & 7
    low, high = low_coordinate_of(code, words, q + 1), high_coordinate_of(code, words, q + 1)
    if code >> 8 & 0xF:
        return False
    if shape == OUTSIDE:
        return low > high  # the attribute is there, and that is all
    if shape != INSIDE or bits == 0:
        return False
    first = np.uint64(prefix)
    last = first if bits == 64 else first | (~np.uint64(0) >> np.uint64(bits))
    return unsigned(low) == first and unsigned(high) == last


@kernel
def add_row(t, c, source, at):  # type: ignore[no-untyped-def]
    """Append the row source[at:] to a c-node's l-node; checks that the way there guarantees go to its end."""
    cluster, partition = t.cluster, t.partition
    size = row_words(source[at])
    used, room = upper(cluster[8 * c + FILL]), lower(cluster[8 * c + FILL])
    if used + size > room:
        change_block(t, c, used + size)
    words = t.words
    to = cluster[8 * c + BLOCK] + used
    for i in range(size):
        words[to + i] = source[at + i]
    cluster[8 * c + FILL] = pair(used + size, lower(cluster[8 * c + FILL]))
    leaf = cluster[8 * c + LEAF]
    cluster[8 * c + LEAF] = pair(upper(leaf) + 1, lower(leaf))
    t.where[words[to] >> 32] = c
    using = words[to + 1] & 0xFFFF_FFFF
    level = np.int64(c)
    owner = lower(cluster[8 * level + UP])
    while owner >= 0:
        key = upper(partition[4 * owner + KEY])
        prefix, bits = cluster[8 * level + PREFIX], bits_of_cluster(cluster[8 * level + SHAPE])
        q = to + HEADER
        for _ in range(using):
            code = words[q]
            length = check_words(code)
            if directory_key(code) == key and is_subsumed(words, q, prefix, bits):
                # To the end of the row; what is subsumed has no extra words.
                first, second = words[q + 1], words[q + length - 1]
                end = to + size - length
                for i in range(q, end):
                    words[i] = words[i + length]
                words[end], words[end + 1], words[end + length - 1] = code, first, second
                using -= 1
                break
            q += length
        level = np.int64(lower(partition[4 * owner + KEY]))
        owner = lower(cluster[8 * level + UP])
    words[to + 1] = using << 32 | (words[to + 1] & 0xFFFF_FFFF)


@inline
def interval_of(words, at, key):  # type: ignore[no-untyped-def]
    """Where a row has its check of that key (-1: nowhere), and its interval in unsigned order.

    A row may have several on an attribute with several values: the one of the highest rank counts, then the lowest one,
    in whatever order they stand.
    """
    checks = words[at + 1] & 0xFFFF_FFFF
    q = at + HEADER
    best, most, low, high = np.int64(-1), 0, np.uint64(0), ~np.uint64(0)
    for _ in range(checks):
        code = words[q]
        if directory_key(code) == key:
            rank, first, last = check_rank(words, q), np.uint64(0), ~np.uint64(0)
            if key & 7 != ANY:
                first = unsigned(low_coordinate_of(code, words, q + 1))
                last = unsigned(high_coordinate_of(code, words, q + 1))
            if rank > most or (rank == most and (first < low or (first == low and last < high))):
                best, most, low, high = q, rank, first, last
        q += check_words(code)
    return best, low, high


@inline
def common_bits(a, b):  # type: ignore[no-untyped-def]
    """How many first bits two words have in common."""
    x, n = a ^ b, 64
    while x:
        x >>= np.uint64(1)
        n -= 1
    return n


@kernel
def find_bucket(t, top, low, high):  # type: ignore[no-untyped-def]
    """InsertCDir (Algorithm 4): the smallest bucket for low … high. Between a bucket and a child that skips halves, a
    bucket is made where the interval is the first to need it; and in a half that was empty, a bucket for all of it.
    """
    cluster = t.cluster
    b = np.int64(top)
    while True:
        at = 8 * b
        bits = cluster[at + SHAPE] & 0xFF
        if bits == ATOMIC or cluster[at + SHAPE] & SPLIT == 0:
            return b
        shared = common_bits(low, high)
        if shared <= bits:
            return b  # it lies across the middle
        side = low >> np.uint64(63 - bits) & np.uint64(1)
        children = cluster[at + CHILDREN]
        child = lower(children) if side else upper(children)
        owner = lower(cluster[at + UP])
        if child < 0:
            keep = ~np.uint64(0) << np.uint64(63 - bits)
            made = new_cluster(t, np.int64(low & keep), bits + 1, b, owner)
            cluster[at + CHILDREN] = pair(upper(children), made) if side else pair(made, lower(children))
            return made
        prefix, deep = np.uint64(cluster[8 * child + PREFIX]), cluster[8 * child + SHAPE] & 0xFF
        if shared >= deep and within(low, np.int64(prefix), deep):
            b = np.int64(child)
            continue
        # The child lies deeper than this interval, or elsewhere in the half: a bucket for both comes between.
        level = min(shared, common_bits(low, prefix), deep)
        keep = ~np.uint64(0) << np.uint64(64 - level)
        middle = new_cluster(t, np.int64(low & keep), level, b, owner)
        cluster[8 * middle + SHAPE] |= SPLIT
        place = prefix >> np.uint64(63 - level) & np.uint64(1)
        cluster[8 * middle + CHILDREN] = pair(-1, child) if place else pair(child, -1)
        cluster[8 * child + UP] = pair(middle, owner)
        cluster[at + CHILDREN] = pair(upper(children), middle) if side else pair(middle, lower(children))
        # What lies across the middle of the outer bucket is too large for the new one, so nothing has to move down.
        b = np.int64(middle)


@inline
def used_above(t, c, attribute):  # type: ignore[no-untyped-def]
    """Whether a p-node on the way from the root to a c-node has the attribute."""
    cluster, partition = t.cluster, t.partition
    owner = lower(cluster[8 * c + UP])
    while owner >= 0:
        if upper(partition[4 * owner + KEY]) >> 3 == attribute:
            return True
        owner = lower(cluster[8 * lower(partition[4 * owner + KEY]) + UP])
    return False


@kernel
def place_row(t, source, at, c):  # type: ignore[no-untyped-def]
    """InsertBETree (Algorithm 3) from a c-node down; the c-node that has the row."""
    cluster, partition, slot_key, slot_value = t.cluster, t.partition, t.slot_key, t.slot_value
    checks, popular = source[at + 1] & 0xFFFF_FFFF, t.popular
    while True:
        best, most = np.int64(-1), np.int64(-1)
        if lower(cluster[8 * c + DIRECTORY]) > 0:
            q = at + HEADER
            for _ in range(checks):
                code = source[q]
                one = directory_key(code)
                if one >= 0:
                    p = find_partition(slot_key, slot_value, c, one)
                    if p >= 0:
                        # The attribute that fewest expressions have: fewest events will have it too. A range counts
                        # for as many as points as its rank is lower.
                        rank = np.int64(check_rank(source, q))
                        score = (np.int64(1) << 60) - (popular[one] << 8) // (rank * rank)
                        if score > most:
                            best, most = p, score
                q += check_words(code)
        if best < 0:
            add_row(t, c, source, at)
            return c
        below = partition[4 * best + BELOW]
        partition[4 * best + BELOW] = pair(upper(below) + 1, lower(below))
        key = upper(partition[4 * best + KEY])
        top = upper(partition[4 * best + TOP])
        _, low, high = interval_of(source, at, key)
        c = top if key & 7 == ANY else find_bucket(t, top, low, high)


@kernel
def move_rows(t, c, key, top, side_bit, side):  # type: ignore[no-untyped-def]
    """Move rows of a c-node's l-node on: with `side_bit` < 0 those with a check of the key to the bucket that they need
    below `top`; else those that lie in one half of bucket c to `top`. How many.
    """
    cluster = t.cluster
    block, used = cluster[8 * c + BLOCK], upper(cluster[8 * c + FILL])
    end, at, to, moved = block + used, block, block, 0
    bit = np.uint64(63 - side_bit) if side_bit >= 0 else np.uint64(0)
    while at < end:
        size = row_words(t.words[at])
        q, low, high = interval_of(t.words, at, key)
        goes = q >= 0
        if goes and side_bit >= 0:
            goes = low >> bit == high >> bit and (low >> bit & np.uint64(1)) == np.uint64(side)
        if goes:
            add_row(t, top, t.words, at)
            moved += 1
        else:
            if to < at:
                for i in range(size):
                    t.words[to + i] = t.words[at + i]
            to += size
        at += size
    cluster[8 * c + FILL] = pair(to - block, lower(cluster[8 * c + FILL]))
    leaf = cluster[8 * c + LEAF]
    cluster[8 * c + LEAF] = pair(upper(leaf) - moved, lower(leaf))
    if 4 * (to - block) < 3 * lower(cluster[8 * c + FILL]):
        change_block(t, c, to - block)
    return moved


@kernel
def split_bucket(t, b):  # type: ignore[no-untyped-def]
    """Cut a bucket in halves and move down what one of them encloses; the two buckets, -1 where a half has nothing."""
    cluster, partition = t.cluster, t.partition
    owner = lower(cluster[8 * b + UP])
    key = upper(partition[4 * owner + KEY])
    bits = cluster[8 * b + SHAPE] & 0xFF
    cluster[8 * b + SHAPE] |= SPLIT
    made = np.full(2, -1, np.int64)
    for side in range(2):
        # As deep as all that lies in this half has in common.
        block, used = cluster[8 * b + BLOCK], upper(cluster[8 * b + FILL])
        at, count, one, level = block, 0, np.uint64(0), 64
        bit = np.uint64(63 - bits)
        while at < block + used:
            _, low, high = interval_of(t.words, at, key)
            if low >> bit == high >> bit and (low >> bit & np.uint64(1)) == np.uint64(side):
                if count == 0:
                    one = low
                level = min(level, common_bits(one, low), common_bits(one, high))
                count += 1
            at += row_words(t.words[at])
        if count == 0:
            continue
        keep = ~np.uint64(0) << np.uint64(64 - level)
        child = new_cluster(t, np.int64(one & keep), level, b, owner)
        children = cluster[8 * b + CHILDREN]
        cluster[8 * b + CHILDREN] = pair(upper(children), child) if side else pair(child, lower(children))
        move_rows(t, b, key, child, bits, side)
        made[side] = child
    return made[0], made[1]


@kernel
def partition_leaf(t, c):  # type: ignore[no-untyped-def]
    """One step of SpacePartitioning (Algorithm 5): a p-node for the best attribute, and its expressions below it.

    The new top bucket, or -1: no attribute occurs often enough, and the l-node is allowed to be larger.
    """
    cluster, partition, tally, words, state = t.cluster, t.partition, t.tally, t.words, t.state
    block, used = cluster[8 * c + BLOCK], upper(cluster[8 * c + FILL])
    rows, cap = upper(cluster[8 * c + LEAF]), lower(cluster[8 * c + LEAF])
    for counting in range(2):
        at, best, most = block, np.int64(-1), np.int64(0)
        while at < block + used:
            checks = words[at + 1] & 0xFFFF_FFFF
            q = at + HEADER
            for _ in range(checks):
                code = words[q]
                key = directory_key(code)
                if key >= 0:
                    if counting == 0:
                        tally[key] += (np.int64(1) << 32) + check_rank(words, q)
                    else:
                        score = tally[key]
                        tally[key] = 0
                        better = score >> 32 >= state[MIN_SIZE] and score & 0xFFFF_FFFF > most
                        if better and not used_above(t, c, key >> 3):
                            best, most = key, score & 0xFFFF_FFFF
                q += check_words(code)
            at += row_words(words[at])
    if best < 0:
        cluster[8 * c + LEAF] = pair(rows, cap + state[MAX_CAP])
        return np.int64(-1)
    p = new_partition(t, c, best, ATOMIC if best & 7 == ANY else 0)
    top = upper(partition[4 * p + TOP])
    moved = move_rows(t, c, best, top, -1, 0)
    partition[4 * p + BELOW] = pair(moved, 0)
    return np.int64(top)


@kernel
def settle(t, c):  # type: ignore[no-untyped-def]
    """SpaceClustering and SpacePartitioning (Algorithms 5 and 6) until no l-node overflows."""
    cluster, work, state = t.cluster, t.work, t.state
    waiting = 1
    work[0] = c
    while waiting:
        c = np.int64(work[waiting - 1])
        rows, cap = upper(cluster[8 * c + LEAF]), lower(cluster[8 * c + LEAF])
        if rows <= cap:
            waiting -= 1
            continue
        shape = cluster[8 * c + SHAPE]
        bits = bits_of_cluster(shape)
        if bits < 0 or bits == ATOMIC or shape & SPLIT:
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


@inline
def count_attributes(t, source, at, by):  # type: ignore[no-untyped-def]
    """Note for every key of a row that so many more expressions have it."""
    popular = t.popular
    q = at + HEADER
    for _ in range(source[at + 1] & 0xFFFF_FFFF):
        key = directory_key(source[q])
        if key >= 0:
            popular[key] += by
        q += check_words(source[q])


@kernel
def insert_rows(t, source, offsets, first, stop):  # type: ignore[no-untyped-def]
    """Insert rows first … stop-1 of source; the first that it did not, because some pool ran short."""
    state = t.state
    for r in range(first, stop):
        if not has_room(t, 4 * row_words(source[offsets[r]])):
            return r
        count_attributes(t, source, offsets[r], 1)
        c = place_row(t, source, offsets[r], 0)
        state[ROWS] += 1
        state[HIGHEST] = max(state[HIGHEST], (source[offsets[r]] >> 32) + 1)
        if upper(t.cluster[8 * c + LEAF]) > lower(t.cluster[8 * c + LEAF]):
            settle(t, c)
    return stop
