"""`propagation`: every conjunction waits in the cluster of one access predicate (Fabret et al., SIGMOD 2001).

    conjunction  →  access predicate, its least likely one  →  cluster, a stretch of the roster

    (attribute a, space s)    equal_offsets[space_base[a] + s] … [+ 1]     rows whose access predicate is that one space
    attribute a               ranges range_start[a] … [a+1]                access predicates of several spaces:
    range r                   range_code[r], range_word[r]; rows range_offsets[r] … [r+1]
    no access predicate       rows always_start …                          verified for every event

Invariant: a conjunction stands in exactly one row. An event comes upon a row only if it satisfies the row's access
predicate, which is then not checked again.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.candidates import ROSTER_ARRAYS, Roster, build_roster, verify
from eligo.index.checks import HOLDS, UNSURE, ask, build_checks, glance, leading, no_sight, see
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline, kernel

_OWN = ("space_base", "equal_offsets", "range_start", "range_code", "range_word", "range_offsets")


class _PropagationScratch(Scratch):
    def __init__(self, conjunctions: Conjunctions, slots: int, ranges: int) -> None:
        super().__init__(len(conjunctions))
        self.handle = make_propagation_scratch(
            no_sight(conjunctions),
            np.zeros(slots, np.int64),
            np.zeros(1, np.int64),
            np.zeros(2 * (min(slots + ranges, len(conjunctions)) + 1), np.int32),  # at least one row in each
            self.found,
            self.counters,
        )


class Propagation(ArrayIndex):
    """One access predicate for each conjunction; see the top of this file."""

    name = "propagation"
    summary = "conjunctions wait in the cluster of their least likely predicate"
    by_least_likely = True

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        self.handle = make_propagation(
            conjunctions.space_handle,
            conjunctions.predicate_handle,
            Roster(*(arrays[name] for name in ROSTER_ARRAYS)).handle(),
            *(arrays[name] for name in _OWN),
        )

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> Propagation:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        checks = build_checks(conjunctions)
        p = conjunctions.predicates
        attribute = p.attribute()
        space_base = conjunctions.spaces.bases()
        access = access_predicates(conjunctions.offsets, conjunctions.items, rank, leading(conjunctions))
        # Clusters are numbered: slots of one space first, then the other access predicates, then none at all.
        slots = int(space_base[-1])
        has = access >= 0
        one_space = np.zeros(len(access), np.bool_)
        one_space[has] = p.low[access[has]] == p.high[access[has]]
        others = np.unique(access[has & ~one_space])  # sorted, therefore by attribute
        cluster = np.full(len(access), slots + len(others), np.int64)
        cluster[one_space] = space_base[attribute[access[one_space]]] + p.low[access[one_space]]
        cluster[has & ~one_space] = slots + np.searchsorted(others, access[has & ~one_space])
        order = np.argsort(cluster, kind="stable").astype(np.int32)
        starts = np.searchsorted(cluster[order], np.arange(slots + len(others) + 1)).astype(np.int32)
        # A pattern is true in part of its space only: the slot does not guarantee it.
        guaranteed = access.copy()
        guaranteed[one_space] = np.where(p.flags[access[one_space]] & codes.RESIDUAL, -1, access[one_space])
        roster = build_roster(conjunctions, checks, rank, order, guaranteed[order])
        return cls(
            conjunctions,
            {
                "space_base": space_base,
                "equal_offsets": starts[: slots + 1].copy(),
                "range_start": np.searchsorted(attribute[others], np.arange(len(space_base))).astype(np.int32),
                "range_code": checks.code[others],
                "range_word": checks.word[others],
                "range_offsets": starts[slots:].copy(),
                **roster.arrays(),
            },
        )

    def scratch(self) -> _PropagationScratch:
        a = self._arrays
        return _PropagationScratch(self.conjunctions, len(a["equal_offsets"]), len(a["range_code"]))

    def notes(self) -> dict[str, object]:
        a = self._arrays
        return {
            "clusters of one space": int(np.count_nonzero(np.diff(a["equal_offsets"]))),
            "clusters of several spaces": len(a["range_code"]),
            "always verified": len(self.conjunctions) - int(a["range_offsets"][-1]),
        }


@kernel
def access_predicates(offsets, items, rank, leading):
    """The least likely predicate of each conjunction that can lead to it; -1 where none can."""
    access = np.full(len(offsets) - 1, -1, np.int32)
    for c in range(len(access)):
        for i in range(offsets[c], offsets[c + 1]):
            p = items[i]
            if leading[p] and (access[c] < 0 or rank[p] < rank[access[c]]):
                access[c] = p
    return access


# The index as one argument of kernels.
make_propagation = handle("PropagationHandle", ["spaces", "predicates", "roster", *_OWN])


# The memory of one search as one argument of kernels.
make_propagation_scratch = handle(
    "PropagationScratchHandle", ["sight", "visited", "serial", "stretches", "found", "counters"]
)


@inline
def propagate_event(index, e, event, scratch, start):
    """Put the conjunctions that an event satisfies into `found` from `start` on; where they end."""
    roster, p, sight, found, counters = index.roster, index.predicates, scratch.sight, scratch.found, scratch.counters
    n = see(e, locate(index.spaces, e, event), sight)
    equal_offsets, range_start, range_offsets = index.equal_offsets, index.range_start, index.range_offsets
    space_base, range_code, range_word = index.space_base, index.range_code, index.range_word
    at, present, first, stop = sight.at, sight.present, sight.first, sight.stop
    visited, at_low, at_high = scratch.visited, e.at_low, e.at_high
    stretches = scratch.stretches
    scratch.serial[0] += 1
    serial = scratch.serial[0]
    count = 0
    for i in range(n):
        a = present[i]
        for j in range(first[a], stop[a]):
            for slot in range(space_base[a] + at_low[j], space_base[a] + at_high[j] + 1):
                if equal_offsets[slot] < equal_offsets[slot + 1] and visited[slot] != serial:
                    visited[slot] = serial  # two values may lie in one space
                    stretches[2 * count] = equal_offsets[slot]
                    stretches[2 * count + 1] = equal_offsets[slot + 1]
                    count += 1
        for r in range(range_start[a], range_start[a + 1]):
            answer = glance(range_code[r], range_word[r], at[a])
            if answer == UNSURE:
                answer = ask(p, e, sight, range_code[r])
            if answer == HOLDS:
                stretches[2 * count] = range_offsets[r]
                stretches[2 * count + 1] = range_offsets[r + 1]
                count += 1
        counters[1] += range_start[a + 1] - range_start[a]
    stretches[2 * count] = range_offsets[-1]
    stretches[2 * count + 1] = len(roster.conjunction)
    return verify(roster, p, e, sight, stretches, count + 1, found, start, counters)


Propagation.search_events = staticmethod(searching(propagate_event))


class Bitmap(Propagation):
    """Blocks of events for every batch, however small (batch/): predicates are bitmaps over the events of a block,
    conjunctions and trees are ANDs and ORs of machine words. One event alone goes as with `propagation`.
    """

    name = "bitmap"
    summary = "batches as bitmaps over their events, single events as propagation"
    blocks = "always"
