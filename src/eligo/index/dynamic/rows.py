"""Rows: conjunctions in 64-bit keys, each whole in itself, for indexes that change while they are searched.

Spaces are numbered anew whenever a predicate brings a new cut. What has to go on without renumbering speaks in
coordinates instead: one ordered 64-bit line for each kind of value.

    number    the ordered bits of the nearest float        time      microseconds
    Boolean   0 or 1                                       string    its number in the string table, -1: not in there

Most values are small whole numbers or strings, and most of the time goes into fetching rows from memory. So there is
also a short line of 32 bits: of a number the next float of 31 bits at or below it, + 1 if it lies above that; of
Booleans and strings the coordinate itself. Every bound that is a float of 31 bits, open or closed, has a place there.

    row       conjunction << 32 | words of the row;  checks in use << 32 | checks;  then its checks
    check     code   attribute << 40 │ extra words << 16 │ flags << 8 │ LONG (128) │ shape << 4 │ kind of value
              bounds an interval, both ends in it: low << 32 | high on the short line, or low and high in two words;
                     empty: from the last place of the line to the first
              extra  as the shape has them:
        INSIDE      nothing: the value lies in the interval
        OUTSIDE     nothing: it does not, or is of another kind
        AMONG       pairs in ascending order, each as the bounds are, which are their hull: it lies in one of them
        EXCEPT      pairs: it lies in none of them, or is of another kind
        ASK         the predicate's pattern (-1: none) and its cuts, six words a run: see asking.py. The interval holds
                    all values of the kind that could satisfy it; kind ANY: values of several kinds could

Checks in use come first; behind them are those that the way to the row guarantees. Bounds between 2^53 and 2^64 go to
ASK, because integers there have no float of their own; everywhere else the nearest float of an integer lies on the same
side of every bound as the integer itself.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from eligo.compile import codes
from eligo.compile.compiled import I64, Compiled
from eligo.jit import float_of, inline, kernel

NUMBER, BOOLEAN, TIME, STRING, ANY = 0, 1, 2, 3, 4
INSIDE, OUTSIDE, AMONG, EXCEPT, ASK = 0, 1, 2, 3, 4
NEGATIVE, LIST = 1, 2  # bits of the first four
MIN, MAX = -(2**63), 2**63 - 1
HEADER = 2  # words
LONG = 128
SHORT_MIN, SHORT_MAX = -(2**31), 2**31 - 1
EXACT = 2.0**53
PAST = 2.0**64


@intrinsic
def bits_of(context, value):  # type: ignore[no-untyped-def]
    """The bits of a float."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def short_bits(context, value):  # type: ignore[no-untyped-def]
    """The bits of a short float."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(types.int32))

    return types.int32(types.float32), generate


@intrinsic
def float_of_short(context, bits):  # type: ignore[no-untyped-def]
    """The short float with these bits."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(types.float32))

    return types.float32(types.int32), generate


@inline
def extra_words(code):  # type: ignore[no-untyped-def]
    return (code >> 16) & 0xFF_FFFF


@inline
def check_words(code):  # type: ignore[no-untyped-def]
    """Words of a check, all in all."""
    return (3 if code & LONG else 2) + ((code >> 16) & 0xFF_FFFF)


@inline
def low_of(code, words, at):  # type: ignore[no-untyped-def]
    """The lower one of the bounds that begin at words[at], on the line of the code."""
    return words[at] if code & LONG else words[at] >> 32


@inline
def high_of(code, words, at):  # type: ignore[no-untyped-def]
    return words[at + 1] if code & LONG else (words[at] << 32) >> 32


@inline
def ordered_short(value):  # type: ignore[no-untyped-def]
    """The bits of a short float as an integer of the same order; even for even bits, whatever the sign."""
    bits = short_bits(value)
    return np.int64(bits) if bits >= 0 else -np.int64(bits & np.int32(0x7FFFFFFF))


@inline
def short_float(ordered):  # type: ignore[no-untyped-def]
    """The float of which these are the ordered bits."""
    size = np.int32(ordered if ordered >= 0 else -ordered)
    value = np.float64(float_of_short(size))
    return value if ordered >= 0 else -value


@inline
def short_place(kind, coordinate):  # type: ignore[no-untyped-def]
    """Where a coordinate lies on the short line."""
    if kind != NUMBER:
        return coordinate
    value = float_bits(coordinate)
    below = ordered_short(np.float32(value)) & ~np.int64(1)
    if short_float(below) > value:
        below -= 2
    return below + (short_float(below) != value)


