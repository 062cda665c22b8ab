"""Which rules each event of a block satisfies.

First the clusters: of every access predicate that some event satisfies, the rows, each the AND of its predicates with
an early end. What a row opens is a rule, whose events are noted at once, or a part, which gathers the events of all
its gates. Then the parts in ascending order: when one is reached all its gates have been, so what it has gathered is
what it is. A part that a program asks about before is evaluated in full, once.

    layout     the rules (layout.py)                 b    the block (block.py)
    w.words    room for bits: SOURCE, ROW, … and behind them two for each tree of a program under way
    w.hits     chunks of HITS rules of one event each: hit_at[event] is where the next goes, hit_next[chunk] the next
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.batch.block import EVERYONE, NOBODY, fill_block
from eligo.batch.layout import DEPTH, PARTS, ROWS, RULES
from eligo.batch.words import (
    EVENTS,
    WORDS,
    and_between,
    and_bits,
    and_both,
    and_listed,
    but_bits,
    copy_bits,
    or_bits,
    prefetch,
    xor_bits,
)
from eligo.compile import codes
from eligo.compile.compiled import I64, Arrays, grown
from eligo.compile.predicates import holds
from eligo.evaluate.straight import mark, take_marked
from eligo.jit import handle, inline, kernel, trailing_zeros

SOURCE, ROW, VALUE, SOME, OUTSIDE, RESULT, EVERY, FRAMES = 0, 1, 2, 3, 4, 5, 6, 7  # in w.words
HITS = 128
QUEUE = 128
AHEAD = 256  # items that are fetched before they are needed
SEEN, QUEUED = 1, 2  # in w.chunks, behind their number: parts seen, rows in the queue
FEW = 32  # rules of an event that are sorted by comparing

UNKNOWN, GATHERED, KNOWN = 0, 1, 2  # states of a part
AND, OR, CALL = 0, 1, 2  # kinds of a frame

# The memory of one search as one argument of kernels.
make_batch_scratch = handle(
    "BatchScratchHandle",
    (
        "words", "frames", "part_bits", "part_state", "parts_seen", "part_marks", "hits", "hit_next", "hit_first",
        "hit_at", "chunks", "marked", "marked_words", "few", "found", "counters",
        "queue", "queue_row", "queue_at", "done", "done_row",
    ),
)  # fmt: skip


def new_scratch(layout: Arrays, counters: I64) -> Any:
    """Memory for one block at a time. `counters`: rows looked at, predicates evaluated, rows that trees asked about."""
    sizes = layout["sizes"]
    rules, parts, depth = int(sizes[RULES]), int(sizes[PARTS]), int(sizes[DEPTH])
    return make_batch_scratch(
        np.zeros((FRAMES + 2 * depth) * WORDS, np.uint64),
        np.zeros((depth, 4), np.int64),
        np.zeros(parts * WORDS, np.uint64),
        np.zeros(parts, np.uint8),
        np.zeros(parts, np.int32),
        np.zeros((parts + 63) // 64, np.uint64),
        np.zeros(4 * EVENTS * HITS, np.int32),
        np.zeros(4 * EVENTS, np.int32),
        np.zeros(EVENTS, np.int32),
        np.zeros(EVENTS, np.int64),
        np.zeros(3, np.int64),
        np.zeros((rules + 63) // 64, np.uint64),
        np.zeros((rules + 4095) // 4096, np.uint64),
        np.zeros(FEW, np.int32),
        np.zeros(1024, np.int32),
        counters,
        np.zeros((QUEUE + 1) * WORDS, np.uint64),
        np.zeros(QUEUE + 1, np.int32),
        np.zeros(QUEUE + 1, np.int64),
        np.zeros(QUEUE * WORDS, np.uint64),
        np.zeros(QUEUE, np.int32),
    )


@kernel
def match_block(layout, e, first, count, b, w, allowed, ends):
    """Puts the rules that `count` events satisfy, from event `first` on, behind those of the events before, which end
    at ends[first]; returns all of them, in memory that the next call writes to. Rules of an event i are in ascending
    order and end at ends[i + 1]. `allowed` has a byte for each rule, 0 for those to leave out, or none.
    """
    fill_block(layout.spaces, e, first, count, b)
    begin_block(count, w)
    words, planes = w.words.ctypes.data, b.planes.ctypes.data
    copy_bits(planes, EVERYONE, words, EVERY)
    items, place = layout.items, b.place
    range_offsets, equal_offsets = layout.range_offsets, layout.equal_offsets
    for i in range(b.plane_count[1]):
        a = b.attributes[i]
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
                    match_rows(layout, e, b, w, equal_offsets[slot], equal_offsets[slot + 1], 1)
        for k in range(layout.range_start[a], layout.range_start[a + 1]):
            i = layout.row_offsets[range_offsets[k]]  # the access predicate is the first of each of its rows
            one, other = items[i], items[i + 1]
            if one >= 0 and place[one] >= 0:
                some = and_between(words, EVERY, planes, place[one], place[other], words, SOURCE)
            else:
                some = and_item(layout, e, b, w, i, EVERY, SOURCE)
            if some:
                match_rows(layout, e, b, w, range_offsets[k], range_offsets[k + 1], 1)
        w.counters[1] += layout.range_start[a + 1] - layout.range_start[a]
    copy_bits(planes, EVERYONE, words, SOURCE)
    match_rows(layout, e, b, w, range_offsets[len(range_offsets) - 2], range_offsets[len(range_offsets) - 1], 0)
    match_queue(layout, e, b, w)
    if layout.sizes[PARTS]:
        match_parts(layout, e, b, w)
    found = collect_hits(first, count, w, allowed, ends)
    return w.found[:found]


@inline
def begin_block(count, w):
    for event in range(count):
        w.hit_first[event] = 0
        w.hit_at[event] = 0
    w.chunks[0] = 1
    w.chunks[QUEUED] = 0


@inline
def match_rows(layout, e, b, w, first, stop, skipped):
    """Matches rows of which all events in SOURCE satisfy the first `skipped` predicates.

    The first predicate after these is asked here, and what is left is put in a queue, so that others can be asked of
    many rows in turn. There is no branch that depends on what is left: it would be mispredicted every other time, and
    the processor would wait for one row's memory after another.
    """
    row_offsets, items, place = layout.row_offsets, layout.items, b.place
    planes, words, queue = b.planes.ctypes.data, w.words.ctypes.data, w.queue.ctypes.data
    queue_row, queue_at = w.queue_row, w.queue_at
    items_at = items.ctypes.data
    n = w.chunks[QUEUED]
    for row in range(first, stop):
        i = row_offsets[row]
        ahead = items_at + 4 * (i + AHEAD)
        prefetch(ahead)
        prefetch(ahead + 64)
        if skipped:
            i += 2 if items[i] >= 0 else 3 + ~items[i]
        if i == row_offsets[row + 1]:
            left = copy_bits(words, SOURCE, queue, n)
        else:
            one, other = items[i], items[i + 1]
            if one >= 0 and place[one] >= 0:
                left = and_between(words, SOURCE, planes, place[one], place[other], queue, n)
                i += 2
            else:
                left = and_item(layout, e, b, w, i, SOURCE, ROW)
                copy_bits(words, ROW, queue, n)
                i += 2 if one >= 0 else 3 + ~one
        queue_row[n] = row
        queue_at[n] = i
        n += np.int64(left)
        if n == QUEUE:
            w.chunks[QUEUED] = n
            match_queue(layout, e, b, w)
            n = 0
    w.chunks[QUEUED] = n
    w.counters[0] += stop - first


@inline
def match_queue(layout, e, b, w):
    """Asks all that is left to ask of the rows in the queue, a predicate of each at a time; opens what they open."""
    row_offsets, items, place = layout.row_offsets, layout.items, b.place
    planes, words = b.planes.ctypes.data, w.words.ctypes.data
    queue, done = w.queue.ctypes.data, w.done.ctypes.data
    place_at, items_at = place.ctypes.data, items.ctypes.data
    queue_row, queue_at, done_row = w.queue_row, w.queue_at, w.done_row
    n = w.chunks[QUEUED]
    evaluated = n
    finished = 0
    while n:
        kept = 0
        for j in range(n):
            row, i = queue_row[j], queue_at[j]
            if i == row_offsets[row + 1]:
                copy_bits(queue, j, done, finished)
                done_row[finished] = row
                finished += 1
                continue
            one, other = items[i], items[i + 1]
            if one >= 0 and place[one] >= 0:
                left = and_between(queue, j, planes, place[one], place[other], queue, kept)
                i += 2
            elif one < -1 and place[items[i + 3]] >= 0:
                left = and_listed(queue, j, planes, place_at, items_at, i + 3, ~one, queue, kept)
                i += 3 + ~one
            else:
                copy_bits(queue, j, words, ROW)
                left = and_item(layout, e, b, w, i, ROW, ROW)
                copy_bits(words, ROW, queue, kept)
                i += 2 if one >= 0 else 3 + ~one
            queue_row[kept] = row
            queue_at[kept] = i
            kept += np.int64(left)
            evaluated += 1
        n = kept
    w.chunks[QUEUED] = 0
    w.counters[1] += evaluated
    if finished:
        open_done(layout, e, b, w, finished)


@inline
def open_done(layout, e, b, w, finished):
    """Opens what rows open, of which `done` has the events."""
    # So many chunks more can be begun at most.
    most = w.chunks[0] + 2 * EVENTS
    if most * HITS > len(w.hits):
        w.hits = grown(w.hits, most * HITS)
        w.hit_next = grown(w.hit_next, len(w.hits) // HITS)
    opens, opened, program = layout.opens, layout.opened, layout.program
    hits, hit_at, hit_next, hit_first, chunks = w.hits, w.hit_at, w.hit_next, w.hit_first, w.chunks
    done, done_row = w.done, w.done_row
    others = False
    for j in range(finished):
        row = done_row[j]
        k = opens[row]
        if opens[row + 1] != k + 1 or program[k] >= 0 or opened[k] < 0:
            others = True
            continue
        for word in range(WORDS):
            left = done[WORDS * j + word]
            while left:
                event = 64 * word + np.int64(trailing_zeros(left))
                left &= left - np.uint64(1)
                at = hit_at[event]
                if at & (HITS - 1) == 0:
                    chunk = chunks[0]
                    chunks[0] += 1
                    if at:
                        hit_next[(at - 1) // HITS] = chunk
                    else:
                        hit_first[event] = chunk
                    at = chunk * HITS
                hits[at] = opened[k]
                hit_at[event] = at + 1
    if others:
        words = w.words.ctypes.data
        for j in range(finished):
            row = done_row[j]
            k = opens[row]
            if opens[row + 1] != k + 1 or program[k] >= 0 or opened[k] < 0:
                copy_bits(w.done.ctypes.data, j, words, ROW)
                open_units(layout, e, b, w, row)


@inline
def open_units(layout, e, b, w, gate):
    """Notes the events in ROW for all units that a gate opens."""
    for k in range(layout.opens[gate], layout.opens[gate + 1]):
        value = ROW
        if layout.program[k] >= 0:
            if not ask_program(layout, e, b, w, layout.program[k]):
                continue
            value = VALUE
        unit = layout.opened[k]
        if unit >= 0:
            note_hits(w, unit, value)
        else:
            gather(w, ~unit, value)


@inline
def gather(w, part, value):
    """Adds events to those of a part, unless it is known already."""
    if w.part_state[part] == KNOWN:
        return
    bits, words = w.part_bits.ctypes.data, w.words.ctypes.data
    if w.part_state[part] == UNKNOWN:
        see_part(w, part, GATHERED)
        copy_bits(words, value, bits, part)
    else:
        or_bits(words, value, bits, part)


@inline
def see_part(w, part, state):
    if w.part_state[part] == UNKNOWN:
        w.parts_seen[w.chunks[SEEN]] = part
        w.chunks[SEEN] += 1
        w.part_marks[part >> 6] |= np.uint64(1) << np.uint64(part & 63)
    w.part_state[part] = state


@inline
def match_parts(layout, e, b, w):
    """Opens what the parts open, in ascending order; what one opens stands behind it."""
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
                open_units(layout, e, b, w, rows + part)
    for i in range(w.chunks[SEEN]):
        part = w.parts_seen[i]
        w.part_state[part] = UNKNOWN
        marks[part >> 6] = 0
    w.chunks[SEEN] = 0


@inline
def note_hits(w, rule, value):
    """Writes a rule to the lists of the events in a value."""
    if (w.chunks[0] + EVENTS) * HITS > len(w.hits):
        w.hits = grown(w.hits, (w.chunks[0] + EVENTS) * HITS)
        w.hit_next = grown(w.hit_next, len(w.hits) // HITS)
    hits, hit_at, words = w.hits, w.hit_at, w.words
    for word in range(WORDS):
        left = words[WORDS * value + word]
        while left:
            event = 64 * word + np.int64(trailing_zeros(left))
            left &= left - np.uint64(1)
            at = hit_at[event]
            if at & (HITS - 1) == 0:
                at = new_chunk(w, event, at)
            hits[at] = rule
            hit_at[event] = at + 1


@inline
def new_chunk(w, event, at):
    """Begins another chunk of an event, of which the last ends at `at`, 0 if there is none; where it begins."""
    chunk = w.chunks[0]
    w.chunks[0] += 1
    if at:
        w.hit_next[(at - 1) // HITS] = chunk
    else:
        w.hit_first[event] = chunk
    return chunk * HITS


@inline
def and_item(layout, e, b, w, i, given, to):
    """Writes to `to` the events of a value `given` that satisfy the predicate at items[i], whatever it is; whether
    there are any.
    """
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
    """Writes to SOME the events that satisfy a predicate on several values or with a pattern; of those in `given`."""
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
    """Leaves in SOME the events whose values satisfy a predicate with a pattern."""
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
    """Writes to `to` the events of a value `given` that satisfy a conjunction; whether there are any."""
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
    """Writes to VALUE the events in ROW that satisfy a program; whether there are any.

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
        # A value has come: to the trees that it ends, and then to the one that has another child to ask.
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


