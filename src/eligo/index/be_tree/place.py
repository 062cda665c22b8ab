"""Insertion (the BE-Tree paper §6, Algorithms 3 and 4): InsertBETree and InsertCDir are one loop down the tree.

An expression goes below the p-node of the attribute that ranks best for it (rank.py). Below the root there is a
p-node for an attribute once `min_size` expressions of the whole tree have it and one comes that ranks it best;
elsewhere an l-node that overflows makes p-nodes (insert.py).
"""

from __future__ import annotations

import numpy as np

from eligo.index.be_tree.blocks import bits_of_cluster, change_block, find_partition, new_cluster, new_partition
from eligo.index.be_tree.nodes import (
    ATOMIC,
    BELOW,
    BLOCK,
    CHILDREN,
    DIRECTORY,
    FILL,
    KEY,
    LEAF,
    MIN_SIZE,
    PREFIX,
    SHAPE,
    SPLIT,
    TOP,
    UP,
    within,
)
from eligo.index.be_tree.rank import USELESS, chance_of, common_bits, directory_key, interval_of, is_subsumed, score_of
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.index.rows.line import ANY
from eligo.index.rows.packed_predicate import (
    DISTANCES,
    attribute_of,
    check_words,
    first_check,
    is_plain_check,
    row_words,
    use_words,
)
from eligo.jit import inline, kernel


@inline
def is_guaranteed(t, c, source, q):
    """Whether the way to a c-node guarantees a check."""
    cluster, partition = t.cluster, t.partition
    key, level = directory_key(source[q]), np.int64(c)
    owner = lower(cluster[8 * level + UP])
    while owner >= 0:
        if upper(partition[4 * owner + KEY]) == key:
            prefix, bits = cluster[8 * level + PREFIX], bits_of_cluster(cluster[8 * level + SHAPE])
            return is_subsumed(source, q, prefix, bits)
        level = np.int64(lower(partition[4 * owner + KEY]))
        owner = lower(cluster[8 * level + UP])
    return False


@inline
def is_on_way(t, c, attribute):
    """Whether a p-node on the way from the root to a c-node has the attribute."""
    cluster, partition = t.cluster, t.partition
    owner = lower(cluster[8 * c + UP])
    while owner >= 0:
        if upper(partition[4 * owner + KEY]) >> 3 == attribute:
            return True
        owner = lower(cluster[8 * lower(partition[4 * owner + KEY]) + UP])
    return False


@inline
def likeliest_to_fail_first(t, c, first, stop):
    """Put that one of some plain checks before the others that fewest events satisfy."""
    words = t.words
    best, least = first, 2.0
    for q in range(first, stop):
        # That an event has an attribute of the way here is no news.
        chance = 1.0 if is_on_way(t, c, attribute_of(words[q])) else chance_of(t, words[q])
        if chance < least:
            best, least = q, chance
    word = words[best] if stop > first else np.int64(0)
    for q in range(best, first, -1):
        words[q] = words[q - 1]
    if stop > first:
        words[first] = word


@kernel
def write_row(t, c, source, at, to):
    """Write the row source[at:] to words[to:] as a c-node should have it: plain checks in use first, then the rest that
    is in use, then what the way to the c-node guarantees.
    """
    words = t.words
    begin, end = first_check(source, at), at + row_words(source, at)
    for i in range(begin - at):
        words[to + i] = source[at + i]
    to += begin - at
    first = to
    q, n, guaranteed = begin, 0, np.uint64(0)
    while q < end:
        code = source[q]
        if n < 64 and is_guaranteed(t, c, source, q):
            guaranteed |= np.uint64(1) << np.uint64(n)
        elif is_plain_check(code):
            i = to
            while i > first and words[i - 1] & DISTANCES > code & DISTANCES:
                words[i] = words[i - 1]
                i -= 1
            words[i] = code
            to += 1
        q += check_words(code)
        n += 1
    likeliest_to_fail_first(t, c, first, to)
    used = np.int64(0)
    for behind in range(2):
        q, n = begin, 0
        while q < end:
            code = source[q]
            length = check_words(code)
            gone = n < 64 and guaranteed >> np.uint64(n) & np.uint64(1) == 1
            if gone if behind else not gone and not is_plain_check(code):
                for i in range(length):
                    words[to + i] = source[q + i]
                to += length
            q += length
            n += 1
        if behind == 0:
            used = to - first
    use_words(words, first - (begin - at), used)


@kernel
def add_row(t, c, source, at):
    """Append the row source[at:] to a c-node's l-node."""
    cluster = t.cluster
    size = row_words(source, at)
    used = upper(cluster[8 * c + FILL])
    if used + size > lower(cluster[8 * c + FILL]):
        change_block(t, c, used + size)
    write_row(t, c, source, at, cluster[8 * c + BLOCK] + used)
    cluster[8 * c + FILL] = pair(used + size, lower(cluster[8 * c + FILL]))
    leaf = cluster[8 * c + LEAF]
    cluster[8 * c + LEAF] = pair(upper(leaf) + 1, lower(leaf))
    t.where[source[at] >> 32] = c


@kernel
def find_bucket(t, top, low, high):
    """InsertCDir (Algorithm 4): the smallest bucket for low … high. Between a bucket and a child that skips halves, a
    bucket is made where the interval is the first to need it; and in a half that was empty, a bucket for all of it.
    """
    cluster = t.cluster
    b = np.int64(top)
    while True:
        at = 8 * b
        bits = bits_of_cluster(cluster[at + SHAPE])
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
        prefix, deep = np.uint64(cluster[8 * child + PREFIX]), bits_of_cluster(cluster[8 * child + SHAPE])
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
def best_partition(t, source, at, c):
    """The p-node of a c-node's directory that ranks best for a row, -1: none that is of use; and its score.

    At the root also the key that ranks best whether it has a p-node or not, and its score.
    """
    popular, state = t.popular, t.state
    q, end = first_check(source, at), at + row_words(source, at)
    best, least, key, wish = np.int64(-1), USELESS, np.int64(-1), USELESS
    while q < end:
        one = directory_key(source[q])
        if one >= 0:
            p = find_partition(t, c, one)
            if p >= 0 or (c == 0 and popular[one] >= state[MIN_SIZE]):
                score = score_of(t, source, q, one)
                if p >= 0 and score < least:
                    best, least = p, score
                if score < wish:
                    key, wish = one, score
        q += check_words(source[q])
    return best, least, key, wish


@kernel
def place_row(t, source, at, c):
    """InsertBETree (Algorithm 3) from a c-node down; the c-node that has the row."""
    cluster, partition = t.cluster, t.partition
    while True:
        best = np.int64(-1)
        if c == 0 or lower(cluster[8 * c + DIRECTORY]) > 0:
            best, _, key, _ = best_partition(t, source, at, c)
            if c == 0 and key >= 0 and find_partition(t, 0, key) < 0:
                best = new_partition(t, 0, key, ATOMIC if key & 7 == ANY else 0)
        if best < 0:
            add_row(t, c, source, at)
            return c
        partition[4 * best + BELOW] += 1
        key = upper(partition[4 * best + KEY])
        top = partition[4 * best + TOP]
        _, low, high = interval_of(source, at, key)
        c = top if key & 7 == ANY else find_bucket(t, top, low, high)
