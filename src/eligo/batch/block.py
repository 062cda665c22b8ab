"""A block of events, turned around: for each attribute, which events have a value where.

    plane p       a bit for each event of the block; plane 0 has none, plane 1 all events (place[starts[-1]])
    attribute a   place[starts[a] + s], for each of its spaces s and for the one behind the last:

    each event has one value, or none
        place[starts[a] + s]     the plane of the events with a value below space s. Those with a value in the spaces
                                 from s to t are the XOR of the planes of s and t + 1
    some event has several values, a range, or a list without values
        ~place[starts[a] + s]    the plane of the events with a value at s. The spaces where no event's range begins or
                                 ends have one plane, and the events with a value from s to t are the OR of all theirs

    present[a]    the plane of the events that have the attribute, 0 for none
    entries       of the events, by attribute: order[entry_start[a] … entry_stop[a]], ascending by event

Invariant: what an attribute that no event of the block has says of itself is 0, everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.batch.words import EVENTS, WORDS, or_bits
from eligo.compile.compiled import I64, grown
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.jit import handle, inline

_FIELDS = (
    "starts", "named", "place", "planes", "plane_space", "plane_count", "present", "plane_start",
    "attributes", "counts", "last", "several", "entry_start", "entry_stop", "attribute", "event",
    "low", "high", "text", "order",
)  # fmt: skip

NOBODY, EVERYONE = 0, 1  # planes

# A block as one argument of kernels.
make_block = handle("BlockHandle", _FIELDS)


def slot_starts(conjunctions: Conjunctions) -> I64:
    """For each attribute the slot of its first space; a slot more than spaces for each, and the end behind the last."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(conjunctions.spaces.space_count.astype(np.int64) + 1)))


def new_block(conjunctions: Conjunctions, starts: I64) -> Any:
    """Room for a block of events, without any."""
    attributes = len(starts) - 1
    named = np.diff(conjunctions.predicates.attribute_offsets) > 0
    entries = 16 * EVENTS
    numbers = [np.zeros(attributes, np.int32) for _ in range(8)]
    present, plane_start, present_list, counts, last, several, entry_start, entry_stop = numbers
    last[:] = -1
    return make_block(
        starts,
        named.astype(np.uint8),
        np.zeros(int(starts[-1]) + 1, np.int32),
        np.zeros(1024 * WORDS, np.uint64),
        np.zeros(1024, np.int32),
        np.zeros(2, np.int64),
        present,
        plane_start,
        present_list,
        counts,
        last,
        several,
        entry_start,
        entry_stop,
        *(np.zeros(entries, np.int32) for _ in range(6)),
    )


@inline
def clear_block(b):
    """Forgets the events."""
    for i in range(b.plane_count[1]):
        a = b.attributes[i]
        for slot in range(b.starts[a], b.starts[a + 1]):
            b.place[slot] = 0
        b.present[a] = 0
        b.counts[a] = 0
        b.last[a] = -1
        b.several[a] = 0
        b.entry_start[a] = 0
        b.entry_stop[a] = 0
    b.plane_count[0] = 2
    b.plane_count[1] = 0


@inline
def fill_block(s, e, first, count, b):
    """Turns `count` events, from `first` on, into the planes of a block."""
    clear_block(b)
    for word in range(WORDS):
        left = count - 64 * word
        bits = np.uint64(0)
        if left >= 64:
            bits = ~bits
        elif left > 0:
            bits = (np.uint64(1) << np.uint64(left)) - np.uint64(1)
        b.planes[WORDS * EVERYONE + word] = bits
    b.place[b.starts[-1]] = EVERYONE
    entries = collect_entries(s, e, first, count, b)
    sort_entries(entries, b)
    for i in range(b.plane_count[1]):
        a = b.attributes[i]
        if b.several[a]:
            cover_planes(a, b)
        else:
            prefix_planes(a, b)


