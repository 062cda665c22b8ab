"""How likely a predicate is to hold: measured where events were seen, else guessed from the spaces that it covers."""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import F64, I64
from eligo.compile.conjunctions import Conjunctions
from eligo.jit import kernel


def unlikeliness(conjunctions: Conjunctions) -> I64:
    """A rank for predicates when no events were seen: the share of its attribute's spaces, so `=` before ranges."""
    p = conjunctions.predicates
    ranks: I64 = covered_shares(
        p.attribute_offsets, p.run_offsets, p.run_low, p.run_high, p.flags, p.pattern, conjunctions.spaces.space_count
    )
    return ranks


def likelihood(conjunctions: Conjunctions) -> F64:
    """A guess how often each predicate holds when no events were seen: by its share of spaces; negated ones often."""
    ranks = unlikeliness(conjunctions)
    shares: F64 = np.where(ranks >= 2_000_000, 0.9, ranks / 1_000_000)
    return shares


@kernel
def covered_shares(attribute_offsets, run_offsets, run_low, run_high, flags, pattern, space_count):
    """In millionths. Those that hold for an absent attribute come later, and patterns, which cost most, last."""
    ranks = np.zeros(len(pattern), np.int64)
    for attribute in range(len(space_count)):
        for p in range(attribute_offsets[attribute], attribute_offsets[attribute + 1]):
            covered = 0
            for r in range(run_offsets[p], run_offsets[p + 1]):
                covered += run_high[r] - run_low[r] + 1
            ranks[p] = covered * 1_000_000 // space_count[attribute]
            ranks[p] += 2_000_000 * (flags[p] & 1) + 4_000_000 * (pattern[p] >= 0)
    return ranks
