"""Lines of strings: a tree for each seven bytes, one within the other (the PS-Tree paper §4.5: characters as elements).

    slice     seven bytes, zeros behind the last one << 8 | how many of them there are, 8: and more follow
    layer     a space that stands for all strings that go on behind a slice: LOW is the slice, SEEN has the root of the
              tree over their next slices (spaces.py). Its first space begins at 0, so none goes across two layers

The order of slices is that of strings, which is that of their UTF-8. Strings that differ only far behind their
beginning are told apart by DEEPEST layers at most; what goes beyond is left to verification.
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.borders import fill
from eligo.index.ps_tree.nodes import COUNTS, LINKS, LOW, SEEN, get_root
from eligo.index.ps_tree.spaces import (
    LAYER,
    cell_of,
    cut,
    free_space,
    hold_border,
    is_layer,
    new_space,
    next_space,
    space_at,
)
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.jit import inline, kernel

DEEPEST = 16
MORE = 8


@inline
def slice_at(data, begin, end, layer):
    """Slice number `layer` of the string data[begin:end]."""
    at = begin + 7 * layer
    word = np.uint64(0)
    for i in range(7):
        word <<= np.uint64(8)
        if at + i < end:
            word |= np.uint64(data[at + i])
    left = min(max(end - at, 0), MORE)
    return word << np.uint64(8) | np.uint64(left)


@kernel
def isolate(t, line, cell, v):
    """The layer behind slice v, made if need be."""
    s = space_at(t, cell, v)
    if is_layer(t, s):
        return s
    s = cut(t, line, cell, v)
    behind = cut(t, line, cell, v + np.uint64(1))
    hold_border(t, behind, 1)
    layer = new_space(t, v, cell)
    t.space[4 * layer + COUNTS] = pair(LAYER, (t.space[4 * s + COUNTS] & 0xFFFF_FFFF) + 1)
    t.space[4 * layer + SEEN] = pair(0, s)
    t.space[4 * s + LOW] = 0
    t.space[4 * s + LINKS] = pair(next_space(t, s), ~layer)
    t.space[4 * s + COUNTS] = pair(upper(t.space[4 * s + COUNTS]), 0)
    fill(t, cell, v, v, layer)
    return layer


@kernel
def cut_text(t, line, data, begin, end, behind):
    """Partition at a string, or right behind it; the space that begins there, -1: too deep."""
    if end - begin > 7 * DEEPEST:
        return np.int64(-1)
    cell, layer = np.int64(line), 0
    v = slice_at(data, begin, end, 0)
    while v & np.uint64(0xFF) == np.uint64(MORE):
        cell, layer = ~isolate(t, line, cell, v), layer + 1
        v = slice_at(data, begin, end, layer)
    return cut(t, line, cell, v + np.uint64(behind))


@inline
def locate_text(t, line, data, begin, end, by):
    """The space of a string; `by` 1: of what comes right behind it; -1: right before."""
    cell, layer = np.int64(line), 0
    while True:
        v = slice_at(data, begin, end, layer)
        if v & np.uint64(0xFF) != np.uint64(MORE):
            if by > 0:
                v += np.uint64(1)
            elif by < 0 and v:
                v -= np.uint64(1)
            s = space_at(t, cell, v)
            while is_layer(t, s):  # right behind seven bytes lies all that begins with them
                s = space_at(t, ~s, np.uint64(0))
            return s
        s = space_at(t, cell, v)
        if not is_layer(t, s):
            return s
        cell, layer = ~s, layer + 1


@kernel
def close_layers(t, line, s):
    """If a space is the only one of its layer, it takes the layer's place, and the two borders that the layer held are
    let go; the space behind it, -1: there was no such layer.
    """
    cell = cell_of(t, s)
    if cell >= 0 or get_root(t, cell) != s:
        return np.int64(-1)
    layer = ~cell
    up, v, bounds = cell_of(t, layer), np.uint64(t.space[4 * layer + LOW]), lower(t.space[4 * layer + COUNTS])
    t.space[4 * s + LOW] = np.int64(v)
    t.space[4 * s + LINKS] = pair(next_space(t, s), up)
    t.space[4 * s + COUNTS] = pair(upper(t.space[4 * s + COUNTS]), bounds - 1)
    fill(t, up, v, v, s)
    free_space(t, layer)
    behind = space_at(t, up, v + np.uint64(1))
    hold_border(t, behind, -1)
    return behind
