"""Rules as ORs of conjunctions: the same answers as trees, each term once, and the bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import eligo
from eligo.compile.compiled import Compiled, concatenate
from eligo.evaluate.dnf import MANY, Dnf, expanded_size
from eligo.index.registry import INDEXES
from eligo.language import And, Node, Not, Or, parse
from eligo.language.normalize import normalize
from eligo.language.reference import matches
from strategies import events, expressions, tried

LEAVES = 24
thorough = tried(30)


def spines(multi: frozenset[str]) -> st.SearchStrategy[Node]:
    """Trees of depth up to 12 and more: every level has a small tree or two beside the next level."""
    small = expressions(multi=multi, max_leaves=3)
    level = st.tuples(st.sampled_from((And, Or)), st.lists(small, max_size=2), st.booleans())

    def grow(start: Node, levels: list[Any]) -> Node:
        node = start
        for kind, beside, negated in levels:
            node = kind((*beside, node))  # without siblings a node has a single child
            node = Not(node) if negated else node
        return node

    return st.builds(grow, small, st.lists(level, min_size=6, max_size=14))


def trees(multi: frozenset[str]) -> st.SearchStrategy[Node]:
    return st.one_of(spines(multi), expressions(multi=multi, max_leaves=LEAVES))


def matcher(rules: list[Any], **settings: Any) -> eligo.Matcher:
    m = eligo.Matcher(**{"evaluator": "dnf", **settings})
    m.add_many(enumerate(rules))
    return m


def compiled(m: eligo.Matcher) -> Compiled:
    view = m.engine.rules.view
    assert len(view.segments) == 1
    return view.segments[0].compiled


def terms(m: eligo.Matcher, rule: int = 0) -> int:
    """Terms of a rule as it is stored; -1 for one that is still a tree."""
    c = compiled(m)
    tokens = c.tree[c.tree_offsets[rule] : c.tree_offsets[rule + 1]]
    return len(tokens) if len(tokens) < 2 else len(tokens) - 1 if np.sum(tokens < 0) == 1 and tokens[0] & 1 else -1


@pytest.mark.parametrize("absent", ["fails", "classical"])
@thorough
@given(
    rules=st.lists(trees(frozenset({"c"})), min_size=1, max_size=4),
    some=st.lists(events(multi=frozenset({"c"})), min_size=1, max_size=6),
)
def test_trees_say_the_same_expanded(absent: Any, rules: list[Node], some: list[dict[str, Any]]) -> None:
    m = matcher(rules, absent=absent, multi=["c"], options={"past_terms": "interval"})
    for event in some:
        assert m.match(event) == [i for i, rule in enumerate(rules) if matches(rule, event, absent, frozenset({"c"}))]


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize("index", INDEXES.all())
@tried(12)
@given(rules=st.lists(trees(frozenset()), min_size=1, max_size=4), event=events(ranges=True))
def test_an_unknown_value_may_meet_two_leaves_in_two_ways(
    index: str, absent: Any, rules: list[Node], event: dict[str, Any]
) -> None:
    assume(not any(end in repr(event) for end in ("datetime(9999,", "date(1,")))  # the reference tries Python's values
    rules = [rule for rule in rules if expanded_size(normalize(rule, absent=absent)) <= 4096]
    m = matcher(rules, index=index, absent=absent)
    try:
        found = m.match(event)
    except eligo.EventError as error:
        assert "pattern" in str(error) or "no value at all" in str(error)
        return
    normal = [normalize(rule, absent=absent) for rule in rules]
    assert found == [i for i, rule in enumerate(normal) if matches(rule, event, absent)]


def test_what_a_range_meets_is_not_intersected() -> None:
    rule = "(a < 5 or b = 1) and (a > 7 or c = 1)"
    for index in INDEXES.all():
        m = matcher(
            [rule, "a < 5 and a > 7 and (b = 1 or c = 1)", "(a < 3 or b = 1) and (a > 1 or b = 2)"], index=index
        )
        assert m.match({"a": eligo.Between(1, 10)}) == [0, 2]
        assert m.match({"a": 2, "c": 1}) == [0, 2]
        assert m.match({"a": 2}) == [2]
        assert m.match({"a": 9, "b": 1}) == [0, 2]


def test_terms_multiply_and_are_kept_once() -> None:
    m = matcher(
        [
            "(a = 1 or b = 1) and c = 1 and (d = 1 or e = 1)",
            "a = 1 and b = 1",
            "a = 1 and b = 1 or c = 1",
            "(a = 1 or b = 1) and (a = 1 or c = 1)",  # a or (b and c): a c and a b hold a
            "(a = 1 or b = 1) and (a in (1) or b = 1)",
            "((a = 1 or b = 1) and (c = 1 or d = 1)) or ((b = 1 or a = 1) and (d = 1 or c = 1))",
        ]
    )
    assert [terms(m, rule) for rule in range(6)] == [4, 1, 2, 2, 2, 4]
    # Of the fifteen terms a, b c and a b stand in two rules, so there are twelve conjunctions.
    assert m.stats().conjunctions == 12


def test_equal_terms_of_a_large_rule_are_kept_once() -> None:
    m = matcher([" and ".join(f"(a = 1 and x = 1 or b = 1 and x = 1 or z{i} = 1)" for i in range(5))])
    # Some of the z; where one of the five chose otherwise also a x or b x, and where two did perhaps a b x.
    assert terms(m) == 1 + 5 * 2 + (10 + 10 + 5 + 1) * 3 < 3**5
    tokens = compiled(m).tree[1:].tolist()
    assert len(set(tokens)) == len(tokens)
    assert m.match({"x": 1, "b": 1}) == [0]
    assert m.match({"x": 1} | {f"z{i}": 1 for i in range(4)}) == []


def test_arranging_twice_is_arranging_once() -> None:
    plain = compiled(matcher(["a = 1", "b = 1 or c = 1 and a = 1", "false", "true"], evaluator="interval"))
    assert Dnf.arrange(plain) is plain
    deep = compiled(matcher(["(a = 1 or b = 1) and (c = 1 or d = 1)", "b = 1", "false"], evaluator="interval"))
    once = Dnf.arrange(deep)
    assert once.rules == deep.rules
    assert Dnf.arrange(once) is once
    merged = concatenate([once, plain, once], [None, None, None])
    assert Dnf.arrange(merged) is merged
    assert Dnf.arrange(deep, terms=3) is deep  # past the bound: as it is, again and again


def test_predicates_that_are_equal_but_were_not_compiled_as_one() -> None:
    for index in INDEXES.all():
        m = matcher(["(a = 1 or b = 1) and (a in (1) or c = 1)", "(m = 1 or b = 2) and (m contains any (1) or c = 1)"],
                    index=index, multi=["m"])  # fmt: skip
        assert m.match({"a": 1, "m": [1, 2]}) == [0, 1]
        c = compiled(m)
        assert all(np.all(np.diff(some) > 0) for some in np.split(c.conjunction, c.conjunction_offsets))


# -- the bound


def wide(count: int) -> str:
    return " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(count))


TRUE = {f"a{i}": 1 for i in range(20)}


@pytest.mark.parametrize(
    ("rule", "size"),
    [
        ("a = 1", 1),
        ("false", 1),
        ("a = 1 and b = 1", 1),
        ("a = 1 or b = 1 and c = 1", 2),
        ("(a = 1 or b = 1) and c = 1 and (d = 1 or e = 1 or f = 1)", 6),
        ("a = 1 or (b = 1 or c = 1) and (d = 1 or e = 1) and f = 1", 5),
        (wide(12), 4096),
        (wide(200), MANY),
        (" or ".join(f"a{i} = 1" for i in range(5000)), 5000),
        (" and ".join(f"a{i} = 1" for i in range(5000)), 1),  # one conjunction is no expansion, however long
        (" and ".join(f"a{i} = 1" for i in range(640)) + " and (b = 1 or c = 1)", -(-2 * 641 // 64)),
    ],
)
def test_size(rule: str, size: int) -> None:
    assert expanded_size(normalize(parse(rule))) == size


@thorough
@given(rule=trees(frozenset()), terms=st.integers(1, 40))
def test_what_is_checked_is_what_is_expanded(rule: Node, terms: int) -> None:
    m = eligo.Matcher(evaluator="dnf", limits={"terms": terms})
    size = expanded_size(normalize(rule))
    if size > terms:
        with pytest.raises(eligo.LimitError, match=f"{size:,} terms"):
            m.add(0, rule)
        assert len(m) == 0
        return
    m.add_many([(0, rule)])
    assert Dnf.arrange(compiled(m), terms=0) is compiled(m)  # nothing is left to expand


def test_a_rule_past_the_bound_is_refused_before_anything_changes() -> None:
    m = matcher([wide(3), "x = 1"], limits={"terms": 8})
    with pytest.raises(eligo.LimitError, match=r"16 terms in disjunctive normal form, the limit is 8.*past_terms"):
        m.add(2, wide(4))
    with pytest.raises(eligo.LimitError):
        m.add(0, wide(4), replace=True)
    with pytest.raises(eligo.LimitError, match=r"rule 3 \(row 1\)"):
        m.add_many([(2, "x = 2"), (3, wide(4))])
    assert list(m) == [0, 1]
    assert m.match(TRUE | {"x": 1}) == [0, 1]
    rejects = m.add_many([(2, "x = 1"), (3, wide(4)), (0, wide(5)), (1, "x = 1 and y = 1")], "collect", replace=True)
    assert [(bad.row, bad.id, bad.position) for bad in rejects] == [(1, 3, -1), (2, 0, -1)]
    assert "16 terms" in rejects[0].message
    assert m.match(TRUE | {"x": 1}) == [0, 2]


def test_a_rule_past_the_bound_may_be_left_to_interval() -> None:
    m = matcher([wide(3), wide(4), "x = 1"], limits={"terms": 8}, options={"past_terms": "interval"})
    assert [terms(m, rule) for rule in range(3)] == [8, -1, 1]
    assert m.match(TRUE) == [0, 1]
    assert m.match({name: 1 for name in TRUE if name != "a3"}) == [0]
    assert m.stats().notes["rules past limits.terms, evaluated as trees"] == 1
    assert m.stats().options == {"past_terms": "interval"}
    for i in range(3, 200):  # merged with others, again and again
        m.add(i, wide(4) if i % 50 == 0 else "x = 1")
    assert m.match(TRUE) == [0, 1, 50, 100, 150]
    assert m.stats().notes["rules past limits.terms, evaluated as trees"] == 4


def test_other_evaluators_have_no_such_bound() -> None:
    for evaluator in ("interval", "dewey", "walk", "scan"):
        assert matcher([wide(20)], evaluator=evaluator, limits={"terms": 1}).match(TRUE) == [0]


def test_growing_is_no_reason_to_refuse_the_rule_that_causes_it(tmp_path: Path) -> None:
    """Whether it is added alone or with others."""
    small = "(m = 1 or m = 2) and (m = 3 or m = 4) and (m = 5 or m = 6)"  # never, while m has one value
    event = {"m": [1, 3, 5]}
    m = matcher(["x = 1", small], limits={"terms": 4})
    m.add(2, "m contains any (1)")
    assert m.match(event) == [1, 2]
    assert m.stats().notes["rules past limits.terms, evaluated as trees"] == 1
    with pytest.raises(eligo.LimitError):
        m.add(3, small)
    m.save(tmp_path / "rules.eligo")
    assert eligo.open(tmp_path / "rules.eligo").match(event) == [1, 2]
    n = eligo.Matcher(evaluator="dnf", limits={"terms": 4})
    rejects = n.add_many([(0, "x = 1"), (1, small), (2, "m contains any (1)"), (3, small)], "collect")
    assert [bad.id for bad in rejects] == [3]
    assert n.match(event) == [1, 2]


def test_options_are_saved_with_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.eligo"
    m = matcher([wide(3), wide(4)], limits={"terms": 8}, options={"past_terms": "interval"})
    m.save(path)
    n = eligo.open(path)
    assert n.options["past_terms"] == "interval"
    n.add(2, wide(5))
    assert n.match(TRUE) == [0, 1, 2]
    assert n.stats().options == {"past_terms": "interval"}
