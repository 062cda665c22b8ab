"""Rows (packed_predicate.py) from compiled rules: each predicate's check is written once, and copied to where it
stands.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.compiled import I32, I64, Compiled, grown
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import float_bits
from eligo.compile.strings import Strings
from eligo.index.rows.line import ANY, MAX, MIN, NUMBER, STRING, TOP, high_place, low_place, prefix_of
from eligo.index.rows.packed_predicate import (
    AMONG,
    ASK,
    ATTRIBUTE,
    BEHIND,
    DISTANCES,
    EXCEPT,
    INSIDE,
    LARGE,
    LIST,
    LONG,
    MASKED,
    NEGATIVE,
    OUTSIDE,
    PLACE,
    TINY_ATTRIBUTES,
    bits_in,
    first_check,
    high_coordinate,
    is_plain_check,
    low_coordinate,
    mask_step,
    use_words,
)
from eligo.jit import inline, kernel

EXACT = 2.0**53
PAST = 2.0**64


def rows_of(compiled: Compiled, strings: Strings) -> tuple[I64, I64]:
    """All conjunctions as rows, one after the other: their words, and where each begins."""
    words, offsets = make_rows(
        compiled.conjunction_offsets, compiled.conjunction, compiled.attribute, compiled.flags, compiled.pattern,
        compiled.run_offsets, compiled.low_kind, compiled.low_key, compiled.low_key2, compiled.high_kind,
        compiled.high_key, compiled.high_key2, strings.spans(),
    )  # fmt: skip
    return words, offsets


def checks_of(conjunctions: Conjunctions) -> tuple[I64, I64]:
    """Where the check of each predicate begins and, at the end, where the last one ends; and the words of all."""
    c = conjunctions.compiled
    starts, checks = make_checks(
        c.attribute, c.flags, c.pattern, c.run_offsets, c.low_kind, c.low_key, c.low_key2, c.high_kind, c.high_key,
        c.high_key2, conjunctions.strings.spans(),
    )  # fmt: skip
    return starts, checks


def rows_in_order(
    offsets: I64, items: I32, checks: tuple[I64, I64], rank: I64, order: I32, guaranteed: I32
) -> tuple[I64, I64]:
    """Rows to be verified in stretches: their words, and where each begins.

    Row r is conjunction order[r], of predicates items[offsets[c]:offsets[c+1]], without guaranteed[r], a predicate that
    need not be checked there, or -1; what has a lower rank is checked first.
    """
    words, starts = joined_rows(offsets, items, *checks, rank, order, guaranteed)
    return np.append(words, np.zeros(BEHIND, np.int64)), starts


@inline
def is_plain(kind, key, key2, high):
    """Whether coordinates say all about a cut; `high`: it ends a run."""
    if kind & 3 == 0:
        return kind != codes.START_STRING
    if kind == codes.STRING_CUT:
        return key & 1 == high
    if kind == codes.NUMBER_CUT:
        value = float_bits(key2)
        return -EXACT < value <= EXACT or abs(value) >= PAST  # the nearest float of -2^53 - 1 is -2^53
    return kind != codes.HIGH_NUMBER_CUT or abs(float_bits(key2)) >= PAST


@inline
def kind_of_run(low_kind, high_kind):
    """The kind of value that a run lies in, or ANY."""
    first, last = np.int64(low_kind) >> 2, (np.int64(high_kind) >> 2) - (high_kind & 3 == 0)
    return first if first == last else np.int64(ANY)


@inline
def form_of(p, flags, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2):
    """Shape, kind of value and pairs of a predicate."""
    first, stop = run_offsets[p], run_offsets[p + 1]
    if flags[p] & codes.RESIDUAL:
        return ASK, ANY if flags[p] & codes.RESIDUAL_NEGATED else STRING, 0
    if first == stop:
        return INSIDE, NUMBER, 0  # an empty interval
    kind = kind_of_run(low_kind[first], high_kind[first])
    plain = True
    for r in range(first, stop):
        plain = plain and is_plain(low_kind[r], low_key[r], low_key2[r], 0)
        plain = plain and is_plain(high_kind[r], high_key[r], high_key2[r], 1)
        if kind_of_run(low_kind[r], high_kind[r]) != kind:
            kind = ANY
        if low_kind[r] == codes.STRING_CUT or high_kind[r] == codes.STRING_CUT:
            # Strings between two strings: their numbers have no order.
            plain = plain and low_kind[r] == high_kind[r] and low_key[r] >> 1 == high_key[r] >> 1
    if kind != ANY:
        if not plain:
            return ASK, kind, 0
        return (INSIDE, kind, 0) if stop == first + 1 else (AMONG, kind, stop - first)
    # All values but some of one kind: what lies between the runs.
    if low_kind[first] != codes.START_NUMBER and low_kind[first] >> 2 != 0:
        return ASK, ANY, 0
    if high_kind[stop - 1] != codes.END_CUT:
        return ASK, ANY, 0
    gaps = stop - first - 1 + (low_kind[first] != codes.START_NUMBER)
    if gaps == 0:
        return OUTSIDE, NUMBER, 0  # of an empty interval: whatever is there
    for g in range(gaps):
        r = first + g - (low_kind[first] != codes.START_NUMBER)  # the run before the gap; -1: none
        from_kind = high_kind[r] if r >= first else codes.START_NUMBER
        from_key = high_key[r] if r >= first else np.int64(0)
        from_key2 = high_key2[r] if r >= first else np.int64(0)
        between = kind_of_run(from_kind, low_kind[r + 1])
        if between == ANY or (g > 0 and between != kind):
            return ASK, ANY, 0
        kind = between
        if not is_plain(from_kind, from_key, from_key2, 0) or not is_plain(
            low_kind[r + 1], low_key[r + 1], low_key2[r + 1], 1
        ):
            return ASK, ANY, 0
        if kind == STRING and (from_kind != low_kind[r + 1] or from_key >> 1 != low_key[r + 1] >> 1):
            return ASK, ANY, 0
    return (OUTSIDE, kind, 0) if gaps == 1 else (EXCEPT, kind, gaps)


def text_attributes_of(compiled: Compiled, attributes: int) -> NDArray[np.bool_]:
    """Of each attribute, whether the rows of these rules ask its strings for their bytes."""
    wanted = np.zeros(attributes, np.bool_)
    mark_text_attributes(
        compiled.attribute, compiled.flags, compiled.run_offsets, compiled.low_kind, compiled.low_key,
        compiled.low_key2, compiled.high_kind, compiled.high_key, compiled.high_key2, wanted,
    )  # fmt: skip
    return wanted


@kernel
def mark_text_attributes(
    attribute, flags, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2, wanted
):
    for p in range(len(attribute)):
        shape, kind, _ = form_of(p, flags, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2)
        if shape == ASK and kind in (STRING, ANY):
            wanted[attribute[p]] = True


@inline
def sort_pairs(words, at, pairs):
    """Sort pairs by their first word: strings come in the order of their letters, not of their numbers."""
    for i in range(1, pairs):
        low, high = words[at + 2 * i], words[at + 2 * i + 1]
        j = i - 1
        while j >= 0 and words[at + 2 * j] > low:
            words[at + 2 * j + 2], words[at + 2 * j + 3] = words[at + 2 * j], words[at + 2 * j + 1]
            j -= 1
        words[at + 2 * j + 2], words[at + 2 * j + 3] = low, high


@kernel
def make_rows(
    offsets,
    items,
    attribute,
    flags,
    pattern,
    run_offsets,
    low_kind,
    low_key,
    low_key2,
    high_kind,
    high_key,
    high_key2,
    strings,
):
    """The rows of all conjunctions: each predicate's check is written once and copied."""
    starts, checks = make_checks(
        attribute, flags, pattern, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2, strings
    )
    rank = np.empty(len(attribute), np.int64)
    for p in range(len(rank)):
        rank[p] = likely_width(checks, starts[p])
    rows = len(offsets) - 1
    return joined_rows(offsets, items, starts, checks, rank, np.arange(rows), np.full(rows, np.int32(-1)))