@inline
def short_low(kind, coordinate):  # type: ignore[no-untyped-def]
    """A lower bound on the short line, or SHORT_MIN - 1: it has no place there."""
    if coordinate == MIN:
        return np.int64(SHORT_MIN)
    if kind == NUMBER:
        if coordinate == -1:
            return np.int64(0)  # the place of -0.0, where no value is
        place = short_place(kind, coordinate)
        if place & 1 == 0:
            return place
        place = short_place(kind, coordinate - 1)  # an open bound lies one above a float
        return place + 1 if place & 1 == 0 else np.int64(SHORT_MIN - 1)
    return coordinate if SHORT_MIN < coordinate < SHORT_MAX and kind != TIME else np.int64(SHORT_MIN - 1)


@inline
def short_high(kind, coordinate):  # type: ignore[no-untyped-def]
    """An upper bound on the short line, or SHORT_MAX + 1: it has no place there."""
    if coordinate == MAX:
        return np.int64(SHORT_MAX)
    if kind == NUMBER:
        if coordinate == -1:
            return np.int64(-1)
        place = short_place(kind, coordinate)
        if place & 1 == 0:
            return place
        place = short_place(kind, coordinate + 1)
        return place - 1 if place & 1 == 0 else np.int64(SHORT_MAX + 1)
    return coordinate if SHORT_MIN < coordinate < SHORT_MAX and kind != TIME else np.int64(SHORT_MAX + 1)


@inline
def low_coordinate_of(code, words, at):  # type: ignore[no-untyped-def]
    """The lower one of the bounds that begin at words[at], as a coordinate."""
    bound = low_of(code, words, at)
    if code & LONG:
        return bound
    if bound == SHORT_MIN:
        return np.int64(MIN)
    if code & 15 != NUMBER:
        return bound if bound < SHORT_MAX else np.int64(MAX)
    below = bound & ~np.int64(1)
    return ordered_bits_of(short_float(below)) + (bound & 1) if bound < SHORT_MAX else np.int64(MAX)


@inline
def high_coordinate_of(code, words, at):  # type: ignore[no-untyped-def]
    bound = high_of(code, words, at)
    if code & LONG:
        return bound
    if bound == SHORT_MAX:
        return np.int64(MAX)
    if code & 15 != NUMBER:
        return bound if bound > SHORT_MIN else np.int64(MIN)
    above = (bound + 1) & ~np.int64(1)
    return ordered_bits_of(short_float(above)) - (bound & 1) if bound > SHORT_MIN else np.int64(MIN)


@inline
def ordered_bits_of(value):  # type: ignore[no-untyped-def]
    bits = bits_of(value + 0.0)
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFFFFFFFFFF)


@inline
def row_words(head):  # type: ignore[no-untyped-def]
    return head & 0xFFFF_FFFF


def rows_of(compiled: Compiled) -> tuple[I64, I64]:
    """All conjunctions as rows, one after the other: their words, and where each begins."""
    words, offsets = make_rows(
        compiled.conjunction_offsets, compiled.conjunction, compiled.attribute, compiled.flags, compiled.pattern,
        compiled.run_offsets, compiled.low_kind, compiled.low_key, compiled.low_key2, compiled.high_kind,
        compiled.high_key, compiled.high_key2,
    )  # fmt: skip
    return words, offsets


@inline
def float_bits(ordered):  # type: ignore[no-untyped-def]
    """The float of which these are the ordered bits."""
    return float_of(ordered if ordered >= 0 else ordered ^ np.int64(0x7FFFFFFFFFFFFFFF))


@inline
def is_plain(kind, key, key2, high):  # type: ignore[no-untyped-def]
    """Whether coordinates say all about a cut; `high`: it ends a run."""
    if kind & 3 == 0:
        return kind != codes.START_STRING
    if kind == codes.STRING_CUT:
        return key & 1 == high
    if kind == codes.NUMBER_CUT:
        value = abs(float_bits(key2))
        return value <= EXACT or value >= PAST
    return kind != codes.HIGH_NUMBER_CUT or abs(float_bits(key2)) >= PAST


@inline
def low_coordinate(kind, key, key2):  # type: ignore[no-untyped-def]
    """The first coordinate above a cut."""
    if kind == codes.NUMBER_CUT or kind == codes.HIGH_NUMBER_CUT:
        return key2
    if kind == codes.BOOLEAN_CUT or kind == codes.TIME_CUT:
        return key
    if kind == codes.STRING_CUT:
        return key >> 1
    return np.int64(0) if kind == codes.START_BOOLEAN else np.int64(MIN)


