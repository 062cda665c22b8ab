"""From notes to answers: the rules of each event, ascending.

The rules are divided into as many *ranges* as threads hand them out, so that each has about as many matches. A search
counts its matches of each event in each range. A range takes the notes of its rules from all searches and puts them in
the order of the rules, by bits. From all counts together follows where its first match of each event belongs.

    note n        of the rule note[4n]; its events are 16-bit numbers from the address note[4n + 1] to note[4n + 2];
                  note[4n + 3] is another of the same rule, or -1
    head[rule]    its last note, if its bit is set in `marked` (straight.py)
    noted         the rules that have notes, in order
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.batch.search import NOTES
from eligo.batch.words import prefetch
from eligo.compile.compiled import grown
from eligo.evaluate.straight import mark, take_marked
from eligo.jit import handle, kernel, short_at

BUCKETS = 1024  # of rules, that ranges are made of
SOON = 8  # rules of which the events are fetched before they are needed
NOTES_TAKEN, RULES_NOTED = 0, 1  # in `count`

# The notes of a range as one argument of kernels.
make_range = handle("RangeHandle", ("note", "head", "marked", "marked_words", "all_allowed", "noted", "count"))


def new_range(rules: int) -> Any:
    """Returns room for notes of these rules, without any."""
    return make_range(
        np.zeros(4096, np.int64),
        np.zeros(rules, np.int32),
        np.zeros((rules + 63) // 64, np.uint64),
        np.zeros((rules + 4095) // 4096, np.uint64),
        np.zeros(0, np.uint8),
        np.zeros(1024, np.int32),
        np.zeros(2, np.int64),
    )


@kernel
def count_matches(w, rules, counts):
    """Adds to `counts` how many matches a search has noted of each of BUCKETS equal parts of the rules."""
    for n in range(w.state[NOTES]):
        if w.note_rule[n] >= 0:
            counts[w.note_rule[n] * BUCKETS // rules] += w.note_end[n] - w.note_begin[n]


@kernel
def count_events(w, borders, events, counts):
    """Adds to counts[events * range + event] how many matches a search has noted; ranges begin at `borders`."""
    pool = w.pool.ctypes.data
    note_rule, note_begin, note_end = w.note_rule, w.note_begin, w.note_end
    for n in range(w.state[NOTES]):
        rule, first = note_rule[n], 0
        if rule >= 0:
            k = 1
            while rule >= borders[k]:
                first += events
                k += 1
            for i in range(note_begin[n], note_end[n]):
                counts[first + short_at(pool, i)] += 1


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
    n, many = o.count[NOTES_TAKEN], w.state[NOTES]
    o.note = grown(o.note, 4 * (n + many + 1))
    note, pool = o.note, w.pool.ctypes.data
    note_rule, note_begin, note_end = w.note_rule, w.note_begin, w.note_end
    for i in range(many):  # without a branch, which would be mispredicted every other time
        rule = np.int64(note_rule[i])
        note[4 * n] = rule
        note[4 * n + 1], note[4 * n + 2] = pool + 2 * note_begin[i], pool + 2 * note_end[i]
        n += np.int64(low <= rule) & np.int64(rule < high)
    o.count[NOTES_TAKEN] = n


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
    note, head, noted, note_at = o.note, o.head, o.noted, o.note.ctypes.data
    last = o.count[RULES_NOTED] - 1
    for k in range(last + 1):
        prefetch(note_at + 32 * np.int64(head[noted[min(k + 2 * SOON, last)]]))
        soon = note[4 * head[noted[min(k + SOON, last)]] + 1]
        prefetch(soon)
        prefetch(soon + 64)
        rule = noted[k]
        name = names[rule] if len(names) else np.int64(rule)
        n = np.int64(head[rule])
        while n >= 0:
            begin = note[4 * n + 1]
            for i in range((note[4 * n + 2] - begin) >> 1):
                event = short_at(begin, i)
                at = position[event]
                found[at] = name
                position[event] = at + 1
            n = note[4 * n + 3]
    o.count[NOTES_TAKEN] = 0
