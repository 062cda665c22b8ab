"""A query sees one snapshot: the one that was there when it was planned."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

from eligo import SnapshotError, spark
from eligo.spark import worker_cache
from eligo.spark.worker_cache import Source, manifest_hash, opened

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
    monkeypatch.setattr(worker_cache, "_matchers", OrderedDict())
    paths = [snapshot([("r", f"x = {i}")], name=f"s{i}")[1] for i in range(6)]
    sources = [Source(path, manifest_hash(path)) for path in paths]
    first = opened(sources[0], 0, False)
    assert opened(sources[0], 0, False) is first
    for source in sources[1:]:
        opened(source, 0, False)
    assert len(worker_cache._matchers) == 4
    assert opened(sources[0], 0, False) is not first


def test_another_manifest_is_refused(snapshot: Any) -> None:
    _, path = snapshot([("r", "x = 1")])
    with pytest.raises(SnapshotError, match="run the query again"):
        opened(Source(path, "0" * 64), 0, False)
