"""Checks answered in full: several values, ranges as events, lists, order among strings, patterns, large integers."""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.events import ordered_float
from eligo.compile.like import like
from eligo.index.rows.event_view import FAILS, HOLDS, KIND_ABSENT
from eligo.index.rows.line import BITS, MAX, MIN, STRING, high_at, low_at
from eligo.index.rows.packed_predicate import (
    ASK,
    DISTANCES,
    LIST,
    LONG,
    MASKED,
    NEGATIVE,
    PLACE,
    PLACES,
    attribute_of,
    check_words,
    extra_words,
    flags_of,
    high_coordinate_of,
    high_of,
    in_mask,
    kind_of,
    low_coordinate_of,
    low_of,
    shape_of,
)
from eligo.jit import float_of, handle, inline

# The string table of the rules as one argument of kernels.
make_string_handle = handle("StringHandle", ("data", "begin", "end"))


@inline
def compare_texts(strings, number, e, row):
    """-1, 0 or 1: a string of the rules against one that the event brought."""
    a, a_end, b, b_end = strings.begin[number], strings.end[number], e.text_low[row], e.text_high[row]
    while a < a_end and b < b_end:
        if strings.data[a] != e.text[b]:
            return -1 if strings.data[a] < e.text[b] else 1
        a += 1
        b += 1
    return (a < a_end) - (b < b_end)


@inline
def above(words, at, kind, key, strings, e):
    """Whether an event's value (kind and key as encoded) lies above the cut words[at:at+3].

    A string comes with its bytes, because `Index.text_attributes` names the attribute of every such check.
    """
    cut, cut_key, cut_key2 = words[at], words[at + 1], words[at + 2]
    own = 0 if kind == codes.RAW_FLOAT else codes.STRING >> 2 if kind == codes.TEXT else kind >> 2
    if cut >> 2 != own or cut & 3 == 0:
        return cut >> 2 <= own
    if own == 0:
        if kind == codes.INTEGER:
            return cut == codes.NUMBER_CUT and key >= cut_key
        value = float_of(key) + 0.0
        if value == np.floor(value) and -9223372036854775808.0 <= value < 9223372036854775808.0:
            return cut == codes.NUMBER_CUT and np.int64(value) >= cut_key
        return ordered_float(key) >= cut_key2
    if own < codes.STRING >> 2:
        return key >= cut_key
    if e.text_number[key] == cut_key >> 1:
        return cut_key & 1 == 0
    return compare_texts(strings, cut_key >> 1, e, key) < 0


@inline
def before(words, at, e, r, side, strings, rule_first):
    """Whether a cut of a rule, words[at:at+3], lies before one of an event's range; or, not `rule_first`, behind it."""
    runs = e.range_runs
    k, x, y = words[at], words[at + 1], words[at + 2]
    k2, x2, y2 = runs[r, side], runs[r, side + 1], runs[r, side + 2]
    order = 0
    if k >> 2 != k2 >> 2:
        order = -1 if k >> 2 < k2 >> 2 else 1
    elif k & 3 == 0 or k2 & 3 == 0:
        order = (k & 3 != 0) - (k2 & 3 != 0)
    elif k == codes.STRING_CUT:
        order = compare_texts(strings, x >> 1, e, x2 >> 1)
        if order == 0:
            order = (x & 1) - (x2 & 1)
    elif k >> 2 == 0:
        order = (y > y2) - (y < y2)
        if order == 0:
            if k != k2:
                order = -1 if k < k2 else 1
            elif k == codes.NUMBER_CUT:
                order = (x > x2) - (x < x2)
    else:
        order = (x > x2) - (x < x2)
    return order < 0 if rule_first else order > 0


@inline
def string_allowed(number, source, e, strings):
    """Whether a run of a range allows a string of the rules."""
    r = -1 - source
    runs = e.range_runs
    if runs[r, 0] == codes.STRING_CUT:
        order = compare_texts(strings, number, e, runs[r, 1] >> 1)
        if order < 0 or (order == 0 and runs[r, 1] & 1 == 1):
            return False
    if runs[r, 3] == codes.STRING_CUT:
        order = compare_texts(strings, number, e, runs[r, 4] >> 1)
        if order > 0 or (order == 0 and runs[r, 4] & 1 == 0):
            return False
    return True


@inline
def pairs_of(code, at):
    """The first, the one behind the last, and the step, of the places where the bounds of a check at `at` begin."""
    if code < 0:
        return at, at + 1, 1
    step = 2 if code & LONG else 1
    if shape_of(code) & LIST:
        return at + 1 + step, at + check_words(code), step
    return at + 1, at + 1 + step, step


@inline
def pair_at(code, words, pair):
    """The bounds that begin there, as coordinates."""
    if code < 0:
        return low_coordinate_of(words, pair), high_coordinate_of(words, pair)
    if code & LONG:
        return words[pair], words[pair + 1]
    return low_at(words[pair] >> 32), high_at(words[pair] & 0xFFFF_FFFF)


@inline
def some_string_meets(words, at, source, e, strings):
    """Whether a run of a range allows a string that a check, no negative one, names."""
    code = words[at]
    if code < 0 and code & MASKED:
        lowest = (code >> PLACE & PLACES) - (STRING << BITS) - 1
        found = False
        for i in range(64):
            found = found or (words[at + 1] >> i & 1 == 1 and string_allowed(lowest + i, source, e, strings))
        return found
    first, stop, step = pairs_of(code, at)
    for pair in range(first, stop, step):
        low, high = pair_at(code, words, pair)
        if low == MIN and high == MAX:
            return True  # any string will do
        for number in range(max(low, 0), high + 1):
            if string_allowed(number, source, e, strings):
                return True
    return False


