"""`pst-hash`: rules in a hash table of spaces of several attributes at once (the PS-Tree paper §6); here the index and
its matching (§6.3, Algorithm 7): the spaces of an event, their combinations, the rules there.

Of n spaces two at a time would be n² keys. Only a space that is crowded is the first of several, and it knows the
attributes of the others (keys.py); where rules are spread over many values there is none. Slots are asked for before
they are looked at, and so are the blocks that they lead to.

An event with ranges of values may lie in more spaces than there are rules: then all rows are verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from eligo.compile.compiled import I64
from eligo.compile.strings import Strings
from eligo.index.ps_tree.base import PsIndex
from eligo.index.ps_tree.event_spaces import meet, watch
from eligo.index.ps_tree.keys import attribute_bit, find_block
from eligo.index.ps_tree.pools import (
    ACCESSES,
    ALWAYS,
    ATTRIBUTES,
    BY_DEPTH,
    COPIES,
    HIGHEST,
    KEYS,
    SPACES,
    Pools,
    hashed,
)
from eligo.index.ps_tree.postings import ROWS, directory_of, rows_in
from eligo.index.rows.content import searching_rows
from eligo.index.rows.event_view import view_event
from eligo.index.rows.growable import prefetch
from eligo.index.rows.int_pair import lower, upper
from eligo.index.rows.pooled_index import PooledScratch
from eligo.index.rows.verify import EVENTS_SEARCHED, once_each, verify_rows
from eligo.jit import handle, inline, kernel
from eligo.options import Option

_MOST_PAIRS = 1 << 20  # keys of two spaces that are looked for; beyond, all rows are verified
WATCH = 16  # one event of so many is watched
FRONT = 24  # words of a block that the cache is told of: its head and some of its directory


@inline
def pairs_of(t, m, spaces, lines, bits, pending):
    """Put the keys of two spaces that may have rules into pending; how many."""
    extra, slots = t.extra, t.slots
    mask = np.uint64(len(slots) // 2 - 1)
    for i in range(m):
        bits[i] = attribute_bit(lines[i] >> 4)
    k = np.uint64(0)
    for i in range(m):
        partners = np.uint64(extra[spaces[i]])
        if partners == 0:
            continue
        first = spaces[i] << 32
        for j in range(m):
            # A space is no partner of its own attribute's, and looking for such a key does no harm.
            pending[k] = first | spaces[j]
            k += np.uint64(partners & bits[j] != 0)
    for i in range(k):
        prefetch(slots, np.uint64(2) * (hashed(pending[np.uint64(i)]) & mask))
    return np.int64(k)


@inline
def blocks_of(t, count, pending, blocks, k):
    """Add the blocks of keys, as far as they are there; how many blocks there are then."""
    slots, words = t.slots, t.words
    mask, one, two = np.uint64(len(slots) // 2 - 1), np.uint64(1), np.uint64(2)
    for i in range(count):
        key = pending[i]
        at = hashed(key) & mask
        while slots[two * at] != key and slots[two * at] != -1:
            at = (at + one) & mask
        if slots[two * at] == key:
            o = slots[two * at + one]
            for line in range(0, FRONT, 8):
                prefetch(words, np.uint64(o + line))
            blocks[k] = o
            k += 1
    return k


@inline
def rows_of(t, count, blocks, here, starts, ends, found):
    """The rows of some blocks whose space in the directory an event lies in: where stretches of them begin and end; how
    many stretches, below 0 if they are too many. `here`: a bit for each space.
    """
    words = t.words
    one = np.uint64(1)
    k = np.uint64(0)
    room = np.uint64(len(starts))
    for i in range(count):
        o = blocks[i]
        d = np.uint64(directory_of(t, o)) + one
        rows = np.uint64(rows_in(t, o))
        found += np.int64(rows)
        if k + rows >= room:
            return np.int64(-1), found
        # Branch-free: which rows are taken is unpredictable, and a mispredicted branch costs more than the writes.
        before = np.uint64(0)
        for j in range(rows):
            entry = np.uint64(words[d + np.uint64(j)])
            taken = here[entry >> np.uint64(38)] >> (entry >> np.uint64(32) & np.uint64(63)) & one
            begin = o + np.int64(entry & np.uint64(0xFFFF_FFFF))
            ends[k] = begin
            k += before & ~taken
            starts[k + (before & taken)] = begin  # where a stretch goes on, what comes behind it writes over this
            before = taken
        ends[k] = o + (words[np.uint64(o)] >> 32)
        k += before
    return np.int64(k), found


@kernel
def deeper(t, m, depth, spaces, lines, bits, blocks, k):
    """Add the blocks of all combinations of `depth` spaces, three or more; how many there are then, more than there is
    room for if they are too many.
    """
    turn, some = np.zeros(depth, np.int64), np.empty(depth, np.int64)
    tries, most_tries = 0, max(t.state[COPIES] // 16, 1024)  # what verifying all rows would cost, about
    # Keys have lines in ascending order, and events have attributes in any.
    for i in range(1, m):
        line, space, bit, j = lines[i], spaces[i], bits[i], i
        while j and lines[j - 1] > line:
            lines[j], spaces[j], bits[j] = lines[j - 1], spaces[j - 1], bits[j - 1]
            j -= 1
        lines[j], spaces[j], bits[j] = line, space, bit
    for first in range(m):
        partners = np.uint64(t.extra[spaces[first]])
        if partners == 0:
            continue
        some[0] = spaces[first]
        level = 1
        turn[1] = 0
        while level > 0:
            i = turn[level]
            if i == m:
                level -= 1
                turn[level] += 1
                continue
            if partners & bits[i] == 0:
                turn[level] += 1
                continue
            tries += 1
            if tries > most_tries:
                return len(blocks) + 1
            some[level] = spaces[i]
            if level + 1 < depth:
                level += 1
                turn[level] = i + 1
                continue
            o, _ = find_block(t, some, depth)
            if o:
                if k >= len(blocks):
                    return len(blocks) + 1
                blocks[k] = o
                k += 1
            turn[level] += 1
    return k


@inline
def search_keys(t, e, event, s, strings, w, found, k, counters):
    """MatchEvent (Algorithm 7): put the conjunctions that an event satisfies into found from k on; where they end."""
    spaces, lines, pending, blocks, here = w.spaces, w.lines, w.pending, w.blocks, w.here
    starts, ends = w.starts, w.ends
    n = view_event(e, event, s, len(t.popular))
    m, single = meet(t, s, e, n, spaces, lines)
    too_many = m > len(spaces)
    posting, most = t.posting, t.state[ACCESSES]
    m = 0 if too_many else m
    counters[EVENTS_SEARCHED] += 1
    if counters[EVENTS_SEARCHED] % WATCH == 0:
        watch(t, s, n, m, spaces)
    count = 0
    one, low = np.uint64(1), np.uint64(63)
    here[ALWAYS >> 6] |= one << np.uint64(ALWAYS & 63)
    if posting[ALWAYS]:
        blocks[0] = posting[ALWAYS]
        count = 1
    crowded = 0
    extra = t.extra
    for i in range(m):
        space = np.uint64(spaces[i])
        prefetch(posting, space)
        prefetch(extra, space)
        prefetch(here, space >> np.uint64(6))
    for i in range(m):
        space = np.uint64(spaces[i])
        here[space >> np.uint64(6)] |= one << (space & low)
        o = posting[space]
        if o:
            for line in range(0, FRONT, 8):
                prefetch(t.words, np.uint64(o + line))
            blocks[count] = o
            count += 1
        crowded += extra[space] != 0
    too_many = too_many or crowded * m >= len(pending)
    if crowded and not too_many:
        asked = pairs_of(t, m, spaces, lines, w.bits, pending)
        count = blocks_of(t, asked, pending, blocks, count)
        for depth in range(3, most + 1):
            if t.state[BY_DEPTH + depth]:
                count = deeper(t, m, depth, spaces, lines, w.bits, blocks, count)
    rows = np.int64(-1)
    if count <= len(blocks) and not too_many:
        rows, counters[0] = rows_of(t, count, blocks, here, starts, ends, counters[0])
    for i in range(m):
        here[np.uint64(spaces[i]) >> np.uint64(6)] = 0
    if rows < 0:
        rows, counters[0] = all_rows(t, starts, ends, counters[0])
        single = False
    # Of an event with several values of an attribute a rule may be found by several of them.
    room = np.int64(0)
    for i in range(0 if single else rows):
        room += ends[i] - starts[i]  # a row is a word at least
    some = found if single else np.empty(room, np.int32)
    stop = verify_rows(t.words, starts, ends, rows, single, s, e, strings, some, k if single else 0, counters)
    return stop if single else once_each(some[:stop], found, k)


@kernel
def all_rows(t, starts, ends, found):
    """Where the rows of each block begin and end; how many blocks, and rows added to those found."""
    words, count = t.words, 0
    for i in range(t.state[SPACES] + len(t.slots) // 2):
        if i < t.state[SPACES]:
            o = t.posting[i]
        else:
            at = 2 * (i - t.state[SPACES])
            o = t.slots[at + 1] if t.slots[at] != -1 else np.int64(0)
        if o and rows_in(t, o):
            starts[count], ends[count] = directory_of(t, o) + 1 + lower(words[o + ROWS]), o + upper(words[o])
            found += rows_in(t, o)
            count += 1
    return count, found


# What a search writes to, as one argument of kernels.
make_work = handle("Work", ("spaces", "lines", "bits", "pending", "blocks", "here", "starts", "ends"))


class HashScratch(PooledScratch):
    """An event in coordinates, the spaces that it lies in, keys, and stretches of rows."""

    here = np.zeros(0, np.uint64)
    copies = -1

    def fit(self, state: I64, entries: int) -> None:
        fresh = self.fit_event(int(state[ATTRIBUTES]), entries, int(state[HIGHEST]))
        if fresh or state[SPACES] > 64 * len(self.here) or state[COPIES] > self.copies:
            self.copies = 5 * int(state[COPIES]) // 4 + 16
            room = 16 * self.entries + 16
            pairs = min(room * room, _MOST_PAIRS, 16 * self.copies)  # to look for more takes longer than to verify all
            self.here = np.zeros((5 * int(state[SPACES]) // 4 + 127) // 64, np.uint64)
            self.work = make_work(
                np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint64),
                np.empty(pairs, np.int64), np.empty(pairs + room, np.int64), self.here,
                np.empty(self.copies + 1, np.int64), np.empty(self.copies + 1, np.int64),
            )  # fmt: skip


class PstHash(PsIndex):
    """Keys of several spaces, and the rules there; keys.py and postings.py draw them."""

    name = "pst-hash"
    summary = "a hash table of predicate spaces, several attributes at once (PSTHash)"
    options: ClassVar[Mapping[str, Option]] = {
        "accesses": Option(2, "access predicates of a rule", least=1, most=6),
        "crowd": Option(2048, "rules found by one value or range before others there go by a further one", least=1),
        "max_keys": Option(64, "most keys of a rule when it is inserted", least=1, most=1024),
    }

    search_many = staticmethod(searching_rows(search_keys))
    scratch_type = HashScratch

    @classmethod
    def empty(cls, strings: Strings, *, accesses: int = 2, crowd: int = 2048, max_keys: int = 64) -> PstHash:
        return cls(Pools(accesses, max_keys, crowd=crowd), strings)

    def notes(self) -> dict[str, object]:
        state = self.pools.state
        depths = range(int(state[ACCESSES]) + 1)
        return {
            **self.common_notes(),
            "keys": int(state[KEYS]),
            "copies of rows": int(state[COPIES]),
            "rules by access predicates": ", ".join(f"{n}: {int(state[BY_DEPTH + n]):,}" for n in depths),
            "always verified": int(state[BY_DEPTH]),
        }
