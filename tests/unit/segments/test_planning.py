"""What `auto` searches with: planned by counts, the same each time, within the memory that is allowed."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.index.auto import KINDS
from eligo.segments import blocks, planning, segment

RANGES = [(n, f"a between {n} and {n + 40} and b = {n % 7} and c < {n % 90}") for n in range(400)]
WIDE = [(n, f"a between {n % 300} and {n % 300 + 90} and b < {n % 7} and c > {n % 90}") for n in range(4000)]
TENANTS = [(n, f"tenant = 't{n % 80}' and (a = {n % 9} or b = {n % 5}) and (c = 1 or d = {n % 3})") for n in range(400)]


def events(count: int) -> list[dict[str, Any]]:
    draw = random.Random(3)
    return [
        {"a": draw.randrange(440), "b": draw.randrange(7), "c": draw.randrange(90), "tenant": f"t{draw.randrange(80)}"}
        for _ in range(count)
    ]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials of few rules."""
    for module in (planning, segment):
        monkeypatch.setattr(module, "LEAST", 100)
    monkeypatch.setattr(planning, "_TRIED", 100)


def loaded(rules: list[tuple[int, str]], **options: Any) -> eligo.Matcher:
    m = eligo.Matcher(options=options or None)
    m.add_many(rules)
    m.engine.rules.wait()
    return m


def answers(m: eligo.Matcher) -> list[list[Any]]:
    return [m.match(event) for event in events(60)]


def test_a_few_rules_need_no_trial() -> None:
    stats = loaded(RANGES).stats()
    assert (stats.index, [plan["tried"] for plan in stats.plans]) == ("propagation", [{}])
    assert "need no trial" in stats.index_reason
    assert eligo.Matcher().stats().index == "propagation"


@pytest.mark.usefixtures("small")
def test_many_rules_are_planned_beside_the_matching() -> None:
    m = eligo.Matcher()
    m.add_many(WIDE)
    wanted = answers(m)  # whether it is planned yet or not
    m.engine.rules.wait()
    assert answers(m) == wanted
    (plan,) = m.stats().plans
    assert (plan["rules"], plan["index"]) == (4000, "pst-hash")
    assert set(plan["tried"]) == {"propagation", "pst-hash"}
    assert all(set(figures) == set(planning._FIELDS[1:]) for figures in plan["tried"].values())
    assert "pst-hash" in m.stats().index_reason


@pytest.mark.usefixtures("small")
def test_the_same_rules_have_the_same_plan() -> None:
    for rules in (RANGES, TENANTS):
        assert loaded(rules).stats().plans == loaded(rules).stats().plans


@pytest.mark.usefixtures("small")
def test_every_kind_gives_the_same_answers_and_is_kept_in_a_snapshot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(blocks, "WORTH", 1)
    plain = eligo.Matcher("scan", "walk")
    plain.add_many(TENANTS)
    for number, name in enumerate(KINDS[:2]):
        monkeypatch.setattr(planning, "_fastest", lambda tried, room, number=number: number)
        m = loaded(TENANTS)
        assert m.stats().index == name
        m.save(tmp_path / name)
        opened = eligo.open(tmp_path / name)
        assert opened.stats().plans == m.stats().plans
        assert answers(m) == answers(opened) == answers(plain)
        assert opened.match_batch(events(60)).equals(plain.match_batch(events(60)))
        for rule in range(0, 400, 3):
            m.remove(rule)
        left = [rule for rule in answers(plain)[0] if rule % 3]
        assert m.match(events(1)[0]) == left


