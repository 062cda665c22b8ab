"""`k-index`: posting lists by size class, merged with skipping (Whang et al., "Indexing Boolean Expressions", 2009).

A conjunction is posted in the spaces of its predicates (postings.py), one predicate an attribute; its size K is the
number of attributes in which it is posted as REQUIRED. Conjunctions are numbered by size, so each list holds its size
classes one after another, and one array of lists serves all classes:

    number n      conjunction order[n];  class K has the numbers class_start[K] … class_start[K+1]
    slot s        posting[posting_offsets[s] … [s+1]]: entries 2 n + 1 REQUIRED, 2 n FORBIDDEN, ascending
    number n      a row of `words` (rows/packed_predicate.py) with the predicates that are not posted, to be
                  verified; and one of `all_words` with all, for events with several values of an attribute

Invariant: an event satisfies the posted predicates of number n of class K if and only if exactly K of its lists have
the entry 2 n + 1 and none has 2 n. So for class K only numbers matter that stand in K of the event's lists: with the
lists sorted by their current entry, all those before the K-th list skip to its entry, and a match is where the first
and the K-th agree. Class 0, nothing required, is gone through as a whole.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.rows.event_view import view_event
from eligo.index.rows.row_encoder import checks_of, rows_in_order
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.rows.verify import verify_stretches
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline, kernel
from eligo_lab.rivals.postings import LEFT_OUT, REQUIRED, enumerable, item_postings
from eligo_lab.rivals.rows import group_entries, nothing_located, rows_of

_OWN = (
    "order", "class_start", "space_base", "posting_offsets", "posting", "words", "word_offsets", "all_words",
    "all_offsets",
)  # fmt: skip
LOW_HALF = 0xFFFF_FFFF


class _KIndexScratch(Scratch):
    def __init__(self, conjunctions: Conjunctions, unrequired: int) -> None:
        super().__init__(len(conjunctions))
        lists = len(conjunctions.spaces.space_count)
        self.handle = make_k_index_scratch(
            nothing_located(conjunctions),
            np.zeros((lists, 2), np.int64),
            np.zeros(lists, np.int64),
            np.zeros(unrequired, np.uint8),
            np.zeros(len(conjunctions), np.int64),
            np.zeros(len(conjunctions), np.int64),
            self.found,
            self.counters,
        )


class KIndex(ArrayIndex):
    """Posting lists by size class; see the top of this file."""

    name = "k-index"
    summary = "posting lists by size class, merged with skipping"

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        self.handle = make_k_index(
            conjunctions.space_handle,
            make_string_handle(*conjunctions.strings.spans()),
            *(arrays[name] for name in _OWN),
        )

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> KIndex:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        checks = checks_of(conjunctions)
        attribute = conjunctions.predicates.attribute()
        how, slots = enumerable(conjunctions)
        by_item, size = post_once(conjunctions.offsets, conjunctions.items, attribute, how, slots)
        order = np.argsort(size, kind="stable").astype(np.int32)
        largest = int(size.max(initial=0))
        space_base = conjunctions.spaces.bases()
        posting_offsets, posting = item_postings(conjunctions, by_item, order, space_base, signed=True)
        left_offsets, left = unposted(conjunctions.offsets, conjunctions.items, by_item, order)
        none = np.full(len(order), -1, np.int32)
        whole = rows_in_order(conjunctions.offsets, conjunctions.items, checks, rank, order, none)
        return cls(
            conjunctions,
            {
                "order": order,
                "class_start": np.searchsorted(size[order], np.arange(largest + 2)).astype(np.int32),
                "space_base": space_base,
                "posting_offsets": posting_offsets,
                "posting": posting,
                **rows_of(order, left_offsets, left, checks, rank),
                "all_words": whole[0],
                "all_offsets": whole[1],
            },
        )

    def scratch(self) -> _KIndexScratch:
        return _KIndexScratch(self.conjunctions, int(self._arrays["class_start"][1]))

    def notes(self) -> dict[str, object]:
        starts = self._arrays["class_start"]
        sizes = {f"size {k}": int(n) for k, n in enumerate(np.diff(starts)) if n}
        return {"always verified": int(starts[1]), "posted entries": len(self._arrays["posting"]), **sizes}


@kernel
def post_once(offsets, items, attribute, how, slots):
    """How each item is posted, the predicate of fewest slots for each attribute; and the size of each conjunction."""
    by_item = np.zeros(len(items), np.uint8)
    size = np.zeros(len(offsets) - 1, np.int32)
    for c in range(len(size)):
        i = offsets[c]
        while i < offsets[c + 1]:
            best = -1
            first = i
            while i < offsets[c + 1] and attribute[items[i]] == attribute[items[first]]:
                p = items[i]
                if how[p] == REQUIRED and (best < 0 or slots[p] < slots[items[best]]):
                    best = i
                elif how[p] not in (REQUIRED, LEFT_OUT):
                    by_item[i] = how[p]
                i += 1
            if best >= 0:
                by_item[best] = REQUIRED
                size[c] += 1
    return by_item, size


@kernel
def unposted(offsets, items, by_item, order):
    """The predicates of each number that no list tells of."""
    left_offsets = np.zeros(len(order) + 1, np.int64)
    left = np.empty(np.sum(by_item == LEFT_OUT), np.int32)
    used = 0
    for n in range(len(order)):
        for i in range(offsets[order[n]], offsets[order[n] + 1]):
            if by_item[i] == LEFT_OUT:
                left[used] = items[i]
                used += 1
        left_offsets[n + 1] = used
    return left_offsets, left


# The index as one argument of kernels.
make_k_index = handle("KIndexHandle", ["spaces", "strings", *_OWN])


# The memory of one search as one argument of kernels.
make_k_index_scratch = handle(
    "KIndexScratchHandle", ["located", "place", "front", "blocked", "starts", "ends", "found", "counters"]
)


@inline
def gather_lists(index, e, n, scratch):
    """The event's lists: place[l] = where it stands and ends in the entries that are returned; how many, and whether
    some attribute has several values or a range.

    Such an attribute's lists become one, without doubles, in a copy of all the lists; what its values forbid is left
    out and has to be verified.
    """
    located, space_base, posting_offsets, place = (
        scratch.located,
        index.space_base,
        index.posting_offsets,
        scratch.place,
    )
    present, first, stop, at_low, at_high = located.present, located.first, located.stop, e.at_low, e.at_high
    several = False
    lists = 0
    total = 0
    for i in range(n):
        a = present[i]
        j = first[a]
        several |= stop[a] > j + 1 or at_low[j] != at_high[j]
        for j in range(first[a], stop[a]):
            for slot in range(space_base[a] + at_low[j], space_base[a] + at_high[j] + 1):
                total += posting_offsets[slot + 1] - posting_offsets[slot]
                place[lists, 0] = posting_offsets[slot]
                place[lists, 1] = posting_offsets[slot + 1]
        lists += place[lists, 0] < place[lists, 1]
    if not several:
        return index.posting, lists, False
    posting = index.posting
    copy = np.empty(total, np.int32)
    used = 0
    lists = 0
    for i in range(n):
        a = present[i]
        begin = used
        one = stop[a] == first[a] + 1 and at_low[first[a]] == at_high[first[a]]
        for j in range(first[a], stop[a]):
            for slot in range(space_base[a] + at_low[j], space_base[a] + at_high[j] + 1):
                for x in range(posting_offsets[slot], posting_offsets[slot + 1]):
                    if one or posting[x] & 1:
                        copy[used] = posting[x]
                        used += 1
        if not one:
            copy[begin:used].sort()
            kept = begin
            for x in range(begin, used):
                if x == begin or copy[x] != copy[x - 1]:
                    copy[kept] = copy[x]
                    kept += 1
            used = kept
        if used > begin:
            place[lists, 0], place[lists, 1] = begin, used
            lists += 1
    return copy, lists, True


@inline
def k_index_event(index, e, event, event_view, scratch, start):
    """Put the conjunctions that an event satisfies into `found` from `start` on; where they end."""
    found, counters, starts, ends = scratch.found, scratch.counters, scratch.starts, scratch.ends
    n = group_entries(e, locate(index.spaces, e, event), scratch.located)
    entries, lists, several = gather_lists(index, e, n, scratch)
    place, front, blocked = scratch.place, scratch.front, scratch.blocked
    order, class_start, word_offsets = index.order, index.class_start, index.word_offsets
    k = start
    count = steps = 0
    for size in range(min(len(class_start) - 2, lists) + 1):
        if class_start[size] == class_start[size + 1]:
            continue
        low, limit = 2 * class_start[size], 2 * class_start[size + 1]
        active = 0
        for i in range(lists):
            j, end = place[i, 0], place[i, 1]
            if size > 0 and j < end and entries[j] < low:
                j = skip_to(entries, j, end, low)
                place[i, 0] = j
            if j < end and entries[j] < limit:
                front[active] = np.int64(entries[j]) << 32 | i
                active += 1
        if size == 0:
            # Nothing is required: all but those that some list forbids.
            for i in range(active):
                j, end = place[front[i] & LOW_HALF, 0], place[front[i] & LOW_HALF, 1]
                while j < end and entries[j] < limit:
                    blocked[entries[j] >> 1] = 1
                    j += 1
            number = np.int32(-1)
        elif active >= size:
            sort_lists(front, active)
        while True:
            # The next candidate of the class.
            if size == 0:
                number += 1
                while number < class_start[1] and blocked[number]:
                    blocked[number] = 0
                    number += 1
                if number >= class_start[1]:
                    break
            else:
                agreed = False
                number = np.int32(0)
                while active >= size and not agreed:
                    number = np.int32(front[size - 1] >> 33)
                    lowest = front[0] >> 32
                    agreed = lowest >> 1 == number
                    target = 2 * number + 2 * agreed
                    agreed = agreed and lowest & 1 == 1
                    moved = 0
                    while moved < active and front[moved] >> 32 < target:
                        i = front[moved] & LOW_HALF
                        j = skip_to(entries, place[i, 0], place[i, 1], target)
                        place[i, 0] = j
                        entry = np.int64(entries[j]) if j < place[i, 1] else np.int64(limit)
                        front[moved] = entry << 32 | i
                        moved += 1
                    steps += moved
                    for i in range(moved - 1, -1, -1):  # each moved one into the sorted rest
                        entry = front[i]
                        j = i + 1
                        while j < active and front[j] < entry:
                            front[j - 1] = front[j]
                            j += 1
                        front[j - 1] = entry
                    while active > 0 and front[active - 1] >> 32 >= limit:
                        active -= 1
                if not agreed:
                    break
            if not several and word_offsets[number + 1] == word_offsets[number] + 1:
                found[k] = order[number]  # there is nothing left to verify
                k += 1
            elif count and ends[count - 1] == number:
                ends[count - 1] = number + 1
            else:
                starts[count], ends[count] = number, number + 1
                count += 1
    counters[0] += k - start
    counters[1] += steps
    words, offsets = (index.all_words, index.all_offsets) if several else (index.words, word_offsets)
    if count == 0:
        return k
    view_event(e, event, event_view, len(index.space_base) - 1)
    return verify_stretches(words, offsets, starts, ends, count, event_view, e, index.strings, found, k, counters)


@inline
def skip_to(entries, j, end, target):
    """The first place from j on whose entry is not below the target: by steps that double, then by halves."""
    step = 1
    low = j
    while j + step < end and entries[j + step] < target:
        low = j + step
        step *= 2
    high = min(j + step, end)
    if entries[low] >= target:
        return low
    while low + 1 < high:  # entries[low] < target, and entries[high] is not, or is the end
        middle = (low + high) >> 1
        if entries[middle] < target:
            low = middle
        else:
            high = middle
    return high


@inline
def sort_lists(front, n):
    for i in range(1, n):
        entry = front[i]
        j = i
        while j > 0 and front[j - 1] > entry:
            front[j] = front[j - 1]
            j -= 1
        front[j] = entry


KIndex.search_events = staticmethod(searching(k_index_event))
