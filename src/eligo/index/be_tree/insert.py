"""Rows come one after another: placed, and what overflows is cut."""

from __future__ import annotations

from eligo.index.be_tree.nodes import (
    HIGHEST,
    LEAF,
    ROWS,
    has_room,
)
from eligo.index.be_tree.place import place_row
from eligo.index.be_tree.rank import note_row
from eligo.index.be_tree.split import settle
from eligo.index.dynamic.int_pair import lower, upper
from eligo.index.dynamic.packed_predicate import row_words
from eligo.jit import kernel


@kernel
def insert_row(t, source, at):
    """InsertBETree from the root, and what follows from it."""
    state = t.state
    note_row(t, source, at, 1)
    state[ROWS] += 1
    c = place_row(t, source, at, 0)
    state[HIGHEST] = max(state[HIGHEST], (source[at] >> 32) + 1)
    if upper(t.cluster[8 * c + LEAF]) > lower(t.cluster[8 * c + LEAF]):
        settle(t, c)


@kernel
def insert_rows(t, source, offsets, first, stop):
    """Insert rows first … stop-1 of source; the first that it did not, because some pool ran short."""
    for r in range(first, stop):
        if not has_room(t, 4 * row_words(source, offsets[r])):
            return r
        insert_row(t, source, offsets[r])
    return stop


@kernel
def foresee_rows(t, source, offsets, first, stop, by):
    """Note what rows that will be inserted have, so that even the first of them is placed by it; or forget it again."""
    for r in range(first, stop):
        note_row(t, source, offsets[r], by)
    t.state[ROWS] += by * (stop - first)
