"""The comparison of batches, small."""

from __future__ import annotations

import sys

import pytest

from eligo_lab.bench.batching import ALL, AUTO, BLOCKS, ONE, batched, matcher_of, run
from eligo_lab.bench.harness import Task
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.report import summary
from eligo_lab.workload.base import WORKLOADS

BEGEN = Task("begen", {"dimensions": 20, "match": 0.05}, rules=3000, events=100, repeat=1, options={"later": 0.05})


def test_everyone_is_timed_and_shown() -> None:
    (point,) = run(BEGEN, Progress(sys.stderr))
    assert {AUTO, ALL, BLOCKS, *ONE.values()} <= set(point["contenders"])
    assert point["matches"] > 10
    times, beside, floors = batched({"points": [point | {"label": "small"}]})
    for _, head, rows in (times, beside, floors):
        assert [len(row) for row in rows] == [len(head)]
    shown = "\n".join(summary([("batch/summary", "batches", [times, beside, floors])]))
    rules, matches, batch = times[2][0][1], times[2][0][3], times[2][0][4]
    assert f"| small | {rules} | {matches} | {batch} |" in shown


@pytest.mark.parametrize("workload", ["begen", "tenants"])
def test_rules_that_come_later_are_in_segments_of_their_own(workload: str) -> None:
    task = Task(workload, {}, rules=2000, events=10, options={"later": 0.05})
    made = WORKLOADS[workload].make(rules=task.rules, events=task.events, seed=task.seed)
    matcher = matcher_of(made, task, "bitmap", "shared")
    assert len(matcher) == task.rules
    assert len(matcher.engine.rules.view.segments) > 1
