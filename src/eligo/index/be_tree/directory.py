"""P-nodes and the directories that have them (the BE-Tree paper §4.2; layout: nodes.py)."""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import mixed
from eligo.index.be_tree.blocks import block_room, new_cluster
from eligo.index.be_tree.nodes import (
    BELOW,
    DIRECTORY,
    FREE_PARTITION,
    KEY,
    PARTITIONS,
    SLOTS,
    TOP,
    UP,
    put_slot,
)
from eligo.index.dynamic.allocator import give_block, take_block
from eligo.index.dynamic.int_pair import lower, pair, upper
from eligo.jit import inline, kernel


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
    if count == 0 or block_room(count) == count:
        other = take_block(t.words, t.heads, block_room(count + 1))
        for i in range(count):
            t.words[other + i] = t.words[at + i]
        if count:
            give_block(t.words, t.heads, at, count)
        at = other
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
    if count == 0 or block_room(count) != block_room(count + 1):
        other = take_block(t.words, t.heads, block_room(count)) if count else np.int64(0)
        for j in range(count):
            t.words[other + j] = t.words[at + j]
        give_block(t.words, t.heads, at, block_room(count + 1))
        at = other
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
