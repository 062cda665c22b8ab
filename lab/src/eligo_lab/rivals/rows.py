"""What the rivals have in common: rows of what their structures leave to be verified, and the located entries of an
event by attribute.

    attribute a    its entries are first[a] … stop[a] - 1 of those that `locate` wrote; present[i]: the i-th attribute
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I32, I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.index.rows.content import number_rows
from eligo.index.rows.row_encoder import rows_in_order
from eligo.jit import handle, inline

ROW_ARRAYS = ("words", "word_offsets")


def rows_of(order: I32, offsets: I64, items: I32, checks: tuple[I64, I64], rank: I64) -> Arrays:
    """Rows for the conjunctions order[r], each with only the predicates items[offsets[r]:offsets[r+1]] to check."""
    rows, none = np.arange(len(order), dtype=np.int32), np.full(len(order), -1, np.int32)
    words, word_offsets = rows_in_order(offsets, items, checks, rank, rows, none)
    number_rows(words, word_offsets, order)
    return {"words": words, "word_offsets": word_offsets}


# The located entries of an event, as one argument of kernels.
make_located = handle("Located", ("present", "first", "stop"))


def nothing_located(conjunctions: Conjunctions) -> object:
    """Room for the entries of events."""
    attributes = conjunctions.attributes
    return make_located(np.zeros(attributes, np.int32), np.zeros(attributes, np.int32), np.zeros(attributes, np.int32))


@inline
def group_entries(e, n, located):
    """Groups n located entries by attribute. Returns how many attributes there are."""
    present, first, stop, at_attribute = located.present, located.first, located.stop, e.at_attribute
    k = 0
    for j in range(n):
        a = at_attribute[j]
        if j == 0 or a != at_attribute[j - 1]:
            present[k], first[a] = a, j
            k += 1
        stop[a] = j + 1
    return k
