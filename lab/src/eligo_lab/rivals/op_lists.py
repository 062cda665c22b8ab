"""Predicates in lists by operator, sorted by operand: the second level of `op-index`, and how all are sorted at once.

A predicate is one or several runs of spaces, and each run is an entry of a list. The operators become shapes, such that
what one value satisfies is a stretch of the list:

    EQUAL                      one space                    operand: the space        the entries that have it
    BELOW                      from the first space on      operand: -high            a prefix
    ABOVE                      up to the last space         operand: low              a prefix
    NUMBER_ABOVE, TIME_BELOW, TIME_ABOVE, STRING_BELOW      the same within the spaces of one kind of value
    BETWEEN                    any other run                operands: low, high       a window as wide as the widest of
                                                                                      the list, looked at one by one
    SEVERAL                    whole predicates of several runs, by number: only for attributes with several values

Runs of one predicate are disjoint, so one value satisfies at most one. For several values or a range the entries of
such predicates, which are marked, are passed over, and the SEVERAL list is asked instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.compiled import I32, U8, Arrays, grown
from eligo.compile.conjunctions import Conjunctions
from eligo.index.access import leading
from eligo.jit import inline, kernel

# In this order: the first two are searched for their start, the next three have their end as operand.
EQUAL, BETWEEN, BELOW, TIME_BELOW, STRING_BELOW, ABOVE, NUMBER_ABOVE, TIME_ABOVE, SEVERAL = range(9)
SHAPE_BITS = 4
MARK = 1 << 30  # on an entry's row: its predicate has several runs
MOST_RUNS = 16
MOST_COUNTED = 254  # predicates of a conjunction, so that a byte counts them
UNLISTED, ONE_RUN, MANY_RUNS = 0, 1, 2


@dataclass(frozen=True)
class Listing:
    """What both forms of the index know of predicates before any conjunction is put in."""

    attribute: I32
    leading: NDArray[np.bool_]
    how: U8  # UNLISTED, ONE_RUN, MANY_RUNS


def build_listing(conjunctions: Conjunctions) -> Listing:
    p = conjunctions.predicates
    attribute = p.attribute()
    leads = leading(conjunctions)
    how = listable(attribute, leads, p.flags, p.run_offsets, p.run_low, p.run_high, conjunctions.spaces.space_count)
    return Listing(attribute, leads, how)


@kernel
def listable(attribute, leads, flags, run_offsets, run_low, run_high, space_count):
    """How each predicate is listed.

    Not where an absent attribute or a pattern has a say. Nor lists of values that most values satisfy (`!=`, `not
    in`): counting them for nearly every event costs more than checking them where all else holds.
    """
    how = np.zeros(len(attribute), np.uint8)
    for p in range(len(attribute)):
        runs = run_offsets[p + 1] - run_offsets[p]
        if not leads[p] or flags[p] & codes.RESIDUAL or runs > MOST_RUNS:
            continue
        if runs == 1:
            how[p] = ONE_RUN
            continue
        covered = 0
        for r in range(run_offsets[p], run_offsets[p + 1]):
            covered += run_high[r] - run_low[r] + 1
        if 2 * covered <= space_count[attribute[p]]:
            how[p] = MANY_RUNS
    return how


@inline
def shape_of(low, high, boolean_base, time_base, string_base, space_count):
    """The list of a run of one attribute."""
    if low == high:
        return EQUAL
    if low == 0:
        return BELOW
    if high == space_count - 1:
        return ABOVE
    if high == boolean_base - 1:
        return NUMBER_ABOVE
    if low == string_base:
        return STRING_BELOW
    if low == time_base and high < string_base:
        return TIME_BELOW
    if low > time_base and high == string_base - 1:
        return TIME_ABOVE
    return BETWEEN


@inline
def from_above(shape):
    """Whether the operand is the negated end of the run, rather than its start."""
    return BELOW <= shape <= STRING_BELOW


@inline
def shapes_at(space, boolean_base, time_base, string_base):
    """A bit for each shape whose entries a value in this space may satisfy."""
    shapes = 1 << EQUAL | 1 << BELOW | 1 << ABOVE | 1 << BETWEEN
    if space < boolean_base:
        return shapes | 1 << NUMBER_ABOVE
    if space >= string_base:
        return shapes | 1 << STRING_BELOW
    if space >= time_base:
        return shapes | 1 << TIME_BELOW | 1 << TIME_ABOVE
    return shapes


@inline
def run_start(shape, operand, time_base, string_base):
    """The first space of an entry of any shape but BETWEEN."""
    if shape == BELOW:
        return 0
    if shape == TIME_BELOW:
        return time_base
    if shape == STRING_BELOW:
        return string_base
    return operand


@inline
def run_end(shape, operand, boolean_base, string_base, space_count):
    """The last space of an entry of any shape but BETWEEN."""
    if from_above(shape):
        return -operand
    if shape == ABOVE:
        return space_count - 1
    if shape == NUMBER_ABOVE:
        return boolean_base - 1
    if shape == TIME_ABOVE:
        return string_base - 1
    return operand


@kernel
def pivots(offsets, items, attribute, leads, how, attributes):
    """Partition, number of counted predicates and number of their attributes, of each conjunction.

    The pivot is the rarest attribute that can lead to the conjunction. Partitions: the pivot itself; attributes +
    pivot, where nothing is counted; twice the attributes, where there is no pivot.
    """
    frequency = np.zeros(attributes, np.int64)
    for i in range(len(items)):
        if leads[items[i]]:
            frequency[attribute[items[i]]] += 1
    n = len(offsets) - 1
    partition = np.empty(n, np.int32)
    need = np.zeros(n, np.uint8)
    least = np.full(attributes, 256, np.int32)
    for c in range(n):
        pivot = -1
        counted = different = 0
        last = -1
        for i in range(offsets[c], offsets[c + 1]):
            p = items[i]
            a = attribute[p]
            if leads[p] and (pivot < 0 or frequency[a] < frequency[pivot]):
                pivot = a
            if how[p] != UNLISTED and counted < MOST_COUNTED:
                counted += 1
                different += a != last  # predicates are sorted by attribute
                last = a
        need[c] = counted
        partition[c] = 2 * attributes if pivot < 0 else pivot if counted else attributes + pivot
        if counted:
            least[pivot] = min(least[pivot], different)
    return partition, need, least


@kernel
def sorted_lists(
    offsets, items, attribute, how, run_offsets, run_low, run_high, boolean_base, time_base, string_base, space_count,
    order, row_start, row_stop,
):  # fmt: skip
    """All lists, each sorted once: a partition's entries are written down, sorted by list and operand, and dealt."""
    attributes = len(space_count)
    list_start, list_stop = np.zeros(attributes, np.int32), np.zeros(attributes, np.int32)
    list_key, extent = np.empty(16, np.int32), np.empty(64, np.int32)
    pair, triple = np.empty(2 * len(items), np.int32), np.empty(2 * len(items), np.int32)
    lists = pairs = triples = 0
    for pivot in range(attributes):
        entries = 0
        for r in range(row_start[pivot], row_stop[pivot]):
            for i in range(offsets[order[r]], offsets[order[r] + 1]):
                entries += run_offsets[items[i] + 1] - run_offsets[items[i]] + 1
        key, row, end = np.empty(entries, np.int64), np.empty(entries, np.int32), np.empty(entries, np.int32)
        entries = 0
        for r in range(row_start[pivot], row_stop[pivot]):
            counted = 0
            for i in range(offsets[order[r]], offsets[order[r] + 1]):
                p = items[i]
                if how[p] == UNLISTED or counted == MOST_COUNTED:
                    continue
                counted += 1
                a = attribute[p]
                for run in range(run_offsets[p], run_offsets[p + 1]):
                    low, high = run_low[run], run_high[run]
                    shape = shape_of(low, high, boolean_base[a], time_base[a], string_base[a], space_count[a])
                    operand = -high if from_above(shape) else low
                    key[entries] = np.int64(a << SHAPE_BITS | shape) << 32 | (operand + (1 << 31))
                    row[entries] = (r - row_start[pivot]) | (MARK if how[p] == MANY_RUNS else 0)
                    end[entries] = high
                    entries += 1
                if how[p] == MANY_RUNS:
                    key[entries] = np.int64(a << SHAPE_BITS | SEVERAL) << 32 | (p + (1 << 31))
                    row[entries] = r - row_start[pivot]
                    entries += 1
        rank = np.argsort(key[:entries])
        list_start[pivot] = lists
        pair, triple = grown(pair, 2 * (pairs + entries)), grown(triple, 3 * (triples + entries))
        list_key, extent = grown(list_key, lists + entries), grown(extent, 4 * (lists + entries))
        for j in range(entries):
            i = rank[j]
            name = key[i] >> 32
            shape = name & ((1 << SHAPE_BITS) - 1)
            operand = (key[i] & 0xFFFFFFFF) - (1 << 31)
            if j == 0 or name != key[rank[j - 1]] >> 32:
                list_key[lists] = name
                extent[4 * lists] = triples if shape == BETWEEN else pairs
                extent[4 * lists + 2] = 0
                lists += 1
            if shape == BETWEEN:
                triple[3 * triples], triple[3 * triples + 1] = operand, end[i]
                triple[3 * triples + 2] = row[i]
                triples += 1
                extent[4 * lists - 2] = max(extent[4 * lists - 2], end[i] - operand)
            else:
                pair[2 * pairs], pair[2 * pairs + 1] = operand, row[i]
                pairs += 1
            extent[4 * lists - 3] = triples if shape == BETWEEN else pairs
            extent[4 * lists - 1] = extent[4 * lists - 3]
        list_stop[pivot] = lists
    return (
        list_start, list_stop, list_key[:lists].copy(), extent[: 4 * lists].copy(), pair[: 2 * pairs].copy(),
        triple[: 3 * triples].copy(),
    )  # fmt: skip


