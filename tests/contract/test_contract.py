"""One suite for every registered index, with every evaluator and both semantics: the answers are the reference's."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import eligo
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.language.reference import matches
from strategies import events, expressions, tried

MULTI = frozenset({"c"})
# Indexes and evaluators meet in nothing but a list of conjunctions, so every one of each is tried, not every pair.
PAIRS = [(index, "interval") for index in INDEXES.all()]
PAIRS += [("propagation", evaluator) for evaluator in EVALUATORS.all() if evaluator != "interval"]
COMBINATIONS = [(*pair, absent) for pair, absent in product(PAIRS, ("fails", "classical"))]

several = pytest.mark.parametrize(("index", "evaluator", "absent"), COMBINATIONS)
# Some hundred rules against as many events of each kind are in `test_many_rules`; here shapes matter, not numbers.
thorough = tried(12)


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


def crowd(rng: random.Random, count: int) -> list[str]:
    """Rules of all operators over few attributes, so that lists, clusters and branches of an index are long."""

    def predicate(name: str) -> str:
        x, y = rng.randrange(12), rng.randrange(100)  # `wide` has far more spaces than a word has bits
        some = ", ".join(str(v) for v in rng.sample(range(12), rng.randint(1, 5)))
        if name == "many":
            return f"many contains {rng.choice(('any', 'all', 'none'))} ({some})"
        if name == "word":
            return rng.choice((f"word = 'w{x}'", f"word like 'w{x % 3}%'", f"word >= 'w{x}'", f"word like '%{x}'"))
        value = y if name == "wide" else x
        return f"{name} " + rng.choice((
            f"= {value}", f"!= {value}", f"< {value}", f"<= {value}", f"> {value}", f">= {value}", f"in ({some})",
            f"not in ({some})", f"between {value} and {value + rng.randrange(6)}", "is null", "is not null",
        ))  # fmt: skip

    names = [f"n{i}" for i in range(6)] + ["wide", "wide", "word", "many"]
    rules = []
    for _ in range(count):
        chosen = [predicate(name) for name in rng.sample(names, rng.choice((1, 2, 3, 4, 5, 7)))]
        rules.append((" and " if rng.random() < 0.9 else " or ").join(
            f"not ({part})" if rng.random() < 0.1 else part for part in chosen
        ))  # fmt: skip
    return rules


@several
def test_many_rules(index: str, evaluator: str, absent: str) -> None:
    rng = random.Random(5)
    rules = crowd(rng, 1200)
    trees = [parse(rule) for rule in rules]
    m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent, multi=["many"])  # type: ignore[arg-type]
    m.add_many(enumerate(rules))
    events = []
    for _ in range(25):
        event: dict[str, Any] = {f"n{i}": rng.randrange(13) for i in rng.sample(range(6), rng.randrange(7))}
        event |= {"wide": rng.randrange(110), "word": f"w{rng.randrange(14)}"} if rng.random() < 0.8 else {}
        if rng.random() < 0.6:
            event["many"] = [rng.randrange(12) for _ in range(rng.randrange(4))]
        events.append(event)
    wanted = [expected(trees, event, absent, frozenset({"many"})) for event in events]
    assert [m.match(event) for event in events] == wanted
    table = m.match_batch(events)
    assert table["rule"].to_pylist() == [rule for ids in wanted for rule in ids]
    # Ranges, against the same event with each of its values in turn where one attribute alone is a range.
    rules = [rule for rule in rules if "many" not in rule and "like '%" not in rule and " or " not in rule]
    m = eligo.Matcher(index=index, evaluator=evaluator, absent=absent)  # type: ignore[arg-type]
    m.add_many(enumerate(rules))
    for low in (0, 5, 11):
        rest = {"n1": rng.randrange(12), "word": "w1"}
        found = m.match({"n0": eligo.Between(low, low + 3), **rest})
        values = [low, low + 1, low + 2, low + 3, low + 0.5, low + 1.5, low + 2.5]
        each: set[Any] = set().union(*(m.match({"n0": value, **rest}) for value in values))
        assert found == sorted(each)


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
    for i in range(3):
        m.add(i, " and ".join(f"a{j} {'!=' if j % 7 == i else '='} {j}" for j in range(size)))
    event = {f"a{j}": j + (j % 7 == 1) for j in range(size)}
    assert m.match(event) == [1]
    del event["a1"]
    assert m.match(event) == ([1] if absent == "classical" else [])
    event["a0"] = 1
    assert m.match(event) == []
