"""Checks: predicates as two words each, and an event in the form that answers them with one look.

    predicate p      code[p]   p << 32 | attribute << 2 | kind
                     word[p]   its values, as the kind has them:
        SOME         a bit for each space of a small attribute (at most 63 spaces), bit 63 for "absent"
        EVERY        the same, of a negated predicate on several values: all of them must lie in it
        RANGE        high space << 32 | low space, of a larger attribute
        SLOW         nothing: `holds` is asked (lists on larger attributes, patterns, those that hold when absent)

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
from numba import types
from numba.experimental import structref
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.predicates import ABSENT, VARIOUS, holds
from eligo.jit import define_handle, inline, kernel

SOME, EVERY, RANGE, SLOW = 0, 1, 2, 3
SMALL = 63  # spaces that fit a word beside the bit for "absent"
ABSENT_BIT = -(2**63)
LOW_HALF = 0xFFFF_FFFF

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
    return Checks(
        *make_checks(p.attribute(), p.flags, p.run_offsets, p.run_low, p.run_high, conjunctions.spaces.space_count)
    )


@kernel
def make_checks(attribute, flags, run_offsets, run_low, run_high, space_count):  # type: ignore[no-untyped-def]
    n = len(attribute)
    code = np.empty(n, np.int64)
    word = np.zeros(n, np.int64)
    for p in range(n):
        first, stop = run_offsets[p], run_offsets[p + 1]
        if flags[p] & codes.RESIDUAL:
            kind = SLOW
        elif space_count[attribute[p]] <= SMALL:
            kind = EVERY if flags[p] & codes.ALL_VALUES else SOME
            for r in range(first, stop):
                for space in range(run_low[r], run_high[r] + 1):
                    word[p] |= np.int64(1) << space
            if flags[p] & codes.ABSENT_HOLDS:
                word[p] |= np.int64(ABSENT_BIT)
        elif stop == first + 1 and flags[p] == 0:
            kind = RANGE
            word[p] = np.int64(run_high[first]) << 32 | np.int64(run_low[first])
        else:
            kind = SLOW
        code[p] = np.int64(p) << 32 | np.int64(attribute[p]) << 2 | kind
    return code, word


def leading(conjunctions: Conjunctions) -> NDArray[np.bool_]:
    """The predicates that can lead from an event to a conjunction: they hold only if some value lies in their spaces.

    Not those that an absent attribute satisfies, nor a list without values.
    """
    p = conjunctions.predicates
    found: NDArray[np.bool_] = (p.flags & (codes.ABSENT_HOLDS | codes.ALL_VALUES) == 0) & (p.low <= p.high)
    return found


@structref.register
class SightType(types.StructRef):
    """An event as the checks see it, as one argument of kernels."""


class Sight(structref.StructRefProxy):
    pass


define_handle(Sight, SightType, ["at", "small", "first", "stop", "present", "present_count"])


@kernel
def make_sight(at, small, first, stop, present, present_count):  # type: ignore[no-untyped-def]
    return Sight(at, small, first, stop, present, present_count)


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
def see(e, n, sight):  # type: ignore[no-untyped-def]
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
def glance(code, word, value):  # type: ignore[no-untyped-def]
    """What the sight of its attribute says of a check; UNSURE where `ask` must tell. Scalars alone: free in loops."""
    kind = code & 3
    if kind == SOME:
        return HOLDS if word & value != 0 else FAILS
    if kind == EVERY:
        return HOLDS if value & ~word == 0 else FAILS
    if kind == RANGE and value >= ABSENT:
        return HOLDS if (word & LOW_HALF) <= value and value <= word >> 32 else FAILS
    return UNSURE


@inline
def ask(p, e, sight, code):  # type: ignore[no-untyped-def]
    """Whether the event satisfies the predicate of a check, looked up in full."""
    a = (code & LOW_HALF) >> 2
    absent = np.int64(ABSENT_BIT) if sight.small[a] else np.int64(ABSENT)
    if sight.at[a] == absent:
        return HOLDS if p.flags[code >> 32] & codes.ABSENT_HOLDS != 0 else FAILS
    return HOLDS if holds(p, code >> 32, e, sight.first[a], sight.stop[a]) else FAILS
