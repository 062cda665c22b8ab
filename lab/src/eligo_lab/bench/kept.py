"""`op-index` kept in order while conjunctions come one by one: the second OpIndex of the PS-Tree paper Figure 5(b).

It is no index of its own (rivals/op_kept.py), so it has a time to build beside the others and nothing else.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from eligo.index.scan import Scan
from eligo_lab.bench.prepare import Prepared
from eligo_lab.bench.verify import DisagreementError
from eligo_lab.rivals.op_kept import KeptSorted

KEPT = "op-index-kept"
_VERIFIED = 20  # events
_WARM = 100  # conjunctions


def measure_kept(prepared: Prepared) -> dict[str, Any]:
    """Seconds to put all conjunctions in, one after the other; answers are those of scan."""
    conjunctions = prepared.conjunctions
    KeptSorted(conjunctions).insert(0, min(_WARM, len(conjunctions)))
    kept = KeptSorted(conjunctions)
    started = time.perf_counter()
    kept.insert(0, len(conjunctions))
    seconds = time.perf_counter() - started
    scan = Scan.build(conjunctions)
    own, theirs = kept.scratch(), scan.scratch()
    for event, (buffer, row) in enumerate(prepared.places[:_VERIFIED]):
        found = np.sort(own.found[: kept.search(buffer, row, own)])
        wanted = np.sort(theirs.found[: scan.search(buffer, row, theirs)])
        if not np.array_equal(found, wanted):
            raise DisagreementError(
                f"event {event}: {KEPT} finds {len(found):,} conjunctions, and scan {len(wanted):,}; the first that "
                f"only one of them has: {np.setxor1d(found, wanted)[:5].tolist()}"
            )
    return {"kind": "index", "build_s": seconds, "notes": {}}
