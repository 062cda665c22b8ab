"""Whatever holds the rules, sealed segments and a live one or one that changes in place, a view gives the same answers."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import eligo
from eligo.language import parse
from eligo.language.reference import matches

INDEXES = ("propagation", "be-tree", "pst-hash", "pst-bloom")
TAGS = ("red", "green", "blue")


def text(rng: random.Random) -> str:
    parts = [
        rng.choice(
            (f"a = {rng.randrange(4)}", f"b > {rng.randrange(9)}", f"s like '{rng.choice('xyz')}%'", "c is null")
        )
        for _ in range(rng.randrange(1, 5))
    ]
    return f" {rng.choice(('and', 'or'))} ".join(f"({part})" for part in parts)


def event(rng: random.Random) -> dict[str, object]:
    values = {"a": rng.randrange(4), "b": rng.randrange(10), "s": rng.choice(("x", "xy", "y", "")), "c": 1}
    return {name: value for name, value in values.items() if rng.random() < 0.8}


@pytest.mark.parametrize("texts", [False, True])
def test_every_kind_of_segment_answers_alike(monkeypatch: pytest.MonkeyPatch, texts: bool) -> None:
    monkeypatch.setattr("eligo.segments.rule_set.SEALED", 8)
    rng = random.Random(20261118 + texts)
    matchers = [eligo.Matcher(index) for index in INDEXES]
    kept: dict[str | int, tuple[str, float, tuple[str, ...]]] = {}
    for step in range(12):
        for _ in range(rng.randrange(1, 25)):
            rule: str | int = f"rule {rng.randrange(60)}" if texts else rng.randrange(60)
            if rule in kept and rng.random() < 0.5:
                del kept[rule]
                for m in matchers:
                    m.remove(rule)
                continue
            given = text(rng), rng.choice((0.5, 1.0, 2.0)), tuple(rng.sample(TAGS, rng.randrange(3)))
            kept[rule] = given
            for m in matchers:
                m.add(rule, *given, replace=True)
        events = [event(rng) for _ in range(rng.choice((1, 7, 40)))]
        tags = rng.choice((None, (), ("red",), ("blue", "green"), ("none",)))
        limit = rng.choice((None, 0, 1, 3))
        chosen = [rule for rule, one in kept.items() if tags is None or {*tags} & {*one[2]}]
        trees = {rule: parse(kept[rule][0]) for rule in chosen}
        wanted = [[rule for rule in chosen if matches(trees[rule], one)] for one in events]
        best = [sorted(found, key=lambda rule: -kept[rule][1])[:2] for found in wanted]
        for m in matchers:
            where = f"{m.index}, step {step}"
            assert list(m) == list(kept), where
            assert [m.match(one, tags=tags, limit=limit) for one in events] == [found[:limit] for found in wanted], (
                where
            )
            assert [[rule for rule, _ in m.top(one, 2, tags=tags)] for one in events] == best, where
            assert pairs(m.match_batch(events, tags=tags, limit=limit)) == numbered(wanted, limit), where
            assert pairs(m.top_batch(events, 2, tags=tags)) == numbered(best, None), where
            for rule in rng.sample(range(60), 5):
                name = f"rule {rule}" if texts else rule
                assert (name in m) == (name in kept), where
                assert name not in kept or (m[name].weight, set(m[name].tags)) == (kept[name][1], set(kept[name][2]))


def numbered(found: list[list[str | int]], limit: int | None) -> list[tuple[int, str | int]]:
    return [(number, rule) for number, rules in enumerate(found) for rule in rules[:limit]]


def pairs(table: pa.Table) -> list[tuple[int, str | int]]:
    return list(zip(table["event"].to_pylist(), table["rule"].to_pylist(), strict=True))
