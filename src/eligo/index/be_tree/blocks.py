"""C-nodes, and the blocks of words that they have (layout: nodes.py)."""

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
    LEAF,
    MAX_CAP,
    PREFIX,
    SHAPE,
    SPLIT,
    UP,
)
from eligo.index.dynamic.allocator import give_block, take_block
from eligo.index.dynamic.int_pair import lower, pair, upper
from eligo.jit import inline, kernel


@inline
def block_room(size):
    """Words of a block for so many of a c-node: 16, 24, 32, 48, 64, 96 …, so that it seldom has to move as it grows."""
    room, half = 16, 24
    while room < size:
        room, half = half, 2 * room
    return room


@kernel
def change_block(t, c, size):
    """Give a c-node's rows a block for so many words."""
    cluster = t.cluster
    block, used, room = cluster[8 * c + BLOCK], upper(cluster[8 * c + FILL]), lower(cluster[8 * c + FILL])
    if size > 0:
        other = take_block(t.words, t.heads, block_room(size))
        for i in range(used):
            t.words[other + i] = t.words[block + i]
        cluster[8 * c + BLOCK] = other
        cluster[8 * c + FILL] = pair(used, block_room(size))
    else:
        cluster[8 * c + BLOCK], cluster[8 * c + FILL] = -1, 0
    if block >= 0:
        give_block(t.words, t.heads, block, room)


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
        give_block(t.words, t.heads, cluster[8 * c + BLOCK], lower(cluster[8 * c + FILL]))
    if lower(cluster[8 * c + DIRECTORY]) > 0:
        give_block(t.words, t.heads, upper(cluster[8 * c + DIRECTORY]), block_room(lower(cluster[8 * c + DIRECTORY])))
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
