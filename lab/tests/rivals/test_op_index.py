"""`op-index`: what stands in which list, the answers of both ways to construct it, and where its counters end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eligo
import mixed
from eligo.compile.events import EventBuffer
from eligo.index.access import leading
from eligo.index.scan import Scan
from eligo_lab.rivals import op_lists
from eligo_lab.rivals.op_index import OpIndex
from eligo_lab.rivals.op_kept import KeptSorted
from eligo_lab.rivals.op_lists import MARK, MOST_COUNTED, SHAPE_BITS, UNLISTED, build_listing

SHAPE = (1 << SHAPE_BITS) - 1
SHAPES = ("EQUAL", "BETWEEN", "BELOW", "TIME_BELOW", "STRING_BELOW", "ABOVE", "NUMBER_ABOVE", "TIME_ABOVE", "SEVERAL")


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_ways_of_construction_answer_as_scan_does(absent: str, seed: int) -> None:
    conjunctions, encoder = mixed.compiled(mixed.texts(500, seed), absent)
    some = mixed.events(150, seed)
    wanted = mixed.answers(Scan.build(conjunctions), encoder, some)
    assert sum(map(len, wanted)) > 1000
    index = OpIndex.build(conjunctions)
    assert mixed.answers(index, encoder, some) == wanted
    assert mixed.answers(OpIndex.restore(conjunctions, index.arrays()), encoder, some) == wanted
    kept = KeptSorted(conjunctions)
    done = 0
    for stop in (0, 1, 2, 10, 100, len(conjunctions)):
        kept.insert(done, stop)
        done = stop
        so_far = [[c for c in found if c < stop] for found in wanted]
        assert mixed.answers(kept, encoder, some) == so_far


@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_every_conjunction_stands_in_one_partition(absent: str) -> None:
    conjunctions, _ = mixed.compiled(mixed.texts(500, 4), absent)
    a = OpIndex.build(conjunctions).arrays()
    attribute, leads = conjunctions.predicates.attribute(), leading(conjunctions)
    attributes = len(a["least"])
    frequency = np.bincount(attribute[conjunctions.items[leads[conjunctions.items]]], minlength=attributes)
    seen = []
    for partition, (start, stop) in enumerate(zip(a["row_start"], a["row_stop"], strict=True)):
        for row in range(start, stop):
            member = a["member"][row]
            c = int(member if member >= 0 else a["words"][a["word_offsets"][-1 - member]] >> 32)
            seen.append(c)
            items = conjunctions.items[conjunctions.offsets[c] : conjunctions.offsets[c + 1]]
            can_lead = attribute[items[leads[items]]]
            if partition == 2 * attributes:
                assert len(can_lead) == 0
                assert member < 0
            else:
                assert partition % attributes in can_lead
                assert frequency[partition % attributes] == frequency[can_lead].min()
                assert (a["need"][row] == 0) == (partition >= attributes)
    assert sorted(seen) == list(range(len(conjunctions)))


def test_lists_are_sorted_and_hold_every_counted_predicate_once() -> None:
    conjunctions, _ = mixed.compiled(mixed.texts(500, 5))
    a = OpIndex.build(conjunctions).arrays()
    counted = np.zeros(len(a["need"]), np.int64)
    for pivot in range(len(a["least"])):
        first, last = a["list_start"][pivot], a["list_stop"][pivot]
        assert (np.diff(a["list_key"][first:last]) > 0).all()
        for at in range(first, last):
            start, stop, widest = a["extent"][4 * at : 4 * at + 3]
            shape = a["list_key"][at] & SHAPE
            if shape == op_lists.BETWEEN:
                entries = a["triple"].reshape(-1, 3)[start:stop]
                assert widest == (entries[:, 1] - entries[:, 0]).max()
            else:
                entries = a["pair"].reshape(-1, 2)[start:stop]
            assert start < stop
            assert (np.diff(entries[:, 0]) >= 0).all()
            rows = entries[:, -1]
            whole = rows[rows & MARK == 0]
            np.add.at(counted, a["row_start"][pivot] + whole, 1)  # SEVERAL stands for the marked ones
    assert counted.tolist() == a["need"].tolist()


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("x = 3", {"EQUAL"}),
        ("x < 3", {"BELOW"}),
        ("x <= 3", {"BELOW"}),
        ("x > 3", {"NUMBER_ABOVE"}),
        ("x >= 3", {"NUMBER_ABOVE"}),
        ("x between 3 and 5", {"BETWEEN"}),
        ("x in (3, 5)", {"EQUAL", "SEVERAL"}),
        ("x = 'd'", {"EQUAL"}),
        ("x < 'd'", {"STRING_BELOW"}),
        ("x > 'd'", {"ABOVE"}),
        ("x < date '2026-01-03'", {"TIME_BELOW"}),
        ("x > date '2026-01-03'", {"TIME_ABOVE"}),
        ("x != 3", set()),
        ("x not in (3, 5)", set()),
        ("x like '%d'", set()),
    ],
)
def test_operators_become_shapes(text: str, shapes: set[str]) -> None:
    # Other rules on the attribute cut its values, so that a run of several values has several spaces.
    others = [f"x = {value} and y = 1" for value in range(8)]
    others += [f"x = '{value}' and y = 1" for value in "abcdefg"]
    others += [f"x = date '2026-01-0{day}' and y = 1" for day in range(1, 8)]
    conjunctions, _ = mixed.compiled([*others, f"{text} and z = 1"])
    a = OpIndex.build(conjunctions).arrays()
    # `z` is rarer than `x`, so the partition of `z` holds the rule alone.
    (pivot,) = (p for p in range(len(a["least"])) if a["row_stop"][p] == a["row_start"][p] + 1)
    keys = a["list_key"][a["list_start"][pivot] : a["list_stop"][pivot]]
    assert {SHAPES[key & SHAPE] for key in keys if key >> SHAPE_BITS != pivot} == shapes
    for number, name in enumerate(SHAPES):
        assert getattr(op_lists, name) == number


@pytest.mark.parametrize("size", [1, 127, 128, 253, 254, 255, 256, 300, 1000])
def test_wide_conjunctions(size: int) -> None:
    m = eligo.Matcher(index="op-index")
    m.add_many({"wide": " and ".join(f"a{i} = {i}" for i in range(size)), "narrow": "a0 = 0"})
    event = {f"a{i}": i for i in range(size)}
    assert m.match(event) == ["wide", "narrow"]
    for missing in {0, size // 2, size - 1}:
        found = m.match({**event, f"a{missing}": -1})
        assert "wide" not in found
        assert ("narrow" in found) == (missing != 0)
    assert m.stats().notes["verified after counting"] == (size > MOST_COUNTED)


def test_several_values_count_a_predicate_once() -> None:
    m = eligo.Matcher(index="op-index", multi=["c"])
    m.add_many([(0, "c in (1, 3, 5) and b = 1"), (1, "c < 4 and b = 1"), (2, "c = 3 and b = 1"), (3, "c in (1, 3)")])
    m.add_many([(10 + i, f"c in ({i}, {i + 20}) and d = {i}") for i in range(40)])
    assert m.match({"c": [1, 3, 5, 1]}) == [3]
    assert m.match({"c": [1, 3, 5], "b": 1}) == [0, 1, 2, 3]
    assert m.match({"c": [21, 1], "d": 1}) == [3, 11]


def test_two_predicates_on_one_attribute_are_two_to_count() -> None:
    m = eligo.Matcher(index="op-index", multi=["c"])
    m.add_many({"both": "c < 3 and c > 5"})
    assert m.match({"c": [1]}) == []
    assert m.match({"c": [1, 9]}) == ["both"]


def test_an_event_without_the_pivot_touches_nothing() -> None:
    rules = [f"common = {i % 5} and rare{i % 50} = 1" for i in range(1000)]
    conjunctions, encoder = mixed.compiled(rules)
    index = OpIndex.build(conjunctions)
    counters: dict[str, Any] = {}
    for name, event in {"without": {"common": 1}, "with": {"common": 1, "rare1": 1}}.items():
        scratch = index.scratch()
        buffer = EventBuffer()
        encoder.encode(event, buffer)
        found = index.search(buffer, 0, scratch)
        counters[name] = found, scratch.counters[0]
    assert counters["without"] == (0, 0)
    assert counters["with"] == (1, 2)  # equal rules are one conjunction


def test_what_is_listed() -> None:
    conjunctions, _ = mixed.compiled(mixed.texts(500, 6), "classical")
    listing = build_listing(conjunctions)
    assert not (listing.how[~listing.leading] != UNLISTED).any()
    notes = OpIndex.build(conjunctions).notes()
    for name in ("verified after counting", "verified where their pivot is present", "always verified"):
        assert notes[name] != 0


def test_nothing_to_index() -> None:
    conjunctions, encoder = mixed.compiled(["false"])
    assert mixed.answers(OpIndex.build(conjunctions), encoder, [{}, {"a": 1}]) == [[], []]
