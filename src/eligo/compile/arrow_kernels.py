"""Rows of Arrow tables to entries of an event buffer, by the nodes of their columns (arrow_nodes.py).

A column of the plan (`arrow_plan.py`) reads a node in one of four modes:

    SCALAR    one value a row
    ITEMS     the items of a list, several values of one attribute
    PAIRS     a map, or a list of pairs: the key names the attribute, and the value is read from another node
    PART      entries that were made the readable way (`arrow.py`), sorted by row

Events are encoded in two passes: `count` says how many entries each row has, `fill` writes them. Both ask the same
functions whether a value is there, and so agree. A value that may be an error makes its column *odd*: the column is
then read the readable way, which says what is wrong, if anything is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eligo.compile import codes
from eligo.compile.arrow_nodes import (
    CHILD,
    DATE64,
    DICTIONARY,
    FLOAT32,
    FLOAT64,
    INT64,
    KIND,
    METAS_AT,
    NAMES,
    NANOSECONDS,
    NO_BITS,
    NO_PAIR,
    NOTHING,
    OFFSET,
    OTHER,
    STRING,
    STRING_VIEW,
    SURE,
    UNSURE,
    VALUES,
    bits_of_number,
    is_nan,
    is_there,
    is_whole,
    items,
    measure,
    name_number,
    node_at,
    resolved,
    text_at,
    text_number,
    text_size,
    valid_rows,
    value_at,
)
from eligo.compile.encode import PATTERN, SEVERAL, TEXT
from eligo.compile.spaces import sorting
from eligo.jit import address_of, byte_at, inline, int64_at, kernel, put_int64, trailing_zeros, word_at

# A column: its node (or part), its mode, the attribute's meta and flags, and which names the keys of its map have.
SCALAR, ITEMS, PAIRS, PART = range(4)
COLUMN_NODE, COLUMN_MODE, COLUMN_META, COLUMN_SPECIAL, COLUMN_NAMES = range(5)

_SPECIAL: Final = 255
_CACHED: Final = 65_536  # entries that are written while others of their rows are in the cache
_FEW: Final = 32  # entries that are sorted fastest by insertion
_TOGETHER: Final = 16  # columns whose entries of a row are written together, each array of two cache lines
_LINE: Final = 8  # integers in a cache line
_ONE: Final = np.uint64(1)


@inline
def values_of(mode, node, i):
    """The node that has the values of row i, the first of them, and the one behind the last."""
    if mode == SCALAR:
        return node, i, i + 1
    begin, end = items(node, i)
    return int64_at(node, CHILD if mode == ITEMS else OTHER), begin, end


@kernel
def locate_pairs(nodes, starts, columns, first, stop, places):
    """Writes for each stretch and column of maps the place that the pair 0 of its array has among the pairs of some
    rows. Returns how many pairs these rows have.
    """
    pairs = np.int64(0)
    for s in range(len(starts) - 1):
        low, high = max(first, starts[s]), min(stop, starts[s + 1])
        for c in range(len(columns)):
            node = node_at(nodes, s, columns[c, COLUMN_NODE])
            if low < high and columns[c, COLUMN_MODE] == PAIRS and int64_at(node, KIND) != NOTHING:
                begin = items(node, low - starts[s])[0]
                places[s, c] = pairs - begin
                pairs += items(node, high - starts[s] - 1)[1] - begin
    return pairs


@kernel
def count(
    nodes, starts, columns, names, first, stop, part_rows, places, pairs, seen, clock, counts, last, repeats, odd
):
    """Adds to counts[i + 1] the entries of row first + i, and writes to `pairs` the number of each pair's name, or
    NO_PAIR if the pair makes no entry; to last[i], if there is such, how many entries the last column makes; and to
    repeats[i] whether a map gives an attribute several values. Marks columns that are odd. Returns how many strings
    have their bytes looked at, how many bytes these are, and the clock, which tells the pairs of one row in `seen` from
    those of all others.
    """
    texts, size = np.int64(0), np.int64(0)
    for row in part_rows:
        counts[row + 1] += 1
    for s in range(len(starts) - 1):
        start = starts[s]
        low, high = max(first, start), min(stop, starts[s + 1])
        everywhere = np.int64(0)
        for c in range(len(columns) if low < high else 0):
            mode, special = columns[c, COLUMN_MODE], columns[c, COLUMN_SPECIAL]
            if mode == PART:
                continue
            node = node_at(nodes, s, columns[c, COLUMN_NODE])
            if int64_at(node, KIND) == NOTHING:
                continue
            has_text = special & (TEXT | PATTERN) != 0
            is_simple, is_sure = mode == SCALAR and not has_text, int64_at(node, SURE) != 0
            if is_simple and is_whole(node):
                everywhere += 1
                continue
            table, place = address_of(names) + 8 * NAMES * columns[c, COLUMN_NAMES], np.int64(0)
            if mode == PAIRS:
                place = places[s, c]
            for row in range(low, high, 64):
                word = valid_rows(node, row - start, min(np.int64(64), high - row))
                while word != NO_BITS:
                    i = row + np.int64(trailing_zeros(word))
                    word &= word - _ONE
                    if is_simple:
                        if is_sure or is_there(node, i - start):
                            counts[i - first + 1] += 1
                        continue
                    values, begin, end = values_of(mode, node, i - start)
                    found = np.int64(0)
                    clock += 1
                    for j in range(begin, end):
                        there = is_there(values, j)
                        if mode == PAIRS:
                            number, is_name = name_number(table, int64_at(node, CHILD), j)
                            if not is_name:
                                odd[c] = 1
                            there &= number >= 0
                            pairs[place + j] = number if there else np.int64(NO_PAIR)
                            if there:
                                meta = int64_at(int64_at(table, METAS_AT), number)
                                attribute, special = meta >> 8, meta & _SPECIAL
                                has_text = special & (TEXT | PATTERN) != 0
                                if seen[attribute] == clock:
                                    repeats[i - first] = 1
                                    if special & SEVERAL == 0:
                                        odd[c] = 1
                                seen[attribute] = clock
                        if there:
                            found += 1
                            if has_text:
                                length = text_size(values, j)
                                if length >= 0:
                                    texts += 1
                                    size += length
                    if mode == ITEMS:
                        found = max(np.int64(1), found)  # present without values: an entry that satisfies nothing
                        if special & SEVERAL == 0:
                            odd[c] = 1
                    counts[i - first + 1] += found
                    if mode == PAIRS and len(last) and c == len(columns) - 1:
                        last[i - first] = found
        if everywhere:
            for row in range(low, high):
                counts[row - first + 1] += everywhere
    return texts, size, clock


@inline
def fill_whole(nodes, s, columns, c, start, first, upper, lower, cursor, metas, keys):
    """Writes the entries of some rows of columns of 64-bit integers that have no nulls, as many as come one after
    another. Returns the column behind the last of them.
    """
    values, metas_of, count = np.empty(_TOGETHER, np.int64), np.empty(_TOGETHER, np.int64), 0
    while count < _TOGETHER and c < len(columns) and columns[c, COLUMN_MODE] == SCALAR:
        node = node_at(nodes, s, columns[c, COLUMN_NODE])
        if int64_at(node, KIND) != INT64 or not is_whole(node):
            break
        values[count] = int64_at(node, VALUES) + 8 * (int64_at(node, OFFSET) - start)
        metas_of[count] = columns[c, COLUMN_META] + codes.INTEGER
        count += 1
        c += 1
    # By addresses: that each place lies within the arrays would be asked of every integer, and `count` has seen to it.
    # Arrays are named wherever their addresses are used: Numba frees one behind the last place that has its name.
    tile = np.empty(_LINE * _TOGETHER, np.int64)
    for row in range(upper, lower, _LINE):
        height = min(_LINE, lower - row)
        for k in range(count):
            begin = values[k] + 8 * row
            for i in range(height):
                put_int64(address_of(tile), _TOGETHER * i + k, np.int64(word_at(begin, 8 * i)))
        for i in range(height):
            at = cursor[row + i - first]
            cursor[row + i - first] = at + count
            to = address_of(metas) + 8 * at
            for k in range(count):
                put_int64(to, k, int64_at(address_of(metas_of), k))
            to = address_of(keys) + 8 * at
            for k in range(count):
                put_int64(to, k, int64_at(address_of(tile), _TOGETHER * i + k))
    return c


@inline
def fill_numbers(node, meta, start, first, upper, lower, cursor, metas, keys):
    """Writes the entries of some rows of a column of numbers, Booleans, dates or timestamps. Returns whether all are
    sure.
    """
    kind, values, ahead = int64_at(node, KIND), int64_at(node, VALUES), int64_at(node, OFFSET) - start
    code, least, most, factor = measure(kind)
    meta += code
    is_float, is_sure = kind in (FLOAT32, FLOAT64), True
    for row in range(upper, lower, 64):
        word = valid_rows(node, row - start, min(np.int64(64), lower - row))
        while word != NO_BITS:
            i = row + np.int64(trailing_zeros(word))
            word &= word - _ONE
            key = bits_of_number(kind, values, ahead + i)
            if is_float and is_nan(key):
                continue
            is_sure &= least <= key <= most
            if kind == NANOSECONDS:
                key //= 1000
            elif kind == DATE64:
                is_sure &= key % 1000 == 0
            at = cursor[i - first]
            cursor[i - first] = at + 1
            metas[at], keys[at] = meta, key * factor
    return is_sure


@inline
def fill_strings(node, strings, known, meta, start, first, upper, lower, cursor, metas, keys):
    """The same of a column of strings, or of a dictionary, whose values are there just if they are not null and whose
    bytes nobody looks at.
    """
    is_dictionary, is_sure = int64_at(node, KIND) == DICTIONARY, True
    for row in range(upper, lower, 64):
        word = valid_rows(node, row - start, min(np.int64(64), lower - row))
        while word != NO_BITS:
            i = row + np.int64(trailing_zeros(word))
            word &= word - _ONE
            code = np.int64(codes.STRING)
            if is_dictionary:
                code, key = value_at(strings, known, node, i - start)
                is_sure &= code != UNSURE
            else:
                key, is_text = text_number(strings, node, i - start)
                is_sure &= is_text
            at = cursor[i - first]
            cursor[i - first] = at + 1
            metas[at], keys[at] = meta + code, key
    return is_sure


@inline
def entry_goes_first(metas, one, other):
    return metas[one] >> 8 <= metas[other] >> 8


sort_entries = sorting(entry_goes_first)


@inline
def sort_by_attribute(metas, keys, low, high):
    """Puts the entries of one attribute next to each other, in the order that they have."""
    if high - low > _FEW:
        order = sort_entries(np.arange(low, high), metas)
        some_metas, some_keys = metas[low:high].copy(), keys[low:high].copy()
        for i in range(high - low):
            metas[low + i], keys[low + i] = some_metas[order[i] - low], some_keys[order[i] - low]
        return
    for i in range(low + 1, high):
        meta, key, at = metas[i], keys[i], i
        while at > low and metas[at - 1] >> 8 > meta >> 8:
            metas[at], keys[at] = metas[at - 1], keys[at - 1]
            at -= 1
        metas[at], keys[at] = meta, key


@kernel
def are_given_twice(offsets, metas, last, seen, clock):
    """Whether a row has entries of an attribute among its last ones, as many as `last` says, and before; and the clock,
    which tells rows apart in `seen`.
    """
    for i in range(len(offsets) - 1):
        clock += 1
        middle = offsets[i + 1] - last[i]
        for j in range(offsets[i], middle):
            seen[metas[j] >> 8] = clock
        for j in range(middle, offsets[i + 1]):
            if seen[metas[j] >> 8] == clock:
                return True, clock
    return False, clock


@kernel
def fill(
    nodes, starts, columns, names, strings, known, first, stop, part_rows, part_metas, part_keys, part_offsets,
    places, pairs, repeats, cursor, e, texts, text_end, odd,
):  # fmt: skip
    """Writes the entries of some rows where `cursor` says, and their strings behind `texts`. Marks columns that are
    odd: what is written is of no use then. Returns the ends of the text table.

    Rows are filled some at a time, so that entries of one row that come from many columns are in the cache together.
    """
    rows, metas, keys = stop - first, e.meta, e.key
    height = max(np.int64(64), rows * max(_CACHED, 4 * len(columns)) // (len(metas) + 1) // 64 * 64)
    part_at = part_offsets.copy()
    text_numbers, text_low, text_high, text = e.text_number, e.text_low, e.text_high, e.text
    strings_at, known_at = address_of(strings), address_of(known)
    for s in range(len(starts) - 1):
        start = starts[s]
        low, high = max(first, start), min(stop, starts[s + 1])
        for upper in range(low, high, height):
            lower = min(high, upper + height)
            behind = 0
            while behind < len(columns):
                c = behind
                behind += 1
                mode, special = columns[c, COLUMN_MODE], columns[c, COLUMN_SPECIAL]
                meta, n = columns[c, COLUMN_META], columns[c, COLUMN_NODE]
                if mode == PART:
                    j = part_at[n]
                    while j < part_offsets[n + 1] and part_rows[j] < lower - first:
                        at = cursor[part_rows[j]]
                        metas[at], keys[at] = part_metas[j], part_keys[j]
                        cursor[part_rows[j]] = at + 1
                        j += 1
                    part_at[n] = j
                    continue
                node = node_at(nodes, s, n)
                kind = int64_at(node, KIND)
                if kind == NOTHING:
                    continue
                if mode == SCALAR:
                    if kind == INT64 and is_whole(node):
                        behind = fill_whole(nodes, s, columns, c, start, first, upper, lower, cursor, metas, keys)
                        continue
                    if kind < STRING:
                        if not fill_numbers(node, meta, start, first, upper, lower, cursor, metas, keys):
                            odd[c] = 1
                        continue
                    is_text = STRING <= kind <= STRING_VIEW or kind == DICTIONARY
                    if is_text and special & (TEXT | PATTERN) == 0 and int64_at(node, SURE) != 0:
                        if not fill_strings(
                            node, strings_at, known_at, meta, start, first, upper, lower, cursor, metas, keys
                        ):
                            odd[c] = 1
                        continue
                table, place = address_of(names) + 8 * NAMES * columns[c, COLUMN_NAMES], np.int64(0)
                if mode == PAIRS:
                    place = places[s, c]
                for row in range(upper, lower, 64):
                    word = valid_rows(node, row - start, min(np.int64(64), lower - row))
                    while word != NO_BITS:
                        i = row + np.int64(trailing_zeros(word))
                        word &= word - _ONE
                        values, begin, end = values_of(mode, node, i - start)
                        at = cursor[i - first]
                        for j in range(begin, end):
                            if mode == PAIRS:
                                number = pairs[place + j]
                                if number < 0:
                                    continue
                                meta = int64_at(int64_at(table, METAS_AT), number)
                                special = meta & _SPECIAL
                                meta -= special
                            elif not is_there(values, j):
                                continue
                            code, key = value_at(strings_at, known_at, values, j)
                            if code == UNSURE:
                                odd[c] = 1
                            elif code == codes.STRING and special & (TEXT | PATTERN) != 0:
                                source, t = resolved(values, j)
                                data, behind_data = text_at(source, t)
                                text_numbers[texts], text_low[texts] = key, text_end
                                for k in range(behind_data - data):
                                    text[text_end] = byte_at(data, k)
                                    text_end += 1
                                text_high[texts] = text_end
                                code, key = np.int64(codes.TEXT), texts
                                texts += 1
                            metas[at], keys[at] = meta + code, key
                            at += 1
                        if mode == ITEMS and at == cursor[i - first]:
                            metas[at], keys[at] = meta + codes.NO_VALUE, 0
                            at += 1
                        if mode == PAIRS and repeats[i - first]:
                            sort_by_attribute(metas, keys, cursor[i - first], at)
                        cursor[i - first] = at
    return texts, text_end