@inline
def collect_hits(first, count, w, allowed, ends):
    """Puts the rules of all events into w.found, ascending and each once; how many."""
    all_allowed = len(allowed) == 0
    marked, marked_words, few = w.marked, w.marked_words, w.few
    k = ends[first]
    for event in range(count):
        end = w.hit_at[event]
        chunk = w.hit_first[event]
        hits = 0
        if end:
            last = (end - 1) // HITS
            while chunk != last:
                hits += HITS
                chunk = w.hit_next[chunk]
            hits += end - last * HITS
        if k + hits > len(w.found):
            w.found = grown(w.found, k + hits)
        found, pool, following = w.found, w.hits, w.hit_next
        chunk = w.hit_first[event]
        if hits <= FEW:
            n = 0
            for i in range(chunk * HITS, chunk * HITS + hits):
                rule = pool[i]
                j = n
                while j > 0 and few[j - 1] > rule:
                    j -= 1
                if j > 0 and few[j - 1] == rule:
                    continue
                for m in range(n, j, -1):
                    few[m] = few[m - 1]
                few[j] = rule
                n += 1
            for i in range(n):
                if all_allowed or allowed[few[i]]:
                    found[k] = few[i]
                    k += 1
        else:
            left = hits
            while left > 0:
                for i in range(chunk * HITS, chunk * HITS + min(left, HITS)):
                    mark(marked, marked_words, np.int64(pool[i]))
                left -= HITS
                chunk = following[chunk]
            k = take_marked(marked, marked_words, allowed, found, k)
        ends[first + event + 1] = k
    return k
