"""`by-attribute`: each conjunction waits under one attribute that an event has to have.

    attribute a        words offsets[a] … offsets[a+1]: rows of conjunctions with a predicate on it
    no attribute       words offsets[-2] … offsets[-1]: rows that are verified for every event, of conjunctions that
                       need no value of any attribute

A small index to begin from, in a package of its own: pyproject.toml tells eligo of it. An event looks at the rows of
its attributes, whatever their values are, so it is good where events have few of many attributes.

Invariant: a conjunction stands in exactly one row, and an event that satisfies it has the row's attribute.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.index.access import access_predicates, leading
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.rows.event_view import view_event
from eligo.index.rows.row_encoder import checks_of, rows_in_order
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.rows.verify import verify_rows
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline


class ByAttribute(ArrayIndex):
    """Conjunctions by an attribute that they need; see the top of this file."""

    name = "by-attribute"
    summary = "conjunctions wait under one attribute that an event has to have"

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        strings = make_string_handle(*conjunctions.strings.spans())
        self.handle = make_index(strings, arrays["offsets"], arrays["words"])

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> ByAttribute:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        # The predicate of each conjunction that holds least often, out of those that need a value; -1: there is none.
        access = access_predicates(conjunctions.offsets, conjunctions.items, rank, leading(conjunctions))
        home = np.append(conjunctions.compiled.attribute, conjunctions.attributes)[access]
        order = np.argsort(home, kind="stable").astype(np.int32)
        nothing = np.full(len(order), -1, np.int32)  # no predicate is sure to hold by the way to its row
        checks = checks_of(conjunctions)
        words, starts = rows_in_order(conjunctions.offsets, conjunctions.items, checks, rank, order, nothing)
        first_rows = np.searchsorted(home[order], np.arange(conjunctions.attributes + 2))
        return cls(conjunctions, {"offsets": starts[first_rows], "words": words})

    def scratch(self) -> Scratch:
        scratch, most = Scratch(len(self.conjunctions)), len(self._arrays["offsets"])
        # The stretches of rows that an event comes to: one an attribute, and the last rows.
        starts, ends = np.zeros(most, np.int64), np.zeros(most, np.int64)
        scratch.handle = make_scratch(starts, ends, scratch.found, scratch.counters)
        return scratch

    def notes(self) -> dict[str, object]:
        always = self._arrays["offsets"][-2:]
        return {"words always verified": int(always[1] - always[0])}


make_index = handle("ByAttributeHandle", ("strings", "offsets", "words"))
make_scratch = handle("ByAttributeScratchHandle", ("starts", "ends", "found", "counters"))


@inline
def search_event(index, e, event, event_view, scratch, start):
    """Writes the conjunctions that an event satisfies into `found` from `start` on. Returns where they end."""
    starts, ends, offsets, count = scratch.starts, scratch.ends, index.offsets, 0
    attributes = len(offsets) - 2
    for i in range(view_event(e, event, event_view, attributes) + 1):
        a = event_view.present[i] if i < event_view.count[0] else attributes
        if offsets[a] < offsets[a + 1]:
            starts[count], ends[count] = offsets[a], offsets[a + 1]
            count += 1
    single = event_view.count[1] == 0
    return verify_rows(
        index.words, starts, ends, count, single, event_view, e, index.strings, scratch.found, start, scratch.counters
    )


ByAttribute.search_events = staticmethod(searching(search_event))
