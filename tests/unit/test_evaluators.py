"""Every evaluator on the paper's own example, on deep trees, and at the widths where labels and masks change form."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.compile.compiled import Compiled
from eligo.evaluate.registry import EVALUATORS

every = pytest.mark.parametrize("evaluator", EVALUATORS.all())


def taking_all(evaluator: str) -> dict[str, Any]:
    """Options with which an evaluator refuses no rule."""
    return {"past_terms": "interval"} if "past_terms" in EVALUATORS.get(evaluator).options else {}


def rule_of_figure_5(evaluator: str) -> eligo.Matcher:
    m = eligo.Matcher(evaluator=evaluator, limits={"leaves": 200_000})
    m.add_many(
        [("contract", "(a = 1 and (a2 = 1 or x = 1)) or c = 1 or (d = 1 and (e = 1 or x = 1) and (f = 1 or y = 1))")]
    )
    return m


@every
@pytest.mark.parametrize(
    ("satisfied", "wanted"),
    [("a d e f", True), ("a a2", True), ("c", True), ("d e f", True), ("a2 d", False), ("a d e", False), ("", False)],
)
def test_figure_5(evaluator: str, satisfied: str, wanted: bool) -> None:
    found = rule_of_figure_5(evaluator).match(dict.fromkeys(satisfied.split(), 1))
    assert found == (["contract"] if wanted else [])


# Labels of `interval` and `dewey` have a width that depends on the rule; for the others one large rule is like another.
WIDTHS = [127, 128, 129, 255, 256, 257, 32_768, 65_535, 65_536]


@pytest.mark.parametrize(
    ("evaluator", "leaves"),
    [
        (name, leaves)
        for name in EVALUATORS.all()
        for leaves in (WIDTHS if name in ("interval", "dewey") else [128, 65_536])
    ],
)
def test_label_widths(evaluator: str, leaves: int) -> None:
    # An AND of ORs of two leaves, so that nothing collapses into one conjunction.
    ors = [f"(a{i % 50} = {i} or b{i % 50} = {i})" for i in range(leaves // 2)]
    event = {f"a{i}": list(range(i, leaves, 50)) for i in range(50)}
    limits = {"leaves": 200_000, "text": 10_000_000}
    m = eligo.Matcher(evaluator=evaluator, multi=list(event), limits=limits, options=taking_all(evaluator))
    m.add_many({"wide": " and ".join(ors)})
    assert m.match(event) == ["wide"]
    event["a7"] = event["a7"][1:]
    assert m.match(event) == []


def tree(rng: random.Random, depth: int, conjunctions: int, is_and: bool) -> list[int]:
    """Tokens of a random tree that alternates, single children and repeated conjunctions among its nodes."""
    if depth == 0 or rng.random() < 0.15:
        return [rng.randrange(conjunctions)]
    children = rng.choice((1, 2, 2, 2, 3, 4))
    below = [tree(rng, depth - 1, conjunctions, not is_and) for _ in range(children)]
    return [-2 * children - (not is_and), *(token for child in below for token in child)]


def holds(tokens: list[int], truth: set[int]) -> bool:
    values: list[bool] = []
    for token in reversed(tokens):
        if token >= 0:
            values.append(token in truth)
        else:
            some = [values.pop() for _ in range(-token // 2)]
            values.append(any(some) if token & 1 else all(some))
    return values[0]


def compiled(trees: list[list[int]], conjunctions: int) -> Compiled:
    """Rules over conjunctions of one predicate each, on an attribute of its own."""
    numbers, kinds, wide = np.arange(conjunctions, dtype=np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(one) for one in trees])))
    return Compiled(
        attribute=numbers, flags=np.zeros(conjunctions, np.uint8), pattern=np.full(conjunctions, -1, np.int32),
        run_offsets=np.zeros(conjunctions + 1, np.int64), low_kind=kinds, low_key=wide, low_key2=wide, high_kind=kinds,
        high_key=wide, high_key2=wide, conjunction_offsets=np.arange(conjunctions + 1), conjunction=numbers,
        tree_offsets=offsets.astype(np.int64), tree=np.array([t for one in trees for t in one], np.int32),
    )  # fmt: skip


def satisfied(arranged: Compiled, attributes: set[int]) -> list[int]:
    """The conjunctions, as the evaluator wanted them, whose attributes are all among these."""
    parts = np.split(arranged.attribute[arranged.conjunction], arranged.conjunction_offsets[1:-1])
    return [c for c in range(arranged.conjunctions) if attributes.issuperset(parts[c].tolist())]


@every
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 6, 12])
@pytest.mark.parametrize("conjunctions", [5, 60, 3000])
def test_random_trees(evaluator: str, depth: int, conjunctions: int) -> None:
    rng = random.Random(depth * conjunctions)
    trees = [[]] + [tree(rng, depth, conjunctions, rng.random() < 0.5) for _ in range(60 if depth < 12 else 6)]
    arranged = EVALUATORS.get(evaluator).arrange(compiled(trees, conjunctions))
    again = EVALUATORS.get(evaluator).restore(arranged, EVALUATORS.get(evaluator).build(arranged).arrays())
    scratch = again.scratch()
    everyone = np.zeros(0, np.uint8)
    for share in (0.0, 0.02, 0.1, 0.2, 0.5, 0.9, 1.0):  # few satisfied conjunctions, and many
        truth = {c for c in range(conjunctions) if rng.random() < share}
        found = np.array(satisfied(arranged, truth), np.int32)
        rng.shuffle(found)
        wanted = [r for r, tokens in enumerate(trees) if tokens and holds(tokens, truth)]
        count = again.evaluate(found, len(found), everyone, scratch)
        assert scratch.matched[:count].tolist() == wanted
        count = again.complete(again.group(found, len(found), scratch), everyone, scratch)
        assert scratch.matched[:count].tolist() == wanted
        allowed = np.array([r % 3 != 0 for r in range(len(trees))], np.uint8)
        count = again.evaluate(found, len(found), allowed, scratch)
        assert scratch.matched[:count].tolist() == [r for r in wanted if r % 3]
        offsets, ends = np.array([0, 0, len(found), len(found)]), np.zeros(4, np.int64)
        assert again.evaluate_batch(found, offsets, 3, everyone, scratch, ends) == 3
        assert ends.tolist() == [0, 0, len(wanted), len(wanted)]
        assert scratch.matched[: len(wanted)].tolist() == wanted


@every
def test_an_or_of_more_conjunctions_than_a_mask_has_bits(evaluator: str) -> None:
    """All leaves complete the rule alone, so none is marked, and yet the rule is large."""
    m = eligo.Matcher(evaluator=evaluator)
    m.add_many({0: " or ".join(f"(a = {i} and b = {i})" for i in range(70)), 1: "x = 1 and (y = 1 or z = 1)"})
    for i in range(60):
        m.add(2 + i, f"x > {-i} and (y > {-i} or z > {-i})")
    assert m.match({"a": 3, "b": 3}) == [0]
    assert m.match({"a": 3, "b": 4}) == []
    assert m.match({"x": 1, "y": 1, "z": 1}) == list(range(1, 62))


@every
def test_a_batch_in_which_everything_matches(evaluator: str) -> None:
    rules, conjunctions = 1200, 4
    trees = [[-4, 0, -5, 1, 2]] * (rules - 1) + [[3]]
    arranged = EVALUATORS.get(evaluator).arrange(compiled(trees, conjunctions))
    built = EVALUATORS.get(evaluator).build(arranged)
    scratch = built.scratch()
    found = np.tile(np.arange(arranged.conjunctions, dtype=np.int32), 9)
    offsets, ends = np.arange(10) * arranged.conjunctions, np.zeros(10, np.int64)
    done = 0
    while done < 9:
        some = built.evaluate_batch(found, offsets[done:], 9 - done, np.zeros(0, np.uint8), scratch, ends)
        assert some > 0
        assert np.diff(ends[: some + 1]).tolist() == [rules] * some
        assert ends[some] < len(scratch.matched) + 1
        done += some
