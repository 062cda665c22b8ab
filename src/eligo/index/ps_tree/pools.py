"""What an index on PS-Trees consists of: flat arrays with room to grow, and the handle that kernels take.

    root       by line (lines.py): the link of its tree, 0: the line is not in use
    tree       nodes (nodes.py) in blocks of a heap (rows/allocator.py), tree_heads
    space      four words a space (spaces.py)
    posting    by space: the block of rules that are found by it alone, 0: none
    extra      by space: of `pst-hash`, which attributes its partners have, a bit each; of `pst-bloom`, its signature
    uses       by space: of `pst-hash`, the block of the keys that it is part of; of `pst-bloom`, of the members of its
               signature; 0: none
    words      rows, postings, lists of keys or members: blocks of another heap, heads
    slots      of `pst-hash`: key and block, by open addressing (keys.py)
    where      by conjunction: the place, halved, of the block, or of the row, where it lies; 0 or below: nowhere
    access     by conjunction, one more than there may be access predicates: their lines, those behind the first in
               ascending order, -1: none; last the line that is used beside them (postings.py). Of `pst-bloom`: the
               line of its access predicate, and those of its signatures
    popular    by attribute: rules that have it; seen: events with it, of those watched; marks: one bit of 64 for each
               string that rules name; recent: values of some events, form of line + 1 and position, 0: none yet
    spaces     by line: spaces; least, most: of the values that rules name

Searches share the pools and write nothing but counters of events.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.compile.compiled import I32, I64
from eligo.index.rows.allocator import USED, no_blocks
from eligo.index.rows.growable import GrowingPools
from eligo.index.rows.packed_predicate import BEHIND
from eligo.jit import handle, inline, kernel

FORMS = 16  # lines that an attribute may have
RECENT = 16  # values that are remembered of an attribute
ALWAYS, GAP = 0, 1  # the space that every event lies in, and what lies between the values that rules name
# What `state` holds: spaces made, the first free one (-1), slots taken, rows, the highest conjunction ever seen + 1 …
SPACES, FREE_SPACE, SLOTS, ROWS, HIGHEST, ATTRIBUTES, LONGEST = 0, 1, 2, 3, 4, 5, 6
# … settings: access predicates, the most keys of a rule, signatures of a rule, rules that make a space crowded …
ACCESSES, MOST_KEYS, SIGNATURES, CROWD = 7, 8, 9, 17
# … events watched, keys in use, rows in postings counting each copy, where adjustment goes on, events when it began …
EVENTS, KEYS, COPIES, AT_ROW, BEGAN, MOVED, ROUNDS = 10, 11, 12, 13, 14, 15, 16
# … rules by number of access predicates (0 …), and the predicates by kind of line: values, ranges, presence.
BY_DEPTH, BY_VALUE, BY_RANGE, BY_PRESENCE = 20, 30, 31, 32
WANTED = 18  # words that the row needs which was not inserted for want of them
_SLOTS = 128  # of keys, that are free before there is room made for more
_SLACK = 1 << 18  # words that moving what others have may take; where there is little, some times that
_BORDER = 80  # words of inner nodes that a value, with a border on either side of it, takes at most
_LAYERS = 100  # spaces that cutting a line at two strings makes at most, of all layers together (string_trie.py)

KEPT = (
    "root", "tree", "tree_heads", "space", "posting", "extra", "uses", "words", "heads", "slots", "where", "access",
    "popular", "seen", "marks", "recent", "recent_kind", "spaces", "least", "most", "state",
)  # fmt: skip
FIELDS = (*KEPT, "links", "halves")
_BY_LINE = {"root": np.int32, "spaces": np.int32, "least": np.float64, "most": np.float64}
_BY_ATTRIBUTE: dict[str, tuple[Any, int]] = {
    "popular": (np.int64, 1), "seen": (np.int64, 1), "marks": (np.int64, 1), "recent": (np.int64, RECENT),
    "recent_kind": (np.uint8, RECENT),
}  # fmt: skip


# The pools as one argument of kernels.
make_handle = handle("PoolsHandle", FIELDS)


class Pools(GrowingPools):
    """The arrays drawn above."""

    kept = KEPT
    root: I32
    space: I64
    posting: I64
    extra: I64
    uses: I64
    access: I32
    spaces: I32
    tree: I64
    words: I64
    slots: I64
    state: I64
    where: I32
    heads: I64
    tree_heads: I64

    def __init__(self, accesses: int, most_keys: int = 1, signatures: int = 0, crowd: int = 1) -> None:
        self.tree, self.words = np.zeros(2, np.int64), np.zeros(2 + BEHIND, np.int64)
        self.tree_heads, self.heads = no_blocks(), no_blocks()
        self.tree_heads[USED] = self.heads[USED] = 2  # a block at 0 would look like none
        self.words[1] = -1  # words 0 and 1: signatures of none and of all (signatures.py)
        for name in ("space", "posting", "extra", "uses", "where", "access"):
            items = {"where": 0, "access": 0, "space": 4 * (GAP + 1)}.get(name, GAP + 1)
            setattr(self, name, np.zeros(items, np.int32 if name in ("where", "access") else np.int64))
        self.slots = np.zeros(1 << 4, np.int64)
        self.slots[::2] = -1
        for name, kind in _BY_LINE.items():
            setattr(self, name, np.zeros(0, kind))
        for name, (kind, _) in _BY_ATTRIBUTE.items():
            setattr(self, name, np.zeros(0, kind))
        self.state = np.zeros(40, np.int64)
        self.state[FREE_SPACE] = -1
        self.state[SPACES] = GAP + 1
        self.state[[ACCESSES, MOST_KEYS, SIGNATURES, CROWD]] = accesses, most_keys, signatures, crowd
        self.refresh()

    def used(self) -> dict[str, int]:
        state, made = self.state, int(self.state[SPACES])
        return {
            "tree": int(self.tree_heads[USED]),
            "words": int(self.heads[USED]) + BEHIND,
            "space": 4 * made,
            "posting": made,
            "extra": made,
            "uses": made,
            "where": int(state[HIGHEST]),
            "access": int(state[HIGHEST] * (state[ACCESSES] + 1)),
        }

    def refresh(self) -> None:
        views = {"links": self.tree.view(np.int32), "halves": self.words.view(np.int32)}
        self.handle = make_handle(*(views[name] if name in views else getattr(self, name) for name in FIELDS))

    def has_places(self, attributes: int, highest: int) -> bool:
        """Whether there are places for so many attributes, and for conjunctions below `highest`."""
        state = self.state
        enough = highest <= len(self.where) and highest * (state[ACCESSES] + 1) <= len(self.access)
        return bool(enough and attributes <= state[ATTRIBUTES])

    def make_room(self, attributes: int, largest: int, highest: int, coming: int = 0, early: int = 0) -> None:
        """Before a row of at most so many words, of a conjunction below `highest`, is inserted or another deleted: room
        in all pools; and for so many words of rows to come, as rows usually need it. What would grow soon grows now,
        `early` being the part of its size that tells how soon.
        """
        state = self.state
        fresh = False
        wanted = int(state[ATTRIBUTES])
        if attributes > wanted:
            wanted = max(2 * attributes if wanted else attributes, 8)
            for name in _BY_LINE:
                self.widen(name, FORMS * wanted, {"least": np.inf, "most": -np.inf}.get(name, 0))
            for name, (_, each) in _BY_ATTRIBUTE.items():
                self.widen(name, each * wanted)
            fresh = True
        fresh = self.grow(self._sizes(largest, highest, coming), early) or fresh
        keys = int(state[SLOTS]) + int(state[MOST_KEYS]) + _SLOTS
        keys += keys // early if early else 0
        if 8 * keys > 3 * len(self.slots) and state[ACCESSES] > 1 and not state[SIGNATURES]:
            self.slots = larger_slots(self.slots, keys)
            fresh = True
        if fresh:
            self.refresh()
        state[ATTRIBUTES] = wanted  # last: others who search take it for what the handle has places for

    def _sizes(self, largest: int, highest: int, coming: int) -> list[tuple[str, int]]:
        state, highest = self.state, max(highest, int(self.state[HIGHEST]))
        largest = max(largest, int(state[LONGEST]))
        made = int(state[SPACES]) + _LAYERS * (int(state[ACCESSES]) + 1) + largest + coming // 2
        tree, words = int(self.tree_heads[USED]) + 4 * coming, int(self.heads[USED]) + 4 * coming
        cuts = 4 * (int(state[ACCESSES]) + 1)
        wanted, state[WANTED] = int(state[WANTED]), 0
        return [
            ("tree", 3 * tree + _BORDER * (largest + 4 + cuts) + min(16 * tree, _SLACK)),
            ("space", 4 * made),
            ("posting", made),
            ("extra", made),
            ("uses", made),
            ("words", 2 * words + (int(state[MOST_KEYS]) + 8) * (largest + 16) + min(8 * words, _SLACK) + wanted),
            ("where", highest),
            ("access", highest * (int(state[ACCESSES]) + 1)),
        ]


@inline
def hashed(key):
    """Where a key is looked for first."""
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(29))


@inline
def has_room(t, row):
    """Whether there may be room to insert a row of so many words, or to take one out: so much `make_room` makes.

    What an insertion takes in the end depends on what others have: it asks again before each step (`may_move`).
    """
    state, tree, words = t.state, t.tree_heads[USED], t.heads[USED]
    return (
        3 * tree + _BORDER * (row + 4 + 4 * (state[ACCESSES] + 1)) + min(16 * tree, _SLACK) <= len(t.tree)
        and state[SPACES] + _LAYERS * (state[ACCESSES] + 1) + row <= len(t.posting)
        and 2 * words + (state[MOST_KEYS] + 8) * (row + 16) + min(8 * words, _SLACK) <= len(t.words)
        and (
            state[ACCESSES] == 1
            or state[SIGNATURES]
            or 8 * (state[SLOTS] + state[MOST_KEYS] + _SLOTS // 2) <= 3 * len(t.slots)
        )
    )


@inline
def least_words(t):
    """Words that it takes to let one more row be found by every event."""
    always = t.posting[ALWAYS]
    return 2 * t.state[LONGEST] + 2 * (t.words[always] & 0xFFFF_FFFF if always else 0) + 64


@inline
def may_move(t, needed, borders):
    """Whether there is room for so many words of rows and so many borders, and then to let one row be found by all."""
    return t.heads[USED] + needed + least_words(t) <= len(t.words) and 3 * t.tree_heads[USED] + _BORDER * (
        t.state[LONGEST] + 4 + borders
    ) <= len(t.tree)


@kernel
def larger_slots(slots, taken):
    """The same keys in an array with room for so many."""
    size = _SLOTS
    while size < 3 * taken // 2:
        size *= 2
    more = np.zeros(2 * size, np.int64)
    more[::2] = -1
    mask = np.uint64(size - 1)
    for i in range(0, len(slots), 2):
        if slots[i] != -1:
            at = hashed(slots[i]) & mask
            while more[np.uint64(2) * at] != -1:
                at = (at + np.uint64(1)) & mask
            more[np.uint64(2) * at], more[np.uint64(2) * at + np.uint64(1)] = slots[i], slots[i + 1]
    return more
