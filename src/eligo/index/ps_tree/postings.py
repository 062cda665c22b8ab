"""Postings of `pst-hash`: rows in blocks, and beside each a space that an event has to lie in (the PS-Tree paper §6.1).

    block        words[o]      words in use, words of the block
                 words[o+1]    key (keys.py); below 0, of three spaces or more, the spaces follow behind the next word
                 words[o+2]    rows of the block, entries that its directory has room for
                 directory     for each row in order: the space of one more predicate of the rule, ALWAYS: of none;
                               where the row begins, counted from o
                 rows          (rows/packed_predicate.py) without gaps: first the checks that have to be
                               looked at, then those that key and directory guarantee

To look at a row costs one or two cache lines, to look at its entry in the directory an eighth of one: rows are fetched
for events that satisfy one predicate more than the key says. A rule has a copy of its row in the block of each of its
keys; where[conjunction] is half the place of one of them.
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.pools import ACCESSES, HIGHEST, SIGNATURES, SPACES
from eligo.index.rows.allocator import give_block, heap_class, heap_words, take_block
from eligo.index.rows.content import mark_row
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.index.rows.packed_predicate import check_words, first_check, is_plain_check, row_words, use_words
from eligo.jit import inline, kernel

KEY, ROWS = 1, 2


@inline
def head_words(t, key):
    """Words of a block before its directory."""
    return np.int64(3) if key >= 0 else 3 + (t.state[ACCESSES] + 1) // 2


@inline
def directory_of(t, o):
    """Where the directory of a block begins, less 1: rows are counted from 1 on."""
    return o + head_words(t, t.words[o + KEY]) - 1


@inline
def rows_in(t, o):
    return upper(t.words[o + ROWS])


@kernel
def new_posting(t, key, size):
    """A block without rows, with room for one of so many words."""
    words, head = t.words, head_words(t, key) + 1
    o = take_block(words, t.heads, head + size)
    words[o] = pair(head, heap_words(heap_class(head + size)))
    words[o + KEY], words[o + ROWS] = key, pair(0, 1)
    return o


@kernel
def moved_posting(t, o, entries, room):
    """Give a block room for so many entries, and for so many words in all; where it lies then."""
    words = t.words
    used, old, head = upper(words[o]), lower(words[o]), head_words(t, words[o + KEY])
    count, more = upper(words[o + ROWS]), entries - lower(words[o + ROWS])
    other = take_block(words, t.heads, room)
    for i in range(head):
        words[other + i] = words[o + i]
    words[other] = pair(used + more, heap_words(heap_class(room)))
    words[other + ROWS] = pair(count, entries)
    for i in range(head, head + count):
        words[other + i] = words[o + i] + more  # the lower half says where the row begins
    for i in range(head + entries - more, used):
        words[other + i + more] = words[o + i]
    give_block(words, t.heads, o, old)
    for i in range(head, head + count):
        number = words[other + lower(words[other + i])] >> 32
        if 2 * np.int64(t.where[number]) == o:
            t.where[number] = other // 2
    return other


@kernel
def append_row(t, o, row, size, beside):
    """Add the row row[:size], with a space beside it, to a block; where the block lies then."""
    words = t.words
    count, entries, used = upper(words[o + ROWS]), lower(words[o + ROWS]), upper(words[o])
    if count == entries or used + size > lower(words[o]):
        more = 1 + count // 4 if count == entries else np.int64(0)
        used += more
        o = moved_posting(t, o, entries + more, used + size + (used + size) // 4 if used > 64 else used + size)
    for i in range(size):
        words[o + used + i] = row[i]
    words[o] = pair(used + size, lower(words[o]))
    words[o + ROWS] = pair(count + 1, lower(words[o + ROWS]))
    words[directory_of(t, o) + count + 1] = pair(beside, used)
    t.where[row[0] >> 32] = o // 2
    return o


@kernel
def row_in(t, o, number):
    """Which row of a block is that of a conjunction, from 1 on; 0: none."""
    words, d = t.words, directory_of(t, o)
    for i in range(1, rows_in(t, o) + 1):
        if words[o + lower(words[d + i])] >> 32 == number:
            return i
    return 0


@kernel
def remove_row(t, o, number):
    """Take the row of a conjunction out of a block; where the block lies then, -1: it was the last row."""
    words, d = t.words, directory_of(t, o)
    which, used, count, entries = row_in(t, o, number), upper(words[o]), rows_in(t, o), lower(words[o + ROWS])
    if which == 0:
        return np.int64(o)
    if count == 1:
        give_block(words, t.heads, o, lower(words[o]))
        return np.int64(-1)
    at = o + lower(words[d + which])
    size = row_words(words, at)
    for i in range(at, o + used - size):
        words[i] = words[i + size]
    for i in range(which, count):
        words[d + i] = words[d + i + 1] - size
    used, count = used - size, count - 1
    words[o], words[o + ROWS] = pair(used, lower(words[o])), pair(count, entries)
    fewer = entries - count if entries > 2 * count + 4 else np.int64(0)
    if fewer or (2 * used < lower(words[o]) and used > 16):
        return moved_posting(t, o, entries - fewer, used - fewer)
    return np.int64(o)


@kernel
def arranged(source, at, guaranteed, count, out):
    """Write a row to out: plain checks, other checks, and behind them the `count` checks that begin at guaranteed[i] of
    the source; its words.
    """
    begin, end = first_check(source, at), at + row_words(source, at)
    to = begin - at
    for i in range(to):
        out[i] = source[at + i]
    used = to
    for phase in range(3):
        q = begin
        while q < end:
            size, last = check_words(source[q]), False
            for i in range(count):
                last = last or guaranteed[i] == q
            wanted = 2 if last else 0 if is_plain_check(source[q]) else 1
            if wanted == phase:
                for i in range(size):
                    out[to] = source[q + i]
                    to += 1
            q += size
        if phase < 2:
            used = to
    use_words(out, 0, used - (begin - at))
    return to


@kernel
def mark_rows(t, attributes, strings):
    """Set what stands at the numbers of the attributes and strings that some row names."""
    words, spaces = t.words, t.state[SPACES]
    if t.state[SIGNATURES]:
        for number in range(t.state[HIGHEST]):
            if t.where[number] > 0:
                mark_row(words, 2 * np.int64(t.where[number]), attributes, strings)
        return
    for i in range(spaces + len(t.slots) // 2):
        o = t.posting[i] if i < spaces else t.slots[2 * (i - spaces) + 1] if t.slots[2 * (i - spaces)] != -1 else 0
        for which in range(1, rows_in(t, o) + 1 if o else 1):
            mark_row(words, o + lower(words[directory_of(t, o) + which]), attributes, strings)
