"""`gryphon`: the shape of the tree, what the paper's optimisations spare, and the answers of all its forms."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import eligo
import mixed
from eligo.compile.events import EventBuffer
from eligo.index.scan import Scan
from eligo.segments.live import checks_in
from eligo_lab.rivals.gryphon import Gryphon

FORMS = [(1, False), (1, True), (4, False), (32, False), (32, True)]


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize(("leaf", "generic"), FORMS)
def test_all_forms_answer_as_scan_does(leaf: int, generic: bool, absent: str) -> None:
    conjunctions, encoder = mixed.compiled(mixed.texts(800, 1), absent)
    some = mixed.events(150, 1)
    # Of few attributes: then the groups of a node are searched, not walked.
    some += [dict(list(event.items())[: 1 + i % 3]) for i, event in enumerate(some)]
    wanted = mixed.answers(Scan.build(conjunctions), encoder, some)
    index = Gryphon.build(conjunctions, leaf=leaf, generic=generic)
    assert mixed.answers(index, encoder, some) == wanted
    assert mixed.answers(Gryphon.restore(conjunctions, index.arrays()), encoder, some) == wanted


@pytest.mark.parametrize(("leaf", "generic"), FORMS)
def test_every_conjunction_is_reached_by_one_path_of_its_own_tests(leaf: int, generic: bool) -> None:
    conjunctions, _ = mixed.compiled(mixed.texts(800, 2))
    index = Gryphon.build(conjunctions, leaf=leaf, generic=generic)
    a = index.arrays()
    reached: dict[int, int] = {}  # row to the number of edges on the way
    visited = set()
    waiting: list[tuple[int, int, int]] = [(0, 0, -1)]
    while waiting:
        node, depth, test_before = waiting.pop()
        assert node not in visited
        visited.add(node)
        own, own_stop, group, group_stop = a["node"][4 * node : 4 * node + 4]
        for row in range(own, own_stop):
            assert row not in reached
            reached[row] = depth
        tests = a["group"].reshape(-1, 4)[group:group_stop]
        assert (np.diff(tests[:, 0]) > 0).all()
        for test, code, edge, edge_stop in tests:
            assert a["test_of"][code] == test >= test_before
            assert edge < edge_stop  # a test with nothing to follow is not made
            if code & 1 == 0:
                edges = a["equal"].reshape(-1, 3)[edge:edge_stop]
                assert (np.diff(edges[:, 0]) > 0).all()
            else:
                edges = a["other"].reshape(-1, 2)[edge:edge_stop]
            for row, target in edges[:, -2:]:
                if target >= 0:
                    waiting.append((int(target), depth + 1, int(test)))
                    continue
                assert 1 <= -target <= leaf
                for one in range(row, row - target):
                    assert one not in reached
                    reached[one] = depth + 1
    assert len(visited) == index.notes()["nodes"]
    always = int(a["always_start"][0])
    assert sorted(reached) == list(range(always))
    rows = [a["words"][start:stop] for start, stop in pairwise(a["word_offsets"].tolist())]
    conjunction = [int(row[0]) >> 32 for row in rows]
    assert sorted(conjunction) == list(range(len(conjunctions)))
    # What is left to verify of a row is what its path does not guarantee.
    sizes = np.diff(conjunctions.offsets)[conjunction]
    for row, size in enumerate(sizes):
        assert checks_in(rows[row], len(rows[row])) == int(size) - reached.get(row, 0)


def evaluations(index: Gryphon, encoder: Any, event: dict[str, Any]) -> tuple[int, int, int]:
    """Matches, rows verified, and tests made."""
    scratch = index.scratch()
    buffer = EventBuffer()
    encoder.encode(event, buffer)
    found = index.search(buffer, 0, scratch)
    rows = int(scratch.counters[0])
    return found, rows, int(scratch.counters[1])


def test_attributes_that_the_event_lacks_are_not_tested() -> None:
    """Trivial test elimination and delayed branching: four hundred tests lie beside the two that concern the event."""
    rules = [f"a{i} = {value} and z = {value}" for i in range(400) for value in range(40)]
    conjunctions, encoder = mixed.compiled(rules)
    index = Gryphon.build(conjunctions, leaf=1)
    assert evaluations(index, encoder, {}) == (0, 0, 0)
    found, rows, tests = evaluations(index, encoder, {"a7": 3, "z": 3})
    assert (found, rows) == (1, 1)
    assert tests <= 4


def test_equalities_come_before_other_tests_and_rare_attributes_first() -> None:
    rules = [f"common = {i} and rare < {i}" for i in range(40)] + [f"common < {i}" for i in range(40)]
    conjunctions, encoder = mixed.compiled(rules)
    index = Gryphon.build(conjunctions)
    # One look-up for all equalities, what is left of the rule that it finds, and one test for each range that stands
    # alone.
    found, rows, tests = evaluations(index, encoder, {"common": 5, "rare": 3})
    assert found == rows == 1 + 34
    assert tests == 1 + 1 + 40
    rare = [f"common = {i % 3} and rare{i} = 1" for i in range(300)]
    conjunctions, encoder = mixed.compiled(rare)
    found, rows, _ = evaluations(Gryphon.build(conjunctions), encoder, {"common": 1, "rare4": 1})
    assert (found, rows) == (1, 1)


def test_the_equality_form_looks_up_what_the_generic_form_tests_one_by_one() -> None:
    rules = [f"a{i % 7} = {i % 50} and b{i % 11} = {i % 48} and c = {i}" for i in range(3000)]
    conjunctions, encoder = mixed.compiled(rules)
    event = {**{f"a{i}": 3 for i in range(7)}, **{f"b{i}": 3 for i in range(11)}, "c": 3}
    equality = evaluations(Gryphon.build(conjunctions, leaf=1), encoder, event)
    generic = evaluations(Gryphon.build(conjunctions, leaf=1, generic=True), encoder, event)
    assert equality[0] == generic[0] == 1
    assert 5 * equality[2] < generic[2]


@pytest.mark.parametrize("size", [1, 127, 128, 254, 255, 256, 300, 2000])
def test_wide_conjunctions(size: int) -> None:
    m = eligo.Matcher(index="gryphon")
    m.add_many({"wide": " and ".join(f"a{i} = {i}" for i in range(size)), "narrow": "a0 = 0"})
    event = {f"a{i}": i for i in range(size)}
    assert m.match(event) == ["wide", "narrow"]
    for missing in {0, size // 2, size - 1}:
        found = m.match({**event, f"a{missing}": -1})
        assert "wide" not in found
        assert ("narrow" in found) == (missing != 0)


def test_a_deep_tree() -> None:
    """A hundred conjunctions that share three hundred tests and part at the last."""
    shared = " and ".join(f"a{i} = {i}" for i in range(300))
    rules = [f"{shared} and z = {i}" for i in range(100)] + [shared]
    # `z` is used more often than any other, and so comes last.
    rules += [f"z = {100 + i}" for i in range(300)]
    conjunctions, encoder = mixed.compiled(rules)
    event = {**{f"a{i}": i for i in range(300)}, "z": 7}
    for leaf in (1, 32):
        index = Gryphon.build(conjunctions, leaf=leaf)
        assert len(index.arrays()["node"]) // 4 > 300
        assert len(mixed.answers(index, encoder, [event])[0]) == 2
        assert mixed.answers(index, encoder, [{**event, "a150": -1}]) == [[]]


def test_several_values_follow_an_edge_once() -> None:
    m = eligo.Matcher(index="gryphon", multi=["c"])
    m.add_many([(i, f"c = {i % 4} and d = {i}") for i in range(200)] + [(300, "c < 3"), (301, "c in (1, 3)")])
    assert m.match({"c": [1, 1, 2, 1], "d": 5}) == [5, 300, 301]
    assert m.match({"c": [3, 1], "d": 7}) == [7, 300, 301]
    assert m.match({"c": [], "d": 7}) == []


def test_nothing_to_index() -> None:
    conjunctions, encoder = mixed.compiled(["false"])
    assert mixed.answers(Gryphon.build(conjunctions), encoder, [{}, {"a": 1}]) == [[], []]
