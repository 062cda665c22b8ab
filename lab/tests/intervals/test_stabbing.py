"""Segment tree, interval tree and PS-Tree against looking at every interval, with the ends of the range of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eligo.compile.compiled import I32, I64
from eligo.errors import LimitError
from eligo_lab.intervals import segment_tree
from eligo_lab.intervals.heap import TOGETHER, descend, different, heap_of
from eligo_lab.intervals.interval_tree import IntervalTree
from eligo_lab.intervals.segment_tree import SegmentTree
from eligo_lab.intervals.single import PsTree

LEAST, MOST = -(2**63), 2**63 - 1
KINDS = pytest.mark.parametrize("kind", [SegmentTree, IntervalTree, PsTree])

# Few values, so that ends meet; and the ends of the range, where one more or less is another number altogether.
values = st.one_of(st.integers(-4, 8), st.sampled_from((LEAST, LEAST + 1, MOST - 1, MOST)), st.integers(LEAST, MOST))
patient = settings(deadline=None)  # a kernel is loaded, or compiled, at its first call
intervals = st.lists(st.tuples(values, values), max_size=40)


def columns(pairs: list[tuple[int, int]]) -> tuple[I64, I64]:
    both = np.array(pairs, np.int64).reshape(-1, 2)
    return both[:, 0].copy(), both[:, 1].copy()


def around(low: I64, high: I64, more: list[int]) -> I64:
    """Points where something may change: each end and its neighbours, and others."""
    some = {LEAST, MOST, *more}
    for end in (*low.tolist(), *high.tolist()):
        some.update(x for x in (end - 1, end, end + 1) if LEAST <= x <= MOST)
    return np.array(sorted(some), np.int64)


def check(kind: Any, low: I64, high: I64, points: I64) -> None:
    structure = kind.build(low, high)
    holds = (low[None, :] <= points[:, None]) & (points[:, None] <= high[None, :])
    assert np.array_equal(structure.count(points), holds.sum(axis=1))
    offsets, numbers = structure.matches(points)
    assert (offsets.dtype, numbers.dtype, len(offsets)) == (np.int64, np.int32, len(points) + 1)
    assert offsets[0] == 0
    assert len(numbers) == offsets[-1]
    for p in range(len(points)):
        assert sorted(numbers[offsets[p] : offsets[p + 1]]) == np.flatnonzero(holds[p]).tolist()
    located = structure.locate(points)
    assert (located.dtype, len(located)) == (np.int64, len(points))
    assert structure.bytes() > 0


@KINDS
@patient
@given(pairs=intervals, more=st.lists(values, max_size=20))
@example(pairs=[], more=[0])
@example(pairs=[(LEAST, MOST)], more=[])
@example(pairs=[(MOST, MOST), (LEAST, LEAST), (MOST - 1, MOST)], more=[])
@example(pairs=[(n, MOST) for n in range(5)], more=[])  # the filling of the heap is among the nodes
@example(pairs=[(5, 3), (MOST, LEAST), (4, 4)], more=[])
@example(pairs=[(1, 2)] * 30, more=[])
def test_the_intervals_that_hold_a_point(kind: Any, pairs: list[tuple[int, int]], more: list[int]) -> None:
    low, high = columns(pairs)
    check(kind, low, high, around(low, high, more))


@KINDS
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 15, 16, 17, 500])
def test_many(kind: Any, count: int) -> None:
    rng = np.random.default_rng(count)
    for width in (0, 1, 10, 2 * count):
        low = rng.integers(0, 2 * count, count)
        check(kind, low, low + rng.integers(0, width + 1, count), np.arange(-1, 5 * count + 1))


@KINDS
def test_no_points(kind: Any) -> None:
    structure = kind.build(np.array([1]), np.array([2]))
    none = np.zeros(0, np.int64)
    offsets, numbers = structure.matches(none)
    assert (offsets.tolist(), len(numbers), len(structure.count(none)), len(structure.locate(none))) == ([0], 0, 0, 0)


@KINDS
def test_long_answers(kind: Any) -> None:
    """More than there is room for at first, from the first point on or later."""
    low, high = np.zeros(300, np.int64), np.arange(300) % 3
    check(kind, low, high, np.zeros(50, np.int64))
    check(kind, low, high, np.repeat(np.array([5, 2, 1, 0, 3]), 20))


@KINDS
@patient
@given(pairs=intervals)
def test_points_that_end_alike_are_held_by_the_same(kind: Any, pairs: list[tuple[int, int]]) -> None:
    """A leaf, or a space, is all that has to be found. Only an interval tree has to compare on its way, too."""
    low, high = columns(pairs)
    structure = kind.build(low, high)
    points = around(low, high, [])
    located, counts = structure.locate(points), structure.count(points)
    if kind is not IntervalTree:
        for leaf in set(located.tolist()):
            assert len(set(counts[located == leaf].tolist())) == 1
    assert np.array_equal(structure.locate(points[::-1].copy()), located[::-1])


def test_lists_are_short() -> None:
    """An interval is in at most two lists of each level."""
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, 10**9, (2, 1_000)), axis=0)
    tree = SegmentTree.build(ends[0].copy(), ends[1].copy())
    assert len(tree.number) <= 2 * 11 * 1_000
    assert len(IntervalTree.build(ends[0].copy(), ends[1].copy()).number) == 2 * 1_000


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_tree, "_MOST", 100)
    low = np.arange(200)
    with pytest.raises(LimitError, match="build several trees"):
        SegmentTree.build(low, low + 50)


@patient
@given(keys=st.lists(values, max_size=70), points=st.lists(values, max_size=3 * TOGETHER))
def test_a_point_ends_behind_the_keys_that_are_not_above_it(keys: list[int], points: list[int]) -> None:
    ascending = different(np.array(keys, np.int64))
    assert ascending.tolist() == sorted(set(keys))
    tree = heap_of(ascending)
    leaf: I32 = descend(tree, np.array(points, np.int64))
    for point, end in zip(points, leaf.tolist(), strict=True):
        behind = int(np.searchsorted(ascending, point, "right"))
        assert end - len(tree) == (behind if point < MOST else len(tree) - 1)