@kernel
def make_checks(
    attribute, flags, pattern, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2, strings
):
    """Returns the checks of all predicates: that of predicate p is checks[starts[p]:starts[p+1]]."""
    predicates = len(attribute)
    starts = np.zeros(predicates + 1, np.int64)
    checks = np.zeros(8 * predicates + 64, np.int64)
    for p in range(predicates):
        at, first, stop = starts[p], run_offsets[p], run_offsets[p + 1]
        checks = grown(checks, at + 8 + 6 * (stop - first))
        shape, kind, _ = form_of(p, flags, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2)
        head = np.int64(attribute[p]) << 40 | np.int64(flags[p]) << 8 | np.int64(shape) << 4 | np.int64(kind)
        if shape == ASK:
            low, high = np.int64(MIN), np.int64(MAX)
            if kind != ANY and kind & 1 == 0 and stop > first:  # a number or a time
                low = low_coordinate(low_kind[first], low_key[first], low_key2[first])
                high = high_coordinate(high_kind[stop - 1], high_key[stop - 1], high_key2[stop - 1])
                if kind == NUMBER:
                    # Wide enough for integers whose nearest float lies on the other side of a bound.
                    low, high = low - (low > MIN), high + (high < MAX)
            checks[at + 1], checks[at + 2], checks[at + 3] = low, high, pattern[p]
            for r in range(first, stop):
                to = at + 4 + 6 * (r - first)
                checks[to], checks[to + 1] = low_kind[r], low_key[r]
                checks[to + 2] = cut_order(low_kind[r], low_key[r], low_key2[r], strings)
                checks[to + 3], checks[to + 4] = high_kind[r], high_key[r]
                checks[to + 5] = cut_order(high_kind[r], high_key[r], high_key2[r], strings)
            extra = 1 + 6 * (stop - first)
            checks[at] = head | LONG | extra << 16
            starts[p + 1] = at + 3 + extra
            continue
        # The intervals of a positive shape are its runs, those of a negative one lie between them.
        skipped = np.int64(stop > first and low_kind[first] != codes.START_NUMBER)
        count = stop - first if shape & NEGATIVE == 0 else stop - first - 1 + skipped
        to = at + 3
        for i in range(count):
            if shape & NEGATIVE == 0:
                r = first + i
                low = low_coordinate(low_kind[r], low_key[r], low_key2[r])
                high = high_coordinate(high_kind[r], high_key[r], high_key2[r])
            else:
                r = first + i - skipped
                low = low_coordinate(high_kind[r], high_key[r], high_key2[r]) if r >= first else np.int64(MIN)
                high = high_coordinate(low_kind[r + 1], low_key[r + 1], low_key2[r + 1])
            checks[to + 2 * i], checks[to + 2 * i + 1] = low, high
        sort_pairs(checks, to, count)
        is_short = True
        for i in range(count):
            is_short = is_short and low_place(kind, checks[to + 2 * i]) >= 0
            is_short = is_short and high_place(kind, checks[to + 2 * i + 1]) >= 0
        if count == 0 and shape == INSIDE:
            # No value has the last place.
            checks[at], checks[at + 1] = head, np.int64(TOP) << 32 | np.int64(TOP)
            starts[p + 1] = at + 2
        elif count == 0:
            checks[at], checks[at + 1] = head, np.int64(TOP) << 32
            starts[p + 1] = at + 2
        elif is_short:
            for i in range(count):  # forwards: a word is written where two were read
                low, high = low_place(kind, checks[to + 2 * i]), high_place(kind, checks[to + 2 * i + 1])
                checks[at + 2 + i] = low << 32 | high
            checks[at + 1] = checks[at + 2] & ~np.int64(0xFFFF_FFFF) | checks[at + 1 + count] & 0xFFFF_FFFF
            extra = count if shape & LIST else 0
            checks[at] = head | extra << 16
            starts[p + 1] = at + 2 + extra
        else:
            checks[at + 1], checks[at + 2] = checks[to], checks[to + 2 * count - 1]
            extra = 2 * count if shape & LIST else 0
            checks[at] = head | LONG | extra << 16
            starts[p + 1] = at + 3 + extra
        starts[p + 1] = at + made_tiny(checks, at, starts[p + 1] - at, kind, np.int64(attribute[p]))
    return starts, checks


