"""The worked examples of the paper on complex expressions §3 and §4, with the paper's numbers.

Figures 2, 5 and 6 and Table 1 are all about (A ∧ B) ∨ C ∨ (D ∧ E ∧ F). The paper fixes M to 10, the most leaves that a
tree may have; here M is the tree's own leaf count, 6. LABEL and MATCH are written below as the paper has them.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.test_evaluators import compiled, holds

from eligo.evaluate.interval import covered
from eligo.evaluate.labels import dewey_components, label_intervals
from eligo.evaluate.registry import EVALUATORS

Interval = tuple[int, int]

A, B, C, D, E, F = range(6)
FIGURE_2 = [-2, -7, -4, A, B, C, -6, D, E, F]  # an AND on top of the OR; conjunctions are 0 … 5
EVERYONE = np.zeros(0, np.uint8)
thorough = settings(max_examples=200, deadline=None)


def children(tree: list[int], node: int) -> list[int]:
    """Where the children of a node of a tree in prefix order stand."""
    found, at = [], node + 1
    for _ in range(-tree[node] // 2 if tree[node] < 0 else 0):
        found.append(at)
        at = after(tree, at)
    return found


def after(tree: list[int], node: int) -> int:
    below = children(tree, node)
    return after(tree, below[-1]) if below else node + 1


def leaf_count(tree: list[int], start: int, stop: int) -> int:
    return sum(token >= 0 for token in tree[start:stop])


def label(tree: list[int], most: int) -> list[Interval]:
    """Algorithm 4 with M = most: the interval of every node."""
    interval = [(1, most)] * len(tree)
    for n in range(len(tree)):  # parents stand before their children
        begin, end = interval[n]
        current, below = begin, children(tree, n)
        for k, c in enumerate(below):
            if tree[n] & 1:
                interval[c] = begin, end
                continue
            size = leaf_count(tree, c, after(tree, c))
            if k == len(below) - 1:
                interval[c] = current, end
            elif k == 0:
                interval[c] = begin, leaf_count(tree, 0, n) + size
            else:
                interval[c] = current, current + size - 1
            current = interval[c][1] + 1
    return interval


def match(intervals: list[Interval], most: int) -> bool:
    """Algorithm 5."""
    matched = [True] + most * [False]
    for begin, end in sorted(intervals):
        matched[end] |= matched[begin - 1]
    return matched[most]


def own_labels(tree: list[int]) -> tuple[list[Interval], int]:
    begin, end, span = label_intervals(np.array(tree, np.int32), np.array([0, len(tree)], np.int64))
    return list(zip(begin.tolist(), end.tolist(), strict=True)), int(span[0])


def of_leaves(tree: list[int], intervals: list[Interval]) -> dict[int, Interval]:
    """Interval by conjunction, if no two leaves are the same."""
    return {token: interval for token, interval in zip(tree, intervals, strict=True) if token >= 0}


def deweys(tree: list[int]) -> list[str]:
    starts, parts = dewey_components(np.array(tree, np.int32), np.array([0, len(tree)], np.int64))
    return [".".join(f"{p >> 1}{'*' if p & 1 else ''}" for p in parts[a:b]) for a, b in pairwise(starts)]


def satisfied(evaluator: str, tree: list[int], found: set[int]) -> bool:
    """Whether the tree is satisfied, also among others that make it a small part of all."""
    conjunctions = max(tree) + 1
    others = [[conjunctions, conjunctions + 1 + i] for i in range(500)]
    for more in ([], [[-4, *pair] for pair in others]):
        rules = compiled([tree, *more], conjunctions + 501)
        built = EVALUATORS.get(evaluator).build(rules)
        scratch = built.scratch()
        count = built.evaluate(np.array(sorted(found), np.int32), len(found), EVERYONE, scratch)
        assert count <= 1
        answer = scratch.matched[:count].tolist() == [0]
        assert answer == holds(tree, found)
    return answer


def test_figure_2_the_dewey_ids_of_all_leaves() -> None:
    assert deweys(FIGURE_2) == ["1*.1.1", "1*.1.2*", "1*.2", "1*.3.1", "1*.3.2", "1*.3.3*"]
    assert deweys(FIGURE_2)[D] == "1*.3.1"  # as §3.1 explains
    assert deweys(FIGURE_2[1:]) == deweys(FIGURE_2)  # the AND on top is artificial


@pytest.mark.parametrize("evaluator", ["dewey", "interval"])
def test_sections_3_3_and_4_3_a_d_e_and_f_are_satisfied(evaluator: str) -> None:
    assert satisfied(evaluator, FIGURE_2, {A, D, E, F})
    assert not satisfied(evaluator, FIGURE_2, {A})
    for some in range(64):
        satisfied(evaluator, FIGURE_2, {c for c in range(6) if some >> c & 1})


def test_figure_5_the_intervals_of_all_leaves() -> None:
    papers = {A: (1, 1), B: (2, 10), C: (1, 10), D: (1, 4), E: (5, 5), F: (6, 10)}
    assert of_leaves(FIGURE_2, label(FIGURE_2, 10)) == papers
    intervals, most = own_labels(FIGURE_2)
    ours = of_leaves(FIGURE_2, intervals)
    assert most == 6
    assert ours == {A: (1, 1), B: (2, 6), C: (1, 6), D: (1, 4), E: (5, 5), F: (6, 6)}
    # What ends at M ends at the other M, everything else is the same, and so are all answers.
    assert {c: (begin, 10 if end == 6 else end) for c, (begin, end) in ours.items()} == papers
    for some in range(64):
        found = {c for c in range(6) if some >> c & 1}
        assert match([papers[c] for c in found], 10) == match([ours[c] for c in found], 6) == holds(FIGURE_2, found)


def test_section_4_1_b_and_d_overlap() -> None:
    (b_begin, b_end), (d_begin, d_end) = (of_leaves(FIGURE_2, label(FIGURE_2, 10))[c] for c in (B, D))
    assert set(range(b_begin, b_end + 1)) | set(range(d_begin, d_end + 1)) == set(range(1, 11))
    assert not match([(b_begin, b_end), (d_begin, d_end)], 10)
    assert not satisfied("interval", FIGURE_2, {B, D})


def test_figure_6_an_invalid_labelling() -> None:
    """B and E begin at the same place, so that B continues what D covers; D and E are as in Figure 5."""
    invalid = {A: (1, 4), B: (5, 10), C: (1, 10), D: (1, 4), E: (5, 5), F: (6, 10)}
    assert match([invalid[B], invalid[D]], 10)
    assert not holds(FIGURE_2, {B, D})
    assert later_begins(FIGURE_2, [invalid.get(token, (1, 10)) for token in FIGURE_2]) == [5, 5, 6]
    assert later_begins(FIGURE_2, own_labels(FIGURE_2)[0]) == [2, 5, 6]
    for evaluator in ("interval", "dewey"):
        assert not satisfied(evaluator, FIGURE_2, {B, D})


def test_table_1_the_array_matched_row_by_row() -> None:
    papers = of_leaves(FIGURE_2, label(FIGURE_2, 10))
    rows = [
        ("Initial", [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("A", [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        ("D", [1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
        ("E", [1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0]),
        ("F", [1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1]),
    ]
    assert matched_after([papers[c] for c in (A, D, E, F)], 10) == [row for _, row in rows]
    # With M = 6 the columns between 6 and 10 fall away.
    ours = of_leaves(FIGURE_2, own_labels(FIGURE_2)[0])
    assert matched_after([ours[c] for c in (A, D, E, F)], 6) == [row[:6] + row[10:] for _, row in rows]


def matched_after(intervals: list[Interval], most: int) -> list[list[int]]:
    """The word of the evaluator at first and after each interval, as the paper's array."""
    covers = [np.uint64(1)]
    for begin, end in intervals:
        covers.append(np.uint64(covered(covers[-1], np.uint64(begin - 1), np.uint64(end), np.uint64(1))))
    return [[int(cover) >> x & 1 for x in range(most + 1)] for cover in covers]


