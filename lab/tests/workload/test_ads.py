"""The ads workload: the figures of the PS-Tree paper §7.4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eligo
from eligo.errors import OptionError
from eligo_lab.workload import ads as module
from eligo_lab.workload.base import generate
from eligo_lab.workload.market import KNOWN, TARGET


def test_the_figures_of_the_paper() -> None:
    w = generate("ads", rules=20_000)
    assert w.draft is not None
    w.draft.check()
    assert len(w.draft.attributes) == 122
    assert w.measured["rule_size"] == pytest.approx(8, rel=0.03)
    assert (w.measured["smallest"], w.measured["largest"]) == (1, 56)
    assert w.measured["event_size"] == pytest.approx(20, rel=0.03)
    assert 10 < w.measured["matches"] <= 100
    counts = np.sort(np.bincount(w.draft.attribute))[::-1]
    assert counts[:12].sum() > 0.4 * counts.sum()  # skewed


def test_more_rules_match_no_more() -> None:
    few, many = generate("ads", rules=2_000, matches=5), generate("ads", rules=20_000, matches=5)
    assert many.measured["target_values"] > few.measured["target_values"]
    assert many.measured["matches"] <= 5.5
    assert few.measured["matches"] <= 5.5


def test_the_matcher_finds_what_was_measured() -> None:
    w = generate("ads", rules=2_000, events=200)
    matcher = eligo.Matcher()
    matcher.add_many(w.rules)
    assert matcher.match_batch(w.events).num_rows == round(w.measured["matches"] * 200)


def test_every_rule_has_a_target() -> None:
    w = generate("ads", rules=1_000)
    targets = {name for name, kind, _ in KNOWN if kind == TARGET}
    for text in w.rules["expression"].to_pylist():
        assert targets & set(text.split()), text


def test_the_seed_decides() -> None:
    first, again = generate("ads", rules=500, seed=5), generate("ads", rules=500, seed=5)
    assert first.rules.equals(again.rules)
    assert first.events.equals(again.events)
    assert not first.rules.equals(generate("ads", rules=500, seed=6).rules)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"dimensions": 20}, "attributes are fixed"),
        ({"rule_size": 1.0}, "rule_size=1"),
        ({"rule_size": 40.0}, "rule_size=40"),
        ({"largest": 200}, "largest=200"),
        ({"event_size": 120.0}, "event_size=120"),
        ({"zipf": 7.0}, "zipf=7"),
        ({"matches": 0.0}, "matches=0"),
    ],
)
def test_what_cannot_be_is_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        generate("ads", **{"rules": 1_000, **parameters})


def test_fewer_matches_than_can_be_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DOUBLINGS", 0)  # targets have few values, however many there are of rules
    with pytest.raises(OptionError, match="less than these parameters reach"):
        generate("ads", rules=20_000, matches=5)
