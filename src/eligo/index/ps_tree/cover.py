"""Which spaces a predicate covers (the PS-Tree paper Algorithm 1, InsertPredicate), and which borders it could still
have.

A line has only so many spaces for the asking; beyond, a space is cut if more predicates than CROWDED cover it, so that
ranges which come in ascending order do not all end up in the last one. A space with very much in it is not cut at all.
A predicate whose bound then lies within a space covers it all the same, and is verified. So the books are kept by one
rule, whatever was cut meanwhile: a predicate covers the spaces from that of its first position to that of its last, and
holds each border at one of its bounds.
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.lines import (
    PRESENT,
    TEXT,
    WHOLE,
    hull_of,
    is_exact,
    is_one_range,
    is_range,
    is_usable,
    named_by,
    point_at,
    text_cuts,
)
from eligo.index.ps_tree.nodes import LAST, LOW
from eligo.index.ps_tree.pools import BY_PRESENCE, BY_RANGE, BY_VALUE
from eligo.index.ps_tree.spaces import (
    add_point,
    count_predicate,
    hold_border,
    is_layer,
    next_space,
    open_line,
    space_at,
)
from eligo.index.ps_tree.string_trie import MORE, locate_text, slice_at
from eligo.index.rows.packed_predicate import attribute_of, check_words, first_check, row_words
from eligo.jit import inline, kernel

MOST_SPACES = 1024  # of a fine line, before it matters what is in them
MOST_COARSE = 16
MOST_TEXT = 256
CROWDED = 64
MOST_AT_ALL = 1 << 20  # spaces of a line
MOST_COVERED = 1024  # spaces of a predicate


@inline
def is_coarse(form):
    return form != TEXT and form % 3 == 0


@inline
def most_spaces(form):
    """How many spaces a line of ranges has for the asking."""
    if form == TEXT:
        return MOST_TEXT
    return MOST_COARSE if is_coarse(form) else MOST_SPACES


@kernel
def check_on(words, at, line):
    """The check of a row that a line is about. Of several with one attribute none is found but by PRESENT."""
    q, end = first_check(words, at), at + row_words(words, at)
    while q < end:
        if attribute_of(words[q]) == line >> 4 and is_usable(words[q]):
            return q
        q += check_words(words[q])
    return np.int64(-1)


@inline
def ends(words, q, form):
    """First and last position of a range of numbers or times; of whole numbers, the line ends with the short line."""
    low, high = hull_of(words, q, form)
    if form == WHOLE and high >= np.uint64((1 << 20) - 1):
        high = np.uint64(LAST)
    return low, high


@inline
def base_form(form):
    """The form of equality that goes with a form of ranges."""
    return form if form == TEXT else form - (form + 2) % 3


@kernel
def first_and_last(t, words, q, line, strings):
    """The first and the last space that a range covers."""
    form = line & 15
    if form != TEXT:
        low, high = ends(words, q, base_form(form))
        return space_at(t, line, low), space_at(t, line, high)
    low_cut, high_cut = text_cuts(words, q)
    data = strings.data
    begin = end = np.int64(0)
    by = np.int64(0)
    if low_cut >= 0:
        begin, end, by = strings.begin[low_cut >> 1], strings.end[low_cut >> 1], low_cut & 1
    first = locate_text(t, line, data, begin, end, by)
    if high_cut < 0:
        last = space_at(t, line, np.uint64(LAST))
        return first, last
    begin, end = strings.begin[high_cut >> 1], strings.end[high_cut >> 1]
    return first, locate_text(t, line, data, begin, end, (high_cut & 1) - 1)


@kernel
def cover(t, words, q, line, strings, out):
    """Put the spaces that a check covers into out; how many. Those of single values are made, if need be."""
    form = line & 15
    if form == PRESENT:
        out[0] = add_point(t, line, np.uint64(0))
        return 1
    if is_range(form):
        open_line(t, line)
        s, last = first_and_last(t, words, q, line, strings)
        n = 0
        while True:
            out[n] = s
            n += 1
            if s == last or next_space(t, s) < 0:
                return n
            s = next_space(t, s)
    _, _, n = named_by(words, q)
    for i in range(n):
        out[i] = add_point(t, line, point_at(words, q, form, i))
    return n


@kernel
def covered(t, words, q, line, strings):
    """How many spaces a check covers, or will once they are made; not counted beyond MOST_COVERED."""
    form = line & 15
    if form == PRESENT:
        return np.int64(1)
    if not is_range(form):
        return np.int64(named_by(words, q)[2])
    s, last = first_and_last(t, words, q, line, strings)
    n = np.int64(1)
    while s != last and n <= MOST_COVERED and next_space(t, s) >= 0:
        s = next_space(t, s)
        n += 1
    return n


@kernel
def borders_at(t, words, q, line, strings):
    """The two spaces that begin at the bounds of a range, -1: none does, or there is no bound."""
    form = line & 15
    first = behind = np.int64(-1)
    if form == TEXT:
        low_cut, high_cut = text_cuts(words, q)
        if low_cut >= 0:
            first = text_border(t, line, strings, low_cut)
        if high_cut >= 0:
            behind = text_border(t, line, strings, high_cut)
        return first, behind
    low, high = ends(words, q, base_form(form))
    if low:
        first = space_at(t, line, low)
        if np.uint64(t.space[4 * first + LOW]) != low:
            first = np.int64(-1)
    if high != np.uint64(LAST):
        behind = space_at(t, line, high + np.uint64(1))
        if np.uint64(t.space[4 * behind + LOW]) != high + np.uint64(1):
            behind = np.int64(-1)
    return first, behind


@kernel
def hold(t, words, q, line, strings, n, spaces, by):
    """Count a predicate for the n spaces that it covers and the borders at its bounds, or count it no more; the spaces
    that begin at its bounds.
    """
    for i in range(n):
        count_predicate(t, spaces[i], by)
    first = behind = np.int64(-1)
    if is_range(line & 15):
        first, behind = borders_at(t, words, q, line, strings)
        if first >= 0:
            hold_border(t, first, by)
        if behind >= 0:
            hold_border(t, behind, by)
    return first, behind


@inline
def count_access(t, line, by):
    """Count one access predicate more, or one less, for its kind of line."""
    t.state[BY_RANGE if is_range(line & 15) else BY_PRESENCE if line & 15 == PRESENT else BY_VALUE] += by


@kernel
def guarantees(t, words, q, line, first, behind):
    """Whether whoever comes to the spaces of a check satisfies it; `first`, `behind`: what `borders_at` said."""
    form, code = line & 15, words[q]
    if form == PRESENT or not is_exact(code):
        return False
    if not is_range(form):
        return True
    if form == TEXT or not is_one_range(code):
        return False
    low, high = ends(words, q, base_form(form))
    return (low == 0 or first >= 0) and (high == np.uint64(LAST) or behind >= 0)


@kernel
def text_border(t, line, strings, at):
    """The space, or layer, that begins at a cut of the alphabet; -1: none does."""
    data, begin, end = strings.data, strings.begin[at >> 1], strings.end[at >> 1]
    cell, layer = np.int64(line), 0
    while True:
        v = slice_at(data, begin, end, layer)
        if v & np.uint64(0xFF) != np.uint64(MORE):
            v += np.uint64(at & 1)
            s = space_at(t, cell, v)
            return s if v and np.uint64(t.space[4 * s + LOW]) == v else np.int64(-1)
        s = space_at(t, cell, v)
        if not is_layer(t, s):
            return np.int64(-1)
        cell, layer = ~s, layer + 1
