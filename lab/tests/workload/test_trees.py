"""`trees`: shapes as the paper grows them, statistics as asked, and a selectivity that the reference agrees with."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.errors import OptionError
from eligo.language import parse
from eligo.language.reference import matches
from eligo_lab.workload.audience import AUDIENCE, SIZES, statistics
from eligo_lab.workload.base import WORKLOADS, Workload, generate
from eligo_lab.workload.draft import Draft


def shapes(draft: Draft) -> list[tuple[int, list[tuple[int, int, int]]]]:
    """For every rule the token of its root, and of all nodes depth, children and token."""
    found = []
    for n in range(len(draft)):
        tokens = draft.tree[draft.tree_offsets[n] : draft.tree_offsets[n + 1]].tolist()
        depths = [0]
        nodes = []
        for token in tokens:
            depth = depths.pop()
            children = 0 if token >= 0 else -token // 2
            nodes.append((depth, children, token))
            depths += [depth + 1] * children
        assert not depths
        found.append((tokens[0], nodes))
    return found


def made(**parameters: Any) -> Workload:
    return generate("trees", **{"rules": 2_000, "events": 500, **parameters})


def draft_of(workload: Workload) -> Draft:
    assert workload.draft is not None
    workload.draft.check()
    return workload.draft


def selectivity_by_matching(workload: Workload) -> float:
    matcher = eligo.Matcher()
    matcher.add_many(workload.rules)
    return matcher.match_batch(workload.events).num_rows / (len(matcher) * workload.events.num_rows)


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
def test_by_default_all_leaves_lie_at_the_maximum_depth(depth: int) -> None:
    draft = draft_of(made(rules=200, min_depth=0, max_depth=depth))
    for _, nodes in shapes(draft):
        for at, children, token in nodes:
            assert (children == 0) == (at == depth)
            if children:
                assert (-token) % 2 == at % 2, "ANDs at even depths, ORs at odd ones"


def test_children_are_as_many_as_the_paper_says() -> None:
    counts: Counter[int] = Counter()
    for _, nodes in shapes(draft_of(made(rules=4_000))):
        counts.update(children for _, children, _ in nodes if children)
    total = sum(counts.values())
    for children, share in {1: 0.05, 2: 0.7, 3: 0.2, 4: 0.05}.items():
        assert counts[children] / total == pytest.approx(share, abs=0.02)


def test_a_share_for_no_children_gives_leaves_between_the_depths() -> None:
    workload = made(min_depth=1, max_depth=3, children="0:0.5, 2:0.5")
    leaves: Counter[int] = Counter()
    for _, nodes in shapes(draft_of(workload)):
        leaves.update(depth for depth, children, _ in nodes if not children)
    assert set(leaves) == {1, 2, 3}
    assert leaves[1] / 2_000 == pytest.approx(1, abs=0.1)  # two children each, half of them leaves


def test_conjunctions_and_events_follow_the_statistics() -> None:
    workload = made(rules=20_000, max_depth=1, events=4_000)
    draft = draft_of(workload)
    sizes = Counter(np.diff(draft.conjunction_offsets).tolist())
    total = sum(sizes.values())
    for size, share in SIZES.items():
        assert sizes[size] / total == pytest.approx(share, abs=0.01)
    alone = draft.attribute[draft.conjunction_offsets[:-1][np.diff(draft.conjunction_offsets) == 1]]
    weight = sum(a.targeted for a in AUDIENCE)
    for number, a in enumerate(AUDIENCE):
        assert np.mean(alone == number) == pytest.approx(a.targeted / weight, abs=0.01)
        known = 1 - workload.events[a.name].null_count / workload.events.num_rows
        assert known == pytest.approx(a.known, abs=0.03)
    male = workload.events["gender"].to_pylist().count("male") / 4_000
    assert male == pytest.approx(0.53 * 0.95, abs=0.03)
    lists = np.diff(draft.operand_offsets)[draft.attribute == statistics().names.index("age")]
    assert lists.mean() == pytest.approx(4.0, abs=0.1)
    assert lists.max() <= 6


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 4])
def test_the_natural_selectivity_is_what_the_reference_finds(depth: int) -> None:
    workload = made(rules=40, events=30, min_depth=0, max_depth=depth, paths=3, shared=0.5)
    trees = [parse(text) for text in workload.rules["expression"].to_pylist()]
    found = sum(matches(tree, event) for event in workload.events.to_pylist() for tree in trees)
    assert workload.measured["selectivity"] == pytest.approx(found / (40 * 30))


def test_natural_selectivities_lie_near_those_of_table_3() -> None:
    for depth, published in {1: 0.2285, 2: 0.5797, 3: 0.1097, 4: 0.4923}.items():
        found = made(max_depth=depth).measured["selectivity"]
        assert published * 0.75 < found < published * 1.4, depth


@pytest.mark.parametrize(("depth", "asked"), [(1, 0.1), (2, 0.5), (2, 0.01), (3, 0.01), (4, 0.3)])
def test_a_selectivity_asked_is_reached(depth: int, asked: float) -> None:
    workload = made(rules=600, events=300, max_depth=depth, selectivity=asked)
    assert len(draft_of(workload)) == 600
    assert workload.measured["selectivity"] == pytest.approx(asked, rel=0.1)
    assert selectivity_by_matching(workload) == pytest.approx(workload.measured["selectivity"])


def test_few_rules_match_at_a_low_selectivity_and_they_stand_anywhere() -> None:
    workload = made(rules=1_000, events=200, selectivity=0.01)
    matcher = eligo.Matcher()
    matcher.add_many(workload.rules)
    matching = set(matcher.match_batch(workload.events)["rule"].to_pylist())
    assert len(matching) < 50
    assert min(matching) < 300
    assert max(matching) > 700


def test_paths_are_shared_by_the_rules_that_have_them() -> None:
    plain, paved = made(rules=800), made(rules=800, paths=10, hops=2, shared=0.5)
    assert paved.measured["conjunctions"] > plain.measured["conjunctions"] + 1.5
    draft = draft_of(paved)
    more = [nodes[0][1] for _, nodes in shapes(draft)]
    assert 0.4 < np.mean([children > 2 for children in more]) < 0.75
    uses = np.bincount(draft.tree[draft.tree >= 0])
    assert 10 <= np.count_nonzero(uses > 1) <= 40, "the conjunctions of ten paths, and no others"
    assert selectivity_by_matching(paved) == pytest.approx(paved.measured["selectivity"])


def test_paths_go_together_with_a_selectivity() -> None:
    workload = made(rules=1_000, events=100, paths=5, selectivity=0.05, min_depth=0, max_depth=0)
    assert selectivity_by_matching(workload) == pytest.approx(0.05, rel=0.1)


def test_the_same_seed_makes_the_same_tables() -> None:
    first, again, other = made(selectivity=0.1), made(selectivity=0.1), made(selectivity=0.1, seed=2)
    assert first.rules.equals(again.rules)
    assert first.events.equals(again.events)
    assert first.measured == again.measured
    assert not first.rules.equals(other.rules)


def test_parameters_are_all_recorded() -> None:
    workload = made(selectivity=0.2, paths=2)
    assert set(workload.parameters) == set(WORKLOADS["trees"].parameters)
    assert workload.parameters["selectivity"] == 0.2
    assert workload.parameters["children"] == "1:0.05, 2:0.7, 3:0.2, 4:0.05"


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"selectivity": 0.9}, r"0\.\d+ can"),
        ({"selectivity": 0.4, "max_depth": 1}, "only lowers it"),
        ({"rules": 10, "events": 10, "selectivity": 0.0001}, "cannot be had with 10 rules and 10 events"),
        ({"selectivity": 0.0}, "no share"),
        ({"selectivity": 1.5}, "no share"),
        ({"min_depth": 3, "max_depth": 2}, "min_depth=3 and max_depth=2"),
        ({"min_depth": -1}, "0 or more"),
        ({"max_depth": 12}, "conjunctions a rule"),
        ({"children": "2"}, "number:probability"),
        ({"children": "2:0.5, 3:0.6"}, "add up to 1.1"),
        ({"children": "0:1"}, "needs nodes with children"),
        ({"children": "-1:1"}, "from 0"),
        ({"sizes": "0:0.5, 1:0.5"}, "from 1"),
        ({"sizes": "40:1"}, "there are 25"),
        ({"paths": -1}, "0 or more"),
        ({"paths": 2, "hops": 3}, "from 1 to paths=2"),
        ({"paths": 2, "shared": 2.0}, "from 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(parameters: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        made(**parameters)
