"""The short line: 24 bits for nearly every value that rules name, so that a check fits one word.

    place    kind of value << 21 | part
    part     of a number n that is whole and within ±2^19: 2^20 + 2n; of one between n and n + 1: one more
             of a Boolean or a string: its coordinate + 1
             0 is no value's: a bound below all; TOP neither: one above all; TOP - 1: what the line cannot tell apart
    NOWHERE  the place of an attribute that an event lacks; SEVERAL: of one with several values, a range, or none

Every bound at a whole number, open or closed, has a place of its own, and a value lies on the same side of it on the
line as by itself. Bounds elsewhere, and times, have none: their checks are long.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.events import float_bits, ordered_float
from eligo.jit import bits_of, inline

NUMBER, BOOLEAN, TIME, STRING, ANY = 0, 1, 2, 3, 4
MIN, MAX = -(2**63), 2**63 - 1
BITS = 21
TOP = (1 << BITS) - 1
ZERO = 1 << (BITS - 1)
NOWHERE, SEVERAL = 0xFFFFFE, 0xFFFFFF
_LOWEST, _HIGHEST = -(2.0 ** (BITS - 2)) + 1, 2.0 ** (BITS - 2) - 2  # whole numbers with a place of their own


@inline
def number_part(coordinate):
    value = float_bits(coordinate)
    if value < _LOWEST:
        return np.int64(1)
    if value > _HIGHEST:
        return np.int64(TOP - 1)
    below = np.floor(value)
    return np.int64(ZERO) + 2 * np.int64(below) + np.int64(below != value)


@inline
def place_of(kind, coordinate):
    """Where a value lies."""
    if kind == NUMBER:
        return number_part(coordinate)
    if kind == TIME or not 0 <= coordinate < TOP - 2:
        return np.int64(kind) << BITS | np.int64(TOP - 1)
    return np.int64(kind) << BITS | (coordinate + 1)


@inline
def is_own_place(part):
    """Whether a part is that of a whole number alone."""
    return part & 1 == 0 and 1 < part < TOP - 1


@inline
def bound_place(kind, coordinate, step):
    """The place of a bound that is not beyond all values, or -1: it has none. `step`: 1 for a lower bound, else -1."""
    if kind != NUMBER:
        is_own = 0 <= coordinate < TOP - 3 and kind != TIME
        return np.int64(kind) << BITS | (coordinate + 1) if is_own else np.int64(-1)
    if coordinate == -1:
        return np.int64(ZERO if step > 0 else ZERO - 1)  # the slot of -0.0, where no value is
    part = number_part(coordinate)
    if is_own_place(part):
        return part
    part = number_part(coordinate - step)  # an open lower bound lies one above a whole number, an upper one below
    return part + step if is_own_place(part) else np.int64(-1)


@inline
def low_place(kind, coordinate):
    """The place of a lower bound, or -1: it has none."""
    return np.int64(kind) << BITS if coordinate == MIN else bound_place(kind, coordinate, 1)


@inline
def high_place(kind, coordinate):
    """The place of an upper bound, or -1: it has none."""
    return np.int64(kind) << BITS | TOP if coordinate == MAX else bound_place(kind, coordinate, -1)


@inline
def bound_at(place, is_high):
    """The coordinate of the bound at a place: of an upper one, or of a lower one."""
    part, kind = place & TOP, place >> BITS
    if part == 0:
        return np.int64(MIN)
    if part == TOP:
        return np.int64(MAX)
    if kind != NUMBER:
        return part - 1
    whole = ordered_float(bits_of(np.float64((part - ZERO + is_high) >> 1)))
    return whole - (part & 1) if is_high else whole + (part & 1)


@inline
def low_at(place):
    """The coordinate of the lower bound at a place."""
    return bound_at(place, 0)


@inline
def high_at(place):
    """The coordinate of the upper bound at a place."""
    return bound_at(place, 1)


@inline
def prefix_of(data, begin, end):
    """The first eight bytes of the string data[begin:end] as a word, in the order of strings as far as they tell."""
    word = np.uint64(0)
    for i in range(8):
        word = word << np.uint64(8) | np.uint64(data[begin + i] if begin + i < end else 0)
    return np.int64(word ^ np.uint64(1 << 63))


@inline
def unsigned(coordinate):
    """A coordinate in the order of unsigned words."""
    return np.uint64(coordinate) ^ np.uint64(1 << 63)
