"""The worked examples of the paper on complex expressions, with the paper's numbers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from eligo.evaluate.labels import dewey_components, label_intervals

# (A ∧ B) ∨ C ∨ (D ∧ E ∧ F): OR of three; conjunctions A … F are 0 … 5. The paper puts an AND on top.
FIGURE_5 = [-2, -7, -4, 0, 1, 2, -6, 3, 4, 5]


def labels(tree: list[int]) -> tuple[list[tuple[int, int]], int]:
    tokens = np.array(tree, np.int32)
    begin, end, span = label_intervals(tokens, np.array([0, len(tree)], np.int64))
    return [(int(b), int(e)) for b, e, t in zip(begin, end, tokens, strict=True) if t >= 0], int(span[0])


def dewey(tree: list[int]) -> list[str]:
    starts, parts = dewey_components(np.array(tree, np.int32), np.array([0, len(tree)], np.int64))
    return [".".join(f"{p >> 1}{'*' if p & 1 else ''}" for p in parts[a:b]) for a, b in pairwise(starts)]


def test_figure_5_intervals() -> None:
    # The paper takes M = 10 where we take the rule's own leaf count, 6: ends at M move, nothing else does.
    assert labels(FIGURE_5) == ([(1, 1), (2, 6), (1, 6), (1, 4), (5, 5), (6, 6)], 6)


def test_figure_2_dewey_ids() -> None:
    assert dewey(FIGURE_5) == ["1*.1.1", "1*.1.2*", "1*.2", "1*.3.1", "1*.3.2", "1*.3.3*"]


def test_an_or_at_the_root_gets_an_and_above_it() -> None:
    assert dewey(FIGURE_5[1:]) == dewey(FIGURE_5)


@pytest.mark.parametrize(
    ("tree", "wanted"),
    [
        ([0], [(1, 1)]),
        ([-2, 0], [(1, 1)]),  # an AND of one child gives it the whole interval
        ([-4, 0, 1], [(1, 1), (2, 2)]),
        ([-5, 0, 1], [(1, 2), (1, 2)]),
        ([-4, -2, 0, 1], [(1, 1), (2, 2)]),
        ([-4, -5, 0, -4, 1, 2, 3], [(1, 3), (1, 2), (3, 3), (4, 4)]),
    ],
)
def test_intervals(tree: list[int], wanted: list[tuple[int, int]]) -> None:
    assert labels(tree)[0] == wanted


def test_children_of_ands_begin_apart() -> None:
    """Invariant 3 (§4.1) on the invalid labelling of Figure 6: B and E must not begin at the same place."""
    intervals, _ = labels(FIGURE_5)
    assert intervals[1][0] != intervals[4][0]
