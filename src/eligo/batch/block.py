"""Events turned around: for each attribute, which events have a value where.

Events are *located*, once, by one thread or some by each of several, and *gathered*: all values that rules ask about
are listed by event and by attribute. From these a *block* of up to EVENTS events is filled, with all of them, or with
those that have a value of one attribute, ordered by it. Threads that search together have the gathered events in
common, and each a block of its own.

    plane p       a bit for each event of the block; plane 0 has none, plane 1 all events (place[starts[-1]])
    attribute a   place[starts[a] + s], for each of its spaces s and for the one behind the last:

    each event has one value, or none
        place[starts[a] + s]     the plane of the events with a value below space s. Those with a value in the spaces
                                 from s to t are the XOR of the planes of s and t + 1
    some event has several values, a range, or a list without values
        ~place[starts[a] + s]    the plane of the events with a value at s. The spaces where no event's range begins or
                                 ends have one plane, and the events with a value from s to t are the OR of all theirs

    present[a]    the plane of the events that have the attribute, 0 for none
    members[i]    which of the gathered events event i of the block is
    entries       of the events, by attribute: order[entry_start[a] … entry_stop[a]], ascending by event

Invariant: of an attribute that no event of the block has, all of these are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.batch.words import EVENTS, WORDS, or_bits
from eligo.compile.compiled import I64, U8, grown
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.jit import handle, inline, kernel

_FIELDS = (
    "starts", "place", "planes", "plane_space", "plane_count", "present", "plane_start",
    "attributes", "counts", "last", "several", "entry_start", "entry_stop", "attribute", "event",
    "low", "high", "text", "order", "members", "wanted",
)  # fmt: skip

NOBODY, EVERYONE = 0, 1  # planes
GATHERED = 1 << 14  # events at most, of which the numbers fit 16 bits

# A block, and the events that it is filled from, as one argument of kernels each.
make_block = handle("BlockHandle", _FIELDS)
make_located = handle("LocatedHandle", ("attribute", "low", "high", "text", "start"))
make_gathered = handle(
    "GatheredHandle",
    (
        "named", "attribute", "event", "low", "high", "text", "start", "attributes", "found", "counts", "last",
        "several", "entry_start", "order", "other", "buckets", "apart", "task_attribute", "task_first",
        "task_end",
    ),
)  # fmt: skip


def slot_starts(conjunctions: Conjunctions) -> I64:
    """Returns each attribute's first slot, and the end of all. An attribute has one slot more than it has spaces."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(conjunctions.spaces.space_count.astype(np.int64) + 1)))


def new_block(starts: I64) -> Any:
    """Returns room for a block of events, without any."""
    attributes = len(starts) - 1
    entries = 16 * EVENTS
    numbers = [np.zeros(attributes, np.int32) for _ in range(8)]
    present, plane_start, present_list, counts, last, several, entry_start, entry_stop = numbers
    last[:] = -1
    return make_block(
        starts,
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
        np.zeros(EVENTS, np.uint16),
        np.zeros(attributes, np.uint8),
    )


def new_located() -> Any:
    """Returns room for the located values of some events, without any."""
    return make_located(*(np.zeros(16 * EVENTS, np.int32) for _ in range(4)), np.zeros(EVENTS + 1, np.int64))


def new_gathered(named: U8) -> Any:
    """Returns room for events, without any, and for the tasks of their search (search.py). `named` has a byte for each
    attribute: 1 if rules ask about it.
    """
    attributes = len(named)
    return make_gathered(
        named,
        *(np.zeros(16 * EVENTS, np.int32) for _ in range(5)),
        np.zeros(EVENTS + 1, np.int64),
        np.zeros(attributes, np.int32),
        np.zeros(1, np.int64),
        np.zeros(attributes, np.int64),
        np.full(attributes, -1, np.int32),
        np.zeros(attributes, np.uint8),
        np.zeros(attributes, np.int64),
        np.zeros(16 * EVENTS, np.int32),
        np.zeros(EVENTS, np.int32),
        np.zeros(257, np.int64),
        np.zeros(attributes, np.uint8),
        *(np.zeros(64, np.int64) for _ in range(3)),
    )


@kernel
def locate_events(s, e, first, count, named, t):
    """Locates `count` events, from `first` on, and writes their values of attributes that are named to `t`."""
    t.start = grown(t.start, count + 1)
    n = 0
    for i in range(count):
        many = locate(s, e, first + i)
        if n + many > len(t.low):
            t.attribute = grown(t.attribute, n + many)
            t.low = grown(t.low, n + many)
            t.high = grown(t.high, n + many)
            t.text = grown(t.text, n + many)
        for j in range(many):
            if named[e.at_attribute[j]]:
                t.attribute[n], t.low[n], t.high[n] = e.at_attribute[j], e.at_low[j], e.at_high[j]
                t.text[n] = e.at_text[j]
                n += 1
        t.start[i + 1] = n


