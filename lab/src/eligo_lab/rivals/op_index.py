"""`op-index`: partitions by pivot attribute, sorted predicate lists by operator within (Zhang et al., VLDB 2014).

    conjunction  →  pivot, the rarest of its attributes that can lead to it  →  partition  →  lists of its predicates

    partition p     rows row_start[p] … row_stop[p], lists list_start[p] … list_stop[p]; each row needs predicates on
                    least[p] attributes or more.  p is a pivot attribute; attributes + pivot where no predicate can be
                    counted; the last one is for conjunctions without a pivot
    row r           need[r]: how many predicates are counted;  member[r]: the conjunction or, where predicates are left
                    to verify, -1 - its row of `words` (rows/packed_predicate.py)
    list l          list_key[l] = attribute << SHAPE_BITS | shape, ascending within a partition;
                    extent[4l], extent[4l+1]: where its entries start and stop; extent[4l+2]: its widest interval
    entry i         pair[2i], pair[2i+1]: operand, row within the partition; ascending by operand (op_lists.py)
      of BETWEEN    triple[3i] …: low, high, row

Invariant: a conjunction stands in one partition, and each counted predicate in the lists of that partition alone.

An event comes upon the partitions of its own attributes. In each it takes the lists of its own attributes, and every
satisfied entry takes one off its row's counter. The counters of one partition are a short stretch of bytes that stays
in the first-level cache, and are the only ones to be reset.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.compile.predicates import holds
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.rows.event_view import view_event
from eligo.index.rows.row_encoder import checks_of
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.rows.verify import verify_stretches
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline
from eligo_lab.rivals.op_lists import (
    BETWEEN,
    EQUAL,
    MARK,
    SEVERAL,
    SHAPE_BITS,
    build_listing,
    from_above,
    left_over,
    pivots,
    run_end,
    run_start,
    shapes_at,
    sort_once,
)
from eligo_lab.rivals.rows import ROW_ARRAYS, group_entries, nothing_located, rows_of

OWN = (
    "row_start", "row_stop", "list_start", "list_stop", "least", "need", "member", "list_key", "extent", "pair",
    "triple", *ROW_ARRAYS,
)  # fmt: skip
SHAPE = (1 << SHAPE_BITS) - 1


class OpIndexScratch(Scratch):
    def __init__(self, conjunctions: Conjunctions, rows: int, verified: int) -> None:
        super().__init__(len(conjunctions))
        attributes = len(conjunctions.spaces.space_count)
        self.handle = make_op_index_scratch(
            nothing_located(conjunctions),
            np.zeros(rows, np.uint8),
            np.zeros(rows + 1, np.int32),
            np.zeros((attributes, 2), np.int32),
            np.zeros((attributes, 2), np.int32),
            np.zeros(verified + 1, np.int64),
            np.zeros(verified + 1, np.int64),
            self.found,
            self.counters,
        )


class OpIndex(ArrayIndex):
    """Pivots, operators and counters; see the top of this file."""

    name = "op-index"
    summary = "partitions by rarest attribute, predicate lists by operator, counting (OpIndex)"

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        self.handle = make_op_index(
            conjunctions.space_handle,
            conjunctions.predicate_handle,
            make_string_handle(*conjunctions.strings.spans()),
            *(arrays[name] for name in OWN),
        )

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> OpIndex:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        attributes = len(conjunctions.spaces.space_count)
        listing = build_listing(conjunctions)
        offsets, items = conjunctions.offsets, conjunctions.items
        partition, need, least = pivots(offsets, items, listing.attribute, listing.leading, listing.how, attributes)
        order = np.argsort(partition, kind="stable").astype(np.int32)
        starts = np.searchsorted(partition[order], np.arange(2 * attributes + 2)).astype(np.int32)
        row_start, row_stop = starts[:-1].copy(), starts[1:].copy()
        verified, left_offsets, left = left_over(offsets, items, listing.how, order, starts[attributes])
        member = order.copy()
        member[verified] = -1 - np.arange(len(verified), dtype=np.int32)
        rows = rows_of(order[verified], left_offsets, left, checks_of(conjunctions), rank)
        return cls(
            conjunctions,
            {
                "row_start": row_start,
                "row_stop": row_stop,
                "least": least,
                "need": need[order],
                "member": member,
                **sort_once(conjunctions, listing, order, row_start, row_stop),
                **rows,
            },
        )

    def scratch(self) -> OpIndexScratch:
        a = self._arrays
        partitions = len(a["least"])
        rows = (a["row_stop"] - a["row_start"])[:partitions].max(initial=0)
        return OpIndexScratch(self.conjunctions, int(rows), len(a["word_offsets"]) - 1)

    def notes(self) -> dict[str, object]:
        a = self._arrays
        pivoted = len(a["least"])
        size = a["row_stop"] - a["row_start"]
        return {
            "partitions": int(np.count_nonzero(size[:pivoted])),
            "lists": len(a["list_key"]),
            "entries": len(a["pair"]) // 2 + len(a["triple"]) // 3,
            "verified after counting": len(a["word_offsets"]) - 1 - int(size[pivoted:].sum()),
            "verified where their pivot is present": int(size[pivoted:-1].sum()),
            "always verified": int(size[-1]),
        }


# The index as one argument of kernels.
make_op_index = handle("OpIndexHandle", ["spaces", "predicates", "strings", *OWN])


# The memory of one search as one argument of kernels.
make_op_index_scratch = handle(
    "OpIndexScratchHandle", ["located", "counter", "complete", "spot", "hit", "starts", "ends", "found", "counters"]
)


@inline
def op_match_event(index, e, event, event_view, scratch, start):
    """Put the conjunctions that an event satisfies into `found` from `start` on; where they end."""
    p, located, found, counters = index.predicates, scratch.located, scratch.found, scratch.counters
    n = group_entries(e, locate(index.spaces, e, event), located)
    present, entry_first, entry_stop = located.present, located.first, located.stop
    at_low, at_high = e.at_low, e.at_high
    boolean_base, time_base = index.spaces.boolean_base, index.spaces.time_base
    string_base, space_count = index.spaces.string_base, index.spaces.space_count
    row_start, row_stop, list_start, list_stop = index.row_start, index.row_stop, index.list_start, index.list_stop
    least, need, member, list_key, extent = index.least, index.need, index.member, index.list_key, index.extent
    pair, triple = index.pair, index.triple
    counter, complete, starts, ends = scratch.counter, scratch.complete, scratch.starts, scratch.ends
    spot, hit = scratch.spot, scratch.hit
    attributes = len(least)
    for i in range(n):
        a = present[i]
        j = entry_first[a]
        spot[i, 0], spot[i, 1] = -1, 0
        if entry_stop[a] == j + 1 and at_low[j] == at_high[j]:
            spot[i, 0] = at_low[j]
            spot[i, 1] = shapes_at(at_low[j], boolean_base[a], time_base[a], string_base[a])
    k = start
    count = touched = looked = 0
    for turn in range(n + 1):
        if turn < n:
            pivot = present[turn]
            verified = attributes + pivot
        else:
            pivot = -1
            verified = 2 * attributes
        for r in range(row_start[verified], row_stop[verified]):
            row = -1 - member[r]
            if count > 0 and ends[count - 1] == row:
                ends[count - 1] = row + 1
            else:
                starts[count], ends[count] = row, row + 1
                count += 1
        if pivot < 0 or row_start[pivot] == row_stop[pivot]:
            continue
        # The lists of the event's attributes; too few of them, and no row can get all that it needs.
        lists = 0
        for i in range(n):
            low, high = list_start[pivot], list_stop[pivot]
            wanted = present[i] << SHAPE_BITS
            end = high
            while low < high:
                middle = (low + high) >> 1
                if list_key[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
            if low < end and list_key[low] >> SHAPE_BITS == present[i]:
                hit[lists, 0], hit[lists, 1] = low, i
                lists += 1
        if lists < least[pivot]:
            continue
        base = row_start[pivot]
        for r in range(row_stop[pivot] - base):
            counter[r] = need[base + r]
        completed = 0
        for h in range(lists):
            at, i = hit[h, 0], hit[h, 1]
            a, space, shapes = present[i], spot[i, 0], spot[i, 1]
            while at < list_stop[pivot] and list_key[at] >> SHAPE_BITS == a:
                shape = list_key[at] & SHAPE
                x, end, widest = extent[4 * at], extent[4 * at + 1], extent[4 * at + 2]
                at += 1
                if space < 0:
                    # Several values or a range: entry by entry.
                    looked += end - x
                    for y in range(x, end):
                        row = triple[3 * y + 2] if shape == BETWEEN else pair[2 * y + 1]
                        good = False
                        if shape == SEVERAL:
                            good = holds(p, pair[2 * y], e, entry_first[a], entry_stop[a])
                        elif row & MARK == 0:
                            if shape == BETWEEN:
                                low, high = triple[3 * y], triple[3 * y + 1]
                            else:
                                low = run_start(shape, pair[2 * y], time_base[a], string_base[a])
                                high = run_end(shape, pair[2 * y], boolean_base[a], string_base[a], space_count[a])
                            for j in range(entry_first[a], entry_stop[a]):
                                good |= at_low[j] <= at_high[j] and at_low[j] <= high and low <= at_high[j]
                        if good:
                            touched += 1
                            counter[row] -= 1
                            if counter[row] == 0:
                                complete[completed] = row
                                completed += 1
                    continue
                if shapes >> shape & 1 == 0:
                    continue
                if shape <= BETWEEN:
                    # The first entry that may hold.
                    wanted = space if shape == EQUAL else space - widest
                    high = end
                    while x < high:
                        middle = (x + high) >> 1
                        operand = pair[2 * middle] if shape == EQUAL else triple[3 * middle]
                        if operand < wanted:
                            x = middle + 1
                        else:
                            high = middle
                y = x
                if shape == BETWEEN:
                    while y < end and triple[3 * y] <= space:
                        if triple[3 * y + 1] >= space:
                            row = triple[3 * y + 2] & (MARK - 1)
                            touched += 1
                            counter[row] -= 1
                            if counter[row] == 0:
                                complete[completed] = row
                                completed += 1
                        y += 1
                else:
                    bound = -space if from_above(shape) else space
                    while y < end and pair[2 * y] <= bound:
                        row = pair[2 * y + 1] & (MARK - 1)
                        counter[row] -= 1
                        if counter[row] == 0:
                            complete[completed] = row
                            completed += 1
                        y += 1
                    touched += y - x
                looked += y - x
        for i in range(completed):
            c = member[base + complete[i]]
            if c >= 0:
                found[k] = c
                k += 1
            else:
                starts[count], ends[count] = -1 - c, -c
                count += 1
    counters[0] += touched
    counters[1] += looked
    if count == 0:
        return k
    view_event(e, event, event_view, attributes)
    return verify_stretches(
        index.words, index.word_offsets, starts, ends, count, event_view, e, index.strings, found, k, counters
    )


OpIndex.search_events = staticmethod(searching(op_match_event))
