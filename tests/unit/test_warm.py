"""Filling the kernel cache in several processes."""

from __future__ import annotations

import subprocess
import sys
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


def test_kernels_of_threads_that_share_a_batch_are_filled_in() -> None:
    program = """
import pyarrow as pa
import eligo
from eligo import warm
from eligo.batch import answers, block, engine, search
from eligo.segments import view

def versions():
    kernels = (kernel for module in (answers, block, search, view) for kernel in vars(module).values())
    return sum(len(getattr(kernel, "overloads", ())) for kernel in kernels)

warm._run(warm.BATCHES)
filled = versions()
engine._WORTH = 0
matcher = eligo.Matcher("bitmap")
matcher.add_many((f"rule {n}", f"a = {n}") for n in range(100))
events = pa.table({"a": range(3000)})
matcher.match_batch(events, threads=1)
matcher.match_batch(events, threads=2)
assert matcher.engine.rules.view.shares
print(versions() - filled)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True)
    assert run.stdout == "0\n"


def test_the_kernel_that_lists_integer_ids_is_filled_in() -> None:
    program = """
import eligo
from eligo import warm
from eligo.segments.rule_table import take_integers

warm._run("propagation/interval")
filled = len(take_integers.overloads)
matcher = eligo.Matcher("propagation")
matcher.add_many((n, f"a = {n}") for n in range(100))
assert list(matcher) == list(range(100))
print(len(take_integers.overloads) - filled)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=True)
    assert run.stdout == "0\n"
