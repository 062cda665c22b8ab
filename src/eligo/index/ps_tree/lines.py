"""Lines: what an attribute's values look like as positions, and which of them a check names (the PS-Tree paper §4.5).

An attribute has a line for each form in which rules speak of it; line = attribute * 16 + form. The paper has one tree
for all operators. Here equality has lines of its own, on which nothing but single values are spaces: else every value
that some rule names would cut all ranges across it, and their rules would have to be copied to both sides.

    form                        positions                                             spaces
    PRESENT                     0: the attribute is there                              one
    WHOLE, FLOAT, TIME,         half the place on the short line (rows/line.py);    values that rules name
    BOOLEAN, NAMED              ordered bits of a float; microseconds; 0, 1 or 2; number of a string
    …_FINE, …_COARSE            as above, of numbers and times                         ranges (spaces.py)
    TEXT                        the string itself, in layers of seven bytes (string_trie.py) ranges

Most ranges are wide and a few are narrow. Narrow ones go to a fine line with many spaces, others to a coarse one with
few, so that a rule has few spaces on either.

On WHOLE lines bounds are whole numbers, so that (5, …) and [6, …) begin alike. A value between two whole numbers lies
on no position: whatever it satisfies contains one of its neighbours, unless it lies between the same two, as `x > 5 and
x < 6` does; such a check is found by PRESENT. Who goes by neighbours takes nothing for granted.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.index.rows.line import ANY, BOOLEAN, NUMBER, STRING, TOP, is_own_place, unsigned
from eligo.index.rows.line import TIME as TIMES
from eligo.index.rows.packed_predicate import (
    AMONG,
    ASK,
    DISTANCES,
    INSIDE,
    LONG,
    MASKED,
    NEGATIVE,
    PLACE,
    PLACES,
    attribute_of,
    bits_in,
    extra_words,
    flags_of,
    kind_of,
    shape_of,
)
from eligo.jit import inline, kernel

PRESENT, WHOLE, WHOLE_FINE, WHOLE_COARSE, FLOAT, FLOAT_FINE, FLOAT_COARSE = 0, 1, 2, 3, 4, 5, 6
TIME, TIME_FINE, TIME_COARSE, TRUTH, NAMED, TEXT = 7, 8, 9, 10, 11, 12
NOWHERE, POINTS, RANGE = -1, 0, 1  # what a check names: nothing that an index could use, values, a range
MOST_POINTS = 64  # values that a check may name to be found by them


@inline
def is_range(form):
    return form == TEXT or (form < TRUTH and form % 3 != 1 and form != PRESENT)


@inline
def is_usable(code):
    """Whether only events with the attribute satisfy a check."""
    return flags_of(code) & codes.ABSENT_HOLDS == 0


@inline
def whole_low(place):
    """The first whole number at or above a place, as a position."""
    return np.uint64(((place & TOP) + 1) >> 1)


@inline
def whole_high(place):
    """The last whole number at or below a place, as a position."""
    return np.uint64((place & TOP) >> 1)


@inline
def form_of_kind(kind, is_long):
    """The form of equality for a kind of value."""
    if kind == NUMBER:
        return FLOAT if is_long else WHOLE
    if kind == TIMES:
        return TIME
    return TRUTH if kind == BOOLEAN else NAMED


@inline
def pair_at(words, q, i):
    """Interval i of a check that is neither tiny nor to be asked: low and high, as places or, LONG, as coordinates."""
    code = words[q]
    listed = np.int64(shape_of(code) == AMONG)
    if code & LONG:
        return words[q + 1 + 2 * (listed + i)], words[q + 2 + 2 * (listed + i)]
    return words[q + 1 + listed + i] >> 32, words[q + 1 + listed + i] & 0xFFFF_FFFF


@inline
def is_point(kind, is_long, low, high):
    if low != high:
        return False
    if is_long or kind != NUMBER:
        return True
    return is_own_place(low & TOP)


@kernel
def named_by(words, q):
    """What the check at q names: POINTS, RANGE or NOWHERE; the form of equality for its kind of value; how many values,
    if they are few enough to be found by.
    """
    code = words[q]
    flags, shape, kind = flags_of(code), shape_of(code), kind_of(code)
    if flags & codes.ALL_VALUES:
        return NOWHERE, PRESENT, 0
    if code < 0:
        form = form_of_kind(kind, False)
        if code & MASKED:
            return POINTS, form, bits_in(words[q + 1])
        low = code >> PLACE & PLACES
        high = low + (code & DISTANCES)
        if is_point(kind, False, low, high):
            return POINTS, form, 1
        if kind == NUMBER and whole_low(low) <= whole_high(high):
            return RANGE, form, 0
        return NOWHERE, PRESENT, 0
    if kind in (ANY, BOOLEAN) or (shape != ASK and shape & NEGATIVE):
        return NOWHERE, PRESENT, 0
    is_long = code & LONG != 0
    form = form_of_kind(kind, is_long)
    if shape == ASK:
        if kind != STRING:
            return RANGE, form, 0
        # A part of the alphabet: from a string on, up to one.
        if extra_words(code) > 1 and words[q + 4] == codes.STRING_CUT:
            return RANGE, TEXT, 0
        if extra_words(code) > 1 and words[q + 3 + extra_words(code) - 3] == codes.STRING_CUT:
            return RANGE, TEXT, 0
        return NOWHERE, PRESENT, 0
    pairs = np.int64(1)
    if shape == AMONG:
        pairs = extra_words(code) >> np.int64(is_long)
    points = pairs <= MOST_POINTS
    for i in range(min(pairs, MOST_POINTS)):
        low, high = pair_at(words, q, i)
        points = points and is_point(kind, is_long, low, high)
    if points:
        return POINTS, form, pairs
    if kind == STRING:
        return NOWHERE, PRESENT, 0
    low, high = hull_of(words, q, form)
    return (RANGE, form, 0) if low <= high else (NOWHERE, PRESENT, 0)


@inline
def point_at(words, q, form, i):
    """The position of value i of a check that names values."""
    code = words[q]
    if code < 0:
        place = code >> PLACE & PLACES
        if code & MASKED:
            mask = np.uint64(words[q + 1])
            for _ in range(i):
                mask &= mask - np.uint64(1)
            off = np.int64(0)
            while mask >> np.uint64(off) & np.uint64(1) == 0:
                off += 1
            place += off << np.int64(form == WHOLE)
        return whole_high(place) if form == WHOLE else np.uint64((place & TOP) - 1)
    low, _ = pair_at(words, q, i)
    if form == WHOLE:
        return whole_high(low)
    if code & LONG == 0:
        return np.uint64((low & TOP) - 1)
    return unsigned(low) if form in (FLOAT, TIME) else np.uint64(low)


@inline
def hull_of(words, q, form):
    """First and last position of a check that names a range of numbers or times; `form`: of equality."""
    code = words[q]
    if code < 0:
        low = code >> PLACE & PLACES
        return whole_low(low), whole_high(low + (code & DISTANCES))
    if code & LONG == 0:
        if form == WHOLE:
            return whole_low(words[q + 1] >> 32), whole_high(words[q + 1] & 0xFFFF_FFFF)
        return np.uint64(1), np.uint64(0)  # times are never short
    return unsigned(words[q + 1]), unsigned(words[q + 2])


@inline
def is_exact(code):
    """Whether a check says no more than which values it names."""
    return code < 0 or (flags_of(code) == 0 and (shape_of(code) == INSIDE or shape_of(code) == AMONG))


@inline
def is_one_range(code):
    return code < 0 or shape_of(code) == INSIDE


@inline
def text_cuts(words, q):
    """The first and the last cut of a check that names a part of the alphabet, as 2 * number of string + 1 if it lies
    behind; -1: none.
    """
    low, high = np.int64(-1), np.int64(-1)
    if words[q + 4] == codes.STRING_CUT:
        low = words[q + 5]
    last = q + 3 + extra_words(words[q]) - 3
    if words[last] == codes.STRING_CUT:
        high = words[last + 1]
    return low, high


@inline
def line_of(code, form):
    return attribute_of(code) * 16 + form
