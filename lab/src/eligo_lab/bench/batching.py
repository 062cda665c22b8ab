"""Many events at once and one by one: what `auto` plans, beside every fixed choice.

    make ─▶ compile once, a matcher each ─▶ verify ─▶ everyone in turn, several times
                                              └ a difference: DisagreementError, and no figures

    in batches, Arrow in and Arrow out, one thread    auto, blocks (`bitmap`), pst-hash, propagation with an evaluator
    in batches, all threads                           auto, all
    one by one, a dict in and ids out                 auto, one   propagation, one   pst-hash, one
    one by one, of `tenants` alone                    by hand: a dict from tenant to rules, each a compiled function

The option `later` is the share of the rules that come after the others: all but a few at once, these one by one. So a
matcher has several segments.

Answers are verified before: those of all events in blocks, of the slower ones on some, and of some one by one.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

import eligo
from eligo.segments.rule_set import RuleSet
from eligo_lab.bench.harness import Task
from eligo_lab.bench.prepare import Prepared, as_dicts, prepare, texts
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.tables import Table, digits, duration
from eligo_lab.bench.verify import DisagreementError
from eligo_lab.workload.base import WORKLOADS, Workload

AUTO, ALL, BLOCKS, HASH, BY_HAND = "auto", "auto, all", "blocks", "pst-hash", "by hand"
EVALUATORS = ("interval", "shared")
FIXED = (BLOCKS, HASH, *EVALUATORS)
ONE = {AUTO: "auto, one", "shared": "propagation, one", HASH: "pst-hash, one"}  # of which matcher
_FEW = 512  # events of a batch that is matched by an index alone
_SINGLE = 200  # events one by one
_LAST = 16  # of the rules that come later: those that come one by one
_COPIED = 1 << 28  # bytes, to see how fast memory is


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
        AUTO: (events.num_rows, lambda: matchers[AUTO].match_batch(events, threads=1)),
        ALL: (events.num_rows, lambda: matchers[AUTO].match_batch(events)),
    }
    for name in (HASH, *EVALUATORS):
        ways[name] = few.num_rows, partial(matchers[name].match_batch, few, threads=1)
    for name, way in ONE.items():
        ways[way] = len(dicts), partial(_one_by_one, matchers[name], dicts)
    singles = {way: [matchers[name].match(event) for event in dicts] for name, way in ONE.items()}
    if task.workload == "tenants":
        by_hand = _by_hand(made)
        ways[BY_HAND] = len(dicts), lambda: [by_hand(event) for event in dicts]
    progress.stage("verifying")
    found = _verify(ways, singles, task.workload)
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
            "floor": _floor(matchers[AUTO], events, found / events.num_rows),
            "left_out": dict(task.left_out),
            "contenders": {
                name: {"kind": "matcher", "match_ns": {"quiet": min(figures)}, "notes": {}}
                for name, figures in times.items()
            },
        }
    ]


def _kinds() -> list[tuple[str, str, str]]:
    others = [(name, "propagation", name) for name in EVALUATORS]
    return [(BLOCKS, "bitmap", "shared"), (AUTO, "auto", "auto"), (HASH, "pst-hash", "auto"), *others]


def _one_by_one(matcher: eligo.Matcher, events: list[dict[str, Any]]) -> None:
    """Matches events as somebody does who is done with the answer before the next one comes."""
    for event in events:
        matcher.match(event)


def matcher_of(made: Workload, task: Task, index: str, evaluator: str) -> eligo.Matcher:
    """A matcher of the rules, which are 0, 1, …; without text where they need not be written for it."""
    matcher = eligo.Matcher(index, evaluator)
    rules, later = matcher.engine.rules, int(task.rules * task.options.get("later", 0))
    if made.draft is None:
        matcher.add_many(made.rules.slice(0, task.rules - later))
    else:
        ready: Prepared = prepare(made, task.rules - later, 1)
        rules.multi = ready.multi
        rules.adopt(ready.attributes, ready.strings)
        rules.extend([rules.made(ready.table, ready.compiled)])
        rules.next_sequence = ready.rules
    rules.wait()  # until it is planned
    numbers = range(task.rules - later, task.rules)
    arriving = list(zip(numbers, texts(made, numbers), strict=True))
    matcher.add_many(arriving[:-_LAST])
    for number, text in arriving[-_LAST:]:
        matcher.add(number, text)
    return matcher


def _verify(
    ways: dict[str, tuple[int, Callable[[], object]]], singles: dict[str, list[list[Any]]], workload: str
) -> int:
    """Whether everyone gives the same answers as far as each goes; how many matches there are."""
    whole = ways[BLOCKS][1]()
    assert isinstance(whole, pa.Table)
    for name, (_, work) in ways.items():
        answer = singles[name] if name in singles else work()
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


def _floor(matcher: eligo.Matcher, events: pa.Table, matches: float) -> dict[str, float]:
    """What nobody can do without, by the event: its values read, the predicates of every rule that matches read, in the
    64 bits of a packed one each, and two numbers written for a match; and what the memory of this machine does.
    """
    rules = matcher.engine.rules
    assert isinstance(rules, RuleSet)
    whole = [segment.whole() for segment in rules.segments]
    predicates = sum(len(part.conjunction) for part in whole) / max(1, sum(part.conjunctions for part in whole))
    values = sum(len(column) - column.null_count for column in events.columns) / max(1, events.num_rows)
    return {
        "values": values,
        "predicates": predicates,
        "read": 16 * values + 8 * (1 + predicates) * matches,
        "written": 16 * matches,
        "bandwidth": _bandwidth(),
    }


@cache
def _bandwidth() -> float:
    """Bytes a second that one thread copies, read and written, from and to memory that no cache holds."""
    source, target = (np.ones(_COPIED // 8) for _ in range(2))
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - started)
    return 2 * _COPIED / best


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
    """Times of an event, and how `auto` compares with the best of those that people could have chosen."""
    points = experiment["points"]
    every = (AUTO, ALL, *FIXED, *ONE.values(), BY_HAND)
    names = [name for name in every if any(name in point["contenders"] for point in points)]
    rows: list[tuple[str, ...]] = []
    ratios: list[tuple[str, ...]] = []
    floors: list[tuple[str, ...]] = []
    for point in points:
        times = {name: figures["match_ns"]["quiet"] for name, figures in point["contenders"].items()}
        shown = (duration(times[name]) if name in times else "" for name in names)
        size = f"{point['rules']:,}", f"{point['events']:,}", f"{point['matches']:,.1f}"
        rows.append((point["label"], *size, *shown))
        batch, one = (min(some, key=times.__getitem__) for some in (FIXED, [ONE["shared"], ONE[HASH]]))
        beside = (batch, times[batch] / times[AUTO]), (one, times[one] / times[ONE[AUTO]])
        ratios.append(
            (point["label"], *(cell for name, ratio in beside for cell in (name, digits(ratio))),
             digits(times[AUTO] / times[ALL]))
        )  # fmt: skip
        floor = point["floor"]
        least = 1e9 * (floor["read"] + floor["written"]) / floor["bandwidth"]
        floors.append(
            (point["label"], f"{floor['values']:,.0f}", f"{floor['predicates']:.1f}", f"{floor['read']:,.0f}",
             f"{floor['written']:,.0f}", duration(least), duration(times[AUTO]), digits(times[AUTO] / least))
        )  # fmt: skip
    table: Table = ("time of an event", ("case", "rules", "events", "matches an event", *names), rows)
    yield table
    yield (
        "auto beside the best fixed choice; more than 1: faster",
        (
            "case",
            "best in batches",
            "its time by auto's",
            "best one by one",
            "its time by auto's",
            "all threads by one",
        ),
        ratios,
    )
    speed = max(point["floor"]["bandwidth"] for point in points) / 1e9
    yield (
        f"the least that memory allows, at {speed:.1f} GB/s in one thread: an event's values and the predicates of the "
        "rules that match read, and the matches written",
        (
            "case",
            "values",
            "predicates a rule",
            "bytes read",
            "bytes written",
            "that takes",
            "auto takes",
            "times that",
        ),
        floors,
    )
