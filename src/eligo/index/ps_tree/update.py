"""Rules come and go (the PS-Tree paper Algorithms 4 and 6): their predicates' spaces are made, cut, joined and
forgotten.

    place      a row with known lines: covers spaces, holds borders, is found there (hash_insert.py, bloom_insert.py)
    unplace    the opposite; no space goes yet
    widen      cut the spaces in which bounds of the row lie
    narrow     forget values that no rule names, and borders that no predicate holds

What a space has is taken away before it is cut and placed anew afterwards, in both parts (§6.2: the records of the old
space are copied).
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.access_predicates import beside, choose, note_row, weigh
from eligo.index.ps_tree.bloom_insert import (
    FEW_SPACES,
    drop_row,
    gathered_members,
    lines_of_entry,
    place_entries,
    unplace_entries,
)
from eligo.index.ps_tree.cover import (
    CROWDED,
    MOST_AT_ALL,
    MOST_COVERED,
    base_form,
    borders_at,
    check_on,
    cover,
    covered,
    ends,
    is_coarse,
    most_spaces,
)
from eligo.index.ps_tree.hash_insert import gathered_keys, is_crowded, place_keys, unplace_keys
from eligo.index.ps_tree.lines import TEXT, is_range, point_at, text_cuts
from eligo.index.ps_tree.nodes import LAST
from eligo.index.ps_tree.pools import (
    ACCESSES,
    AT_ROW,
    BEGAN,
    COPIES,
    EVENTS,
    HIGHEST,
    LONGEST,
    MOST_KEYS,
    MOVED,
    ROUNDS,
    ROWS,
    SIGNATURES,
    SLOTS,
    WANTED,
    has_room,
    least_words,
    may_move,
)
from eligo.index.ps_tree.postings import directory_of, row_in
from eligo.index.ps_tree.reserve import moving_words, placing_words
from eligo.index.ps_tree.spaces import (
    before_space,
    close_line,
    cut,
    drop_point,
    is_layer,
    is_void,
    join,
    open_line,
    predicates_of,
    space_at,
)
from eligo.index.ps_tree.string_trie import close_layers, cut_text, locate_text
from eligo.index.rows.content import copying
from eligo.index.rows.int_pair import lower, upper
from eligo.index.rows.packed_predicate import row_words
from eligo.jit import inline, kernel

BETTER = 2.0  # how many times less often other predicates should hold to be worth a move
SOME_EVENTS = 64
HEAVY = 256  # rules of a space that is not cut any more


@kernel
def place(t, row, at, strings, spaces, out):
    """Let a row, whose lines are known, be found by its spaces."""
    if t.state[SIGNATURES]:
        place_entries(t, row, at, strings, spaces, out)
    else:
        place_keys(t, row, at, strings, spaces, out)


@kernel
def unplace(t, row, at, strings, spaces):
    """Removes a row from all spaces that it is found by. It is passed as a copy, because blocks may move."""
    if t.state[SIGNATURES]:
        unplace_entries(t, row, at, strings, spaces)
    else:
        unplace_keys(t, row, at, strings, spaces)


@kernel
def gathered(t, s):
    """Copies of the rows of a space of ranges, one for each conjunction, and where each of them begins; or, if they are
    too many, nothing but a count below 0.
    """
    if t.state[SIGNATURES]:
        return gathered_members(t, s, HEAVY)
    return gathered_keys(t, s, HEAVY)


@kernel
def cut_at(t, line, cell, b, text, strings, spaces, out):
    """Cut a line at a position of a cell or, text >= 0, at a cut of the alphabet, unless too much lies there."""
    state, many = t.state, t.spaces[line] >= most_spaces(line & 15)
    if state[COPIES] > 8 * state[ROWS] + 1024 or t.spaces[line] >= MOST_AT_ALL or (many and is_coarse(line & 15)):
        return
    s, parts = np.int64(0), 2
    begin = end = np.int64(0)
    if text >= 0:
        begin, end = strings.begin[text >> 1], strings.end[text >> 1]
        parts += 2 * ((end - begin) // 7)  # each layer, and what lies before and behind it
        s = locate_text(t, line, strings.data, begin, end, text & 1)
    else:
        s = space_at(t, cell, b)
    if many and predicates_of(t, s) <= CROWDED:
        return
    keys = upper(t.words[t.uses[s]]) if t.uses[s] else 0
    if (
        not state[SIGNATURES]
        and state[ACCESSES] > 1
        and 8 * (state[SLOTS] + (parts - 1) * keys + state[MOST_KEYS] + 8) > 3 * len(t.slots)
    ):
        return  # no room for the keys of all parts just now
    copies, starts, count = gathered(t, s)
    if count < 0:
        return
    needed = moving_words(t, copies, starts, count, line, (parts - 1) * keys, parts, strings, spaces)
    if not may_move(t, needed, parts + 2):
        return  # nor for the rows in all parts
    if many:
        for i in range(count):
            if covered(t, copies, check_on(copies, starts[i], line), line, strings) >= MOST_COVERED:
                return
    for i in range(count):
        unplace(t, copies, starts[i], strings, spaces)
    if text >= 0:
        cut_text(t, line, strings.data, begin, end, text & 1)
    else:
        cut(t, line, cell, b)
    for i in range(count):
        place(t, copies, starts[i], strings, spaces, out)


@kernel
def widen(t, row, at, line, strings, spaces, out):
    """Partition a line at the bounds of a row's range, where that can be done."""
    q = check_on(row, at, line)
    open_line(t, line)
    first, behind = borders_at(t, row, q, line, strings)
    if line & 15 == TEXT:
        low, high = text_cuts(row, q)
        if first < 0 and low >= 0:
            cut_at(t, line, line, np.uint64(0), low, strings, spaces, out)
        if behind < 0 and high >= 0:
            cut_at(t, line, line, np.uint64(0), high, strings, spaces, out)
        return
    begin, end = ends(row, q, base_form(line & 15))
    if first < 0 and begin:
        cut_at(t, line, line, begin, np.int64(-1), strings, spaces, out)
    if behind < 0 and end != np.uint64(LAST):
        cut_at(t, line, line, end + np.uint64(1), np.int64(-1), strings, spaces, out)


