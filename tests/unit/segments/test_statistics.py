"""How often predicates hold, from how often values come."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.segments.rule_set import RuleSet
from eligo.segments.sample import Sample
from eligo.segments.statistics import Statistics, Values

RULES = [
    "a = 3", "a > 5", "a in (1, 2)", "not a = 3", "a is null", "a is not null", "s = 'x'", "s like 'x%y'", "s > 'm'",
    "not s like 'x%y'", "t between 2.5 and 7", "b = true", "many contains any (1, 2)", "many is null", "never = 1",
]  # fmt: skip


def events(count: int) -> list[dict[str, Any]]:
    rng = random.Random(4)
    some: list[dict[str, Any]] = []
    for _ in range(count):
        event: dict[str, Any] = {"t": rng.random() * 10, "b": rng.random() < 0.25}
        if rng.random() < 0.6:
            event["a"] = rng.randrange(8)
        if rng.random() < 0.9:
            event["s"] = rng.choice(["x", "x1y", "n", "a"])
        if rng.random() < 0.5:
            event["many"] = [rng.randrange(6)]
        some.append(event)
    return some


@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_single_predicates_hold_as_often_as_in_the_events(absent: Any) -> None:
    m = eligo.Matcher(absent=absent, multi=["many"])
    m.add_many(enumerate(RULES))
    rules = m.engine.rules
    assert isinstance(rules, RuleSet)
    some = events(500)
    counts: dict[str, dict[Any, float]] = {}
    for event in some:
        for name, value in event.items():
            held = counts.setdefault(name, {})
            for one in value if isinstance(value, list) else [value]:
                held[one] = held.get(one, 0.0) + 1
    seen = {
        name: Values(sum(name in event for event in some), tuple(held.items())) for name, held in counts.items()
    } | {"unknown": Values(3, ((1, 3.0),))}
    statistics = Statistics(len(some), seen, rules.recipe.attributes, rules.recipe.strings)
    (segment,) = rules.view.segments
    wanted = Sample(some, rules.view.encoder).held(segment.conjunctions)
    assert np.abs(statistics.held(segment.conjunctions) - wanted).max() <= 1
    assert statistics.events == 500


def test_a_segment_may_be_older_than_the_last_attributes() -> None:
    m = eligo.Matcher()
    m.add_many([("r", "a = 1")])
    (segment,) = m.engine.rules.view.segments  # type: ignore[attr-defined]
    m.add("s", "later = 2")
    statistics = Statistics(
        10, {"later": Values(10, ((2, 10.0),)), "a": Values(4, ((1, 4.0),))}, m.engine.rules.recipe.attributes,
        m.engine.rules.recipe.strings,
    )  # fmt: skip
    assert statistics.held(segment.conjunctions).tolist() == [4]
