"""The nodes of a BE-Tree in flat pools with free lists (be-tree.txt §4.1).

    c-node c    cluster[8c …], one cache line; two numbers in a word are `pair`s:
                PREFIX           the bucket: values whose coordinate begins with these bits (unsigned order)
                CHILDREN         left, right: buckets within it, -1: none
                BLOCK            where its l-node's rows lie in `words`
                FILL             words used, words that the block has
                LEAF             rows of the l-node, its capacity max_cap^j
                DIRECTORY        first p-node of its p-directory (-1), how many it has
                UP               the bucket it lies in, or of a top bucket the c-node that has its p-node; the p-node
                SHAPE            bits of the prefix; ROOT for the root, ATOMIC for a bucket that cannot be cut; + SPLIT
    p-node p    partition[4p …]: key and c-node; top bucket and next p-node; expressions below; visits and losses
                key = attribute << 3 | kind of value, kind ANY: the attribute is there
    slots       c-node << 32 | key to p-node, by open addressing
    l-node      rows (dynamic/rows.py) without gaps, in a block of `words`

Buckets of one p-node are a trie over coordinates. The paper cuts a bucket in halves; so do we, but a half in which all
expressions lie in one of its own halves is skipped, or the values 0 … 47 would hang below sixty empty levels.

Invariance (§4.3): every expression lies in the smallest bucket that encloses it, and the c-node of a bucket that could
still be split has no p-directory.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.experimental import structref

from eligo.compile.compiled import Arrays, mixed
from eligo.index.dynamic.pool import reserved, with_room
from eligo.jit import define_handle, inline, kernel

PREFIX, CHILDREN, BLOCK, FILL, LEAF, DIRECTORY, UP, SHAPE = 0, 1, 2, 3, 4, 5, 6, 7
KEY, TOP, BELOW, SEEN = 0, 1, 2, 3
ROOT, ATOMIC, SPLIT = -1, 64, 1 << 8

# What `state` counts: c-nodes and p-nodes made, the first free one of each (-1), words used, slots taken, settings.
CLUSTERS, FREE_CLUSTER, PARTITIONS, FREE_PARTITION, WORDS, SLOTS, MAX_CAP, MIN_SIZE = 0, 1, 2, 3, 4, 5, 6, 7
# words in free blocks, rows, the highest conjunction ever seen + 1, attributes that there is room for
FREE_WORDS, ROWS, HIGHEST, ATTRIBUTES = 8, 9, 10, 11
CLASSES = 64
_SLACK = 4096  # items that a pool has beyond what one insertion may take

_FIELDS = (
    "cluster",
    "partition",
    "slot_key",
    "slot_value",
    "words",
    "free_block",
    "where",
    "tally",
    "popular",
    "work",
    "state",
)


_KEPT = ("cluster", "partition", "slot_key", "slot_value", "words", "free_block", "where", "popular", "state")


@structref.register
class TreeType(types.StructRef):
    """The pools as one argument of kernels."""


class TreeHandle(structref.StructRefProxy):
    pass


define_handle(TreeHandle, TreeType, _FIELDS)


@kernel
def make_tree_handle(  # type: ignore[no-untyped-def]
    cluster, partition, slot_key, slot_value, words, free_block, where, tally, popular, work, state
):
    return TreeHandle(cluster, partition, slot_key, slot_value, words, free_block, where, tally, popular, work, state)


class Pools:
    """The arrays drawn above, and the handle that kernels take."""

    def __init__(self, max_cap: int, min_size: int) -> None:
        self.cluster = reserved(np.int64, 8)
        self.partition = reserved(np.int64, 4)
        self.slot_key = np.full(1 << 12, -1, np.int64)
        self.slot_value = np.zeros(1 << 12, np.int32)
        self.words = reserved(np.int64, 1 << 12)
        self.free_block = np.full(CLASSES, -1, np.int64)
        self.where = reserved(np.int32, 1 << 12)
        self.tally = np.zeros(8, np.int64)
        self.popular = np.zeros(8, np.int64)
        self.work = reserved(np.int32, 1 << 12)
        self.state = np.zeros(16, np.int64)
        self.state[[FREE_CLUSTER, FREE_PARTITION]] = -1
        self.state[[MAX_CAP, MIN_SIZE]] = max_cap, min_size
        self.refresh()
        new_cluster(self.handle, 0, ROOT, -1, -1)

    @classmethod
    def restored(cls, arrays: Arrays) -> Pools:
        """What `arrays` gave: nothing is computed or copied."""
        pools = cls.__new__(cls)
        for name in _KEPT:
            setattr(pools, name, arrays[name])
        pools.tally = np.zeros(len(pools.popular), np.int64)
        pools.work = np.zeros(1, np.int32)
        pools.refresh()
        return pools

    def arrays(self) -> Arrays:
        """All that has to be saved, without the room to grow."""
        used = {
            "cluster": 8 * self.state[CLUSTERS],
            "partition": 4 * self.state[PARTITIONS],
            "words": self.state[WORDS],
            "where": self.state[HIGHEST],
        }
        return {name: getattr(self, name)[: used.get(name)] for name in _KEPT}

    def refresh(self) -> None:
        self.handle = make_tree_handle(*(getattr(self, name) for name in _FIELDS))

    def make_room(self, attributes: int, largest: int, highest: int) -> None:
        """Before rows of at most so many words, of conjunctions below `highest`, are inserted or others deleted: places
        for new attributes, slots, room in all pools.
        """
        state = self.state
        if attributes > state[ATTRIBUTES]:
            state[ATTRIBUTES] = 2 * attributes
            self.tally = np.zeros(8 * int(state[ATTRIBUTES]), np.int64)
            more = np.zeros(8 * int(state[ATTRIBUTES]), np.int64)
            more[: len(self.popular)] = self.popular
            self.popular = more
            self.refresh()
        least = {
            "cluster": 8 * (state[CLUSTERS] + 4 * state[ROWS] + _SLACK),
            "partition": 4 * (state[PARTITIONS] + 2 * state[ROWS] + _SLACK),
            "words": 4 * state[WORDS] + largest + _SLACK,
            "work": 4 * state[ROWS] + _SLACK,
            "where": highest,
        }
        for name, size in least.items():
            array = getattr(self, name)
            if size > len(array):
                setattr(self, name, with_room(array, 2 * int(size)))
                self.refresh()
        if 2 * state[SLOTS] > len(self.slot_key):
            self.slot_key, self.slot_value = larger_slots(self.slot_key, self.slot_value)
            self.state[SLOTS] = int((self.slot_value > 0).sum())
            self.refresh()


@inline
def has_room(t, row):  # type: ignore[no-untyped-def]
    """Whether a row of so many words may be inserted: one cascade of cuts makes no more than this (`make_room`)."""
    state = t.state
    return (
        8 * (state[CLUSTERS] + 4 * state[ROWS] + _SLACK // 2) <= len(t.cluster)
        and 4 * (state[PARTITIONS] + 2 * state[ROWS] + _SLACK // 2) <= len(t.partition)
        and 4 * state[WORDS] + row + _SLACK // 2 <= len(t.words)
        and 4 * state[ROWS] + _SLACK // 2 <= len(t.work)
        and 2 * state[SLOTS] <= len(t.slot_key)
    )


@inline
def pair(high, low):  # type: ignore[no-untyped-def]
    return np.int64(high) << 32 | (np.int64(low) & 0xFFFF_FFFF)


@inline
def upper(word):  # type: ignore[no-untyped-def]
    return word >> 32


@inline
def lower(word):  # type: ignore[no-untyped-def]
    return (word << 32) >> 32


@inline
def unsigned(coordinate):  # type: ignore[no-untyped-def]
    """A coordinate in the order of unsigned words, whose first bits are a bucket's prefix."""
    return np.uint64(coordinate) ^ np.uint64(1 << 63)


