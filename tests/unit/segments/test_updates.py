"""Updates: the live segment, merges, and readers beside them."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.loading import Loader
from eligo.segments import rule_set


def test_many_single_changes_are_as_if_loaded_at_once() -> None:
    rng = random.Random(5)
    m = eligo.Matcher()
    kept: dict[str, str] = {}
    for step in range(3000):
        rule = f"r{rng.randrange(900)}"
        if rule in kept and rng.random() < 0.4:
            m.remove(rule)
            del kept[rule]
        else:
            text = f"a = {rng.randrange(20)} and (b > {rng.randrange(20)} or s = 's{rng.randrange(9)}')"
            m.add(rule, text, replace=True)
            kept[rule] = text
        if step % 97 == 0:
            m.match({"a": 1})
    fresh = eligo.Matcher()
    fresh.add_many(kept)
    m.engine.rules.wait()
    assert len(m.engine.rules.segments) < 20
    for _ in range(200):
        event = {"a": rng.randrange(20), "b": rng.randrange(20), "s": f"s{rng.randrange(9)}"}
        assert m.match(event) == fresh.match(event)
    assert list(m) == list(fresh)


def test_merging_beside_keeps_every_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_set, "AT_ONCE", 0)  # every merge goes to the thread
    m = eligo.Matcher()
    for i in range(4000):
        m.add(i, f"a = {i % 50}")
        if i % 3 == 0:
            m.remove(i)
        if i % 5 == 0:
            m.add(i, f"a = {i % 50 + 100}", replace=True)
    m.engine.rules.wait()
    wanted = [i for i in range(4000) if i % 50 == 7 and i % 3 and i % 5]
    assert m.match({"a": 7}) == wanted
    assert m.match({"a": 110}) == [i for i in range(4000) if i % 50 == 10 and i % 5 == 0]


def test_merges_wait_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(rule_set, "AT_ONCE", 0)
    m = eligo.Matcher()
    with monkeypatch.context() as patch:

        def refused(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", refused)
        for i in range(1000):
            m.add(i, f"a = {i % 50}")
        before = len(m.engine.rules.segments)
        assert m.match({"a": 7}) == list(range(7, 1000, 50))
        m.save(tmp_path / "rules")
        assert len(eligo.open(tmp_path / "rules")) == 1000
    m.add_many((i, f"a = {i % 50}") for i in range(1000, 1100))
    m.engine.rules.wait()
    assert len(m.engine.rules.segments) < before
    assert m.match({"a": 7}) == list(range(7, 1100, 50))


def test_a_reader_sees_all_of_an_update_or_nothing() -> None:
    m = eligo.Matcher()
    m.add_many((f"fill{i}", f"z = {i}") for i in range(500))
    m.add("r", "a = 0")
    stop = threading.Event()
    wrong: list[object] = []

    def read() -> None:
        while not stop.is_set():
            found = m.match({"a": 1, "b": 1, "z": -1})
            if found != ["r"]:
                wrong.append(found)
                return

    m.add("r", "a = 1", replace=True)
    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(300):
        m.add("r", ("a = 1", "b = 1", f"a = 1 and b = 1 and not y = 'unseen {i}' or a = 1")[i % 3], replace=True)
        m.add(f"n{i}", f"z = {i}")
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_threads_that_match_and_change_together() -> None:
    m = eligo.Matcher(multi=["l"])
    m.add_many((f"base{i}", f"a = {i % 10} and s = 'x{i % 4}'") for i in range(1000))
    failures: list[BaseException] = []
    stop = threading.Event()
    wanted = [f"base{i}" for i in range(1000) if i % 10 == 3 and i % 4 == 1]

    def guarded(work: object) -> threading.Thread:
        def run() -> None:
            try:
                work()  # type: ignore[operator]
            except BaseException as error:
                failures.append(error)

        return threading.Thread(target=run)

    def read() -> None:
        while not stop.is_set():
            assert [r for r in m.match({"a": 3, "s": "x1", "l": ["q"]}) if str(r).startswith("base")] == wanted
            rules = m.match_batch([{"a": 3, "s": "x1"}] * 3)["rule"].to_pylist()
            assert [r for r in rules if r.startswith("base")] == wanted * 3

    def write(name: str) -> None:
        for i in range(150):
            m.add(f"{name}{i}", f"a = {i % 10} and new{name}{i % 7} like 'p{i}%'")
            if i % 2:
                m.remove(f"{name}{i}")
        m.add_many((f"{name}-bulk{i}", f"a = {i % 10}") for i in range(700))

    threads = [guarded(read), guarded(read)]
    writers = [guarded(lambda: write("u")), guarded(lambda: write("v"))]
    for thread in (*threads, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert len(m) == 1000 + 2 * (75 + 700)


@pytest.mark.slow
def test_merges_hold_up_nobody() -> None:
    """While 240,000 rules are merged, others are added and matched."""
    m = eligo.Matcher()
    for part in range(4):
        m.add_many((part * 60_000 + i, f"a{i % 300} = {i % 50} and b{i % 200} < {i % 31}") for i in range(60_000))
    m.match({"a1": 1})
    beside, i = 0, 10**6
    while i < 10**6 + 20_000 and (m.engine.rules._merging is not None or beside == 0):
        m.add(i, f"a5 = {i}")
        assert m.match({"a5": i}) == [i]
        beside += m.engine.rules._merging is not None
        i += 1
    assert beside > 10


@pytest.mark.parametrize("index", ["auto", "be-tree"])
@pytest.mark.parametrize("on_error", ["raise", "collect"])
def test_others_change_rules_while_a_load_waits_for_more(index: str, on_error: str, monkeypatch: Any) -> None:
    """Nobody waits for whoever gives the rules; what happened meanwhile is seen when all are there."""
    monkeypatch.setattr("eligo.loading._PIECE", 2)
    m = eligo.Matcher(index)
    m.add_many((f"old {i}", f"a >= {i} and a <= {i + 1}") for i in range(5))
    begun, go_on = threading.Event(), threading.Event()
    answer: list[Any] = []

    def slowly() -> Iterator[tuple[str, str]]:
        yield "new 1", "b >= 3 and b <= 4"
        yield "taken", "b = 3"
        yield "new 2", "a = 1 and a = 2"
        begun.set()
        assert go_on.wait(60)
        yield "new 3", "c contains any (1)"

    def load() -> None:
        try:
            answer.append([reject.id for reject in m.add_many(slowly(), on_error=on_error)])
        except eligo.DuplicateRuleError as error:
            answer.append(str(error))

    thread = threading.Thread(target=load)
    thread.start()
    assert begun.wait(60)
    m.add("taken", "b = 4")
    m.add("several", "a contains any (9) or b contains any (9)")
    m.remove("old 0")
    assert "new 1" not in m
    assert m.match({"b": 3}) == []
    go_on.set()
    thread.join()
    if on_error == "raise":
        assert answer == [
            "rule 'taken' (row 1): there is a rule 'taken' already: replace=True puts the new one in its place"
        ]
        assert m.multi == {"a", "b"}
        assert list(m) == ["old 1", "old 2", "old 3", "old 4", "taken", "several"]
        return
    assert answer == [["taken"]]
    assert m.multi == {"a", "b", "c"}
    assert list(m)[-5:] == ["taken", "several", "new 1", "new 2", "new 3"]
    assert m.match({"b": [2, 9]}) == ["several", "new 1"]  # one value for each bound
    assert m.match({"a": [1, 2], "c": [1]}) == ["old 1", "old 2", "new 2", "new 3"]
    assert m.match({"b": 4}) == ["taken", "new 1"]


def test_a_load_replaces_what_came_meanwhile(monkeypatch: Any) -> None:
    monkeypatch.setattr("eligo.loading._PIECE", 1)
    m = eligo.Matcher()

    def rules() -> Iterator[tuple[str, str]]:
        yield "a", "x = 1"
        m.add("a", "x = 2")
        m.add("b", "x = 3")
        yield "c", "x = 1"

    m.add_many(rules(), replace=True)
    assert list(m) == ["a", "b", "c"]
    assert m["a"].expression == "x = 1"
    assert m.match({"x": 1}) == ["a", "c"]
    assert m.match({"x": 2}) == []


@pytest.mark.parametrize(("first", "then"), [(1, "x"), ("x", 1)])
def test_ids_of_another_kind_when_all_rules_are_gone(first: Any, then: Any) -> None:
    m = eligo.Matcher()
    m.add(first, "a = 1")
    m.remove(first)
    m.add(then, "a = 1", tags=["t"])
    assert m.match({"a": 1}, tags=["t"]) == [then]
    assert m.match_batch([{"a": 1}])["rule"].to_pylist() == [then]


@pytest.mark.parametrize("index", ["auto", "pst-hash"])
def test_an_attribute_becomes_multi_valued_in_a_load_and_beside_it(index: str) -> None:
    m = eligo.Matcher(index)

    def rules() -> Iterator[tuple[str, str]]:
        yield "r1", "m > 1 and m < 0"
        yield from ((f"f{i}", "zz = 1") for i in range(40))
        m.add("other", "m contains any (7)")
        yield "r2", "m contains any (9)"

    m.add_many(rules())
    assert m.match({"m": [2, -1]}) == ["r1"]


def test_nobody_sees_lists_before_the_rules_are_ready_for_them(monkeypatch: Any) -> None:
    m = eligo.Matcher()
    m.add_many((i, f"m > {i} and m < {i - 1} or m = {i} and zz = 1") for i in range(20))
    m.add(100, "m > 1 and m < 0")  # a change, and no view since
    seen: list[Any] = []
    recompile = Loader.recompile

    def recompiled(self: Loader, names: dict[str, int]) -> None:
        def ask() -> None:
            try:
                seen.append(m.match({"m": [10, -5]}))
            except eligo.EventError:
                seen.append("refused")

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        recompile(self, names)

    monkeypatch.setattr(Loader, "recompile", recompiled)
    m.add(101, "m contains any (77)")
    assert seen == ["refused"]
    assert m.match({"m": [10, -5]}) == [*range(10), 100]


@pytest.mark.parametrize("index", ["auto", "pst-hash", "be-tree"])
@pytest.mark.parametrize("together", [True, False])
def test_what_only_a_removed_rule_asked_refuses_no_event(index: str, together: bool) -> None:
    m = eligo.Matcher(index)
    rules = [(1, "s like 'a%b%c'"), (2, "s = 'x'"), (3, "t like '%b%'"), (4, "u = 1")]
    if together:
        m.add_many(rules)
    else:
        for rule, text in rules:
            m.add(rule, text)
    with pytest.raises(eligo.EventError, match="pattern"):
        m.match({"s": eligo.OneOf("x")})
    m.remove(1)
    assert m.match({"s": eligo.OneOf("x")}) == [2]
    with pytest.raises(eligo.EventError, match="pattern"):
        m.match({"t": eligo.OneOf("x")})


def test_a_replacement_that_fails_leaves_the_old_rule(monkeypatch: Any) -> None:
    m = eligo.Matcher()
    m.add_many({"sealed": "a = 1"})
    m.add("live", "a = 1")

    def full(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("eligo.segments.live.with_room", full)
        for rule in ("sealed", "live"):
            with pytest.raises(MemoryError):
                m.add(rule, "a = 2 or b = 3", replace=True)
    assert m.match({"a": 1}) == ["sealed", "live"]
    for rule in ("live", "sealed"):
        m.add(rule, "a = 2", replace=True)
    assert m.match({"a": 2}) == ["sealed", "live"]
    assert m.match({"a": 1}) == []
    assert len(m) == 2


@pytest.mark.parametrize("evaluator", ["interval", "shared", "dnf"])
@pytest.mark.parametrize("index", ["auto", "scan", "be-tree", "pst-hash"])
def test_rules_without_a_conjunction_are_saved(index: str, evaluator: str, tmp_path: Path) -> None:
    m = eligo.Matcher(index, evaluator)
    m.add_many({"never": "a = 1 and a = 2"})
    m.save(tmp_path / "rules")
    opened = eligo.open(tmp_path / "rules")
    assert opened.match({"a": 1}) == []
    opened.add_many({"always": "true"})
    assert opened.match({}) == ["always"]
