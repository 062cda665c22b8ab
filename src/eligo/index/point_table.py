"""Points: the single values that predicates hold for, in a hash table from a value to what begins there.

    point i           place[i] = attribute << 3 | kind of value, value[i] its coordinate, ascending by both;
                      those of attribute a are start[a] … start[a+1]
    slots             slots[2s] = place << 32 | i, or -1;  slots[2s+1] = value: hashed, open addressing

A value of an event is looked up by hash, and a range of values by halving. A coordinate may stand for several integers
far out, of which a predicate names one: what is found there still has to be checked.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import I64, grown, mixed
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import ordered_float
from eligo.index.rows.line import NUMBER, STRING, low_at
from eligo.index.rows.packed_predicate import (
    AMONG,
    ASK,
    INSIDE,
    PLACE,
    PLACES,
    kind_of,
    mask_step,
    shape_of,
)
from eligo.index.rows.slow_path import pair_at, pairs_of
from eligo.jit import bits_of, inline, kernel

NO_POINT = -1


def points_of(conjunctions: Conjunctions, checks: tuple[I64, I64]) -> tuple[I64, I64, I64]:
    """Returns the points of all predicates: predicate p holds for ends[p] … ends[p+1] of `place` and `value`, and for
    no other value. One that has none may hold for any.
    """
    c = conjunctions.compiled
    ends, place, value = find_points(
        *checks, c.attribute, c.run_offsets, c.low_kind, c.low_key, c.high_kind, c.high_key
    )
    return ends, place, value


@kernel
def find_points(starts, checks, attribute, run_offsets, low_kind, low_key, high_kind, high_key):
    n = len(attribute)
    ends, place, value = np.zeros(n + 1, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    k = 0
    for p in range(n):
        q = starts[p]
        code = checks[q]
        shape, kind = shape_of(code), kind_of(code)
        here, begin = np.int64(attribute[p]) << 3 | kind, k
        place, value = grown(place, k + 64), grown(value, k + 64)
        if shape == AMONG and code < 0:
            lowest = code >> PLACE & PLACES
            for bit in range(64):
                if checks[q + 1] >> bit & 1:
                    place[k], value[k] = here, low_at(lowest + (bit << mask_step(lowest)))
                    k += 1
        elif shape in (AMONG, INSIDE):
            first, stop, step = pairs_of(code, q)
            for pair in range(first, stop, step):
                low, high = pair_at(code, checks, pair)
                if low > high or (low < high and (kind != STRING or low < 0 or high - low >= 64)):
                    k = begin
                    break
                place, value = grown(place, k + 64), grown(value, k + 64)
                for x in range(low, high + 1):
                    place[k], value[k] = here, x
                    k += 1
        elif shape == ASK and kind == NUMBER and run_offsets[p + 1] == run_offsets[p] + 1:
            r = run_offsets[p]
            if low_kind[r] == codes.NUMBER_CUT and high_kind[r] == codes.NUMBER_CUT and high_key[r] == low_key[r] + 1:
                place[k], value[k] = here, ordered_float(bits_of(np.float64(low_key[r])))
                k += 1
        ends[p + 1] = k
    return ends, place[:k].copy(), value[:k].copy()


@inline
def hash_point(place, value):
    return mixed(mixed(np.uint64(0), place), value)


@kernel
def fill_slots(place, value):
    """Returns the hash table of some points."""
    size = 16
    while 2 * size < 3 * len(place):
        size *= 2
    mask, one, two = np.uint64(size - 1), np.uint64(1), np.uint64(2)
    slots = np.full(2 * size, NO_POINT, np.int64)
    for i in range(len(place)):
        at = hash_point(place[i], value[i]) & mask
        while slots[two * at] != NO_POINT:
            at = (at + one) & mask
        slots[two * at], slots[two * at + one] = place[i] << 32 | i, value[i]
    return slots


@inline
def find_point(slots, place, value):
    """Returns the point of a value, or NO_POINT."""
    mask, one, two = np.uint64(len(slots) // 2 - 1), np.uint64(1), np.uint64(2)
    at = hash_point(place, value) & mask
    while slots[two * at] != NO_POINT:
        if slots[two * at] >> 32 == place and slots[two * at + one] == value:
            return slots[two * at] & 0xFFFF_FFFF
        at = (at + one) & mask
    return np.int64(NO_POINT)


@inline
def first_point(places, values, first, stop, place, value):
    """Returns the first of points first … stop - 1 that does not lie before a place and value, or `stop`."""
    while first < stop:
        middle = (first + stop) >> 1
        if places[middle] < place or (places[middle] == place and values[middle] < value):
            first = middle + 1
        else:
            stop = middle
    return first
