"""Answers of several segments: in the order of adding or the best first, whatever was replaced, by any number of threads."""

from __future__ import annotations

import random
from typing import Any

import pytest

import eligo
from eligo.segments import matches

EVENTS: list[dict[str, Any]] = [{"a": a, "b": b} for a in range(12) for b in (0, 3)] + [{}]


def several_segments(drawn: random.Random, texts: bool, index: str) -> eligo.Matcher:
    """Returns a matcher with sealed segments and a live one, in which rules have been replaced and removed."""
    m = eligo.Matcher(index)
    ids: list[Any] = [f"r{n}" for n in range(700)] if texts else list(range(700))
    drawn.shuffle(ids)

    def rule(rule: Any) -> tuple[Any, str, float]:
        return rule, f"a >= {drawn.randrange(12)} and b < {drawn.randrange(1, 5)}", float(drawn.randrange(-3, 4))

    m.add_many(map(rule, ids[:300]))
    m.add_many(map(rule, ids[300:600]))
    m.remove_many(drawn.sample(ids[:600], 50))
    for each in ids[600:]:
        m.add(*rule(each))
    for each in drawn.sample(list(m), 30):
        m.add(*rule(each), replace=True)
    return m


@pytest.mark.parametrize("index", ["auto", "bitmap", "pst-hash"])
@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_batch_of_several_segments_is_that_of_its_events(
    monkeypatch: pytest.MonkeyPatch, index: str, texts: bool, threads: int
) -> None:
    monkeypatch.setattr(matches, "_MANY", 1)
    monkeypatch.setattr(matches, "_FEW", 10)
    m = several_segments(random.Random(threads), texts, index)
    for limit in (None, 0, 1, 7, 10_000):
        one_by_one = [(i, rule) for i, event in enumerate(EVENTS) for rule in m.match(event, limit=limit)]
        found = m.match_batch(EVENTS, limit=limit, threads=threads)
        assert list(zip(*found.to_pydict().values(), strict=True)) == one_by_one
    for k in (0, 1, 2, 3, 10, 10_000):
        best = [(i, *pair) for i, event in enumerate(EVENTS) for pair in m.top(event, k=k)]
        assert list(zip(*m.top_batch(EVENTS, k, threads=threads).to_pydict().values(), strict=True)) == best