@kernel
def settle(t, row, at, strings, spaces, out, chosen, options, weights, patient):
    """Choose the lines of a row and place it: as few as lead to no crowded space. Where there is no room for that, it
    is not placed, which the answer says, or, not `patient`, such that every event looks at it.
    """
    number, most = row[at] >> 32, t.state[ACCESSES]
    lines = t.access[number * (most + 1) : (number + 1) * (most + 1)]
    weighed = weigh(t, row, at, options, weights)
    found = choose(options, weights, weighed, 1 if t.state[SIGNATURES] else most, t.state[MOST_KEYS], chosen)
    n = 0
    while n < found:
        line = np.int64(chosen[n])
        if is_range(line & 15):
            widen(t, row, at, line, strings, spaces, out)
        i = n
        while i > 1 and lines[i - 1] > line:  # behind the first in ascending order
            lines[i] = lines[i - 1]
            i -= 1
        lines[i] = line
        n += 1
        # Estimates may have been wrong: the dearest predicates are then taken by their attributes alone.
        while True:
            keys, dearest, dear = np.int64(1), 0, np.int64(0)
            for j in range(n):
                k = covered(t, row, check_on(row, at, np.int64(lines[j])), np.int64(lines[j]), strings)
                keys *= k
                if k > dear:
                    dearest, dear = j, k
            if keys <= t.state[MOST_KEYS]:
                break
            lines[dearest] &= ~15
        if n < found and not is_crowded(t, row, at, lines, n, strings, spaces):
            break
    for i in range(n, most):
        lines[i] = -1
    if t.state[SIGNATURES]:
        lines_of_entry(options, weights, weighed, lines, n, most)
        for i in range(1, most + 1):
            line = np.int64(lines[i])
            if line >= 0 and is_range(line & 15):
                widen(t, row, at, line, strings, spaces, out)
                if covered(t, row, check_on(row, at, line), line, strings) > 2 * FEW_SPACES:
                    lines[i] &= ~15
    else:
        lines[most] = beside(options, weights, weighed, lines, n, 1)
    needed = placing_words(t, row, at, lines, n, strings, spaces)
    if not may_move(t, needed, 0):
        if patient:
            t.state[WANTED] = needed + least_words(t)
            return False
        for i in range(most + 1):
            lines[i] = -1
    place(t, row, at, strings, spaces, out)
    return True