@kernel
def gather_events(t, begin, count, g):
    """Puts `count` located events behind the `begin` ones that were gathered. If `begin` is 0, forgets all before."""
    if begin == 0:
        for i in range(g.found[0]):
            a = g.attributes[i]
            g.counts[a] = 0
            g.last[a] = -1
            g.several[a] = 0
        g.found[0] = 0
    n = g.start[begin]
    end = n + t.start[count]
    g.start = grown(g.start, begin + count + 1)
    if end > len(g.event):
        g.attribute = grown(g.attribute, end)
        g.event = grown(g.event, end)
        g.low = grown(g.low, end)
        g.high = grown(g.high, end)
        g.text = grown(g.text, end)
    attribute, event, low, high, text, start = g.attribute, g.event, g.low, g.high, g.text, g.start
    counts, last, several = g.counts, g.last, g.several
    for i in range(count):
        number = begin + i
        for j in range(t.start[i], t.start[i + 1]):
            a = t.attribute[j]
            attribute[n], event[n], low[n], high[n], text[n] = a, number, t.low[j], t.high[j], t.text[j]
            if counts[a] == 0:
                g.attributes[g.found[0]] = a
                g.found[0] += 1
            counts[a] += 1
            if last[a] == number or t.low[j] != t.high[j]:
                several[a] = 1
            last[a] = number
            n += 1
        start[number + 1] = n


@inline
def list_by_attribute(count, g):
    """Lists the entries of the `count` gathered events by attribute."""
    entries = g.start[count]
    g.order = grown(g.order, entries)
    end = 0
    for i in range(g.found[0]):
        a = g.attributes[i]
        g.entry_start[a] = end
        end += g.counts[a]
        g.counts[a] = 0
    order, counts, attribute, entry_start = g.order, g.counts, g.attribute, g.entry_start
    for j in range(entries):
        a = attribute[j]
        order[entry_start[a] + counts[a]] = j
        counts[a] += 1


@inline
def sort_by_value(a, spaces, g):
    """Puts the entries of an attribute, of which each event has one value at most, in the order of their spaces."""
    count, begin = g.counts[a], g.entry_start[a]
    g.other = grown(g.other, count)
    order, other, low, buckets = g.order, g.other, g.low, g.buckets
    shift = 0
    while (spaces - 1) >> shift:
        buckets[:] = 0
        for i in range(begin, begin + count):
            buckets[((low[order[i]] >> shift) & 255) + 1] += 1
        for k in range(256):
            buckets[k + 1] += buckets[k]
        for i in range(begin, begin + count):
            k = (low[order[i]] >> shift) & 255
            other[buckets[k]] = order[i]
            buckets[k] += 1
        for i in range(count):
            order[begin + i] = other[i]
        shift += 8


@inline
def clear_block(b):
    """Removes all events from the block."""
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
def fill_block(g, a, first, count, b):
    """Turns `count` events, from `first` on, into planes. Without an attribute (a < 0) these are of all gathered
    events, with the planes of all attributes that rules name; otherwise of those that have attribute a, in the order of
    its values, with the planes of the attributes that are wanted. Returns how many slots the attributes have.
    """
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
    members = b.members
    if a < 0:
        for i in range(count):
            members[i] = first + i
        entries = take_entries(g, g.named, count, b)
    else:
        event, order, begin = g.event, g.order, g.entry_start[a] + first
        for i in range(count):
            members[i] = event[order[begin + i]]
        entries = take_entries(g, b.wanted, count, b)
    sort_entries(entries, b)
    slots = 0
    for i in range(b.plane_count[1]):
        one = b.attributes[i]
        slots += b.starts[one + 1] - b.starts[one]
        if b.several[one]:
            cover_planes(one, b)
        else:
            prefix_planes(one, b)
    return slots


@inline
def take_entries(g, wanted, count, b):
    """Copies the members' entries of wanted attributes to the block. Returns how many they are."""
    start, members = g.start, b.members
    most = 0
    for i in range(count):
        most += start[members[i] + 1] - start[members[i]]
    if most > len(b.event):
        b.attribute = grown(b.attribute, most)
        b.event = grown(b.event, most)
        b.low = grown(b.low, most)
        b.high = grown(b.high, most)
        b.text = grown(b.text, most)
        b.order = grown(b.order, most)
    from_attribute, from_low, from_high, from_text = g.attribute, g.low, g.high, g.text
    attribute, event, low, high, text = b.attribute, b.event, b.low, b.high, b.text
    counts, last, several, attributes = b.counts, b.last, b.several, b.attributes
    n = found = 0
    for i in range(count):
        for j in range(start[members[i]], start[members[i] + 1]):
            a = from_attribute[j]
            if not wanted[a]:
                continue
            attribute[n], event[n], low[n], high[n], text[n] = a, i, from_low[j], from_high[j], from_text[j]
            if counts[a] == 0:
                attributes[found] = a
                found += 1
            counts[a] += 1
            if last[a] == i or from_low[j] != from_high[j]:
                several[a] = 1
            last[a] = i
            n += 1
    b.plane_count[1] = found
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
    """Adds `many` planes without events. Returns the first of them."""
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
    many = 0
    for i in range(first, stop):
        slot = begin + b.low[b.order[i]] + 1
        many += 1 - place[slot]
        place[slot] = 1
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
