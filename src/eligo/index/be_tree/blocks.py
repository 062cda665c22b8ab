"""Blocks of words, by class of size, with a free list for each; and c-nodes, which have them (layout: nodes.py)."""

from __future__ import annotations

from eligo.index.be_tree.nodes import (
    ATOMIC,
    BLOCK,
    CHILDREN,
    CLUSTERS,
    DEAD,
    DIRECTORY,
    FILL,
    FREE_CLUSTER,
    FREE_WORDS,
    LEAF,
    MAX_CAP,
    PREFIX,
    SHAPE,
    SPLIT,
    UP,
    WORDS,
)
from eligo.index.dynamic.int_pair import lower, pair, upper
from eligo.jit import inline, kernel


@inline
def block_class(size):
    """The class of the smallest block that holds so many words: 16, 24, 32, 48, 64, 96 …"""
    k, room = 0, 16
    while room < size:
        k += 1
        room = 16 << (k >> 1) if k & 1 == 0 else 24 << (k >> 1)
    return k


@inline
def class_words(k):
    return 16 << (k >> 1) if k & 1 == 0 else 24 << (k >> 1)


@kernel
def new_block(t, size):
    k = block_class(size)
    at = t.free_block[k]
    if at >= 0:
        t.free_block[k] = t.words[at]
        t.state[FREE_WORDS] -= class_words(k)
        return at
    at = t.state[WORDS]
    t.state[WORDS] += class_words(k)
    return at


@kernel
def free_block(t, at, room):
    k = block_class(room)
    t.words[at] = t.free_block[k]
    t.free_block[k] = at
    t.state[FREE_WORDS] += class_words(k)


@kernel
def change_block(t, c, size):
    """Give a c-node's rows a block for so many words."""
    cluster = t.cluster
    block, used, room = cluster[8 * c + BLOCK], upper(cluster[8 * c + FILL]), lower(cluster[8 * c + FILL])
    if size > 0:
        other = new_block(t, size)
        for i in range(used):
            t.words[other + i] = t.words[block + i]
        cluster[8 * c + BLOCK] = other
        cluster[8 * c + FILL] = pair(used, class_words(block_class(size)))
    else:
        cluster[8 * c + BLOCK], cluster[8 * c + FILL] = -1, 0
    if block >= 0:
        free_block(t, block, room)


@kernel
def new_cluster(t, prefix, bits, parent, owner):
    cluster, state = t.cluster, t.state
    c = state[FREE_CLUSTER]
    if c >= 0:
        state[FREE_CLUSTER] = cluster[8 * c]
    else:
        c = state[CLUSTERS]
        state[CLUSTERS] += 1
    at = 8 * c
    cluster[at + PREFIX] = prefix
    cluster[at + CHILDREN] = pair(-1, -1)
    cluster[at + BLOCK] = -1
    cluster[at + FILL] = 0
    cluster[at + LEAF] = pair(0, state[MAX_CAP])
    cluster[at + DIRECTORY] = 0
    cluster[at + UP] = pair(parent, owner)
    cluster[at + SHAPE] = bits
    return c


@kernel
def drop_cluster(t, c):
    cluster, state = t.cluster, t.state
    if cluster[8 * c + BLOCK] >= 0:
        free_block(t, cluster[8 * c + BLOCK], lower(cluster[8 * c + FILL]))
    if lower(cluster[8 * c + DIRECTORY]) > 0:
        free_block(t, upper(cluster[8 * c + DIRECTORY]), lower(cluster[8 * c + DIRECTORY]))
    cluster[8 * c] = state[FREE_CLUSTER]
    cluster[8 * c + SHAPE] = DEAD
    state[FREE_CLUSTER] = c


@inline
def bits_of_cluster(shape):
    return shape & 0x7F


@inline
def is_open(shape):
    """Whether a bucket could still be cut, so that it must not have a p-directory."""
    return shape & 0x7F < ATOMIC and shape & SPLIT == 0