def test_blocks_of_a_segment_that_was_planned_since_are_kept_in_a_snapshot(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whether a batch made them before, or they were in a snapshot."""
    monkeypatch.setattr(blocks, "WORTH", 1)
    m = loaded(TENANTS)
    wanted = m.match_batch(events(60))
    m.save(tmp_path / "unplanned")
    for module in (planning, segment):
        monkeypatch.setattr(module, "LEAST", 100)
    monkeypatch.setattr(planning, "_fastest", lambda tried, room: KINDS.index("pst-hash"))
    for number, one in enumerate((m, eligo.open(tmp_path / "unplanned"))):
        one.add_many([(1000, "a = 1")])  # whoever changes rules sees that some are not planned
        one.remove(1000)
        one.engine.rules.wait()
        first = one.engine.rules.segments[0]  # type: ignore[attr-defined]
        assert first.index.name == "pst-hash"
        assert first.blocks.arrays
        one.save(tmp_path / f"planned {number}")
        assert eligo.open(tmp_path / f"planned {number}").match_batch(events(60)).equals(wanted)


@pytest.mark.usefixtures("small")
def test_a_merge_plans_anew() -> None:
    m = loaded(TENANTS)
    for n in range(5):
        m.add_many([(1000 * (n + 1) + rule, text) for rule, text in RANGES])
    m.engine.rules.wait()
    plans = m.stats().plans
    assert sum(plan["rules"] for plan in plans) == 2400
    assert all(plan["tried"] for plan in plans)


@pytest.mark.usefixtures("small")
def test_events_that_were_observed_are_what_it_is_tried_with() -> None:
    m = loaded(RANGES)
    m.observe([{"a": 5}] * 200)  # of one attribute: nothing to evaluate
    seen = m.stats().plans[0]["tried"]
    assert seen != loaded(RANGES).stats().plans[0]["tried"]
    assert seen["propagation"]["candidates"] < 400


@pytest.mark.parametrize("memory", [1, 150_000, 10**9])
def test_it_stays_within_the_memory_that_is_given(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "WORTH", 1)
    m = loaded(TENANTS, memory=memory)
    table = m.match_batch(events(60))
    assert table.equals(loaded(TENANTS).match_batch(events(60)))
    stats = m.stats()
    tried = stats.plans[0]["tried"]
    assert set(tried) == set(KINDS)
    if memory == 1:  # less than the rules themselves take: the least
        assert stats.index == min(tried, key=lambda name: tried[name]["bytes"])
        assert not any(name.startswith("blocks/") for name in stats.arrays)
    else:
        assert stats.total_bytes <= memory


def test_memory_is_a_number_of_bytes() -> None:
    with pytest.raises(eligo.OptionError, match="option 'memory' is a whole number of 0 or more, not -1"):
        eligo.Matcher(options={"memory": -1})
    with pytest.raises(eligo.OptionError, match="'memory' is an option of auto, not of scan"):
        eligo.Matcher("scan", options={"memory": 1})


def test_made_events_satisfy_rules_of_every_kind() -> None:
    texts = [
        "a < 5", "a >= 2.5", "s = 'x'", "s < 'm'", "s >= 'q'", "s like 'a%b'", "flag", "not flag",
        "t >= date '2026-01-01'", "t < timestamp '2026-01-01 00:00:00Z'", "a is null", "a != 3", "m contains any ('p')",
    ]  # fmt: skip
    m = eligo.Matcher(options={"memory": 10**9})
    m.add_many(enumerate(texts))
    compiled = m.engine.rules.segments[0].whole()  # type: ignore[attr-defined]
    made = planning.events_of(compiled, m.engine.rules.recipe.strings, 64)
    assert made.events == 64
    assert set(np.unique(made.meta[: made.offsets[64]] & 255)) == {1, 5, 9, 14}


def test_blocks_go_by_what_was_observed() -> None:
    """A row lies under its least likely predicate: of these events `a` is always 1, and `b` never."""
    rules = [(n, f"a = 1 and b > {n}") for n in range(100)]
    m = eligo.Matcher("bitmap")
    m.add_many(rules)
    seen = [{"a": 1, "b": -1}] * 300
    m.match_batch(seen)
    before = m.stats().candidates
    m.observe(seen)
    m.match_batch(seen)
    assert before > 0
    assert m.stats().candidates == 0


@pytest.mark.usefixtures("small")
def test_blocks_are_compared_again_with_the_index_that_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "WORTH", 1)
    monkeypatch.setattr(blocks, "TRIED", 10)
    monkeypatch.setattr(blocks, "blocks_time", lambda figures: 20.0)
    monkeypatch.setattr(
        blocks, "batch_time", lambda segment, events: 30.0 if segment.index.name == "propagation" else 10.0
    )
    monkeypatch.setattr(planning, "_fastest", lambda tried, room: 1)
    m = eligo.Matcher()
    with m.engine.rules.lock:  # the thread beside waits for it
        m.add_many(RANGES)
        for _ in range(3):
            m.match_batch(events(60))
        assert m.engine.rules.segments[0].blocks.pays  # type: ignore[attr-defined]
    m.engine.rules.wait()
    wanted = m.match_batch(events(60))
    for _ in range(3):
        assert m.match_batch(events(60)).equals(wanted)
    found = m.engine.rules.segments[0].blocks  # type: ignore[attr-defined]
    assert (found.pays, found.times, found.arrays) == (False, (20.0, 10.0), {})
