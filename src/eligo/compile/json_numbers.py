"""Numbers of a JSON text, read by kernels: digits eight at a time, and floats that are rounded correctly.

A number is digits × 10 ** power. If both are small, a float has each of them exactly, and one multiplication or
division rounds once. Else digits × 5 ** power is computed with the first 128 bits of the power of five:

    digits, normalised     64 bits
    5 ** power             T × 2 ** e, where T has 128 bits and is cut off, so that it is less than one too small
    their product          high, middle, and 64 bits that are not computed: together less than 2 too small in `middle`

The first 53 bits of `high` are the float's, and the others say whether to round up. Where the error could change that,
and where the product lies exactly in the middle, the number is UNSURE, and somebody else has to read it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eligo.compile.codes import INTEGER, RAW_FLOAT
from eligo.compile.json_words import MINUS, ODD
from eligo.jit import bits_of, byte_at, high_product, inline, leading_zeros, trailing_zeros, word_at

UNSURE: Final = np.int64(-1)  # in place of a float's bits without a sign
_DIGITS: Final = 19  # that fit 64 bits
_LEAST, _MOST = -290, 270  # powers of ten with which all numbers of 19 digits are floats, and none of them subnormal
_EXACT: Final = 22  # powers of ten up to this one are floats
_SCALES: Final = np.array([10**n for n in range(8)], np.uint64)
_TENS: Final = np.array([10.0**n for n in range(_EXACT + 1)])


def _fives() -> tuple[list[int], list[int]]:
    """The first 128 bits of the powers of five, cut off, and how often these are to be doubled."""
    bits, doubled = [], []
    for power in range(_LEAST, _MOST + 1):
        if power >= 0:
            exact, moved = 5**power, 0
        else:
            moved = 128 + (5**-power).bit_length()
            exact = (1 << moved) // 5**-power
        extra = exact.bit_length() - 128
        bits.append(exact >> extra if extra >= 0 else exact << -extra)
        doubled.append(extra - moved)
    return bits, doubled


_BITS, _DOUBLED = _fives()
_HIGH: Final = np.array([bits >> 64 for bits in _BITS], np.uint64)
_LOW: Final = np.array([bits & 0xFFFFFFFFFFFFFFFF for bits in _BITS], np.uint64)
_TWOS: Final = np.array(_DOUBLED, np.int64)


@inline
def eight_digits(word):
    """The number that up to eight digits are, each in a byte, the last of them in the highest; bytes before are 0."""
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    return (word * np.uint64(10_000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)


@inline
def digits_end(data, at, size, before):
    """The place behind digits, and the number that they are, written behind the digits of `before`; 64 bits of it.
    `size` is the size of all that can be read.
    """
    while at + 8 <= size:
        word = word_at(data, at) ^ np.uint64(0x3030303030303030)
        # The high bit of the first byte that is no digit, and perhaps of some behind it.
        others = (word | (word + np.uint64(0x7676767676767676))) & np.uint64(0x8080808080808080)
        if others == np.uint64(0):
            before = before * np.uint64(100_000_000) + eight_digits(word)
            at += 8
            continue
        count = trailing_zeros(others) >> np.uint64(3)
        if count > np.uint64(0):
            word <<= np.uint64(64) - np.uint64(8) * count
            before = before * _SCALES[count] + eight_digits(word)
        return at + np.int64(count), before
    while at < size and 48 <= byte_at(data, at) <= 57:
        before = before * np.uint64(10) + np.uint64(byte_at(data, at) - np.uint8(48))
        at += 1
    return at, before


@inline
def number_end(data, at, end, size):
    """Reads a number: the place behind it, its kind (INTEGER or RAW_FLOAT), its digits and the power of ten, without
    the sign. A number that does not end before the text is ODD, and so is one that is too large for these.
    """
    at += byte_at(data, at) == MINUS
    first = at
    at, digits = digits_end(data, at, size, np.uint64(0))
    count, power, kind = at - first, np.int64(0), INTEGER
    if count == 0 or (count > 1 and byte_at(data, first) == 48) or at >= end:
        return np.int64(ODD), kind, digits, power
    if byte_at(data, at) == 46:  # a point
        first, kind = at + 1, RAW_FLOAT
        at, digits = digits_end(data, first, size, digits)
        power = first - at
        count -= power
        if power == 0 or at >= end:
            return np.int64(ODD), kind, digits, power
    if byte_at(data, at) | 32 == 101:  # e, E
        at, kind = at + 1, RAW_FLOAT
        below = at < end and byte_at(data, at) == MINUS
        at += at < end and (byte_at(data, at) == MINUS or byte_at(data, at) == 43)
        first = at
        at, exponent = digits_end(data, at, size, np.uint64(0))
        if at == first or at - first > 4 or at >= end:
            return np.int64(ODD), kind, digits, power
        power += -np.int64(exponent) if below else np.int64(exponent)
    if count > _DIGITS or not _LEAST <= power <= _MOST or (kind == INTEGER and digits >> np.uint64(63) != 0):
        return np.int64(ODD), kind, digits, power
    return at, kind, digits, power


@inline
def float_bits(digits, power):
    """The bits of the float that is nearest to digits × 10 ** power, or UNSURE."""
    if digits <= np.uint64(1 << 53) and -_EXACT <= power <= _EXACT:
        value = np.float64(digits)
        return bits_of(value * _TENS[power] if power >= 0 else value / _TENS[-power])
    if digits == np.uint64(0):
        return np.int64(0)
    zeros = leading_zeros(digits)
    digits <<= zeros
    five = power - _LEAST
    middle, carried = digits * _HIGH[five], high_product(digits, _LOW[five])
    high = high_product(digits, _HIGH[five])
    middle += carried
    if middle < carried:
        high += np.uint64(1)
    below = np.uint64(10) + (high >> np.uint64(63))  # bits of `high` that are not the float's
    half = np.uint64(1) << (below - np.uint64(1))
    rest = high & ((half << np.uint64(1)) - np.uint64(1))
    if (rest == half and middle == np.uint64(0)) or (rest + np.uint64(1) == half and middle >= np.uint64(2**64 - 2)):
        return UNSURE
    mantissa = (high >> below) + np.uint64(rest >= half)
    exponent = np.int64(below) - np.int64(zeros) + 128 + _TWOS[five] + power + 1075
    # A mantissa that was rounded up to 54 bits has carried into the exponent, and is what it has to be.
    return np.int64(mantissa) + ((exponent - 1) << 52)


@inline
def number_key(kind, digits, power, negative):
    """The key of a number in an event's entry, and whether it is one."""
    if kind == INTEGER:
        return -np.int64(digits) if negative else np.int64(digits), True
    bits = float_bits(digits, power)
    return bits | np.int64(-(1 << 63)) if negative else bits, bits != UNSURE
