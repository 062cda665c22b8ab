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
from eligo.language.normalize import normalize
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


OBJECT_RULES = [
    "a is null", "a is not null", "a = true", "a = false", "a", "not a", "a != true", "a != false", "a in (true, false)",
    "a not in (true, false)", "a = 1", "a != 1", "not a < 5", "not a >= 5", "a like '%'", "a not like '%'", "a not like '%x%'",
    "a >= ''", "a not in (1, 'a', true)", "a != true and a != 1", "a != true and b = 1", "a = true or b = 1", "true", "false",
    "not (a < 0) and not (a >= 0) and not (a < '') and not (a >= '') and a != true and a != false "
    "and not (a < date '2020-01-01') and not (a >= date '2020-01-01')",
    "not (a < 0) and not (a >= 0) and not (a < '') and not (a >= '') and a != true and not (a < date '2020-01-01') "
    "and not (a >= date '2020-01-01')", "a.b = 1", "a.b is null", "a.b is not null", "a.b != 1", "a.b.c = 1", "a.b.c is null",
    "a is not null and a.b = 1", "a is null or a.b = 1", "l = 'x'", "l != 'x'", "l is null", "l contains none (true, 'x')",
    "l contains all ('x', true)", "l != true", "l.b = 1",
]  # fmt: skip
OBJECT_EVENTS: list[dict[str, Any]] = [
    {"a": {"b": 1}}, {"a": {"b": {"c": 1}}, "b": 1}, {"a": {}}, {"a": {"b": None}}, {"a": {"other": 1}}, {"a.b": {"c": 1}},
    {"a": True, "a.b": 1}, {"a": {"b.c": 1}}, {"a": None}, {}, {"a": True}, {"a": False}, {"a": 1}, {"a": "x"}, {"b": {"c": 1}},
    {"l": {}}, {"l": {"b": 1}}, {"l": [{}]}, {"l": [{"b": 1}, "x"]}, {"l": [True, {}]}, {"l": ["x", True, {}, None]}, {"l": []},
]  # fmt: skip


@several
def test_an_object_is_a_value_that_no_rule_names(index: str, evaluator: str, absent: str) -> None:
    multi = frozenset({"l"})
    trees = [parse(rule) for rule in OBJECT_RULES]
    m = build(OBJECT_RULES, index, evaluator, absent, multi)
    wanted = [expected(trees, event, absent, multi) for event in OBJECT_EVENTS]
    for event, rules in zip(OBJECT_EVENTS, wanted, strict=True):
        assert m.match(event) == rules, event
    table = m.match_batch(OBJECT_EVENTS)
    assert table["rule"].to_pylist() == [rule for rules in wanted for rule in rules]
    # A range allows values that rules name, and so no object.
    rules = [rule for rule in OBJECT_RULES if "like '%x" not in rule and not rule.startswith("l")]
    m = build(rules, index, evaluator, absent, frozenset())
    normal = [normalize(parse(rule), absent=absent) for rule in rules]
    for value in (eligo.NoneOf(True), eligo.NoneOf(False), eligo.OneOf(True), eligo.OneOf(True, False), eligo.OneOf(True, 1, "x"),
                  eligo.Between(False, True), eligo.Above(False), eligo.Below(True), eligo.Below(True, True)):  # fmt: skip
        assert m.match({"a": value}) == expected(normal, {"a": value}, absent, frozenset()), value


@several
@pytest.mark.parametrize("size", [127, 128, 254, 255, 256, 257])
def test_sizes_at_which_counters_could_overflow(index: str, evaluator: str, absent: str, size: int) -> None:
    m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent)  # type: ignore[arg-type]
    m.add_many((i, " and ".join(f"a{j} {'!=' if j % 7 == i else '='} {j}" for j in range(size))) for i in range(3))
    event = {f"a{j}": j + (j % 7 == 1) for j in range(size)}
    assert m.match(event) == [1]
    del event["a1"]
    assert m.match(event) == ([1] if absent == "classical" else [])
    event["a0"] = 1
    assert m.match(event) == []


@several
def test_ranges_of_few_strings_leave_nothing_outside_a_list_of_them(index: str, evaluator: str, absent: str) -> None:
    texts = ["x != 'b'", "x not in ('b', 'c')", "x not in ('b', 'b\0')", "x not between 'b' and 'b'", "x not like 'b'",
             "x != ''", "x not in ('', '\0', 'q')", "x = 'b'", "x in ('b', 'q')", "not x = 'b\0'"]  # fmt: skip
    rules = [parse(text) for text in texts]
    normal = [normalize(rule, absent=absent) for rule in rules]
    m = build(rules, index, evaluator, absent, frozenset())
    for value in (
        eligo.OneOf("b"), eligo.OneOf("b", "c"), eligo.OneOf("b", "d"), eligo.Between("b", "b"), eligo.Between("b", "b\0"),
        eligo.Between("b", "c"), eligo.Below("\0"), eligo.Below("\0", True), eligo.Below("", True), eligo.NoneOf("b"),
        eligo.Above("b"), eligo.OneOf("", 1), eligo.Between("b", "b\0\0"),
    ):  # fmt: skip
        event = {"x": value}
        assert m.match(event) == expected(normal, event, absent, frozenset()), event
