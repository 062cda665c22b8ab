"""An event in coordinates (packed_predicate.py), as all indexes see it.

    attribute a    kind[a]    NUMBER … STRING: one value, at[a]; KIND_ABSENT; KIND_VARIOUS: several, a range, or none
                   prefix[a]  of its one string, if that came with its bytes
                   place[a]   of its one value on the short line; NOWHERE; SEVERAL
                   first[a] … stop[a]     its entries, where it is present
    entry j        entry_kind, low, high: a value, or those that a range allows, of one kind; low_place, high_place
                   source[j]: the value's entry in the event buffer, or -1 - the run of the range table; a list without
                   values has no entries
    present        attributes of the event, `count[0]` of them; `count[1]` of these are KIND_VARIOUS

Invariant: attributes that the event viewed last lacks are KIND_ABSENT. So one view does for any number of indexes, each
of which says how many attributes it knows.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.events import ordered_float
from eligo.index.rows.line import (
    BITS,
    BOOLEAN,
    MAX,
    MIN,
    NOWHERE,
    NUMBER,
    SEVERAL,
    STRING,
    TIME,
    TOP,
    ZERO,
    place_of,
    prefix_of,
)
from eligo.index.rows.packed_predicate import TINY_ATTRIBUTES, high_coordinate, low_coordinate
from eligo.jit import bits_of, float_of, handle, inline

KIND_ABSENT, KIND_VARIOUS = 5, 6
FAILS, HOLDS = 0, 1


_FIELDS = (
    "kind", "at", "prefix", "place", "first", "stop", "entry_kind", "low", "high", "low_place", "high_place", "source",
    "present", "count",
)  # fmt: skip
# An event in coordinates, as one argument of kernels.
make_event_view = handle("EventView", _FIELDS)


def no_event_view(attributes: int, entries: int) -> object:
    """Returns the view of an event without attributes, with room for so many entries, of which a range takes four."""
    return make_event_view(
        np.full(attributes, KIND_ABSENT, np.uint8),
        np.zeros(attributes, np.int64),
        np.zeros(attributes, np.int64),
        np.full(max(attributes, TINY_ATTRIBUTES), NOWHERE, np.uint32),  # whatever a word taken for a check could name
        np.zeros(attributes, np.int32),
        np.zeros(attributes, np.int32),
        np.zeros(4 * entries, np.uint8),
        np.zeros(4 * entries, np.int64),
        np.zeros(4 * entries, np.int64),
        np.zeros(4 * entries, np.int64),
        np.zeros(4 * entries, np.int64),
        np.zeros(4 * entries, np.int64),
        np.zeros(attributes, np.int32),
        np.zeros(2, np.int64),
    )


@inline
def coordinate(kind, key, e):
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
def range_places(kind, low, high):
    """First and last place of the values low … high."""
    base = np.int64(kind) << BITS
    first = base | 1 if low == MIN or kind == TIME else place_of(kind, low)
    if high == MAX or kind == TIME:
        return first, base | (TOP - 1)
    # Just below 0 is the slot of -0.0, where no value is.
    return first, np.int64(ZERO - 1) if kind == NUMBER and high == -1 else place_of(kind, high)


@inline
def view_event(e, event, s, known):
    """Turns the view of the event before into that of an event of the buffer, as far as its attributes have numbers
    below `known`. Returns how many it has.
    """
    kinds, at, first, stop, present = s.kind, s.at, s.first, s.stop, s.present
    entry_kind, low, high, source = s.entry_kind, s.low, s.high, s.source
    place, lowest, highest = s.place, s.low_place, s.high_place
    offsets, meta, keys, range_offsets, runs = e.offsets, e.meta, e.key, e.range_offsets, e.range_runs
    for i in range(s.count[0]):
        kinds[present[i]], place[present[i]] = KIND_ABSENT, NOWHERE
    n = k = several = 0
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
                        lowest[n], highest[n] = range_places(v, low[n], high[n])
                        n += 1
                values += 2
            elif kind != codes.NO_VALUE:
                entry_kind[n], low[n] = coordinate(kind, key, e)
                high[n], source[n] = low[n], j
                lowest[n] = highest[n] = place_of(entry_kind[n], low[n])
                n += 1
                values += 1
            j += 1
        if a >= known:
            n = begin  # no rule speaks of it
            continue
        first[a], stop[a] = begin, n
        if values == 1:
            kinds[a], at[a], place[a] = entry_kind[begin], low[begin], lowest[begin]
            if meta[j - 1] & 255 == codes.TEXT:
                row = keys[j - 1]
                s.prefix[a] = prefix_of(e.text, e.text_low[row], e.text_high[row])
        else:
            kinds[a], place[a] = KIND_VARIOUS, SEVERAL
            several += 1
        present[k] = a
        k += 1
    s.count[0] = k
    s.count[1] = several
    return k
