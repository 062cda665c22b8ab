"""Types, names and order of the columns that come back; what is refused on the driver."""

from __future__ import annotations

import datetime as dt
import importlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eligo import EligoError, SnapshotError, spark
from eligo.spark import worker
from eligo.spark.worker_cache import Source

pytestmark = pytest.mark.spark

EVERY_TYPE = (
    "x int, price decimal(10,2), raw binary, at timestamp, naive timestamp_ntz, day date, small byte, f float, "
    "items array<struct<sku: string, n: int>>, labels map<string, array<int>>, deep struct<a: struct<b: boolean>>, "
    "nothing void, text string not null, `dot.ted` int, `back``quote` int"
)
ROW = (
    1,
    Decimal("12.34"),
    b"\0\xff",
    dt.datetime(2026, 1, 31, 12, 30),
    dt.datetime(1960, 1, 1),
    dt.date(2026, 1, 31),
    -7,
    0.5,
    [("a", 1), ("b", None)],
    {"k": [1, None], "l": []},
    ((True,),),
    None,
    "naïve",
    5,
    6,
)


@pytest.mark.parametrize("output", ["exploded", "array"])
def test_kept_columns_come_back_untouched(output: Any, session: Any, snapshot: Any) -> None:
    _, path = snapshot([("r", "x = 1")])
    events = session.createDataFrame([ROW], EVERY_TYPE)
    answer = spark.match(events, path, output=output)
    assert answer.schema.fields[:-1] == events.schema.fields
    assert answer.drop("rule", "rules").collect() == events.collect()


def test_columns_of_other_types_in_another_order(session: Any, snapshot: Any) -> None:
    """Spark takes columns by position: two of one type, swapped, would go unseen."""
    _, path = snapshot([(1, "b = 'B' and c = 3")])
    events = session.createDataFrame([("A", "B", 3, 4)], "a string, b string, c long, d long")
    (row,) = spark.match(events, path, keep=["d", "b", "c", "a"]).collect()
    assert row.asDict() == {"d": 4, "b": "B", "c": 3, "a": "A", "rule": 1}
    assert list(row.asDict()) == ["d", "b", "c", "a", "rule"]
    (row,) = spark.match(events, path, keep=["a", "d"], output="array").collect()
    assert row.asDict() == {"a": "A", "d": 4, "rules": [1]}


def test_a_worker_refuses_columns_in_another_order_than_planned() -> None:
    plan = worker.Plan(Source("unused"), ("a",), (("b", 1),), 2, "exploded", False)
    swapped = pa.record_batch({"c1": ["x"], "c0": ["y"]})
    with pytest.raises(RuntimeError, match="planned were"):
        next(worker.run(plan, iter([swapped])))


def test_only_what_is_needed_crosses_into_python(session: Any, snapshot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("eligo.spark.match")
    _, path = snapshot([("r", "user.age > 1 and `a.b` = 2")])
    events = session.createDataFrame([], "id long, wide string, `a.b` int, user struct<age: int, other: string>")
    seen: list[worker.Plan] = []
    original = module.matched_by
    monkeypatch.setattr(module, "matched_by", lambda df, plan, answer: seen.append(plan) or original(df, plan, answer))
    spark.match(events, path, keep=["id"])
    assert seen[0].kept == ("id",)
    assert {name for name, _ in seen[0].attributes} == {"user.age", "a.b"}
    assert seen[0].columns == 3


def test_the_answer_column_is_never_null(session: Any, snapshot: Any) -> None:
    _, path = snapshot([("r", "x = 1")])
    events = session.createDataFrame([(1,)], "x int")
    assert not spark.match(events, path).schema["rule"].nullable
    assert spark.match(events, path, output="array").schema["rules"].dataType.simpleString() == "array<string>"


@pytest.mark.parametrize(
    ("schema", "options", "message"),
    [
        ("x int, rule string", {}, "withColumnRenamed"),
        ("x int, RULE string", {}, "withColumnRenamed"),
        ("x int, rules int", {"output": "array"}, "withColumnRenamed"),
        ("x int, country string", {"keep": ["contry"]}, "did you mean 'country'"),
        ("x int", {"keep": "x"}, "list of column names"),
        ("x int", {"keep": ["x", "x"]}, "two columns"),
        ("x int", {"output": "rows"}, "'exploded' or 'array'"),
    ],
)
def test_what_is_refused(schema: str, options: dict[str, Any], message: str, session: Any, snapshot: Any) -> None:
    _, path = snapshot([("r", "x = 1")])
    with pytest.raises(EligoError, match=message):
        spark.match(session.createDataFrame([], schema), path, **options)


def test_a_clashing_column_that_is_not_kept_is_no_clash(session: Any, snapshot: Any) -> None:
    _, path = snapshot([("r", "rule = 'mine'")])
    events = session.createDataFrame([(1, "mine"), (2, "yours")], "id long, rule string")
    assert [tuple(r) for r in spark.match(events, path, keep=["id"]).collect()] == [(1, "r")]


def test_an_array_of_a_declared_attribute(session: Any, snapshot: Any) -> None:
    _, path = snapshot([("r", "a = 1")], multi=["a"])
    events = session.createDataFrame([([3, 1],), ([2],)], "a array<int>")
    assert [r.a for r in spark.match(events, path).collect()] == [[3, 1]]


def test_a_snapshot_that_is_not_there(session: Any, tmp_path: Path) -> None:
    events = session.createDataFrame([], "x int")
    with pytest.raises(SnapshotError, match="no snapshot at"):
        spark.match(events, tmp_path / "missing")
    with pytest.raises(SnapshotError, match="not a snapshot"):
        spark.match(events, tmp_path)
    with pytest.raises(SnapshotError, match="memory-mapped"):
        spark.match(events, "s3://bucket/rules")
