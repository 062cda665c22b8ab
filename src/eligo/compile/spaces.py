"""Spaces: every attribute's values cut where some predicate changes its answer, and numbered.

For each attribute the cuts of all its predicates, sorted, divide the values into spaces 0, 1, 2, …; numbers first,
then Booleans, times and strings:

    attribute a    │ number spaces │ Boolean │ time spaces │ string spaces │
                   0               boolean_base[a]         string_base[a]  space_count[a]
                                             time_base[a]

    number cuts    number_offsets[a] … [a+1] of number_int / number_float: the least integer and the least float at or
                   above each cut; only the first number_ints[a] of them have an integer above
    Boolean cuts   boolean_split[a]: 1 for one between false and true, + 2 for one between true and objects
    time cuts      time_offsets[a] … of time_cuts
    string cuts    string_offsets[a] … of string_cuts: 2 * string number, + 1 where the cut lies after that string

Invariant: a value v of a kind falls in space base + (number of that kind's cuts at or below v), and every predicate
is a union of spaces. Strings that rules name are found by hash: slot_keys holds attribute << 32 | string number,
slot_spaces the space. A string that no rule names lies in some gap; where no predicate tells gaps apart
(`string_ordered` is 0) it is put in the last one, else its bytes are searched.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import I32, I64, U8, Arrays, Compiled, mixed, sorted_unique
from eligo.compile.strings import Strings
from eligo.jit import handle, inline, kernel


@dataclass(frozen=True)
class Spaces:
    """The arrays drawn above; `handle` is what kernels take."""

    number_offsets: I32
    number_ints: I32
    number_int: I64
    number_float: I64
    boolean_split: U8
    time_offsets: I32
    time_cuts: I64
    string_offsets: I32
    string_cuts: I64
    string_ordered: U8
    boolean_base: I32
    time_base: I32
    string_base: I32
    space_count: I32
    slot_keys: I64
    slot_spaces: I32

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def bases(self) -> I32:
        """Where the spaces of each attribute begin if all are numbered in a row, and how many there are."""
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(self.space_count))).astype(np.int32)

    def handle(self, strings: Strings) -> object:
        """The kernels' argument, with the bytes of the strings that the cuts name."""
        return make_space_handle(*self.arrays().values(), *strings.spans())


def build_spaces(compiled: Compiled, strings: Strings, attributes: int) -> tuple[Spaces, I32, I32]:
    """The spaces of all the predicates, and for every run its first and last space."""
    of_run = np.repeat(compiled.attribute, np.diff(compiled.run_offsets))
    attribute = np.concatenate((of_run, of_run))
    kind = np.concatenate((compiled.low_kind, compiled.high_kind))
    key = np.concatenate((compiled.low_key, compiled.high_key))
    key2 = np.concatenate((compiled.low_key2, compiled.high_key2))
    rank = _string_ranks(kind, key, strings)
    (
        number_offsets, number_ints, number_int, number_float, boolean_split, time_offsets, time_cuts, string_offsets,
        string_cuts, boolean_base, time_base, string_base, space_count, place,
    ) = cut_spaces(attribute, kind, key, key2, rank, attributes)  # fmt: skip
    low, high = place[: len(of_run)], place[len(of_run) :] - np.int32(1)
    slot_keys, slot_spaces = string_slots(string_offsets, string_cuts, string_base)
    ordered = ordered_strings(
        compiled.attribute,
        compiled.run_offsets,
        low,
        high,
        string_offsets,
        string_cuts,
        string_base,
        strings.number(""),
    )
    return (
        Spaces(
            number_offsets, number_ints, number_int, number_float, boolean_split, time_offsets, time_cuts,
            string_offsets, string_cuts, ordered, boolean_base, time_base, string_base, space_count, slot_keys,
            slot_spaces,
        ),
        low,
        high,
    )  # fmt: skip


def _string_ranks(kind: U8, key: I64, strings: Strings) -> I64:
    """For string cuts a key of the same order as the strings; for others their own key."""
    rows = kind == codes.STRING_CUT
    if not rows.any():
        return key
    used = sorted_unique(key[rows] >> 1)
    ranks = np.zeros(len(strings) + 1, np.int64)
    ranks[sorted_strings(*strings.spans(), used)] = np.arange(len(used))
    return np.where(rows, 2 * ranks[np.where(rows, key >> 1, 0)] + (key & 1), key)


# -- cutting values into spaces


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


# -- the space of a value

# The arrays of `Spaces` as one argument of kernels.
make_space_handle = handle("SpaceHandle", [*(field.name for field in fields(Spaces)), "data", "begin", "end"])


@inline
def number_cuts(s, attribute, whole, value):
    """How many number cuts lie at or below an integer (whole) or a float given by its ordered bits."""
    low = s.number_offsets[attribute]
    if whole:
        high = low + s.number_ints[attribute]
        cuts = s.number_int
    else:
        high = s.number_offsets[attribute + 1]
        cuts = s.number_float
    first = low
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - first


