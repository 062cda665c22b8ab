"""From notes to answers: the rules of each event, ascending.

The rules are divided into as many *ranges* as threads hand them out, so that each has about as many matches. A search
counts its matches of each event in each range. A range takes the notes of its rules from all searches and puts them in
the order of the rules, by bits. From all counts together follows where its first match of each event belongs.

    note n        of the rule note[4n]; its events are 16-bit numbers from the address note[4n + 1] to note[4n + 2];
                  note[4n + 3] is another of the same rule, or -1. If note[4n + 2] < 0, its events are the bits of a
                  block at that address, of which the first is event ~note[4n + 2]
    head[rule]    its last note, if its bit is set in `marked` (straight.py)
    noted         the rules that have notes, in order

Where many of TOGETHER rules in turn have bits, these rules are handed out together, event by event. For each 64 of them
`tiles` has a stretch with a word for each event, in tiles of 64 words, which are turned around: from a word of events
for each rule to a word of rules for each event. Invariant: before and after, all words are 0.

    stretch[64 t + k]    before: the events 64 t … 64 t + 63 that satisfy the k-th rule
    stretch[event]       after: the rules that the event satisfies
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.batch.search import NOTES
from eligo.batch.words import EVENTS, WORDS, and_both, copy_bits, count_bits, prefetch, xor_bits
from eligo.compile.compiled import grown
from eligo.evaluate.straight import mark, take_marked
from eligo.jit import handle, inline, int64_at, kernel, short_at, trailing_zeros

BUCKETS = 1024  # of rules, that ranges are made of
SOON = 8  # rules of which the events are fetched before they are needed
TOGETHER = 512  # rules whose bits are turned around together
DIGITS = 32  # of numbers that bits of a block are counted in
NOTES_TAKEN, RULES_NOTED, BITS_TAKEN = 0, 1, 2  # in `count`: notes, rules that have some, notes that are bits

# The notes of a range as one argument of kernels.
make_range = handle(
    "RangeHandle", ("note", "head", "marked", "marked_words", "all_allowed", "noted", "tiles", "handed", "count")
)


def new_range(rules: int) -> Any:
    """Returns room for notes of these rules, without any."""
    return make_range(
        np.zeros(4096, np.int64),
        np.zeros(rules, np.int32),
        np.zeros((rules + 63) // 64, np.uint64),
        np.zeros((rules + 4095) // 4096, np.uint64),
        np.zeros(0, np.uint8),
        np.zeros(1024, np.int32),
        np.zeros(EVENTS, np.uint64),
        np.zeros(TOGETHER, np.int64),
        np.zeros(3, np.int64),
    )


@kernel
def count_matches(w, rules, counts):
    """Adds to `counts` how many matches a search has noted of each of BUCKETS equal parts of the rules."""
    pool = w.pool.ctypes.data
    for n in range(w.state[NOTES]):
        if w.note_rule[n] >= 0:
            many = w.note_end[n] - w.note_begin[n]
            if w.note_end[n] < 0:
                many = count_bits(pool, w.note_begin[n] >> 2, WORDS)
            counts[w.note_rule[n] * BUCKETS // rules] += many


@kernel
def count_events(w, borders, events, counts):
    """Adds to counts[events * range + event] how many matches a search has noted; ranges begin at `borders`."""
    pool = w.pool.ctypes.data
    note_rule, note_begin, note_end = w.note_rule, w.note_begin, w.note_end
    bits = False
    for n in range(w.state[NOTES]):
        rule, first = note_rule[n], 0
        if rule >= 0:
            k = 1
            while rule >= borders[k]:
                first += events
                k += 1
            for i in range(note_begin[n], note_end[n]):
                counts[first + short_at(pool, i)] += 1
            bits |= note_end[n] < 0
    if bits:
        count_bits_of_events(w, borders, events, counts)


@inline
def count_bits_of_events(w, borders, events, counts):
    """Adds to `counts` the matches of notes that are bits. They are counted in binary numbers, of which one word has a
    digit for 64 events, so that a note is added to all of its events at once.
    """
    pool, blocks, ranges = w.pool.ctypes.data, (events + EVENTS - 1) // EVENTS, len(borders) - 1
    carry = ranges * blocks * DIGITS
    digits = np.zeros((carry + 2) * WORDS, np.uint64)
    for n in range(w.state[NOTES]):
        if w.note_end[n] < 0:
            k = 0
            while w.note_rule[n] >= borders[k + 1]:
                k += 1
            add_bits(digits.ctypes.data, k * blocks + ~w.note_end[n] // EVENTS, carry, pool + 2 * w.note_begin[n])
    for k in range(ranges):
        for event in range(events):
            at = DIGITS * (k * blocks + event // EVENTS) * WORDS + (event % EVENTS >> 6)
            for digit in range(DIGITS):
                bit = digits[at + digit * WORDS] >> np.uint64(event & 63) & np.uint64(1)
                counts[events * k + event] += np.int64(bit) << digit


@inline
def add_bits(digits, number, carry, bits):
    """Adds 1 to those of EVENTS numbers whose bits are set at the address `bits`. `digits` is the address of the binary
    digits of such numbers, one digit of all of them after another, with room for two blocks of bits from `carry` on.
    """
    digit = DIGITS * number
    copy_bits(bits, 0, digits, carry)
    left = True
    while left:
        left = and_both(digits, carry, digits, digit, digits, carry + 1)
        xor_bits(digits, carry, digits, digit)
        copy_bits(digits, carry + 1, digits, carry)
        digit += 1


@kernel
def place_matches(counts, first, ends, position):
    """Writes to `ends`, behind ends[first], where the matches of each event end, and to position[range, event] where
    those of each range begin. `counts` has a row for each search, as `count_events` has counted it.
    """
    ranges, events = position.shape
    for event in range(events):
        end = ends[first + event]
        for k in range(ranges):
            position[k, event] = end
            for search in range(len(counts)):
                end += counts[search, events * k + event]
        ends[first + event + 1] = end


@kernel
def take_notes(w, low, high, o):
    """Takes the notes of the rules from `low` to below `high` from a search."""
    n, many, bits = o.count[NOTES_TAKEN], w.state[NOTES], o.count[BITS_TAKEN]
    o.note = grown(o.note, 4 * (n + many + 1))
    note, pool = o.note, w.pool.ctypes.data
    note_rule, note_begin, note_end = w.note_rule, w.note_begin, w.note_end
    for i in range(many):  # without a branch, which would be mispredicted every other time
        rule = np.int64(note_rule[i])
        end, taken = note_end[i], np.int64(low <= rule) & np.int64(rule < high)
        note[4 * n] = rule
        note[4 * n + 1], note[4 * n + 2] = pool + 2 * note_begin[i], pool + 2 * end if end >= 0 else end
        n += taken
        bits += taken & np.int64(end < 0)
    o.count[NOTES_TAKEN], o.count[BITS_TAKEN] = n, bits


@kernel
def order_notes(o):
    """Links all notes of each rule that were taken, and lists the rules that have some in `noted`, ascending."""
    notes, note, head, marked, high, one = o.count[NOTES_TAKEN], o.note, o.head, o.marked, o.marked_words, np.uint64(1)
    for n in range(notes):
        rule = note[4 * n]
        note[4 * n + 3] = head[rule] if marked[rule >> 6] >> np.uint64(rule & 63) & one else -1
        head[rule] = n
        mark(marked, high, rule)
    o.noted = grown(o.noted, notes + 64)
    o.count[RULES_NOTED] = take_marked(marked, high, o.all_allowed, o.noted, 0)


@kernel
def hand_out(o, names, position, found):
    """Writes the rules in order, or `names` of them if there are any, and forgets the notes. The next match of event i
    goes to found[position[i]].
    """
    rules = o.count[RULES_NOTED]
    if o.count[BITS_TAKEN] == 0:
        hand_out_each(o, names, position, found, 0, rules)
    else:
        o.tiles = grown(o.tiles, TOGETHER // 64 * whole_blocks(len(position)))
        for first in range(0, rules, TOGETHER):
            stop = min(first + TOGETHER, rules)
            if 64 * count_bit_notes(o, first, stop) >= TOGETHER // 64 * len(position):
                hand_out_together(o, names, position, found, first, stop)
            else:
                hand_out_each(o, names, position, found, first, stop)
    o.count[NOTES_TAKEN] = o.count[BITS_TAKEN] = 0


@inline
def hand_out_each(o, names, position, found, first, stop):
    """Writes the rules noted[first : stop], one after another."""
    note, head, noted, note_at = o.note, o.head, o.noted, o.note.ctypes.data
    for k in range(first, stop):
        prefetch(note_at + 32 * np.int64(head[noted[min(k + 2 * SOON, stop - 1)]]))
        soon = note[4 * head[noted[min(k + SOON, stop - 1)]] + 1]
        prefetch(soon)
        prefetch(soon + 64)
        rule = noted[k]
        name = names[rule] if len(names) else np.int64(rule)
        n = np.int64(head[rule])
        while n >= 0:
            begin, end = note[4 * n + 1], note[4 * n + 2]
            for i in range((end - begin) >> 1):
                event = short_at(begin, i)
                at = position[event]
                found[at] = name
                position[event] = at + 1
            if end < 0:
                for word in range(WORDS):
                    left = np.uint64(int64_at(begin, word))
                    while left:
                        event = ~end + 64 * word + np.int64(trailing_zeros(left))
                        left &= left - np.uint64(1)
                        found[position[event]] = name
                        position[event] += 1
            n = note[4 * n + 3]


@inline
def count_bit_notes(o, first, stop):
    """Returns how many notes of the rules noted[first : stop] are bits."""
    many = 0
    for k in range(first, stop):
        n = np.int64(o.head[o.noted[k]])
        while n >= 0:
            many += np.int64(o.note[4 * n + 2] < 0)
            n = o.note[4 * n + 3]
    return many


@inline
def hand_out_together(o, names, position, found, first, stop):
    """Writes the rules noted[first : stop], at most TOGETHER, event by event."""
    note, head, noted, tiles, handed, one = o.note, o.head, o.noted, o.tiles, o.handed, np.uint64(1)
    width = whole_blocks(len(position))
    for k in range(stop - first):
        rule = noted[first + k]
        handed[k] = names[rule] if len(names) else np.int64(rule)
        n, tile = np.int64(head[rule]), width * (k >> 6)
        while n >= 0:
            if note[4 * n + 2] < 0:
                for word in range(WORDS):
                    tiles[tile + ~note[4 * n + 2] + 64 * word + (k & 63)] |= np.uint64(int64_at(note[4 * n + 1], word))
            n = note[4 * n + 3]
    turn_around(tiles, width * ((stop - first + 63) >> 6))
    for k in range(stop - first):  # notes that are lists
        n, tile = np.int64(head[noted[first + k]]), width * (k >> 6)
        while n >= 0:
            for i in range((note[4 * n + 2] - note[4 * n + 1]) >> 1):
                tiles[tile + short_at(note[4 * n + 1], i)] |= one << np.uint64(k & 63)
            n = note[4 * n + 3]
    for event in range(len(position)):
        at = position[event]
        for k in range(0, stop - first, 64):
            left = tiles[width * (k >> 6) + event]
            tiles[width * (k >> 6) + event] = 0
            while left:
                found[at] = handed[k + np.int64(trailing_zeros(left))]
                left &= left - one
                at += 1
        position[event] = at


@inline
def whole_blocks(events):
    """Returns the number of events in as many blocks as so many events take."""
    return (events + EVENTS - 1) // EVENTS * EVENTS


@inline
def turn_around(tiles, end):
    """Turns each tile before `end` around: bit j of word i becomes bit i of word j."""
    for tile in range(0, end, 64):
        width, mask = 32, np.uint64(0xFFFFFFFF)
        while width:
            for pair in range(tile, tile + 64, 2 * width):
                for i in range(pair, pair + width):
                    swapped = (tiles[i] >> np.uint64(width) ^ tiles[i + width]) & mask
                    tiles[i] ^= swapped << np.uint64(width)
                    tiles[i + width] ^= swapped
            width >>= 1
            mask ^= mask << np.uint64(width)
