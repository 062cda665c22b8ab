"""Events that are JSON texts in a column: the answers of a matcher for the decoded events, batch and stream."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.functions import pandas_udf

import eligo
from eligo import EligoError, OptionError, spark
from eligo.spark import sql

pytestmark = pytest.mark.spark

RULES = [
    ("adult", "age >= 18", 3.0, ["one"]),
    ("young", "not age >= 18", 2.0, ["one"]),
    ("path", "user.name like 'a%'", 5.0, ["two"]),
    ("list", "tags contains any ('x')", 1.0, ["two"]),
    ("absent", "user.name is null", 4.0, ["one"]),
]
TEXTS = [
    '{"age": 20, "user": {"name": "ann"}}',
    '{"age": 7, "tags": ["y", "x"]}',
    "{broken",
    None,
    '{"age": [20], "user": {"name": "ann"}}',  # a list, and no rule uses `contains` on it
    '[{"age": 20}]',
    "{}",
    '{"age": "20", "user": {"name": ["ann"]}}',
]
BROKEN = 5
# A column that rules name as well: it is not what they look at.
SCHEMA = "id long, age long, value string"
WEIGHTS = {rule: weight for rule, _, weight, _ in RULES}


@pytest.fixture(scope="module")
def events(session: Any) -> Any:
    return session.createDataFrame([(i, 30, text) for i, text in enumerate(TEXTS)], SCHEMA).coalesce(1)


@pytest.fixture
def compiled(session: Any, tmp_path: Path) -> str:
    frame = session.createDataFrame(RULES, "id string, expression string, weight double, tags array<string>")
    path = str(tmp_path / "rules")
    assert spark.compile_rules(frame, path, shards=2).shards == 2
    return path


def expected(rules: Any = RULES, texts: Any = TEXTS, **options: Any) -> list[tuple[int, str]]:
    matcher = eligo.Matcher()
    matcher.add_many(sorted(rules))
    found = []
    for number, text in enumerate(texts):
        try:
            found += [(number, rule) for rule in matcher.match_json(text or "null", **options)]
        except eligo.EventError:
            continue
    return sorted(found)


def pairs(frame: Any) -> list[tuple[int, str]]:
    return sorted((row.id, row.rule) for row in frame.collect())


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_every_way_to_match(kind: str, session: Any, events: Any, compiled: str, tmp_path: Path) -> None:
    from pyspark.sql import Observation

    texts = events.withColumn("value", events.value.cast(kind))

    def counted(**options: Any) -> tuple[Any, Any]:
        seen = Observation(f"{kind} {options}")
        answer = spark.match(texts, compiled, json="value", observe=seen, **{"keep": ["id"], **options})
        assert not {name for name in answer.columns if name.startswith("eligo")}
        return answer, seen

    every = expected()
    assert {number for number, _ in every} == {0, 1, 6}
    best = []
    for number in (0, 1, 6):
        ranked = sorted((rule for event, rule in every if event == number), key=lambda rule: -WEIGHTS[rule])
        best += [(number, rule) for rule in ranked[:1]]
    for memory in (2 << 30, 1):  # all shards at once, or a pass over the events for each
        answer, seen = counted(memory=memory)
        assert pairs(answer) == every
        assert (seen.get["matches"], seen.get["set_aside"], seen.get["events_set_aside"]) == (len(every), 0, BROKEN)
        answer, seen = counted(memory=memory, top_k=1, key=["id"])
        assert pairs(answer) == best
        assert (seen.get["matches"], seen.get["events_set_aside"]) == (len(best), BROKEN)
        answer, seen = counted(memory=memory, output="array", key=["id"])
        rows = {row.id: sorted(row.rules) for row in answer.collect()}
        assert rows == {i: sorted(rule for event, rule in every if event == i) for i in range(len(TEXTS))}
        assert (seen.get["events"], seen.get["events_set_aside"]) == (len(TEXTS), BROKEN)
    assert pairs(spark.match(texts, compiled, json="value", tags=["two"])) == expected(tags=["two"])
    answer = spark.match(texts, compiled, json="value")
    assert answer.columns == ["id", "age", "value", "rule", "rules_version"]
    assert {row.value for row in answer.collect()} == {row.value for row in texts.where("id in (0, 1, 6)").collect()}

    texts.write.parquet(str(tmp_path / "events"))
    assert pairs(spark.match_files(tmp_path / "events", compiled, session=session, json="value")) == every
    spark.register(session)
    texts.createOrReplaceTempView("lines")
    table = f"SELECT * FROM eligo_match(TABLE(lines), '{compiled}', keep => 'id', json => 'value')"
    assert pairs(session.sql(table)) == every
    scalar = f"SELECT id, explode(eligo_rules('{compiled}', value)) AS rule FROM lines"
    assert pairs(session.sql(scalar)) == every
    session.udf.register("eligo_rules_40", pandas_udf(sql._of_pandas(sql.TEXTS), "array<string>"))  # as in Spark 4.0
    assert pairs(session.sql(scalar.replace("eligo_rules", "eligo_rules_40"))) == every
    with pytest.raises(PySparkException) as raised:
        session.sql(f"SELECT eligo_rules('{compiled}', id) FROM lines").collect()
    assert "the event is a struct" in spark.reason(raised.value)
    session.catalog.dropTempView("lines")


def test_nothing_but_the_text_and_kept_columns_is_sent(events: Any, compiled: str) -> None:
    plan = spark.match(events, compiled, json="value", keep=["id"])._jdf.queryExecution().optimizedPlan().toString()
    project = next(line for line in plan.splitlines() if "Project" in line)
    assert "age" not in project
    assert "value" in project


@pytest.mark.parametrize("index", ["auto", "be-tree"])
def test_plain_snapshots(index: str, events: Any, snapshot: Any) -> None:
    _, path = snapshot(RULES, index=index)
    assert pairs(spark.match(events, path, json="value")) == expected()


def test_every_shard_refuses_the_same_texts(session: Any, tmp_path: Path) -> None:
    """Though an attribute that makes one of them unusable is named by a rule of one shard alone."""
    from pyspark.sql import Observation

    rules = [(f"r{i}", f"age = {i} or n{i} = 1") for i in range(40)] + [("lone", "lone = 1")]
    path = str(tmp_path / "rules")
    frame = session.createDataFrame(rules, "id string, expression string")
    assert spark.compile_rules(frame, path, shards=2).shards == 2
    texts = [f'{{"age": {i}, "lone": [1]}}' for i in range(40)] + ['{"age": 7, "lone": 1}']
    events = session.createDataFrame(list(enumerate(texts)), "id long, value string").coalesce(1)
    for memory in (2 << 30, 1):
        seen = Observation(f"shards {memory}")
        found = spark.match(events, path, json="value", memory=memory, observe=seen)
        assert pairs(found) == expected(rules, texts) == [(40, "lone"), (40, "r7")]
        assert seen.get["events_set_aside"] == 40


def test_streams_take_up_what_later_rules_name(session: Any, compiled: str, tmp_path: Path) -> None:
    source = tmp_path / "lines"
    source.mkdir()
    lines = ['{"age": 20}', "broken", '{"age": 7, "new": {"name": 1}}']
    answer = spark.match(session.readStream.text(str(source)), compiled, json="value", observe="eligo")

    def next_batch() -> tuple[list[tuple[str, str, int]], Any]:
        found: list[Any] = []
        (source / f"{len(list(source.iterdir()))}.txt").write_text("\n".join(lines) + "\n")
        writer = answer.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        query = writer.start()
        assert query.awaitTermination(300)
        (seen,) = [one.observedMetrics["eligo"] for one in query.recentProgress if one.numInputRows]
        return sorted((row.value, row.rule, row.rules_version) for row in found), seen

    rows, seen = next_batch()
    assert rows == [
        (lines[0], "absent", 1), (lines[0], "adult", 1), (lines[2], "absent", 1), (lines[2], "young", 1),
    ]  # fmt: skip
    assert (seen.matches, seen.set_aside, seen.events_set_aside, seen.version_max) == (4, 0, 1, 1)
    changes = session.createDataFrame(
        [("newer", "new.name = 1", "put"), ("young", "", "remove")], "id string, expression string, change string"
    )
    spark.update_rules(compiled, changes)
    rows, seen = next_batch()
    assert rows == [
        (lines[0], "absent", 2), (lines[0], "adult", 2), (lines[2], "absent", 2), (lines[2], "newer", 2),
    ]  # fmt: skip
    assert (seen.matches, seen.set_aside, seen.events_set_aside, seen.version_max) == (4, 0, 1, 2)


def test_documents_are_asked(session: Any, tmp_path: Path) -> None:
    rules = [("dearer", "exists d (price > d.price)"), ("new", "not exists d (author = d.author)"), ("r", "r = 1")]
    path = str(tmp_path / "rules")
    spark.compile_rules(session.createDataFrame(rules, "id string, expression string"), path)
    documents = str(tmp_path / "documents")
    spark.compile_documents(session.createDataFrame([(3, "x"), (9, "y")], "price long, author string"), documents)
    texts = [
        '{"price": 4, "author": "x"}',
        "{broken",
        '{"author": "z", "r": 1}',
        '{"price": [[1]], "r": 1}',
        '{"price": [1, 5], "author": ["y", "z"]}',
    ]
    events = session.createDataFrame(list(enumerate(texts)), "id long, value string").coalesce(1)
    found = pairs(spark.match(events, path, json="value", documents=documents))
    seen = eligo.Documents()
    seen.add_many([{"price": 3, "author": "x"}, {"price": 9, "author": "y"}])
    matcher = eligo.Matcher(documents=seen)
    matcher.add_many(rules)
    table, rejects = matcher.match_ndjson("\n".join(texts).encode(), on_error="collect")
    assert found == sorted(zip(*table.to_pydict().values(), strict=True))
    assert [reject.row for reject in rejects] == [1, 3]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"json": 5}, OptionError, "json is a string such as 'value', not 5"),
        ({"json": ""}, OptionError, "json is a string such as 'value', not ''"),
        ({"json": "valu"}, EligoError, "json names 'valu', which is not a column of the DataFrame; did you mean 'val"),
        (
            {"json": "zzz"},
            EligoError,
            "json names 'zzz', which is not a column of the DataFrame; it has id, age, value",
        ),
        ({"json": "id"}, EligoError, "json names 'id', a column of type bigint, and JSON texts are strings or binary"),
        ({"json": "value", "columns": "all"}, OptionError, "columns='all' says .* with json='value' .* leave one"),
        ({"json": "value", "columns": "named"}, OptionError, "columns='named' says"),
    ],
)
def test_arguments_that_make_no_sense(
    options: dict[str, Any], kind: type[Exception], message: str, events: Any, snapshot: Any
) -> None:
    _, path = snapshot(RULES)
    with pytest.raises(kind, match=message):
        spark.match(events, path, **options)
    with pytest.raises(EligoError, match="two columns have that name: rename one"):
        spark.match(events.selectExpr("value", "value"), path, json="value", keep=[])