@kernel
def left_over(offsets, items, how, order, always):
    """The rows with predicates that are not counted, and these; rows from `always` on are there in any case."""
    rows = np.empty(len(order), np.int32)
    left_offsets = np.zeros(len(order) + 1, np.int64)
    left = np.empty(len(items), np.int32)
    n = used = 0
    for r in range(len(order)):
        counted = 0
        start = used
        for i in range(offsets[order[r]], offsets[order[r] + 1]):
            if how[items[i]] != UNLISTED and counted < MOST_COUNTED:
                counted += 1
            else:
                left[used] = items[i]
                used += 1
        if used > start or r >= always:
            rows[n] = r
            n += 1
            left_offsets[n] = used
    return rows[:n].copy(), left_offsets[: n + 1].copy(), left[:used].copy()


def sort_once(conjunctions: Conjunctions, listing: Listing, order: I32, row_start: I32, row_stop: I32) -> Arrays:
    """The lists of all partitions."""
    p, spaces = conjunctions.predicates, conjunctions.spaces
    arrays = sorted_lists(
        conjunctions.offsets, conjunctions.items, listing.attribute, listing.how, p.run_offsets, p.run_low, p.run_high,
        spaces.boolean_base, spaces.time_base, spaces.string_base, spaces.space_count, order, row_start, row_stop,
    )  # fmt: skip
    names = ("list_start", "list_stop", "list_key", "extent", "pair", "triple")
    return dict(zip(names, arrays, strict=True))
