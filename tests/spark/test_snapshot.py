"""A query sees one snapshot: the one that was there when it was planned."""

from __future__ import annotations

from typing import Any

import pytest

from eligo import SnapshotError, spark
from eligo.spark import worker

pytestmark = pytest.mark.spark


def test_a_new_query_sees_the_snapshot_that_replaced_the_old_one(session: Any, snapshot: Any) -> None:
    events = session.createDataFrame([(1,)], "x int")
    _, path = snapshot([("old", "x = 1")])
    assert [r.rule for r in spark.match(events, path).collect()] == ["old"]
    snapshot([("new", "x = 1")])
    assert [r.rule for r in spark.match(events, path).collect()] == ["new"]


def test_a_query_planned_with_the_old_snapshot_never_reads_the_new_one(session: Any, snapshot: Any) -> None:
    events = session.createDataFrame([(1,)], "x int")
    _, path = snapshot([("old", "x = 1")])
    planned = spark.match(events, path)
    snapshot([("new", "x = 1")])
    with pytest.raises(Exception, match="not the one this query was planned with"):
        planned.collect()


def test_a_process_opens_a_snapshot_once_and_forgets_the_oldest(snapshot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_snapshots", type(worker._snapshots)())
    paths = [snapshot([("r", f"x = {i}")], name=f"s{i}")[1] for i in range(6)]
    first = worker.open_snapshot(paths[0], worker.manifest_hash(paths[0]))
    assert worker.open_snapshot(paths[0], worker.manifest_hash(paths[0])) is first
    for path in paths[1:]:
        worker.open_snapshot(path, worker.manifest_hash(path))
    assert len(worker._snapshots) == 4
    assert worker.open_snapshot(paths[0], worker.manifest_hash(paths[0])) is not first


def test_another_manifest_is_refused(snapshot: Any) -> None:
    _, path = snapshot([("r", "x = 1")])
    with pytest.raises(SnapshotError, match="run the query again"):
        worker.open_snapshot(path, "0" * 64)
