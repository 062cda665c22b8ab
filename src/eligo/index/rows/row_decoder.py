"""Rows (packed_predicate.py) back to the arrays of `Compiled`: the opposite of row_encoder.py.

An index of rows holds all that its rules say, so a segment need not keep their predicates a second time. When segments
are merged, or somebody asks which attributes they name, predicates are read from the rows. What comes out is equal to
what went in: the same cuts, in the same order.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import I64, Arrays, grown
from eligo.compile.events import float_bits
from eligo.compile.spaces import sorted_strings
from eligo.compile.strings import Strings
from eligo.index.rows.content import hash_check
from eligo.index.rows.line import BOOLEAN, MAX, MIN, NUMBER, STRING, TOP, low_at
from eligo.index.rows.packed_predicate import (
    AMONG,
    ASK,
    LIST,
    LONG,
    NEGATIVE,
    PLACE,
    PLACES,
    attribute_of,
    check_words,
    extra_words,
    first_check,
    flags_of,
    high_coordinate_of,
    kind_of,
    low_coordinate_of,
    mask_step,
    row_words,
    shape_of,
)
from eligo.index.rows.slow_path import pair_at, pairs_of
from eligo.jit import inline, kernel

_COLUMNS = (
    "attribute", "flags", "pattern", "run_offsets", "low_kind", "low_key", "low_key2", "high_kind", "high_key",
    "high_key2",
)  # fmt: skip


def predicates_of(words: I64, offsets: I64, strings: Strings) -> Arrays:
    """Returns the predicates and conjunctions of some rows, row i as conjunction i, as `Compiled` has them."""
    first, conjunction_offsets, conjunction = distinct_checks(words, offsets)
    columns = decode_checks(words, first, *strings.spans())
    return {
        **dict(zip(_COLUMNS, columns, strict=True)),
        "conjunction_offsets": conjunction_offsets,
        "conjunction": conjunction,
    }


@kernel
def distinct_checks(words, offsets):
    """Returns where the first of all equal checks begin; and for each row, as slices, the numbers of its checks."""
    rows = len(offsets) - 1
    row_offsets = np.zeros(rows + 1, np.int64)
    for r in range(rows):
        q, stop = first_check(words, offsets[r]), offsets[r] + row_words(words, offsets[r])
        n = 0
        while q < stop:
            n += 1
            q += check_words(words[q])
        row_offsets[r + 1] = row_offsets[r] + n
    size = 16
    while size < 2 * row_offsets[-1]:
        size *= 2
    slots, mask = np.zeros(size, np.int32), np.uint64(size - 1)
    items, first, known = np.empty(row_offsets[-1], np.int32), np.zeros(64, np.int64), 0
    for r in range(rows):
        q, stop = first_check(words, offsets[r]), offsets[r] + row_words(words, offsets[r])
        i = row_offsets[r]
        while q < stop:
            length = check_words(words[q])
            at = hash_check(words, q) & mask
            while True:
                number = np.int64(slots[at]) - 1
                if number < 0:
                    first = grown(first, known + 1)
                    first[known] = q
                    known += 1
                    slots[at] = known
                    number = known - 1
                    break
                same = check_words(words[first[number]]) == length
                k = 0
                while same and k < length:
                    same = words[first[number] + k] == words[q + k]
                    k += 1
                if same:
                    break
                at = (at + np.uint64(1)) & mask
            items[i] = number
            i += 1
            q += length
    return first[:known].copy(), row_offsets, items


@inline
def number_cut(x):
    """Returns the cut right before the float whose ordered bits are x: kind, key, key2."""
    if x == -1:
        x = np.int64(0)  # the slot of -0.0, where no value is
    value = float_bits(x)
    if value >= 9223372036854775808.0:
        return codes.HIGH_NUMBER_CUT, np.int64(0), x
    if value <= -9223372036854775808.0:
        return codes.NUMBER_CUT, np.int64(MIN), x
    return codes.NUMBER_CUT, np.int64(np.ceil(value)), x


@inline
def low_cut(kind, x):
    """Returns the cut right before a coordinate."""
    if x == MIN or (kind == BOOLEAN and x <= 0):
        return 4 * kind, np.int64(0), np.int64(0)
    if kind == NUMBER:
        return number_cut(x)
    return 4 * kind + 1, 2 * x if kind == STRING else x, np.int64(0)


@inline
def high_cut(kind, x):
    """Returns the cut right after a coordinate."""
    if x == MAX or (kind == BOOLEAN and x >= codes.OBJECT):
        return 4 * kind + 4, np.int64(0), np.int64(0)
    if kind == NUMBER:
        return number_cut(x + 1)
    return 4 * kind + 1, 2 * x + 1 if kind == STRING else x + 1, np.int64(0)


@inline
def intervals_of(words, q, data, begin, end):
    """Returns the intervals of a check that is no ASK, lower and upper coordinates in turn, in the order of values."""
    code = words[q]
    shape, kind = shape_of(code), kind_of(code)
    if code < 0 or code & LONG == 0:
        lowest = code >> PLACE & PLACES if code < 0 else words[q + 1] >> 32
        if lowest == TOP:
            return np.empty(0, np.int64)  # no number has the last place
    if code < 0 and shape == AMONG:
        found, n, lowest = np.empty(128, np.int64), 0, code >> PLACE & PLACES
        for bit in range(64):
            if words[q + 1] >> bit & 1:
                found[n] = found[n + 1] = low_at(lowest + (bit << mask_step(lowest)))
                n += 2
        found = found[:n].copy()
    elif shape & LIST:
        first, stop, step = pairs_of(code, q)
        found, n = np.empty(2 * ((stop - first) // step), np.int64), 0
        for pair in range(first, stop, step):
            found[n], found[n + 1] = pair_at(code, words, pair)
            n += 2
    else:
        found = np.empty(2, np.int64)
        found[0], found[1] = low_coordinate_of(words, q), high_coordinate_of(words, q)
    if kind == STRING and len(found) > 2:  # each of one string; they stand in the order of their numbers
        numbers = np.empty(len(found) // 2, np.int64)
        for i in range(len(numbers)):
            numbers[i] = found[2 * i]
        ordered = sorted_strings(data, begin, end, numbers)
        for i in range(len(numbers)):
            found[2 * i] = found[2 * i + 1] = ordered[i]
    return found


@kernel
def decode_checks(words, first, data, begin, end):
    """Returns the columns of predicates for the checks that begin at words[first[i]]."""
    n = len(first)
    attribute, flags, pattern = np.empty(n, np.int32), np.empty(n, np.uint8), np.full(n, -1, np.int32)
    run_offsets, kinds, keys = np.zeros(n + 1, np.int64), np.zeros(2 * n + 2, np.uint8), np.zeros(4 * n + 4, np.int64)
    run = 0
    for p in range(n):
        q = first[p]
        code = words[q]
        attribute[p], flags[p] = attribute_of(code), flags_of(code)
        if shape_of(code) == ASK:
            if flags[p] & codes.RESIDUAL:
                pattern[p] = words[q + 3]
            count = extra_words(code) // 6
            kinds, keys = grown(kinds, 2 * (run + count)), grown(keys, 4 * (run + count))
            for at in range(q + 4, q + 4 + 6 * count, 6):
                kinds[2 * run], kinds[2 * run + 1] = words[at], words[at + 3]
                keys[4 * run], keys[4 * run + 2] = words[at + 1], words[at + 4]
                keys[4 * run + 1] = words[at + 2] if words[at] < codes.START_STRING else 0
                keys[4 * run + 3] = words[at + 5] if words[at + 3] < codes.START_STRING else 0
                run += 1
            run_offsets[p + 1] = run
            continue
        kind, found = kind_of(code), intervals_of(words, q, data, begin, end)
        count = len(found) // 2
        kinds, keys = grown(kinds, 2 * (run + count + 1)), grown(keys, 4 * (run + count + 1))
        if shape_of(code) & NEGATIVE == 0:
            for i in range(count):
                kinds[2 * run], keys[4 * run], keys[4 * run + 1] = low_cut(kind, found[2 * i])
                kinds[2 * run + 1], keys[4 * run + 2], keys[4 * run + 3] = high_cut(kind, found[2 * i + 1])
                run += 1
        else:  # what lies between the intervals, before the first and behind the last
            kinds[2 * run], keys[4 * run], keys[4 * run + 1] = codes.START_NUMBER, np.int64(0), np.int64(0)
            for i in range(count):
                cut, key, key2 = low_cut(kind, found[2 * i])
                if cut != codes.START_NUMBER:
                    kinds[2 * run + 1], keys[4 * run + 2], keys[4 * run + 3] = cut, key, key2
                    run += 1
                kinds[2 * run], keys[4 * run], keys[4 * run + 1] = high_cut(kind, found[2 * i + 1])
            if kinds[2 * run] != codes.END_CUT:
                kinds[2 * run + 1], keys[4 * run + 2], keys[4 * run + 3] = codes.END_CUT, np.int64(0), np.int64(0)
                run += 1
        run_offsets[p + 1] = run
    sides = np.empty((4, run), np.int64)
    low_kind, high_kind = np.empty(run, np.uint8), np.empty(run, np.uint8)
    for r in range(run):
        low_kind[r], high_kind[r] = kinds[2 * r], kinds[2 * r + 1]
        for k in range(4):
            sides[k, r] = keys[4 * r + k]
    return (
        attribute, flags, pattern, run_offsets, low_kind, sides[0].copy(), sides[1].copy(), high_kind,
        sides[2].copy(), sides[3].copy(),
    )  # fmt: skip
