"""C-nodes and p-nodes, made and given back; the blocks of words that rows and p-directories lie in, and the slots by
which p-nodes are found (the BE-Tree paper §4.2; layout: nodes.py).
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import mixed
from eligo.index.be_tree.nodes import (
    ATOMIC,
    BELOW,
    BLOCK,
    CHILDREN,
    CLUSTERS,
    DEAD,
    DIRECTORY,
    FILL,
    FREE_CLUSTER,
    FREE_PARTITION,
    KEY,
    LEAF,
    MAX_CAP,
    PARTITIONS,
    PREFIX,
    SHAPE,
    SLOTS,
    SPLIT,
    TOP,
    UP,
    put_slot,
)
from eligo.index.rows.allocator import give_block, move_block, take_block
from eligo.index.rows.int_pair import lower, pair, upper
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


@inline
def find_partition(t, c, key):
    """The p-node of a key in a c-node's directory, or -1."""
    if c == 0:
        top = np.int64(t.crown[key]) - 1
        return lower(t.cluster[8 * top + UP]) if top >= 0 else np.int64(-1)
    slot_key, slot_value = t.slot_key, t.slot_value
    mask = np.uint64(len(slot_key) - 1)
    wanted = np.int64(c) << 32 | key
    at = mixed(np.uint64(0), wanted) & mask
    while slot_key[at] != -1:
        if slot_key[at] == wanted and slot_value[at] > 0:
            return np.int64(slot_value[at]) - 1
        at = (at + np.uint64(1)) & mask
    return np.int64(-1)


@kernel
def new_partition(t, c, key, top_bits):
    """A p-node with an empty top bucket in a c-node's directory."""
    partition, state = t.partition, t.state
    p = state[FREE_PARTITION]
    if p >= 0:
        state[FREE_PARTITION] = partition[4 * p]
    else:
        p = state[PARTITIONS]
        state[PARTITIONS] += 1
    top = new_cluster(t, 0, top_bits, c, p)
    partition[4 * p + KEY] = pair(key, c)
    partition[4 * p + TOP] = top
    partition[4 * p + BELOW] = 0
    add_entry(t, c, np.int64(key) << 32 | top)
    if c == 0:
        t.crown[key] = top + 1
    else:
        state[SLOTS] += put_slot(t.slot_key, t.slot_value, np.int64(c) << 32 | key, p + 1)
    return p


@kernel
def add_entry(t, c, entry):
    """Append to a c-node's p-directory, whose block is as large as its class."""
    cluster = t.cluster
    at, count = upper(cluster[8 * c + DIRECTORY]), lower(cluster[8 * c + DIRECTORY])
    if count == 0:
        at = take_block(t.words, t.heads, block_room(1))
    elif block_room(count) == count:
        at = move_block(t.words, t.heads, at, count, count, block_room(count + 1))
    t.words[at + count] = entry
    cluster[8 * c + DIRECTORY] = pair(at, count + 1)


@kernel
def drop_entry(t, c, key):
    """Take a key out of a c-node's p-directory."""
    cluster, words = t.cluster, t.words
    at, count = upper(cluster[8 * c + DIRECTORY]), lower(cluster[8 * c + DIRECTORY])
    i = at
    while words[i] >> 32 != key:
        i += 1
    count -= 1
    words[i] = words[at + count]
    if count == 0:
        give_block(words, t.heads, at, block_room(1))
    elif block_room(count) != block_room(count + 1):
        at = move_block(words, t.heads, at, count, block_room(count + 1), block_room(count))
    cluster[8 * c + DIRECTORY] = pair(at, count) if count else 0


@kernel
def drop_partition(t, p):
    """Take a p-node whose top bucket is gone out of its directory."""
    partition, slot_key, slot_value = t.partition, t.slot_key, t.slot_value
    key, c = upper(partition[4 * p + KEY]), lower(partition[4 * p + KEY])
    drop_entry(t, c, key)
    if c == 0:
        t.crown[key] = 0
    else:
        mask = np.uint64(len(slot_key) - 1)
        wanted = np.int64(c) << 32 | key
        at = mixed(np.uint64(0), wanted) & mask
        while slot_key[at] != wanted or slot_value[at] == 0:
            at = (at + np.uint64(1)) & mask
        slot_value[at] = 0  # the key stays, so that searching goes on behind it
    partition[4 * p] = t.state[FREE_PARTITION]
    t.state[FREE_PARTITION] = p
