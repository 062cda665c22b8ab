"""`op-index` kept sorted: conjunctions are put in one by one, and every list is in order after each of them.

The other way to construct it (the PS-Tree paper, Figure 5(b)): where events arrive between rules, there is no moment
at which all lists could be sorted at once. The matcher itself has no need of this, since it collects new rules in
small segments (`segments/`); it is here so that the two ways can be compared.

    rows of a partition        row_start[p] … row_stop[p], room up to row_room[p]
    lists of a partition       list_start[p] … list_stop[p], room up to list_room[p]
    entries of list l          extent[4l] … extent[4l+1], room up to extent[4l+3]

The layout is that of op_index.py, and so is the search; between the stretches there is room. A stretch that is full
moves to the end of its pool, twice as large; what it leaves behind is not used again. A new entry goes where its
operand belongs, and those after it are shifted: this is what keeping sorted costs.

The pivot is the rarest attribute among the conjunctions so far, so it may be another than if all were known.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from eligo.compile.compiled import grown
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer
from eligo.index.rows.packed_predicate import BEHIND
from eligo.index.rows.row_encoder import checks_of, joined_rows
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline, kernel
from eligo_lab.rivals.op_index import OWN, OpIndex, OpIndexScratch
from eligo_lab.rivals.op_lists import (
    BETWEEN,
    MANY_RUNS,
    MARK,
    MOST_COUNTED,
    SEVERAL,
    SHAPE_BITS,
    UNLISTED,
    build_listing,
    from_above,
    shape_of,
)

_GIVEN = ("offsets", "items", "attribute", "leading", "how", "check_starts", "checks", "rank")
ROWS, LISTS, PAIRS, TRIPLES, VERIFIED = range(5)  # what is used of each pool


class KeptSorted:
    """Some of a set of conjunctions, in the order of `insert`."""

    def __init__(self, conjunctions: Conjunctions) -> None:
        self.conjunctions = conjunctions
        attributes = len(conjunctions.spaces.space_count)
        partitions = 2 * attributes + 1
        listing, checks = build_listing(conjunctions), checks_of(conjunctions)

        def ints(count: int) -> object:
            return np.zeros(count, np.int32)

        strings = make_string_handle(*conjunctions.strings.spans())
        self.handle = make_kept(
            conjunctions.space_handle, conjunctions.predicate_handle, strings,
            ints(partitions), ints(partitions), ints(attributes), ints(attributes), np.full(attributes, 256, np.int32),
            np.zeros(16, np.uint8), ints(16), ints(16), ints(64), ints(64), ints(64),
            np.zeros(BEHIND, np.int64), np.zeros(1, np.int64),
            ints(partitions), ints(attributes), np.zeros(attributes, np.int64), np.zeros(5, np.int64),
            conjunctions.offsets, conjunctions.items, listing.attribute, listing.leading, listing.how, *checks,
            unlikeliness(conjunctions),
        )  # fmt: skip

    def insert(self, first: int, stop: int) -> None:
        """Put in the conjunctions first … stop-1, one after the other."""
        insert_all(self.handle, first, stop)

    def scratch(self) -> OpIndexScratch:
        """Memory for one search at a time, enough for what is in by now."""
        rows = largest_partition(self.handle)
        return OpIndexScratch(self.conjunctions, rows, len(self.conjunctions))

    def search(self, events: EventBuffer, event: int, scratch: OpIndexScratch) -> int:
        """As `Index.search` does."""
        scratch.fit_event_view(self.conjunctions.attributes, events.widest)
        OpIndex.search_events(
            self.handle, events.handle, event, event + 1, scratch.event_view, scratch.handle, scratch.offsets, 0
        )
        return int(scratch.offsets[1])


# The index, as far as it is filled, as one argument of kernels; its arrays are replaced when they are full.
make_kept = handle(
    "KeptHandle", ["spaces", "predicates", "strings", *OWN, "row_room", "list_room", "frequency", "used", *_GIVEN]
)


@intrinsic
def move(context, array, source, target, count):
    """array[target : target + count] = array[source : source + count], which may overlap: the machine's memmove.

    A loop that shifts item by item takes several times as long, and shifting is most of what keeping sorted costs.
    """

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        cgutils.raw_memmove(
            builder, builder.gep(data, [arguments[2]]), builder.gep(data, [arguments[1]]), arguments[3], size
        )
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, types.intp), generate


@kernel
def largest_partition(k):
    largest = 0
    for p in range(len(k.least)):
        largest = max(largest, k.row_stop[p] - k.row_start[p])
    return largest


@kernel
def insert_all(k, first, stop):
    spaces, p = k.spaces, k.predicates
    attributes = len(k.least)
    for c in range(first, stop):
        pivot = -1
        counted = different = 0
        last = -1
        for i in range(k.offsets[c], k.offsets[c + 1]):
            q = k.items[i]
            if k.leading[q]:
                k.frequency[k.attribute[q]] += 1
        for i in range(k.offsets[c], k.offsets[c + 1]):
            q = k.items[i]
            a = k.attribute[q]
            if k.leading[q] and (pivot < 0 or k.frequency[a] < k.frequency[pivot]):
                pivot = a
            if k.how[q] != UNLISTED and counted < MOST_COUNTED:
                counted += 1
                different += a != last
                last = a
        partition = 2 * attributes if pivot < 0 else pivot if counted else attributes + pivot
        row = new_row(k, partition)
        k.need[row] = counted
        k.member[row] = c
        if counted < k.offsets[c + 1] - k.offsets[c] or not counted:
            k.member[row] = -1 - new_verified_row(k, c)
        if not counted:
            continue
        k.least[pivot] = min(k.least[pivot], different)
        row -= k.row_start[pivot]
        counted = 0
        for i in range(k.offsets[c], k.offsets[c + 1]):
            q = k.items[i]
            if k.how[q] == UNLISTED or counted == MOST_COUNTED:
                continue
            counted += 1
            a = k.attribute[q]
            many = k.how[q] == MANY_RUNS
            for run in range(p.run_offsets[q], p.run_offsets[q + 1]):
                low, high = p.run_low[run], p.run_high[run]
                shape = shape_of(
                    low, high, spaces.boolean_base[a], spaces.time_base[a], spaces.string_base[a], spaces.space_count[a]
                )
                put(k, pivot, a << SHAPE_BITS | shape, -high if from_above(shape) else low, high, row | MARK * many)
            if many:
                put(k, pivot, a << SHAPE_BITS | SEVERAL, q, 0, row)


@inline
def new_row(k, partition):
    """A row at the end of a partition."""
    start, stop = k.row_start[partition], k.row_stop[partition]
    if stop == k.row_room[partition]:
        moved = k.used[ROWS]
        room = max(4, 2 * (stop - start))
        k.used[ROWS] += room
        k.need, k.member = grown(k.need, k.used[ROWS]), grown(k.member, k.used[ROWS])
        move(k.need, start, moved, stop - start)
        move(k.member, start, moved, stop - start)
        k.row_start[partition], k.row_room[partition] = moved, moved + room
        stop += moved - start
    k.row_stop[partition] = stop + 1
    return stop


@inline
def new_verified_row(k, c):
    """A row for what is not counted of a conjunction, the likeliest to fail first."""
    row = k.used[VERIFIED]
    k.used[VERIFIED] += 1
    left = np.empty(k.offsets[c + 1] - k.offsets[c], np.int32)
    counted = n = 0
    for i in range(k.offsets[c], k.offsets[c + 1]):
        q = k.items[i]
        if k.how[q] != UNLISTED and counted < MOST_COUNTED:
            counted += 1
            continue
        left[n] = q
        n += 1
    ends = np.zeros(2, np.int64)
    ends[1] = n
    words, offsets = joined_rows(
        ends, left, k.check_starts, k.checks, k.rank, np.zeros(1, np.int32), np.full(1, np.int32(-1))
    )
    words[0] |= np.int64(c) << 32
    begin = k.word_offsets[row]
    k.words = grown(k.words, begin + len(words) + BEHIND)
    for i in range(len(words)):
        k.words[begin + i] = words[i]
    k.word_offsets = grown(k.word_offsets, row + 2)
    k.word_offsets[row + 1] = begin + offsets[1]
    return row


@inline
def find_list(k, pivot, key):
    """The list of a key in a partition; where there is none, a new one in its place."""
    list_key = k.list_key
    low, high = k.list_start[pivot], k.list_stop[pivot]
    while low < high:
        middle = (low + high) >> 1
        if list_key[middle] < key:
            low = middle + 1
        else:
            high = middle
    start, stop = k.list_start[pivot], k.list_stop[pivot]
    if low < stop and list_key[low] == key:
        return low
    if stop == k.list_room[pivot]:
        moved = k.used[LISTS]
        room = max(8, 2 * (stop - start))
        k.used[LISTS] += room
        k.list_key, k.extent = grown(k.list_key, k.used[LISTS]), grown(k.extent, 4 * k.used[LISTS])
        move(k.list_key, start, moved, stop - start)
        move(k.extent, 4 * start, 4 * moved, 4 * (stop - start))
        k.list_start[pivot], k.list_room[pivot] = moved, moved + room
        low += moved - start
        stop += moved - start
    list_key, extent = k.list_key, k.extent
    move(list_key, low, low + 1, stop - low)
    move(extent, 4 * low, 4 * low + 4, 4 * (stop - low))
    list_key[low] = key
    for i in range(4 * low, 4 * low + 4):
        extent[i] = 0
    k.list_stop[pivot] = stop + 1
    return low


@inline
def put(k, pivot, key, operand, high, row):
    """An entry into its list, in its place."""
    shape = key & ((1 << SHAPE_BITS) - 1)
    at = 4 * find_list(k, pivot, key)
    width, pool = (3, TRIPLES) if shape == BETWEEN else (2, PAIRS)
    extent = k.extent
    start, stop = extent[at], extent[at + 1]
    if stop == extent[at + 3]:
        moved = k.used[pool]
        room = max(2, 2 * (stop - start))
        k.used[pool] += room
        if shape == BETWEEN:
            k.triple = grown(k.triple, width * k.used[pool])
        else:
            k.pair = grown(k.pair, width * k.used[pool])
        entries = k.triple if shape == BETWEEN else k.pair
        move(entries, width * start, width * moved, width * (stop - start))
        stop += moved - start
        start = moved
        extent[at], extent[at + 3] = start, start + room
    entries = k.triple if shape == BETWEEN else k.pair
    low, end = start, stop
    while low < end:
        middle = (low + end) >> 1
        if entries[width * middle] <= operand:
            low = middle + 1
        else:
            end = middle
    move(entries, width * low, width * (low + 1), width * (stop - low))
    entries[width * low] = operand
    entries[width * low + width - 1] = row
    if shape == BETWEEN:
        entries[width * low + 1] = high
        extent[at + 2] = max(extent[at + 2], high - operand)
    extent[at + 1] = stop + 1
