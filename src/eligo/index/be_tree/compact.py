"""Memory given back after many deletions: blocks sink into free places below them, and the end is cut off.

The walk of adapt.py calls this for every c-node that it comes to while a quarter of all words is free, and cuts off
the end after each round.
"""

from __future__ import annotations

import numpy as np

from eligo.index.be_tree.blocks import block_room
from eligo.index.be_tree.nodes import BLOCK, CLUSTERS, DEAD, DIRECTORY, FILL, SHAPE
from eligo.index.rows.allocator import CLASSES, FIRST, FREE, USED, give_block, heap_class, heap_words
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.jit import inline, kernel

TRIES = 64  # free blocks of a class that are looked at


@inline
def is_sparse(heads):
    return 4 * heads[FREE] > heads[USED]


@kernel
def lower_block(t, room, at):
    """Take the lowest of some free blocks of so many words out of their list, if it lies below `at`; or -1."""
    words, free, k = t.words, t.heads, FIRST + heap_class(room)
    best, before_best, before, one = np.int64(at), np.int64(-1), np.int64(-1), free[k]
    for _ in range(TRIES):
        if one < 0:
            break
        if one < best:
            best, before_best = one, before
        before, one = one, words[one]
    if best == at:
        return np.int64(-1)
    if before_best < 0:
        free[k] = words[best]
    else:
        words[before_best] = words[best]
    free[FREE] -= room
    return best


@kernel
def sink_blocks(t, c):
    """Move the rows and the p-directory of a c-node to free blocks below them."""
    cluster, words = t.cluster, t.words
    block, room = cluster[8 * c + BLOCK], lower(cluster[8 * c + FILL])
    if block >= 0:
        # A larger block will do as well, if it is not much larger.
        size = room
        for _ in range(3):
            other = lower_block(t, size, block)
            if other >= 0:
                for i in range(upper(cluster[8 * c + FILL])):
                    words[other + i] = words[block + i]
                cluster[8 * c + BLOCK] = other
                cluster[8 * c + FILL] = pair(upper(cluster[8 * c + FILL]), size)
                give_block(words, t.heads, block, room)
                break
            size = block_room(size + 1)
    entries, count = upper(cluster[8 * c + DIRECTORY]), lower(cluster[8 * c + DIRECTORY])
    if count:
        other = lower_block(t, block_room(count), entries)
        if other >= 0:
            for i in range(count):
                words[other + i] = words[entries + i]
            cluster[8 * c + DIRECTORY] = pair(other, count)
            give_block(words, t.heads, entries, block_room(count))


@kernel
def cut_off_end(t):
    """Forget the free blocks behind the last one that is used."""
    cluster, words, free = t.cluster, t.words, t.heads
    end = np.int64(0)
    for c in range(t.state[CLUSTERS]):
        if cluster[8 * c + SHAPE] & 0x7F == DEAD:
            continue
        if cluster[8 * c + BLOCK] >= 0:
            end = max(end, cluster[8 * c + BLOCK] + lower(cluster[8 * c + FILL]))
        count = lower(cluster[8 * c + DIRECTORY])
        if count:
            end = max(end, upper(cluster[8 * c + DIRECTORY]) + block_room(count))
    for k in range(FIRST, FIRST + CLASSES):
        one, last = free[k], np.int64(-1)
        free[k] = -1
        while one >= 0:
            after = words[one]
            if one >= end:
                free[FREE] -= heap_words(k - FIRST)
            elif last < 0:
                free[k] = last = one
                words[one] = -1
            else:
                words[last] = one
                words[one] = -1
                last = one
            one = after
    free[USED] = end
