"""The kernels that cut values into spaces; `spaces.py` says what a space is and how the arrays are laid out."""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import mixed
from eligo.jit import inline, kernel


def sorting(goes_first: Any) -> Any:
    """Returns what sorts numbers and keeps the order of those that are alike; goes_first(keys, a, b): whether a may
    stand before b. It is a merge sort, which compares least.
    """

    @inline
    def sort(source, keys):
        n = len(source)
        target = np.empty(n, np.int64)
        width = 1
        while width < n:
            for start in range(0, n, 2 * width):
                middle = min(start + width, n)
                stop = min(start + 2 * width, n)
                i, j = start, middle
                for k in range(start, stop):
                    if j >= stop or (i < middle and goes_first(keys, source[i], source[j])):
                        target[k] = source[i]
                        i += 1
                    else:
                        target[k] = source[j]
                        j += 1
            source, target = target, source
            width *= 2
        return source

    return sort


@inline
def string_goes_first(keys, one, other):
    data, begin, end = keys
    a, a_end = begin[one], end[one]
    b, b_end = begin[other], end[other]
    while a < a_end and b < b_end and data[a] == data[b]:
        a += 1
        b += 1
    return a == a_end or (b < b_end and data[a] < data[b])


@inline
def cut_goes_first(keys, a, b):
    attribute, kind, rank, key2 = keys
    if attribute[a] != attribute[b]:
        return attribute[a] < attribute[b]
    if kind[a] != kind[b]:
        return kind[a] < kind[b]
    if rank[a] != rank[b]:
        return rank[a] < rank[b]
    return key2[a] <= key2[b]


sort_strings, sort_cuts = sorting(string_goes_first), sorting(cut_goes_first)


@kernel
def sorted_strings(data, begin, end, numbers):
    """The string numbers in the order of their strings."""
    return sort_strings(numbers.astype(np.int64), (data, begin, end))


@kernel
def sorted_cuts(attribute, kind, rank, key2):
    """The cuts that have a key, by attribute, kind of value, and place."""
    n = 0
    source = np.empty(len(kind), np.int64)
    for i in range(len(kind)):
        if kind[i] & 3:
            source[n] = i
            n += 1
    return sort_cuts(source[:n], (attribute, kind, rank, key2))


@kernel
def cut_spaces(attribute, kind, key, key2, rank, attributes):
    """Number the spaces between the different cuts; and for every cut given, the first space above it."""
    order = sorted_cuts(attribute, kind, rank, key2)
    n = len(order)
    number_offsets, time_offsets = np.zeros(attributes + 1, np.int32), np.zeros(attributes + 1, np.int32)
    string_offsets, number_ints = np.zeros(attributes + 1, np.int32), np.zeros(attributes, np.int32)
    split = np.zeros(attributes, np.uint8)
    number_int, number_float = np.empty(n, np.int64), np.empty(n, np.int64)
    time_cuts, string_cuts = np.empty(n, np.int64), np.empty(n, np.int64)
    position = np.zeros(len(kind), np.int32)  # how many different cuts of its kind lie at or below a cut
    numbers = times = strings = 0
    for i in range(n):
        c = order[i]
        a = attribute[c]
        new = i == 0
        if not new:
            d = order[i - 1]
            new = attribute[d] != a or kind[d] != kind[c] or rank[d] != rank[c] or key2[d] != key2[c]
        if kind[c] == codes.BOOLEAN_CUT:
            split[a] |= np.uint8(key[c])
            position[c] = (split[a] & 1) + (split[a] >> 1)
        elif kind[c] == codes.TIME_CUT:
            if new:
                time_cuts[times] = key[c]
                times += 1
                time_offsets[a + 1] += 1
            position[c] = time_offsets[a + 1]
        elif kind[c] == codes.STRING_CUT:
            if new:
                string_cuts[strings] = key[c]
                strings += 1
                string_offsets[a + 1] += 1
            position[c] = string_offsets[a + 1]
        else:
            if new:
                number_int[numbers], number_float[numbers] = key[c], key2[c]
                numbers += 1
                number_offsets[a + 1] += 1
                number_ints[a] += kind[c] == codes.NUMBER_CUT
            position[c] = number_offsets[a + 1]
    boolean_base, time_base = np.empty(attributes, np.int32), np.empty(attributes, np.int32)
    string_base, space_count = np.empty(attributes, np.int32), np.empty(attributes, np.int32)
    for a in range(attributes):  # one space more than cuts, for every kind
        boolean_base[a] = number_offsets[a + 1] + 1
        time_base[a] = boolean_base[a] + 1 + (split[a] & 1) + (split[a] >> 1)
        string_base[a] = time_base[a] + time_offsets[a + 1] + 1
        space_count[a] = string_base[a] + string_offsets[a + 1] + 1
    for a in range(attributes):
        number_offsets[a + 1] += number_offsets[a]
        time_offsets[a + 1] += time_offsets[a]
        string_offsets[a + 1] += string_offsets[a]
    place = np.empty(len(kind), np.int32)
    for c in range(len(kind)):
        a = attribute[c]
        base = 0
        if kind[c] >= codes.END_CUT:
            base = space_count[a]
        elif kind[c] >= codes.START_STRING:
            base = string_base[a]
        elif kind[c] >= codes.START_TIME:
            base = time_base[a]
        elif kind[c] >= codes.START_BOOLEAN:
            base = boolean_base[a]
        place[c] = base + position[c]
    return (
        number_offsets, number_ints, number_int[:numbers].copy(), number_float[:numbers].copy(), split, time_offsets,
        time_cuts[:times].copy(), string_offsets, string_cuts[:strings].copy(), boolean_base, time_base, string_base,
        space_count, place,
    )  # fmt: skip


