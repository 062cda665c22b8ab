"""Rules of one workload replaced by those of another, one by one, and back: does an index that changes stay good?

    numbers   0 ──────────── k ──────────── n        forth: Y has the numbers below k, X the others, k grows
              [  rules of Y  |  rules of X  ]        back: the other way round

The BE-Tree paper §7.3.2, "Adapting to Subscription Changes" (Figure 13). Half of the events are of X, half of Y.
After each part of the replacements the events run through the index that has changed and through one built anew over
the same rules, in turn. Both adjust themselves as they do in a matcher: a little after each update, more after some
hundred events. Before they are timed, both are held against `scan` over the living rules.

What is replaced are conjunctions, which are all that an index knows; in these workloads each rule is one.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from time import perf_counter_ns as now
from typing import Any, cast

import numpy as np
import pyarrow as pa

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I64
from eligo.compile.conjunctions import build_conjunctions
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.index.native import NativeIndex
from eligo.index.registry import INDEXES
from eligo.index.rows.row_encoder import rows_of
from eligo.index.scan import Scan
from eligo.options import own
from eligo.segments.encoding import encoded_slices
from eligo_lab.bench.contenders.base import UnfitError
from eligo_lab.bench.contenders.indexed import plain
from eligo_lab.bench.experiment import FRESH
from eligo_lab.bench.harness import Task
from eligo_lab.bench.prepare import special_attributes
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.timing import spread
from eligo_lab.bench.verify import DisagreementError
from eligo_lab.workload.base import Workload, generate

STEPS = 10  # points on the way forth, and as many back
_UPDATED = 4  # effort of adjusting after an update,
_EVENTS, _SEARCHED = 256, 2048  # and after so many events; as living/ has it
_PIECE = 1024  # rows inserted at once when an index is built anew
_WARM = 300


@dataclass
class Side:
    """The rules of one workload as rows, and which of them each event satisfies."""

    words: I64
    offsets: I64
    truth: list[I64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass
class Stage:
    """Both sides, the events, and what of each side lives: numbers below `border` are of `low`, others of `high`."""

    low: Side
    high: Side
    border: int
    strings: Strings
    attributes: int
    places: list[tuple[EventBuffer, int]]

    def living(self) -> int:
        return min(self.border, len(self.low)) + max(len(self.high) - self.border, 0)

    def answer(self, event: int) -> I64:
        low, high = self.low.truth[event], self.high.truth[event]
        return np.sort(np.concatenate((low[low < self.border], high[high >= self.border])))


def run(task: Task, progress: Progress) -> list[dict[str, Any]]:
    """All points of one experiment, in order."""
    kinds, left_out = _native(task)
    progress.stage("generating both workloads")
    first = generate(task.workload, **task.parameters, rules=task.rules, events=task.events, seed=task.seed)
    parameters = task.parameters | task.other
    second = generate(task.workload, **parameters, rules=task.rules, events=task.events, seed=task.seed + 1)
    progress.stage("compiling rules, and what scan finds")
    stage = _stage(first, second, task)
    head: dict[str, Any] = {
        "workload": task.workload,
        "parameters": first.parameters,
        "other": {k: v for k, v in second.parameters.items() if v != first.parameters.get(k)},
        "measured": first.measured,
        "events": len(stage.places),
        "absent": task.absent,
        "repeat": task.repeat,
        "left_out": left_out,
    }
    progress.stage("warming kernels", len(kinds))
    for kind in kinds.values():
        _warm(kind, stage, own(kind, task.options))
        progress.step()
    indexes: dict[str, NativeIndex] = {}
    points: list[dict[str, Any]] = []
    updates = {name: np.zeros(0, np.int64) for name in kinds}
    progress.stage(f"inserting {len(stage.high):,} rules one by one")
    for name, kind in kinds.items():
        indexes[name] = kind.empty(stage.strings, **own(kind, task.options))
        updates[name] = _replace(indexes[name], stage.low, stage.high, 0, len(stage.high), stage.attributes, False)
    border = max(len(stage.low), len(stage.high))
    for step in range(2 * STEPS + 1):
        if step:
            if step == STEPS + 1:
                stage.low, stage.high, stage.border = stage.high, stage.low, 0
            stop = border * (1 + (step - 1) % STEPS) // STEPS
            progress.stage(f"replacing rules {stage.border:,} … {stop:,} of {border:,}")
            for name, index in indexes.items():
                updates[name] = _replace(index, stage.high, stage.low, stage.border, stop, stage.attributes, True)
            stage.border = stop
        share = step if step <= STEPS else 2 * STEPS - step
        figures = _measure(indexes, stage, task, updates)
        matches = float(np.mean([len(stage.answer(event)) for event in range(len(stage.places))]))
        points.append(
            {"label": f"{100 * share // STEPS}%", "x": step / STEPS, **head, "rules": stage.living()}
            | {"matches": matches, "verified": {"events": len(stage.places)}, "contenders": figures}
        )
    return points


def _native(task: Task) -> tuple[dict[str, type[NativeIndex]], dict[str, str]]:
    """Those who insert and delete by themselves; who does not, and is left out."""
    given = {index: INDEXES.get(index) for index in dict.fromkeys(task.indexes or INDEXES.all())}
    kinds = {name: cast(type[NativeIndex], kind) for name, kind in given.items() if kind.updates == "native"}
    left_out = task.left_out | {name: "it does not insert by itself" for name in given if name not in kinds}
    if not kinds:
        raise UnfitError("; ".join(f"{name} cannot take part: {why}" for name, why in left_out.items()))
    return kinds, left_out


def _stage(first: Workload, second: Workload, task: Task) -> Stage:
    """Both workloads compiled with the same tables of attributes and strings."""
    attributes, strings = Attributes(), Strings()
    if first.draft is None or second.draft is None:
        raise UnfitError(f"the rules of {task.workload} exist as text alone")
    drafts = [workload.draft for workload in (first, second)]
    compiled = [draft.compile(attributes, strings, task.absent) for draft in drafts if draft is not None]
    conjunctions = [build_conjunctions(one, strings, len(attributes))[1] for one in compiled]
    special: dict[str, int] = {}
    for one in conjunctions:
        for name, flags in special_attributes(one, attributes, ()).items():
            special[name] = special.get(name, 0) | flags
    encoder = Encoder(attributes, strings, special)
    half = max(task.events // 2, 1)
    table = pa.concat_tables([w.events.slice(0, half) for w in (first, second)], promote_options="default")
    mixed = np.random.default_rng(task.seed).permutation(table.num_rows)
    buffers = [buffer for _, _, buffer in encoded_slices(table.take(pa.array(mixed)), encoder)]
    places = [(buffer, row) for buffer in buffers for row in range(buffer.events)]
    sides = []
    for one in conjunctions:
        scan = Scan.build(one)
        scratch = scan.scratch()
        truth = [
            scratch.found[: scan.search(buffer, row, scratch)].astype(np.int64) for buffer, row in places
        ]  # fmt: skip
        sides.append(Side(*rows_of(one.compiled, one.strings), truth))
    return Stage(sides[1], sides[0], 0, strings, len(attributes), places)


def _replace(
    index: NativeIndex, going: Side, coming: Side, first: int, stop: int, attributes: int, deleting: bool
) -> I64:
    """Rows first … stop-1 of one side out and those of the other in, one by one; nanoseconds of each update."""
    times = np.zeros(2 * (stop - first), np.int64)
    numbers = np.arange(stop, dtype=np.int64)
    done = 0
    for i in range(first, stop):
        if deleting and i < len(going):
            started = now()
            index.delete(numbers[i : i + 1])
            index.adjust(_UPDATED)
            times[done] = now() - started
            done += 1
        if i < len(coming):
            started = now()
            index.insert(coming.words, coming.offsets, i, i + 1, attributes)
            index.adjust(_UPDATED)
            times[done] = now() - started
            done += 1
    return times[:done]


def _built(kind: type[NativeIndex], stage: Stage, options: dict[str, Any]) -> NativeIndex:
    """An index over the living rules, as if nothing had been there before."""
    index = kind.empty(stage.strings, **options)
    low = min(stage.border, len(stage.low))
    for side, start, end in ((stage.low, 0, low), (stage.high, stage.border, len(stage.high))):
        for first in range(start, end, _PIECE):
            stop = min(first + _PIECE, end)
            index.insert(side.words, side.offsets, first, stop, stage.attributes)
            index.adjust(_UPDATED * (stop - first))
    return index


def _warm(kind: type[NativeIndex], stage: Stage, options: dict[str, Any]) -> None:
    """Everything once on a few rows: a kernel is compiled, or loaded, at its first call."""
    index = kind.empty(stage.strings, **options)
    few = min(_WARM, len(stage.low), len(stage.high))
    _replace(index, stage.low, stage.high, 0, few, stage.attributes, False)
    _replace(index, stage.high, stage.low, 0, few, stage.attributes, True)
    index.adjust(_SEARCHED)
    index.search(*stage.places[0], index.scratch())


def _measure(
    indexes: dict[str, NativeIndex], stage: Stage, task: Task, updates: dict[str, I64]
) -> dict[str, dict[str, Any]]:
    """The figures of each index, and of one of its kind built anew."""
    figures: dict[str, dict[str, Any]] = {}
    for name, index in indexes.items():
        started = time.perf_counter()
        fresh = _built(type(index), stage, own(type(index), task.options))
        build = time.perf_counter() - started
        both = {name: index, f"{name}{FRESH}": fresh}
        for one, candidate in both.items():
            _verify(one, candidate, stage)
        figures |= _timed(both, stage, task.repeat)
        figures[f"{name}{FRESH}"]["build_s"] = build
        if len(updates[name]):
            spent = updates[name]
            figures[name]["updates"] = {
                "count": len(spent),
                "per_second": 1e9 / float(spent.mean()),
                "p99_ns": float(np.percentile(spent, 99)),
                "longest_ns": int(spent.max()),
            }
    return figures


def _verify(name: str, index: NativeIndex, stage: Stage) -> None:
    """Every event, against what scan found; the index sees them all, and adjusts itself, before it is timed."""
    scratch = index.scratch()
    for event, (buffer, row) in enumerate(stage.places):
        found = np.sort(scratch.found[: index.search(buffer, row, scratch)].astype(np.int64))
        wanted = stage.answer(event)
        if not np.array_equal(found, wanted):
            odd = np.setxor1d(found, wanted)[:5].tolist()
            raise DisagreementError(
                f"event {event}: {name} finds {len(found):,} conjunctions, scan {len(wanted):,} of those that are "
                f"there; the first that only one of them has, or that one has twice: {odd}"
            )
        if event % _EVENTS == _EVENTS - 1:
            index.adjust(_SEARCHED)


def _timed(both: dict[str, NativeIndex], stage: Stage, repeat: int) -> dict[str, dict[str, Any]]:
    """Both in turn, in blocks of events, several times; adjusting is timed apart."""
    events = len(stage.places)
    scratches = {name: index.scratch() for name, index in both.items()}
    clocks = {name: np.zeros((repeat, events), np.int64) for name in both}
    adjusting = dict.fromkeys(both, 0)
    gc.collect()
    gc.disable()
    try:
        for round in range(repeat):
            for turn, first in enumerate(range(0, events, _EVENTS)):
                order = list(both) if (round + turn) % 2 else list(reversed(both))
                for name in order:
                    search, clock, scratch = both[name].search, clocks[name][round], scratches[name]
                    for event in range(first, min(first + _EVENTS, events)):
                        buffer, row = stage.places[event]
                        started = now()
                        search(buffer, row, scratch)
                        clock[event] = now() - started
                    started = now()
                    both[name].adjust(_SEARCHED)
                    adjusting[name] += now() - started
    finally:
        gc.enable()
    result: dict[str, dict[str, Any]] = {}
    for name, index in both.items():
        times = spread(list(clocks[name]))
        candidates, evaluations = (scratches[name].counters[:2] / (repeat * events)).tolist()
        size = index.bytes()
        result[name] = {
            "kind": "index", "phases_ns": {"index": times["quiet"]}, "match_ns": times, "candidates": candidates,
            "evaluations": evaluations, "adjust_ns": adjusting[name] / (repeat * events), "bytes": size,
            "bytes_per_rule": size / max(stage.living(), 1), "evaluator_bytes": 0,
            "notes": {key: plain(value) for key, value in index.notes().items()},
        }  # fmt: skip
    return result
