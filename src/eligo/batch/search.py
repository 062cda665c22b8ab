"""Which rules each of some events satisfies.

First the clusters: of every access predicate that some event satisfies, the rows, each the AND of its predicates with
an early end. What a row opens is a rule, which is noted with its events at once, or a part, which gathers the events
of all its gates. Then the parts in ascending order: when one is reached all its gates have been, so it has gathered all
of its events. A part that a program asks about before is evaluated in full, once.

Where that is less work, the clusters of an attribute are searched apart, in blocks of the events that have it. Ordered
by its value, the events of a cluster stand together, mostly in a *window* of FEW words. All else is searched in blocks
of all events; so is what rows open that is no rule.

So there are *tasks*: an attribute that is searched apart, or all else, for one block of events. Threads take them in
any order, each with a block and a scratch of its own; where rows open parts, one thread takes all of them in turn.

    layout     the rules (layout.py)       g    the events, gathered      b    a block of them (block.py)
    w.words    room for bits: SOURCE, ROW, … and behind them two for each tree of a program under way
    queue      rows on their way: their bits, of a whole block or of the window that begins at word queue_from[i]
    note n     rule note_rule[n], or row ~note_rule[n] which opens other things, is satisfied by the events
               pool[note_begin[n] … note_end[n]]. It has a note for each block, and an event is in one of them at most.
               If note_end[n] < 0, they are many of a block of all events, the first of which is ~note_end[n], and pool
               has the block's bits from note_begin[n] on
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.batch.block import EVERYONE, NOBODY, fill_block, list_by_attribute, sort_by_value
from eligo.batch.layout import DEPTH, PARTS, ROWS, STRAIGHT
from eligo.batch.words import (
    EVENTS,
    FEW,
    WORDS,
    and_between,
    and_bits,
    and_both,
    and_few_between,
    and_few_listed,
    and_listed,
    but_bits,
    copy_bits,
    copy_few,
    count_bits,
    list_members,
    or_bits,
    prefetch,
    xor_bits,
)
from eligo.compile import codes
from eligo.compile.compiled import I64, Arrays, grown
from eligo.compile.predicates import holds
from eligo.jit import handle, inline, int64_at, kernel, put_int64, trailing_zeros

SOURCE, ROW, VALUE, SOME, OUTSIDE, RESULT, EVERY, FRAMES = 0, 1, 2, 3, 4, 5, 6, 7  # in w.words
QUEUE = 128
DENSE = 128  # events of a block, estimated, from which their bits take less time than a list of them
AHEAD = 256  # items that are fetched before they are needed
# In w.state: notes, events in the pool, parts seen, rows in the queue, words of each of these, whether a block is for
# one attribute.
NOTES, POOLED, SEEN, QUEUED, WIDTH, APART = 0, 1, 2, 3, 4, 5
STATE = 6  # numbers in it

UNKNOWN, OPENED, KNOWN = 0, 1, 2  # states of a part
AND, OR, CALL = 0, 1, 2  # kinds of a frame

# Nanoseconds, about: of a row in a block and in a window; of filling a block, for each slot and for each entry.
# And where rows open parts: how many times fewer events have an attribute that is searched apart.
IN_BLOCK, IN_WINDOW, SLOT, ENTRY, SPARSE = 0, 1, 2, 3, 4
COSTS = (80, 55, 2, 8, 4)
LOCATED = 100

# The memory of one search as one argument of kernels.
make_batch_scratch = handle(
    "BatchScratchHandle",
    (
        "words", "frames", "part_bits", "part_state", "parts_seen", "part_marks", "pool", "note_rule", "note_begin",
        "note_end", "state", "counters", "costs", "queue", "queue_row", "queue_at", "queue_from", "done", "done_row",
        "done_from",
    ),
)  # fmt: skip


def new_scratch(layout: Arrays, state: I64, counters: I64) -> Any:
    """Returns memory for one search at a time, of which `state` is as above. `counters`: rows looked at, predicates
    evaluated, rows that trees asked about, and slots that blocks were filled with (a located value counts as LOCATED).
    """
    parts, depth = int(layout["sizes"][PARTS]), int(layout["sizes"][DEPTH])
    return make_batch_scratch(
        np.zeros((FRAMES + 2 * depth) * WORDS, np.uint64),
        np.zeros((depth, 4), np.int64),
        np.zeros(parts * WORDS, np.uint64),
        np.zeros(parts, np.uint8),
        np.zeros(parts, np.int32),
        np.zeros((parts + 63) // 64, np.uint64),
        np.zeros(4 * EVENTS, np.uint16),
        np.zeros(1024, np.int32),
        np.zeros(1024, np.int64),
        np.zeros(1024, np.int64),
        state,
        counters,
        np.array(COSTS, np.int64),
        np.zeros((QUEUE + 1) * WORDS, np.uint64),
        np.zeros(QUEUE + 1, np.int32),
        np.zeros(QUEUE + 1, np.int64),
        np.zeros(QUEUE + 1, np.int64),
        np.zeros(QUEUE * WORDS, np.uint64),
        np.zeros(QUEUE, np.int32),
        np.zeros(QUEUE, np.int64),
    )


@kernel
def plan_search(layout, count, g, w, pieces):
    """Lists the tasks for the `count` gathered events. Divides them into pieces of about the same size, and writes to
    `pieces` the first task of each and, last, the number of tasks. Returns how long all take, in nanoseconds.
    """
    list_by_attribute(count, g)
    w.counters[3] += LOCATED * g.start[count]
    tasks, took = list_tasks(layout, count, g, w)
    k = 0
    for i in range(len(pieces)):
        while k < tasks and g.task_end[k] * (len(pieces) - 1) <= took * i:
            k += 1
        pieces[i] = k
    pieces[0], pieces[-1] = 0, tasks
    return took


@inline
def list_tasks(layout, count, g, w):
    """Lists the tasks. Chooses the attributes whose clusters are searched apart, in blocks of the events that have a
    value of one, and orders these events. Returns how many tasks there are, and how long they take.
    """
    blocks, costs = (count + EVENTS - 1) // EVENTS, w.costs
    left = layout.range_offsets[-1] - layout.range_offsets[-2]
    tasks = took = 0
    for i in range(g.found[0]):
        a = g.attributes[i]
        rows = layout.equal_offsets[layout.starts[a + 1]] - layout.equal_offsets[layout.starts[a]]
        rows += layout.range_offsets[layout.range_start[a + 1]] - layout.range_offsets[layout.range_start[a]]
        own = (g.counts[a] + EVENTS - 1) // EVENTS
        entries = g.counts[a] * g.start[count] // count
        apart = rows * costs[IN_WINDOW] * (8 + own) // 8 + own * layout.asked_slots[a] * costs[SLOT]
        apart += entries * costs[ENTRY]
        sparse = layout.sizes[STRAIGHT] or costs[SPARSE] * g.counts[a] <= count
        g.apart[a] = rows and sparse and not g.several[a] and apart < rows * costs[IN_BLOCK] * blocks
        if g.apart[a]:
            sort_by_value(a, layout.starts[a + 1] - layout.starts[a], g)
            tasks, took = add_tasks(g, tasks, took, a, own, apart // own)
        else:
            left += rows
    if left or not layout.sizes[STRAIGHT]:
        tasks, took = add_tasks(g, tasks, took, -1, blocks, left * costs[IN_BLOCK])
    return tasks, took


@inline
def add_tasks(g, tasks, took, a, blocks, cost):
    """Adds a task of that cost for each of so many blocks. Returns how many tasks there are, and how long they take."""
    g.task_attribute = grown(g.task_attribute, tasks + blocks)
    g.task_first = grown(g.task_first, tasks + blocks)
    g.task_end = grown(g.task_end, tasks + blocks)
    for block in range(blocks):
        took += cost
        g.task_attribute[tasks], g.task_first[tasks], g.task_end[tasks] = a, block * EVENTS, took
        tasks += 1
    return tasks, took


@kernel
def search_events(layout, e, count, g, b, w, first, stop, allowed):
    """Does the tasks from `first` to below `stop`: notes the rules that the `count` events satisfy. `allowed` has a
    byte for each rule, 0 for those to leave out, or is empty.
    """
    for task in range(first, stop):
        a, begin = g.task_attribute[task], g.task_first[task]
        w.state[APART] = a >= 0
        if a >= 0:
            match_apart(layout, e, g, b, w, a, begin, allowed)
        else:
            w.counters[3] += fill_block(g, a, begin, min(EVENTS, count - begin), b)
            match_block(layout, e, g, b, w, allowed)


@inline
def match_apart(layout, e, g, b, w, a, begin, allowed):
    """Searches the clusters of one attribute, for a block of the events that have it."""
    asked, low, high = layout.asked, layout.asked_offsets[a], layout.asked_offsets[a + 1]
    for i in range(low, high):
        b.wanted[asked[i]] = 1
    w.counters[3] += fill_block(g, a, begin, min(EVENTS, g.counts[a] - begin), b)
    for i in range(low, high):
        b.wanted[asked[i]] = 0
    copy_bits(b.planes.ctypes.data, EVERYONE, w.words.ctypes.data, EVERY)
    match_clusters(layout, e, b, w, a, allowed)
    end_queue(layout, e, b, w, allowed)


@inline
def match_block(layout, e, g, b, w, allowed):
    """Searches all clusters that are not searched apart, opens what the others have found, and then the parts."""
    words, planes, apart = w.words.ctypes.data, b.planes.ctypes.data, w.state[NOTES]
    copy_bits(planes, EVERYONE, words, EVERY)
    for i in range(b.plane_count[1]):
        if not g.apart[b.attributes[i]]:
            match_clusters(layout, e, b, w, b.attributes[i], allowed)
    copy_bits(planes, EVERYONE, words, SOURCE)
    match_source(layout, e, b, w, layout.range_offsets[-2], layout.range_offsets[-1], 0, allowed)
    end_queue(layout, e, b, w, allowed)
    if not layout.sizes[STRAIGHT]:
        for n in range(apart):
            if w.note_rule[n] < 0:
                copy_bits(planes, NOBODY, words, ROW)
                for i in range(w.note_begin[n], w.note_end[n]):
                    w.words[WORDS * ROW + (w.pool[i] >> 6)] |= np.uint64(1) << np.uint64(w.pool[i] & 63)
                open_units(layout, e, b, w, ~w.note_rule[n], False, allowed)
        match_parts(layout, e, b, w, allowed)


@inline
def match_clusters(layout, e, b, w, a, allowed):
    """Searches the clusters of an attribute."""
    words, planes, place, items = w.words.ctypes.data, b.planes.ctypes.data, b.place, layout.items
    range_offsets, equal_offsets = layout.range_offsets, layout.equal_offsets
    base = b.starts[a]
    stop = b.present[a] + (0 if b.several[a] else 1)
    for plane in range(b.plane_start[a], stop):
        low = b.plane_space[plane]
        high = b.plane_space[plane + 1] - 1 if b.several[a] else low
        taken = False
        for slot in range(base + low, base + high + 1):
            if equal_offsets[slot] < equal_offsets[slot + 1]:
                if not taken:
                    taken = True
                    some = copy_bits(planes, plane, words, SOURCE)
                    if not b.several[a] and plane > b.plane_start[a]:
                        some = xor_bits(planes, plane - 1, words, SOURCE)
                    if not some:
                        break
                match_source(layout, e, b, w, equal_offsets[slot], equal_offsets[slot + 1], 1, allowed)
    for k in range(layout.range_start[a], layout.range_start[a + 1]):
        i = layout.row_offsets[range_offsets[k]]  # the access predicate is the first of each of its rows
        one, other = items[i], items[i + 1]
        if one >= 0 and place[one] >= 0:
            some = and_between(words, EVERY, planes, place[one], place[other], words, SOURCE)
        else:
            some = and_item(layout, e, b, w, i, EVERY, SOURCE)
        if some:
            match_source(layout, e, b, w, range_offsets[k], range_offsets[k + 1], 1, allowed)
    w.counters[1] += layout.range_start[a + 1] - layout.range_start[a]


@inline
def match_source(layout, e, b, w, first, stop, skipped, allowed):
    """Matches the rows from `first` to below `stop`. All events in SOURCE, which is not empty, satisfy the first
    `skipped` predicates of each.
    """
    words = w.words
    begin, end = 0, WORDS
    while words[WORDS * SOURCE + begin] == 0:
        begin += 1
    while words[WORDS * SOURCE + end - 1] == 0:
        end -= 1
    width = FEW if end - begin <= FEW else WORDS
    if w.state[WIDTH] != width:
        end_queue(layout, e, b, w, allowed)
        w.state[WIDTH] = width
    if width == FEW:
        match_few_rows(layout, e, b, w, first, stop, skipped, min(begin, WORDS - FEW), allowed)
    else:
        match_rows(layout, e, b, w, first, stop, skipped, 0, allowed)
    w.counters[0] += stop - first


@inline
def end_queue(layout, e, b, w, allowed):
    """Asks all predicates that are left of the rows in the queue, and empties it."""
    if w.state[QUEUED] == 0:
        return
    if w.state[WIDTH] == FEW:
        match_few_queue(layout, e, b, w, allowed)
    else:
        match_queue(layout, e, b, w, allowed)


def matching(width: int, copy: Any, between: Any, listed: Any) -> tuple[Any, Any]:
    """Returns two functions for windows of `width` words: one that matches rows, and one that empties their queue. The
    other arguments are functions of words.py for that width.
    """

    @inline
    def match_queue(layout, e, b, w, allowed):
        """Asks what is left to ask of the rows in the queue, a predicate of each at a time, and opens their units."""
        row_offsets, items, place = layout.row_offsets, layout.items, b.place
        planes, words = b.planes.ctypes.data, w.words.ctypes.data
        queue, done = w.queue.ctypes.data, w.done.ctypes.data
        place_at, items_at = place.ctypes.data, items.ctypes.data
        queue_row, queue_at, queue_from, done_row = w.queue_row, w.queue_at, w.queue_from, w.done_row
        n = w.state[QUEUED]
        evaluated = n
        finished = 0
        while n:
            kept = 0
            for j in range(n):
                row, i, begin = queue_row[j], queue_at[j], queue_from[j]
                if i == row_offsets[row + 1]:
                    copy(queue, j, done, finished)
                    done_row[finished] = row
                    w.done_from[finished] = begin
                    finished += 1
                    continue
                one, other = items[i], items[i + 1]
                if one >= 0 and place[one] >= 0:
                    left = between(queue, j, planes + 8 * begin, place[one], place[other], queue, kept)
                    i += 2
                elif one < -1 and place[items[i + 3]] >= 0:
                    left = listed(queue, j, planes + 8 * begin, place_at, items_at, i + 3, ~one, queue, kept)
                    i += 3 + ~one
                else:
                    copy_bits(planes, NOBODY, words, ROW)
                    copy(queue, j, words + 8 * (WORDS * ROW + begin), 0)
                    left = and_item(layout, e, b, w, i, ROW, ROW)
                    copy(words + 8 * (WORDS * ROW + begin), 0, queue, kept)
                    i += 2 if one >= 0 else 3 + ~one
                queue_row[kept] = row
                queue_at[kept] = i
                queue_from[kept] = begin
                kept += np.int64(left)
                evaluated += 1
            n = kept
        w.state[QUEUED] = 0
        w.counters[1] += evaluated
        if finished:
            open_done(layout, e, b, w, finished, width, allowed)

    @inline
    def match_rows(layout, e, b, w, first, stop, skipped, begin, allowed):
        """Matches the rows from `first` to below `stop`. All events in SOURCE, whose window begins at word `begin`,
        satisfy the first `skipped` predicates of each.

        The first predicate after these is asked here, and the rows that are left are put in a queue, so that others can
        be asked of many rows in turn. There is no branch that depends on what is left: it would be mispredicted every
        other time, and the processor would wait for one row's memory after another.
        """
        row_offsets, items, place = layout.row_offsets, layout.items, b.place
        planes, words, queue = b.planes.ctypes.data, w.words.ctypes.data, w.queue.ctypes.data
        queue_row, queue_at, queue_from = w.queue_row, w.queue_at, w.queue_from
        source, items_at = words + 8 * (WORDS * SOURCE + begin), items.ctypes.data
        n = w.state[QUEUED]
        for row in range(first, stop):
            i = row_offsets[row]
            ahead = items_at + 4 * (i + AHEAD)
            prefetch(ahead)
            prefetch(ahead + 64)
            if skipped:
                i += 2 if items[i] >= 0 else 3 + ~items[i]
            if i == row_offsets[row + 1]:
                left = copy(source, 0, queue, n)
            else:
                one, other = items[i], items[i + 1]
                if one >= 0 and place[one] >= 0:
                    left = between(source, 0, planes + 8 * begin, place[one], place[other], queue, n)
                    i += 2
                else:
                    left = and_item(layout, e, b, w, i, SOURCE, ROW)
                    copy(words + 8 * (WORDS * ROW + begin), 0, queue, n)
                    i += 2 if one >= 0 else 3 + ~one
            queue_row[n] = row
            queue_at[n] = i
            queue_from[n] = begin
            n += np.int64(left)
            if n == QUEUE:
                w.state[QUEUED] = n
                match_queue(layout, e, b, w, allowed)
                n = 0
        w.state[QUEUED] = n

    return match_rows, match_queue


@inline
def open_done(layout, e, b, w, finished, width, allowed):
    """Opens what the `finished` rows open, whose events are in `done`: notes rules and, in a block for one attribute,
    rows that open other things.
    """
    opens, opened, program, apart = layout.opens, layout.opened, layout.program, w.state[APART]
    done, members, done_row, done_from = w.done.ctypes.data, b.members.ctypes.data, w.done_row, w.done_from
    make_note_room(w, finished, 64 * width * finished)
    note_rule, note_begin, note_end, pool = w.note_rule, w.note_begin, w.note_end, w.pool.ctypes.data
    n, end = w.state[NOTES], w.state[POOLED]
    others = False
    for j in range(finished):
        row = done_row[j]
        begin, stop, more = end, end, False
        if n + opens[row + 1] - opens[row] >= len(note_rule):  # equal rules are one row
            w.state[NOTES], w.state[POOLED] = n, end
            make_note_room(w, opens[row + 1] - opens[row] + finished, 64 * width * finished)
            note_rule, note_begin, note_end, pool = w.note_rule, w.note_begin, w.note_end, w.pool.ctypes.data
        for k in range(opens[row], opens[row + 1]):
            rule = opened[k]
            if program[k] >= 0 or rule < 0:
                more = True
            elif len(allowed) == 0 or allowed[rule]:
                if end == begin:
                    begin, stop, end = put_events(b, pool, done, width * j, width, done_from[j], end, apart)
                note_rule[n], note_begin[n], note_end[n] = rule, begin, stop
                n += 1
        if more and apart:
            if end == begin:
                end = list_members(done, width * j, width, members, done_from[j], pool, end)
            note_rule[n], note_begin[n], note_end[n] = ~row, begin, end
            n += 1
        others |= more
    w.state[NOTES], w.state[POOLED] = n, end
    if others and not apart:
        for j in range(finished):
            copy_bits(b.planes.ctypes.data, NOBODY, w.words.ctypes.data, ROW)
            for word in range(width):
                w.words[WORDS * ROW + done_from[j] + word] = w.done[width * j + word]
            open_units(layout, e, b, w, done_row[j], False, allowed)


@inline
def put_events(b, pool, bits, at, width, first_word, end, apart):
    """Writes the events of a block whose bits are set in bits[at : at + width], of which the first is that of event
    64 * first_word, to pool[end] and on. Returns the begin and the end of a note of them, and the end of the pool.

    Whether they are many is estimated by a quarter of the bits: counting all of them costs every row.
    """
    if not apart and width == WORDS and 4 * count_bits(bits, at, WORDS // 4) >= DENSE:
        begin = (end + 3) & ~np.int64(3)
        for word in range(WORDS):
            put_int64(pool, (begin >> 2) + word, int64_at(bits, at + word))
        return begin, ~np.int64(b.members[0]), begin + 4 * WORDS
    stop = list_members(bits, at, width, b.members.ctypes.data, first_word, pool, end)
    return end, stop, stop


@inline
def make_note_room(w, notes, events):
    """Makes room for so many more notes, with so many more events together."""
    if w.state[NOTES] + notes + 1 > len(w.note_rule):
        w.note_rule = grown(w.note_rule, w.state[NOTES] + notes + 1)
        w.note_begin = grown(w.note_begin, len(w.note_rule))
        w.note_end = grown(w.note_end, len(w.note_rule))
    w.pool = grown(w.pool, w.state[POOLED] + events + 4)


match_rows, match_queue = matching(WORDS, copy_bits, and_between, and_listed)
match_few_rows, match_few_queue = matching(FEW, copy_few, and_few_between, and_few_listed)


@inline
def open_units(layout, e, b, w, gate, rules, allowed):
    """Notes the events in ROW for the units that a gate opens. Without `rules`, rules with nothing beside the gate are
    left out, because they have been noted.
    """
    for k in range(layout.opens[gate], layout.opens[gate + 1]):
        value = ROW
        if layout.program[k] < 0 and layout.opened[k] >= 0 and not rules:
            continue
        if layout.program[k] >= 0:
            if not ask_program(layout, e, b, w, layout.program[k]):
                continue
            value = VALUE
        unit = layout.opened[k]
        if unit >= 0:
            if len(allowed) == 0 or allowed[unit]:
                note_value(b, w, unit, value)
        else:
            add_to_part(w, ~unit, value)


@inline
def add_to_part(w, part, value):
    """Adds events to those of a part, unless it is known already."""
    if w.part_state[part] == KNOWN:
        return
    bits, words = w.part_bits.ctypes.data, w.words.ctypes.data
    if w.part_state[part] == UNKNOWN:
        see_part(w, part, OPENED)
        copy_bits(words, value, bits, part)
    else:
        or_bits(words, value, bits, part)


@inline
def see_part(w, part, state):
    if w.part_state[part] == UNKNOWN:
        w.parts_seen[w.state[SEEN]] = part
        w.state[SEEN] += 1
        w.part_marks[part >> 6] |= np.uint64(1) << np.uint64(part & 63)
    w.part_state[part] = state


@inline
def match_parts(layout, e, b, w, allowed):
    """Opens what the parts open, in ascending order: a part opens nothing before itself."""
    rows, marks = layout.sizes[ROWS], w.part_marks
    bits, words = w.part_bits.ctypes.data, w.words.ctypes.data
    for word in range(len(marks)):
        done = np.uint64(0)
        while marks[word] & ~done:
            bit = trailing_zeros(marks[word] & ~done)
            done |= (np.uint64(2) << bit) - np.uint64(1)
            part = 64 * word + np.int64(bit)
            w.part_state[part] = KNOWN
            if copy_bits(bits, part, words, ROW):
                open_units(layout, e, b, w, rows + part, True, allowed)
    for i in range(w.state[SEEN]):
        part = w.parts_seen[i]
        w.part_state[part] = UNKNOWN
        marks[part >> 6] = 0
    w.state[SEEN] = 0


@inline
def note_value(b, w, rule, value):
    """Notes a rule with the events in a value."""
    make_note_room(w, 1, EVENTS)
    n, begin = w.state[NOTES], w.state[POOLED]
    words, pool = w.words.ctypes.data, w.pool.ctypes.data
    begin, stop, end = put_events(b, pool, words, WORDS * value, WORDS, 0, begin, False)
    w.note_rule[n], w.note_begin[n], w.note_end[n] = rule, begin, stop
    w.state[NOTES], w.state[POOLED] = n + 1, end


@inline
def and_item(layout, e, b, w, i, given, to):
    """Writes to `to` the events in `given` that satisfy the predicate at items[i]. Returns whether there are any."""
    words, planes, place, items = w.words.ctypes.data, b.planes.ctypes.data, b.place, layout.items
    one = items[i]
    if one >= 0:
        if place[one] >= 0:
            return and_between(words, given, planes, place[one], place[items[i + 1]], words, to)
        copy_bits(planes, NOBODY, words, SOME)
        or_stretch(b, words, one, items[i + 1])
    elif one < -1 and place[items[i + 3]] >= 0:
        return and_listed(words, given, planes, place.ctypes.data, items.ctypes.data, i + 3, ~one, words, to)
    else:
        ask_odd(layout.predicates, e, b, w, items[i + 2], items[i + 1], given)
    return and_both(words, given, words, SOME, words, to)


@inline
def ask_odd(p, e, b, w, a, predicate, given):
    """Writes to SOME the events in `given`, or more, that satisfy a predicate on several values or with a pattern."""
    words, planes, place, base, flags = w.words, b.planes, b.place, b.starts[a], p.flags[predicate]
    at, plane_at = words.ctypes.data, planes.ctypes.data
    copy_bits(plane_at, NOBODY, at, SOME)
    if b.present[a] == 0:
        pass
    elif b.several[a] and flags & codes.ALL_VALUES:
        every_value(p, b, at, a, predicate)
    else:
        for r in range(p.run_offsets[predicate], p.run_offsets[predicate + 1]):
            one, other = base + p.run_low[r], base + p.run_high[r] + 1
            if b.several[a]:
                or_stretch(b, at, one, other)
            else:
                xor_bits(plane_at, place[one], at, SOME)
                xor_bits(plane_at, place[other], at, SOME)
    if flags & codes.RESIDUAL:
        and_bits(at, given, at, SOME)
        ask_texts(p, e, b, w, a, predicate)
    if flags & codes.ABSENT_HOLDS:
        for word in range(WORDS):
            without = planes[WORDS * EVERYONE + word] & ~planes[WORDS * np.int64(b.present[a]) + word]
            words[WORDS * SOME + word] |= without


@inline
def or_stretch(b, words, one, other):
    """Adds to SOME the events that have one of several values in the slots from `one` to the one before `other`."""
    planes, place = b.planes.ctypes.data, b.place
    for plane in range(~place[one], ~place[other - 1] + 1):
        or_bits(planes, plane, words, SOME)


@inline
def every_value(p, b, words, a, predicate):
    """Writes to SOME the events that have the attribute and no value outside the predicate's spaces."""
    planes, base = b.planes.ctypes.data, b.starts[a]
    spaces = b.starts[a + 1] - base - 1
    copy_bits(planes, NOBODY, words, SOME)
    inside = 0
    for r in range(p.run_offsets[predicate], p.run_offsets[predicate + 1]):
        if inside < p.run_low[r]:
            or_stretch(b, words, base + inside, base + p.run_low[r])
        inside = p.run_high[r] + 1
    if inside < spaces:
        or_stretch(b, words, base + inside, base + spaces)
    copy_bits(words, SOME, words, OUTSIDE)
    copy_bits(planes, b.present[a], words, SOME)
    but_bits(words, OUTSIDE, words, SOME)


