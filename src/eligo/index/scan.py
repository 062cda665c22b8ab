"""`scan`: every conjunction is looked at for every event. No structure, nothing to maintain; what others must beat.

    first[c]                           the conjunction's least likely predicate; if it has none, one that is always true
    rest[rest_offsets[c] … [c+1]]      the others, from less likely to likelier

For one event the truth of each different predicate on the event's attributes is computed once, a byte each. The scan
then streams through `first`, four bytes a conjunction, and goes on to `rest` only where the first one holds. Bytes
touched an event: 4 a conjunction, 8 a predicate on a present attribute; the truth itself stays in the cache.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import locate
from eligo.compile.predicates import update_truth
from eligo.index.base import ArrayIndex, Scratch, searching
from eligo.index.selectivity import unlikeliness
from eligo.jit import handle, inline

_OWN = ("first", "rest_offsets", "rest")


class ScanScratch(Scratch):
    """A truth value for every predicate, beside what every scratch has."""

    def __init__(self, conjunctions: Conjunctions) -> None:
        super().__init__(len(conjunctions))
        self.handle = make_scan_scratch(conjunctions.predicates.no_truth(), self.found, self.counters)


class Scan(ArrayIndex):
    """Looks at every conjunction; see the top of this file."""

    name = "scan"
    summary = "looks at every conjunction for every event; no structure to build or keep"

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions, arrays)
        own = (arrays[name] for name in _OWN)
        self.handle = make_scan(conjunctions.space_handle, conjunctions.predicate_handle, *own)

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> Scan:
        rank = unlikeliness(conjunctions) if selectivity is None else selectivity
        offsets, items = conjunctions.offsets, conjunctions.items
        items = items[np.lexsort((rank[items], np.repeat(np.arange(len(conjunctions)), np.diff(offsets))))]
        some = np.diff(offsets) > 0
        first = np.full(len(some), len(conjunctions.predicates), np.int32)  # where the truth has one that always holds
        first[some] = items[offsets[:-1][some]]
        rest = np.delete(items, offsets[:-1][some])
        rest_offsets = (offsets - np.append(0, np.cumsum(some))).astype(np.int32)
        return cls(conjunctions, {"first": first, "rest_offsets": rest_offsets, "rest": rest})

    def scratch(self) -> ScanScratch:
        return ScanScratch(self.conjunctions)


# The index as one argument of kernels.
make_scan = handle("ScanHandle", ["spaces", "predicates", *_OWN])


# The memory of one search as one argument of kernels.
make_scan_scratch = handle("ScanScratchHandle", ["truth", "found", "counters"])


@inline
def scan_event(index, e, event, event_view, scratch, start):
    """Put the conjunctions that an event satisfies into `found` from `start` on; where they end."""
    n = locate(index.spaces, e, event)
    update_truth(index.predicates, e, n, scratch.truth)
    first, rest_offsets, rest, found = index.first, index.rest_offsets, index.rest, scratch.found
    truth = scratch.truth.truth
    k = start
    evaluated = 0
    for c in range(len(first)):
        if truth[first[c]]:
            i, stop = rest_offsets[c], rest_offsets[c + 1]
            while i < stop and truth[rest[i]]:
                i += 1
            evaluated += i - rest_offsets[c] + (i < stop)
            if i == stop:
                found[k] = c
                k += 1
    scratch.counters[0] += len(first)
    scratch.counters[1] += len(first) + evaluated
    return k


Scan.search_events = staticmethod(searching(scan_event))
