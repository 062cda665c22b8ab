"""The BEGen workload: what was asked for is what comes out, and what cannot come out is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eligo
from eligo.errors import OptionError
from eligo_lab.workload.base import Workload, generate
from eligo_lab.workload.deriving import draw_attributes, sizes
from eligo_lab.workload.draft import EQUAL, IN, NOT_IN, OPERATORS


def made(rules: int = 4_000, events: int = 200, **parameters: object) -> Workload:
    return generate("begen", rules=rules, events=events, **parameters)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"match": 0.001},
        {"match": 0.09, "zipf": 1.0},
        {"match": 0.5},
        {"match": 0.35},
        {"zipf": 2.0, "operators": "high"},
        {"zipf": 5.0, "match": 0.001},  # chance is much of it
        {"zipf": 5.0, "match": 0.01, "cardinality": 1000},
        {"dimensions": 50, "operators": "low"},
        {"dimensions": 1400, "cardinality": 150_000},
        {"dimensions": 30_000, "rule_size": 10, "event_size": 30, "zipf": 3.0},
        {"dimensions": 100, "cardinality": 30, "rule_size": 5, "event_size": 90, "equality": 0.0},  # chance is over it
        {"dimensions": 100, "cardinality": 3, "rule_size": 10, "event_size": 30, "zipf": 5.0},
        {"rule_size": 15, "event_size": 15, "equality": 0.2},
        {"dimension_selectivity": 0.5, "operators": "min"},
        {"cardinality": 1, "equality": 1.0},
    ],
    ids=str,
)
def test_the_match_probability_is_the_asked_one(parameters: dict[str, Any]) -> None:
    w = made(**parameters)
    assert w.draft is not None
    w.draft.check()
    wanted = parameters.get("match", 0.01)
    assert w.measured["match"] == pytest.approx(wanted, rel=0.05)
    assert w.measured["rule_size"] == pytest.approx(parameters.get("rule_size", 7), rel=0.02)
    assert w.measured["event_size"] == pytest.approx(parameters.get("event_size", 15), rel=0.04)
    assert w.measured["equality"] == pytest.approx(w.parameters["equality"], abs=0.06)
    assert (w.rules.num_rows, w.events.num_rows) == (4_000, 200)


def test_the_matcher_finds_what_was_measured() -> None:
    w = made(rules=1_000, events=100, zipf=1.0, operators="high", dimensions=60, match=0.02)
    matcher = eligo.Matcher()
    matcher.add_many(w.rules)
    assert matcher.match_batch(w.events).num_rows == round(w.measured["match"] * 1_000 * 100)


def test_without_a_probability_only_chance_matches() -> None:
    assert made(match=None).measured["match"] < 1e-4
    assert made(match=None, dimensions=10, event_size=10, rule_size=2).measured["match"] > 0.001


@pytest.mark.parametrize(
    ("operators", "some"),
    [
        ("min", {"="}),
        ("low", {"=", "in"}),
        ("med", {"<", "<=", "=", ">=", ">", "in", "between"}),
        ("high", set(OPERATORS)),
    ],
)
def test_operators_of_each_class(operators: str, some: set[str]) -> None:
    draft = made(operators=operators).draft
    assert draft is not None
    assert {OPERATORS[o] for o in np.unique(draft.operator)} == some


def test_ranges_and_lists_have_the_asked_size() -> None:
    draft = made(range_size=0.25, cardinality=1000, operators="high", set_size=4).draft
    assert draft is not None
    first, counts = draft.operand_offsets[:-1], np.diff(draft.operand_offsets)
    ranges = first[draft.operator == 8]
    widths = draft.operand[ranges + 1] - draft.operand[ranges] + 1
    assert widths.mean() == pytest.approx(250, rel=0.05)
    assert set(counts[draft.operator == IN]) == {2, 3, 4}
    assert set(counts[draft.operator == NOT_IN]) == {1, 2, 3, 4}
    assert draft.operand.min() >= -1
    assert draft.operand.max() <= 1000


def test_zipf_prefers_few_attributes() -> None:
    def top_share(zipf: float) -> float:
        draft = made(zipf=zipf).draft
        assert draft is not None
        counts = np.sort(np.bincount(draft.attribute, minlength=400))[::-1]
        return float(counts[:20].sum() / counts.sum())

    assert top_share(0.0) < 0.12
    assert 0.3 < top_share(1.0) < 0.8
    assert top_share(3.0) > 0.8


def test_rules_differ_where_there_is_room() -> None:
    texts = made(operators="min", cardinality=4).rules["expression"].to_pylist()
    assert len({frozenset(text.split(" and ")) for text in texts}) == len(texts)


def test_the_seed_decides() -> None:
    first, again, other = made(seed=3), made(seed=3), made(seed=4)
    assert first.rules.equals(again.rules)
    assert first.events.equals(again.events)
    assert first.measured == again.measured
    assert not first.rules.equals(other.rules)


def test_dimension_selectivity_is_the_cardinality() -> None:
    for selectivity, cardinality in ((0.5, 2), (0.75, 4), (0.9, 10)):
        assert made(dimension_selectivity=selectivity).parameters["cardinality"] == cardinality


def test_drawing_follows_the_weights_without_replacement() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([4.0, 2.0, 1.0, 1.0])
    drawn = draw_attributes(rng, weights, 2 * np.arange(40_001)).reshape(-1, 2)
    assert (drawn[:, 0] != drawn[:, 1]).all()
    assert np.bincount(drawn[:, 0]) / 40_000 == pytest.approx(weights / 8, abs=0.01)
    second = drawn[drawn[:, 0] == 0, 1]
    assert np.bincount(second, minlength=4) / len(second) == pytest.approx([0, 0.5, 0.25, 0.25], abs=0.015)
    # All of many, with weights over many orders of magnitude.
    every = draw_attributes(rng, np.arange(1, 3001.0) ** -5, np.array([0, 3000, 6000]))
    assert np.array_equal(np.sort(every[3000:]), np.arange(3000))


def test_sizes_have_the_mean_and_little_spread() -> None:
    found = sizes(np.random.default_rng(1), 1_000, 7.3, 1.75)
    assert found.mean() == pytest.approx(7.3, abs=0.05)
    assert set(found) <= {5, 6, 7, 8, 9, 10}
    assert {6, 7, 8, 9} <= set(found)
    assert set(sizes(np.random.default_rng(1), 50, 4.0, 0.0)) == {4}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"rule_size": 16}, "rule_size=16 is over event_size=15"),
        ({"event_size": 500}, "over dimensions=400"),
        ({"rule_size": 0.5}, "one predicate or more"),
        ({"cardinality": 1}, "cardinality=1 leaves no room"),
        ({"cardinality": 0}, "one value or more"),
        ({"zipf": 6.0}, "zipf=6"),
        ({"zipf": -1.0}, "zipf=-1"),
        ({"match": 0.0}, "match=0 "),
        ({"match": 0.6}, "match=0.6"),
        ({"match": 1e-6}, "too few"),
        ({"equality": 1.5}, "no share"),
        ({"operators": "min", "equality": 0.5}, "no other operator"),
        ({"operators": "all"}, "none of min, low, med, high"),
        ({"range_size": 0.0}, "range_size=0"),
        ({"set_size": 1}, "set_size=1"),
        ({"dimension_selectivity": 1.0}, "dimension_selectivity=1"),
        ({"dimensions": 5, "event_size": 5, "rule_size": 1, "cardinality": 2, "match": 0.01}, "less than these parameters reach"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        made(**parameters)


def test_an_equality_stays_an_equality() -> None:
    draft = made(equality=1.0).draft
    assert draft is not None
    assert (draft.operator == EQUAL).all()