@inline
def high_coordinate(kind, key, key2):  # type: ignore[no-untyped-def]
    """The last coordinate below a cut; of one that starts a kind, the last of the kind before."""
    if kind == codes.NUMBER_CUT or kind == codes.HIGH_NUMBER_CUT:
        return key2 - 1
    if kind == codes.BOOLEAN_CUT or kind == codes.TIME_CUT:
        return key - 1
    if kind == codes.STRING_CUT:
        return key >> 1
    return np.int64(1) if kind == codes.START_TIME else np.int64(MAX)


@inline
def kind_of_run(low_kind, high_kind):  # type: ignore[no-untyped-def]
    """The kind of value that a run lies in, or ANY."""
    first, last = np.int64(low_kind) >> 2, (np.int64(high_kind) >> 2) - (high_kind & 3 == 0)
    return first if first == last else np.int64(ANY)


@inline
def shape_of(p, flags, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2):  # type: ignore[no-untyped-def]
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


@inline
def sort_pairs(words, at, pairs):  # type: ignore[no-untyped-def]
    """Sort pairs by their first word: strings come in the order of their letters, not of their numbers."""
    for i in range(1, pairs):
        low, high = words[at + 2 * i], words[at + 2 * i + 1]
        j = i - 1
        while j >= 0 and words[at + 2 * j] > low:
            words[at + 2 * j + 2], words[at + 2 * j + 3] = words[at + 2 * j], words[at + 2 * j + 1]
            j -= 1
        words[at + 2 * j + 2], words[at + 2 * j + 3] = low, high


@kernel
def make_rows(  # type: ignore[no-untyped-def]
    offsets, items, attribute, flags, pattern, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2
):
    """The rows of all conjunctions: each predicate's check is written once and copied."""
    predicates = len(attribute)
    starts = np.zeros(predicates + 1, np.int64)
    checks = np.zeros(8 * predicates + 64, np.int64)
    for p in range(predicates):
        at, first, stop = starts[p], run_offsets[p], run_offsets[p + 1]
        while at + 8 + 6 * (stop - first) > len(checks):
            more = np.zeros(2 * len(checks), np.int64)
            more[:at] = checks[:at]
            checks = more
        shape, kind, _ = shape_of(p, flags, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2)
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
                checks[to], checks[to + 1], checks[to + 2] = low_kind[r], low_key[r], low_key2[r]
                checks[to + 3], checks[to + 4], checks[to + 5] = high_kind[r], high_key[r], high_key2[r]
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
            is_short = is_short and short_low(kind, checks[to + 2 * i]) >= SHORT_MIN
            is_short = is_short and short_high(kind, checks[to + 2 * i + 1]) <= SHORT_MAX
        if count == 0:
            checks[at], checks[at + 1] = head, np.int64(SHORT_MAX) << 32 | (np.int64(SHORT_MIN) & 0xFFFF_FFFF)
            starts[p + 1] = at + 2
        elif is_short:
            for i in range(count):  # forwards: a word is written where two were read
                low, high = short_low(kind, checks[to + 2 * i]), short_high(kind, checks[to + 2 * i + 1])
                checks[at + 2 + i] = low << 32 | (high & 0xFFFF_FFFF)
            checks[at + 1] = checks[at + 2] & ~np.int64(0xFFFF_FFFF) | checks[at + 1 + count] & 0xFFFF_FFFF
            extra = count if shape & LIST else 0
            checks[at] = head | extra << 16
            starts[p + 1] = at + 2 + extra
        else:
            checks[at + 1], checks[at + 2] = checks[to], checks[to + 2 * count - 1]
            extra = 2 * count if shape & LIST else 0
            checks[at] = head | LONG | extra << 16
            starts[p + 1] = at + 3 + extra
    rows = len(offsets) - 1
    row_offsets = np.zeros(rows + 1, np.int64)
    for c in range(rows):
        size = HEADER
        for i in range(offsets[c], offsets[c + 1]):
            size += starts[items[i] + 1] - starts[items[i]]
        row_offsets[c + 1] = row_offsets[c] + size
    words = np.empty(row_offsets[-1], np.int64)
    for c in range(rows):
        to, count = row_offsets[c], offsets[c + 1] - offsets[c]
        words[to] = np.int64(c) << 32 | (row_offsets[c + 1] - to)
        words[to + 1] = count << 32 | count
        to += HEADER
        for i in range(offsets[c], offsets[c + 1]):
            for k in range(starts[items[i]], starts[items[i] + 1]):
                words[to] = checks[k]
                to += 1
    return words, row_offsets
