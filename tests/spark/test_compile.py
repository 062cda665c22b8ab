"""compile_rules on Spark gives what Matcher.add_many gives for the same rows in the order of their ids."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo import EligoError, OptionError, RuleSyntaxError, RuleTypeError, SnapshotError, spark

pytestmark = pytest.mark.spark

SCHEMA = "id string, expression string, weight double, tags array<string>"


def some_rules(count: int, seed: int = 3) -> list[tuple[Any, ...]]:
    """Rules that share conjunctions and strings; some are broken, some ids come twice."""
    rng = random.Random(seed)
    rules: list[tuple[Any, ...]] = []
    for i in range(count):
        text = f"a = {rng.randrange(9)} and s in ('s{rng.randrange(30)}', 'é{rng.randrange(5)}')"
        if i % 3 == 0:
            text += f" or b > {rng.randrange(20)} and not (s like 's1%')"
        if i % 7 == 0:
            text += f" or many contains any ({rng.randrange(4)}, {rng.randrange(4)})"
        rules.append((f"r{i:04d}", text, float(rng.randrange(5)), [f"t{i % 3}"] if i % 4 else None))
    rules[5] = ("r0005", "a = and b", 1.0, None)
    rules[6] = (None, "a = 1", 1.0, None)
    rules[8] = ("r0008", None, 1.0, None)
    rules[9] = ("r0009", "exists d in received (d.a = a)", 1.0, None)
    rules[10] = ("r0010", "a = 1", float("nan"), None)
    rules.append(("r0002", "zz = 1", 1.0, None))
    return rules


def some_events(count: int, seed: int = 5) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [
        {"id": i, "a": rng.randrange(9), "b": rng.randrange(20), "s": f"s{rng.randrange(30)}",
         "many": [rng.randrange(4) for _ in range(rng.randrange(3))]}
        for i in range(count)
    ]  # fmt: skip


def as_matcher(rules: list[tuple[Any, ...]], **options: Any) -> tuple[eligo.Matcher, list[str]]:
    """The same rules in this process: nulls first, then by id, expression, …"""
    matcher = eligo.Matcher(**options)
    ordered = sorted(rules, key=lambda rule: (rule[0] or "", rule[1] or ""))
    return matcher, [str(reject.id) for reject in matcher.add_many(ordered, on_error="collect")]


def test_tags_in_one_string_are_those_that_a_matcher_reads(session: Any, tmp_path: Path) -> None:
    rules = [("a", "x = 1", "eu; us"), ("b", "x = 1", ""), ("c", "x = 1", '"]'), ("d", "x = 1", None)]
    frame = session.createDataFrame(rules, "id string, expression string, tags string")
    path = tmp_path / "rules"
    spark.compile_rules(frame, path)
    spark.update_rules(path, session.createDataFrame([("e", "x = 1", "uk;us")], frame.schema))
    opened, matcher = eligo.open(path), eligo.Matcher()
    matcher.add_many((rule, text, 1.0, tags) for rule, text, tags in [*rules, ("e", "x = 1", "uk;us")])
    assert {rule: opened.get(rule).tags for rule in opened} == {rule: matcher.get(rule).tags for rule in matcher}
    assert opened.match({"x": 1}, tags=["us"]) == ["a", "e"]


def matches(frame: Any) -> list[tuple[int, Any]]:
    return [(row["id"], row["rule"]) for row in frame.collect()]


@pytest.mark.parametrize(
    ("units", "shards", "index"),
    [(1, 1, "auto"), (3, 2, "k-index"), pytest.param(5, 4, "pst-hash", marks=pytest.mark.slow)],
)
def test_it_is_as_if_one_process_had_compiled_them(
    units: int, shards: int, index: str, session: Any, tmp_path: Path
) -> None:
    rules, events = some_rules(300), some_events(200)
    frame = session.createDataFrame(rules, SCHEMA).repartition(4)
    path = str(tmp_path / "rules")
    done = spark.compile_rules(frame, path, units=units, shards=shards, index=index)
    whole, refused = as_matcher(rules)
    assert (done.version, done.parent, done.rules, done.rejected) == (1, 0, len(whole), 6)
    rejects = done.rejects(session).collect()
    assert sorted(str(row.id) for row in rejects) == sorted(refused)
    assert {row.id: row.position for row in rejects}["r0005"] == 4

    opened = eligo.open(path)
    assert list(opened) == list(whole)
    assert opened.attributes
    assert set(opened.attributes) == set(whole.attributes)
    assert opened.multi == {"many"}
    assert [opened.match(event) for event in events] == [whole.match(event) for event in events]
    assert opened.get("r0011") == whole.get("r0011")

    answer = spark.match(session.createDataFrame(events), path, keep=["id"])
    assert answer.columns == ["id", "rule", "rules_version"]
    table = whole.match_batch(events)
    wanted = list(zip(table["event"].to_pylist(), table["rule"].to_pylist(), strict=True))
    assert sorted(matches(answer)) == sorted(wanted)
    assert {row.rules_version for row in answer.select("rules_version").distinct().collect()} == {1}


@pytest.fixture(scope="module")
def shared(session: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, eligo.Matcher, list[dict[str, Any]]]:
    """A rule set of four shards, the same as a matcher, and events."""
    rules = some_rules(400)
    path = str(tmp_path_factory.mktemp("shared") / "rules")
    done = spark.compile_rules(session.createDataFrame(rules, SCHEMA), path, shards=4)
    assert done.shards == 4
    return path, as_matcher(rules)[0], some_events(150)


@pytest.mark.parametrize("memory", [1 << 30, 1])
def test_shards_in_one_pass_or_one_after_another(memory: int, session: Any, shared: Any) -> None:
    path, whole, events = shared
    frame = session.createDataFrame(events).repartition(3)
    exploded = matches(spark.match(frame, path, keep=["id"], memory=memory))
    assert sorted(exploded) == sorted((i, rule) for i, event in enumerate(events) for rule in whole.match(event))
    arrays = spark.match(frame, path, keep=["id", "a"], output="array", memory=memory, key=["id"], version_column=None)
    assert arrays.columns == ["id", "a", "rules"]
    assert {row.id: row.rules for row in arrays.collect()} == {i: whole.match(event) for i, event in enumerate(events)}
    best = spark.match(frame, path, keep=["id"], output="array", memory=memory, key="id", top_k=3, tags=["t1"])
    assert {row.id: list(zip(row.rules, row.weights, strict=True)) for row in best.collect()} == {
        i: whole.top(event, 3, tags=["t1"]) for i, event in enumerate(events)
    }
    rows = spark.match(frame, path, keep=["id"], memory=memory, key=["id"], top_k=2).collect()
    assert sorted((row.id, row.rule, row.weight) for row in rows) == sorted(
        (i, *found) for i, event in enumerate(events) for found in whole.top(event, 2)
    )


def test_one_row_an_event_of_passes_needs_a_key(session: Any, shared: Any) -> None:
    path, _, events = shared
    frame = session.createDataFrame(events)
    with pytest.raises(OptionError, match=r"key=\[…\]"):
        spark.match(frame, path, output="array", memory=1)
    with pytest.raises(OptionError, match="memory, in bytes, is a whole number of 1 or more"):
        spark.match(frame, path, memory="2g")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="not among the kept columns"):
        spark.match(frame, path, output="array", memory=1, keep=["id"], key=["a"])
    with pytest.raises(Exception, match="does not tell events apart"):
        spark.match(frame, path, output="array", memory=1, key=["a"]).collect()


def test_one_tag_may_be_a_string(session: Any, shared: Any) -> None:
    path, whole, events = shared
    found = spark.match(session.createDataFrame(events), path, keep=["id"], tags="t1")
    assert found.count() == whole.match_batch(events, tags=["t1"]).num_rows > 0


def test_counts_can_be_observed(session: Any, shared: Any) -> None:
    from pyspark.sql import Observation

    path, whole, events = shared
    seen = Observation("eligo")
    spark.match(session.createDataFrame(events), path, output="array", observe=seen).write.format("noop").mode(
        "overwrite"
    ).save()
    table = whole.match_batch(events)
    assert seen.get == {
        "events": len(events),
        "matches": table.num_rows,
        "version_min": 1,
        "version_max": 1,
        "set_aside": 0,
        "events_set_aside": 0,
    }


def test_integer_ids_and_a_second_version(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rules")
    events = session.createDataFrame([(1,), (2,)], "x int")
    spark.compile_rules(session.createDataFrame([(7, "x = 1"), (-1, "x >= 1")], "id int, expression string"), path)
    planned = spark.match(events, path)
    assert planned.schema["rule"].dataType.simpleString() == "bigint"
    second = spark.compile_rules(session.createDataFrame([(7, "x = 2")], "id long, expression string"), path)
    assert (second.version, second.parent, second.rules) == (2, 1, 1)
    # A query keeps the version it was planned with; a new one takes the newest, or the one it names.
    assert sorted((r.x, r.rule, r.rules_version) for r in planned.collect()) == [(1, -1, 1), (1, 7, 1), (2, -1, 1)]
    assert [(r.x, r.rule, r.rules_version) for r in spark.match(events, path).collect()] == [(2, 7, 2)]
    assert spark.match(events, path, version=1).count() == 3
    assert [v.version for v in spark.versions(path)] == [1, 2]
    assert list(eligo.open(path, version=1)) == [-1, 7]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("id string, rule string", "missing expression; it has id, rule"),
        ("id string, expresion string", "did you mean 'expresion'"),
        ("rule_id string, expression string", "missing id"),
        ("id double, expression string", "cast it to string or bigint"),
        ("id string, expression int", "cast it to string"),
        ("id string, expression string, weight string", "cast it to double"),
        ("id string, expression string, tags array<int>", "array of strings"),
    ],
)
def test_columns_that_are_refused(schema: str, message: str, session: Any, tmp_path: Path) -> None:
    with pytest.raises(RuleTypeError, match=message):
        spark.compile_rules(session.createDataFrame([], schema), str(tmp_path / "rules"))
    assert not (tmp_path / "rules").exists()


def test_what_publishes_nothing(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "rules"

    def compiling(rows: list[tuple[Any, ...]], **options: Any) -> Callable[[], Any]:
        frame = session.createDataFrame(rows, "id string, expression string")
        return lambda: spark.compile_rules(frame, str(path), **options)

    for attempt, kind, message in (
        (
            compiling([("a", "x = 1"), ("b", "x =")], on_error="raise"),
            RuleSyntaxError,
            "1 of 2 rules were rejected.*'b'",
        ),
        (compiling([("a", "x =")]), RuleSyntaxError, "nothing was published"),
        (compiling([]), RuleTypeError, "empty"),
        (compiling([("a", "x = 1")], index="b-tree"), EligoError, "b-tree"),
        (compiling([("a", "x = 1")], shards=0), OptionError, "shards"),
        (compiling([("a", "x = 1")], on_error="ignore"), OptionError, "on_error"),
    ):
        with pytest.raises(kind, match=message):
            attempt()
    with pytest.raises(SnapshotError):
        eligo.open(path)
    assert not list(path.glob("staging/*"))
    assert not list(path.glob("data/*"))
    compiling([("a", "x = 1"), ("b", "x ="), ("a", "x = 2")])()
    assert len(eligo.open(path)) == 1


def test_a_path_that_cannot_be_used(session: Any, tmp_path: Path) -> None:
    frame = session.createDataFrame([("a", "x = 1")], "id string, expression string")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(SnapshotError, match=r"thesis\.txt"):
        spark.compile_rules(frame, str(tmp_path / "other"))
    with pytest.raises(SnapshotError, match="URL"):
        spark.compile_rules(frame, "s3://bucket/rules")


def test_a_folder_that_is_made_anew_is_another_rule_set(session: Any, tmp_path: Path) -> None:
    """Workers live on, and its first version has the number that the old one had."""
    path = tmp_path / "rules"
    events = session.createDataFrame([(1,)], "x int")
    for name in ("old", "new"):
        shutil.rmtree(path, ignore_errors=True)
        spark.compile_rules(session.createDataFrame([(name, "x = 1")], "id string, expression string"), str(path))
        planned = spark.match(events, path)
        assert [row.rule for row in planned.collect()] == [name]
    shutil.rmtree(path)
    spark.compile_rules(session.createDataFrame([("third", "x = 1")], "id string, expression string"), str(path))
    with pytest.raises(Exception, match="is not the one this query was planned with"):
        planned.collect()


def test_compiling_again_heals(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "rules"
    rules = session.createDataFrame([("r", "x = 1"), ("s", "y = 'a'")], "id string, expression string")
    spark.compile_rules(rules, str(path))

    def flip(file: Path) -> None:
        raw = bytearray(file.read_bytes())
        middle = len(raw) // 2
        raw[middle : middle + 64] = bytes(byte ^ 1 for byte in raw[middle : middle + 64])  # more than a gap of arrays
        file.write_bytes(raw)

    for number, damage in enumerate(("data/segment-*", "data/strings-*", "CURRENT", "versions/*"), 2):
        flip(sorted(path.glob(damage))[-1])
        with pytest.raises(SnapshotError):
            spark.match(session.createDataFrame([(1,)], "x int"), path)
        assert spark.compile_rules(rules, str(path)).version == number
        assert eligo.open(path).match({"x": 1, "y": "a"}) == ["r", "s"]


def test_text_that_is_no_unicode_is_rejected(session: Any, tmp_path: Path) -> None:
    rows = (
        "select 'a' id, cast(X'78FF' as string) expression union all select cast(X'FE' as string), 'x = 1' union all "
    )
    done = spark.compile_rules(session.sql(rows + "select 'good', 'x = 2'"), str(tmp_path / "rules"))
    assert (done.rules, done.rejected) == (1, 2)
    messages = " ".join(row.message for row in done.rejects(session).collect())
    assert "no valid UTF-8" in messages
    assert "string or an integer" in messages


def test_a_stream_is_no_table(session: Any, tmp_path: Path) -> None:
    stream = session.readStream.format("rate").load().selectExpr("value as id", "'x = 1' as expression")
    with pytest.raises(RuleTypeError, match="not from a stream"):
        spark.compile_rules(stream, str(tmp_path / "rules"))