@inline
def has_row(copies, starts, count, number):
    """Whether one of some rows is that of a conjunction."""
    found = False
    for i in range(count):
        found = found or copies[starts[i]] >> 32 == number
    return found


@kernel
def tidy(t, line, s, strings, spaces, out):
    """Join a space with the one before it, as long as no predicate has a bound between them."""
    while True:
        if not is_layer(t, s) and is_void(t, s):
            before = before_space(t, s)
            copies, starts, count = gathered(t, s)
            if count >= 0:
                others, places, more = gathered(t, before)
                needed = 8 * (len(copies) + len(others) + 16 * (count + max(more, 0) + 1))
                if more >= 0 and may_move(t, needed, 0):
                    for i in range(count):
                        unplace(t, copies, starts[i], strings, spaces)
                    for i in range(more):
                        if not has_row(copies, starts, count, others[places[i]] >> 32):
                            unplace(t, others, places[i], strings, spaces)
                    join(t, line, s)
                    for i in range(count):
                        place(t, copies, starts[i], strings, spaces, out)
                    for i in range(more):
                        if not has_row(copies, starts, count, others[places[i]] >> 32):
                            place(t, others, places[i], strings, spaces, out)
                    s = before
                    continue
        behind = close_layers(t, line, s)
        if behind < 0:
            return
        if not is_layer(t, behind) and is_void(t, behind):
            s = behind


@kernel
def narrow(t, row, at, line, strings, spaces, out):
    """Undo what a row that was taken out leaves without purpose on one of its lines."""
    q = check_on(row, at, line)
    if not is_range(line & 15):
        for i in range(cover(t, row, q, line, strings, spaces[0])):
            s = spaces[0, i]
            if predicates_of(t, s) == 0:
                drop_point(t, line, s)
        return
    for side in range(2):
        first, behind = borders_at(t, row, q, line, strings)
        s = behind if side == 0 else first
        if s >= 0:
            tidy(t, line, s, strings, spaces, out)
    close_line(t, line)


@kernel
def insert_rows(t, words, offsets, first, stop, order, strings, spaces, out, chosen, options, weights):
    """InsertSubscription (Algorithms 4 and 6) for rows first … stop-1 as far as there is room; the first one not
    inserted. With an order, those are rows order[first] …, and `foresee` has noted them.
    """
    for i in range(first, stop):
        r = order[i] if len(order) else i
        if not has_room(t, offsets[r + 1] - offsets[r]):
            return i
        if len(order) == 0:
            note_row(t, words, offsets[r], 1)
        t.state[HIGHEST] = max(t.state[HIGHEST], (words[offsets[r]] >> 32) + 1)
        t.state[LONGEST] = max(t.state[LONGEST], row_words(words, offsets[r]))
        # A copy, so that all that follows is compiled for one kind of array.
        row = words[offsets[r] : offsets[r + 1]].copy()
        if not settle(t, row, np.int64(0), strings, spaces, out, chosen, options, weights, True):
            if len(order) == 0:
                note_row(t, words, offsets[r], -1)
            return i
        t.state[ROWS] += len(order) == 0
    return stop