@inline
def within(value, prefix, bits):  # type: ignore[no-untyped-def]
    """Whether a value begins with the first bits of a prefix."""
    return bits == 0 or (value ^ np.uint64(prefix)) >> np.uint64(64 - bits) == 0


# -- c-nodes and p-nodes


@kernel
def new_cluster(t, prefix, bits, parent, owner):  # type: ignore[no-untyped-def]
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
    cluster[at + DIRECTORY] = pair(-1, 0)
    cluster[at + UP] = pair(parent, owner)
    cluster[at + SHAPE] = bits
    return c


@kernel
def drop_cluster(t, c):  # type: ignore[no-untyped-def]
    cluster, state = t.cluster, t.state
    if cluster[8 * c + BLOCK] >= 0:
        free_block(t, cluster[8 * c + BLOCK], lower(cluster[8 * c + FILL]))
    cluster[8 * c] = state[FREE_CLUSTER]
    cluster[8 * c + SHAPE] = -2
    state[FREE_CLUSTER] = c


@inline
def bits_of_cluster(shape):  # type: ignore[no-untyped-def]
    return shape if shape < 0 else shape & 0xFF


@inline
def find_partition(slot_key, slot_value, c, key):  # type: ignore[no-untyped-def]
    """The p-node of a key in a c-node's directory, or -1."""
    mask = np.uint64(len(slot_key) - 1)
    wanted = np.int64(c) << 32 | key
    at = mixed(np.uint64(0), wanted) & mask
    while slot_key[at] != -1:
        if slot_key[at] == wanted and slot_value[at] > 0:
            return np.int64(slot_value[at]) - 1
        at = (at + np.uint64(1)) & mask
    return np.int64(-1)


