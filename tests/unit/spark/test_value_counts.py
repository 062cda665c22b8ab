"""Counting values in bounded memory: exact while there are few, fair when there are many."""

from __future__ import annotations

import datetime as dt
import json
import random

import pyarrow as pa
import pytest

from eligo.spark import value_counts as module
from eligo.spark.value_counts import Tally, unpacked


def rows(tally: Tally) -> dict[tuple[str, object], float]:
    return {(kind, value): count for what, kind, value, count in tally.rows() if what != "present"}


def test_few_values_are_counted_exactly_whatever_their_kind() -> None:
    tally = Tally()
    for column in (
        pa.array([1, 2, 2, None], pa.int32()),
        pa.array([True, False, True]),
        pa.array(["a", "a", None]),
        pa.array([1.0, float("nan"), float("inf")]),
        pa.array([[1, 1], None, [5]], pa.list_(pa.int64())),
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array([dt.date(1970, 1, 2)]),
        pa.array([b"unknown"]),
        pa.nulls(3),
    ):
        tally.add(column)
    assert tally.present == 3 + 3 + 2 + 3 + 2 + 2 + 1 + 1
    assert rows(tally) == {
        ("int", 1): 3, ("int", 2): 2, ("int", 5): 1, ("bool", True): 2, ("bool", False): 1, ("str", "a"): 3,
        ("str", "b"): 1, ("float", 1.0): 1, ("time", 86_400_000_000): 1,
    }  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST", 200), ("FREQUENT", 20), ("KEPT", 100), ("POINTS", 50)):
        monkeypatch.setattr(module, name, value)


def test_many_values_keep_the_frequent_and_the_shape_of_the_rest(small: None) -> None:
    rng = random.Random(2)
    parts = []
    for part in range(4):
        tally = Tally(part)
        for _ in range(20):
            tally.add(pa.array([7 if rng.random() < 0.3 else rng.randrange(100_000) for _ in range(500)]))
            assert len(tally.counts) <= 200 + 500
        parts.append(tally)
    whole = Tally()
    for part in parts:
        whole.merge(unpacked(json.loads(json.dumps(part.packed()))))
    found = rows(whole)
    assert len(found) <= 20 + 50
    assert found["int", 7] == pytest.approx(0.3 * 40_000, rel=0.05)
    assert sum(found.values()) == pytest.approx(40_000, rel=0.01)
    below = sum(count for (_, value), count in found.items() if value != 7 and value < 50_000)
    assert below == pytest.approx(0.35 * 40_000, rel=0.35)
    again = Tally()
    for part in parts:
        again.merge(unpacked(part.packed()))
    assert rows(again) == found
