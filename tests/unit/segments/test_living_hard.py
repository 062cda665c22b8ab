"""A living set where things go wrong: interrupts, forks, matches within matches, snapshots with long rows, ranges."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.index.be_tree.nodes import CREDIT
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf
from eligo.language.reference import matches
from invariants.be_tree import verify_tree
from invariants.living import verify_structure

SMALL: dict[str, Any] = {"max_cap": 2, "min_size": 2}


def checked(m: eligo.Matcher) -> None:
    structure: Any = m.engine.rules
    verify_structure(structure.structure, len(m))
    verify_tree(structure.structure.index.pools)


@pytest.mark.parametrize("index", ["be-tree", "be-tree-batch"])
def test_ranges_of_strings_among_many_rules(index: str) -> None:
    rules = [f"c = 's{i}'" for i in range(200)] + [f"c in ('s{i}', 's{i + 7}') and n > {i}" for i in range(100)]
    rules += ["c > 's5'", "c != 's3'", "c between 's1' and 's2'"]
    m = eligo.Matcher(index=index, options=SMALL)
    m.add_many(enumerate(rules))
    trees = [normalize(parse(rule)) for rule in rules]
    ranges = (Above("s2"), Below("s15"), Between("s11", "s14"), OneOf("s3", "s9", "t"), NoneOf("s4"), OneOf("s7"))
    for value in (*ranges, "s7", "nowhere"):
        event = {"c": value, "n": 50}
        assert m.match(event) == [i for i, tree in enumerate(trees) if matches(tree, event)], value


def test_many_equal_rules_go_together_or_one_by_one() -> None:
    """One list of entries has all rules that are the same conjunction, and trees that begin with it."""
    texts = ["a = 1", "a = 1 and b = 2", "(a = 1 or b = 2) and (c = 3 or b = 2)", "a = 1 or a = 1 and c = 4"]
    m = eligo.Matcher(index="be-tree", options=SMALL)
    left = {i: texts[i % 4] for i in range(1200)}
    m.add_many(left.items())
    events = [{"a": 1}, {"b": 2}, {"a": 1, "b": 2, "c": 3}, {"c": 4}]
    drawn = random.Random(1)
    for some in (1, 2, 3, 250, 1, 500, 400, 43):
        going = drawn.sample(sorted(left), some)
        m.remove_many(going)
        for rule in going:
            del left[rule]
        checked(m)
        for event in events:
            assert m.match(event) == [i for i, text in left.items() if matches(parse(text), event)]
        m.add(2000 + some, "a = 1", replace=True)
        left[2000 + some] = "a = 1"
    m.clear()
    checked(m)


def test_a_snapshot_with_long_rows_adjusts_itself(tmp_path: Path) -> None:
    values = ", ".join(str(1000 * i) for i in range(200))
    m = eligo.Matcher(index="be-tree", options={**SMALL, "theta": 1e6})
    m.add_many((i, f"a in ({values}) and b = {i} and n{i % 5} > 3") for i in range(100))
    m.save(tmp_path / "rules")
    again = eligo.open(tmp_path / "rules")
    event = {"a": 1000, "b": 7, "n2": 5}
    for _ in range(3000):
        assert again.match(event) == [7]
    again.remove(7)
    assert again.match(event) == []
    checked(again)


def test_an_interrupt_waits_for_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a change comes through when the change is whole."""
    # A process that was started in the background ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    m = eligo.Matcher(index="be-tree", options=SMALL)
    m.add_many((i, f"a = {i % 5} and b = {i}") for i in range(50))
    rules: Any = m.engine.rules
    kind = type(rules.structure.index)
    for name in ("insert", "delete", "adjust"):
        real = getattr(kind, name)

        def interrupted(*given: Any, real: Any = real) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            return real(*given)

        came = 0
        with monkeypatch.context() as patched:
            patched.setattr(kind, name, interrupted)
            for change in (lambda: m.add(1000 + max(m), f"c = {max(m)}"), lambda: m.remove(min(m))):
                try:
                    change()
                except KeyboardInterrupt:
                    came += 1
        assert came > 0
        checked(m)
        assert list(m) == sorted(set(m))
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_a_change_that_fails_leaves_multi_valued_attributes_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    m = eligo.Matcher(index="be-tree", options=SMALL)
    m.add_many((i, f"a = {i % 5} and b = {i}") for i in range(50))
    structure: Any = m.engine.rules
    kind = type(structure.structure.index)

    def failing(*_: Any) -> Any:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(kind, "insert", failing)
        with pytest.raises(MemoryError):
            m.add(100, "tags contains any ('x')")
        with pytest.raises(MemoryError):
            m.add_many([(100, "tags contains any ('x')"), (101, "d = 4")])
    assert m.multi == frozenset()
    assert len(m) == 50
    checked(m)
    m.add(100, "tags contains any ('x')")
    assert m.match({"tags": ["x", "y"]}) == [100]
    checked(m)


