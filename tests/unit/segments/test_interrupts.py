"""Ctrl-C at any moment: it is a KeyboardInterrupt, and what it met is done whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from eligo import Matcher
from eligo.interrupts import checkpoint, interrupt_within, uninterrupted


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C as a terminal has it: a build machine may run tests with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


_HAMMER = """
import os, random, signal, sys, threading, time
from eligo import Matcher

index, tries = sys.argv[1], int(sys.argv[2])
rng = random.Random(index)
armed, fire, fired, delay = [False], threading.Event(), threading.Event(), [0.0]


def interrupt(*_):
    if armed[0]:
        raise KeyboardInterrupt


def press():
    while True:
        fire.wait()
        fire.clear()
        time.sleep(delay[0])
        os.kill(os.getpid(), signal.SIGINT)
        fired.set()


signal.signal(signal.SIGINT, interrupt)
threading.Thread(target=press, daemon=True).start()


def text(n):
    more = f" or d contains any ('k{n}')" if n % 11 == 0 else ""
    return f"a = {n % 3} and b > {n} and c in ('s{n % 5}', 'x{n}')" + more


EVENTS = [{"a": a, "b": 10**6, "c": f"s{c}"} for a in range(3) for c in range(5)]
matcher, model = Matcher(index), {}


def check():
    assert len(matcher) == len(model)
    assert set(matcher) == set(model)
    for event in EVENTS:
        expected = {r for r, n in model.items() if event["a"] == n % 3 and event["c"] == f"s{n % 5}"}
        assert set(matcher.match(event)) == expected
    for rule, n in model.items():
        assert matcher.get(rule).expression == text(n)


def step(kind, comes, gone):
    if kind == "add":
        [(rule, n)] = comes.items()
        matcher.add(rule, text(n), replace=rule in model)
    elif kind == "remove":
        matcher.remove(gone[0])
    elif kind == "add_many":
        matcher.add_many([(rule, text(n)) for rule, n in comes.items()])
    elif kind == "match":
        matcher.match(rng.choice(EVENTS))
    else:
        matcher.match_batch(EVENTS)


model = {n: n for n in range(200)}
matcher.add_many([(rule, text(n)) for rule, n in model.items()])
check()
n = interrupted = 0
for _ in range(tries):
    delay[0] = rng.random() * 0.003
    fired.clear()
    fire.set()
    while not fired.is_set():
        n += 1
        kind = rng.choice(("add", "replace", "remove", "match", "match_batch", "add_many"))
        comes, gone = {}, []
        if kind == "add":
            comes = {1000 + n: n}
        elif kind == "replace":
            kind, comes = "add", {rng.choice(list(model)): n}
        elif kind == "remove":
            gone = [rng.choice(list(model))]
        elif kind == "add_many":
            comes = {10**6 + 100 * n + i: n + i for i in range(20)}
        try:
            armed[0] = True
            step(kind, comes, gone)
            armed[0] = False
            done = True
        except KeyboardInterrupt:
            armed[0] = False
            interrupted += 1
            now = {rule: matcher.get(rule).expression if rule in matcher else None for rule in [*comes, *gone]}
            done = now == {**{rule: text(number) for rule, number in comes.items()}, **dict.fromkeys(gone)}
        if done:
            model.update(comes)
            for rule in gone:
                del model[rule]
    check()
    while len(model) > 400:
        matcher.remove(model.popitem()[0])
assert interrupted > tries // 4, interrupted
"""


@pytest.mark.skipif(os.name == "nt", reason="a system without such signals")
@pytest.mark.parametrize("index", ["propagation", "be-tree", "pst-bloom", "pst-hash"])
def test_ctrl_c_at_any_moment_leaves_rules_whole(index: str) -> None:
    done = subprocess.run([sys.executable, "-c", _HAMMER, index, "100"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def presses(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """What Ctrl-C does is to be noted here."""
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    yield came
    signal.signal(signal.SIGINT, before)


def test_interrupt_is_put_off_until_the_outermost_context_ends(presses: list[int]) -> None:
    with uninterrupted():
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
        assert not presses
    assert len(presses) == 1


def test_interrupt_is_raised_at_a_checkpoint(presses: list[int]) -> None:
    with uninterrupted():
        os.kill(os.getpid(), signal.SIGINT)
        assert not presses
        checkpoint()
        assert len(presses) == 1
    assert len(presses) == 1


def test_interrupts_are_nothing_to_other_threads(presses: list[int]) -> None:
    def work() -> None:
        with uninterrupted():
            checkpoint()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    os.kill(os.getpid(), signal.SIGINT)
    assert len(presses) == 1


@pytest.mark.parametrize("index", ["propagation", "be-tree"])
def test_ctrl_c_while_rules_are_fetched_adds_none(index: str) -> None:
    matcher = Matcher(index)
    matcher.add("first", "a = 1")

    def rules() -> Iterator[tuple[str, str]]:
        yield "second", "a = 1 or b contains any (1)"
        os.kill(os.getpid(), signal.SIGINT)
        yield "third", "a = 1"

    with pytest.raises(KeyboardInterrupt):
        matcher.add_many(rules())
    assert matcher.match({"a": 1}) == ["first"]
    assert matcher.multi == frozenset()
    matcher.add_many([("second", "a = 1")])
    assert matcher.match({"a": 1}) == ["first", "second"]


def test_system_error_of_an_interrupt_is_told_from_others() -> None:
    error = SystemError("returned a result with an exception set")
    assert interrupt_within(error) is error
    error.__cause__ = KeyboardInterrupt()
    assert isinstance(interrupt_within(error), KeyboardInterrupt)