@inline
def compare_padded(data, a, a_end, e, row, zeros):
    """-1, 0 or 1: data[a:a_end] against a string that the event brought, followed by so many NULs. Row -1: ""."""
    b, b_end = (e.text_low[row], e.text_high[row]) if row >= 0 else (np.int64(0), np.int64(0))
    while a < a_end and (b < b_end or zeros > 0):
        other = e.text[b] if b < b_end else np.uint8(0)
        if data[a] != other:
            return -1 if data[a] < other else 1
        a += 1
        if b < b_end:
            b += 1
        else:
            zeros -= 1
    return (a < a_end) - (b < b_end or zeros > 0)


@inline
def some_string_outside(words, at, source, e, strings):
    """Whether a run of a range allows a string that a negative check does not exclude.

    The least string above s is s followed by NUL. So the strings of the run are tried from the lowest on, each a NUL
    longer, and one more than the check excludes are enough.
    """
    r = -1 - source
    runs, code = e.range_runs, words[at]
    first, stop, step = pairs_of(code, at)
    lowest, zeros = np.int64(-1), np.int64(0)
    if runs[r, 0] == codes.STRING_CUT:
        lowest, zeros = runs[r, 1] >> 1, runs[r, 1] & 1
    while True:
        if runs[r, 3] == codes.STRING_CUT:
            end = runs[r, 4] >> 1
            order = compare_padded(e.text, e.text_low[end], e.text_high[end], e, lowest, zeros)
            if order < 0 or (order == 0 and runs[r, 4] & 1 == 0):
                return False
        excluded = False
        for pair in range(first, stop, step):
            low, high = pair_at(code, words, pair)
            if low == MIN and high == MAX:
                return False  # all strings are excluded
            for number in range(max(low, 0), high + 1):
                same = compare_padded(strings.data, strings.begin[number], strings.end[number], e, lowest, zeros)
                excluded = excluded or same == 0
        if not excluded:
            return True
        zeros += 1


@inline
def entry_meets(words, at, s, j, e, strings):
    """Whether some value that entry j of the view allows lies in the set of the check words[at:]."""
    code, source = words[at], s.source[j]
    shape, kind, flags = shape_of(code), kind_of(code), flags_of(code)
    is_long = code > 0 and code & LONG != 0
    step = 2 if is_long else 1
    low, high = (s.low[j], s.high[j]) if is_long else (s.low_place[j], s.high_place[j])
    if shape == ASK:
        stop = at + 3 + extra_words(code)
        good = False
        for run in range(at + 4, stop, 6):
            if source >= 0:
                value_kind, key = e.meta[source] & 255, e.key[source]
                good = above(words, run, value_kind, key, strings, e) and not above(
                    words, run + 3, value_kind, key, strings, e
                )
            else:
                r = -1 - source
                good = before(words, run, e, r, 3, strings, True) and before(words, run + 3, e, r, 0, strings, False)
            if good:
                break
        if good and flags & codes.RESIDUAL:
            # Values of another kind match no pattern; a range of strings never comes here (the encoder refuses it).
            matched = False
            if source >= 0 and e.meta[source] & 255 == codes.TEXT:
                pattern, row = words[at + 3], e.key[source]
                matched = like(
                    strings.data, strings.begin[pattern], strings.end[pattern],
                    e.text, e.text_low[row], e.text_high[row],
                )  # fmt: skip
            good = matched != (flags & codes.RESIDUAL_NEGATED != 0)
        return good
    if kind != s.entry_kind[j]:
        return shape & NEGATIVE != 0
    if kind == STRING and source < 0:
        if shape & NEGATIVE:
            return some_string_outside(words, at, source, e, strings)
        return some_string_meets(words, at, source, e, strings)
    if code < 0:
        lowest = code >> PLACE & PLACES
        if code & MASKED == 0:
            return lowest <= high and low <= lowest + (code & DISTANCES)
        for place in range(max(low, lowest), min(high, lowest + (code & DISTANCES)) + 1):
            if in_mask(words[at + 1], place, lowest):
                return True
        return False
    pairs = extra_words(code) // step if shape & LIST else 1
    first = at + 1 + step if shape & LIST else at + 1
    if shape & NEGATIVE == 0:
        # The first interval that does not end below; few intervals are the rule.
        a, b = 0, pairs - 1
        while a < b:
            middle = (a + b) >> 1
            if high_of(code, words, first + step * middle) < low:
                a = middle + 1
            else:
                b = middle
        pair = first + step * a
        return low_of(code, words, pair) <= high and low <= high_of(code, words, pair)
    # All but these: something is left of low … high when no interval covers it whole.
    position = low
    for i in range(pairs):
        begin, end = low_of(code, words, first + step * i), high_of(code, words, first + step * i)
        if begin <= position and position <= end:
            if end >= high:
                return False
            position = end + 1
    return True


@inline
def ask_check(words, at, s, e, strings):
    """Whether the event satisfies the check words[at:]: some value has to lie in its set, or, negated, all of them."""
    a, flags = attribute_of(words[at]), flags_of(words[at])
    if s.kind[a] == KIND_ABSENT:
        return HOLDS if flags & codes.ABSENT_HOLDS else FAILS
    every = flags & codes.ALL_VALUES != 0
    for j in range(s.first[a], s.stop[a]):
        if entry_meets(words, at, s, j, e, strings) != every:
            return FAILS if every else HOLDS
    return HOLDS if every else FAILS
