"""One suite for every registered index, with every evaluator and both semantics: the answers are the reference's."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import eligo
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.language.reference import matches
from strategies import events, expressions

MULTI = frozenset({"c"})
COMBINATIONS = list(product(INDEXES.all(), EVALUATORS.all(), ("fails", "classical")))

several = pytest.mark.parametrize(("index", "evaluator", "absent"), COMBINATIONS)
thorough = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def build(rules: list[Any], index: str, evaluator: str, absent: Any, multi: frozenset[str] = MULTI) -> eligo.Matcher:
    m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent, multi=multi)
    m.add_many(enumerate(rules))
    return m


def expected(rules: list[Any], event: dict[str, Any], absent: str, multi: frozenset[str] = MULTI) -> list[int]:
    return [i for i, rule in enumerate(rules) if matches(rule, event, absent, multi)]


@several
@thorough
@given(
    rules=st.lists(expressions(multi=MULTI), min_size=1, max_size=8),
    some=st.lists(events(multi=MULTI), min_size=1, max_size=6),
)
def test_answers_are_those_of_the_reference(
    index: str, evaluator: str, absent: str, rules: list[Any], some: list[Any]
) -> None:
    m = build(rules, index, evaluator, absent)
    wanted = [expected(rules, event, absent) for event in some]
    assert [m.match(event) for event in some] == wanted
    table = m.match_batch(some)
    pairs = [(i, rule) for i, ids in enumerate(wanted) for rule in ids]
    assert list(zip(table["event"].to_pylist(), table["rule"].to_pylist(), strict=True)) == pairs


@several
@thorough
@given(
    rules=st.lists(expressions(multi=frozenset()), min_size=1, max_size=8),
    event=events(multi=frozenset(), ranges=True),
)
def test_ranges_as_events(index: str, evaluator: str, absent: str, rules: list[Any], event: dict[str, Any]) -> None:
    # The reference tries values of Python, whose times end where ours go on.
    assume(not any(end in repr(event) for end in ("datetime(9999,", "date(1,")))
    m = build(rules, index, evaluator, absent, frozenset())
    # A conjunction of the normal form needs one value for all its predicates on an attribute.
    normal = [normalize(rule, absent=absent) for rule in rules]
    try:
        found = m.match(event)
    except eligo.EventError as error:
        assert "pattern" in str(error) or "no value at all" in str(error)
        return
    assert found == expected(normal, event, absent, frozenset())


@several
@thorough
@given(
    rules=st.lists(expressions(multi=MULTI), min_size=1, max_size=6),
    steps=st.lists(st.tuples(st.integers(0, 5), st.booleans(), expressions(multi=MULTI)), max_size=8),
    event=events(multi=MULTI),
)
def test_changes_are_as_if_made_from_the_start(
    index: str, evaluator: str, absent: str, rules: list[Any], steps: list[Any], event: dict[str, Any]
) -> None:
    m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent, multi=MULTI)
    kept: dict[int, Any] = {}
    for i, rule in enumerate(rules):
        m.add(i, rule)
        kept[i] = rule
    for i, remove, rule in steps:
        m.match(event)
        if remove:
            if i in kept:
                m.remove(i)
                del kept[i]
        else:
            m.add(i, rule, replace=True)
            kept[i] = rule
    wanted = [i for i, rule in kept.items() if matches(rule, event, absent, MULTI)]
    assert m.match(event) == wanted
    assert list(m) == list(kept)
    assert len(m) == len(kept)


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
