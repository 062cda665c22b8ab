"""The stabbing indexes: the figures of the report on profile matching §4.1, the shapes of trees, counts and answers."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from typing import Any

import numpy as np
import pytest

import mixed
from eligo.compile.events import EventBuffer
from eligo.index.registry import INDEXES
from eligo.index.scan import Scan
from eligo.index.stabbing.index import IntervalTree, SegmentTree, Stabbing, StabCluster, StabHybrid, StabInterval
from eligo.index.stabbing.shapes import best_key, elementary, score
from eligo.index.stabbing.tree import BY_HIGH, BY_LOW, HIGH, LEFT, LOW, NO_KEY
from eligo.index.stabbing.vectors import MANY, as_words, compress, count_bits

ALL = (StabCluster, StabInterval, StabHybrid, SegmentTree, IntervalTree)
several = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)

# Example 4 is printed without its numbers. These agree with all that the text and Figure 6 say: the lists 4, 6, 1, 2, 7
# below the key 35 and 0 below 25, and the answer for 20.
EXAMPLE = ((15, 25), (10, 40), (18, 50), (45, 60), (5, 35), (55, 70), (8, 35), (30, 55))
EDGES = sorted({low for low, _ in EXAMPLE} | {high + 1 for _, high in EXAMPLE})


def example(kind: type[Stabbing], **options: Any) -> tuple[Stabbing, Any]:
    conjunctions, encoder = mixed.compiled([f"x between {low} and {high}" for low, high in EXAMPLE])
    return kind.build(conjunctions, **options), encoder


def searched(index: Stabbing, encoder: Any, event: dict[str, Any]) -> tuple[list[int], int]:
    """The conjunctions found, and the predicate evaluations."""
    scratch, buffer = index.scratch(), EventBuffer()
    encoder.encode(event, buffer)
    found = index.search(buffer, 0, scratch)
    return sorted(scratch.found[:found].tolist()), int(scratch.counters[1])


@several
def test_example_4_gives_the_answer_of_the_figures(kind: type[Stabbing]) -> None:
    index, encoder = example(kind)
    assert searched(index, encoder, {"x": 20})[0] == [0, 1, 2, 4, 6]
    for x in range(80):
        wanted = [number for number, (low, high) in enumerate(EXAMPLE) if low <= x <= high]
        assert searched(index, encoder, {"x": x})[0] == wanted


def test_an_interval_tree_has_the_keys_and_lists_of_figure_6() -> None:
    index, encoder = example(IntervalTree)
    a = index.arrays()
    nodes, named = a["nodes"], a["conjunction"][a["bound_row"]]
    root = int(a["root"][0])
    assert nodes[root, LOW] == nodes[root, HIGH] == bisect_right(EDGES, 35)
    assert named[nodes[root, BY_LOW] : nodes[root, BY_HIGH]].tolist() == [4, 6, 1, 2, 7]
    left = int(nodes[root, LEFT])
    assert nodes[left, LOW] == bisect_right(EDGES, 25)
    assert named[nodes[left, BY_LOW] : nodes[left, BY_HIGH]].tolist() == [0]
    # A key and 4, 6, 1, 2, 7; a key and 0.
    assert searched(index, encoder, {"x": 20})[1] == 6 + 2


# Half-open, of spaces that the endpoints 2, 6, 19, 21, 23, 48, 50 divide: [2, 21), [6, 48), [19, 50), [21, 50), [23, 48).
SCORED = np.array([1, 2, 3, 4, 5]), np.array([4, 6, 7, 7, 6]) - 1


def test_keys_score_as_the_example_of_4_1_1_has_them() -> None:
    edge, started, ended = elementary(*SCORED, 8)
    assert edge.tolist() == list(range(9))
    assert score(started, ended, 0, 8, 4) == (3, 4, 3)  # of 21
    assert score(started, ended, 0, 8, 6) == (5, 2, 5)  # of 48
    assert score(started, ended, 0, 8, 5)[2] == 3  # of 23, the last to be looked at
    assert best_key(started, ended, 0, 8) == 4


def test_the_key_found_by_halves_has_the_least_score_of_all() -> None:
    rng = np.random.default_rng(1)
    split = 0
    for widest in np.repeat((5, 25, 60), 100):
        low = rng.integers(0, 30, 12) // (1 + widest // 20)
        high = np.minimum(low + rng.integers(0, widest, 12), 29)
        edge, started, ended = elementary(low, high, 30)
        last = len(edge) - 1
        costs = [score(started, ended, 0, last, key)[2] for key in range(1, last)]
        key = best_key(started, ended, 0, last)
        if key == NO_KEY:
            assert min(costs) >= 12  # whatever endpoint is chosen, one part is the whole
        else:
            assert costs[key - 1] == min(costs) < 12
            split += 1
    assert 0 < split < 300


def test_four_endpoints_make_nine_elementary_intervals() -> None:
    conjunctions, encoder = mixed.compiled([f"x = {value}" for value in (2, 5, 18, 30)])
    p = conjunctions.predicates
    edge, _, _ = elementary(p.low, p.high, int(conjunctions.spaces.space_count[0]))
    assert len(edge) - 1 == 9
    assert SegmentTree.build(conjunctions).notes()["nodes"] == 9 + 8
    # Those that no profile covers are left out.
    index = StabInterval.build(conjunctions)
    assert index.notes()["nodes"] == 4
    assert [searched(index, encoder, {"x": x})[0] for x in (1, 2, 3, 5, 18, 30, 31)] == [[], [0], [], [1], [2], [3], []]


def test_a_search_of_elementary_intervals_stops_at_the_hit() -> None:
    index, encoder = example(StabInterval)
    counts = [searched(index, encoder, {"x": x})[1] for x in range(80)]
    assert counts.count(1) > 0  # the root
    assert max(counts) <= math.ceil(math.log2(len(index.arrays()["nodes"])))


def test_a_segment_tree_is_gone_through_to_a_leaf() -> None:
    index, encoder = example(SegmentTree)
    leaves = len(EDGES) + 1
    counts = {searched(index, encoder, {"x": x})[1] for x in range(80)}
    assert max(counts) == math.ceil(math.log2(leaves))


def test_a_cluster_is_checked_profile_by_profile() -> None:
    """No split makes both parts smaller where all have a value in common: the tree is a leaf."""
    conjunctions, encoder = mixed.compiled([f"x between {i} and {90 - i}" for i in range(30)])
    index = StabCluster.build(conjunctions)
    assert index.notes()["nodes"] == 1
    assert searched(index, encoder, {"x": 5}) == ([0, 1, 2, 3, 4, 5], 30)
    # The hybrid index has elementary intervals there.
    found, evaluations = searched(StabHybrid.build(conjunctions), encoder, {"x": 5})
    assert found == [0, 1, 2, 3, 4, 5]
    assert evaluations <= 6


@pytest.mark.parametrize("min_cluster", [1, 2, 5, 1_000])
def test_a_hybrid_index_splits_clusters_down_to_the_least_size(min_cluster: int) -> None:
    conjunctions, encoder = mixed.compiled([f"x between {5 * i} and {5 * i + 12}" for i in range(200)])
    index = StabHybrid.build(conjunctions, min_cluster=min_cluster)
    nodes = index.arrays()["nodes"][:-1]
    keys = int((nodes[:, LOW] > nodes[:, HIGH]).sum())
    assert (keys == 0) == (min_cluster == 1_000)
    for x in range(0, 1_020, 7):
        assert searched(index, encoder, {"x": x})[0] == [i for i in range(200) if 5 * i <= x <= 5 * i + 12]


@several
@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_all_answers_are_those_of_scan(kind: type[Stabbing], absent: str) -> None:
    conjunctions, encoder = mixed.compiled(mixed.texts(800, 1), absent)
    some = mixed.events(150, 1)
    some += [dict(list(event.items())[: 1 + i % 3]) for i, event in enumerate(some)]
    wanted = mixed.answers(Scan.build(conjunctions), encoder, some)
    index = kind.build(conjunctions)
    assert mixed.answers(index, encoder, some) == wanted
    assert mixed.answers(kind.restore(conjunctions, index.arrays()), encoder, some) == wanted


@several
def test_wide_and_narrow_intervals_of_several_attributes(kind: type[Stabbing]) -> None:
    rng = random.Random(3)
    texts = []
    for _ in range(1_500):
        parts = []
        for a in rng.sample("abc", rng.randint(1, 3)):
            low = rng.randrange(1_000)
            parts.append(f"{a} between {low} and {low + rng.choice((0, 3, 40, 600))}")
        texts.append(" and ".join(parts))
    conjunctions, encoder = mixed.compiled(texts)
    some: list[dict[str, Any]] = [{a: rng.randrange(-5, 1_200) for a in "abc"} for _ in range(80)]
    some += [{a: rng.randrange(1_200) for a in rng.sample("abc", 2)} for _ in range(40)]
    wanted = mixed.answers(Scan.build(conjunctions), encoder, some)
    index = kind.build(conjunctions)
    assert mixed.answers(index, encoder, some) == wanted
    assert index.notes()["always verified"] == (len(conjunctions) if kind is StabCluster else 0)


def test_only_what_vectors_leave_open_is_verified() -> None:
    conjunctions, encoder = mixed.compiled(["x between 1 and 9", "x > 3 and y < 5", "y is null", "s like '%b_c'"])
    index = SegmentTree.build(conjunctions)
    assert index.notes()["always verified"] == 1
    scratch, buffer = index.scratch(), EventBuffer()
    encoder.encode({"x": 5, "y": 1, "s": "abbc"}, buffer)
    assert sorted(scratch.found[: index.search(buffer, 0, scratch)].tolist()) == [0, 1, 3]


def test_vectors_are_stored_by_density() -> None:
    rng = np.random.default_rng(2)
    bits = rng.random((40, 700)) < rng.choice([0.0, 0.01, 0.2, 0.9], (40, 1))
    vector, row = np.nonzero(bits)
    made = compress(vector, row.astype(np.int32), 40)
    assert 0 < len(made.row) < len(row)
    for v in range(40):
        found = np.zeros(704, np.bool_)
        found[made.row[made.row_offsets[v] : made.row_offsets[v + 1]]] = True
        for i in range(made.word_offsets[v], made.word_offsets[v + 1]):
            word = as_words(found)[made.place[i]]
            assert word == 0
            assert count_bits(made.bits[i : i + 1]) >= MANY
            own = np.unpackbits(made.bits[i : i + 1].view(np.uint8), bitorder="little")
            found[64 * made.place[i] : 64 * made.place[i] + 64] = own
        assert (found[:700] == bits[v]).all()


def test_an_index_without_rules_or_predicates_is_fine() -> None:
    for text, satisfied in (("false", 0), ("true", 1), ("x is null", 1)):
        conjunctions, encoder = mixed.compiled([text])
        for kind in ALL:
            assert INDEXES.get(kind.name) is kind
            assert len(searched(kind.build(conjunctions), encoder, {"y": 1})[0]) == satisfied
