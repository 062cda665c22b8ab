"""An event in coordinates (rows.py), as indexes that change see it.

    attribute a    kind[a]    NUMBER … STRING: it has one value, at[a] and, on the short line, short[a]; ABSENT;
                              VARIOUS: several values, a range, or none
                   first[a] … stop[a]     its entries, where it is present
    entry j        entry_kind, low, high: a value, or those that a range allows, of one kind; short_low, short_high
                   source[j]: the value's entry in the event buffer, or -1 - the run of the range table; a list without
                   values has no entries
    present        attributes of the event, `count[0]` of them

Invariant: attributes that the event seen last lacks are ABSENT.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.experimental import structref

from eligo.compile import codes
from eligo.compile.events import ordered_float
from eligo.index.dynamic.rows import (
    BOOLEAN,
    MAX,
    MIN,
    NUMBER,
    SHORT_MAX,
    SHORT_MIN,
    STRING,
    TIME,
    bits_of,
    high_coordinate,
    low_coordinate,
    short_place,
)
from eligo.jit import define_handle, float_of, inline, kernel

ABSENT, VARIOUS = 5, 6
FAILS, HOLDS = 0, 1


@structref.register
class KeySightType(types.StructRef):
    """An event in coordinates, as one argument of kernels."""


class KeySight(structref.StructRefProxy):
    pass


_FIELDS = (
    "kind", "at", "short", "first", "stop", "entry_kind", "low", "high", "short_low", "short_high", "source", "present",
    "count",
)  # fmt: skip
define_handle(KeySight, KeySightType, _FIELDS)


@kernel
def make_key_sight(  # type: ignore[no-untyped-def]
    kind, at, short, first, stop, entry_kind, low, high, short_low, short_high, source, present, count
):
    return KeySight(kind, at, short, first, stop, entry_kind, low, high, short_low, short_high, source, present, count)


def no_key_sight(attributes: int, entries: int) -> object:
    """The sight of an event without attributes; room for so many entries, of each of which a range takes four."""
    return make_key_sight(
        np.full(attributes, ABSENT, np.uint8),
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int32),
        np.zeros(attributes, np.int32),
        np.zeros(4 * entries, np.uint8),
        np.zeros(4 * entries, np.int64),
        np.zeros(4 * entries, np.int64),
        np.zeros(4 * entries, np.int64),
        np.zeros(4 * entries, np.int64),
        np.zeros(4 * entries, np.int64),
        np.zeros(attributes, np.int32),
        np.zeros(1, np.int64),
    )


@inline
def coordinate(kind, key, e):  # type: ignore[no-untyped-def]
    """Kind of value and coordinate of an event's entry that has one value."""
    if kind == codes.INTEGER:
        return NUMBER, ordered_float(bits_of(np.float64(key)))
    if kind == codes.RAW_FLOAT:
        return NUMBER, ordered_float(bits_of(float_of(key) + 0.0))
    if kind == codes.BOOLEAN:
        return BOOLEAN, key
    if kind == codes.TIME:
        return TIME, key
    return STRING, e.text_number[key] if kind == codes.TEXT else key


@inline
def see_keys(e, event, s):  # type: ignore[no-untyped-def]
    """Turn the sight of the event before into that of an event of the buffer; how many attributes it has."""
    kinds, at, first, stop, present = s.kind, s.at, s.first, s.stop, s.present
    entry_kind, low, high, source = s.entry_kind, s.low, s.high, s.source
    short, lowest, highest = s.short, s.short_low, s.short_high
    offsets, meta, keys, range_offsets, runs = e.offsets, e.meta, e.key, e.range_offsets, e.range_runs
    for i in range(s.count[0]):
        kinds[present[i]] = ABSENT
    known = len(kinds)
    n = k = 0
    j, end = offsets[event], offsets[event + 1]
    while j < end:
        a = meta[j] >> 8
        begin, values = n, 0
        while j < end and meta[j] >> 8 == a:
            kind, key = meta[j] & 255, keys[j]
            if kind == codes.RANGE:
                for r in range(range_offsets[key], range_offsets[key + 1]):
                    # A run may go over several kinds, and integers far out may round to beyond it.
                    last = (runs[r, 3] >> 2) - (1 if runs[r, 3] & 3 == 0 else 0)
                    for v in range(runs[r, 0] >> 2, last + 1):
                        entry_kind[n], source[n] = v, -1 - r
                        low[n] = low_coordinate(runs[r, 0], runs[r, 1], runs[r, 2]) if v == runs[r, 0] >> 2 else MIN
                        high[n] = high_coordinate(runs[r, 3], runs[r, 4], runs[r, 5]) if v == last else MAX
                        if v == NUMBER:
                            if runs[r, 0] == codes.NUMBER_CUT:
                                low[n] = min(low[n], ordered_float(bits_of(np.float64(runs[r, 1]))))
                            if runs[r, 3] == codes.NUMBER_CUT and runs[r, 4] > MIN:
                                high[n] = max(high[n], ordered_float(bits_of(np.float64(runs[r, 4] - 1))))
                        elif v == STRING:
                            low[n], high[n] = MIN, MAX  # a part of the alphabet has no coordinates
                        lowest[n] = SHORT_MIN if low[n] == MIN or v == TIME else short_place(v, low[n])
                        highest[n] = SHORT_MAX if high[n] == MAX or v == TIME else short_place(v, high[n])
                        n += 1
                values += 2
            elif kind != codes.NO_VALUE:
                entry_kind[n], low[n] = coordinate(kind, key, e)
                high[n], source[n] = low[n], j
                lowest[n] = highest[n] = short_place(entry_kind[n], low[n])
                n += 1
                values += 1
            j += 1
        if a >= known:
            n = begin  # no rule speaks of it
            continue
        first[a], stop[a] = begin, n
        kinds[a] = entry_kind[begin] if values == 1 else VARIOUS
        if values == 1:
            at[a], short[a] = low[begin], lowest[begin]
        present[k] = a
        k += 1
    s.count[0] = k
    return k
