"""Predicates as sets of spaces, in the order that checking them wants.

    attribute a     predicates attribute_offsets[a] … [a+1]; those up to plain_stop[a] are plain: one run of spaces, and
                    nothing else to ask
    predicate p     hull low[p] … high[p] of its spaces; flags[p]; runs run_offsets[p] … [p+1] of run_low / run_high;
                    pattern[p]: row of the pattern table (pattern_offsets, pattern_data), -1 for none

Invariant: predicates are sorted by attribute, plain ones first.

The *truth* of an event is a byte for every predicate. Those of absent attributes are always the same
(`absent_truth`), so for each event only the predicates of its own attributes are computed, one streaming loop each,
and put back afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.compiled import (
    I32,
    I64,
    RUN_ARRAYS,
    U8,
    Arrays,
    Compiled,
    permuted_slices,
    sort_within,
    sorted_unique,
)
from eligo.compile.like import like
from eligo.compile.strings import Strings
from eligo.jit import handle, inline

SPACE_ABSENT, SPACE_VARIOUS = -1, -2

_NOT_PLAIN = codes.ALL_VALUES | codes.RESIDUAL


@dataclass(frozen=True)
class Predicates:
    """The arrays drawn above; `handle` is what kernels take."""

    attribute_offsets: I32
    plain_stop: I32
    low: I32
    high: I32
    flags: U8
    run_offsets: I32
    run_low: I32
    run_high: I32
    pattern: I32
    pattern_offsets: I64
    pattern_data: U8

    def __len__(self) -> int:
        return len(self.low)

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def handle(self) -> object:
        return make_predicate_handle(*self.arrays().values())

    def no_truth(self) -> object:
        """The truth of an event without attributes, to be updated by kernels."""
        attributes = len(self.plain_stop)
        return make_truth(
            np.append(self.flags & codes.ABSENT_HOLDS, np.uint8(1)),
            np.full(attributes, SPACE_ABSENT, np.int32),
            np.zeros(attributes, np.int64),
            np.zeros(attributes, np.int32),
            np.zeros(2, np.int64),
        )

    def attribute(self) -> I32:
        """The attribute of every predicate."""
        counts = np.diff(self.attribute_offsets)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def in_checking_order(compiled: Compiled) -> Compiled:
    """The same rules with their predicates sorted by attribute, plain ones first."""
    order = np.lexsort((~_is_plain(compiled), compiled.attribute))
    renumbered = np.empty(len(order), np.int32)
    renumbered[order] = np.arange(len(order), dtype=np.int32)
    conjunction = renumbered[compiled.conjunction]
    sort_within(conjunction, compiled.conjunction_offsets)
    arrays = compiled.arrays()
    runs, run_offsets = permuted_slices(np.arange(len(compiled.low_kind)), compiled.run_offsets, order)
    moved = {name: arrays[name][order] for name in ("attribute", "flags", "pattern")}
    moved |= {name: arrays[name][runs] for name in RUN_ARRAYS}
    return Compiled(**{**arrays, **moved, "run_offsets": run_offsets, "conjunction": conjunction})


def _is_plain(compiled: Compiled) -> NDArray[np.bool_]:
    plain: NDArray[np.bool_] = (np.diff(compiled.run_offsets) == 1) & (compiled.flags & _NOT_PLAIN == 0)
    return plain


def build_predicates(compiled: Compiled, low: I32, high: I32, strings: Strings, attributes: int) -> Predicates:
    """The predicates of rules in checking order, from the first and last space of each of their runs."""
    offsets = compiled.run_offsets
    some = np.diff(offsets) > 0
    hull_low = np.ones(len(some), np.int32)
    hull_high = np.zeros(len(some), np.int32)  # no space at all: low above high
    hull_low[some] = low[offsets[:-1][some]]
    hull_high[some] = high[offsets[1:][some] - 1]
    counts = np.bincount(compiled.attribute, minlength=attributes)
    attribute_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(np.int32)
    plains = np.bincount(compiled.attribute[_is_plain(compiled)], minlength=attributes)
    pattern, pattern_offsets, pattern_data = _patterns(compiled.pattern, strings)
    return Predicates(
        attribute_offsets=attribute_offsets,
        plain_stop=(attribute_offsets[:-1] + plains).astype(np.int32),
        low=hull_low,
        high=hull_high,
        flags=compiled.flags,
        run_offsets=offsets.astype(np.int32),
        run_low=low,
        run_high=high,
        pattern=pattern,
        pattern_offsets=pattern_offsets,
        pattern_data=pattern_data,
    )


def _patterns(numbers: I32, strings: Strings) -> tuple[I32, I64, U8]:
    """Patterns given by string number (-1 for none): their rows in a table of their own, and that table."""
    used = sorted_unique(numbers[numbers >= 0])
    if len(used) == 0:
        return numbers, np.zeros(1, np.int64), np.zeros(0, np.uint8)
    data, begin, end = strings.spans()
    pattern_data = np.concatenate([data[begin[number] : end[number]] for number in used])
    pattern_offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(end[used] - begin[used])))
    rows = np.searchsorted(used, numbers)
    return np.where(numbers >= 0, rows, -1).astype(np.int32), pattern_offsets, pattern_data


# The arrays of `Predicates` as one argument of kernels.
make_predicate_handle = handle("PredicateHandle", [field.name for field in fields(Predicates)])


# The truth of the last event, as one argument of kernels.
make_truth = handle("Truth", ["truth", "space", "seen", "present", "serial"])


@inline
def meets(p, predicate, low, high):
    """Whether some space from low to high belongs to the predicate."""
    if high < p.low[predicate] or low > p.high[predicate] or p.low[predicate] > p.high[predicate]:
        return False
    first, last = p.run_offsets[predicate], p.run_offsets[predicate + 1] - 1
    while first < last:  # the first run that does not end below `low`
        middle = (first + last) >> 1
        if p.run_high[middle] < low:
            first = middle + 1
        else:
            last = middle
    return p.run_low[first] <= high


@inline
def holds(p, predicate, e, first, stop):
    """Whether the located entries first … stop-1, all those of its attribute, satisfy the predicate."""
    flags = p.flags[predicate]
    every = flags & codes.ALL_VALUES != 0
    for j in range(first, stop):
        low, high = e.at_low[j], e.at_high[j]
        if low > high:
            continue  # a list without values has none that satisfies, and none that does not
        good = meets(p, predicate, low, high)
        if good and flags & codes.RESIDUAL != 0:
            # Values of another kind match no pattern.
            row, pattern = e.at_text[j], p.pattern[predicate]
            matched = row >= 0 and like(
                p.pattern_data, p.pattern_offsets[pattern], p.pattern_offsets[pattern + 1],
                e.text, e.text_low[row], e.text_high[row],
            )  # fmt: skip
            good = matched != (flags & codes.RESIDUAL_NEGATED != 0)
        if good != every:
            return good
    return every


@inline
def fill_truth(p, e, first, stop, truth):
    """The truth of the predicates on one attribute, whose located entries are first … stop-1."""
    attribute = e.at_attribute[first]
    start, plain = p.attribute_offsets[attribute], p.plain_stop[attribute]
    end = p.attribute_offsets[attribute + 1]
    if stop > first + 1 or e.at_low[first] != e.at_high[first]:
        for q in range(start, end):
            truth[q] = holds(p, q, e, first, stop)
        return
    # One value: no call in these loops, because each would count references to all its arrays.
    space = e.at_low[first]
    low, high, flags = p.low, p.high, p.flags
    for q in range(start, plain):
        truth[q] = (low[q] <= space) & (space <= high[q])
    run_offsets, run_low, run_high = p.run_offsets, p.run_low, p.run_high
    for q in range(plain, end):
        if flags[q] & codes.RESIDUAL:
            truth[q] = holds(p, q, e, first, stop)
            continue
        i, last = run_offsets[q], run_offsets[q + 1] - 1
        while i < last:  # the first run that does not end below
            middle = (i + last) >> 1
            if run_high[middle] < space:
                i = middle + 1
            else:
                last = middle
        truth[q] = i == last and run_low[i] <= space <= run_high[i]


@inline
def clear_truth(p, attribute, truth):
    """The truth of the predicates on an absent attribute."""
    for q in range(p.attribute_offsets[attribute], p.attribute_offsets[attribute + 1]):
        truth[q] = p.flags[q] & codes.ABSENT_HOLDS


@inline
def update_truth(p, e, n, t):
    """Turn the truth of the event before into that of the event with n located entries.

    Attributes whose value lies in the same space as before are left as they are, and those that the event lacks are
    cleared; in a batch of similar events most of the work is saved.
    """
    t.serial[0] += 1
    serial = t.serial[0]
    first = 0
    while first < n:
        attribute = e.at_attribute[first]
        stop = first + 1
        while stop < n and e.at_attribute[stop] == attribute:
            stop += 1
        if t.space[attribute] == SPACE_ABSENT:
            t.present[t.serial[1]] = attribute
            t.serial[1] += 1
        space = e.at_low[first]
        if stop > first + 1 or space != e.at_high[first] or e.at_text[first] >= 0:
            space = np.int32(SPACE_VARIOUS)  # several values, a range, or a text that patterns look at
        if space == SPACE_VARIOUS or space != t.space[attribute]:
            fill_truth(p, e, first, stop, t.truth)
        t.space[attribute] = space
        t.seen[attribute] = serial
        first = stop
    i = 0
    while i < t.serial[1]:
        attribute = t.present[i]
        if t.seen[attribute] == serial:
            i += 1
            continue
        clear_truth(p, attribute, t.truth)
        t.space[attribute] = SPACE_ABSENT
        t.serial[1] -= 1
        t.present[i] = t.present[t.serial[1]]
