"""A living set: what comes and goes in place, readers beside, memory that does not grow, and the gate before it all."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.index.be_tree.tree import BeTree
from eligo.segments.living import structure
from eligo.segments.living.gate import Gate
from eligo.segments.living.living import LivingSet
from eligo.segments.living.pools import DISORDERED, RECORDS
from eligo.segments.rule_set import RuleSet
from invariants.be_tree import verify_tree
from invariants.living import verify_structure

SMALL = {"max_cap": 2, "min_size": 2}


def living(m: eligo.Matcher) -> LivingSet:
    rules = m.engine.rules
    assert isinstance(rules, LivingSet)
    return rules


def verify(m: eligo.Matcher) -> None:
    rules = living(m)
    verify_structure(rules.structure, len(m))
    assert isinstance(rules.structure.index, BeTree)
    verify_tree(rules.structure.index.pools)


def test_an_index_that_changes_in_place_has_no_segments() -> None:
    assert isinstance(eligo.Matcher("be-tree").engine.rules, LivingSet)
    assert isinstance(eligo.Matcher("be-tree", "dewey").engine.rules, RuleSet)
    assert isinstance(eligo.Matcher("propagation").engine.rules, RuleSet)


# -- rules


def test_equal_conjunctions_are_one() -> None:
    m = eligo.Matcher("be-tree")
    for i in range(300):
        m.add(i, "a = 1 and b = 2" if i % 3 else "(b = 2 and a = 1) or c = 3")
    assert m.stats().conjunctions == 2
    verify(m)
    assert m.match({"a": 1, "b": 2}) == list(range(300))
    for i in range(299):
        m.remove(i)
    verify(m)
    assert m.match({"a": 1, "b": 2}) == [299]
    m.remove(299)
    verify(m)
    assert m.stats().conjunctions == 0
    assert m.match({"a": 1, "b": 2}) == []


def test_hashes_that_collide() -> None:
    m = eligo.Matcher("be-tree", options=SMALL)
    pools = living(m).structure.pools
    m.add_many((i, f"a = {i}") for i in range(40))
    # As if all had one hash: each is found behind those that are not it.
    pools.conjunction_hash[:40] = pools.conjunction_hash[0]
    pools.conjunction_slots[:] = 0
    home = int(pools.conjunction_hash[0]) & (len(pools.conjunction_slots) - 1)
    for c in range(40):
        pools.conjunction_slots[(home + c) & (len(pools.conjunction_slots) - 1)] = c + 1
    for i in range(0, 40, 2):
        m.remove(i)
    verify(m)
    assert [m.match({"a": i}) for i in range(4)] == [[], [1], [], [3]]


def test_trees_of_every_width() -> None:
    m = eligo.Matcher("be-tree")
    widths = (1, 2, 31, 32, 33, 63, 64, 65, 200)
    for n in widths:
        m.add(n, " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(n)))
    verify(m)
    every = {f"a{i}": 1 for i in range(200)}
    assert m.match(every) == list(widths)
    assert m.match({**every, "a31": 0}) == [n for n in widths if n <= 31]
    assert m.match({**every, "a31": 0, "b31": 1}) == list(widths)
    for n in widths:
        m.remove(n)
    verify(m)


def test_a_leaf_that_stands_in_several_places() -> None:
    m = eligo.Matcher("be-tree")
    m.add(1, "(a = 1 or b = 1) and (a = 1 or c = 1) and (a = 1 or d = 1 and b = 2)")
    m.add(2, "a = 1 or (a = 1 or b = 1) and c = 1")
    verify(m)
    assert m.match({"a": 1}) == [1, 2]
    assert m.match({"b": 1, "c": 1}) == [2]
    m.remove(1)
    verify(m)
    m.add(2, "b = 1 and b = 1", replace=True)
    verify(m)
    assert m.match({"b": 1}) == [2]


def test_order_is_that_of_adding_whatever_rows_are_used_again() -> None:
    rng = random.Random(3)
    m = eligo.Matcher("be-tree")
    order: dict[str, None] = {}
    for step in range(3000):
        name = f"n{rng.randrange(700)}"
        if name in order and rng.random() < 0.6:
            m.remove(name)
            del order[name]
        else:
            m.add(name, f"a = {step % 3} or a >= 0", replace=True)
            order.setdefault(name)
    assert living(m).structure.pools.state[DISORDERED]
    assert len(order) > 100
    assert m.match({"a": 1}) == list(order) == list(m)
    assert m.match({"a": 1}, limit=7) == list(order)[:7]
    assert m.match_batch([{"a": 1}] * 2, limit=50)["rule"].to_pylist() == list(order)[:50] * 2
    verify(m)


def test_ids_of_another_kind_once_empty() -> None:
    m = eligo.Matcher("be-tree")
    m.add("r", "a = 1")
    assert 1 not in m
    m.remove("r")
    m.add(1, "a = 1")
    assert "r" not in m
    assert m.match({"a": 1}) == [1]
    assert m.match_batch([{"a": 1}])["rule"].to_pylist() == [1]
    assert m.get(1).expression == "a = 1"
    verify(m)


def test_tags_are_found_and_forgotten() -> None:
    m = eligo.Matcher("be-tree")
    for i in range(500):
        m.add(i, "a = 1", tags=(f"t{i}", "all", "all", ""))
        if i >= 10:
            m.remove(i - 10)
    assert len(living(m).structure.tags) < 150
    assert m.match({"a": 1}, tags=["t495", "t3", "unknown"]) == [495]
    assert m.match({"a": 1}, tags="all") == m.match({"a": 1}, tags=[""]) == list(range(490, 500))
    assert m.match({"a": 1}, tags=[]) == []
    assert m.get(499).tags == ("t499", "all", "")
    verify(m)


def test_a_load_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    m = eligo.Matcher("be-tree", options=SMALL)
    m.add_many((i, f"a = {i % 9} and b > {i}", 1.0, ("t",)) for i in range(500))
    before = [m.match({"a": i, "b": 999}) for i in range(9)]
    with pytest.raises(eligo.RuleSyntaxError):
        m.add_many([(1, "a = 100"), (1000, "c = 5"), (3, "a ="), (4, "a = 2")], replace=True)
    taken = structure.take_rules
    calls = []

    def broken(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise MemoryError
        return taken(*arguments)

    monkeypatch.setattr(structure, "take_rules", broken)
    with pytest.raises(MemoryError):
        m.add_many(((i, f"a = {i % 5} or c = {i}") for i in range(100, 1500)), replace=True)
    monkeypatch.undo()
    assert [m.match({"a": i, "b": 999}) for i in range(9)] == before
    assert len(m) == 500
    verify(m)


def test_a_large_rule_comes_in_steps() -> None:
    m = eligo.Matcher("be-tree")
    m.add(1, " or ".join(f"a = {i} and b > {i}" for i in range(1000)))
    m.add(2, "a = 5")
    m.add(1, " or ".join(f"a = {i} and b < {i}" for i in range(1000)), replace=True)
    verify(m)
    assert m.match({"a": 5, "b": 4}) == [1, 2]
    assert m.match({"a": 5, "b": 6}) == [2]


def test_records_slide_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "_SLIDE", 16)  # a few records at a time, so that it is seen half done
    m = eligo.Matcher("be-tree")
    for i in range(3000):
        m.add(f"r{i}", f"a = {i % 40} and text = 'some text of rule {i}, to fill records'")
    full = int(living(m).structure.pools.state[RECORDS])
    for i in range(3000):
        if i % 10:
            m.remove(f"r{i}")
        if i % 50 == 0:
            verify(m)
            assert m.get(f"r{i}").expression.endswith(f"rule {i}, to fill records'")
    assert living(m).structure.pools.state[RECORDS] < full / 2


# -- attributes


def test_what_events_have_to_bring_follows_the_rules() -> None:
    m = eligo.Matcher("be-tree")
    m.add(1, "s = 'x'")
    assert living(m).structure.encoder.special == {}
    m.add(2, "s like '%x'")
    m.add(3, "t >= 'm'")
    assert set(living(m).structure.encoder.special) == {"s", "t"}
    assert m.match({"s": "ax", "t": "n"}) == [2, 3]
    with pytest.raises(eligo.EventError, match="pattern"):
        m.match({"s": eligo.OneOf("a", "b")})
    m.remove(2)
    assert set(living(m).structure.encoder.special) == {"t"}
    assert m.match({"s": eligo.OneOf("x", "b")}) == [1]
    assert m.attributes == ("s", "t")
    m.remove(3)
    assert m.attributes == ("s",)


def test_an_attribute_becomes_multi_valued_and_stays_so() -> None:
    m = eligo.Matcher("be-tree")
    m.add_many((i, f"a >= {i} and a <= {i + 1}") for i in range(50))
    assert m.match({"a": 7}) == [6, 7]
    m.add(100, "a contains all (3, 9)")
    assert m.match({"a": [3, 9]}) == [*range(2, 10), 100]
    verify(m)
    m.remove(100)
    assert m.match({"a": 7}) == [6, 7]
    assert m.match({"a": [3, 9]}) == [*range(2, 10)]
    verify(m)


# -- the gate


def test_the_gate_lets_in_readers_or_a_writer() -> None:
    gate, inside, wrong, done = Gate(), [], [], threading.Event()
    written = 0

    def read() -> None:
        while not done.is_set():
            assert gate.is_outside(threading.get_ident())
            gate.enter(threading.get_ident())
            before = list(inside)
            time.sleep(0)
            if before or inside:
                wrong.append(before)
            gate.inside.discard(threading.get_ident())
            gate.left()

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    end = time.monotonic() + 1
    while time.monotonic() < end:
        with gate:
            inside.append(1)
            time.sleep(0)
            with gate:  # again
                inside.pop()
        written += 1
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong
    assert not gate.inside
    assert written > 50


def test_neither_side_of_the_gate_starves() -> None:
    gate, done, entered = Gate(), threading.Event(), [0, 0]

    def read(number: int) -> None:
        while not done.is_set():
            gate.enter(threading.get_ident())
            entered[number] += 1
            time.sleep(0.001)
            gate.inside.discard(threading.get_ident())
            gate.left()

    readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(100):  # one write behind another
        with gate:
            time.sleep(0.0005)
    done.set()
    for reader in readers:
        reader.join()
    assert min(entered) >= 20


def test_a_reader_within_a_reader_and_a_writer_within_one() -> None:
    m = eligo.Matcher("be-tree")
    m.add("r", "a = 1")

    class Odd(dict[str, Any]):
        def items(self) -> Any:
            assert m.match({"a": 1}) == ["r"]
            with pytest.raises(RuntimeError, match="within a match"):
                m.add("s", "a = 2")
            return super().items()

    assert m.match(Odd(a=1)) == ["r"]
    m.add("s", "a = 1")
    assert m.match({"a": 1}) == ["r", "s"]


def test_batches_may_change_the_rules_that_they_meet() -> None:
    m = eligo.Matcher("be-tree")
    m.add(-1, "a = 1")

    def visits() -> Any:
        for i in range(10_000):
            if i % 1000 == 0:
                m.add(i, f"a = 1 and s = 'new string {i}'")
            yield {"a": 1, "s": f"new string {i // 1000 * 1000}"}

    found = m.match_batch(visits())
    always = found.filter(np.array(found["rule"]) == -1)
    assert always["event"].to_pylist() == list(range(10_000))
    later = np.array(found["rule"]) >= 0
    assert (np.array(found["rule"])[later] == np.array(found["event"])[later] // 1000 * 1000).all()


# -- threads


def test_threads_that_match_and_change_together() -> None:
    m = eligo.Matcher("be-tree", multi=["l"], options=SMALL)
    m.add_many((f"base{i}", f"a = {i % 10} and s = 'x{i % 4}'") for i in range(400))
    wanted = [f"base{i}" for i in range(400) if i % 10 == 3 and i % 4 == 1]
    failures: list[BaseException] = []
    stop = threading.Event()

    def known(found: list[Any]) -> list[Any]:
        assert all(rule.startswith(("base", "u", "v")) for rule in found)
        assert len(found) == len(set(found))
        return [rule for rule in found if rule.startswith("base")]

    def guarded(work: Any) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        return threading.Thread(target=run)

    def read() -> None:
        while not stop.is_set():
            assert known(m.match({"a": 3, "s": "x1", "l": ["q"]})) == wanted

    def read_many() -> None:
        while not stop.is_set():
            table = m.match_batch([{"a": 3, "s": "x1"}] * 200)
            by_event: dict[int, list[Any]] = {}
            for event, rule in zip(table["event"].to_pylist(), table["rule"].to_pylist(), strict=True):
                by_event.setdefault(event, []).append(rule)
            assert all(known(by_event[event]) == wanted for event in range(200))
            assert m.get("base7").expression == "a = 7 and s = 'x3'"

    def write(name: str) -> None:
        for i in range(120):
            m.add(f"{name}{i}", f"a = {i % 10} and new{name}{i % 7} like 'p{i}%' or s = 'x{i}'")
            m.add(f"{name}{i}", f"(a = {i % 10} or s = '{name}{i}') and (s like '%x' or a > 2)", replace=True)
            if i % 2:
                m.remove(f"{name}{i}")
            if i == 60:
                m.add_many((f"{name}-bulk{k}", f"a = {k % 10} or s >= 'x{k}'") for k in range(500))
            if i % 40 == 0:
                m.add(f"{name}several", "a contains any (3, 4) and s = 'never'")
                m.remove(f"{name}several")

    threads = [guarded(read), guarded(read), guarded(read_many)]
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
    assert len(m) == 400 + 2 * (60 + 500)
    verify(m)


def test_a_load_is_seen_whole_or_not_at_all() -> None:
    m = eligo.Matcher("be-tree")
    m.add_many((i, "a = 0") for i in range(1000))
    seen: set[tuple[int, int]] = set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.add((len(m.match({"a": 0})), len(m.match({"a": 1}))))
            both = m.match({"a": eligo.OneOf(0, 1)})
            seen.add((-1, len(both)))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for value in (1, 0, 1):
        m.add_many(((i, f"a = {value}") for i in range(1000)), replace=True)
    stop.set()
    for reader in readers:
        reader.join()
    assert {pair for pair in seen if pair[0] == -1} == {(-1, 1000)}
    verify(m)


# -- memory


def soak(updates: int, checks: int) -> None:
    """Random updates; what the pools use in the end is what the rules need, give or take."""
    rng = random.Random(7)
    m = eligo.Matcher("be-tree", options={"max_cap": 8})
    names = [f"rule {i}" for i in range(1000)]
    kept: dict[str, str] = {}

    def text() -> str:
        some = [f"a{rng.randrange(30)} = {rng.randrange(20)}", f"b{rng.randrange(30)} > {rng.randrange(20)}"]
        if rng.random() < 0.4:
            some.append(f"(c = {rng.randrange(9)} or s in ('v{rng.randrange(9)}', 'w{rng.randrange(50)}'))")
        return " and ".join(some)

    used = []
    for step in range(updates):
        name = rng.choice(names)
        if name in kept and rng.random() < 0.5:
            m.remove(name)
            del kept[name]
        else:
            kept[name] = text()
            m.add(name, kept[name], replace=True, tags=(f"t{rng.randrange(100_000)}",))
        if step % (updates // 20) == 0:
            m.match({"a1": 1, "b2": 7, "s": "v1"})
            used.append(m.stats().total_bytes)
        if step % (updates // checks) == 0:
            verify(m)
    fresh = eligo.Matcher("be-tree", options={"max_cap": 8})
    fresh.add_many(kept)
    assert max(used[10:]) < 1.6 * max(used[5:10])
    assert m.stats().total_bytes < 4 * fresh.stats().total_bytes
    for _ in range(100):
        event = {f"{rng.choice('ab')}{rng.randrange(30)}": rng.randrange(20) for _ in range(20)} | {"c": 3, "s": "w7"}
        assert sorted(m.match(event)) == sorted(fresh.match(event))


def test_memory_does_not_grow_with_updates() -> None:
    soak(20_000, 10)


@pytest.mark.slow
def test_memory_does_not_grow_with_a_million_updates() -> None:
    soak(1_000_000, 20)


# -- files


def test_opening_computes_nothing_and_changing_copies(tmp_path: Path) -> None:
    m = eligo.Matcher("be-tree", multi=["m"])
    m.add_many((f"r{i}", f"(a = {i % 7} or s like '%{i % 5}') and b > {i}", i, (f"t{i % 3}",)) for i in range(400))
    m.remove("r3")
    m.add("r9", "m contains any (1, 2)", replace=True)
    m.save(tmp_path / "x")
    n = eligo.open(tmp_path / "x")
    verify(n)
    some = [{"a": i % 9, "b": 2 * i, "s": f"z{i % 6}", "m": [i % 4]} for i in range(300)]
    assert [n.match(e) for e in some] == [m.match(e) for e in some]
    assert n.match_batch(some, tags=["t1"]).equals(m.match_batch(some, tags=["t1"]))
    files = {file.name: file.read_bytes() for file in (tmp_path / "x").iterdir()}
    for i in range(100, 500):
        n.add(f"r{i}", f"a = {i % 3} and z = 'text {i}'", replace=True, tags=("new",))
        n.remove(f"r{i - 50}")
    verify(n)
    assert {file.name: file.read_bytes() for file in (tmp_path / "x").iterdir()} == files
    n.save(tmp_path / "x")
    k = eligo.open(tmp_path / "x")
    verify(k)
    assert list(k) == list(n)
    assert [k.match(e) for e in some] == [n.match(e) for e in some]