@kernel
def ordered_strings(attribute, run_offsets, low, high, offsets, cuts, base, empty):
    """Whether some predicate holds in one gap between the named strings and not in another, for every attribute.

    A string space is a gap unless it is one string alone: between the cuts "before s" and "after s", or below the cut
    after the empty string.
    """
    attributes = len(base)
    ordered = np.zeros(attributes, np.uint8)
    if len(cuts) == 0:
        return ordered
    gaps = np.zeros(len(cuts) + 2 * attributes + 1, np.int64)  # of attribute a: gaps among its first j string spaces
    for a in range(attributes):
        first, count = offsets[a], offsets[a + 1] - offsets[a]
        start = first + 2 * a
        for j in range(count + 1):
            point = j == 0 and count > 0 and empty >= 0 and cuts[first] == 2 * empty + 1
            if 0 < j < count:
                point = cuts[first + j - 1] & 1 == 0 and cuts[first + j] == cuts[first + j - 1] + 1
            gaps[start + j + 1] = gaps[start + j] + (0 if point else 1)
    for p in range(len(attribute)):
        a = attribute[p]
        start = offsets[a] + 2 * a
        covered = 0
        for r in range(run_offsets[p], run_offsets[p + 1]):
            covered += gaps[start + max(high[r] + 1 - base[a], 0)] - gaps[start + max(low[r] - base[a], 0)]
        if 0 < covered < gaps[start + offsets[a + 1] - offsets[a] + 1]:
            ordered[a] = 1
    return ordered


@kernel
def string_slots(offsets, cuts, base):
    """The hash table from (attribute, string number) to the string's space."""
    size = 16
    while size < 2 * len(cuts):
        size *= 2
    keys = np.full(size, -1, np.int64)
    spaces = np.zeros(size, np.int32)
    mask = np.uint64(size - 1)
    for attribute in range(len(offsets) - 1):
        for i in range(offsets[attribute], offsets[attribute + 1]):
            key = np.int64(attribute) << 32 | (cuts[i] >> 1)
            at = mixed(np.uint64(0), key) & mask
            while keys[at] != -1 and keys[at] != key:
                at = (at + np.uint64(1)) & mask
            if keys[at] == -1:
                keys[at] = key
                # The cut "before s" lies below s, the cut "after s" does not.
                spaces[at] = base[attribute] + (i - offsets[attribute]) + (1 - (cuts[i] & 1))
    return keys, spaces