@inline
def ask_texts(p, e, b, w, a, predicate):
    """Removes from SOME the events whose values do not satisfy a predicate with a pattern."""
    words = w.words
    for word in range(WORDS):
        left = words[WORDS * SOME + word]
        while left:
            bit = left & (~left + np.uint64(1))
            left ^= bit
            event = 64 * word + np.int64(trailing_zeros(bit))
            low, high = b.entry_start[a], b.entry_stop[a]
            while low < high:  # the first entry of the event
                middle = (low + high) >> 1
                if b.event[b.order[middle]] < event:
                    low = middle + 1
                else:
                    high = middle
            n = 0
            while low < b.entry_stop[a] and b.event[b.order[low]] == event:
                j = b.order[low]
                e.at_low[n], e.at_high[n], e.at_text[n] = b.low[j], b.high[j], b.text[j]
                n += 1
                low += 1
            if not holds(p, predicate, e, 0, n):
                words[WORDS * SOME + word] ^= bit


@inline
def and_row(layout, e, b, w, row, given, to):
    """Writes to `to` the events in `given` that satisfy a conjunction. Returns whether there are any."""
    words = w.words.ctypes.data
    left = True
    i = layout.row_offsets[row]
    while left and i < layout.row_offsets[row + 1]:
        left = and_item(layout, e, b, w, i, given, to)
        given = to
        i += 2 if layout.items[i] >= 0 else 3 + ~layout.items[i]
    if given != to and left:
        left = copy_bits(words, given, words, to)
    w.counters[2] += 1
    return left


