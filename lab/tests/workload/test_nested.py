"""`nested`: trees in normal form whose parts recur, and a selectivity that the reference agrees with."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.strings import Strings
from eligo.errors import OptionError
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.language.reference import matches
from eligo.language.tree import And, Node, Or
from eligo_lab.workload.base import WORKLOADS, Workload, generate
from eligo_lab.workload.draft import Draft

SMALL: dict[str, Any] = {"rules": 500, "events": 60, "conjunctions": 60, "pool": 20, "attributes": 12, "event_size": 6}


def made(**parameters: Any) -> Workload:
    return generate("nested", **{"rules": 2_000, "events": 200, **parameters})


def draft_of(workload: Workload) -> Draft:
    assert workload.draft is not None
    workload.draft.check()
    return workload.draft


def trees(draft: Draft) -> list[Any]:
    """Every rule as nested tuples: a conjunction's number, or ("and" | "or", children)."""
    found = []
    for n in range(len(draft)):
        stack: list[Any] = []
        for token in draft.tree[draft.tree_offsets[n] : draft.tree_offsets[n + 1]][::-1].tolist():
            if token >= 0:
                stack.append(token)
            else:
                children = tuple(stack.pop() for _ in range(-token // 2))
                stack.append(("or" if token % 2 else "and", children))
        assert len(stack) == 1
        found.append(stack[0])
    return found


def depth(tree: Any) -> int:
    return 0 if isinstance(tree, int) else 1 + max(depth(child) for child in tree[1])


def inner(tree: Any) -> list[Any]:
    """All nodes that are not conjunctions."""
    return [] if isinstance(tree, int) else [tree, *(node for child in tree[1] for node in inner(child))]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rules_alternate_and_no_two_children_are_equal(seed: int) -> None:
    for tree in trees(draft_of(made(**SMALL, seed=seed))):
        for kind, children in inner(tree):
            assert len(children) >= 2
            assert len(set(children)) == len(children)
            assert all(isinstance(child, int) or child[0] != kind for child in children)
            if kind == "and":
                assert sum(isinstance(child, int) for child in children) <= 1, "two conjunctions would be one"


def shape(node: Node) -> Any:
    """A normal tree as its ANDs and ORs with the number of predicates of each conjunction."""
    if not isinstance(node, (And, Or)):
        return 1
    nested = [shape(child) for child in node.children if isinstance(child, (And, Or))]
    alone = len(node.children) - len(nested)
    if isinstance(node, Or):
        return ("or", sorted([1] * alone + nested, key=repr))
    return ("and", sorted([alone] * (alone > 0) + nested, key=repr)) if nested else alone


@pytest.mark.parametrize("parameters", [{}, SMALL, {**SMALL, "zipf": 0.0, "fresh": 0.6}, {**SMALL, "zipf": 2.0}])
def test_normalising_the_text_changes_nothing(parameters: dict[str, Any]) -> None:
    workload = made(**{**parameters, "rules": 400})
    draft = draft_of(workload)
    sizes = np.diff(draft.conjunction_offsets).tolist()

    def drawn(tree: Any) -> Any:
        return sizes[tree] if isinstance(tree, int) else (tree[0], sorted(map(drawn, tree[1]), key=repr))

    for tree, text in zip(trees(draft), workload.rules["expression"].to_pylist(), strict=True):
        assert shape(normalize(parse(text))) == drawn(tree), text


@pytest.mark.parametrize("deepest", [0, 1, 2, 5, 9, 12])
def test_depths_go_up_to_the_one_asked(deepest: int) -> None:
    workload = made(max_depth=deepest, alternatives=0.3)
    depths = Counter(map(depth, trees(draft_of(workload))))
    assert set(depths) == ({deepest} if deepest < 2 else set(range(1, deepest + 1)))
    assert workload.measured["depth"] == pytest.approx(sum(d * n for d, n in depths.items()) / 2_000)
    if deepest >= 2:
        assert sum(n for d, n in depths.items() if d % 2) / 2_000 == pytest.approx(0.3, abs=0.04)


def test_what_is_measured_is_so() -> None:
    workload = made()
    draft = draft_of(workload)
    nodes = [node for tree in trees(draft) for node in inner(tree)]
    leaves = draft.tree[draft.tree >= 0]
    measured = workload.measured
    assert measured["inner_nodes"] == len(nodes) / 2_000
    assert measured["distinct_inner_nodes"] == len(set(nodes))
    assert measured["sharing"] == pytest.approx(len(nodes) / len(set(nodes)))
    assert measured["leaves"] == len(leaves) / 2_000
    assert measured["conjunctions"] == len(set(leaves.tolist())) == len(draft.conjunction_offsets) - 1
    assert measured["distinct_rules"] == len(set(trees(draft))) / 2_000
    assert measured["event_size"] == pytest.approx(32, rel=0.05)


def test_the_defaults_are_as_promised() -> None:
    measured = made(rules=20_000, events=500).measured
    assert 0.001 < measured["selectivity"] < 0.01
    assert 10 < measured["leaves"] < 30
    assert measured["sharing"] > 3
    assert made(rules=20_000, fresh=0.0, repeated=0.5).measured["sharing"] > 1.5 * measured["sharing"]


def test_conjunctions_are_distinct() -> None:
    draft = draft_of(made())
    attributes, strings = Attributes(), Strings()
    assert draft.compile(attributes, strings).conjunctions == len(draft.conjunction_offsets) - 1
    assert set(np.diff(draft.conjunction_offsets).tolist()) == {1, 2, 3}


@pytest.mark.parametrize("deepest", [0, 1, 4, 9])
def test_text_arrays_and_reference_agree(deepest: int) -> None:
    workload = made(**{**SMALL, "rules": 60, "events": 40}, max_depth=deepest)
    roots = [parse(text) for text in workload.rules["expression"].to_pylist()]
    events = workload.events.to_pylist()
    wanted = {(e, r) for e, event in enumerate(events) for r, root in enumerate(roots) if matches(root, event)}
    matcher = eligo.Matcher()
    matcher.add_many(workload.rules)
    found = matcher.match_batch(workload.events)
    assert set(zip(found["event"].to_pylist(), found["rule"].to_pylist(), strict=True)) == wanted
    assert workload.measured["selectivity"] == pytest.approx(len(wanted) / (60 * 40))
    compiled = draft_of(workload).compile(Attributes(), Strings())
    built = Builder(Attributes(), Strings())
    for root in roots:
        built.add(normalize(root))
    again = built.finish()
    assert (compiled.rules, compiled.conjunctions, len(compiled.tree)) == (
        again.rules,
        again.conjunctions,
        len(again.tree),
    )


def test_the_same_seed_makes_the_same_tables() -> None:
    first, again, other = made(), made(), made(seed=2)
    assert first.rules.equals(again.rules)
    assert first.events.equals(again.events)
    assert first.measured == again.measured
    assert not first.rules.equals(other.rules)


def test_parameters_are_all_recorded() -> None:
    workload = made(zipf=0.5)
    assert set(workload.parameters) == set(WORKLOADS["nested"].parameters)
    assert workload.parameters["zipf"] == 0.5


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"max_depth": -1}, "max_depth=-1 is not in 0"),
        ({"max_depth": 65}, "max_depth=65"),
        ({"attributes": 4}, "attributes=4"),
        ({"cardinality": 3}, "cardinality=3"),
        ({"event_size": 0.5}, "event_size=0.5"),
        ({"event_size": 120.0}, "0.9 of the attributes"),
        ({"conjunctions": 3}, "16 or more"),
        ({"pool": 0}, "16 or more"),
        ({"zipf": -1.0}, "zipf=-1"),
        ({"fresh": 1.5}, "fresh=1.5 is no share"),
        ({"repeated": -0.1}, "repeated=-0.1 is no share"),
        ({"alternatives": 2.0}, "alternatives=2 is no share"),
        ({"rules": 10**9}, "nodes and conjunctions in all"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        made(**parameters)
