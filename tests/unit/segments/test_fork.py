"""A forked child has one thread, and must not wait for others, nor see what they left half done."""

from __future__ import annotations

import faulthandler
import importlib
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import eligo
from eligo import Matcher
from eligo.errors import EligoError
from eligo.forking import INNER, RULES, Forked, cached_property, fork_lock

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")

INDEXES = ("propagation", "be-tree", "pst-hash", "pst-bloom")
_SECONDS = 300  # after which a child that hangs is ended


def in_child(work: Callable[[], None]) -> None:
    """Do it in a forked child, and fail as it does."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(_SECONDS, exit=True, file=into)
        try:
            work()
            os._exit(0)
        except BaseException:
            os.write(into, traceback.format_exc().encode())
            os._exit(1)
    os.close(into)
    with os.fdopen(out, "rb") as read:
        said = read.read().decode()
    assert os.waitpid(child, 0)[1] == 0, said or "the child hung"


def expression(number: int) -> str:
    return f"a = {number % 7} and b > {number} and c in ('s{number % 5}', 'x{number}')"


def model(rules: dict[int, int], event: dict[str, object]) -> list[int]:
    return [
        rule
        for rule, number in rules.items()
        if event["a"] == number % 7 and event["b"] > number and event["c"] in (f"s{number % 5}", f"x{number}")  # type: ignore[operator]
    ]


def use(matcher: Matcher, events: list[dict[str, object]], path: Path) -> None:
    """Call all that the children call."""
    matcher.add_many((n, expression(n)) for n in range(300))
    matcher.add(-1, "a = 1")
    matcher.remove(-1)
    matcher.match(events[0])
    matcher.match_batch(events)
    matcher.observe(events)
    matcher.save(path / "used")
    eligo.open(path / "used").match(events[0])


@pytest.mark.parametrize("index", INDEXES)
def test_child_matches_adds_and_saves_while_threads_of_the_parent_change_rules(index: str, tmp_path: Path) -> None:
    events = [{"a": n % 7, "b": 10_000, "c": f"s{n % 5}"} for n in range(35)]
    use(Matcher(index), events, tmp_path)  # so that no child waits for a kernel that a thread of the parent compiles
    matcher = Matcher(index)
    matcher.add_many((n, expression(n)) for n in range(300))
    stop = threading.Event()
    failed: list[BaseException] = []

    def repeatedly(step: Callable[[int], None]) -> None:
        n = 0
        try:
            while not stop.is_set():
                step(n)
                n += 1
        except BaseException as error:
            failed.append(error)

    def change(n: int) -> None:
        matcher.add(1000 + n % 50, expression(n), replace=True)
        if n % 10 == 9:
            matcher.remove(1000 + n % 50)

    def load(n: int) -> None:
        matcher.add_many(((5000 + i, expression(i + n)) for i in range(64)), replace=True)

    steps = (change, load, lambda n: matcher.match_batch(events), lambda n: matcher.observe(events))
    threads = [threading.Thread(target=repeatedly, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    try:
        for turn in range(4):

            def work(turn: int = turn) -> None:
                rules = {rule: matcher.get(rule).expression for rule in matcher}
                assert set(range(300)) <= rules.keys()
                numbers = {rule: int(text.split("b > ")[1].split(" ")[0]) for rule, text in rules.items()}
                for event in events:
                    assert matcher.match(event) == model(numbers, event)
                matcher.add(-1, "a = 1")
                matcher.add_many((-2 - i, "a = 1") for i in range(200))
                matcher.remove(0)
                assert -1 in matcher.match({"a": 1})
                assert 0 not in matcher
                matcher.observe(events)
                matcher.engine.rules.wait()
                matcher.save(tmp_path / str(turn))
                assert len(eligo.open(tmp_path / str(turn))) == len(rules) + 200

            in_child(work)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failed, failed


@pytest.mark.parametrize("index", INDEXES)
def test_child_matches_while_a_thread_of_the_parent_is_in_the_middle_of_a_long_load(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eligo.forking.PATIENCE", 0.05)
    matcher = Matcher(index)
    matcher.add_many((n, expression(n)) for n in range(300))
    begun, end = threading.Event(), threading.Event()

    def slowly() -> Iterator[tuple[int, str]]:
        yield 1000, "a = 1"
        begun.set()
        end.wait()

    thread = threading.Thread(target=lambda: matcher.add_many(slowly()))
    thread.start()
    begun.wait()

    def work() -> None:
        assert matcher.match({"a": 1, "b": 300, "c": "s1"}) == model(
            {n: n for n in range(300)}, {"a": 1, "b": 300, "c": "s1"}
        )
        assert matcher.get(7).id == 7
        assert 1000 not in matcher
        matcher.add(2000, "a = 1")
        assert 2000 in matcher

    try:
        in_child(work)
    finally:
        end.set()
        thread.join()
    assert 1000 in matcher
    matcher.add(2000, "a = 1")


def test_child_matches_while_a_thread_of_the_parent_changes_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.forking.PATIENCE", 0.05)
    for index in INDEXES:
        matcher = Matcher(index)
        matcher.add(7, "a = 1")
        begun, end = threading.Event(), threading.Event()

        def change(matcher: Matcher = matcher, begun: threading.Event = begun, end: threading.Event = end) -> None:
            with matcher.engine.rules.lock, matcher.engine.rules.quietly():
                begun.set()
                end.wait()

        thread = threading.Thread(target=change)
        thread.start()
        begun.wait()

        def work(matcher: Matcher = matcher) -> None:
            assert matcher.match({"a": 1}) == [7]
            with pytest.raises(EligoError, match="forked"):
                matcher.add(2000, "a = 1")

        try:
            in_child(work)
        finally:
            end.set()
            thread.join()


def test_fork_within_a_load_of_the_same_thread() -> None:
    for index in INDEXES:
        matcher = Matcher(index)
        matcher.add("first", "a = 1")

        def rules(matcher: Matcher = matcher) -> Iterator[tuple[str, str]]:
            yield "second", "a = 1"
            in_child(lambda: assert_equal(matcher.match({"a": 1}), ["first"]))

        matcher.add_many(rules())
        assert matcher.match({"a": 1}) == ["first", "second"]


def test_fork_waits_for_a_lock_that_a_thread_made_and_took_while_it_waited_for_others() -> None:
    class Owner:
        def __init__(self) -> None:
            self.lock = fork_lock(self, "lock", INNER)

    owners: list[Owner] = []

    class Slow(Forked):
        rank = RULES

        def before_fork(self, deadline: float) -> None:
            if owners:
                return
            taken = threading.Event()

            def make() -> None:
                owners.append(Owner())
                with owners[0].lock:
                    taken.set()
                    time.sleep(0.2)

            threading.Thread(target=make).start()
            taken.wait()

        def after_fork_in_parent(self) -> None:
            pass

        def after_fork_in_child(self) -> None:
            pass

    slow = Slow()
    slow.register()
    in_child(lambda: assert_equal(owners[0].lock.acquire(timeout=1), True))
    assert owners[0].lock.acquire(timeout=1)


def assert_equal(found: object, expected: object) -> None:
    assert found == expected


def test_child_does_not_wait_for_a_value_that_a_thread_of_the_parent_was_making() -> None:
    begun, going_on = threading.Event(), threading.Event()

    class Lazy:
        def __init__(self, slow: bool) -> None:
            self.slow = slow

        @cached_property
        def value(self) -> int:
            if self.slow:
                begun.set()
                going_on.wait()
            return 1

    maker = threading.Thread(target=lambda: Lazy(True).value)
    maker.start()
    begun.wait()

    def work() -> None:
        faulthandler.dump_traceback_later(20, exit=True)
        assert Lazy(False).value == 1

    try:
        in_child(work)
    finally:
        going_on.set()
        maker.join()


def test_fork_waits_for_a_module_that_another_thread_is_importing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text("import threading, time\nthreading.begun.set()\ntime.sleep(0.3)\nvalue = 1\n")
    monkeypatch.setattr(eligo, "__path__", [*eligo.__path__, str(tmp_path)])
    begun = threading.Event()
    monkeypatch.setattr(threading, "begun", begun, raising=False)
    importer = threading.Thread(target=lambda: importlib.import_module("eligo.slow"))
    importer.start()
    begun.wait()

    def work() -> None:
        faulthandler.dump_traceback_later(20, exit=True)
        assert importlib.import_module("eligo.slow").value == 1

    try:
        in_child(work)
    finally:
        importer.join()
        sys.modules.pop("eligo.slow", None)


def test_values_that_are_made_once_are_made_without_a_lock() -> None:
    files = Path(eligo.__file__).parent.rglob("*.py")
    assert [f.name for f in files if "functools import cached_property" in f.read_text()] == ["forking.py"]
