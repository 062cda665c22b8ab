"""match_files gives what match gives over the same files: files, types, rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from eligo import EventError, OptionError, spark
from eligo.spark import jobs

pytestmark = pytest.mark.spark

RULES = [("small", "x < 3"), ("odd", "x in (1, 3, 5)"), ("none", "x is null")]


def same(session: Any, files: Any, rules: str, **options: Any) -> list[Any]:
    """What both say, after comparing schemas and rows."""
    paths = files if isinstance(files, list) else [files]
    expected = spark.match(session.read.parquet(*map(str, paths)), rules, **options)
    found = spark.match_files(files, rules, session=session, **options)
    assert found.schema == expected.schema
    rows = found.collect()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected.collect()))  # NaN is not equal to itself
    return rows


def test_types_of_other_writers(session: Any, snapshot: Any, tmp_path: Path) -> None:
    moment = dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC)
    far = dt.datetime(9000, 1, 1, tzinfo=dt.UTC)
    table = pa.table(
        {
            "id": pa.array(range(3), pa.uint32()),
            "word": pa.array(["a", "b", None]).dictionary_encode(),
            "large": pa.array(["x", None, "z"], pa.large_string()),
            "small": pa.array([1, 255, None], pa.uint8()),
            "at": pa.array([moment, far, None], pa.timestamp("ms", "America/New_York")),
            "naive": pa.array([moment.replace(tzinfo=None), None, None], pa.timestamp("ms")),
            "day": pa.array([dt.date(2026, 1, 31), dt.date(1600, 1, 1), None]),
            "price": pa.array([Decimal("1.50"), None, None], pa.decimal128(7, 2)),
            "items": [[{"sku": "a", "n": 1}], [], None],
            "labels": pa.array([[("team", 1), ("a.b", 2)], [], None], pa.map_(pa.string(), pa.int32())),
            "user": [{"age": 20, "deep": {"x.y": 1.5, "unused": "u"}}, {"age": None, "deep": None}, None],
            "many": [[1, 2], [], None],
            "dot.ted": pa.array([1, 2, 3], pa.int16()),
            "half": pa.array([0.5, float("nan"), None], pa.float32()),
        }
    )
    path = tmp_path / "x.parquet"
    pq.write_table(table, path, row_group_size=2)
    rules = [
        "word = 'a'", "large != 'x'", "small > 200", "at > timestamp '2026-01-31 12:00:00Z'", "naive is not null",
        "day < date '1700-01-01'", "user.age >= 18", "user.deep.x.y = 1.5", "labels.team = 1", "labels.a.b = 2",
        "many contains any (2)", "many contains none (9)", "dot.ted = 3", "half = 0.5", "half is null", "id = 2",
    ]  # fmt: skip
    _, snap = snapshot((i, text) for i, text in enumerate(rules))
    rows = same(session, path, snap)
    assert {row.rule for row in rows} == set(range(len(rules)))
    same(session, path, snap, output="array", keep=["id", "word"])
    same(session, path, snap, keep=["user"], output="array")


def test_int96_timestamps(session: Any, snapshot: Any, tmp_path: Path) -> None:
    moments = [dt.datetime(2026, 1, 31, 12), dt.datetime(9000, 1, 1), None]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"at": pa.array(moments, pa.timestamp("us"))}), path, use_deprecated_int96_timestamps=True)
    _, snap = snapshot([("then", "at = timestamp '2026-01-31 12:00:00Z'"), ("later", "at > date '2500-01-01'")])
    assert {row.rule for row in same(session, path, snap)} == {"then", "later"}


def test_folders_patterns_and_lists(session: Any, snapshot: Any, tmp_path: Path) -> None:
    _, rules = snapshot(RULES)
    session.range(8).selectExpr("id as x").repartition(3).write.parquet(str(tmp_path / "a"))  # with _SUCCESS, .crc
    pq.write_table(pa.table({"x": [1]}), tmp_path / "one file.parquet")
    (tmp_path / "a" / "_hidden").write_text("no Parquet")
    assert len(same(session, tmp_path / "a", rules, keep=[])) == 6
    assert len(same(session, str(tmp_path / "a" / "part-*"), rules)) == 6
    assert len(same(session, [tmp_path / "a", str(tmp_path / "one file.parquet")], rules)) == 8
    assert len(same(session, tmp_path / "one file.parquet", rules)) == 2


def test_columns_in_the_names_of_folders(session: Any, snapshot: Any, tmp_path: Path) -> None:
    _, rules = snapshot([("day", "day = date '2026-01-31'"), ("two", "n = 2 and x >= 0"), ("word", "word = 'a/b%c'")])
    events = session.createDataFrame(
        [(1, "2026-01-31", 1, "a/b%c"), (2, "2026-02-01", 2, "d"), (3, "2026-01-31", 2, None)],
        "x int, day string, n int, word string",
    )
    events.write.partitionBy("day", "n", "word").parquet(str(tmp_path / "a"))
    assert len(same(session, tmp_path / "a", rules)) == 5
    same(session, tmp_path / "a" / "day=2026-01-31", rules, output="array")


def test_versions_the_best_and_counts(session: Any, tmp_path: Path) -> None:
    from pyspark.sql import Observation

    rules = session.createDataFrame(
        [(i, f"x >= {i}", float(i), ["even" if i % 2 == 0 else "odd"]) for i in range(5)],
        "id int, expression string, weight double, tags array<string>",
    )
    path = str(tmp_path / "rules")
    spark.compile_rules(rules, path, shards=2)
    session.range(6).selectExpr("id as x").write.parquet(str(tmp_path / "a"))
    same(session, tmp_path / "a", path)
    same(session, tmp_path / "a", path, top_k=2, output="array", tags=["even"], version_column="v", version=1)
    same(session, tmp_path / "a", path, top_k=1, memory=1, key=["x"])
    counts = Observation("files")
    spark.match_files(tmp_path / "a", path, session=session, output="array", observe=counts).collect()
    assert counts.get == {
        "events": 6,
        "matches": 20,
        "version_min": 1,
        "version_max": 1,
        "set_aside": 0,
        "events_set_aside": 0,
    }


def test_rules_that_name_no_column(session: Any, snapshot: Any, tmp_path: Path) -> None:
    _, rules = snapshot([("absent", "y is null")])
    pq.write_table(pa.table({"x": range(5)}), tmp_path / "x.parquet")
    assert len(same(session, tmp_path / "x.parquet", rules, keep=[])) == 5
    assert len(same(session, tmp_path / "x.parquet", rules)) == 5
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "empty.parquet")
    assert same(session, tmp_path / "empty.parquet", rules) == []


def test_what_is_refused_on_the_driver(session: Any, snapshot: Any, tmp_path: Path) -> None:
    _, rules = snapshot([*RULES, ("price", "price > 1")])
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    for path, message in (("missing", "nothing at"), ("s3://bucket/a", "is a URL"), ([], "at least one path")):
        with pytest.raises((EventError, OptionError), match=message):
            spark.match_files(path, rules, session=session)
    (tmp_path / "empty").mkdir()
    with pytest.raises(EventError, match="no Parquet files"):
        spark.match_files(tmp_path / "empty", rules, session=session)
    pq.write_table(pa.table({"x": ["text"]}), tmp_path / "b.parquet")
    with pytest.raises(EventError, match=r"b\.parquet has another schema.* the column x is BYTE_ARRAY String"):
        spark.match_files(str(tmp_path / "*.parquet"), rules, session=session)
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(EventError, match=r"b\.parquet cannot be read as Parquet"):
        spark.match_files(str(tmp_path / "*.parquet"), rules, session=session)
    with pytest.raises(EventError, match=r"b\.parquet"):
        spark.match_files(tmp_path / "b.parquet", rules, session=session)


def test_a_file_that_is_damaged_in_the_middle_or_gone(session: Any, snapshot: Any, tmp_path: Path) -> None:
    _, rules = snapshot(RULES)
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"x": range(5000)}), path, write_page_checksum=True, compression="none", use_dictionary=False
    )
    whole = path.read_bytes()
    path.write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    frame = spark.match_files(path, rules, session=session)
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    assert "a.parquet cannot be read as Parquet" in jobs.reason(raised.value)
    path.unlink()
    with pytest.raises(PySparkException) as raised:
        frame.collect()
    assert "a.parquet is not there" in jobs.reason(raised.value)
