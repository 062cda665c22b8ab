"""Sizes and shapes that are hard to draw, for every index, evaluator and semantics; tests/differential has the random ones."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest

import eligo
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.language import parse
from eligo.language.reference import matches

MULTI = frozenset({"c"})
# Indexes and evaluators meet in nothing but a list of conjunctions, so every one of each is tried, not every pair.
PAIRS = [(index, "interval") for index in INDEXES.all()]
PAIRS += [("propagation", evaluator) for evaluator in EVALUATORS.all() if evaluator != "interval"]
COMBINATIONS = [(*pair, absent) for pair, absent in product(PAIRS, ("fails", "classical"))]

several = pytest.mark.parametrize(("index", "evaluator", "absent"), COMBINATIONS)


def build(rules: list[Any], index: str, evaluator: str, absent: Any, multi: frozenset[str] = MULTI) -> eligo.Matcher:
    m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent, multi=multi)
    m.add_many(enumerate(rules))
    return m


def expected(rules: list[Any], event: dict[str, Any], absent: str, multi: frozenset[str] = MULTI) -> list[int]:
    return [i for i, rule in enumerate(rules) if matches(rule, event, absent, multi)]


@several
def test_every_rule_is_accepted(index: str, evaluator: str, absent: str) -> None:
    rules = [
        "true", "false", "a is null", "not a is null", "not a = 1", "a like '%x%'", "not a like '%x%'",
        "a != 1 and b != 2", "not (a < 5) and not (a > 7)", "a between 7 and 5", "not (a between 7 and 5)",
        "a like '%'", "a", "not a", "a = 1 or a != 1", "(a = 1 or b = 1) and (a = 2 or b = 2 or c contains any (1, 2))",
    ]  # fmt: skip
    m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent)  # type: ignore[arg-type]
    m.add_many(enumerate(rules))
    trees = [parse(rule) for rule in rules]
    for event in ({}, {"a": 1}, {"a": "x"}, {"a": True, "b": 2}, {"a": 6}, {"b": 1, "a": 2}, {"c": [1, 3], "a": 2, "b": 9},
                  {"a": math.inf}, {"a": ""}, {"c": []}):  # fmt: skip
        assert m.match(event) == expected(trees, event, absent), event


@several
def test_two_predicates_on_one_attribute_of_several_values(index: str, evaluator: str, absent: str) -> None:
    rules = ["m < 5 and m contains none (3)", "m contains none (3) and m < 5 and n = 1", "m is null and m < 5",
             "m > 1 and m < 4 and m != 3", "not m = 3 and m >= 2"]  # fmt: skip
    trees = [parse(rule) for rule in rules]
    m = build(rules, index, evaluator, absent, frozenset({"m"}))
    for value in (3, [3], [2, 3], 2, [2], [], [1, 7], [3, 9]):
        for event in ({"m": value}, {"m": value, "n": 1}, {"n": 1}):
            assert m.match(event) == expected(trees, event, absent, frozenset({"m"})), event


@several
@pytest.mark.parametrize("size", [127, 128, 254, 255, 256, 257])
def test_sizes_at_which_counters_could_overflow(index: str, evaluator: str, absent: str, size: int) -> None:
    m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent)  # type: ignore[arg-type]
    for i in range(3):
        m.add(i, " and ".join(f"a{j} {'!=' if j % 7 == i else '='} {j}" for j in range(size)))
    event = {f"a{j}": j + (j % 7 == 1) for j in range(size)}
    assert m.match(event) == [1]
    del event["a1"]
    assert m.match(event) == ([1] if absent == "classical" else [])
    event["a0"] = 1
    assert m.match(event) == []