def test_a_match_within_a_match() -> None:
    m = eligo.Matcher(index="be-tree", options=SMALL)
    m.add_many((i, f"a = {i}") for i in range(20))

    class Event(Mapping[str, Any]):
        def __getitem__(self, name: str) -> Any:
            return 3

        def __iter__(self) -> Iterator[str]:
            for _ in range(300):
                assert m.match({"a": 5}) == [5]
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    assert m.match(Event()) == [3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_fork_may_change_rules() -> None:
    m = eligo.Matcher(index="be-tree", options=SMALL)
    m.add_many((i, f"a = {i}") for i in range(20))
    gate = m.engine.rules.structure.gate  # type: ignore[attr-defined]
    entered, done = threading.Event(), threading.Event()

    def read() -> None:
        gate.enter(threading.get_ident())
        entered.set()
        done.wait(20)
        gate.inside.discard(threading.get_ident())
        gate.left()

    reader = threading.Thread(target=read)
    reader.start()
    entered.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        m.add(100, "a = 5")
        os._exit(0 if m.match({"a": 5}) == [5, 100] else 1)
    done.set()
    reader.join()
    assert os.waitpid(child, 0)[1] == 0


def test_a_large_leaf_is_walked_in_parts() -> None:
    """Rules that no attribute leads to lie at the root; what is looked at of them in one step is bounded."""
    m = eligo.Matcher(index="be-tree", absent="classical")
    m.add_many((i, f"a != {i} and b != {i % 7}") for i in range(5000))
    for i in range(600):
        assert len(m.match({"a": i, "b": 1})) > 4000 - 1
    rules: Any = m.engine.rules
    index = rules.structure.index
    for _ in range(3000):
        index.adjust(4)
        assert index.pools.state[CREDIT] > -3000  # less than the whole l-node
    m.add(5000, "a = 1")
    assert m.match({"a": 1, "b": 1}, limit=2)[:1] == [0]
    checked(m)


def test_a_tag_that_gets_the_number_of_another_while_somebody_reads_them() -> None:
    matcher = eligo.Matcher("be-tree", documents=eligo.Documents())
    matcher.publish({"k": 1})
    matcher.add_many([(f"s{n}", f"x = 1 and exists d (k = d.k and z = d.y{n})") for n in range(70)])
    matcher.add("gone", "x = 1 and exists d (k = d.k and z = d.q)")
    matcher.remove("gone")
    reading, event = threading.Event(), {"x": 1, "k": 1, "z": 5}

    class Names(list[str]):
        """Whoever reads them loses the processor once, long enough for anybody else."""

        def __iter__(self) -> Iterator[str]:
            yield from list(super().__iter__())
            if not reading.is_set():
                reading.set()
                threading.Event().wait(0.2)

    tags = matcher.engine.rules.structure.tags  # type: ignore[attr-defined]
    tags.names = Names(tags.names)
    reader = threading.Thread(target=matcher.match, args=(event,))
    reader.start()
    reading.wait()
    matcher.add_many([("plain", "x = 1", 1.0, ["foo"])])
    reader.join()
    assert matcher.match(event) == ["plain"]
