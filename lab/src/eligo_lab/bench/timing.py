"""Contenders in turn, again and again, so that a noisy moment hits all of them; and what the times come to.

    repetition 1   A B C  B C A  C A B …    each letter: one contender over a block of events, one after another
                   A B C                    then each over all events at once
    repetition 2   B C A  C A B  A B C …    a ratio is taken within a repetition: both sides saw the same machine
                   B C A

Of several repetitions the smallest mean is reported, with the largest beside it: other processes only ever add time.
`quiet` is the mean over the events of each one's best repetition, which hardly sees them at all.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo_lab.bench.contenders.base import Contender
from eligo_lab.bench.verify import DisagreementError

MATCH = ("index", "group", "evaluate")  # of the phases: what matching is once an event is encoded

_BLOCK = 100  # events a turn: few enough that turns come often, enough that the caches are one's own again

Times = dict[str, list[dict[str, Any]]]  # contender to one entry a repetition


def measure(contenders: Sequence[Contender], repeat: int, *, always_emit: bool, step: Callable[[], None]) -> Times:
    """Run everyone `repeat` times.

    Ids cost the same whoever found the rules, and where many match they cost more than all else: they are made for the
    first block of the first repetition alone unless `always_emit`.
    """
    times: Times = {contender.name: [] for contender in contenders}
    for repetition in range(repeat):
        for name, figures in _repetition(contenders, repetition, always_emit, step).items():
            times[name].append(figures)
    return times


def _repetition(
    contenders: Sequence[Contender], number: int, always_emit: bool, step: Callable[[], None]
) -> dict[str, dict[str, Any]]:
    events = len(contenders[0].prepared.places)
    emitted = events if always_emit else min(events, _BLOCK) if number == 0 else 0
    before = {contender.name: contender.counters() for contender in contenders}
    figures: dict[str, dict[str, Any]] = {
        contender.name: {"clock": np.zeros((len(contender.phases), events), np.int64), "emitted": emitted, "batch": {}}
        for contender in contenders
    }
    matches = dict.fromkeys(figures, 0)
    gc.collect()
    gc.disable()  # as timeit does: a collection in the middle would be charged to whoever runs then
    try:
        for turn, first in enumerate(range(0, events, _BLOCK)):
            for contender in _turned(contenders, number + turn):
                clock, stop = figures[contender.name]["clock"], min(first + _BLOCK, events)
                matches[contender.name] += contender.run(clock, first, stop, first < emitted)
        for contender in _turned(contenders, number):
            batch = contender.run_batch()
            figures[contender.name]["batch"] = {phase: spent / events for phase, spent in batch.items()}
            step()
    finally:
        gc.enable()
    if len(set(matches.values())) > 1:
        raise DisagreementError(f"what was timed is not what was verified: matches in all, {matches}")
    for contender in contenders:
        start, end = before[contender.name], contender.counters()
        if start is not None and end is not None:
            runs = 2 if contender.has_batch else 1
            figures[contender.name]["counters"] = [(b - a) / runs / events for a, b in zip(start, end, strict=True)]
    return figures


def _turned(contenders: Sequence[Contender], turn: int) -> list[Contender]:
    """All of them, another one first each time."""
    place = turn % len(contenders)
    return [*contenders[place:], *contenders[:place]]


def summary(contender: Contender, passes: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of one contender: phases, mean, p50 and p99 of an event, all in nanoseconds."""
    phases: dict[str, float] = {}
    for number, phase in enumerate(contender.phases):
        if phase == "emit":
            phases[phase] = quiet([one["clock"][number, : one["emitted"]] for one in passes if one["emitted"]])
        else:
            phases[phase] = quiet([one["clock"][number] for one in passes])
    result: dict[str, Any] = {"phases_ns": phases, "match_ns": spread([_match(contender, one) for one in passes])}
    result["total_ns"] = spread([one["clock"].sum(axis=0)[: one["emitted"]] for one in passes if one["emitted"]])
    batches = [one["batch"] for one in passes if one["batch"]]
    if batches:
        searched = [one["index"] + one["evaluate"] for one in batches]
        result["batch_ns"] = {
            "mean": min(searched),
            "worst": max(searched),
            "phases": {name: min(one[name] for one in batches) for name in batches[0]},
        }
    if "counters" in passes[0]:
        result["candidates"], result["evaluations"] = passes[0]["counters"]
    return result


def spread(rounds: list[NDArray[np.int64]]) -> dict[str, Any]:
    """Mean, median and 99th percentile of an event: the best of the repetitions; `worst` is the largest mean."""
    means = [float(one.mean()) for one in rounds]
    return {
        "mean": min(means),
        "worst": max(means),
        "quiet": quiet(rounds),
        "p50": min(float(np.percentile(one, 50)) for one in rounds),
        "p99": min(float(np.percentile(one, 99)) for one in rounds),
        "repetitions": means,
    }


def quiet(rounds: list[NDArray[np.int64]]) -> float:
    """The mean over the events of each one's best repetition."""
    return float(np.minimum.reduce(rounds).mean())


def speedups(contenders: Sequence[Contender], times: Times, baseline: str) -> dict[str, dict[str, Any]]:
    """How many times faster than the baseline each one is, by what is compared: lowest, median and highest."""
    base = next(contender for contender in contenders if contender.name == baseline)
    result: dict[str, dict[str, Any]] = {}
    for contender in contenders:
        own: dict[str, list[float]] = {"index": [], "match": [], "total": [], "batch": []}
        for mine, theirs in zip(times[contender.name], times[baseline], strict=True):
            if "index" in contender.phases and "index" in base.phases:
                place = contender.phases.index("index")
                own["index"].append(theirs["clock"][base.phases.index("index")].mean() / mine["clock"][place].mean())
            if contender.kind == base.kind:
                own["match"].append(_match(base, theirs).mean() / _match(contender, mine).mean())
            emitted = mine["emitted"]
            if emitted:
                own["total"].append(theirs["clock"][:, :emitted].sum() / mine["clock"][:, :emitted].sum())
            if mine["batch"] and theirs["batch"]:
                own["batch"].append(_searched(theirs["batch"]) / _searched(mine["batch"]))
        result[contender.name] = {
            what: {"low": min(values), "median": float(np.median(values)), "high": max(values)}
            for what, values in own.items()
            if values
        }
    return result


def _searched(batch: dict[str, float]) -> float:
    return batch["index"] + batch["evaluate"]


def _match(contender: Contender, one: dict[str, Any]) -> NDArray[np.int64]:
    """Time of each event without encoding and ids; all of it where a contender has no such phases."""
    chosen = [number for number, phase in enumerate(contender.phases) if phase in MATCH]
    clock: NDArray[np.int64] = one["clock"]
    times: NDArray[np.int64] = (clock[chosen] if chosen else clock).sum(axis=0)
    return times


def clock_cost() -> float:
    """Nanoseconds that reading the clock adds to a phase."""
    from time import perf_counter_ns as now

    gaps = np.array([-now() + now() for _ in range(2000)])
    return float(np.median(gaps))
