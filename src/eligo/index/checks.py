"""Checks: predicates as two words each, and an event in the form that answers them with one look.

    predicate p      code[p]   p << 34 │ attribute << 10 │ width << 4 │ HOLDS_ABSENT (8) │ kind
                     word[p]   its values, as the kind has them:
        SOME         a bit for each space of a small attribute (at most 63 spaces), bit 63 for "absent"
        EVERY        the same, of a negated predicate on several values: all of them must lie in it
        RANGE        high space << 32 | low space, of a larger attribute;  NOT_RANGE: all spaces but those
        LIST         a few spaces, `width` bits each, one of them repeated to fill the word;  NOT_LIST: all but those
        SLOW         nothing: `ask` looks the predicate up (long lists on larger attributes, patterns)

    sight of an event, kept by each search:
        at[a]        small attribute: a bit for each space that its values lie in, or bit 63 alone when absent
                     larger: the space of its only value, ABSENT, or VARIOUS for several values, a range or none
        first, stop  the located entries of attribute a, where it is present
        present      attributes of the event, `present_count[0]` of them

A check needs nothing but `at`, eight bytes an attribute, which stay in the first-level cache. Invariant: `at` tells of
the event seen last; attributes that it lacks are absent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.predicates import ABSENT, VARIOUS, holds
from eligo.errors import LimitError
from eligo.jit import handle, inline, kernel

SOME, EVERY, RANGE, NOT_RANGE, LIST, NOT_LIST, SLOW = 0, 1, 2, 3, 4, 5, 6
HOLDS_ABSENT = 8
SMALL = 63  # spaces that fit a word beside the bit for "absent"
ABSENT_BIT = -(2**63)
LOW_HALF = 0xFFFF_FFFF

# For fields of w bits: a word with the lowest bit of each set, and one with the highest.
_FIELDS = [[1 << (w * i) for i in range(64 // w)] if w else [] for w in range(33)]
LOWS = np.array([sum(bits) for bits in _FIELDS], np.uint64)
HIGHS = np.array([sum(bit << (w - 1) for bit in bits) if w else 0 for w, bits in enumerate(_FIELDS)], np.uint64)

# What every event passes: nothing lies outside all spaces.
ALWAYS_CODE, ALWAYS_WORD = EVERY, -1


@dataclass(frozen=True)
class Checks:
    """The two words of every predicate."""

    code: I64
    word: I64

    def arrays(self) -> Arrays:
        return {"check_code": self.code, "check_word": self.word}


def build_checks(conjunctions: Conjunctions) -> Checks:
    p = conjunctions.predicates
    if len(p) >= 1 << 29 or len(p.plain_stop) >= 1 << 24:
        found = f"{len(p):,} predicates on {len(p.plain_stop):,} attributes"
        raise LimitError(f"{found} in one segment: an index has room for 2^29 on 2^24; use index='scan'")
    return Checks(
        *make_checks(p.attribute(), p.flags, p.run_offsets, p.run_low, p.run_high, conjunctions.spaces.space_count)
    )


@kernel
def make_checks(attribute, flags, run_offsets, run_low, run_high, space_count):
    n = len(attribute)
    code = np.empty(n, np.int64)
    word = np.zeros(n, np.int64)
    for p in range(n):
        first, stop = run_offsets[p], run_offsets[p + 1]
        spaces = space_count[attribute[p]]
        kind = SLOW
        width = 1
        if flags[p] & codes.RESIDUAL == 0:
            if spaces <= SMALL:
                kind = EVERY if flags[p] & codes.ALL_VALUES else SOME
                for r in range(first, stop):
                    for space in range(run_low[r], run_high[r] + 1):
                        word[p] |= np.int64(1) << space
                if flags[p] & codes.ABSENT_HOLDS:
                    word[p] |= np.int64(ABSENT_BIT)
            elif flags[p] & codes.ALL_VALUES == 0 and stop > first:
                while spaces > 1 << width:
                    width += 1
                low, high = run_low[first], run_high[stop - 1]
                covered = 0
                for r in range(first, stop):
                    covered += run_high[r] - run_low[r] + 1
                if stop == first + 1:
                    kind = RANGE
                    word[p] = np.int64(high) << 32 | np.int64(low)
                elif stop == first + 2 and low == 0 and high == spaces - 1:
                    kind = NOT_RANGE
                    word[p] = np.int64(run_low[first + 1] - 1) << 32 | np.int64(run_high[first] + 1)
                elif covered <= 64 // width:
                    kind = LIST
                    for i in range(64 // width):
                        word[p] |= np.int64(low) << width * i
                    i = 0
                    for r in range(first, stop):
                        for space in range(run_low[r], run_high[r] + 1):
                            word[p] ^= np.int64(space ^ low) << width * i
                            i += 1
                elif spaces - covered <= 64 // width:
                    kind = NOT_LIST
                    i = 0
                    space = 0
                    outside = 0
                    for r in range(first, stop + 1):
                        end = spaces if r == stop else run_low[r]
                        for x in range(space, end):
                            outside = x
                            word[p] |= np.int64(x) << width * i
                            i += 1
                        if r < stop:
                            space = run_high[r] + 1
                    while i < 64 // width:
                        word[p] |= np.int64(outside) << width * i
                        i += 1
        absent = HOLDS_ABSENT if flags[p] & codes.ABSENT_HOLDS else 0
        code[p] = np.int64(p) << 34 | np.int64(attribute[p]) << 10 | width << 4 | absent | kind
    return code, word


def leading(conjunctions: Conjunctions) -> NDArray[np.bool_]:
    """The predicates that can lead from an event to a conjunction: they hold only if some value lies in their spaces.

    Not those that an absent attribute satisfies, nor a list without values.
    """
    p = conjunctions.predicates
    found: NDArray[np.bool_] = (p.flags & (codes.ABSENT_HOLDS | codes.ALL_VALUES) == 0) & (p.low <= p.high)
    return found


# An event as the checks see it, as one argument of kernels.
make_sight = handle("Sight", ["at", "small", "first", "stop", "present", "present_count"])


def no_sight(conjunctions: Conjunctions) -> object:
    """The sight of an event without attributes."""
    small = conjunctions.spaces.space_count <= SMALL
    attributes = len(small)
    at = np.where(small, np.int64(ABSENT_BIT), np.int64(ABSENT))
    return make_sight(
        np.append(at, np.int64(0)),  # one more, so that ALWAYS_CODE has something to look at
        small.astype(np.uint8),
        np.zeros(attributes, np.int32),
        np.zeros(attributes, np.int32),
        np.zeros(attributes, np.int32),
        np.zeros(1, np.int64),
    )


@inline
def see(e, n, sight):
    """Turn the sight of the event before into that of the event with n located entries; how many attributes it has."""
    at, small, first, stop, present = sight.at, sight.small, sight.first, sight.stop, sight.present
    at_attribute, at_low, at_high = e.at_attribute, e.at_low, e.at_high
    for i in range(sight.present_count[0]):
        a = present[i]
        at[a] = np.int64(ABSENT_BIT) if small[a] else np.int64(ABSENT)
    k = 0
    j = 0
    while j < n:
        a = at_attribute[j]
        i = j
        bits = np.int64(0)
        while j < n and at_attribute[j] == a:
            if small[a] and at_low[j] <= at_high[j]:
                bits |= (np.int64(2) << at_high[j]) - (np.int64(1) << at_low[j])
            j += 1
        first[a] = i
        stop[a] = j
        if small[a]:
            at[a] = bits
        elif j == i + 1 and at_low[i] == at_high[i]:
            at[a] = at_low[i]
        else:
            at[a] = VARIOUS
        present[k] = a
        k += 1
    sight.present_count[0] = k
    return k


FAILS, HOLDS, UNSURE = 0, 1, 2


@inline
def attribute_of(code):
    return (code >> 10) & 0xFF_FFFF


@inline
def glance(code, word, value):
    """Tests a check, given its two words, against what the sight has of its attribute. Returns HOLDS, FAILS, or UNSURE
    if `ask` must decide. It takes scalars alone: to pass arrays on would cost more than the test.
    """
    kind = code & 7
    if kind == SOME:
        return HOLDS if word & value != 0 else FAILS
    if value >= 0:
        if kind == RANGE:
            return HOLDS if (word & LOW_HALF) <= value and value <= word >> 32 else FAILS
        if kind >= LIST and kind <= NOT_LIST:
            # Some field of x is zero where the list has the value; a field borrows only if it or one below is zero.
            width = (code >> 4) & 63
            x = np.uint64(word) ^ (LOWS[width] * np.uint64(value))
            among = (x - LOWS[width]) & ~x & HIGHS[width] != 0
            return HOLDS if among == (kind == LIST) else FAILS
        if kind == NOT_RANGE:
            return FAILS if (word & LOW_HALF) <= value and value <= word >> 32 else HOLDS
    if kind == EVERY:
        return HOLDS if value & ~word == 0 else FAILS
    if value == ABSENT:
        return HOLDS if code & HOLDS_ABSENT else FAILS
    return UNSURE


@inline
def ask(p, e, sight, code):
    """Whether the event satisfies the predicate of a check, looked up in full."""
    a = attribute_of(code)
    absent = np.int64(ABSENT_BIT) if sight.small[a] else np.int64(ABSENT)
    if sight.at[a] == absent:
        return HOLDS if code & HOLDS_ABSENT else FAILS
    return HOLDS if holds(p, code >> 34, e, sight.first[a], sight.stop[a]) else FAILS