# Any tree: AND below AND, OR below OR, single children, repeated conjunctions.
leaves = st.integers(0, 7).map(lambda c: [c])
any_trees = st.recursive(
    leaves,
    lambda below: st.tuples(st.booleans(), st.lists(below, min_size=1, max_size=4)).map(
        lambda node: [-2 * len(node[1]) - node[0], *(token for child in node[1] for token in child)]
    ),
    max_leaves=30,
)


def later_begins(tree: list[int], intervals: list[Interval]) -> list[int]:
    """Where the children of ANDs begin, first ones left out: by invariant 3 (§4.1) no two at the same place."""
    ands = [n for n, token in enumerate(tree) if token < 0 and not token & 1]
    return [intervals[c][0] for n in ands for c in children(tree, n)[1:]]


@thorough
@given(any_trees)
def test_the_invariants_of_a_valid_labelling(tree: list[int]) -> None:
    intervals, most = own_labels(tree)
    assert most == leaf_count(tree, 0, len(tree))
    assert intervals[0] == (1, most)
    for n, token in enumerate(tree):
        below = [intervals[c] for c in children(tree, n)]
        if token < 0 and token & 1:
            assert set(below) == {intervals[n]}
        elif token < 0:
            assert (below[0][0], below[-1][1]) == intervals[n]
            assert all(left[1] + 1 == right[0] for left, right in pairwise(below))
            assert all(begin <= end for begin, end in below)
    later = later_begins(tree, intervals)
    assert len(set(later)) == len(later)


