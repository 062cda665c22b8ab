"""`counting`: count the satisfied predicates of every conjunction (Yan and García-Molina's SIFT).

    slot s            a space of an attribute (postings.py): conjunctions posting[posting_offsets[s] … [s+1]], of each
                      of which a value in that space satisfies one predicate
    predicate p       conjunctions counting[counting_offsets[p] … [p+1]] that count it
    attribute a       wide[wide_offsets[a] … [a+1]]: its predicates that are not posted: of too many spaces, or
                      satisfied by an absent attribute
    conjunction c     need[c]: how many of its predicates an event must satisfy, a byte; 255: not counted
    unneeding         conjunctions that need none: all their predicates hold while their attributes are absent
    always            conjunctions of more than 254 predicates, which a byte cannot count: verified for every event

For one event the counters start as a copy of `need`. Each satisfied predicate takes one off the counters of its
conjunctions, and one that reaches zero is a match. A predicate that holds for an absent attribute is not needed;
where it fails, it adds one, and that must be done before anything is taken off.

An attribute with several values, or a range, goes predicate by predicate: no conjunction may be counted twice for one
of them.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.compile.predicates import holds
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.rows.event_view import view_event
from eligo.index.rows.packed_predicate import BEHIND
from eligo.index.rows.row_encoder import checks_of, rows_in_order
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.rows.verify import verify_rows
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline, kernel
from eligo_lab.rivals.postings import FORBIDDEN, LEFT_OUT, enumerable, item_postings
from eligo_lab.rivals.rows import group_entries, nothing_located

UNCOUNTED = 255
_OWN = (
    "need", "space_base", "posting_offsets", "posting", "wide_offsets", "wide", "counting_offsets", "counting",
    "unneeding", "words",
)  # fmt: skip


class _CountingScratch(Scratch):
    def __init__(self, conjunctions: Conjunctions) -> None:
        super().__init__(len(conjunctions))
        self.handle = make_counting_scratch(
            nothing_located(conjunctions),
            np.zeros(len(conjunctions), np.uint8),
            np.zeros(1, np.int64),
            np.zeros(1, np.int64),
            self.found,
            self.counters,
        )


class Counting(ArrayIndex):
    """Counters for all conjunctions; see the top of this file."""

    name = "counting"
    summary = "counts the satisfied predicates of every conjunction (SIFT)"

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        strings = make_string_handle(*conjunctions.strings.spans())
        holding = bool((conjunctions.predicates.flags & codes.ABSENT_HOLDS).any())
        self.handle = make_counting(
            conjunctions.space_handle, conjunctions.predicate_handle, strings, holding, *(arrays[name] for name in _OWN)
        )

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> Counting:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        p = conjunctions.predicates
        need, counting_offsets, counting = count_needs(conjunctions.offsets, conjunctions.items, p.flags)
        how, _ = enumerable(conjunctions)
        how[how == FORBIDDEN] = LEFT_OUT
        by_item = how[conjunctions.items]
        by_item[np.repeat(need == UNCOUNTED, np.diff(conjunctions.offsets))] = LEFT_OUT
        space_base = conjunctions.spaces.bases()
        everything = np.arange(len(need), dtype=np.int32)
        posting_offsets, posting = item_postings(conjunctions, by_item, everything, space_base, signed=False)
        wide = np.nonzero(how == LEFT_OUT)[0].astype(np.int32)
        always = np.nonzero(need == UNCOUNTED)[0].astype(np.int32)
        none = np.full(len(always), -1, np.int32)
        words, _ = rows_in_order(conjunctions.offsets, conjunctions.items, checks_of(conjunctions), rank, always, none)
        return cls(
            conjunctions,
            {
                "need": need,
                "space_base": space_base,
                "posting_offsets": posting_offsets,
                "posting": posting,
                "wide_offsets": np.searchsorted(wide, p.attribute_offsets).astype(np.int32),
                "wide": wide,
                "counting_offsets": counting_offsets,
                "counting": counting,
                "unneeding": np.nonzero(need == 0)[0].astype(np.int32),
                "words": words,
            },
        )

    def scratch(self) -> _CountingScratch:
        return _CountingScratch(self.conjunctions)

    def notes(self) -> dict[str, object]:
        return {
            "predicates not posted": len(self._arrays["wide"]),
            "need no predicate": len(self._arrays["unneeding"]),
            "always verified": int(np.count_nonzero(self._arrays["need"] == UNCOUNTED)),
        }


@kernel
def count_needs(offsets, items, flags):
    """How many predicates each conjunction needs, and the conjunctions of each predicate."""
    conjunctions = len(offsets) - 1
    need = np.zeros(conjunctions, np.uint8)
    counting_offsets = np.zeros(len(flags) + 1, np.int64)
    for c in range(conjunctions):
        if offsets[c + 1] - offsets[c] >= UNCOUNTED:
            need[c] = UNCOUNTED
            continue
        for i in range(offsets[c], offsets[c + 1]):
            counting_offsets[items[i] + 1] += 1
            if flags[items[i]] & codes.ABSENT_HOLDS == 0:
                need[c] += 1
    for p in range(len(flags)):
        counting_offsets[p + 1] += counting_offsets[p]
    counting = np.empty(counting_offsets[-1], np.int32)
    filled = counting_offsets[:-1].copy()
    for c in range(conjunctions):
        if need[c] == UNCOUNTED:
            continue
        for i in range(offsets[c], offsets[c + 1]):
            counting[filled[items[i]]] = c
            filled[items[i]] += 1
    return need, counting_offsets, counting


# The index as one argument of kernels.
make_counting = handle("CountingHandle", ["spaces", "predicates", "strings", "holding", *_OWN])


# The memory of one search as one argument of kernels.
make_counting_scratch = handle("CountingScratchHandle", ["located", "left", "starts", "ends", "found", "counters"])


@inline
def count_event(index, e, event, event_view, scratch, start):
    """Put the conjunctions that an event satisfies into `found` from `start` on; where they end."""
    p, located, found, counters = index.predicates, scratch.located, scratch.found, scratch.counters
    n = group_entries(e, locate(index.spaces, e, event), located)
    present, first, stop, flags = located.present, located.first, located.stop, p.flags
    attribute_offsets, at_low, at_high = p.attribute_offsets, e.at_low, e.at_high
    space_base, posting_offsets, posting = index.space_base, index.posting_offsets, index.posting
    wide_offsets, wide = index.wide_offsets, index.wide
    counting_offsets, counting, left = index.counting_offsets, index.counting, scratch.left
    need = index.need
    for c in range(len(need)):  # a loop: Numba's own copy of a slice is ten times slower
        left[c] = need[c]
    touched = evaluated = 0
    if index.holding:
        for i in range(n):
            a = present[i]
            for w in range(wide_offsets[a], wide_offsets[a + 1]):
                q = wide[w]
                if flags[q] & codes.ABSENT_HOLDS and not holds(p, q, e, first[a], stop[a]):
                    touched += counting_offsets[q + 1] - counting_offsets[q]
                    for j in range(counting_offsets[q], counting_offsets[q + 1]):
                        left[counting[j]] += 1
    k = start
    for i in range(n):
        a = present[i]
        j = first[a]
        one = stop[a] == j + 1 and at_low[j] == at_high[j]
        if one:
            slot = space_base[a] + at_low[j]
            touched += posting_offsets[slot + 1] - posting_offsets[slot]
            for j in range(posting_offsets[slot], posting_offsets[slot + 1]):
                c = posting[j]
                left[c] -= 1
                if left[c] == 0:
                    found[k] = c
                    k += 1
        low = wide_offsets[a] if one else attribute_offsets[a]
        high = wide_offsets[a + 1] if one else attribute_offsets[a + 1]
        evaluated += high - low
        for w in range(low, high):
            q = wide[w] if one else w
            if flags[q] & codes.ABSENT_HOLDS == 0 and holds(p, q, e, first[a], stop[a]):
                touched += counting_offsets[q + 1] - counting_offsets[q]
                for j in range(counting_offsets[q], counting_offsets[q + 1]):
                    c = counting[j]
                    left[c] -= 1
                    if left[c] == 0:
                        found[k] = c
                        k += 1
    unneeding = index.unneeding
    for i in range(len(unneeding)):
        if left[unneeding[i]] == 0:
            found[k] = unneeding[i]
            k += 1
    counters[0] += touched + len(unneeding)
    counters[1] += evaluated
    words, strings = index.words, index.strings
    if len(words) > BEHIND:
        view_event(e, event, event_view, len(space_base) - 1)
        scratch.starts[0], scratch.ends[0] = 0, len(words) - BEHIND  # which `verify_rows` moves
        single = event_view.count[1] == 0
        return verify_rows(words, scratch.starts, scratch.ends, 1, single, event_view, e, strings, found, k, counters)
    return k


Counting.search_events = staticmethod(searching(count_event))
