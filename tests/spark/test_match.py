"""spark.match gives what Matcher.match_batch gives, for every kind of column."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import pytest

from eligo import spark

pytestmark = pytest.mark.spark

UTC = dt.UTC


class Case(NamedTuple):
    schema: str  # of the events, in Spark's own notation; `id` numbers them
    events: list[dict[str, Any]]
    rules: list[str]


CASES = {
    "flat": Case(
        "id long, age int, country string",
        [{"age": 20, "country": "US"}, {"age": 17, "country": "CA"}, {"age": None, "country": "US"}, {"age": 40}],
        ["age >= 18 and country in ('US', 'CA')", "not age >= 18", "country != 'US'", "age is null", "unknown = 1"],
    ),
    "struct": Case(
        "id long, user struct<age: int, country: string, unused: string>",
        [{"user": {"age": 20, "country": "US"}}, {"user": {"country": "CA"}}, {"user": None}, {}],
        ["user.age >= 18", "user.country = 'CA' or user.age = 20", "user.age is null", "user.name is null"],
    ),
    "nested": Case(
        "id long, a struct<b: struct<c: double, `d.e`: int>>",
        [{"a": {"b": {"c": 1.5, "d.e": 3}}}, {"a": {"b": None}}, {"a": {"b": {"c": 2.0}}}, {}],
        ["a.b.c between 1 and 1.9", "a.b.d.e = 3", "not a.b.c < 2", "a.b.c is null"],
    ),
    "dotted name": Case(
        "id long, `a.b` int, `x ``y` string",
        [{"a.b": 1, "x `y": "p"}, {"a.b": 2, "x `y": "q"}, {}],
        ["a.b = 1", "`a.b` >= 1", "`x ``y` = 'q'"],
    ),
    "list": Case(
        "id long, interests array<string>, user struct<sizes: array<int>>",
        [
            {"interests": ["NFL", "film"], "user": {"sizes": [1, 2]}},
            {"interests": [], "user": {"sizes": []}},
            {"interests": None, "user": None},
            {"interests": ["NBA", None], "user": {"sizes": [7]}},
        ],
        [
            "interests contains any ('NFL', 'NBA')",
            "interests contains all ('NFL', 'film')",
            "interests contains none ('NFL')",
            "interests is null",
            "user.sizes contains any (2, 7)",
            "user.sizes contains any (1) and interests = 'film'",
        ],
    ),
    "map": Case(
        "id long, labels map<string, string>, counts map<string, long>",
        [
            {"labels": {"team": "red", "a.b": "x"}, "counts": {"n": 3}},
            {"labels": {"team": "blue"}, "counts": {}},
            {"labels": None, "counts": {"n": None}},
        ],
        ["labels.team = 'red'", "labels.a.b = 'x'", "counts.n > 2", "counts.n is null", "not labels.team = 'red'"],
    ),
    "times": Case(
        "id long, at timestamp, day date, naive timestamp_ntz",
        [
            {
                "at": dt.datetime(2026, 1, 31, 12, tzinfo=UTC),
                "day": dt.date(2026, 1, 31),
                "naive": dt.datetime(2026, 1, 31, 12),
            },
            {
                "at": dt.datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC),
                "day": dt.date(1969, 12, 31),
                "naive": dt.datetime(1960, 2, 29, 23, 59, 59),
            },
            {},
        ],
        [
            "at = timestamp '2026-01-31 12:00:00Z'",
            "at > timestamp '2026-01-31 12:00:00Z'",
            "day >= date '2026-01-31'",
            "day < date '1970-01-01'",
            "naive = timestamp '2026-01-31 12:00:00Z'",
            "naive < date '1960-03-01'",
        ],
    ),
    "Booleans": Case(
        "id long, paid boolean, flag boolean",
        [{"paid": True, "flag": False}, {"paid": False, "flag": None}, {}],
        ["paid", "not paid", "paid = true and flag = false", "flag is null", "paid = 1"],
    ),
    "numbers": Case(
        "id long, b byte, s short, i int, n long, f float, d double",
        [
            {"b": 1, "s": 2, "i": 3, "n": 2**53 + 1, "f": 0.5, "d": 0.1},
            {"b": -128, "s": -1, "i": -(2**31), "n": -(2**63), "f": float("nan"), "d": float("nan")},
            {"b": 0, "s": 0, "i": 0, "n": 2**63 - 1, "f": -0.0, "d": float("inf")},
            {},
        ],
        [
            "b = 1",
            "b <= 0 and s <= 0 and i <= 0",
            f"n = {2**53 + 1}",
            f"n >= {2**63 - 1}",
            "n = -9223372036854775808",
            "f = 0",
            "f is null and d is null",
            "d > 1e300",
            "d = 0.1",
            "i != 3",
        ],
    ),
}


def frame(session: Any, case: Case) -> tuple[Any, list[dict[str, Any]]]:
    """The events as a DataFrame of several partitions, and as dicts with their `id`."""
    rows = [{"id": i, **event} for i, event in enumerate(case.events)]
    schema = session.createDataFrame([], case.schema).schema
    complete = [tuple(row.get(name) for name in schema.names) for row in rows]
    return session.createDataFrame(complete, schema).repartition(3), rows


@pytest.mark.parametrize("name", CASES)
def test_spark_equals_local(name: str, session: Any, snapshot: Any) -> None:
    case = CASES[name]
    matcher, path = snapshot((f"r{i}", text) for i, text in enumerate(case.rules))
    events, rows = frame(session, case)
    expected = {(r["event"], r["rule"]) for r in matcher.match_batch(rows).to_pylist()}
    assert expected, "a case that matches nothing tests nothing"

    exploded = spark.match(events, path, keep=["id"]).collect()
    assert sorted((r.id, r.rule) for r in exploded) == sorted(expected)

    arrays = spark.match(events, path, output="array", keep=["id"]).collect()
    assert sorted(r.id for r in arrays) == [row["id"] for row in rows]
    assert {(r.id, rule) for r in arrays for rule in r.rules} == expected


def test_every_column_is_kept_by_default(session: Any, snapshot: Any) -> None:
    case = CASES["struct"]
    _, path = snapshot([("old enough", "user.age >= 18")])
    events, _ = frame(session, case)
    answer = spark.match(events, path)
    assert answer.columns == ["id", "user", "rule"]
    (row,) = answer.collect()
    assert row.asDict(recursive=True) == {
        "id": 0,
        "user": {"age": 20, "country": "US", "unused": None},
        "rule": "old enough",
    }


def test_rules_of_one_event_stand_in_the_order_they_were_added(session: Any, snapshot: Any) -> None:
    ids = ["z", "a", "m", "b"]
    _, path = snapshot((i, "x >= 0") for i in ids)
    events = session.createDataFrame([(1,), (2,)], "x long")
    assert [r.rules for r in spark.match(events, path, output="array").collect()] == [ids, ids]
    exploded = spark.match(events.coalesce(1), path).collect()
    assert [(r.x, r.rule) for r in exploded] == [(x, i) for x in (1, 2) for i in ids]


def test_integer_ids(session: Any, snapshot: Any) -> None:
    _, path = snapshot([(7, "x = 1"), (2**40, "x >= 1")])
    events = session.createDataFrame([(1,), (2,), (0,)], "x long")
    exploded = spark.match(events, path)
    assert exploded.schema["rule"].dataType.simpleString() == "bigint"
    assert {(r.x, r.rule) for r in exploded.collect()} == {(1, 7), (1, 2**40), (2, 2**40)}
    arrays = spark.match(events, path, output="array").collect()
    assert sorted((r.x, r.rules) for r in arrays) == [(0, []), (1, [7, 2**40]), (2, [2**40])]


def test_empty_partitions_and_no_events_at_all(session: Any, snapshot: Any) -> None:
    _, path = snapshot([("r", "x = 1")])
    events = session.createDataFrame([(1,), (2,)], "x long")
    assert [r.rule for r in spark.match(events.repartition(8), path).collect()] == ["r"]
    for output in ("exploded", "array"):
        assert spark.match(events.where("x > 5"), path, output=output).count() == 0


def test_absence_holds_where_no_column_is_named(session: Any, snapshot: Any, caplog: pytest.LogCaptureFixture) -> None:
    _, path = snapshot([("r", "other is null"), ("never", "other = 1")])
    events = session.createDataFrame([(1,), (2,)], "x long")
    with caplog.at_level("WARNING", logger="eligo.spark"):
        rows = spark.match(events, path, keep=[]).collect()
    assert [r.rule for r in rows] == ["r", "r"]
    assert "other" in caplog.text
    assert "absent" in caplog.text


def test_more_matches_than_one_outgoing_batch_holds(session: Any, snapshot: Any) -> None:
    _, path = snapshot((i, f"x >= {i % 3}") for i in range(300))
    events = session.range(1000).selectExpr("id as x", "repeat('long text ', 3) as text")
    rows = spark.match(events, path)
    assert rows.count() == 100 * (1000 + 999 + 998)
    assert rows.where("text != 'long text long text long text '").count() == 0


def test_an_instant_is_the_same_in_every_session_time_zone(session: Any, snapshot: Any) -> None:
    _, path = snapshot([("r", "at = timestamp '2026-07-01 12:00:00Z'")])
    events = session.createDataFrame([(dt.datetime(2026, 7, 1, 12, tzinfo=UTC),)], "at timestamp")
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert spark.match(events, path).selectExpr("rule", "unix_seconds(at) as s").collect() == [("r", 1782907200)]
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")


def test_a_setting_that_makes_arrays_slow_is_warned_of_once(
    session: Any, snapshot: Any, caplog: pytest.LogCaptureFixture
) -> None:
    name = "spark.sql.execution.arrow.maxBytesPerBatch"
    _, path = snapshot([("r", "x contains any (1)")])
    events = session.createDataFrame([([1], "a")], "x array<int>, city string")
    before = session.conf.get(name)
    with caplog.at_level("WARNING", logger="eligo.spark"):
        spark.match(events, path)
        assert name not in caplog.text
        session.conf.set(name, "64MB")
        try:
            spark.match(events.selectExpr("cast(null as int) as y"), path)
            assert name not in caplog.text
            for _ in range(2):
                spark.match(events, path, keep=["city"])
        finally:
            session.conf.set(name, before)
    assert caplog.text.count(f"{name} is 64MB") == 1
