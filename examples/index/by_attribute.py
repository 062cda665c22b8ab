"""`by-attribute`: each conjunction waits under one attribute that an event has to have.

    attribute a        rows offsets[a] … offsets[a+1] of the candidates: conjunctions with a predicate on it
    no attribute       rows offsets[-1] …, verified for every event: conjunctions that need no value of any attribute

A small index to begin from, in a package of its own: pyproject.toml tells eligo of it. An event looks at the rows of
its attributes, whatever their values are, so it is good where events have few of many attributes.

Invariant: a conjunction stands in exactly one row, and an event that satisfies it has the row's attribute.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.candidates import ROSTER_ARRAYS, Roster, build_roster, verify
from eligo.index.checks import build_checks, leading, no_sight, see
from eligo.index.propagation import access_predicates
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline


class ByAttributeScratch(Scratch):
    """An event as kernels see it, and the stretches of rows that it comes to: one an attribute, and the last rows."""

    def __init__(self, conjunctions: Conjunctions, attributes: int) -> None:
        super().__init__(len(conjunctions))
        stretches = np.zeros(2 * (attributes + 1), np.int32)
        self.handle = make_scratch(no_sight(conjunctions), stretches, self.found, self.counters)


class ByAttribute(ArrayIndex):
    """Conjunctions by an attribute that they need; see the top of this file."""

    name = "by-attribute"
    summary = "conjunctions wait under one attribute that an event has to have"

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        rows = Roster(*(arrays[name] for name in ROSTER_ARRAYS))
        self.handle = make_index(
            conjunctions.space_handle, conjunctions.predicate_handle, rows.handle(), arrays["offsets"]
        )

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> ByAttribute:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        attributes = len(conjunctions.spaces.space_count)
        # The predicate of each conjunction that holds least often, out of those that need a value; -1: there is none.
        access = access_predicates(conjunctions.offsets, conjunctions.items, rank, leading(conjunctions))
        home = np.full(len(access), attributes)
        home[access >= 0] = conjunctions.predicates.attribute()[access[access >= 0]]
        order = np.argsort(home, kind="stable").astype(np.int32)
        everything = np.full(len(order), -1, np.int32)  # no predicate is sure to hold by the way to its row
        rows = build_roster(conjunctions, build_checks(conjunctions), rank, order, everything)
        offsets = np.searchsorted(home[order], np.arange(attributes + 1)).astype(np.int32)
        return cls(conjunctions, {"offsets": offsets, **rows.arrays()})

    def scratch(self) -> ByAttributeScratch:
        return ByAttributeScratch(self.conjunctions, len(self._arrays["offsets"]) - 1)

    def notes(self) -> dict[str, object]:
        return {"always verified": len(self.conjunctions) - int(self._arrays["offsets"][-1])}


make_index = handle("ByAttributeHandle", ("spaces", "predicates", "rows", "offsets"))
make_scratch = handle("ByAttributeScratchHandle", ("sight", "stretches", "found", "counters"))


@inline
def search_event(index, e, event, scratch, start):
    """Put the conjunctions that an event satisfies into `found` from `start` on; where they end."""
    sight, stretches, offsets = scratch.sight, scratch.stretches, index.offsets
    present, count = sight.present, 0
    for i in range(see(e, locate(index.spaces, e, event), sight)):
        a = present[i]
        if offsets[a] < offsets[a + 1]:
            stretches[2 * count], stretches[2 * count + 1] = offsets[a], offsets[a + 1]
            count += 1
    stretches[2 * count], stretches[2 * count + 1] = offsets[-1], len(index.rows.conjunction)
    return verify(index.rows, index.predicates, e, sight, stretches, count + 1, scratch.found, start, scratch.counters)


ByAttribute.search_events = staticmethod(searching(search_event))
