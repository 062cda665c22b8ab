"""Variants as Spark and Parquet write them, read row after row.

    metadata   [header][count][offset 0 … offset count][the names of all fields, one after another]
    value      a byte whose lower two bits say what it is, the upper six more about it:
               0 plain          its type, then the value, little-endian
               1 short string   its length, then its bytes
               2 object         sizes; [count][number of each field's name][offset 0 … offset count][values]
               3 array          sizes; [count][offset 0 … offset count][values]

Every place is checked before it is read: of a value that is damaged nothing outside of it is looked at.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eligo.jit import inline, kernel

# What a value is. First the families of which each has a column, then what becomes one of them, then what does not.
NOTHING: Final = 0
INTEGER: Final = 1
REAL: Final = 2
BOOLEAN: Final = 3
TIME: Final = 4
TEXT: Final = 5
FLOAT: Final = 6
DECIMAL: Final = 7
LONG_DECIMAL: Final = 8
ARRAY: Final = 9
OBJECT: Final = 10
OTHER: Final = 11
DAMAGED: Final = 12


@inline
def number_at(data, at, size, end):
    """An unsigned number of `size` bytes; -1 where it would reach past the end."""
    if at < 0 or at + size > end:
        return np.int64(-1)
    found = np.int64(0)
    for i in range(size):
        found |= np.int64(data[at + i]) << np.int64(8 * i)
    return found


@inline
def signed_at(data, at, size):
    """A signed number of `size` bytes, all of which are there."""
    found = np.int64(0)
    for i in range(size):
        found |= np.int64(data[at + i]) << np.int64(8 * i)
    unused = np.int64(64 - 8 * size)
    return (found << unused) >> unused


@kernel
def locate(values, value_offsets, metas, meta_offsets, valid, names, name_offsets):
    """Of each row, where the value at the end of the path begins, and its row's end: -1 if absent, -2 if damaged."""
    count, depth = len(valid), len(name_offsets) - 1
    at, ends = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    numbers = np.full(depth, -1, np.int64)  # of the path's names in the metadata of the row before
    before, before_end = np.int64(0), np.int64(-1)
    for row in range(count):
        ends[row] = value_offsets[row + 1]
        if not valid[row]:
            continue
        first, last = meta_offsets[row], meta_offsets[row + 1]
        same = last - first == before_end - before
        i = np.int64(0)
        while same and i < last - first:
            same = metas[first + i] == metas[before + i]
            i += 1
        if not same:
            for step in range(depth):
                numbers[step] = name_number(metas, first, last, names, name_offsets[step], name_offsets[step + 1])
            before, before_end = first, last
        place = value_offsets[row]
        for step in range(depth):
            if place < 0:
                break
            if numbers[step] < 0:
                place = numbers[step]
            else:
                place = member(values, place, ends[row], numbers[step])
        at[row] = place
    return at, ends


@kernel
def name_number(metas, first, last, names, name_first, name_last):
    """The number of a name in the metadata; -1 if it is not there, -2 if the metadata is damaged."""
    header = number_at(metas, first, 1, last)
    if header < 0 or header & 15 != 1:
        return np.int64(-2)
    size = (header >> 6) + 1
    count = number_at(metas, first + 1, size, last)
    offsets = first + 1 + size
    begin = offsets + (count + 1) * size
    if count < 0 or begin > last:
        return np.int64(-2)
    length = name_last - name_first
    for number in range(count):
        start = number_at(metas, offsets + number * size, size, last)
        stop = number_at(metas, offsets + (number + 1) * size, size, last)
        if start < 0 or stop < start or begin + stop > last:
            return np.int64(-2)
        if stop - start == length:
            i = np.int64(0)
            while i < length and metas[begin + start + i] == names[name_first + i]:
                i += 1
            if i == length:
                return np.int64(number)
    return np.int64(-1)


@kernel
def member(values, at, end, name):
    """Where the field of that name of an object begins; -1 if there is none, or no object; -2 if it is damaged."""
    header = number_at(values, at, 1, end)
    if header < 0:
        return np.int64(-2)
    if header & 3 != 2:
        return np.int64(-1)
    offset_size, name_size = ((header >> 2) & 3) + 1, ((header >> 4) & 3) + 1
    count_size = np.int64(4) if (header >> 6) & 1 else np.int64(1)
    count = number_at(values, at + 1, count_size, end)
    fields = at + 1 + count_size
    offsets = fields + count * name_size
    begin = offsets + (count + 1) * offset_size
    if count < 0 or begin > end:
        return np.int64(-2)
    for i in range(count):
        if number_at(values, fields + i * name_size, name_size, end) == name:
            offset = number_at(values, offsets + i * offset_size, offset_size, end)
            return begin + offset if offset >= 0 and begin + offset < end else np.int64(-2)
    return np.int64(-1)


