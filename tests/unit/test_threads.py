"""Work for several threads, also where there are no threads to be had."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from eligo.threads import Team, in_order


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("there", [0, 1, 3])
def test_work_is_done_once_where_threads_cannot_be_started(
    monkeypatch: pytest.MonkeyPatch, threads: int, there: int
) -> None:
    start: Callable[[threading.Thread], None] = threading.Thread.start
    started: list[threading.Thread] = []

    def limited(self: threading.Thread) -> None:
        if len(started) >= there:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    done: list[int] = []

    def work(i: int) -> int:
        done.append(i)
        return 10 * i

    assert list(in_order(work, range(40), threads)) == [10 * i for i in range(40)]
    assert sorted(done) == list(range(40))
    started.clear()
    with Team(threads) as team:
        for _ in range(20):
            done.clear()
            team.each(work)
            assert sorted(done) == list(range(threads))


def test_errors_are_raised_where_threads_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)

    def work(i: int) -> int:
        if i > 1:
            raise ValueError(i)
        return i

    found = []
    with pytest.raises(ValueError, match="2"):
        found.extend(in_order(work, range(9), 3))
    with Team(4) as team, pytest.raises(ValueError, match="2"):
        team.each(work)


def test_threads_that_outlive_the_main_one_can_match_batches() -> None:
    """When the main thread has ended there are no pools of threads any more."""
    program = """
import threading
from concurrent.futures import thread
from eligo.threads import Team, in_order

def late():
    while not thread._shutdown:
        pass
    print(list(in_order(abs, range(-5, 0), 2)))
    done = []
    with Team(3) as team:
        team.each(done.append)
    print(sorted(done))

threading.Thread(target=late).start()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split("\n")[:2] == ["[5, 4, 3, 2, 1]", "[0, 1, 2]"]