@inline
def cut_order(kind, key, key2, strings):
    """The third word of a cut in a check: of one among strings, the first eight bytes of its string."""
    if kind < codes.START_STRING:
        return key2
    if kind != codes.STRING_CUT:
        return np.int64(MIN if kind == codes.START_STRING else MAX)
    data, begin, end = strings
    return prefix_of(data, begin[key >> 1], end[key >> 1])


@inline
def made_tiny(checks, at, size, kind, attribute):
    """Make a check of so many words tiny, if it can be; its words then."""
    low, high = checks[at + 1] >> 32, checks[at + 1] & 0xFFFF_FFFF
    if attribute >= TINY_ATTRIBUTES or low > high:
        return size
    tiny = np.int64(MIN) | attribute << ATTRIBUTE | low << PLACE | (high - low)
    plain = checks[at] & 0xFFFF
    if plain == kind:
        checks[at] = tiny
        return np.int64(1)
    if plain != kind | AMONG << 4 or high - low >= 64 << mask_step(low):
        return size
    mask = np.int64(0)
    for i in range(at + 2, at + size):
        place = checks[i] >> 32
        if place != checks[i] & 0xFFFF_FFFF or (place - low) & mask_step(low):
            return size  # more than a value
        mask |= np.int64(1) << ((place - low) >> mask_step(low))
    checks[at], checks[at + 1] = tiny | MASKED, mask
    return np.int64(2)


