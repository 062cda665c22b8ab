"""The nodes of a BE-Tree in flat pools with free lists (the BE-Tree paper §4.1).

    c-node c    cluster[8c …], one cache line; two numbers in a word are `pair`s:
                PREFIX           the bucket: values whose coordinate begins with these bits (unsigned order)
                CHILDREN         left, right: buckets within it, -1: none
                BLOCK            where its l-node's rows lie in `words`
                FILL             words used, words that the block has
                LEAF             rows of the l-node, its capacity max_cap^j
                DIRECTORY        where its p-directory lies in `words`, how many p-nodes it has
                UP               the bucket it lies in, or of a top bucket the c-node that has its p-node; the p-node
                SHAPE            predicate evaluations wasted here; bits of the prefix, ROOT for the root, ATOMIC for a
                                 bucket that cannot be cut, DEAD for a record that is free; + SPLIT
    p-node p    partition[4p …]: key and c-node; top bucket; expressions below
                key = attribute << 3 | kind of value, kind ANY: the attribute is there
    p-directory words[DIRECTORY …]: key << 32 | top bucket, in any order
    slots       c-node << 32 | key to p-node, by open addressing
    crown       the root's p-directory by key: top bucket + 1, or 0
    l-node      rows (rows/packed_predicate.py) without gaps, in a block of `words` (rows/allocator.py: `heads`)
    by key      popular: expressions that have it; seen: events, of those watched; least, most: values that rules name;
                trust: by how much its rank was too good, and what adapt.py gathers to tell: expected, wasted

Buckets of one p-node are a trie over coordinates. The paper cuts a bucket in halves; so do we, but a half in which all
expressions lie in one of its own halves is skipped, or the values 0 … 47 would hang below sixty empty levels.

Invariance (§4.3): every expression lies in the smallest bucket that encloses it, and the c-node of a bucket that could
still be split has no p-directory.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import F64, I32, I64, mixed
from eligo.index.rows.allocator import USED, no_blocks
from eligo.index.rows.growable import GrowingPools
from eligo.index.rows.packed_predicate import BEHIND
from eligo.jit import handle, inline, kernel

PREFIX, CHILDREN, BLOCK, FILL, LEAF, DIRECTORY, UP, SHAPE = 0, 1, 2, 3, 4, 5, 6, 7
KEY, TOP, BELOW = 0, 1, 2
ATOMIC, ROOT, DEAD, SPLIT = 64, 65, 66, 1 << 8

# What `state` holds: c-nodes and p-nodes made, the first free one of each (-1), slots taken, settings …
CLUSTERS, FREE_CLUSTER, PARTITIONS, FREE_PARTITION, SLOTS, MAX_CAP, MIN_SIZE = 0, 1, 2, 3, 4, 5, 6
# … rows, the highest conjunction ever seen + 1, attributes that there is room for …
ROWS, HIGHEST, ATTRIBUTES = 7, 8, 9
# … events watched in this window, all of them, conjunctions that they satisfied, the margin of what is not known well …
EVENTS, WATCHED, SATISFIED, EXPLORE = 12, 13, 14, 15
# … adjustment: the c-node where it goes on, work that it may do, rounds done, policies that are on, 100 × theta …
AT_CLUSTER, CREDIT, ROUNDS, POLICIES, THETA = 16, 17, 18, 19, 20
# … what it has done: l-nodes recycled, expressions reinserted; WATCHED when this round began and the one before …
RECYCLED, REINSERTED, BEGAN, BEGAN_BEFORE = 21, 22, 23, 24
# … and at the last choice of max_cap, with SATISFIED then; whether max_cap is chosen here.
CHOSEN_AT, CHOSEN_SATISFIED, CHOOSES = 25, 26, 27
LONGEST = 28  # words of the longest row ever
_LEAST_SLOTS = 1 << 8

_SLACK = 64  # c-nodes and p-nodes that one insertion may make beside those that its rows and checks call for
_SLACK_WORDS = 1024

_KEPT = (
    "cluster", "partition", "slot_key", "slot_value", "crown", "words", "heads", "where", "popular", "seen",
    "least", "most", "trust", "expected", "wasted", "state",
)  # fmt: skip
_FIELDS = (*_KEPT, "tally", "work")
_BY_KEY = {
    "crown": np.int32, "popular": np.int64, "seen": np.int64, "least": np.float64, "most": np.float64,
    "trust": np.float64, "expected": np.float64, "wasted": np.int64,
}  # fmt: skip


# The pools as one argument of kernels.
make_tree_handle = handle("TreeHandle", _FIELDS)


class Pools(GrowingPools):
    """The arrays drawn above, and the handle that kernels take."""

    kept = _KEPT
    crown: I32
    popular: I64
    seen: I64
    least: F64
    most: F64
    trust: F64
    expected: F64
    wasted: I64
    tally: I64 = np.zeros(0, np.int64)  # this and `work` are no part of a file; nobody writes to these small ones
    work: I32 = np.zeros(1, np.int32)

    def __init__(self, max_cap: int, min_size: int) -> None:
        self.cluster = np.zeros(8, np.int64)
        self.partition = np.zeros(0, np.int64)
        self.slot_key = np.full(_LEAST_SLOTS, -1, np.int64)
        self.slot_value = np.zeros(_LEAST_SLOTS, np.int32)
        self.words = np.zeros(BEHIND, np.int64)
        self.heads = no_blocks()
        self.where = np.zeros(0, np.int32)
        for name, kind in _BY_KEY.items():
            setattr(self, name, np.zeros(0, kind))
        self.state = np.zeros(32, np.int64)
        self.state[[FREE_CLUSTER, FREE_PARTITION]] = -1
        self.state[[MAX_CAP, MIN_SIZE]] = max_cap, min_size
        self.cluster[:8] = (0, -1, -1, 0, max_cap, 0, -1, ROOT)  # the root
        self.state[CLUSTERS] = 1
        self.refresh()

    def used(self) -> dict[str, int]:
        state = self.state
        return {
            "cluster": 8 * int(state[CLUSTERS]),
            "partition": 4 * int(state[PARTITIONS]),
            "words": int(self.heads[USED]) + BEHIND,
            "where": int(state[HIGHEST]),
            "work": 0,
        }

    def refresh(self) -> None:
        if len(self.tally) < len(self.popular):
            self.tally = np.zeros(len(self.popular), np.int64)
        self.handle = make_tree_handle(*(getattr(self, name) for name in _FIELDS))

    def make_room(
        self, attributes: int, largest: int, highest: int, coming: tuple[int, int] = (0, 0), early: int = 0
    ) -> None:
        """Before a row, of at most a fourth of `largest` words and of a conjunction below `highest`, is inserted or
        another deleted: places for new attributes, slots, room in all pools; and for so many rows and words to come.
        What would grow soon grows now, `early` being the part of its size that tells how soon.
        """
        state, wanted, fresh = self.state, int(self.state[ATTRIBUTES]), False
        if attributes > wanted:
            wanted, fresh = 2 * attributes, True
            for name in _BY_KEY:
                self.widen(name, 8 * wanted, name == "trust")
        clusters, partitions, slots = (int(state[i]) for i in (CLUSTERS, PARTITIONS, SLOTS))
        rows, words = int(state[ROWS]) + coming[0], int(self.heads[USED]) + coming[1]
        sizes = (
            ("cluster", 8 * (clusters + 4 * rows + largest + _SLACK)),
            ("partition", 4 * (partitions + 2 * rows + largest + _SLACK)),
            ("words", 4 * words + 8 * largest + _SLACK_WORDS),
            ("work", 4 * rows + largest + _SLACK),
            ("where", highest),
        )
        fresh = self.grow(sizes, early) or fresh
        if 2 * (slots + (slots // early if early else 0)) > len(self.slot_key):
            self.slot_key, self.slot_value = larger_slots(self.slot_key, self.slot_value)
            state[SLOTS] = int((self.slot_value > 0).sum())
            fresh = True
        if fresh:
            self.refresh()
        state[ATTRIBUTES] = wanted  # last: others who search take it for what the handle has places for


@inline
def has_room(t, row):
    """Whether there is room to insert a row, given four times its words: one cascade of cuts makes no more than this.

    It makes c-nodes and p-nodes for the rows that it moves and, one below the other, for the checks that these have in
    common, each with a directory of its own. `make_room` sees to it.
    """
    state = t.state
    return (
        8 * (state[CLUSTERS] + 4 * state[ROWS] + row + _SLACK) <= len(t.cluster)
        and 4 * (state[PARTITIONS] + 2 * state[ROWS] + row + _SLACK) <= len(t.partition)
        and 4 * t.heads[USED] + 8 * row + _SLACK_WORDS <= len(t.words)
        and 4 * state[ROWS] + row + _SLACK <= len(t.work)
        and 2 * state[SLOTS] <= len(t.slot_key)
    )


@inline
def within(value, prefix, bits):
    """Whether a value begins with the first bits of a prefix."""
    return bits == 0 or (value ^ np.uint64(prefix)) >> np.uint64(64 - bits) == 0


@inline
def put_slot(slot_key, slot_value, wanted, value):
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
def larger_slots(slot_key, slot_value):
    living = 0
    for value in slot_value:
        living += value > 0
    size = _LEAST_SLOTS
    while size < 4 * living:
        size *= 2
    keys, values = np.full(size, -1, np.int64), np.zeros(size, np.int32)
    for i in range(len(slot_key)):
        if slot_value[i] > 0:
            put_slot(keys, values, slot_key[i], slot_value[i])
    return keys, values
