"""An event of which an attribute cannot be asked stops nothing: for it the rules on that attribute are set aside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions

import eligo
from eligo import spark

pytestmark = pytest.mark.spark

EVENTS = [
    (1, '{"tags": "a", "n": 1}', None, None),
    (2, '{"tags": ["a"], "n": 1}', None, None),  # a list, of one value
    (3, '{"tags": "b", "list": [1, "a", true]}', None, None),
    (4, None, '{"j": 1}', "1"),  # m.k.j at k → j and as the key k.j
    (5, None, None, None),  # v.tags is made binary
    (6, '{"tags": ["x"], "list": [[1]]}', "{}", "1"),  # two attributes at once
]
FRAME = (
    "id",
    "if(id = 5, to_variant_object(named_struct('tags', X'00')), parse_json(v)) AS v",
    "map_filter(map('k', parse_json(k), 'k.j', parse_json(kj)), (key, value) -> value IS NOT NULL) AS m",
)
RULES = [
    ("tags", "v.tags = 'a'", 4.0),
    ("no tags", "v.tags is null", 4.0),
    ("or", "v.tags = 'a' or v.n = 1", 3.0),
    ("n", "v.n = 1", 2.0),
    ("list", "v.list contains any ('a')", 4.0),
    ("no list", "not v.list contains any (2)", 0.5),
    ("map", "m.k.j = 1", 4.0),
    ("no map", "m.k.j is null", 0.25),
    ("id", "id >= 1", 1.0),
]
FOUND = {
    1: ["tags", "or", "n", "no map", "id"],
    2: ["n", "no map", "id"],
    3: ["list", "no list", "no map", "id"],
    4: ["no tags", "id"],
    5: ["no map", "id"],
    6: ["map", "id"],
}
PARTIAL = 4  # 2, 4, 5 and 6
WEIGHTS = {rule: weight for rule, _, weight in RULES}
BEST = {event: sorted(rules, key=lambda rule: -WEIGHTS[rule])[:2] for event, rules in FOUND.items()}
PAIRS = sorted((event, rule) for event, rules in FOUND.items() for rule in rules)
BEST_PAIRS = sorted((event, rule) for event, rules in BEST.items() for rule in rules)
CHANGES = "id string, expression string, change string"


def rules_df(session: Any) -> Any:
    return session.createDataFrame(RULES, "id string, expression string, weight double")


def pairs(frame: Any) -> list[tuple[int, str]]:
    return sorted((row.id, row.rule) for row in frame.collect())


def by_event(frame: Any) -> dict[int, list[str]]:
    return {row.id: sorted(row.rules) for row in frame.collect()}


@pytest.fixture(scope="module")
def events(session: Any) -> Any:
    return session.createDataFrame(EVENTS, "id long, v string, k string, kj string").coalesce(1).selectExpr(*FRAME)


@pytest.mark.parametrize("kind", ["versions", "be-tree"])
def test_every_way_to_match_goes_on(kind: str, session: Any, events: Any, tmp_path: Path) -> None:
    """Of a rule set with versions, in two shards, and of rules that change in place."""
    from pyspark.sql import Observation

    path = str(tmp_path / "rules")
    if kind == "versions":
        made = spark.compile_rules(rules_df(session), path, shards=2)
        assert (made.rules, made.shards) == (len(RULES), 2)
    else:
        matcher = eligo.Matcher("be-tree")
        matcher.add_many(RULES)
        matcher.save(path)

    def counted(**options: Any) -> tuple[Any, Any]:
        seen = Observation(f"{kind} {options}")
        answer = spark.match(events, path, keep=["id"], observe=seen, **options)
        assert not {name for name in answer.columns if name.startswith("eligo")}
        return answer, seen

    answer, seen = counted()
    assert pairs(answer) == PAIRS
    assert (seen.get["matches"], seen.get["set_aside"], seen.get["events_set_aside"]) == (len(PAIRS), 0, PARTIAL)
    answer, seen = counted(top_k=2)
    assert pairs(answer) == BEST_PAIRS
    assert (seen.get["matches"], seen.get["events_set_aside"]) == (len(BEST_PAIRS), PARTIAL)
    answer, seen = counted(output="array")
    assert by_event(answer) == {event: sorted(rules) for event, rules in FOUND.items()}
    assert (seen.get["events"], seen.get["matches"], seen.get["events_set_aside"]) == (6, len(PAIRS), PARTIAL)
    if kind == "versions":  # a pass over the events for each shard
        for options, expected in (({}, PAIRS), ({"top_k": 2, "key": ["id"]}, BEST_PAIRS)):
            answer, seen = counted(memory=1, **options)
            assert pairs(answer) == expected
            assert (seen.get["matches"], seen.get["events_set_aside"]) == (len(expected), PARTIAL)

    whole = "spark.sql.variant.writeShredding.enabled"
    session.conf.set(whole, "false")
    try:
        events.write.parquet(str(tmp_path / "events"))
    finally:
        session.conf.unset(whole)
    assert pairs(spark.match_files(tmp_path / "events", path, session=session, keep=["id"])) == PAIRS
    spark.register(session)
    events.createOrReplaceTempView("partial")
    assert pairs(session.sql(f"SELECT * FROM eligo_match(TABLE(partial), '{path}', keep => 'id')")) == PAIRS
    if hasattr(functions, "arrow_udf"):
        scalar = f"SELECT id, explode(eligo_rules('{path}', struct(*))) AS rule FROM partial"
        assert pairs(session.sql(scalar)) == PAIRS


def test_text_that_is_none_and_days_too_far_away(session: Any, snapshot: Any) -> None:
    _, path = snapshot([("text", "t = 'a' or x > 0"), ("day", "d > date '2020-01-01'"), ("x", "x > 0")])
    events = session.sql(
        "SELECT id AS x, if(id = 2, cast(X'FF' AS string), 'a') AS t, "
        "if(id = 3, date_add(date '1970-01-01', 200000000), date '2026-01-31') AS d FROM range(1, 4)"
    )
    found = sorted((row.x, row.rule) for row in spark.match(events, path, keep=["x"]).collect())
    assert found == [(1, "day"), (1, "text"), (1, "x"), (2, "day"), (2, "x"), (3, "text"), (3, "x")]


def test_a_stream_goes_on_whatever_rules_come(session: Any, tmp_path: Path) -> None:
    path, folder = str(tmp_path / "rules"), tmp_path / "events"
    folder.mkdir()
    rules = [("tags", "v.tags = 'a'"), ("n", "v.n = 1")]
    spark.compile_rules(session.createDataFrame(rules, "id string, expression string"), path)
    stream = session.readStream.schema("id long, v string").json(str(folder)).selectExpr("id", "parse_json(v) AS v")
    answer = spark.match(stream, path, keep=["id"], observe="seen")

    def run(*changes: tuple[Any, ...]) -> tuple[list[tuple[int, str]], int]:
        """The matches of the next micro-batch, and of how many events something could not be asked."""
        if changes:
            spark.update_rules(path, session.createDataFrame(changes, CHANGES), compact=False)
        rows = [(1, '{"tags": ["a"], "n": 1}'), (2, '{"tags": ["b"]}'), (3, '{"tags": "a", "n": 2}')]
        session.createDataFrame(rows, "id long, v string").coalesce(1).write.mode("append").json(str(folder))
        found: list[Any] = []
        query = (
            answer.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        seen = query.lastProgress.observedMetrics["seen"]
        assert seen.matches == len(found)
        return sorted((row.id, row.rule) for row in found), seen.events_set_aside

    # The attribute is single-valued, and lists cannot be asked about it.
    assert run() == ([(1, "n"), (3, "tags")], 2)
    assert run(("tags", "v.tags contains any ('a')", "replace")) == ([(1, "n"), (1, "tags"), (3, "tags")], 0)
    # It stays multi-valued.
    assert run(("tags", "v.tags = 'a'", "replace")) == ([(1, "n"), (1, "tags"), (3, "tags")], 0)
    assert run(("tags", None, "remove")) == ([(1, "n")], 0)
