"""Postings of `pst-hash`: rows in blocks, and beside each a space that an event has to lie in (ps-tree.txt §6.1).

    block        words[o]      words in use, words of the block
                 words[o+1]    key (keys.py); below 0, of three spaces or more, the spaces follow behind the next word
                 words[o+2]    where its directory begins
                 rows          (dynamic/rows.py) without gaps: first the checks that have to be looked at, then those
                               that key and directory guarantee
    directory    words[d]      rows of the block, words of the directory
                 words[d+1 …]  for each row in order: the space of one more predicate of the rule, ALWAYS: of none;
                               where the row begins, counted from o

To look at a row costs one or two cache lines, to look at its entry in the directory an eighth of one: rows are fetched
for events that satisfy one predicate more than the key says. A rule has a copy of its row in the block of each of its
keys; where[conjunction] is half the place of one of them.
"""

from __future__ import annotations

import numpy as np

from eligo.index.dynamic.heap import give_block, heap_class, heap_words, take_block
from eligo.index.dynamic.rows import check_words, first_check, is_plain_check, row_words, use_words
from eligo.index.ps_tree.nodes import lower, pair, upper
from eligo.index.ps_tree.pools import ACCESSES
from eligo.jit import inline, kernel

KEY, DIRECTORY = 1, 2


@inline
def head_words(t, key):  # type: ignore[no-untyped-def]
    """Words of a block before its rows."""
    return np.int64(3) if key >= 0 else 3 + (t.state[ACCESSES] + 1) // 2


@inline
def rows_in(t, o):  # type: ignore[no-untyped-def]
    return upper(t.words[t.words[o + DIRECTORY]])


@kernel
def new_posting(t, key, size):  # type: ignore[no-untyped-def]
    """A block without rows, with room for so many words of them."""
    words, head = t.words, head_words(t, key)
    o = take_block(words, t.heads, head + size)
    words[o] = pair(head, heap_words(heap_class(head + size)))
    words[o + KEY] = key
    d = take_block(words, t.heads, 2)
    words[d] = pair(0, heap_words(heap_class(2)))
    words[o + DIRECTORY] = d
    return o


@kernel
def moved_posting(t, o, room):  # type: ignore[no-untyped-def]
    """Give a block room for so many words; where it lies then."""
    words = t.words
    used, old = upper(words[o]), lower(words[o])
    other = take_block(words, t.heads, room)
    for i in range(used):
        words[other + i] = words[o + i]
    words[other] = pair(used, heap_words(heap_class(room)))
    give_block(words, t.heads, o, old)
    d = words[other + DIRECTORY]
    for i in range(1, upper(words[d]) + 1):
        number = words[other + lower(words[d + i])] >> 32
        if 2 * np.int64(t.where[number]) == o:
            t.where[number] = other // 2
    return other


@kernel
def fit_directory(t, o, count):  # type: ignore[no-untyped-def]
    """Give the directory of a block room for so many rows."""
    words, d = t.words, t.words[o + DIRECTORY]
    there = min(upper(words[d]), count)
    other = take_block(words, t.heads, count + 1)
    for i in range(1, there + 1):
        words[other + i] = words[d + i]
    words[other] = pair(there, heap_words(heap_class(count + 1)))
    give_block(words, t.heads, d, lower(words[d]))
    words[o + DIRECTORY] = other


@kernel
def append_row(t, o, row, size, beside):  # type: ignore[no-untyped-def]
    """Add the row row[:size], with a space beside it, to a block; where the block lies then."""
    words = t.words
    used = upper(words[o])
    if used + size > lower(words[o]):
        o = moved_posting(t, o, used + size + (used + size) // 4 if used > 64 else used + size)
    for i in range(size):
        words[o + used + i] = row[i]
    words[o] = pair(used + size, lower(words[o]))
    d = words[o + DIRECTORY]
    count = upper(words[d])
    if count + 1 == lower(words[d]):
        fit_directory(t, o, count + 1 + count // 4)
        d = words[o + DIRECTORY]
    words[d] = pair(count + 1, lower(words[d]))
    words[d + count + 1] = pair(beside, used)
    t.where[row[0] >> 32] = o // 2
    return o


@kernel
def row_in(t, o, number):  # type: ignore[no-untyped-def]
    """Which row of a block is that of a conjunction, from 1 on; 0: none."""
    words, d = t.words, t.words[o + DIRECTORY]
    for i in range(1, upper(words[d]) + 1):
        if words[o + lower(words[d + i])] >> 32 == number:
            return i
    return 0


@kernel
def free_posting(t, o):  # type: ignore[no-untyped-def]
    words, d = t.words, t.words[o + DIRECTORY]
    give_block(words, t.heads, d, lower(words[d]))
    give_block(words, t.heads, o, lower(words[o]))


@kernel
def remove_row(t, o, number):  # type: ignore[no-untyped-def]
    """Take the row of a conjunction out of a block; where the block lies then, -1: it was the last row."""
    words, d = t.words, t.words[o + DIRECTORY]
    which, used, count = row_in(t, o, number), upper(words[o]), upper(words[d])
    if which == 0:
        return np.int64(o)
    if count == 1:
        free_posting(t, o)
        return np.int64(-1)
    at = o + lower(words[d + which])
    size = row_words(words, at)
    for i in range(at, o + used - size):
        words[i] = words[i + size]
    for i in range(which, count):
        words[d + i] = words[d + i + 1] - size  # the lower half says where the row begins
    used -= size
    words[o], words[d] = pair(used, lower(words[o])), pair(count - 1, lower(words[d]))
    if lower(words[d]) > 2 * count + 4:
        fit_directory(t, o, count - 1)
    return moved_posting(t, o, used) if 2 * used < lower(words[o]) and used > 16 else np.int64(o)


@kernel
def arranged(source, at, guaranteed, count, out):  # type: ignore[no-untyped-def]
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
