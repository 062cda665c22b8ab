"""How many words a step of an insertion may take. It is asked before, as in the middle of a step no room can be made: a
cut that would take more than there is is left out, and a row waits until there is more (pools.py: `may_move`).
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.cover import check_on, cover
from eligo.index.ps_tree.keys import find_block, next_turn
from eligo.index.ps_tree.lines import is_range
from eligo.index.ps_tree.pools import ACCESSES, SIGNATURES
from eligo.index.rows.int_pair import lower, upper
from eligo.index.rows.packed_predicate import row_words
from eligo.jit import kernel


@kernel
def moving_words(t, copies, starts, count, line, more, parts, strings, spaces):
    """Words that taking some rows out and putting them in again takes at most, when a space of a line has become so
    many, and there are so many more keys: blocks that grow row by row leave behind others five to seven times as large
    together, and a list of keys that is full moves.
    """
    needed = 8 * parts * (len(copies) + 16 * (more + count + 1))
    if t.state[SIGNATURES]:
        return needed
    most = t.state[ACCESSES]
    for i in range(count):
        number = copies[starts[i]] >> 32
        for j in range(most):
            other = np.int64(t.access[number * (most + 1) + j])
            if other >= 0 and other != line and is_range(other & 15):
                for k in range(cover(t, copies, check_on(copies, starts[i], other), other, strings, spaces[0])):
                    o = t.uses[spaces[0, k]]
                    if o and upper(t.words[o]) + more + 1 >= lower(t.words[o]):
                        needed += 4 * (lower(t.words[o]) + more)
    return needed


@kernel
def placing_words(t, row, at, lines, n, strings, spaces):
    """Words that placing a row takes at most, given the lines that it is found by."""
    words, size, most = t.words, row_words(row, at), t.state[ACCESSES]
    if t.state[SIGNATURES]:
        needed = 2 * size
        for j in range(most + 1):
            line = np.int64(lines[j])
            if line >= 0:
                for k in range(cover(t, row, check_on(row, at, line), line, strings, spaces[0])):
                    o = t.posting[spaces[0, k]] if j == 0 else t.uses[spaces[0, k]]
                    needed += 4 * (most + 8) + 3 * (lower(words[o]) if o else 0)
        return needed
    needed, keys = np.int64(0), np.int64(1)
    counts, some, turn = np.zeros(n, np.int64), np.empty(n, np.int64), np.zeros(n, np.int64)
    for i in range(n):
        line = np.int64(lines[i])
        counts[i] = cover(t, row, check_on(row, at, line), line, strings, spaces[i])
        keys *= counts[i]
    for i in range(n):
        for k in range(counts[i] if is_range(lines[i] & 15) else 0):
            o = t.uses[spaces[i, k]]
            if o == 0 or upper(words[o]) + keys + 1 >= lower(words[o]):
                needed += 4 * (4 + keys + (lower(words[o]) if o else 0))
    while n:
        for i in range(n):
            some[i] = spaces[i, turn[i]]
        o, _ = find_block(t, some, n)
        needed += 2 * (size + most + 8) + (2 * lower(words[o]) if o else 0)
        if not next_turn(turn, counts, n):
            break
    return needed
