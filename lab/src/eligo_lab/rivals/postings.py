"""Posting lists: for every space of every attribute, the conjunctions that a value in that space concerns.

    slot              space_base[attribute] + space (`Spaces.bases`)
    slot s            entries posting[posting_offsets[s] … posting_offsets[s+1]], ascending

A predicate is enumerated: its conjunction is posted in each of its spaces (a REQUIRED entry), or in each of the other
spaces of its attribute (a FORBIDDEN entry, for predicates that an absent attribute satisfies). A predicate of more
spaces than a bound is not enumerated, because its share of memory grows with them; spaces are far fewer than values,
but an attribute may have many.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import I32, I64, U8
from eligo.compile.conjunctions import Conjunctions
from eligo.jit import kernel

BOUND = 64  # spaces. With 128, lists on attributes of a hundred spaces grew fivefold, and merging them took longer
LEFT_OUT, REQUIRED, FORBIDDEN = 0, 1, 2


def enumerable(conjunctions: Conjunctions, bound: int = BOUND) -> tuple[U8, I32]:
    """How each predicate can be posted within the bound, and in how many slots."""
    p = conjunctions.predicates
    how, slots = enumeration(p.attribute(), p.flags, p.run_offsets, p.run_low, p.run_high,
                             conjunctions.spaces.space_count, bound)  # fmt: skip
    return how, slots


@kernel
def enumeration(attribute, flags, run_offsets, run_low, run_high, space_count, bound):
    n = len(attribute)
    how = np.zeros(n, np.uint8)
    slots = np.zeros(n, np.int32)
    for p in range(n):
        covered = 0
        for r in range(run_offsets[p], run_offsets[p + 1]):
            covered += run_high[r] - run_low[r] + 1
        if flags[p] & codes.RESIDUAL:
            continue  # a pattern may fail within the predicate's spaces
        if flags[p] & codes.ABSENT_HOLDS:
            others = space_count[attribute[p]] - covered
            if others <= bound:
                how[p] = FORBIDDEN
                slots[p] = others
        elif flags[p] & codes.ALL_VALUES == 0 and covered <= bound:
            how[p] = REQUIRED
            slots[p] = covered
    return how, slots


@kernel
def post(offsets, items, how, order, attribute, run_offsets, run_low, run_high, space_base, signed):
    """Posting lists of the conjunctions order[0], order[1], …, which they call 0, 1, …

    how[i] says how item i is posted. With `signed` an entry is twice the number, plus one where it is REQUIRED, so that
    FORBIDDEN entries come first.
    """
    posting_offsets = np.zeros(space_base[-1] + 1, np.int64)
    filled = posting_offsets
    posting = np.empty(0, np.int32)
    for writing in range(2):
        for place in range(2 * len(order)):
            number, turn = place >> 1, REQUIRED if place & 1 else FORBIDDEN  # in the order of their entries
            for i in range(offsets[order[number]], offsets[order[number] + 1]):
                if how[i] != turn:
                    continue
                p = items[i]
                base, stop = space_base[attribute[p]], space_base[attribute[p] + 1]
                entry = 2 * number + (how[i] == REQUIRED) if signed else number
                slot = base
                for r in range(run_offsets[p], run_offsets[p + 1] + 1):
                    # The gap before run r, and then the run itself; after the last run a gap alone.
                    last = r == run_offsets[p + 1]
                    low = stop if last else base + run_low[r]
                    high = stop if last else base + run_high[r] + 1
                    first, end = (low, high) if how[i] == REQUIRED else (slot, low)
                    for s in range(first, end):
                        if writing:
                            posting[filled[s]] = entry
                            filled[s] += 1
                        else:
                            posting_offsets[s + 1] += 1
                    slot = high
        if not writing:
            for s in range(len(posting_offsets) - 1):
                posting_offsets[s + 1] += posting_offsets[s]
            posting = np.empty(posting_offsets[-1], np.int32)
            filled = posting_offsets[:-1].copy()
    return posting_offsets, posting


def item_postings(conjunctions: Conjunctions, how: U8, order: I32, space_base: I32, signed: bool) -> tuple[I64, I32]:
    """`post` over the predicates of some conjunctions; `how` is by item."""
    p = conjunctions.predicates
    posting_offsets, posting = post(
        conjunctions.offsets, conjunctions.items, how, order, p.attribute(), p.run_offsets, p.run_low, p.run_high,
        space_base, signed,
    )  # fmt: skip
    return posting_offsets, posting
