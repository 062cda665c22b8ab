"""Attributes inside Variant columns: what the same JSON as dicts gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions

from eligo import EventError, spark

pytestmark = pytest.mark.spark

EVENTS: list[Any] = [
    {"age": 20, "user": {"name": "Ann", "score": 0.5}, "tags": ["a", "b"], "mixed": 1},
    {"age": 17, "user": {"name": "Bob"}, "tags": [], "mixed": "one"},
    {"age": 30.5, "user": None, "tags": "a", "mixed": True, "n": [1, 2.5]},
    {"user": {"score": 12.125, "name": "é" * 40}, "tags": None, "mixed": 1.0, "n": [3, "x", True, None]},
    {},
    None,
]
WHOLE = "spark.sql.variant.writeShredding.enabled"
RULES = [
    "v.age >= 18", "v.age is null", "v.user.name = 'Ann'", "v.user.name like 'é%'", "v.user.score > 0.25",
    "not v.user.score > 1", "v.tags contains any ('a')", "v.tags contains none ('b')", "v.mixed = 1", "v.mixed = 'one'",
    "v.mixed", "v.n contains any (2.5)", "id = 2 and v.age > 30",
    "v.n contains all (3, 'x', true)",
]  # fmt: skip


@pytest.fixture(scope="module")
def events(session: Any) -> Any:
    rows = [(i, None if event is None else json.dumps(event)) for i, event in enumerate(EVENTS)]
    return (
        session.createDataFrame(rows, "id long, text string").selectExpr("id", "parse_json(text) AS v").repartition(2)
    )


def pairs(frame: Any) -> list[tuple[int, str]]:
    return sorted((row["id"], row["rule"]) for row in frame.collect())


def written(session: Any, events: Any, path: Path) -> None:
    """As files in which a Variant is whole; newer versions of Spark make columns of its fields."""
    session.conf.set(WHOLE, "false")
    try:
        events.coalesce(1).write.parquet(str(path))
    finally:
        session.conf.unset(WHOLE)


def test_every_way_gives_what_dicts_give(session: Any, events: Any, snapshot: Any, tmp_path: Path) -> None:
    matcher, path = snapshot((f"r{i}", text) for i, text in enumerate(RULES))
    dicts = [{"id": i} if event is None else {"id": i, "v": event} for i, event in enumerate(EVENTS)]
    expected = sorted((r["event"], r["rule"]) for r in matcher.match_batch(dicts).to_pylist())
    assert {rule for _, rule in expected} == {f"r{i}" for i in range(len(RULES))}
    assert pairs(spark.match(events, path, keep=["id"])) == expected

    written(session, events, tmp_path / "events")
    assert pairs(spark.match_files(tmp_path / "events", path, session=session, keep=["id"])) == expected

    spark.register(session)
    events.createOrReplaceTempView("variants")
    assert pairs(session.sql(f"SELECT * FROM eligo_match(TABLE(variants), '{path}', keep => 'id')")) == expected
    if hasattr(functions, "arrow_udf"):
        scalar = f"SELECT id, explode(eligo_rules('{path}', struct(*))) AS rule FROM variants"
        assert pairs(session.sql(scalar)) == expected


def test_kept_variants_come_back_untouched(session: Any, events: Any, snapshot: Any, tmp_path: Path) -> None:
    _, path = snapshot([("r", "v.age is null or v.age > 0")])
    written(session, events, tmp_path / "events")
    expected = {row[0]: row[1] for row in events.selectExpr("id", "to_json(v)").collect()}
    for answer in (spark.match(events, path), spark.match_files(tmp_path / "events", path, session=session)):
        assert answer.schema["v"].dataType.simpleString() == "variant"
        assert {row[0]: row[1] for row in answer.selectExpr("id", "to_json(v)").collect()} == expected


def test_types_that_json_does_not_have(session: Any, snapshot: Any) -> None:
    rules = ["s.w.day = date '2026-01-31'", "s.w.at = timestamp '2026-01-31 12:00:00Z'", "s.w.naive < date '1970-01-01'",
             "s.w.f = 0.5", "s.w.price = 12.34", "m.k = 1", "w = 7"]  # fmt: skip
    _, path = snapshot(enumerate(rules))
    events = session.sql(
        "SELECT named_struct('w', to_variant_object(named_struct('day', date '2026-01-31', 'at', "
        "timestamp '2026-01-31 12:00:00Z', 'naive', timestamp_ntz '1960-01-01 00:00:00', 'f', float(0.5), "
        "'price', 12.34BD))) AS s, map('k', parse_json('1')) AS m, parse_json('7') AS w"
    )
    assert sorted(row.rule for row in spark.match(events, path, keep=[]).collect()) == list(range(len(rules)))


def test_a_variant_in_columns_of_its_own(session: Any, events: Any, snapshot: Any, tmp_path: Path) -> None:
    _, path = snapshot([("r", "v.age > 0")])
    events.coalesce(1).write.parquet(str(tmp_path / "events"))
    if "typed_value" in str(pq.ParquetFile(next((tmp_path / "events").glob("*.parquet"))).schema):
        with pytest.raises(EventError, match="the Variant v is shredded"):
            spark.match_files(tmp_path / "events", path, session=session)
    assert pairs(spark.match(session.read.parquet(str(tmp_path / "events")), path)) == [(0, "r"), (1, "r"), (2, "r")]
