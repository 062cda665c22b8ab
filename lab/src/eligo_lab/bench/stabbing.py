"""Intervals of one attribute and points that they hold: PS-Tree beside the classic structures (the PS-Tree paper
Table 3).

    draw ─▶ build each ─▶ verify ─▶ build, locate, count and matches: everyone in turn, several times ─▶ figures
                             └ a difference: DisagreementError, and no figures

    locate     where a point falls: what has to be found before answers can be read. 7 ns, which is what the paper's
               "querying" comes to for a point, cannot be more than this
    count      how many intervals hold it
    matches    their numbers, written down

`scan` looks at every interval for every point, and has nothing to locate. It gets fewer points, and so does `matches`
where the numbers for all of them would not fit; times are of one point.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns as now
from typing import Any, Protocol

import numpy as np

from eligo.compile.compiled import I32, I64
from eligo.errors import OptionError
from eligo.jit import kernel
from eligo_lab.bench.contenders.base import UnfitError
from eligo_lab.bench.harness import Task
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.verify import DisagreementError
from eligo_lab.intervals.interval_tree import IntervalTree
from eligo_lab.intervals.segment_tree import SegmentTree
from eligo_lab.intervals.single import PsTree

PARAMETERS: dict[str, Any] = {"coverage": 5.0, "domain": 10**9}  # and what they are if nobody says
SCANNED = 1_000  # points that scan gets
_NUMBERS = 5_000_000  # that `matches` writes down at once, at most
_TIMES = 3  # in a row, of which the best counts: for each repetition
_WARM = 50
BLOCK = 256


class Structure(Protocol):
    """What is compared; see eligo_lab/intervals."""

    def count(self, points: I64) -> I64: ...

    def matches(self, points: I64) -> tuple[I64, I32]: ...

    def bytes(self) -> int: ...


class Scan:
    """Every interval, for every point."""

    def __init__(self, low: I64, high: I64) -> None:
        self.low, self.high = low, high

    @classmethod
    def build(cls, low: I64, high: I64) -> Scan:
        return cls(low, high)

    def count(self, points: I64) -> I64:
        return scan_count(self.low, self.high, points)  # type: ignore[no-any-return]

    def matches(self, points: I64) -> tuple[I64, I32]:
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.count(points))))
        return offsets, scan_matches(self.low, self.high, points, offsets)

    def bytes(self) -> int:
        """Beyond the intervals themselves nothing."""
        return 0


def structures() -> dict[str, Any]:
    """The contenders by name."""
    return {"scan": Scan, "interval-tree": IntervalTree, "segment-tree": SegmentTree, "ps-tree": PsTree}


@dataclass(frozen=True)
class Stage:
    """Intervals and points, how many hold each, and how many points each operation gets."""

    low: I64
    high: I64
    points: I64
    held: I64
    enumerated: int

    def share(self, name: str, operation: str) -> I64:
        """The points that a contender gets for an operation."""
        count = self.enumerated if operation == "matches" else len(self.points)
        return self.points[: min(count, SCANNED) if name == "scan" else count]


def run(task: Task, progress: Progress) -> list[dict[str, Any]]:
    """The one point of a task."""
    kinds = {name: kind for name, kind in structures().items() if name in (task.indexes or structures())}
    if len(kinds) < len(task.indexes):
        odd = ", ".join(name for name in task.indexes if name not in kinds)
        raise UnfitError(f"{odd}: no structure of one attribute (there are: {', '.join(structures())})")
    parameters = _checked(task.parameters)
    progress.stage(f"drawing {task.rules:,} intervals and {task.events:,} points")
    stage = draw(task.rules, task.events, task.seed, **parameters)
    progress.stage("warming kernels", len(kinds))
    few = draw(_WARM, _WARM, task.seed, **parameters)
    for name, kind in kinds.items():
        _verify(name, kind.build(few.low, few.high), few)
        _timed({name: kind}, few, 1)
        progress.step()
    progress.stage("verifying", len(kinds))
    for name, kind in kinds.items():
        _verify(name, kind.build(stage.low, stage.high), stage)
        progress.step()
    progress.stage("timing", task.repeat)
    figures = _timed(kinds, stage, task.repeat, progress.step)
    return [
        {
            "workload": task.workload,
            "parameters": {**parameters, "rules": task.rules, "events": task.events, "seed": task.seed},
            "measured": {"coverage": float(stage.held.mean())},
            "rules": task.rules,
            "events": task.events,
            "repeat": task.repeat,
            "matches": float(stage.held.mean()),
            "enumerated": stage.enumerated,
            "scanned": min(SCANNED, task.events),
            "verified": {"events": task.events, "numbers": int(stage.held[: stage.enumerated].sum())},
            "left_out": dict(task.left_out),
            "contenders": figures,
        }
    ]


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    """Parameters as numbers; a name or a value that makes no sense is refused."""
    for name, value in given.items():
        if name not in PARAMETERS:
            raise OptionError(f"intervals have no parameter {name!r} (there are: {', '.join(PARAMETERS)})")
        try:
            sound = 0 <= float(value) <= 2**62
        except ValueError:
            sound = False
        if not sound or (name == "domain" and float(value) < 1):
            raise OptionError(f"intervals: {name}={value!r} is no number that makes sense here")
    return PARAMETERS | {name: type(PARAMETERS[name])(float(value)) for name, value in given.items()}


def draw(intervals: int, points: int, seed: int, coverage: float, domain: int) -> Stage:
    """Intervals and points at random below `domain`.

    `coverage` is how many intervals hold a point on average. With 0 both ends are drawn, and a third of them do.
    """
    rng = np.random.default_rng(seed)
    low, high = rng.integers(0, domain, intervals), rng.integers(0, domain, intervals)
    if coverage:
        high = low + rng.integers(0, 2 * min(int(coverage * domain / intervals), domain) + 1, intervals)
    low, high = np.minimum(low, high), np.maximum(low, high)
    at = rng.integers(0, domain, points)
    held = np.searchsorted(np.sort(low), at, "right") - np.searchsorted(np.sort(high), at, "left")
    fitting = int(np.searchsorted(np.cumsum(held), _NUMBERS, "right"))
    return Stage(low, high, at, held, max(fitting, 1))


def _verify(name: str, structure: Structure, stage: Stage) -> None:
    """Its counts are those that sorting the ends gives; its numbers are as many, all different, and hold the point."""
    points = stage.share(name, "count")
    count = structure.count(points)
    wrong = np.flatnonzero(count != stage.held[: len(points)])
    if len(wrong):
        p = int(wrong[0])
        raise DisagreementError(
            f"point {p} ({points[p]}): {name} counts {count[p]:,} intervals, and {stage.held[p]:,} hold it"
        )
    points = stage.share(name, "matches")
    offsets, numbers = structure.matches(points)
    if len(offsets) != len(points) + 1 or offsets[-1] != len(numbers):
        raise DisagreementError(f"{name}: the offsets of {len(points):,} points do not fit {len(numbers):,} numbers")
    owner = np.repeat(np.arange(len(points)), np.diff(offsets))
    known = (numbers >= 0) & (numbers < len(stage.low))
    interval = np.where(known, numbers, 0)
    holds = known & (stage.low[interval] <= points[owner]) & (points[owner] <= stage.high[interval])
    pairs = np.sort(owner * len(stage.low) + interval)
    odd_ones = np.diff(offsets) != stage.held[: len(points)]
    odd_ones[owner[~holds]] = True
    odd_ones[pairs[1:][pairs[1:] == pairs[:-1]] // len(stage.low)] = True
    if odd_ones.any():
        p = int(np.argmax(odd_ones))
        found = numbers[offsets[p] : offsets[p + 1]]
        true = np.flatnonzero((stage.low <= points[p]) & (points[p] <= stage.high))
        odd = np.setxor1d(found, true)[:5].tolist()
        raise DisagreementError(
            f"point {p} ({points[p]}): {name} gives {len(found):,} intervals, and {len(true):,} hold it; the first "
            f"that are wrong or missing (none: one comes twice): {odd}"
        )


def _timed(
    kinds: dict[str, Any], stage: Stage, repeat: int, step: Callable[[], None] = lambda: None
) -> dict[str, dict[str, Any]]:
    """Everyone in turn, another one first in each repetition."""
    times: dict[str, dict[str, list[float]]] = {name: {} for name in kinds}
    built: dict[str, Any] = {}
    gc.collect()
    gc.disable()
    try:
        for turn in range(repeat):
            names = list(kinds)
            names = names[turn % len(names) :] + names[: turn % len(names)]
            for name in names:
                started = now()
                built[name] = kinds[name].build(stage.low, stage.high)
                times[name].setdefault("build", []).append(float(now() - started))
            for operation in ("locate", "count", "matches"):
                for name in names:
                    if hasattr(built[name], operation):
                        spent = _best(getattr(built[name], operation), stage.share(name, operation))
                        times[name].setdefault(operation, []).append(spent)
            step()
    finally:
        gc.enable()
    return {
        name: {
            "kind": "structure",
            "build_s": min(own.pop("build")) / 1e9,
            "bytes": built[name].bytes(),
            "bytes_per_rule": built[name].bytes() / len(stage.low),
            "point_ns": {what: {"best": min(rounds), "repetitions": rounds} for what, rounds in own.items()},
            "notes": {},
        }
        for name, own in times.items()
    }


def _best(ask: Callable[[I64], object], points: I64) -> float:
    """Nanoseconds of a point."""
    quickest = 0
    for _ in range(_TIMES):
        started = now()
        ask(points)
        spent = now() - started
        quickest = min(quickest or spent, spent)
    return quickest / len(points)


@kernel
def scan_count(low, high, points):
    count = np.empty(len(points), np.int64)
    for p in range(len(points)):
        x, held = points[p], 0
        for i in range(len(low)):
            held += np.int64((low[i] <= x) & (x <= high[i]))
        count[p] = held
    return count


@kernel
def scan_matches(low, high, points, offsets):
    found = np.empty(offsets[-1] + 1, np.int32)  # one more: what does not hold is written there, and written over
    for p in range(len(points)):
        x, at = points[p], offsets[p]
        for first in range(0, len(low), BLOCK):
            stop, held = min(first + BLOCK, len(low)), 0
            for i in range(first, stop):
                held += np.int64((low[i] <= x) & (x <= high[i]))
            if held:  # few blocks have any where intervals are narrow, and counting is done by vectors
                for i in range(first, stop):
                    found[at] = i
                    at += np.int64((low[i] <= x) & (x <= high[i]))
    return found[:-1]