@inline
def ask_program(layout, e, b, w, start):
    """Writes to VALUE the events in ROW that satisfy a program. Returns whether there are any.

    A tree under way has a frame: its kind, how many children are left, where it ends, and for the call of a part which
    one; and two values: the events that it is still asked about and, of an OR, those that some child has satisfied.
    """
    code, frames, rows = layout.code, w.frames, layout.sizes[ROWS]
    words, bits, planes = w.words.ctypes.data, w.part_bits.ctypes.data, b.planes.ctypes.data
    depth = 0
    at = start
    given = np.int64(ROW)
    left = True
    while True:
        token = np.int64(code[at])
        own = FRAMES + 2 * depth
        if token < 0:
            frames[depth, 0], frames[depth, 1], frames[depth, 2] = (-token) & 1, (-token) >> 1, at + code[at + 1]
            copy_bits(words, given, words, own)
            copy_bits(planes, NOBODY, words, own + 1)
            given = own
            depth += 1
            at += 2
            continue
        at += 1
        if token < rows:
            left = and_row(layout, e, b, w, token, given, RESULT)
        elif w.part_state[token - rows] == KNOWN:
            copy_bits(words, given, words, RESULT)
            left = and_bits(bits, token - rows, words, RESULT)
        else:
            frames[depth, 0], frames[depth, 1], frames[depth, 2], frames[depth, 3] = CALL, 1, at, token - rows
            copy_bits(words, given, words, own)
            given = np.int64(EVERY)
            depth += 1
            at = layout.part_offsets[token - rows]
            continue
        # Pass the value on to the trees that it ends, and then to the one that has another child to ask.
        while depth:
            kind, own = frames[depth - 1, 0], FRAMES + 2 * (depth - 1)
            frames[depth - 1, 1] -= 1
            another = frames[depth - 1, 1] > 0
            if kind == AND:
                if another and left:
                    copy_bits(words, RESULT, words, own)
                    given = own
                    break
            elif kind == OR:
                if left:
                    or_bits(words, RESULT, words, own + 1)
                    another = but_bits(words, RESULT, words, own) and another
                if another:
                    given = own
                    break
                left = copy_bits(words, own + 1, words, RESULT)
            else:
                part = frames[depth - 1, 3]
                see_part(w, part, KNOWN)
                copy_bits(words, RESULT, bits, part)
                left = and_bits(words, own, words, RESULT)
            at = frames[depth - 1, 2]
            depth -= 1
        if depth == 0:
            copy_bits(words, RESULT, words, VALUE)
            return left
