"""Filling the kernel cache in several processes."""

from __future__ import annotations

from queue import SimpleQueue

import pytest

from eligo import warm
from eligo.errors import EligoError
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES


def test_everything_is_run_once() -> None:
    tasks = [pair for task in warm.tasks() for pair in task.split() if "/" in pair]
    assert len(tasks) == len(set(tasks))
    assert {pair.split("/")[0] for pair in tasks} >= set(INDEXES.all())
    assert {pair.split("/")[1] for pair in tasks} == set(EVALUATORS.all())


def test_a_process_that_fails_is_told_of(capfd: pytest.CaptureFixture[str]) -> None:
    waiting: SimpleQueue[str] = SimpleQueue()
    waiting.put("no-such-index/interval")
    with pytest.raises(EligoError, match="no-such-index"):
        warm._feed(waiting)
    assert "no-such-index" in capfd.readouterr().err
