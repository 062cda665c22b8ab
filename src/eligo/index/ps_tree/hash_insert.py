"""Rules in `pst-hash` (the PS-Tree paper §6.2): access predicates, their spaces, a key for each combination."""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.cover import check_on, count_access, cover, guarantees, hold
from eligo.index.ps_tree.keys import drop_block, find_block, find_slot, moved_block, new_block, next_turn
from eligo.index.ps_tree.pools import ACCESSES, ALWAYS, BY_DEPTH, COPIES, CROWD
from eligo.index.ps_tree.postings import append_row, arranged, directory_of, remove_row, rows_in
from eligo.index.ps_tree.spaces import count_predicate
from eligo.index.rows.int_pair import lower, upper
from eligo.index.rows.packed_predicate import row_words
from eligo.jit import kernel


@kernel
def place_keys(t, row, at, strings, spaces, out):
    """Put a row into the blocks of its keys."""
    number, most = row[at] >> 32, t.state[ACCESSES]
    lines = t.access[number * (most + 1) : (number + 1) * (most + 1)]
    counts, guaranteed = np.zeros(most, np.int64), np.empty(most + 1, np.int64)
    sure, n, beside_it = 0, 0, np.int64(ALWAYS)
    if lines[most] >= 0:
        line = np.int64(lines[most])
        q = check_on(row, at, line)
        cover(t, row, q, line, strings, spaces[0])
        beside_it = spaces[0, 0]
        count_predicate(t, beside_it, 1)
        if guarantees(t, row, q, line, np.int64(-1), np.int64(-1)):
            guaranteed[0] = q
            sure = 1
    while n < most and lines[n] >= 0:
        line = np.int64(lines[n])
        q = check_on(row, at, line)
        counts[n] = cover(t, row, q, line, strings, spaces[n])
        first, behind = hold(t, row, q, line, strings, counts[n], spaces[n], 1)
        count_access(t, line, 1)
        if guarantees(t, row, q, line, first, behind):
            guaranteed[sure] = q
            sure += 1
        n += 1
    size = arranged(row, at, guaranteed, sure, out)
    t.state[BY_DEPTH + n] += 1
    if n == 0:
        counts[0], spaces[0, 0], n = 1, ALWAYS, 1
    combine(t, lines, n, counts, spaces, out, size, number, beside_it)


@kernel
def combine(t, lines, n, counts, spaces, out, size, number, beside_it):
    """For all combinations of spaces: add the row out[:size] to their block, or, size 0, take a conjunction's out."""
    some, turn = np.empty(n, np.int64), np.zeros(n, np.int64)
    while True:
        for i in range(n):
            some[i] = spaces[i, turn[i]]
        o, key = find_block(t, some, n)
        if size:
            if o == 0:
                o = new_block(t, some, lines, n, key, size)
            moved = append_row(t, o, out, size, beside_it)
            if moved != o:
                moved_block(t, key, moved)
            t.state[COPIES] += 1
        elif o:
            moved = remove_row(t, o, number)
            if moved < 0:
                drop_block(t, some, lines, n, key)
            elif moved != o:
                moved_block(t, key, moved)
            t.state[COPIES] -= 1
        if not next_turn(turn, counts, n):
            return


@kernel
def unplace_keys(t, row, at, strings, spaces):
    """Take a row, given as a copy, out of the blocks of its keys."""
    number, most = row[at] >> 32, t.state[ACCESSES]
    lines = t.access[number * (most + 1) : (number + 1) * (most + 1)]
    counts, n = np.zeros(most, np.int64), 0
    if lines[most] >= 0:
        line = np.int64(lines[most])
        cover(t, row, check_on(row, at, line), line, strings, spaces[0])
        count_predicate(t, spaces[0, 0], -1)
    while n < most and lines[n] >= 0:
        line = np.int64(lines[n])
        q = check_on(row, at, line)
        counts[n] = cover(t, row, q, line, strings, spaces[n])
        hold(t, row, q, line, strings, counts[n], spaces[n], -1)
        count_access(t, line, -1)
        n += 1
    t.state[BY_DEPTH + n] -= 1
    if n == 0:
        counts[0], spaces[0, 0], n = 1, ALWAYS, 1
    combine(t, lines, n, counts, spaces, row, 0, number, np.int64(ALWAYS))
    t.where[number] = -1


@kernel
def gathered_keys(t, s, most):
    """Copies of the rows that are found by a space of ranges, one for each conjunction, and where each of them begins;
    or, if there are more than so many, nothing but a count below 0.
    """
    words = t.words
    blocks, n, total = np.empty(most + 2, np.int64), 0, 0
    if t.posting[s]:
        blocks[0] = t.posting[s]
        n = 1
    if t.uses[s]:
        o = t.uses[s]
        if upper(words[o]) > most:
            return words[:0].copy(), blocks[:0].copy(), -1
        for i in range(1, upper(words[o]) + 1):
            blocks[n] = t.slots[find_slot(t.slots, words[o + i]) + 1]
            n += 1
    for i in range(n):
        total += upper(words[blocks[i]])
    copies, starts, count, to = np.empty(total, np.int64), np.empty(most + 1, np.int64), 0, 0
    for i in range(n):
        d = directory_of(t, blocks[i])
        for r in range(1, rows_in(t, blocks[i]) + 1):
            at = blocks[i] + lower(words[d + r])
            size, fresh = row_words(words, at), True
            for j in range(count):
                fresh = fresh and copies[starts[j]] >> 32 != words[at] >> 32
            if fresh:
                if count == most:
                    return words[:0].copy(), blocks[:0].copy(), -1
                starts[count] = to
                count += 1
                for j in range(size):
                    copies[to] = words[at + j]
                    to += 1
    return copies, starts, count


@kernel
def is_crowded(t, row, at, lines, n, strings, spaces):
    """Whether a block of the spaces that a row covers on n lines has so many rules that a further one is needed."""
    counts, some, turn = np.zeros(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
    for i in range(n):
        line = np.int64(lines[i])
        counts[i] = cover(t, row, check_on(row, at, line), line, strings, spaces[i])
    while True:
        for i in range(n):
            some[i] = spaces[i, turn[i]]
        o, _ = find_block(t, some, n)
        if o and rows_in(t, o) >= t.state[CROWD]:
            return True
        if not next_turn(turn, counts, n):
            return False
