"""Labels of every kind, followed at random, in order, or not at all; and the memory that must be clean afterwards."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.unit.test_evaluators import compiled, holds, tree

from eligo.evaluate import leaf_order
from eligo.evaluate.base import Evaluator
from eligo.evaluate.interval import Interval
from eligo.evaluate.leaves import DENSE, EVERYTHING, ORDERED, build_leaves
from eligo.evaluate.registry import EVALUATORS

EVERYONE = np.zeros(0, np.uint8)
both = pytest.mark.parametrize("evaluator", ["interval", "dewey"])


def answer(built: Evaluator, found: list[int], scratch: Any) -> list[int]:
    count = built.evaluate(np.array(found, np.int32), len(found), EVERYONE, scratch)
    return scratch.matched[:count].tolist()  # type: ignore[no-any-return]


def mixture(rng: random.Random, conjunctions: int) -> list[list[int]]:
    """Conjunctions alone, ORs of them, trees that some leaf completes, trees of 2 to 90 leaves, and rules never true."""

    def some(count: int) -> list[int]:
        return [rng.randrange(conjunctions) for _ in range(count)]

    trees: list[list[int]] = [[], []]
    for _ in range(60):
        trees += [some(1), [-7, *some(3)], [-4, *some(2)], [-5, *some(1), -4, *some(2)]]
        trees += [tree(rng, depth, conjunctions, rng.random() < 0.7) for depth in (2, 3, 4)]
    for size in (62, 63, 64, 65, 90):
        trees.append([-2 * size, *some(size)])
        trees.append([-4, -2 * size + 1, *some(size - 1), *some(1)])
    rng.shuffle(trees)
    return trees


@both
def test_few_and_many_conjunctions(evaluator: str) -> None:
    rng = random.Random(8)
    conjunctions = 4 * ORDERED
    trees = mixture(rng, conjunctions)
    built = EVALUATORS.get(evaluator).build(compiled(trees, conjunctions))
    scratch = built.scratch()
    ways = set()
    for share in (0, 1, 2, 3, 5, 8, 20, 50, 90, conjunctions // DENSE + 1, conjunctions // 2, conjunctions):
        for _ in range(5):
            found = rng.sample(range(conjunctions), share)
            wanted = [r for r, tokens in enumerate(trees) if tokens and holds(tokens, set(found))]
            assert answer(built, found, scratch) == wanted
            touched = built.group(np.array(found, np.int32), len(found), scratch)
            count = built.complete(touched, EVERYONE, scratch)
            assert scratch.matched[:count].tolist() == wanted
            ways.add(touched == EVERYTHING)
            assert answer(built, [], scratch) == []
    assert ways == {True, False}


@both
def test_one_conjunction_that_touches_too_many_trees(evaluator: str) -> None:
    """The way is changed in the middle, after rules were found that must not be forgotten, nor be found twice."""
    conjunctions = 1000
    trees = [[-4, 0, 1 + i] for i in range(900)] + [[950], [-5, 0, 950], [-5, 950, -4, 951, 0]]
    built = EVALUATORS.get(evaluator).build(compiled(trees, conjunctions))
    scratch = built.scratch()
    found = np.array([950, 0, 7], np.int32)
    assert built.group(found, 3, scratch) == EVERYTHING
    built.complete(EVERYTHING, EVERYONE, scratch)
    assert answer(built, [950, 0, 7], scratch) == [6, 900, 901, 902]
    assert answer(built, [950, 7], scratch) == [900, 901, 902]
    assert answer(built, [7], scratch) == []


def test_trees_lie_in_ascending_order_of_their_leaf_counts() -> None:
    rng = random.Random(3)
    trees = mixture(rng, 50)
    leaves, token, begin, _ = build_leaves(compiled(trees, 50), by_begin=True)
    sizes = np.diff(leaves.leaf_start)
    assert (np.diff(sizes) >= 0).all()
    assert [set(sizes[a:b]) for a, b in pairwise(leaves.stretch)] == [{size} for size in sorted(set(sizes))]
    assert len(token) == len(leaves.leaf_conjunction) == leaves.leaf_start[-1]
    for t, rule in enumerate(leaves.rule):
        here = slice(leaves.leaf_start[t], leaves.leaf_start[t + 1])
        assert sorted(leaves.leaf_conjunction[here].tolist()) == sorted(c for c in trees[rule] if c >= 0)
        assert (np.diff(begin[here]) >= 0).all()


def test_only_leaves_that_begin_a_cover_have_labels() -> None:
    #        0 alone, an OR, an AND of ORs, and a tree that 5 completes alone
    trees = [[0], [-5, 1, 2], [-4, -5, 1, 2, -5, 3, 4], [-5, 5, -4, 6, 1]]
    leaves = build_leaves(compiled(trees, 8), by_begin=True)[0]
    labels = [leaves.label[a:b].tolist() for a, b in pairwise(leaves.label_offsets)]
    begins, alone, flat, sole = leaf_order.BEGINS, leaf_order.ALONE, leaf_order.FLAT, leaf_order.SOLE
    assert leaves.rule.tolist() == [3, 2]
    assert labels[0] == [0 << 2 | sole]
    assert labels[1] == labels[2] == [1 << 2 | flat, 1 << 2 | begins]
    assert labels[5] == [3 << 2 | alone]
    assert labels[6] == [0 << 2 | begins]
    assert labels[3] == labels[4] == labels[7] == []
    assert leaves.labelled.tolist() == [0b1100111]
    assert leaves.alone.tolist() == [0b111]


@pytest.mark.parametrize(("leaves", "kind"), [(63, "uint16"), (255, "uint16"), (256, "uint32"), (65_536, "uint64")])
def test_spans_are_as_wide_as_the_largest_tree_needs(leaves: int, kind: str) -> None:
    wide = [-2 * leaves, *range(leaves)]
    built = Interval.build(compiled([wide, [-4, 0, 1]], leaves))
    assert built.span.dtype == kind
    scratch = built.scratch()
    assert answer(built, list(range(leaves)), scratch) == [0, 1]
    assert answer(built, list(range(leaves - 1)), scratch) == [1]
    assert answer(built, [0, 1], scratch) == [1]
