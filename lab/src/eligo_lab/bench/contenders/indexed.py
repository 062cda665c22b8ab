"""An index with an evaluator, in the steps of a matcher that has one segment.

one event   search ─▶ group ─▶ complete ─▶ ids          each step a call from Python, about a microsecond of its own
all events  search_batch ─▶ evaluate_batch ─▶ ids       as many events a call as the scratch memory has room for
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter_ns as now
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from eligo.compile.compiled import I32, I64
from eligo.compile.conjunctions import build_conjunctions
from eligo.compile.events import EventBuffer
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.index.selectivity import likelihood
from eligo.language.limits import DEFAULT_LIMITS
from eligo.options import Value, declared, own, validated
from eligo.segments.view import ALL
from eligo_lab.bench.contenders.base import Contender, UnfitError
from eligo_lab.bench.prepare import Prepared, bytes_below

PHASES = ("encode", "index", "group", "evaluate", "emit")


class Indexed(Contender):
    """One of the registered indexes. `from_dicts`: each event is encoded anew as `Matcher.match` does, which counts.

    Of the options it takes those that its index and evaluator have; others are meant for other contenders.
    """

    kind: ClassVar[str] = "index"
    has_batch: ClassVar[bool] = True

    def __init__(
        self,
        prepared: Prepared,
        index: str,
        evaluator: str,
        name: str = "",
        *,
        from_dicts: bool = False,
        options: Mapping[str, Value] | None = None,
    ) -> None:
        super().__init__(prepared)
        self.name = name or index
        self.made_of = (index, evaluator)
        self._index_kind, self._evaluator_kind = INDEXES.get(index), EVALUATORS.get(evaluator)
        kinds = self._index_kind, self._evaluator_kind
        known = declared(kinds)
        self.options = validated({k: v for k, v in (options or {}).items() if k in known}, kinds)
        self._from_dicts = from_dicts
        self.phases = PHASES if from_dicts else PHASES[1:]

    def read(self) -> None:
        """The rules as the evaluator wants them; most take them as they are and share them with everyone."""
        kind = self._evaluator_kind
        settings = kind.settings(DEFAULT_LIMITS, self.options)
        reason = kind.unfit(self.prepared.compiled, **settings)
        if reason:
            raise UnfitError(reason)
        arranged = kind.arrange(self.prepared.compiled, **settings)
        self.compiled, self.conjunctions = self.prepared.compiled, self.prepared.conjunctions
        if arranged is not self.prepared.compiled:
            strings, attributes = self.prepared.strings, len(self.prepared.attributes)
            self.compiled, self.conjunctions = build_conjunctions(arranged, strings, attributes)

    def build(self) -> None:
        self.index = self._index_kind.build(self.conjunctions, None, **own(self._index_kind, self.options))

    def finish(self) -> None:
        self.evaluator = self._evaluator_kind.build(self.compiled, likelihood(self.conjunctions))
        self._search, self._evaluate = self.index.scratch(), self.evaluator.scratch()

    def rows(self, event: int) -> I32:
        buffer, row = self.prepared.places[event]
        count = self.index.search(buffer, row, self._search)
        touched = self.evaluator.group(self._search.found, count, self._evaluate) if count else 0
        matched = self.evaluator.complete(touched, ALL, self._evaluate) if count else 0
        found: I32 = self._evaluate.matched[:matched].copy()
        return found

    def run(self, clock: I64, first: int, stop: int, emit: bool) -> int:
        search, group, complete = self.index.search, self.evaluator.group, self.evaluator.complete
        found, evaluated, id_list = self._search, self._evaluate, self.prepared.table.id_list
        encode, fresh = self.prepared.encoder.encode, EventBuffer()
        dicts: list[dict[str, Any]] = self.prepared.dicts if self._from_dicts else []
        places, phases, total = self.prepared.places, len(self.phases), 0
        for event in range(first, stop):
            buffer, row = places[event]
            started = now()
            if dicts:
                buffer, row = fresh, 0
                buffer.clear()
                encode(dicts[event], buffer)
            encoded = now()
            count = search(buffer, row, found)
            searched = now()
            touched = group(found.found, count, evaluated) if count else 0
            grouped = now()
            matched = complete(touched, ALL, evaluated) if count else 0
            completed = now()
            if emit:
                id_list(evaluated.matched[:matched])
            ended = now()
            steps = (
                encoded - started, searched - encoded, grouped - searched, completed - grouped, ended - completed
            )  # fmt: skip
            clock[:, event] = steps[-phases:]
            total += matched
        return total

    def run_batch(self) -> dict[str, float]:
        spent = {"index": 0, "evaluate": 0, "emit": 0}
        for _ in self._batches(spent):
            pass
        return {name: float(time) for name, time in spent.items()}

    def batches(self) -> Iterator[tuple[int, I64, I32]]:
        return self._batches({"index": 0, "evaluate": 0, "emit": 0})

    def _batches(self, spent: dict[str, int]) -> Iterator[tuple[int, I64, I32]]:
        """As `Segment.match_batch` goes about it; adds to `spent` what each step took."""
        found, evaluated, ids = self._search, self._evaluate, self.prepared.table.id_array()
        before = 0
        for buffer in self.prepared.buffers:
            offsets, ends = np.zeros(buffer.events + 1, np.int64), np.zeros(buffer.events + 1, np.int64)
            first = 0
            while first < buffer.events:
                started = now()
                stop = self.index.search_batch(buffer, first, buffer.events, found, offsets)
                spent["index"] += now() - started
                done = 0
                while first + done < stop:
                    started = now()
                    some = self.evaluator.evaluate_batch(
                        found.found, offsets[done:], stop - first - done, ALL, evaluated, ends
                    )
                    completed = now()
                    rows = evaluated.matched[: ends[some]]
                    ids.take(pa.array(rows))
                    spent["evaluate"] += completed - started
                    spent["emit"] += now() - completed
                    yield before + first + done, ends[: some + 1], rows
                    done += some
                first = stop
            before += buffer.events

    def counters(self) -> tuple[int, int]:
        candidates, evaluations = self._search.counters[:2].tolist()
        return int(candidates), int(evaluations)

    def facts(self) -> dict[str, Any]:
        arrays = self.index.arrays()
        size = self.index.bytes()
        labels = sum(array.nbytes for array in self.evaluator.arrays().values())
        below = bytes_below(self.compiled, self.conjunctions, self.prepared.strings)
        return {
            "bytes": size,
            "bytes_per_rule": size / max(self.prepared.rules, 1),
            "arrays": {name: array.nbytes for name, array in arrays.items()},
            "evaluator": self._evaluator_kind.name,
            "evaluator_bytes": labels,
            "own_bytes": size + labels + below,
            "conjunctions": len(self.conjunctions),
            "notes": {k: plain(v) for k, v in (self.index.notes() | self.evaluator.notes()).items()},
        }


def plain(value: object) -> object:
    """A note as JSON has it."""
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