@thorough
@given(any_trees, st.integers(0, 20))
def test_labels_are_those_of_algorithm_4(tree: list[int], more: int) -> None:
    intervals, most = own_labels(tree)
    assert intervals == label(tree, most)
    moved = [(begin, end + more if end == most else end) for begin, end in intervals]
    assert moved == label(tree, most + more)


@thorough
@given(any_trees, st.sets(st.integers(0, 7)))
def test_a_cover_is_a_satisfied_tree(tree: list[int], found: set[int]) -> None:
    intervals, most = own_labels(tree)
    covering = [interval for token, interval in zip(tree, intervals, strict=True) if token in found]
    assert match(covering, most) == holds(tree, found)


@pytest.mark.parametrize(
    ("tree", "wanted"),
    [
        ([-4, -4, A, B, C], ["1.1.1", "1.1.2*", "2*"]),  # an AND in an AND: an OR of it alone between them
        ([-4, A, -4, B, C], ["1", "2*.1.1", "2*.1.2*"]),
        ([-5, -5, A, B, C], ["1*.1.1*.1", "1*.1.1*.2", "1*.2"]),  # an OR in an OR: an AND of it alone
        ([-4, -4, -4, A, B, C, D], ["1.1.1.1.1", "1.1.1.1.2*", "1.1.2*", "2*"]),
        ([-2, -2, -2, A], ["1*.1.1*.1.1*"]),
    ],
)
def test_dewey_ids_of_trees_that_do_not_alternate(tree: list[int], wanted: list[str]) -> None:
    assert deweys(tree) == wanted


@thorough
@given(st.lists(any_trees, min_size=1, max_size=12), st.sets(st.integers(0, 7)))
def test_evaluators_on_trees_that_do_not_alternate(trees: list[list[int]], found: set[int]) -> None:
    wanted = [r for r, tree in enumerate(trees) if holds(tree, found)]
    for conjunctions in (8, 200):  # of few and of many conjunctions the same ones hold
        rules = compiled(trees, conjunctions)
        for evaluator in ("dewey", "interval", "walk", "scan"):
            built = EVALUATORS.get(evaluator).build(rules)
            scratch = built.scratch()
            count = built.evaluate(np.array(sorted(found), np.int32), len(found), EVERYONE, scratch)
            assert scratch.matched[:count].tolist() == wanted, evaluator
