"""Many events at once: `auto`, which matches in blocks where that pays, beside an index on one event after another.

    make ─▶ compile once, a matcher each ─▶ verify ─▶ everyone in turn, several times
                                              └ a difference: DisagreementError, and no figures

    blocks         `bitmap`: match_batch in one thread, Arrow in and Arrow out
    blocks, all    the same, in all threads
    auto           `auto`, in one thread
    auto, one      `auto`, match(dict) one by one, ids out
    interval,      `propagation` with these evaluators, match_batch in one thread
    shared
    by hand        of `tenants` alone: a dict from tenant to rules, each a compiled function, one by one

Answers are verified before: those of all events in blocks, of the slower ones on some, and of some one by one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

import eligo
from eligo_lab.bench.harness import Task
from eligo_lab.bench.prepare import Prepared, as_dicts, prepare
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.tables import Table, digits, duration
from eligo_lab.bench.verify import DisagreementError
from eligo_lab.workload.base import WORKLOADS, Workload

BLOCKS, ALL, AUTO, ONE, BY_HAND = "blocks", "blocks, all", "auto", "auto, one", "by hand"
EVALUATORS = ("interval", "shared")
_FEW = 512  # events of a batch that is matched by an index alone
_SINGLE = 200  # events one by one


def run(task: Task, progress: Progress) -> list[dict[str, Any]]:
    """The one point of a task."""
    progress.stage(f"making {task.rules:,} rules of {task.workload}")
    made = WORKLOADS[task.workload].make(**task.parameters, rules=task.rules, events=task.events, seed=task.seed)
    events = made.events.slice(0, task.events)
    few, dicts = events.slice(0, _FEW), as_dicts(events.slice(0, _SINGLE))
    progress.stage("compiling")
    matchers = {name: matcher_of(made, task, index, evaluator) for name, index, evaluator in _kinds()}
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        BLOCKS: (events.num_rows, lambda: matchers[BLOCKS].match_batch(events, threads=1)),
        ALL: (events.num_rows, lambda: matchers[BLOCKS].match_batch(events)),
        AUTO: (events.num_rows, lambda: matchers[AUTO].match_batch(events, threads=1)),
        ONE: (len(dicts), lambda: [matchers[AUTO].match(event) for event in dicts]),
    }
    for name in EVALUATORS:
        ways[name] = few.num_rows, partial(matchers[name].match_batch, few, threads=1)
    if task.workload == "tenants":
        by_hand = _by_hand(made)
        ways[BY_HAND] = len(dicts), lambda: [by_hand(event) for event in dicts]
    progress.stage("verifying")
    found = _verify(ways, task.workload)
    progress.stage("matching", task.repeat)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(task.repeat):
        for name, (count, work) in ways.items():
            gc.collect()
            started = time.perf_counter_ns()
            work()
            times[name].append((time.perf_counter_ns() - started) / count)
        progress.step()
    return [
        {
            "workload": task.workload,
            "parameters": {**task.parameters, "rules": task.rules, "events": task.events, "seed": task.seed},
            "measured": made.measured,
            "rules": task.rules,
            "events": task.events,
            "repeat": task.repeat,
            "matches": found / events.num_rows,
            "left_out": dict(task.left_out),
            "contenders": {
                name: {"kind": "matcher", "match_ns": {"quiet": min(figures)}, "notes": {}}
                for name, figures in times.items()
            },
        }
    ]


def _kinds() -> list[tuple[str, str, str]]:
    others = [(name, "propagation", name) for name in EVALUATORS]
    return [(BLOCKS, "bitmap", "interval"), (AUTO, "auto", "interval"), *others]


def matcher_of(made: Workload, task: Task, index: str, evaluator: str) -> eligo.Matcher:
    """A matcher of the rules, which are 0, 1, …; without text where they need not be written for it."""
    matcher = eligo.Matcher(index, evaluator)
    if made.draft is None:
        matcher.add_many(made.rules.slice(0, task.rules))
        return matcher
    ready: Prepared = prepare(made, task.rules, 1)
    rules = matcher.engine.rules
    rules.multi = ready.multi
    rules.adopt(ready.attributes, ready.strings)
    rules.extend([rules.made(ready.table, ready.compiled)])
    return matcher


def _verify(ways: dict[str, tuple[int, Callable[[], object]]], workload: str) -> int:
    """Whether everyone gives the same answers as far as each goes; how many matches there are."""
    whole = ways[BLOCKS][1]()
    assert isinstance(whole, pa.Table)
    for name, (_, work) in ways.items():
        answer = work()
        if not isinstance(answer, pa.Table):
            assert isinstance(answer, list)
            answer = pa.table(
                {
                    "event": pa.array([i for i, ids in enumerate(answer) for _ in ids], pa.int64()),
                    "rule": pa.array([rule for ids in answer for rule in ids], whole.schema.field("rule").type),
                }
            )
        if not whole.slice(0, answer.num_rows).combine_chunks().equals(answer.combine_chunks()):
            raise DisagreementError(f"{workload}: {name} gives other answers than {BLOCKS}")
    return int(whole.num_rows)


def _by_hand(made: Workload) -> Callable[[dict[str, Any]], list[int]]:
    """What anybody writes in an hour: rules by tenant, each as a function of Python."""
    rules: dict[str, list[tuple[int, Callable[[dict[str, Any]], bool]]]] = {}
    for number, text in zip(made.rules["id"].to_pylist(), made.rules["expression"].to_pylist(), strict=True):
        tenant, _, rest = text.partition(" and ")
        python = rest.replace(" = ", " == ")
        for name in {word for word in rest.replace("(", " ").replace(")", " ").split() if word[0] in "xys"}:
            python = python.replace(f"({name} ", f"(e['{name}'] ").replace(f"or {name} ", f"or e['{name}'] ")
        rules.setdefault(tenant.split("'")[1], []).append((number, eval(f"lambda e: {python}")))

    def match(event: dict[str, Any]) -> list[int]:
        return [number for number, holds in rules.get(event["tenant"], ()) if holds(event)]

    return match


def batched(experiment: dict[str, Any]) -> Any:
    """Times of an event, and how many times faster blocks are."""
    points = experiment["points"]
    names = [
        name for name in (BLOCKS, ALL, AUTO, *EVALUATORS, ONE, BY_HAND) if any(name in p["contenders"] for p in points)
    ]
    rows: list[tuple[str, ...]] = []
    ratios: list[tuple[str, ...]] = []
    for point in points:
        times = {name: figures["match_ns"]["quiet"] for name, figures in point["contenders"].items()}
        rows.append(
            (
                point["label"],
                f"{point['rules']:,}",
                f"{point['matches']:,.1f}",
                *(duration(times[name]) if name in times else "" for name in names),
            )
        )
        others = [name for name in names if name not in (BLOCKS, ONE, BY_HAND)]
        ratios.append(
            (point["label"], *(digits(times[name] / times[BLOCKS]) if name in times else "" for name in others))
        )
    table: Table = ("time of an event", ("case", "rules", "matches an event", *names), rows)
    yield table
    yield (
        "times slower than blocks in one thread",
        ("case", *(n for n in names if n not in (BLOCKS, ONE, BY_HAND))),
        ratios,
    )
