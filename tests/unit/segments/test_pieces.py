"""Rules compiled in pieces and joined answer as if one process had compiled them all."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import ATTRIBUTES, events, expressions

import eligo
from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.signature import BUCKETS, cut_evenly, positions
from eligo.compile.strings import Strings, merge_strings
from eligo.evaluate.interval import Interval
from eligo.index.registry import choose
from eligo.language import Node
from eligo.language.normalize import normalize
from eligo.segments.pending import Pending
from eligo.segments.pieces import Piece, join_pieces, make_piece, restore_piece
from eligo.segments.rule_set import RuleSet
from eligo.store.arrays import map_arrays, write_arrays

MULTI = frozenset("c")


def piece_of(rules: list[tuple[int, Node]]) -> Piece:
    attributes, strings = Attributes(), Strings()
    pending = Pending(Builder(attributes, strings, multi=MULTI))
    for number, root in rules:
        pending.add(f"r{number}", normalize(root, multi=MULTI), "", float(number), (f"t{number % 3}",), number)
    return make_piece(pending, attributes, strings)


def joined(pieces: list[Piece], cuts: list[float], index: str = "propagation") -> RuleSet:
    rules = RuleSet(choose(index), Interval, "fails", MULTI)
    attributes = Attributes(sorted({name for piece in pieces for name in piece.attributes}))
    data, offsets, slots, numbers = merge_strings([piece.strings for piece in pieces])
    rules.adopt(attributes, Strings((data, offsets, slots)))
    ends = [0.0, *sorted(cuts), float(BUCKETS)]
    for first, stop in pairwise(ends):
        segment = join_pieces(list(zip(pieces, numbers, strict=True)), rules.recipe, first, stop)
        if segment is not None:
            assert (np.diff(segment.table.sequence) > 0).all()
            rules.extend([segment])
    return rules


def answers(rules: RuleSet, given: list[dict[str, Any]]) -> list[list[str]]:
    found: list[list[str]] = [[] for _ in given]
    for numbers, ids in rules.view.batch(given, None, None):
        for number, rule in zip(numbers.tolist(), ids.to_pylist(), strict=True):
            found[number].append(rule)
    return found


@settings(deadline=None)
@given(
    st.lists(expressions(ATTRIBUTES, multi=MULTI), min_size=1, max_size=12),
    st.lists(events(ATTRIBUTES, multi=MULTI), min_size=1, max_size=4),
    st.integers(1, 4),
    st.lists(st.integers(0, BUCKETS) | st.floats(0, BUCKETS), max_size=2),
)
def test_pieces_joined_are_one_matcher(
    roots: list[Node], given: list[dict[str, Any]], k: int, cuts: list[float]
) -> None:
    numbered = list(enumerate(roots))
    pieces = [piece_of(numbered[i::k]) for i in range(k)]
    whole = eligo.Matcher(multi=MULTI)
    whole.add_many((f"r{number}", root) for number, root in numbered)
    assert answers(joined(pieces, cuts), given) == [whole.match(event) for event in given]


def test_equal_conjunctions_of_different_pieces_become_one(tmp_path: Any) -> None:
    text = "a = 'x' and b in ('y', 'z') or c > 'm' and a = 'x'"
    pieces = [piece_of([(i, eligo.language.parse(text))]) for i in range(5)]
    kept = [write_arrays(tmp_path, "piece", piece.arrays()) for piece in pieces]
    pieces = [restore_piece(map_arrays(tmp_path, one, verify=True)) for one in kept]
    rules = joined(pieces, [])
    assert rules.figures().conjunctions == 2
    assert answers(rules, [{"a": "x", "b": "z"}, {"a": "x", "c": "n"}, {"a": "y", "b": "y", "c": "n"}]) == [
        [f"r{i}" for i in range(5)],
        [f"r{i}" for i in range(5)],
        [],
    ]


def test_equal_rules_are_in_one_bucket_whatever_their_piece() -> None:
    first = piece_of([(1, eligo.language.parse("b = 'q' and a like 'x%y'"))])
    other = piece_of([(0, eligo.language.parse("z = 'first'")), (7, eligo.language.parse("a like 'x%y' and b = 'q'"))])
    place = [
        int(np.searchsorted(piece.bucket_offsets, row, "right")) for piece, row in ((first, 0), (other, 0), (other, 1))
    ]
    assert place[0] in place[1:]


def test_rules_of_one_bucket_can_be_cut_apart() -> None:
    piece = piece_of([(i, eligo.language.parse("a = 'x'")) for i in range(1_000)])
    (bucket,) = np.flatnonzero(np.diff(piece.bucket_offsets))
    ranges = cut_evenly(np.diff(piece.bucket_offsets).tolist(), 4)
    assert [math.floor(first) for first, _ in ranges] == [0, bucket, bucket, bucket]
    cuts = [first for first, _ in ranges[1:]]
    found = np.searchsorted(cuts, positions(np.full(1_000, bucket), piece.table.sequence))
    assert np.bincount(found).tolist() == pytest.approx([250] * 4, abs=5)
    assert answers(joined([piece], cuts), [{"a": "x"}]) == [[f"r{i}" for i in range(1_000)]]


@given(st.lists(st.integers(0, 50), min_size=BUCKETS, max_size=BUCKETS).filter(any), st.integers(1, 600))
def test_parts_are_even_and_without_gaps(counts: list[int], parts: int) -> None:
    ranges = cut_evenly(counts, parts)
    assert (ranges[0][0], ranges[-1][1]) == (0, BUCKETS)
    assert len(ranges) <= parts
    assert all(low[1] == high[0] and low[0] < low[1] for low, high in pairwise(ranges))
    line = np.concatenate(([0], np.cumsum(counts)))
    rules = np.diff(np.interp([first for first, _ in ranges] + [BUCKETS], range(BUCKETS + 1), line))
    assert rules.max() <= sum(counts) / parts * 1.21 + 1e-6


def test_rules_of_many_conjunctions_are_in_all_buckets() -> None:
    texts = [" or ".join(f"a = {n * 300 + i}" for i in range(300)) for n in range(500)]
    piece = piece_of([(n, eligo.language.parse(f"({text}) and b = {n}")) for n, text in enumerate(texts)])
    assert np.diff(piece.bucket_offsets).max() < 15


def test_numbers_of_the_first_table_stay() -> None:
    strings = Strings()
    for text in ("b", "", "a"):
        strings.intern(text)
    other = Strings()
    for text in ("new", "a", "é", ""):
        other.intern(text)
    data, offsets, slots, (first, numbers) = merge_strings([strings.arrays(), other.arrays()])
    assert first.tolist() == [0, 1, 2]
    assert numbers.tolist() == [3, 2, 4, 1]
    whole = Strings((data, offsets, slots))
    assert list(whole) == ["b", "", "a", "new", "é"]
    assert [whole.number(text) for text in whole] == [0, 1, 2, 3, 4]
    assert whole.number("c") == -1
    assert whole.intern("c") == 5
