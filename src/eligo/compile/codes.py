"""The small integers that stand for kinds, cuts and flags in the flat arrays.

A cut (see language/values.py) is a kind and one or two 64-bit keys; `kind >> 2` is the kind of value:

    start of a kind   4 * kind          no key
    number            1                 key: least integer at or above the cut, key2: least float (ordered bits)
    number            2                 no 64-bit integer lies above; key2 as before
    Boolean           5                 key: 1, or 2 right after true
    time              9                 key: microseconds
    string           13                 key: 2 * string number + (1 if the cut lies after that string)
    end of all       16

An event's entry has one of the kinds below and one 64-bit key. Numbers stand in one order though integers and floats
together do not fit 64 bits: an integer searches the cuts' integer keys, any other float their float keys.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from eligo.language.values import NUMBER, Cut
from eligo.language.values import OBJECT as _OBJECT

START_NUMBER, NUMBER_CUT, HIGH_NUMBER_CUT = 0, 1, 2
START_BOOLEAN, BOOLEAN_CUT = 4, 5
START_TIME, TIME_CUT = 8, 9
START_STRING, STRING_CUT = 12, 13
END_CUT = 16

# Kinds of an event's entries, beside the cut kinds 5, 9 and 13.
INTEGER = 1  # key: the integer; floats that are whole numbers of 64 bits become this
RAW_FLOAT = 3  # key: the float's own bits; the kernel finds out whether it is a whole number
BOOLEAN = 5  # key: 0, 1, or OBJECT for an object, which no rule can name
OBJECT = _OBJECT
TIME = 9  # key: microseconds
STRING = 13  # key: string number, or -1 for one that no rule names
TEXT = 14  # key: row of the event buffer's text table (string number and bytes)
NO_VALUE = 32  # a list without values: present, but satisfies nothing
RANGE = 33  # key: row of the event buffer's range table

# Flags of a predicate.
ABSENT_HOLDS = 1  # an absent attribute satisfies it
ALL_VALUES = 2  # every value must lie in the set (a negated predicate on several values), not just one
RESIDUAL = 4  # the set is a superset: the text must also match a pattern
RESIDUAL_NEGATED = 8  # … must not match it

RunCodes: TypeAlias = tuple[int, int, int, int, int, int]  # kind, key and key2 of the low cut, and of the high one

_EXACT = 2**53
_HIGH = 0x7FFF_FFFF_FFFF_FFFF


def ordered_bits(value: float) -> int:
    """A float as a 64-bit integer of the same order; −0.0 as 0.0."""
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ _HIGH


def number_keys(value: int | float) -> tuple[int, int, int]:
    """Kind, key and key2 of the cut right before a number."""
    near = float(value)
    if near < value:
        near = math.nextafter(near, math.inf)
    if value > 2**63 - 1:
        return HIGH_NUMBER_CUT, 0, ordered_bits(near)
    whole = math.ceil(value) if value > -(2**63) else -(2**63)
    return NUMBER_CUT, whole, ordered_bits(near)


def cut_codes(cut: Cut, string_number: Callable[[str], int]) -> tuple[int, int, int]:
    """Kind, key and key2 of a cut; strings are numbered by whoever asks."""
    if len(cut) == 1:
        return 4 * cut[0], 0, 0
    kind, value = cut
    if isinstance(value, str):
        # Right after s is right before s + NUL: named by s itself, so that one string serves both cuts.
        past = value.endswith("\0")
        return STRING_CUT, 2 * string_number(value.removesuffix("\0")) + past, 0
    if kind == NUMBER:
        return number_keys(value)
    assert isinstance(value, int)
    return 4 * kind + 1, value, 0


def integer_runs(operator: str, values: Sequence[Any]) -> list[RunCodes] | None:
    """The runs of values that satisfy `x operator values`, for whole numbers of at most 53 bits; None for others.

    A short way for the most usual predicates: for these numbers a float is exact, so the cuts right before and right
    after one need no search for neighbours. What comes out is what `language.values.positive_set` and `cut_codes` give
    together, in a fifth of the time.
    """
    for value in values:
        if type(value) is not int or not -_EXACT < value < _EXACT:
            return None
    if operator == "=":
        return [_only(values[0])]
    if operator == "in":
        return [_only(value) for value in sorted(set(values))]
    if operator == "between":
        low, high = values
        return [(*_before(low), *_after(high))] if low <= high else []
    if operator == "<":
        return [(START_NUMBER, 0, 0, *_before(values[0]))]
    if operator == "<=":
        return [(START_NUMBER, 0, 0, *_after(values[0]))]
    if operator == ">":
        return [(*_after(values[0]), START_BOOLEAN, 0, 0)]
    if operator == ">=":
        return [(*_before(values[0]), START_BOOLEAN, 0, 0)]
    return None


def _before(value: int) -> tuple[int, int, int]:
    return NUMBER_CUT, value, ordered_bits(value)


def _after(value: int) -> tuple[int, int, int]:
    return NUMBER_CUT, value + 1, ordered_bits(value) + 1  # the next float above


def _only(value: int) -> RunCodes:
    bits = ordered_bits(value)
    return NUMBER_CUT, value, bits, NUMBER_CUT, value + 1, bits + 1
