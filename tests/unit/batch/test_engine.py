"""Batches as bitmaps: the same answers as one event after another, whatever the batch."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eligo
from eligo import Between, OneOf
from eligo.batch import engine, search
from eligo.batch.words import EVENTS
from eligo.compile.arrow_events import TableEvents
from eligo.segments import blocks


def rule_texts(count: int, seed: int = 1) -> list[str]:
    """Rules of all shapes: conjunctions, trees, shared trees, lists, patterns, absence, several values."""
    r = random.Random(seed)

    def predicate() -> str:
        name, value = f"a{r.randrange(6)}", r.randrange(9)
        return r.choice(
            [
                f"{name} = {value}",
                f"{name} != {value}",
                f"{name} between {value} and {value + r.randrange(4)}",
                f"{name} in ({value}, {r.randrange(9)}, {r.randrange(9)})",
                f"{name} not in ({value}, {r.randrange(9)})",
                f"{name} is null",
                f"{name} is not null",
                f"s like '%{r.choice('xyz')}%{r.choice('xyz')}'",
                f"not s like '{r.choice('xyz')}%'",
                f"s >= '{r.choice('xyz')}'",
                f"tags contains any ('t{r.randrange(5)}')",
                f"not tags contains any ('t{r.randrange(5)}')",
            ]
        )

    common = [f"({predicate()} and ({predicate()} or {predicate()}))" for _ in range(5)]

    def tree(depth: int) -> str:
        if depth == 0:
            return r.choice([predicate(), f"{predicate()} and {predicate()}", r.choice(common)])
        return "(" + f" {r.choice(['and', 'or'])} ".join(tree(depth - 1) for _ in range(r.randint(2, 3))) + ")"

    return [tree(r.choice((0, 0, 1, 2))) for _ in range(count)]


def event(r: random.Random, ranges: bool) -> dict[str, Any]:
    made: dict[str, Any] = {f"a{i}": r.randrange(10) for i in range(6) if r.random() < 0.7}
    if r.random() < 0.8:
        made["s"] = "".join(r.choices("xyz", k=r.randrange(4)))
    if r.random() < 0.7:
        made["tags"] = [f"t{r.randrange(5)}" for _ in range(r.randrange(4))]
    if ranges and r.random() < 0.3:
        made["a0"] = r.choice([Between(2, 5), OneOf(1, 7)])
    return made


def pairs(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table["event"].to_pylist(), table["rule"].to_pylist(), strict=True))


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize("evaluator", ["interval", "shared", "dnf"])
def test_batches_of_every_size(absent: Any, evaluator: str) -> None:
    m = eligo.Matcher("bitmap", evaluator, absent)
    m.add_many((i, text, i % 5, ["even"] if i % 2 == 0 else ["odd"]) for i, text in enumerate(rule_texts(300)))
    r = random.Random(2)
    events = [event(r, ranges=True) for _ in range(2 * EVENTS + 1)]
    alone = [m.match(one) for one in events]
    for size in (0, 1, 63, 64, 65, EVENTS - 1, EVENTS, EVENTS + 1, 2 * EVENTS + 1):
        found = pairs(m.match_batch(events[:size]))
        assert found == [(i, rule) for i in range(size) for rule in alone[i]]
    for rule in range(0, 300, 7):
        m.remove(rule)
    found = pairs(m.match_batch(events, tags=["even"], limit=2))
    assert found == [(i, rule) for i, one in enumerate(events) for rule in m.match(one, tags=["even"], limit=2)]
    best = m.top_batch(events[:200], 3)
    rows = list(zip(*(best[name].to_pylist() for name in ("event", "rule", "weight")), strict=True))
    assert rows == [(i, *pair) for i, one in enumerate(events[:200]) for pair in m.top(one, 3)]


@pytest.mark.parametrize("trees", [0.0, 0.1])
@pytest.mark.parametrize("costs", [(10**6, 1, 0, 0, 0), (0, 1, 1, 1, 1), search.COSTS], ids=["apart", "never", "own"])
@pytest.mark.parametrize("at_once", [1, 1 << 26])
def test_attributes_searched_apart_or_together(
    monkeypatch: pytest.MonkeyPatch, trees: float, costs: tuple[int, ...], at_once: int
) -> None:
    monkeypatch.setattr(search, "COSTS", costs)
    monkeypatch.setattr(engine, "_MATCHES", at_once)
    r = random.Random(6)

    def predicate() -> str:
        name, value = f"a{r.randrange(40)}", r.randrange(9)
        return r.choice(
            [
                *[f"{name} = {value}"] * 3,
                f"{name} >= {value}",
                f"{name} between {value} and {value + 2}",
                f"{name} in ({value}, {r.randrange(9)}, {r.randrange(9)})",
                f"s{r.randrange(4)} like '%{r.choice('xyz')}%'",
                f"{name} != {value}",
                f"tags contains any ('t{r.randrange(5)}')",
            ]
        )

    def text() -> str:
        if r.random() < trees:
            return f"({predicate()} or {predicate()}) and {predicate()} or {predicate()} and {predicate()}"
        return " and ".join(predicate() for _ in range(r.randint(1, 3)))

    m, other = eligo.Matcher("bitmap"), eligo.Matcher("scan")
    for one in (m, other):
        r.seed(7)
        one.add_many((3 * i, text()) for i in range(2000))
    events = []
    for _ in range(2 * EVENTS + 100):
        made: dict[str, Any] = {f"a{i}": r.randrange(10) for i in r.sample(range(40), r.randrange(12))}
        made |= {f"s{i}": "".join(r.choices("xyzw", k=3)) for i in range(4) if r.random() < 0.3}
        if r.random() < 0.3:
            made["tags"] = [f"t{r.randrange(5)}" for _ in range(r.randrange(3))]
        made["a7"] = r.choice([1, 2, Between(2, 5)]) if len(events) > EVENTS else 3
        events.append(made)
    expected = other.match_batch(events)
    assert expected.num_rows > 40_000
    assert m.match_batch(events).equals(expected)
    for size in (1, 64, EVENTS, EVENTS + 1):
        assert pairs(m.match_batch(events[:size])) == [pair for pair in pairs(expected) if pair[0] < size]
    gone = r.sample(range(0, 6000, 3), 500)
    m.remove_many(gone)
    assert pairs(m.match_batch(events)) == [pair for pair in pairs(expected) if pair[1] not in set(gone)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads(threads: int) -> None:
    m = eligo.Matcher("bitmap")
    m.add_many(enumerate(rule_texts(200, seed=3)))
    r = random.Random(4)
    events = [event(r, ranges=False) for _ in range(9000)]
    expected = m.match_batch(events, threads=1)
    assert m.match_batch(iter(events), threads=threads).equals(expected)
    table = pa.table(
        {name: [one.get(name) for one in events] for name in ("a0", "a1", "a2", "a3", "a4", "a5", "s", "tags")}
    )
    assert pairs(m.match_batch(table, threads=threads)) == pairs(expected)
    events[5000] = {"a0": object()}
    with pytest.raises(eligo.EventError, match="event 5000"):
        m.match_batch(events, threads=threads)
    found, rejects = m.match_batch(events, threads=threads, on_error="collect")
    assert [reject.row for reject in rejects] == [5000]
    assert pairs(found) == [pair for pair in pairs(expected) if pair[0] != 5000]


def test_threads_are_counted() -> None:
    with pytest.raises(eligo.OptionError, match="threads"):
        eligo.Matcher().match_batch([], threads=0)


def test_what_a_snapshot_has(tmp_path: Path) -> None:
    m = eligo.Matcher("bitmap")
    m.add_many(enumerate(rule_texts(200)))
    r = random.Random(5)
    events = [event(r, ranges=False) for _ in range(100)]
    expected = m.match_batch(events)
    m.save(tmp_path / "rules")
    opened = eligo.open(tmp_path / "rules")
    assert opened.engine.rules.view.segments[0].blocks.arrays  # type: ignore[attr-defined]
    assert opened.match_batch(events).equals(expected)
    assert opened.match_batch(events[:1]).equals(expected.filter(pa.array(np.array(expected["event"]) == 0)))


def test_auto_builds_when_it_pays(tmp_path: Path) -> None:
    m = eligo.Matcher()
    m.add_many((i, f"a = {i % 50} and b > {i % 7}") for i in range(500))
    events = [{"a": i % 50, "b": i % 9} for i in range(blocks.WORTH)]
    few = m.match_batch(events[:100])
    assert "segments matched in blocks" not in m.stats().notes
    assert m.match_batch(events).slice(0, few.num_rows).equals(few)
    assert m.stats().notes["segments matched in blocks"] == 1
    m.save(tmp_path / "rules")
    opened = eligo.open(tmp_path / "rules")
    assert opened.match_batch(events).equals(m.match_batch(events))
    assert opened.stats().notes["segments matched in blocks"] == 1


def test_auto_leaves_events_that_share_nothing_to_the_index() -> None:
    m = eligo.Matcher()
    m.add_many((i, f"a = {i} and b = {i}") for i in range(8000))
    events = [{"a": i, "b": i} for i in range(8000)]
    expected = [(i, i) for i in range(8000)]
    for _ in range(3):
        assert pairs(m.match_batch(events, threads=1)) == expected
    assert m.stats().notes["segments matched in blocks"] == 0


def conjunction_texts(count: int, seed: int) -> list[str]:
    """Rules that are one conjunction each, of which some look at texts and some at several values."""
    r = random.Random(seed)

    def predicate() -> str:
        name, value = f"a{r.randrange(6)}", r.randrange(9)
        return r.choice(
            [
                f"{name} = {value}",
                f"{name} = {value}",
                f"{name} between {value} and {value + r.randrange(4)}",
                f"{name} in ({value}, {r.randrange(9)})",
                f"{name} != {value}",
                f"s like '%{r.choice('xyz')}%{r.choice('xyz')}'",
                f"s >= '{r.choice('xyz')}'",
                f"tags contains any ('t{r.randrange(5)}')",
                f"not tags contains any ('t{r.randrange(5)}')",
            ]
        )

    return [" and ".join(predicate() for _ in range(r.randint(1, 3))) for _ in range(count)]


@pytest.mark.parametrize("named", [True, False])
def test_threads_that_share_the_events_give_the_same_answer(monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    monkeypatch.setattr(engine, "_WORTH", 0)
    m = eligo.Matcher("bitmap")
    m.add_many(
        (i if named else f"r{i}", text, i % 7, ["even"] if i % 2 == 0 else ["odd"])
        for i, text in enumerate(conjunction_texts(700, seed=6))
    )
    r = random.Random(7)
    events = [event(r, ranges=False) for _ in range(7001)]
    columns = ("a0", "a1", "a2", "a3", "a4", "a5", "s", "tags")
    table = pa.table({name: [one.get(name) for one in events] for name in columns})
    expected = [(i, rule) for i, one in enumerate(events) for rule in m.match(one)]
    m.match_batch(table.slice(0, 10), threads=1)
    assert m.engine.rules.view.shares
    for threads in (1, 2, 3, 12):
        assert pairs(m.match_batch(table, threads=threads)) == expected
        some = m.match_batch(table.slice(900, 5000), threads=threads, tags=["odd"], limit=4)
        assert some.equals(m.match_batch(events[900:5900], threads=1, tags=["odd"], limit=4))
        assert m.top_batch(table, 3, threads=threads).equals(m.top_batch(events, 3, threads=1))
    m.remove_many([rule.id for i, rule in enumerate(m.rules()) if i % 3 == 0])
    left = {rule.id for rule in m.rules()}
    assert pairs(m.match_batch(table, threads=2)) == [pair for pair in expected if pair[1] in left]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("trees", [True, False])
def test_rules_that_many_events_satisfy(monkeypatch: pytest.MonkeyPatch, named: bool, trees: bool) -> None:
    """Notes that are bits and notes that are lists, of the same rules and of neighbours, in several blocks."""
    monkeypatch.setattr(engine, "_WORTH", 0)
    r = random.Random(8)

    def text(i: int) -> str:
        low, often = r.randrange(1000), 1500 <= i < 3500 or r.random() < 0.03
        wide = f"x >= {low // 3}" if often else f"x between {low} and {low + 9}"
        if i % 3 == 0:
            return f"y = {r.randrange(40)} and {wide}"
        if i % 3 == 1:
            return f"{wide} and x < {low + 700}"
        return f"({wide} and y != 3) or (z = {i % 9} and x >= 500)" if trees else f"z in (0, 1, 2, {i % 9}) and {wide}"

    m, other = eligo.Matcher("bitmap"), eligo.Matcher("scan")
    texts = [text(i) for i in range(4000)]
    texts += texts[2000:2200]  # equal rules share one note's events
    for one in (m, other):
        one.add_many((i if named else f"r{i}", text, 0, ["odd"] if i % 2 else []) for i, text in enumerate(texts))
    count = 3 * EVENTS + 77
    columns = {name: [r.randrange(most) for _ in range(count)] for name, most in (("x", 1000), ("y", 40), ("z", 9))}
    columns["x"] = [None if i // EVENTS == 1 and r.random() < 0.8 else x for i, x in enumerate(columns["x"])]
    table = pa.table(columns)
    for size in (1, 64, EVENTS, EVENTS + 1, count):
        expected = other.match_batch(table.slice(0, size))
        for threads in (1, 2, 3):
            assert m.match_batch(table.slice(0, size), threads=threads).equals(expected)
    assert expected.num_rows > 100 * count
    odd = other.match_batch(table, tags=["odd"], limit=50)
    assert m.match_batch(table, tags=["odd"], limit=50).equals(odd)
    assert m.match_batch(table).equals(expected), "room for bits is left clean"


@pytest.mark.parametrize("rules", [["a0 = 77"], ["a0 >= 0"], ["a0 >= 0"] * 3000, ["a0 = 1", *["a0 = 77"] * 3000]])
def test_threads_share_few_and_many_matches(monkeypatch: pytest.MonkeyPatch, rules: list[str]) -> None:
    """However matches are spread over the rules: all of one rule, or none at all."""
    monkeypatch.setattr(engine, "_WORTH", 0)
    m = eligo.Matcher("bitmap")
    m.add_many(enumerate(rules))
    values = [i % 10 for i in range(2100)]
    table = pa.table({"a0": values})
    ones = m.match_batch(table, threads=1)
    assert ones.num_rows == sum(len(m.match({"a0": value})) for value in values[:10]) * 210
    for threads in (2, 4, 1):
        assert m.match_batch(table, threads=threads).equals(ones)


def test_an_error_in_a_shared_slice_has_the_number_of_its_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_WORTH", 0)
    m = eligo.Matcher("bitmap")
    m.add_many((i, f"when > timestamp '2026-01-01T00:00:00Z' and a = {i}") for i in range(50))
    seconds = [0] * 5000
    table = pa.table({"when": pa.array(seconds, pa.timestamp("s")), "a": [i % 50 for i in range(5000)]})
    m.match_batch(table.slice(0, 10))
    for bad in ([1], [3000], [4999], [2700, 4000]):
        for row in bad:
            seconds[row] = 2**60
        odd = table.set_column(0, "when", pa.array(seconds, pa.timestamp("s")))
        with pytest.raises(eligo.EventError, match=f"^event {bad[0]}:"):
            m.match_batch(odd, threads=2)
        for row in bad:
            seconds[row] = 0


def test_many_events_that_cannot_be_used_are_taken_out_of_a_slice_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    m = eligo.Matcher("bitmap")
    m.add_many((i, f"when > timestamp '2026-01-01T00:00:00Z' and a = {i}") for i in range(50))
    seconds = [0] * 3000 + [2**60] * 3000
    table = pa.table({"when": pa.array(seconds, pa.timestamp("s")), "a": [i % 50 for i in range(6000)]})
    m.match_batch(table.slice(0, 10))
    assert m.engine.rules.view.shares
    encode, encoded = TableEvents.encode, []

    def counted(self: TableEvents, *args: Any) -> None:
        encoded.append(len(self))
        encode(self, *args)

    monkeypatch.setattr(TableEvents, "encode", counted)
    for threads in (1, 2, 3):
        encoded.clear()
        _, rejects = m.match_batch(table, threads=threads, on_error="collect")
        assert [reject.row for reject in rejects] == list(range(3000, 6000))
        assert encoded == [6000, 3000]