@inline
def collect_entries(s, e, first, count, b):
    """Locates the events and writes down their entries; how many."""
    n = 0
    attributes = 0
    counts, last, several, named = b.counts, b.last, b.several, b.named
    for i in range(count):
        many = locate(s, e, first + i)
        if n + many > len(b.event):
            b.attribute = grown(b.attribute, n + many)
            b.event = grown(b.event, n + many)
            b.low = grown(b.low, n + many)
            b.high = grown(b.high, n + many)
            b.text = grown(b.text, n + many)
            b.order = grown(b.order, n + many)
        for j in range(many):
            a = e.at_attribute[j]
            if not named[a]:
                continue
            b.attribute[n] = a
            b.event[n] = i
            b.low[n] = e.at_low[j]
            b.high[n] = e.at_high[j]
            b.text[n] = e.at_text[j]
            if counts[a] == 0:
                b.attributes[attributes] = a
                attributes += 1
            counts[a] += 1
            if last[a] == i or e.at_low[j] != e.at_high[j]:
                several[a] = 1
            last[a] = i
            n += 1
    b.plane_count[1] = attributes
    return n


@inline
def sort_entries(entries, b):
    """Sorts the entries by attribute."""
    end = 0
    for i in range(b.plane_count[1]):
        a = b.attributes[i]
        b.entry_start[a] = end
        b.entry_stop[a] = end
        end += b.counts[a]
    for j in range(entries):
        a = b.attribute[j]
        b.order[b.entry_stop[a]] = j
        b.entry_stop[a] += 1


@inline
def more_planes(many, b):
    """Returns the first of so many new planes without events."""
    first = b.plane_count[0]
    b.plane_count[0] = first + many
    if b.plane_count[0] > len(b.plane_space):
        b.plane_space = grown(b.plane_space, b.plane_count[0])
        b.planes = grown(b.planes, WORDS * len(b.plane_space))
    planes = b.planes
    for word in range(WORDS * first, WORDS * (first + many)):
        planes[word] = 0
    return first


@inline
def mark_event(planes, plane, event):
    planes[WORDS * plane + (event >> 6)] |= np.uint64(1) << np.uint64(event & 63)


@inline
def prefix_planes(a, b):
    """Makes the planes of an attribute of which each event has one value at most."""
    place, begin, end = b.place, b.starts[a], b.starts[a + 1]
    first, stop = b.entry_start[a], b.entry_stop[a]
    for i in range(first, stop):
        place[begin + b.low[b.order[i]] + 1] = 1
    many = 0
    for slot in range(begin, end):
        many += place[slot]
    base = more_planes(many, b) - 1
    rank = 0
    for slot in range(begin, end):
        if place[slot]:
            rank += 1
            b.plane_space[base + rank] = slot - 1 - begin
        place[slot] = base + rank if rank else 0
    planes = b.planes
    for i in range(first, stop):
        j = b.order[i]
        mark_event(planes, place[begin + b.low[j] + 1], b.event[j])
    address = planes.ctypes.data
    for plane in range(base + 2, base + many + 1):
        or_bits(address, plane - 1, address, plane)
    b.plane_start[a] = base + 1
    b.present[a] = base + many


@inline
def cover_planes(a, b):
    """Makes the planes of an attribute of which some event has several values, a range, or none in a list."""
    place, begin, spaces = b.place, b.starts[a], b.starts[a + 1] - b.starts[a] - 1
    first, stop = b.entry_start[a], b.entry_stop[a]
    for i in range(first, stop):
        j = b.order[i]
        if b.low[j] <= b.high[j]:
            place[begin + b.low[j]] = 1
            place[begin + b.high[j] + 1] = 1
    many = 1
    for space in range(1, spaces):
        many += place[begin + space]
    base = more_planes(many + 1, b)
    rank = 0
    b.plane_space[base] = 0
    for space in range(spaces):
        if space and place[begin + space]:
            rank += 1
            b.plane_space[base + rank] = space
        place[begin + space] = ~(base + rank)
    place[begin + spaces] = ~(base + rank)
    b.plane_space[base + many] = spaces
    planes = b.planes
    for i in range(first, stop):
        j = b.order[i]
        mark_event(planes, base + many, b.event[j])
        if b.low[j] <= b.high[j]:
            for plane in range(~place[begin + b.low[j]], ~place[begin + b.high[j]] + 1):
                mark_event(planes, plane, b.event[j])
    b.plane_start[a] = base
    b.present[a] = base + many
