"""The functions in SQL give what match gives."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions

from eligo import EligoError, spark
from eligo.spark import sql

pytestmark = pytest.mark.spark

UTC = dt.UTC
SCHEMA = (
    "id long, age int, at timestamp, naive timestamp_ntz, day date, user struct<`full name`: string, n: double>, "
    "labels map<string, long>, many array<string>, moments array<timestamp>, `dot.ted` int"
)
MOMENT = dt.datetime(2026, 1, 31, 12, tzinfo=UTC)
ROWS = [
    (1, 20, MOMENT, dt.datetime(2026, 1, 31, 12), dt.date(2026, 1, 31), ("Ann", 0.5), {"it's": 1}, ["a"], [MOMENT], 1),
    (2, 17, dt.datetime(1960, 7, 1, tzinfo=UTC), None, None, (None, float("nan")), {}, [], [], 2),
    (3, None, None, None, None, None, None, None, None, None),
]
RULES = [
    "age >= 18", "at = timestamp '2026-01-31 12:00:00Z'", "naive = timestamp '2026-01-31 12:00:00Z'",
    "day = date '2026-01-31'", "`user.full name` = 'Ann'", "user.n is null", "`labels.it's` = 1",
    "many contains none ('b')", "moments contains any (timestamp '2026-01-31 12:00:00Z')", "dot.ted = 2", "age is null",
]  # fmt: skip


@pytest.fixture(scope="module")
def events(session: Any) -> Any:
    spark.register(session)
    frame = session.createDataFrame(ROWS, SCHEMA).repartition(2)
    frame.createOrReplaceTempView("events")
    yield frame
    session.catalog.dropTempView("events")


def rows_of(frame: Any) -> list[str]:
    return sorted(map(repr, frame.collect()))


def test_the_table_function_gives_what_match_gives(session: Any, events: Any, snapshot: Any) -> None:
    _, path = snapshot((f"r{i}", text, float(i), ["even" if i % 2 == 0 else "odd"]) for i, text in enumerate(RULES))
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for options, arguments in (
            ({}, ""),
            ({"keep": ["id", "user"]}, ", keep => 'id, user'"),
            ({"keep": [], "tags": ["odd"]}, ", keep => '', tags => 'odd'"),
            ({"keep": ["id"], "output": "array", "top_k": 3}, ", keep => array('id'), output => 'array', top_k => 3"),
        ):
            expected = spark.match(events, path, **options)
            found = session.sql(f"SELECT * FROM eligo_match(TABLE(events), '{path}'{arguments})")
            assert found.schema == expected.schema
            assert rows_of(found) == rows_of(expected)
        if hasattr(functions, "arrow_udf"):  # without them there are no timestamps
            found = session.sql(f"SELECT id, explode(eligo_rules('{path}', struct(*))) AS rule FROM events")
            assert rows_of(found) == rows_of(spark.match(events, path, keep=["id"]))
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")


def test_more_rows_than_are_matched_at_a_time(session: Any, events: Any, snapshot: Any) -> None:
    _, path = snapshot([(1, "id >= 0"), (2, "id < 5000")])
    query = f"SELECT count(*) FROM eligo_match(TABLE(SELECT id FROM range(0, 10000, 1, 2)), '{path}')"
    assert session.sql(query).collect()[0][0] == 15_000


def test_a_version_is_pinned_by_the_path(session: Any, events: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rules")
    for bound in (18, 10):
        rules = session.createDataFrame([(7, f"age >= {bound}")], "id int, expression string")
        spark.compile_rules(rules, path)
    for text, version, ids in ((path, 2, {1, 2}), (f"{path}@1", 1, {1})):
        found = session.sql(
            f"SELECT id, rules_version FROM eligo_match(TABLE(events), '{text}', keep => 'id')"
        ).collect()
        assert {tuple(row) for row in found} == {(i, version) for i in ids}
        found = session.sql(f"SELECT id, eligo_rule_numbers('{text}', struct(age)) AS rules FROM events").collect()
        assert {row.id for row in found if row.rules == [7]} == ids
    several = f"SELECT id, eligo_rule_numbers('{path}@' || (id % 2 + 1), struct(age)) AS rules FROM events"
    assert {row.id: row.rules for row in session.sql(several).collect()} == {1: [7], 2: [], 3: []}


def test_what_is_refused(session: Any, events: Any, snapshot: Any) -> None:
    _, path = snapshot([("r", "age >= 18")])
    table = "SELECT * FROM eligo_match(TABLE(events), {})"
    for query, message in (
        (table.format("'/nowhere/rules'"), "no snapshot at '/nowhere/rules'"),
        (table.format(f"'{path}', keep => 'idd'"), "did you mean 'id'"),
        (f"SELECT * FROM eligo_match('{path}', '{path}')", "the first argument is a table"),
        (f"SELECT eligo_rules('{path}', age) FROM events", "struct"),
        (f"SELECT eligo_rule_numbers('{path}', struct(age)) FROM events", "use eligo_rules instead"),
        (f"SELECT eligo_rules('{path}@3', struct(age)) FROM events", "without versions"),
        ("SELECT eligo_rules(null, struct(age)) FROM events", "is a string such as"),
    ):
        with pytest.raises(PySparkException) as raised:
            session.sql(query).collect()
        assert message in spark.reason(raised.value), query
        assert "Traceback" not in spark.reason(raised.value), query


def test_paths_in_sql(tmp_path: Path) -> None:
    assert sql.place_of("/shared/rules") == ("/shared/rules", None)
    assert sql.place_of("/shared/rules@12") == ("/shared/rules", 12)
    (tmp_path / "rules@12").mkdir()
    assert sql.place_of(f"{tmp_path}/rules@12") == (f"{tmp_path}/rules@12", None)
    for path, message in (("rules", "relative"), (7, "is a string"), ("s3://bucket/rules", "is a URL")):
        with pytest.raises(EligoError, match=message):
            sql.place_of(path)


def test_without_functions_of_arrow(session: Any, events: Any, snapshot: Any) -> None:
    """Spark 4.0 has only those of pandas."""
    _, path = snapshot([("a", "age >= 18 and user.n = 0.5"), ("b", "many contains any ('a')"), ("c", "day is null")])
    session.udf.register("eligo_rules_40", functions.pandas_udf(sql._of_pandas(sql.TEXTS), "array<string>"))
    query = f"SELECT id, eligo_rules_40('{path}', struct(age, day, user, many)) AS rules FROM events"
    assert {row.id: row.rules for row in session.sql(query).collect()} == {1: ["a", "b"], 2: ["c"], 3: ["c"]}
    with pytest.raises(PySparkException) as raised:
        session.sql(f"SELECT eligo_rules_40('{path}', struct(at)) FROM events").collect()
    assert "time zone" in spark.reason(raised.value)
