"""Updates among matches through the matcher itself: how many a second, and how long does anybody wait?

    one thread            of 20 operations 18 are matches, one adds a rule and one removes one, in random order
    a writer and a reader the same numbers of each in two threads; the writer waits for the reader, so that the shares
                          stay what they are

Rules are text, events are dicts, answers are lists of ids, and the garbage collector runs as in any process; how long
it took is told apart. At the end of both cases answers are put to the reference.
"""

from __future__ import annotations

import gc
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns as now
from typing import Any

import numpy as np
import pyarrow as pa

import eligo
from eligo.index.registry import INDEXES
from eligo.language import parse
from eligo.language.reference import matches
from eligo.options import declared
from eligo_lab.bench.contenders.indexed import plain
from eligo_lab.bench.experiment import LONGEST
from eligo_lab.bench.harness import Task
from eligo_lab.bench.prepare import as_dicts, texts
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.verify import DisagreementError
from eligo_lab.workload.base import Workload, generate

CASES = ("one thread", "a writer and a reader")
_OF = 20  # operations: an addition, a removal, and matches
_DIFFERENT = 2_000  # events; they come again and again
_VERIFIED, _SOME = 10, 200  # events, and rules for each of them, that are put to the reference
_WARM = 300


class Load:
    """One matcher, the rules that it holds, and those to come."""

    def __init__(self, matcher: eligo.Matcher, rules: int, fresh: list[str], events: list[dict[str, Any]], seed: int):
        self.matcher = matcher
        self.events = events
        self.rng = random.Random(seed)
        self.living = np.arange(rules + len(fresh), dtype=np.int64)  # ids; the first `count` of them
        self.count = rules
        self.next, self.fresh = rules, fresh
        self.first = rules
        self.times: dict[str, list[int]] = {"match": [], "add": [], "remove": []}
        self.answers = 0

    def match(self) -> None:
        event = self.events[len(self.times["match"]) % len(self.events)]
        started = now()
        found = self.matcher.match(event)
        self.times["match"].append(now() - started)
        self.answers += len(found)

    def add(self) -> None:
        text = self.fresh[self.next - self.first]
        started = now()
        self.matcher.add(self.next, text)
        self.times["add"].append(now() - started)
        self.living[self.count] = self.next
        self.count += 1
        self.next += 1

    def remove(self) -> None:
        place = self.rng.randrange(self.count)
        rule = int(self.living[place])
        self.count -= 1
        self.living[place] = self.living[self.count]
        started = now()
        self.matcher.remove(rule)
        self.times["remove"].append(now() - started)

    def alone(self, rounds: int) -> None:
        """All operations one after the other."""
        operations = [self.add, self.remove, *[self.match] * (_OF - 2)]
        for _ in range(rounds):
            self.rng.shuffle(operations)
            for operation in operations:
                operation()

    def together(self, rounds: int) -> None:
        """Updates by a thread of their own. One that fails ends the run."""
        allowed = threading.Semaphore(0)
        failed: list[BaseException] = []

        def write() -> None:
            try:
                for _ in range(rounds):
                    for operation in (self.add, self.remove):
                        allowed.acquire()
                        operation()
            except BaseException as error:
                failed.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        for number in range(rounds * (_OF - 2)):
            self.match()
            if number % (_OF // 2 - 1) == 0:
                allowed.release()
        writer.join()
        if failed:
            raise failed[0]


def run(task: Task, progress: Progress) -> list[dict[str, Any]]:
    """A point for each case; `task.events` is how many matches each has."""
    rounds = max(task.events // (_OF - 2), 1)
    progress.stage(f"generating {task.rules:,} rules of {task.workload}")
    workload = generate(
        task.workload,
        **task.parameters,
        rules=task.rules + 2 * rounds,
        events=min(task.events, _DIFFERENT),
        seed=task.seed,
    )
    head: dict[str, Any] = {
        "x": None, "workload": task.workload, "parameters": workload.parameters, "measured": workload.measured,
        "rules": task.rules, "events": rounds * (_OF - 2), "updates": 2 * rounds, "absent": task.absent, "repeat": 1,
        "left_out": dict(task.left_out),
    }  # fmt: skip
    points = [{"label": case, **head, "contenders": {}} for case in CASES]
    for index in dict.fromkeys(task.indexes or INDEXES.all()):
        options = {k: v for k, v in task.options.items() if k in declared([INDEXES.get(index)])}
        progress.stage("warming kernels")
        _warm(workload, index, options, task)
        progress.stage(f"{index}: reading {task.rules:,} rules")
        load, seconds = _loaded(workload, index, options, task, rounds)
        for point in points:
            progress.stage(f"{index}: {point['label']}")
            point["contenders"][index] = _measured(load, rounds, point["label"]) | {"load_s": seconds}
            point["matches"] = load.answers / (rounds * (_OF - 2))
            point["verified"] = {"events": _VERIFIED, "reference_pairs": _verify(load, workload, index, task.absent)}
        del load
    return points


def _loaded(workload: Workload, index: str, options: dict[str, Any], task: Task, rounds: int) -> tuple[Load, float]:
    matcher = eligo.Matcher(index, absent=task.absent, options=options)  # type: ignore[arg-type]
    table = pa.table({"id": pa.array(range(task.rules)), "expression": workload.rules["expression"][: task.rules]})
    started = time.perf_counter()
    matcher.add_many(table)
    seconds = time.perf_counter() - started
    fresh = texts(workload, range(task.rules, task.rules + 2 * rounds))
    return Load(matcher, task.rules, fresh, as_dicts(workload.events), task.seed), seconds


def _warm(workload: Workload, index: str, options: dict[str, Any], task: Task) -> None:
    """Everything once on a few rules: a kernel is compiled, or loaded, at its first call."""
    few = min(_WARM, task.rules)
    matcher = eligo.Matcher(index, absent=task.absent, options=options)  # type: ignore[arg-type]
    given = texts(workload, range(few))
    matcher.add_many(enumerate(given))
    load = Load(matcher, few, given, as_dicts(workload.events.slice(0, 300)), task.seed)
    load.alone(few)


def _measured(load: Load, rounds: int, case: str) -> dict[str, Any]:
    load.times = {name: [] for name in load.times}
    load.answers = 0
    with _collections() as pauses:
        started = now()
        (load.alone if case == CASES[0] else load.together)(rounds)
        spent = now() - started
    stats = load.matcher.stats()
    operations = {name: _spread(times) for name, times in load.times.items()}
    return {
        "kind": "index",
        "per_second": sum(one["count"] for one in operations.values()) * 1e9 / spent,
        "operations": operations,
        "collections": {"count": len(pauses), "longest_ns": max(pauses, default=0), "total_ns": sum(pauses)},
        "bytes_per_rule": stats.bytes_per_rule,
        "notes": {key: plain(value) for key, value in stats.notes.items()},
    }


def _spread(times: list[int]) -> dict[str, Any]:
    spent = np.array(times, np.int64)
    return {
        "count": len(spent),
        "mean_ns": float(spent.mean()),
        "p50_ns": float(np.percentile(spent, 50)),
        "p99_ns": float(np.percentile(spent, 99)),
        "longest_ns": int(spent.max()),
        "over": int((spent > LONGEST).sum()),
    }


@contextmanager
def _collections() -> Iterator[list[int]]:
    """Nanoseconds of each collection of garbage while the block runs."""
    pauses: list[int] = []
    began = [0]

    def watch(phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            began[0] = now()
        else:
            pauses.append(now() - began[0])

    gc.callbacks.append(watch)
    try:
        yield pauses
    finally:
        gc.callbacks.remove(watch)


def _verify(load: Load, workload: Workload, index: str, absent: str) -> int:
    """Put some of what the matcher says now to the reference; how many pairs of an event and a rule."""
    living = load.living[: load.count]
    pairs = 0
    for event in load.rng.sample(load.events, min(_VERIFIED, len(load.events))):
        found = {int(rule) for rule in load.matcher.match(event)}
        dead = found.difference(living.tolist())
        if dead:
            raise DisagreementError(f"{index}: rule {min(dead)} was removed and still matches {event!r}")
        some = {int(living[load.rng.randrange(len(living))]) for _ in range(_SOME)}
        some.update(load.rng.sample(sorted(found), min(_SOME, len(found))))
        numbers = sorted(some)
        for rule, text in zip(numbers, texts(workload, numbers), strict=True):
            truth = matches(parse(text), event, absent)
            if truth != (rule in found):
                said = "does not match" if truth else "matches"
                raise DisagreementError(f"{index}: after updates rule {rule} ({text}) {said} {event!r}; it is wrong")
        pairs += len(numbers)
    if len(load.matcher) != load.count:
        raise DisagreementError(f"{index}: {len(load.matcher):,} rules are there, and {load.count:,} should be")
    return pairs