@inline
def likely_width(checks, at):
    """How many places satisfy a check, about, so that what fails most often stands first."""
    code = checks[at]
    if code >= 0:
        return np.int64(0)
    return 2 * bits_in(checks[at + 1]) if code & MASKED else code & DISTANCES


@kernel
def joined_rows(offsets, items, starts, checks, rank, order, guaranteed):
    """Returns the words of rows, and where each begins. Row r is conjunction order[r] without guaranteed[r], a
    predicate or -1. Of its checks the plain ones come first, then the other tiny ones, each by rank.
    """
    rows = len(order)
    row_offsets = np.zeros(rows + 1, np.int64)
    longest = 0
    for r in range(rows):
        c = order[r]
        size = 1
        for i in range(offsets[c], offsets[c + 1]):
            if items[i] != guaranteed[r]:
                size += starts[items[i] + 1] - starts[items[i]]
        row_offsets[r + 1] = row_offsets[r] + size + (size >= LARGE)
        longest = max(longest, offsets[c + 1] - offsets[c])
    words = np.empty(row_offsets[-1], np.int64)
    chosen, keys = np.empty(longest, np.int64), np.empty(longest, np.int64)
    for r in range(rows):
        c, to = np.int64(order[r]), row_offsets[r]
        size = row_offsets[r + 1] - to
        if size < LARGE:
            words[to] = c << 32 | size
            to += 1
        else:
            words[to], words[to + 1] = c << 32, (size - 2) << 32 | size
            to += 2
        n = 0
        for i in range(offsets[c], offsets[c + 1]):
            p = items[i]
            if p == guaranteed[r]:
                continue
            code = checks[starts[p]]
            key = rank[p] + (np.int64(0) if is_plain_check(code) else np.int64(1) << (60 if code < 0 else 61))
            j = n
            while j > 0 and keys[j - 1] > key:
                keys[j], chosen[j] = keys[j - 1], chosen[j - 1]
                j -= 1
            keys[j], chosen[j] = key, p
            n += 1
        for i in range(n):
            for k in range(starts[chosen[i]], starts[chosen[i] + 1]):
                words[to] = checks[k]
                to += 1
        use_words(words, row_offsets[r], to - first_check(words, row_offsets[r]))
    return words, row_offsets