@inline
def put_slot(slot_key, slot_value, wanted, value):  # type: ignore[no-untyped-def]
    """Whether a place was taken that had never been."""
    mask = np.uint64(len(slot_key) - 1)
    at = mixed(np.uint64(0), wanted) & mask
    while slot_key[at] != -1 and slot_value[at] > 0:
        at = (at + np.uint64(1)) & mask
    fresh = slot_key[at] == -1
    slot_key[at] = wanted
    slot_value[at] = value
    return fresh


@kernel
def larger_slots(slot_key, slot_value):  # type: ignore[no-untyped-def]
    living = 0
    for value in slot_value:
        living += value > 0
    size = 1 << 12
    while size < 4 * living:
        size *= 2
    keys, values = np.full(size, -1, np.int64), np.zeros(size, np.int32)
    for i in range(len(slot_key)):
        if slot_value[i] > 0:
            put_slot(keys, values, slot_key[i], slot_value[i])
    return keys, values


@kernel
def new_partition(t, c, key, top_bits):  # type: ignore[no-untyped-def]
    """A p-node with an empty top bucket in a c-node's directory."""
    cluster, partition, state = t.cluster, t.partition, t.state
    p = state[FREE_PARTITION]
    if p >= 0:
        state[FREE_PARTITION] = partition[4 * p]
    else:
        p = state[PARTITIONS]
        state[PARTITIONS] += 1
    directory = cluster[8 * c + DIRECTORY]
    top = new_cluster(t, 0, top_bits, c, p)
    partition[4 * p + KEY] = pair(key, c)
    partition[4 * p + TOP] = pair(top, upper(directory))
    partition[4 * p + BELOW] = 0
    partition[4 * p + SEEN] = 0
    cluster[8 * c + DIRECTORY] = pair(p, lower(directory) + 1)
    state[SLOTS] += put_slot(t.slot_key, t.slot_value, np.int64(c) << 32 | key, p + 1)
    return p


@kernel
def drop_partition(t, p):  # type: ignore[no-untyped-def]
    """Take a p-node whose top bucket is gone out of its directory."""
    cluster, partition, slot_key, slot_value = t.cluster, t.partition, t.slot_key, t.slot_value
    key, c = upper(partition[4 * p + KEY]), lower(partition[4 * p + KEY])
    after, directory = lower(partition[4 * p + TOP]), cluster[8 * c + DIRECTORY]
    if upper(directory) == p:
        cluster[8 * c + DIRECTORY] = pair(after, lower(directory) - 1)
    else:
        q = upper(directory)
        while lower(partition[4 * q + TOP]) != p:
            q = lower(partition[4 * q + TOP])
        partition[4 * q + TOP] = pair(upper(partition[4 * q + TOP]), after)
        cluster[8 * c + DIRECTORY] = pair(upper(directory), lower(directory) - 1)
    mask = np.uint64(len(slot_key) - 1)
    wanted = np.int64(c) << 32 | key
    at = mixed(np.uint64(0), wanted) & mask
    while slot_key[at] != wanted or slot_value[at] == 0:
        at = (at + np.uint64(1)) & mask
    slot_value[at] = 0  # the key stays, so that searching goes on behind it
    partition[4 * p] = t.state[FREE_PARTITION]
    t.state[FREE_PARTITION] = p


# -- blocks of words


@inline
def block_class(size):  # type: ignore[no-untyped-def]
    """The class of the smallest block that holds so many words: 16, 24, 32, 48, 64, 96 …"""
    k, room = 0, 16
    while room < size:
        k += 1
        room = 16 << (k >> 1) if k & 1 == 0 else 24 << (k >> 1)
    return k


@inline
def class_words(k):  # type: ignore[no-untyped-def]
    return 16 << (k >> 1) if k & 1 == 0 else 24 << (k >> 1)


@kernel
def new_block(t, size):  # type: ignore[no-untyped-def]
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
def free_block(t, at, room):  # type: ignore[no-untyped-def]
    k = block_class(room)
    t.words[at] = t.free_block[k]
    t.free_block[k] = at
    t.state[FREE_WORDS] += class_words(k)


@kernel
def change_block(t, c, size):  # type: ignore[no-untyped-def]
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
