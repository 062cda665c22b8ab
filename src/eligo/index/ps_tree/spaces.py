"""Spaces (the PS-Tree paper §4.1, leaf nodes): what a line is divided into, so that no predicate tells values in one
apart.

    space s    space[4s …]
               LOW      the position where it begins; for a layer of strings (string_trie.py), where it lies
               LINKS    the space behind it, -1: none; the cell of its tree (nodes.py)
               COUNTS   predicates that cover it, LAYER for one that stands for a layer; bounds of predicates at LOW
               SEEN     events that came to it, of those watched; of a layer, the root of its tree

Partition (Algorithm 2) cuts a space in two; the new one takes the right part. A border goes once no predicate has a
bound there any more: the spaces on both sides then have the same predicates, and become one. On lines of single values
a space is one value, and the gaps between them, which no rule names, are GAP.

What is found by a space (postings, keys, signatures) is the index's. It takes away what a space has before it is cut or
joined, and puts it back afterwards.
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.borders import add_border, drop_border, fill, paint, tidy_border
from eligo.index.ps_tree.nodes import COUNTS, LAST, LINKS, LOW, SEEN, free_tree, get_root, locate, set_link, stretch
from eligo.index.ps_tree.pools import FREE_SPACE, GAP, SPACES
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.jit import inline, kernel

LAYER = -1


@kernel
def new_space(t, low, cell):
    state = t.state
    s = state[FREE_SPACE]
    if s >= 0:
        state[FREE_SPACE] = t.space[4 * s]
    else:
        s = state[SPACES]
        state[SPACES] += 1
    t.space[4 * s + LOW] = np.int64(low)
    t.space[4 * s + LINKS] = pair(-1, cell)
    t.space[4 * s + COUNTS] = 0
    t.space[4 * s + SEEN] = 0
    t.posting[s] = t.extra[s] = t.uses[s] = 0
    return s


@kernel
def free_space(t, s):
    t.space[4 * s] = t.state[FREE_SPACE]
    t.space[4 * s + LINKS] = pair(-1, -1)
    t.space[4 * s + COUNTS] = 0
    t.state[FREE_SPACE] = s


@inline
def space_at(t, cell, x):
    return locate(t.tree, t.links, get_root(t, cell), x)


@inline
def next_space(t, s):
    return upper(t.space[4 * s + LINKS])


@inline
def cell_of(t, s):
    return lower(t.space[4 * s + LINKS])


@inline
def is_layer(t, s):
    return upper(t.space[4 * s + COUNTS]) == LAYER


@inline
def predicates_of(t, s):
    return upper(t.space[4 * s + COUNTS])


@kernel
def count_predicate(t, s, by):
    t.space[4 * s + COUNTS] += np.int64(by) << 32


@kernel
def end_of(t, cell, s, x):
    """The last position of a space that x lies in."""
    link = get_root(t, cell)
    end = x
    while True:
        other, last = stretch(t.tree, t.links, link, x)
        if other != s:
            return end
        end = last
        if last == np.uint64(LAST):
            return end
        x = last + np.uint64(1)


@kernel
def open_line(t, line):
    """Give a line of ranges its first space, which is all of it."""
    if t.root[line] == 0:
        t.root[line] = new_space(t, 0, line)
        t.spaces[line] = 1


@kernel
def cut(t, line, cell, b):
    """Partition (Algorithm 2): let a space begin at position b; which."""
    s = space_at(t, cell, b)
    if np.uint64(t.space[4 * s + LOW]) == b:
        return s
    end = end_of(t, cell, s, b)
    made = new_space(t, b, cell)
    t.space[4 * made + LINKS] = pair(next_space(t, s), cell)
    t.space[4 * made + COUNTS] = pair(predicates_of(t, s), 0)
    t.space[4 * made + SEEN] = t.space[4 * s + SEEN]
    t.space[4 * s + LINKS] = pair(made, cell)
    add_border(t, cell, b, np.uint64(0))
    fill(t, cell, b, end, made)
    t.spaces[line] += 1
    return made


@kernel
def hold_border(t, s, by):
    """One predicate more has a bound where a space begins, or one less."""
    t.space[4 * s + COUNTS] += by


@kernel
def is_void(t, s):
    """Whether no predicate has a bound where a space begins, though another space ends there."""
    return t.space[4 * s + LOW] != 0 and t.space[4 * s + COUNTS] & 0xFFFF_FFFF == 0


@kernel
def before_space(t, s):
    """The space in the same tree that ends where this one begins."""
    return space_at(t, cell_of(t, s), np.uint64(t.space[4 * s + LOW]) - np.uint64(1))


@kernel
def join(t, line, s):
    """Give a space, from which the index has taken all, to the one before it."""
    cell, b = cell_of(t, s), np.uint64(t.space[4 * s + LOW])
    before = before_space(t, s)
    end = end_of(t, cell, s, b)
    t.space[4 * before + LINKS] = pair(next_space(t, s), cell)
    fill(t, cell, b, end, before)
    drop_border(t, cell, b)
    free_space(t, s)
    t.spaces[line] -= 1


@kernel
def add_point(t, line, x):
    """The space of one value on a line of values, made if need be."""
    if t.root[line] == 0:
        t.root[line] = GAP
    s = space_at(t, line, x)
    if s == GAP and line & 15 == 0:  # the attribute is there: one space is all of the line
        s = new_space(t, 0, line)
        t.root[line] = s
        t.spaces[line] = 1
    elif s == GAP:
        s = new_space(t, x, line)
        paint(t, line, x, x, s)
        t.spaces[line] += 1
    return s


@kernel
def drop_point(t, line, s):
    """Forget the space of a value that no rule names any more."""
    x = np.uint64(t.space[4 * s + LOW])
    if line & 15:
        fill(t, line, x, x, GAP)
        tidy_border(t, line, x)
        if x != np.uint64(LAST):
            tidy_border(t, line, x + np.uint64(1))
    free_space(t, s)
    t.spaces[line] -= 1
    if t.spaces[line] == 0:
        if line & 15:
            free_tree(t, get_root(t, line))
        set_link(t, line, -1, 0)


@kernel
def close_line(t, line):
    """Forget a line of ranges whose only space no predicate covers."""
    s = np.int64(t.root[line])
    if s > GAP and t.spaces[line] == 1 and predicates_of(t, s) == 0:
        free_space(t, s)
        t.root[line] = 0
        t.spaces[line] = 0
