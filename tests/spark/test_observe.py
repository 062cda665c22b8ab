"""observe keeps what events hold with the rules, and indexes look at the rarest predicate first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import eligo
from eligo import EventError, spark
from eligo.store.versions import hold

pytestmark = pytest.mark.spark


def candidates(path: str, events: list[dict[str, Any]]) -> int:
    matcher = eligo.open(path)
    before = matcher.stats().candidates  # segments that are open already have counted
    matcher.match_batch(events)
    return matcher.stats().candidates - before


def test_indexes_look_at_what_is_rare(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rules")
    rules = [(f"r{i:03d}", f"a = {i % 10} and user.b = {i // 10}") for i in range(100)]
    rules.append(("z", "tags contains any ('x') and day >= date '2026-01-02'"))
    spark.compile_rules(session.createDataFrame(rules, "id string, expression string"), path, shards=2)
    changes = [("r001", None, "remove"), ("new", "a = 3 and user.b = 20", "add")]
    spark.update_rules(path, session.createDataFrame(changes, "id string, expression string, change string"))
    often_a = [{"a": 3, "user": {"b": 50 + i}} for i in range(20)]
    often_b = [{"a": 50 + i, "user": {"b": 3}} for i in range(20)]
    some = [*often_a, *often_b, {"a": 3, "user": {"b": 5}, "tags": ["x"]}]
    wanted = [eligo.open(path).match(event) for event in some]

    more = ["array('x', if(id % 2 = 0, 'y', null)) as tags", "date_add(date '2026-01-01', cast(id % 3 as int)) as day"]
    events = session.range(2000)
    done = spark.observe(events.selectExpr("3 as a", "struct(id as b, 'u' as unused) as user", *more), path)
    assert (done.version, done.rules, done.shards, done.deltas) == (3, 101, 2, 1)
    assert candidates(path, often_a) == 0
    spark.observe(events.selectExpr("id as a", "struct(3 as b) as user", *more).repartition(3), path)
    assert candidates(path, often_b) == 0
    assert [eligo.open(path).match(event) for event in some] == wanted

    with hold(path) as held:
        assert held.content.statistics is not None
        table = pq.read_table(tmp_path / "rules" / "data" / held.content.statistics.file).to_pylist()
    rows = {(row["attribute"], row["what"], row["value"]): row["count"] for row in table}
    assert rows["", "events", ""] == 2000
    assert rows["user.b", "value", "3"] == rows["user.b", "present", ""] == 2000
    assert rows["tags", "value", '"y"'] == 1000
    assert len([row for row in table if row["attribute"] == "a"]) > 256
    assert not any(row["attribute"] == "user.unused" for row in table)
    # What was learned stays: with the next update, with a compaction, and with rules compiled anew.
    spark.update_rules(path, session.createDataFrame([("more", "a = 2")], "id string, expression string"))
    spark.compact_rules(path, session)
    assert candidates(path, often_b) == 0
    spark.compile_rules(session.createDataFrame(rules, "id string, expression string"), path)
    assert candidates(path, often_b) == 0


def test_nothing_to_learn(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rules")
    spark.compile_rules(session.createDataFrame([("r", "x = 1")], "id string, expression string"), path)
    with pytest.raises(EventError, match="nothing to learn"):
        spark.observe(session.range(3), path)
    with pytest.raises(EventError, match="no events"):
        spark.observe(session.createDataFrame([], "x int"), path)