@kernel
def decode(values, at, end):
    """What is at each place: its kind, a number (or where its bytes begin), and a scale or length."""
    count = len(at)
    kinds, numbers, extras = np.zeros(count, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64)
    for row in range(count):
        place, stop = at[row], end[row]
        if place < 0:
            kinds[row] = NOTHING if place == -1 else DAMAGED
            continue
        header = number_at(values, place, 1, stop)
        place += 1
        kind, number, extra = np.int64(DAMAGED), np.int64(0), np.int64(0)
        basic, more = header & 3, header >> 2
        if header < 0:
            pass
        elif basic == 1:
            if place + more <= stop:
                kind, number, extra = np.int64(TEXT), place, more
        elif basic == 2:
            kind = np.int64(OBJECT)
        elif basic == 3:
            kind = np.int64(ARRAY)
        elif more == 0:
            kind = np.int64(NOTHING)
        elif more <= 2:
            kind, number = np.int64(BOOLEAN), np.int64(2) - more
        elif more <= 6:  # integers of 1, 2, 4, 8 bytes
            size = np.int64(1) << (more - 3)
            if place + size <= stop:
                kind, number = np.int64(INTEGER), signed_at(values, place, size)
        elif more == 7:
            if place + 8 <= stop:
                kind, number = np.int64(REAL), signed_at(values, place, 8)
        elif more <= 9:  # decimals of 4, 8 bytes
            size = np.int64(4) << (more - 8)
            if place + 1 + size <= stop:
                kind, number, extra = np.int64(DECIMAL), signed_at(values, place + 1, size), np.int64(values[place])
        elif more == 10:
            if place + 17 <= stop:
                kind, number, extra = np.int64(LONG_DECIMAL), place + 1, np.int64(values[place])
        elif more == 11:
            if place + 4 <= stop:
                kind, number = np.int64(TIME), signed_at(values, place, 4) * np.int64(86_400_000_000)
        elif more <= 13:  # with and without a time zone
            if place + 8 <= stop:
                kind, number = np.int64(TIME), signed_at(values, place, 8)
        elif more == 14:
            if place + 4 <= stop:
                kind, number = np.int64(FLOAT), signed_at(values, place, 4)
        elif more == 16:
            extra = number_at(values, place, 4, stop)
            if extra >= 0 and place + 4 + extra <= stop:
                kind, number = np.int64(TEXT), place + 4
        else:
            kind = np.int64(OTHER)
        kinds[row], numbers[row], extras[row] = kind, number, extra
    return kinds, numbers, extras


@kernel
def elements(values, at, end, kinds):
    """The elements of arrays, and what is no array as the one element: rows, starts (-2: damaged), ends."""
    total = 0
    for row in range(len(at)):
        if kinds[row] == ARRAY:
            size = np.int64(4) if (values[at[row]] >> 4) & 1 else np.int64(1)
            total += max(np.int64(1), min(number_at(values, at[row] + 1, size, end[row]), end[row] - at[row]))
        elif kinds[row] != NOTHING:
            total += 1
    rows, starts, ends = np.zeros(total, np.int64), np.zeros(total, np.int64), np.zeros(total, np.int64)
    used = 0
    for row in range(len(at)):
        if kinds[row] == NOTHING:
            continue
        if kinds[row] != ARRAY:
            rows[used], starts[used], ends[used] = row, at[row], end[row]
            used += 1
            continue
        header = np.int64(values[at[row]])
        size = ((header >> 2) & 3) + 1
        count_size = np.int64(4) if (header >> 4) & 1 else np.int64(1)
        count = number_at(values, at[row] + 1, count_size, end[row])
        offsets = at[row] + 1 + count_size
        begin = offsets + (count + 1) * size
        if count < 0 or begin > end[row]:
            rows[used], starts[used] = row, -2
            used += 1
            continue
        for i in range(count):
            offset = number_at(values, offsets + i * size, size, end[row])
            rows[used], ends[used] = row, end[row]
            starts[used] = begin + offset if begin + offset < end[row] else -2
            used += 1
    return rows[:used], starts[:used], ends[:used]


@kernel
def gather(values, mine, starts, lengths):
    """The bytes of some rows' strings, one after another, and where each begins."""
    offsets = np.zeros(len(mine) + 1, np.int64)
    for row in range(len(mine)):
        offsets[row + 1] = offsets[row] + (lengths[row] if mine[row] else 0)
    data = np.empty(offsets[-1], np.uint8)
    for row in range(len(mine)):
        if mine[row]:
            for i in range(lengths[row]):
                data[offsets[row] + i] = values[starts[row] + i]
    return offsets, data
