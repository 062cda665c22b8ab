"""A roster: conjunctions in the order in which an index comes upon them, with what is left to check of each.

    row r    conjunction[r]
             head[2r], head[2r+1]      code and word of the check that fails most often
             tail[2i], tail[2i+1]      for i from tail_offsets[r] to tail_offsets[r+1]: the others, in that order

An index leads an event to stretches of rows; `verify` streams through the heads of the stretches, 16 bytes a row, and
turns to a tail only where the head holds. Tails hold the checks themselves, not numbers of predicates: where much
matches, looking each one up elsewhere took five times as long. A conjunction may stand in several rows. Predicates that
the way to the row guarantees are left out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from eligo.compile.compiled import I32, I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.index.checks import ALWAYS_CODE, ALWAYS_WORD, FAILS, UNSURE, Checks, ask, attribute_of, glance
from eligo.jit import handle, inline, kernel

ROSTER_ARRAYS = ("conjunction", "head", "tail_offsets", "tail")


@dataclass(frozen=True)
class Roster:
    """The arrays drawn above."""

    conjunction: I32
    head: I64
    tail_offsets: I32
    tail: I64

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def handle(self) -> object:
        return make_roster_handle(*self.arrays().values())


def build_roster(conjunctions: Conjunctions, checks: Checks, rank: I64, order: I32, guaranteed: I32) -> Roster:
    """Rows for the conjunctions order[r]; guaranteed[r] is a predicate that need not be checked there, or -1."""
    head, tail_offsets, tail = split_rows(conjunctions.offsets, conjunctions.items, rank, order, guaranteed)
    head, tail = (interleaved(checks.code, checks.word, predicates) for predicates in (head, tail))
    return Roster(order, head, tail_offsets, tail)


@kernel
def interleaved(code, word, predicates):
    """Code and word of each predicate, one after the other; for -1 a check that every event passes."""
    both = np.empty(2 * len(predicates), np.int64)
    for i in range(len(predicates)):
        p = predicates[i]
        both[2 * i] = code[p] if p >= 0 else ALWAYS_CODE
        both[2 * i + 1] = word[p] if p >= 0 else ALWAYS_WORD
    return both


@kernel
def split_rows(offsets, items, rank, order, guaranteed):
    """The likeliest to fail of every row's predicates (-1: none is left), and the others in that order."""
    n = len(order)
    head = np.full(n, -1, np.int32)
    tail_offsets = np.zeros(n + 1, np.int32)
    total = 0
    for r in range(n):
        total += offsets[order[r] + 1] - offsets[order[r]]
    tail = np.empty(total, np.int32)
    used = 0
    for r in range(n):
        start = used
        for i in range(offsets[order[r]], offsets[order[r] + 1]):
            if items[i] == guaranteed[r]:
                continue
            j = used
            while j > start and rank[tail[j - 1]] > rank[items[i]]:
                tail[j] = tail[j - 1]
                j -= 1
            tail[j] = items[i]
            used += 1
        if used > start:
            head[r] = tail[start]
            for j in range(start, used - 1):
                tail[j] = tail[j + 1]
            used -= 1
        tail_offsets[r + 1] = used
    return head, tail_offsets, tail[:used].copy()


# The arrays of `Roster` as one argument of kernels.
make_roster_handle = handle("RosterHandle", ROSTER_ARRAYS)


@inline
def verify(roster, p, e, sight, stretches, count, found, k, counters):
    """Put the conjunctions that the event satisfies, out of `count` stretches of rows, into `found` from k on.

    Stretch i is the rows stretches[2i] … stretches[2i+1]-1. All of them in one call: taking arrays out of handles
    counts references, which would cost more than a short stretch.
    """
    head, at = roster.head, sight.at
    conjunction, tail_offsets, tail = roster.conjunction, roster.tail_offsets, roster.tail
    candidates = evaluations = 0
    for stretch in range(count):
        first, stop = stretches[2 * stretch], stretches[2 * stretch + 1]
        candidates += stop - first
        for row in range(first, stop):
            code = head[2 * row]
            answer = glance(code, head[2 * row + 1], at[attribute_of(code)])
            if answer == UNSURE:
                answer = ask(p, e, sight, code)
            if answer == FAILS:
                continue
            i, end = tail_offsets[row], tail_offsets[row + 1]
            while i < end:
                evaluations += 1
                code = tail[2 * i]
                answer = glance(code, tail[2 * i + 1], at[attribute_of(code)])
                if answer == UNSURE:
                    answer = ask(p, e, sight, code)
                if answer == FAILS:
                    break
                i += 1
            if i == end:
                found[k] = conjunction[row]
                k += 1
    counters[0] += candidates
    counters[1] += candidates + evaluations
    return k
