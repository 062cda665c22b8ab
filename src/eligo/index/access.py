"""Access predicates: which predicates can lead from an event to a conjunction, and by which of them it is reached."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.conjunctions import Conjunctions
from eligo.jit import kernel


def leading(conjunctions: Conjunctions) -> NDArray[np.bool_]:
    """Returns the predicates that can lead from an event to a conjunction: they hold only if some value lies in their
    set. An absent attribute satisfies none of these, nor does a list without values.
    """
    c = conjunctions.compiled
    found: NDArray[np.bool_] = (c.flags & (codes.ABSENT_HOLDS | codes.ALL_VALUES) == 0) & (np.diff(c.run_offsets) > 0)
    return found


@kernel
def access_predicates(offsets, items, rank, leading):
    """Returns the least likely predicate of each conjunction that can lead to it, or -1 where none can."""
    access = np.full(len(offsets) - 1, -1, np.int32)
    for c in range(len(access)):
        for i in range(offsets[c], offsets[c + 1]):
            p = items[i]
            if leading[p] and (access[c] < 0 or rank[p] < rank[access[c]]):
                access[c] = p
    return access