@kernel
def foresee(t, words, offsets, rows, chosen, options, weights):
    """Note all rows before the first of them is inserted; for each of them a number, about the same for those that will
    be found by the same space.
    """
    for r in range(rows):
        note_row(t, words, offsets[r], 1)
    t.state[ROWS] += rows
    near = np.zeros(rows, np.int64)
    for r in range(rows):
        n = weigh(t, words, offsets[r], options, weights)
        if choose(options, weights, n, 1, t.state[MOST_KEYS], chosen):
            line = chosen[0]
            near[r] = (line + 1) << 32
            q = check_on(words, offsets[r], line)
            if line & 15 and not is_range(line & 15):
                near[r] |= np.int64(point_at(words, q, line & 15, 0) & np.uint64(0xFFFF_FFFF))
    return near


@kernel
def find_row(t, number):
    """Where the row of a conjunction lies, or -1."""
    if not 0 <= number < t.state[HIGHEST] or t.where[number] <= 0:
        return np.int64(-1)
    o = 2 * np.int64(t.where[number])
    if t.state[SIGNATURES]:
        return o
    which = row_in(t, o, number)
    return o + lower(t.words[directory_of(t, o) + which]) if which else np.int64(-1)


copy_rows = copying(find_row)


@inline
def copy_row(t, number):
    """The words of a conjunction's row; none if it is not there."""
    at = find_row(t, number)
    return t.words[at : at + row_words(t.words, at)].copy() if at >= 0 else t.words[:0].copy()


@kernel
def take_away(t, row, strings, spaces, out):
    """Take a row, given as a copy, out of all, and undo what it leaves without purpose."""
    number, most = row[0] >> 32, t.state[ACCESSES]
    unplace(t, row, np.int64(0), strings, spaces)
    if t.state[SIGNATURES]:
        drop_row(t, number)
    for j in range(most + 1):
        line = np.int64(t.access[number * (most + 1) + j])
        if line >= 0:
            narrow(t, row, np.int64(0), line, strings, spaces, out)


@kernel
def delete_rows(t, numbers, first, stop, strings, spaces, out):
    """Delete the rows of conjunctions first … stop-1 of a list, as far as they are there and there is room to move what
    is left; the first one not deleted.
    """
    for i in range(first, stop):
        if not has_room(t, t.state[LONGEST]):
            return i
        row = copy_row(t, numbers[i])
        if len(row) == 0:
            continue
        take_away(t, row, strings, spaces, out)
        note_row(t, row, np.int64(0), -1)
        t.state[ROWS] -= 1
    return stop


@kernel
def adjust_rows(t, effort, strings, spaces, out, chosen, options, weights):
    """Go on looking whether rows would be found better by other predicates, now that more events were seen; whether
    this round is over.
    """
    state = t.state
    if state[AT_ROW] == 0:
        state[BEGAN] = state[EVENTS]
    while effort > 0 and state[AT_ROW] < state[HIGHEST]:
        if not has_room(t, state[LONGEST]):
            return False
        number = state[AT_ROW]
        state[AT_ROW] += 1
        effort -= 1
        if t.where[number] <= 0:
            continue
        row = copy_row(t, number)
        n = weigh(t, row, np.int64(0), options, weights)
        if choose(options, weights, n, 1, state[MOST_KEYS], chosen) == 0:
            continue
        # One that is not among those weighed is kept.
        line, best, mine = np.int64(t.access[number * (state[ACCESSES] + 1)]), 1.0, 0.0
        for i in range(n):
            if options[i] >> 4 == chosen[0] >> 4:
                best = weights[i, 1 if chosen[0] & 15 else 2]
            if options[i] >> 4 == line >> 4:
                mine = weights[i, 1 if line & 15 else 2]
        # What was wide among the ranges known then may be narrow now.
        narrower = is_range(line & 15) and is_coarse(line & 15) and chosen[0] == line - 1
        if narrower or (mine > BETTER * best and chosen[0] != line):
            take_away(t, row, strings, spaces, out)
            settle(t, row, np.int64(0), strings, spaces, out, chosen, options, weights, False)
            state[MOVED] += 1
            effort -= 8
    if state[AT_ROW] < state[HIGHEST]:
        return False
    state[AT_ROW] = 0
    state[ROUNDS] += 1
    return True
