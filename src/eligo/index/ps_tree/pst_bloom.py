"""`pst-bloom`: rules in lists by one predicate each, pruned by signatures of others (the PS-Tree paper §5); here the
index and its matching (§5.3, Algorithm 5).

    slot_of       by line: which signature to ask. NONE, that of no rule: for lines on which the event lies nowhere.
                  ALL: for NO_LINE, for attributes that are there (PRESENT), for lines on which it lies in several
    base, mask    by slot: where the words of the signature begin, and how many there are, less one

The lists are read one after the other, eight bytes an entry; the signatures asked are as many as the event has
attributes, and fit the cache. Rows are fetched for what remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from eligo.compile.compiled import I64
from eligo.compile.strings import Strings
from eligo.index.ps_tree.base import PsIndex
from eligo.index.ps_tree.bloom_insert import NO_LINE
from eligo.index.ps_tree.event_spaces import meet, watch
from eligo.index.ps_tree.pools import ACCESSES, ALWAYS, ATTRIBUTES, BY_DEPTH, COPIES, FORMS, HIGHEST, Pools
from eligo.index.ps_tree.signatures import bits_of_rule, spread
from eligo.index.rows.content import searching_rows
from eligo.index.rows.event_view import view_event
from eligo.index.rows.growable import prefetch
from eligo.index.rows.int_pair import upper
from eligo.index.rows.pooled_index import PooledScratch
from eligo.index.rows.verify import EVENTS_SEARCHED, once_each, verify_rows
from eligo.jit import handle, inline, kernel
from eligo.options import Option

_MOST_KEYS = 64  # spaces of an access predicate when it is inserted
WATCH = 16  # one event of so many is watched
NONE, ALL = 0, 1  # slots
LARGE = 512  # words of a signature up to which the cache is told of all of it


# What a search writes to, as one argument of kernels.
make_work = handle("Work", ("spaces", "lines", "slot_of", "base", "mask", "starts"))


@inline
def name_slots(t, s, n, m, spaces, lines, slot_of, base, mask):
    """Say which signature is asked for each line of an event with n attributes and m spaces."""
    words, extra = t.words, t.extra
    base[NONE], mask[NONE], base[ALL], mask[ALL] = 0, 0, 1, 0
    slot_of[NO_LINE] = ALL
    for i in range(n):
        slot_of[16 * np.int64(s.present[i])] = ALL
    for i in range(m):
        line = lines[i]
        if line & 15 == 0:
            continue
        o = extra[spaces[i]]
        base[i + 2], mask[i + 2] = 0, 0
        if o:
            size = np.int64(1) << upper(words[np.uint64(o)])
            base[i + 2], mask[i + 2] = o + 1, size - 1
            for at in range(8, min(size, LARGE), 8):
                prefetch(words, np.uint64(o + at))
        slot_of[line] = i + 2 if slot_of[line] == NONE else ALL


@inline
def pruned(t, m, spaces, slot_of, base, mask, starts):
    """Where the rows begin that are in the lists of m spaces and in the signatures asked; how many, below 0 if they are
    too many; how many were in the lists.
    """
    words, halves, posting = t.words, t.halves, t.posting
    each = np.uint64(t.state[ACCESSES] + 1)
    one, two, twenty = np.uint64(1), np.uint64(2), np.uint64(20)
    k, room, looked = np.uint64(0), np.uint64(len(starts)), np.int64(0)
    for i in range(m):
        o = np.uint64(posting[spaces[i]])
        if o == 0:
            continue
        count = np.uint64(words[o]) >> np.uint64(32)
        looked += np.int64(count)
        if k + count >= room:
            return np.int64(-1), looked
        at = two * (o + one)
        for _ in range(count):
            link = np.uint64(halves[at])
            h = spread(link)
            bits = bits_of_rule(h)
            slot = np.uint64(slot_of[np.uint64(halves[at + one])])
            word = np.uint64(words[np.uint64(base[slot]) + (h >> twenty & np.uint64(mask[slot]))])
            passed = np.uint64(word & bits == bits)
            starts[k] = np.int64(two * link)
            if passed and each > two:
                for j in range(two, each):
                    slot = np.uint64(slot_of[np.uint64(halves[at + np.uint64(j)])])
                    word = np.uint64(words[np.uint64(base[slot]) + (h >> twenty & np.uint64(mask[slot]))])
                    passed &= np.uint64(word & bits == bits)
            k += passed
            at += each
    return np.int64(k), looked


@inline
def search_lists(t, e, event, s, strings, w, found, k, counters):
    """MatchEvent (Algorithm 5): put the conjunctions that an event satisfies into found from k on; where they end."""
    spaces, lines, slot_of, starts = w.spaces, w.lines, w.slot_of, w.starts
    n = view_event(e, event, s, len(t.popular))
    m, single = meet(t, s, e, n, spaces, lines)
    too_many = m >= len(spaces)
    m = 0 if too_many else m
    counters[EVENTS_SEARCHED] += 1
    if counters[EVENTS_SEARCHED] % WATCH == 0:
        watch(t, s, n, m, spaces)
    for i in range(m):
        prefetch(t.words, np.uint64(t.posting[spaces[i]]))
        prefetch(t.words, np.uint64(t.extra[spaces[i]]))
    name_slots(t, s, n, m, spaces, lines, slot_of, w.base, w.mask)
    spaces[m] = ALWAYS
    rows, looked = pruned(t, m + 1, spaces, slot_of, w.base, w.mask, starts)
    for i in range(n):
        slot_of[16 * np.int64(s.present[i])] = NONE
    for i in range(m):
        slot_of[lines[i]] = NONE
    if rows < 0 or too_many:
        rows, single = all_rows(t, starts), False
        looked = rows
    counters[0] += looked
    # Of an event with several values of an attribute a rule may be found by several of them.
    some = found if single else np.empty(rows, np.int32)
    stop = verify_rows(t.words, starts, starts, rows, single, s, e, strings, some, k if single else 0, counters)
    return stop if single else once_each(some[:stop], found, k)


@kernel
def all_rows(t, starts):
    """Where all rows begin; how many."""
    count = 0
    for number in range(t.state[HIGHEST]):
        if t.where[number] > 0:
            starts[count] = 2 * np.int64(t.where[number])
            count += 1
    return count


class BloomScratch(PooledScratch):
    """An event in coordinates, the spaces that it lies in, the signatures to ask."""

    copies = -1

    def fit(self, state: I64, entries: int) -> None:
        fresh = self.fit_event(int(state[ATTRIBUTES]), entries, int(state[HIGHEST]))
        if fresh or state[COPIES] > self.copies:
            self.copies = 5 * int(state[COPIES]) // 4 + 64
            room = 16 * self.entries + 64
            self.work = make_work(
                np.empty(room, np.int64), np.empty(room, np.int64),
                np.zeros(FORMS * max(self.attributes, 1), np.int32), np.empty(room + 2, np.int64),
                np.empty(room + 2, np.int64), np.empty(self.copies + 1, np.int64),
            )  # fmt: skip


class PstBloom(PsIndex):
    """Lists and signatures of spaces; bloom_insert.py and signatures.py draw them."""

    name = "pst-bloom"
    summary = "lists of predicate spaces, pruned by Bloom signatures of other attributes' spaces (PSTBloom)"
    options: ClassVar[Mapping[str, Option]] = {
        "signatures": Option(
            1, "predicates of a rule, beside its access predicate, that are in signatures", least=1, most=6
        ),
    }
    search_many = staticmethod(searching_rows(search_lists))
    scratch_type = BloomScratch

    @classmethod
    def empty(cls, strings: Strings, *, signatures: int = 1) -> PstBloom:
        return cls(Pools(signatures, _MOST_KEYS, signatures), strings)

    def notes(self) -> dict[str, object]:
        state = self.pools.state
        return {
            **self.common_notes(),
            "entries of lists": int(state[COPIES]),
            "always verified": int(state[BY_DEPTH]),
        }
