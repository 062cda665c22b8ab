"""What matching without an index takes, in predicate evaluations: `naive` and `lazy` (the report on profile matching
§4.1.5).

naive    evaluates every predicate of every profile
lazy     stops with a profile at the first predicate that is false; that is what `scan` does, by its own count

They are numbers and no indexes, so they have nothing else beside the others. Equal profiles count once.
"""

from __future__ import annotations

from typing import Any

from eligo.index.scan import Scan
from eligo_lab.bench.prepare import Prepared

YARDSTICKS = ("naive", "lazy")


def count_yardsticks(prepared: Prepared) -> dict[str, dict[str, Any]]:
    """Returns the figures of both: predicate evaluations an event."""
    scan = Scan.build(prepared.conjunctions)
    scratch = scan.scratch()
    for buffer, row in prepared.places:
        scan.search(buffer, row, scratch)
    lazy = scratch.counters[1] / max(len(prepared.places), 1)
    counts = {"naive": float(len(prepared.conjunctions.items)), "lazy": float(lazy)}
    return {name: {"kind": "yardstick", "evaluations": count, "notes": {}} for name, count in counts.items()}