@inline
def boolean_cuts(s, attribute, value):
    """How many Boolean cuts lie at or below false (0), true (1) or an object (2)."""
    split = np.int32(s.boolean_split[attribute])
    return (split & np.int32(value > 0)) + (split >> 1 & np.int32(value > 1))


@inline
def time_cuts(s, attribute, value):
    """How many time cuts lie at or below a moment."""
    low = first = s.time_offsets[attribute]
    high = s.time_offsets[attribute + 1]
    while low < high:
        middle = (low + high) >> 1
        if s.time_cuts[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low - first


@inline
def string_cuts(s, attribute, e, row, above):
    """How many string cuts lie at or below the string in a row of the events' text table, or right above it."""
    low = first = s.string_offsets[attribute]
    high = s.string_offsets[attribute + 1]
    start, stop = e.text_low[row], e.text_high[row]
    while low < high:
        middle = (low + high) >> 1
        number = s.string_cuts[middle] >> 1
        a, a_end, b = s.begin[number], s.end[number], start
        while a < a_end and b < stop and s.data[a] == e.text[b]:
            a += 1
            b += 1
        if a == a_end and b == stop:
            below = (s.string_cuts[middle] & 1) <= above
        else:
            below = a == a_end or (b < stop and s.data[a] < e.text[b])
        if below:
            low = middle + 1
        else:
            high = middle
    return low - first


@inline
def named_string(s, attribute, number):
    """The space of a string by its number, or -1 where no cut of the attribute names it."""
    if number < 0:
        return np.int32(-1)
    mask = np.uint64(len(s.slot_keys) - 1)
    key = np.int64(attribute) << 32 | number
    at = mixed(np.uint64(0), key) & mask
    while s.slot_keys[at] != -1:
        if s.slot_keys[at] == key:
            return s.slot_spaces[at]
        at = (at + np.uint64(1)) & mask
    return np.int32(-1)


@inline
def space_of_string(s, attribute, number, e, row):
    """The space of a string; `row` is -1 where the event brought no bytes because no predicate needs them."""
    space = named_string(s, attribute, number)
    if space >= 0:
        return space
    if row < 0 or s.string_ordered[attribute] == 0:
        return s.space_count[attribute] - np.int32(1)
    return np.int32(s.string_base[attribute] + string_cuts(s, attribute, e, row, 0))


@inline
def low_space(s, attribute, kind, key, key2, e):
    """The space of the first value above a cut."""
    if kind == codes.NUMBER_CUT:
        return np.int32(min(number_cuts(s, attribute, True, key), number_cuts(s, attribute, False, key2)))
    if kind == codes.HIGH_NUMBER_CUT:
        return np.int32(number_cuts(s, attribute, False, key2))
    if kind == codes.START_BOOLEAN:
        return s.boolean_base[attribute]
    if kind == codes.BOOLEAN_CUT:
        return np.int32(s.boolean_base[attribute] + boolean_cuts(s, attribute, key))
    if kind == codes.START_TIME:
        return s.time_base[attribute]
    if kind == codes.TIME_CUT:
        return np.int32(s.time_base[attribute] + time_cuts(s, attribute, key))
    if kind == codes.START_STRING:
        return s.string_base[attribute]
    if kind == codes.STRING_CUT:
        return np.int32(s.string_base[attribute] + string_cuts(s, attribute, e, key >> 1, key & 1))
    return np.int32(0) if kind == codes.START_NUMBER else s.space_count[attribute]


@inline
def high_space(s, attribute, kind, key, key2, e):
    """The space of the last value below a cut."""
    space = low_space(s, attribute, kind, key, key2, e)
    if (kind & 3) == 0:
        return space - np.int32(1)
    if kind == codes.TIME_CUT:
        return np.int32(s.time_base[attribute] + time_cuts(s, attribute, key - 1))
    if kind == codes.BOOLEAN_CUT:
        return np.int32(s.boolean_base[attribute] + boolean_cuts(s, attribute, key - 1))
    if kind == codes.STRING_CUT:
        # The cut itself is one of the attribute's when the last cut at or below it is equal to it.
        last = s.string_offsets[attribute] + (space - s.string_base[attribute]) - 1
        if last >= s.string_offsets[attribute] and same_string_cut(s, s.string_cuts[last], e, key):
            return space - np.int32(1)
        return space
    last = s.number_offsets[attribute] + space - 1
    if last >= s.number_offsets[attribute] and s.number_float[last] == key2:
        has_int = last < s.number_offsets[attribute] + s.number_ints[attribute]
        if (kind == codes.NUMBER_CUT and has_int and s.number_int[last] == key) or (
            kind == codes.HIGH_NUMBER_CUT and not has_int
        ):
            return space - np.int32(1)
    return space


@inline
def same_string_cut(s, cut, e, key):
    if (cut & 1) != (key & 1):
        return False
    a, a_end = s.begin[cut >> 1], s.end[cut >> 1]
    b, b_end = e.text_low[key >> 1], e.text_high[key >> 1]
    if a_end - a != b_end - b:
        return False
    i = 0
    while i < a_end - a and s.data[a + i] == e.text[b + i]:
        i += 1
    return i == a_end - a
