"""Single rules into a matcher that holds many: how long until the next match sees one.

The matcher gets the compiled rules and the index that were measured before, as one segment, so that nothing is parsed
or built again. One whose index inserts by itself gets the compiled rules alone. Either way the matcher decides what an
addition does.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import numpy as np

from eligo.errors import LimitError
from eligo.matcher import Matcher
from eligo.segments.segment import segment_of
from eligo_lab.bench.contenders.indexed import Indexed


def holding(contender: Indexed) -> Matcher:
    """A matcher with the contender's rules; their texts are not there."""
    prepared = contender.prepared
    index, evaluator = type(contender.index), type(contender.evaluator)
    matcher = Matcher(
        index.name,
        evaluator.name,
        prepared.absent,  # type: ignore[arg-type]
        prepared.multi,
        options=contender.options,
    )
    rules = matcher.engine.rules
    rules.adopt(prepared.attributes, prepared.strings)
    if rules.kind == "segments":
        made: Any = segment_of(
            prepared.table, contender.compiled, contender.conjunctions, contender.index, contender.evaluator
        )
    else:
        made = rules.made(prepared.table, contender.compiled)
    with rules.lock:
        rules.extend([made])
    rules.next_sequence = prepared.rules
    matcher.engine.loader.id_type = int
    return matcher


def measure_inserts(contender: Indexed, texts: list[str]) -> dict[str, Any]:
    """Add the rules one by one, each made visible to readers before the next; those that are refused do not count."""
    matcher = holding(contender)
    rules = matcher.engine.rules
    with suppress(LimitError, IndexError):  # once unmeasured: kernels are loaded at their first call
        matcher.add(-1, texts[0])
        matcher.remove(-1)
    _ = rules.view
    times = []
    for number, text in enumerate(texts):
        started = time.perf_counter_ns()
        try:
            matcher.add(contender.prepared.rules + number, text)
        except LimitError:
            continue
        _ = rules.view
        times.append(time.perf_counter_ns() - started)
    rules.wait()
    spent = np.array(times or [0])
    mean = float(spent.mean())
    return {
        "rules": len(times),
        "mean_ms": mean / 1e6,
        "p99_ms": float(np.percentile(spent, 99)) / 1e6,
        "worst_ms": float(spent.max()) / 1e6,
        "per_second": 1e9 / max(mean, 1.0),
    }
