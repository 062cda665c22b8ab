"""Answers of a worker: one row a match, or one row an event, whatever the batches are that they come in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eligo
from eligo.segments import pace
from eligo.spark import batch_limits, worker
from eligo.spark.worker import Plan
from eligo.spark.worker_cache import Source, manifest_hash


@pytest.mark.parametrize("index", ["auto", "be-tree"])
@pytest.mark.parametrize("top_k", [None, 1])
def test_every_event_has_its_row(
    index: str, top_k: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = eligo.Matcher(index)
    matcher.add_many([("low", "x < 5000", 2.0), ("some", "x in (3, 4999, 8191, 13000)", 3.0), ("none", "x < 0")])
    matcher.save(tmp_path / "rules")
    source = Source(str(tmp_path / "rules"), manifest_hash(str(tmp_path / "rules")))
    batch = pa.record_batch({"c0": range(14_000), "c1": range(14_000)})  # slices with and without a match
    expected: dict[int, list[Any]] = {
        x: [rule for rule, _ in matcher.top({"x": x}, top_k)] if top_k else matcher.match({"x": x})
        for x in range(14_000)
    }
    for most in (1 << 20, 100):
        for module in (batch_limits, pace):
            monkeypatch.setattr(module, "MATCHES", most)
        plan = Plan(source, ("id",), (("x", 1),), 2, "array", False, top_k=top_k)
        found = pa.Table.from_batches(list(worker.run(plan, iter([batch]))))
        assert found["id"].to_pylist() == list(range(14_000))
        assert found["rules"].to_pylist() == list(expected.values())
        if top_k:
            assert [len(weights) for weights in found["weights"].to_pylist()] == list(map(len, expected.values()))
    plan = Plan(source, ("id",), (("x", 1),), 2, "exploded", False, top_k=top_k)
    found = pa.Table.from_batches(list(worker.run(plan, iter([batch]))))
    pairs = [(x, rule) for x, rules in expected.items() for rule in rules]
    assert list(zip(found["id"].to_pylist(), found["rule"].to_pylist(), strict=True)) == pairs


def test_no_events(tmp_path: Path) -> None:
    matcher = eligo.Matcher()
    matcher.add("r", "x = 1")
    matcher.save(tmp_path / "rules")
    source = Source(str(tmp_path / "rules"), manifest_hash(str(tmp_path / "rules")))
    empty = pa.record_batch({"c0": pa.array([], pa.int64())})
    for output in ("array", "exploded"):
        plan = Plan(source, ("x",), (("x", 0),), 1, output, False)
        assert sum(part.num_rows for part in worker.run(plan, iter([empty]))) == 0


def test_a_snapshot_is_another_when_changes_were_kept_since(tmp_path: Path) -> None:
    path = tmp_path / "rules"
    eligo.Matcher().save(path)
    before = manifest_hash(str(path))
    with eligo.open(path, writable=True) as matcher:
        assert manifest_hash(str(path)) == before  # nothing has changed yet
        matcher.add("r", "x = 1")
        assert manifest_hash(str(path)) != before
    source = Source(str(path), before)
    plan = Plan(source, ("x",), (("x", 0),), 1, "array", False)
    with pytest.raises(eligo.SnapshotError, match="not the one this query was planned with"):
        list(worker.run(plan, iter([pa.record_batch({"c0": [1]})])))
