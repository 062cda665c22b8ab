"""Rules in `pst-bloom` (the PS-Tree paper §5.1, §5.2): in the lists of one predicate's spaces, in the signatures of
others'.

    posting    words[o]    entries, words of the block
               halves      for each entry: link of the rule's row; the lines of its signatures, NO_LINE: none

A row lies alone, and where it lies never changes: link is half of that. The paper has every other predicate in the
signatures. Here it is the one that fewest events satisfy, or a few: each costs bytes in every entry and member and a
look at one more signature, and what the first leaves is little. A predicate that covers many spaces is there by its
attribute alone (the line PRESENT), which needs no signature.
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.access_predicates import beside
from eligo.index.ps_tree.cover import check_on, count_access, cover, guarantees, hold
from eligo.index.ps_tree.lines import PRESENT
from eligo.index.ps_tree.pools import ACCESSES, ALWAYS, BY_DEPTH, COPIES
from eligo.index.ps_tree.postings import arranged
from eligo.index.ps_tree.signatures import add_member, drop_member
from eligo.index.rows.allocator import give_block, heap_class, heap_words, move_block, take_block
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.index.rows.packed_predicate import row_words
from eligo.jit import kernel

NO_LINE = 15  # no attribute has a line of this form
FEW_SPACES = 8  # that a predicate may cover to be in signatures


@kernel
def lines_of_entry(options, weights, weighed, lines, n, most):
    """Choose the lines of signatures, behind that of the access predicate, of which there are n."""
    for i in range(1, most + 1):
        lines[i] = -1
    for i in range(1, most + 1 if n else 1):
        lines[i] = beside(options, weights, weighed, lines, i, FEW_SPACES)
        if lines[i] < 0:
            return


@kernel
def add_entry(t, s, link, lines):
    words, halves, each = t.words, t.halves, t.state[ACCESSES] + 1
    o = t.posting[s]
    if o == 0:
        o = take_block(words, t.heads, 1 + (each + 1) // 2)
        words[o] = pair(0, heap_words(heap_class(1 + (each + 1) // 2)))
        t.posting[s] = o
    count, room = upper(words[o]), lower(words[o])
    if (count + 1) * each > 2 * (room - 1):
        size = room + max(room // 4, (each + 1) // 2)
        o, room = move_block(words, t.heads, o, room, room, size), heap_words(heap_class(size))
        t.posting[s] = o
    to = 2 * (o + 1) + count * each
    halves[to] = link
    for i in range(1, each):
        halves[to + i] = lines[i] if lines[i] >= 0 else NO_LINE
    words[o] = pair(count + 1, room)
    t.state[COPIES] += 1


@kernel
def drop_entry(t, s, link):
    words, halves, each = t.words, t.halves, t.state[ACCESSES] + 1
    o = t.posting[s]
    if o == 0:
        return
    count, first = upper(words[o]), 2 * (o + 1)
    for i in range(count - 1, -1, -1):
        if halves[first + i * each] == link:
            for j in range(each):
                halves[first + i * each + j] = halves[first + (count - 1) * each + j]
            count -= 1
            t.state[COPIES] -= 1
            words[o] = pair(count, lower(words[o]))
            break
    if count == 0:
        give_block(words, t.heads, o, lower(words[o]))
        t.posting[s] = 0


@kernel
def keep_row(t, out, size, number):
    """Give a row a place of its own, or change the one that it has; its link."""
    o = 2 * np.int64(t.where[number])
    if o <= 0:
        o = take_block(t.words, t.heads, size)
        t.where[number] = o // 2
    for i in range(size):
        t.words[o + i] = out[i]
    return o // 2


@kernel
def drop_row(t, number):
    o = 2 * np.int64(t.where[number])
    give_block(t.words, t.heads, o, row_words(t.words, o))
    t.where[number] = -1


@kernel
def place_entries(t, row, at, strings, spaces, out):
    number, most = row[at] >> 32, t.state[ACCESSES]
    lines = t.access[number * (most + 1) : (number + 1) * (most + 1)]
    guaranteed, sure = np.empty(1, np.int64), 0
    n = np.int64(0)
    if lines[0] < 0:
        spaces[0, 0], n = ALWAYS, np.int64(1)
        t.state[BY_DEPTH] += 1
    else:
        line = np.int64(lines[0])
        q = check_on(row, at, line)
        n = cover(t, row, q, line, strings, spaces[0])
        first, behind = hold(t, row, q, line, strings, n, spaces[0], 1)
        t.state[BY_DEPTH + 1] += 1
        count_access(t, line, 1)
        if guarantees(t, row, q, line, first, behind):
            guaranteed[0], sure = q, 1
    link = keep_row(t, out, arranged(row, at, guaranteed, sure, out), number)
    for i in range(n):
        add_entry(t, spaces[0, i], link, lines)
    for j in range(1, most + 1):
        line = np.int64(lines[j])
        if line >= 0 and line & 15 != PRESENT:
            q = check_on(row, at, line)
            n = cover(t, row, q, line, strings, spaces[0])
            hold(t, row, q, line, strings, n, spaces[0], 1)
            for i in range(n):
                add_member(t, spaces[0, i], link)


@kernel
def unplace_entries(t, row, at, strings, spaces):
    number, most = row[at] >> 32, t.state[ACCESSES]
    lines = t.access[number * (most + 1) : (number + 1) * (most + 1)]
    link = np.int64(t.where[number])
    if lines[0] < 0:
        drop_entry(t, ALWAYS, link)
        t.state[BY_DEPTH] -= 1
    for j in range(most + 1):
        line = np.int64(lines[j])
        if line < 0 or (j and line & 15 == PRESENT):
            continue
        q = check_on(row, at, line)
        n = cover(t, row, q, line, strings, spaces[0])
        hold(t, row, q, line, strings, n, spaces[0], -1)
        for i in range(n):
            if j == 0:
                drop_entry(t, spaces[0, i], link)
            else:
                drop_member(t, spaces[0, i], link)
        if j == 0:
            t.state[BY_DEPTH + 1] -= 1
            count_access(t, line, -1)


@kernel
def gathered_members(t, s, most):
    """Copies of the rows in the list or the signature of a space, and where each of them begins; or, if there are more
    than so many, nothing but a count below 0.
    """
    words, halves, each = t.words, t.halves, t.state[ACCESSES] + 1
    entries = upper(words[t.posting[s]]) if t.posting[s] else 0
    members = upper(words[t.uses[s]]) if t.uses[s] else 0
    if entries + members > most:
        return words[:0].copy(), words[:0].copy(), -1
    starts, total = np.empty(most + 1, np.int64), 0
    for i in range(entries + members):
        o = 2 * np.int64(
            halves[2 * (t.posting[s] + 1) + i * each] if i < entries else halves[2 * (t.uses[s] + 1) + i - entries]
        )
        starts[i] = o
        total += row_words(words, o)
    copies, to = np.empty(total, np.int64), 0
    for i in range(entries + members):
        o, begin = starts[i], to
        for j in range(row_words(words, o)):
            copies[to] = words[o + j]
            to += 1
        starts[i] = begin
    return copies, starts, entries + members
