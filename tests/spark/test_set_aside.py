"""A rule that cannot be asked of these events stops nothing: it is set aside, counted and named; removing it heals."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo import spark
from eligo.compile.strings import Strings
from eligo.spark.worker_cache import facts
from eligo.store.opening import open_held

pytestmark = pytest.mark.spark

SCHEMA = (
    "id int, x int, raw binary, list array<int>, s struct<a: int, b: struct<c: int>>, m map<string, binary>, `s.a` int, "
    "matrix array<array<int>>"
)
ROWS = [(1, 1, b"1", [1], (1, (2,)), {"k": b"1"}, None, [[1]]), (2, 2, None, [], None, None, None, None)]
GOOD = [("one", "x = 1"), ("deep", "s.b.c = 2"), ("absent", "nowhere is null"), ("struct", "s is not null and x = 1")]
BAD = [
    ("raw", "raw is null", "'raw' is a column of type binary"),
    ("or", "x >= 1 or raw = 'a'", "'raw' is a column of type binary"),
    ("list", "list = 1", "multi=['list']"),
    ("matrix", "matrix is not null and x = 1", "'matrix' is a column of type array<array<int>>"),
    ("map", "m.k = 'a'", "'m.k' is a column of type binary"),
    ("twice", "s.a = 1", "'s.a' is there more than once, as s.a and s → a"),
]
CHANGES = "id string, expression string, change string"
FOUND = [(1, "absent"), (1, "deep"), (1, "one"), (1, "struct"), (2, "absent")]
Published = Callable[..., str]


def rules_df(session: Any, rules: list[tuple[Any, ...]]) -> Any:
    return session.createDataFrame([rule[:2] for rule in rules], "id string, expression string")


def pairs(frame: Any) -> list[tuple[int, str]]:
    return sorted((row.id, row.rule) for row in frame.collect())


@pytest.fixture
def events(session: Any, tmp_path: Path) -> Any:
    session.createDataFrame(ROWS, SCHEMA).coalesce(1).write.parquet(str(tmp_path / "events"))
    return session.read.parquet(str(tmp_path / "events"))


@pytest.mark.parametrize("kind", ["versions", "shared", "segments", "be-tree"])
def test_every_way_to_match_goes_on(
    kind: str, session: Any, events: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a rule set with versions, also one whose trees name parts; of snapshots, also one that changes in place."""
    path = str(tmp_path / "rules")
    if kind in ("versions", "shared"):
        evaluator = "shared" if kind == "shared" else "interval"
        spark.compile_rules(rules_df(session, [*GOOD, *BAD]), path, evaluator=evaluator, shards=2)
    else:
        matcher = eligo.Matcher("be-tree" if kind == "be-tree" else "auto")
        matcher.add_many([rule[:2] for rule in [*GOOD, *BAD]])
        matcher.save(path)
    with caplog.at_level(logging.WARNING, "eligo.spark"):
        from pyspark.sql import Observation

        seen = Observation("seen")
        assert pairs(spark.match(events, path, observe=seen)) == FOUND
    (warning,) = [record.getMessage() for record in caplog.records if "set aside" in record.getMessage()]
    assert seen.get["set_aside"] == len(BAD)
    assert f"{len(BAD)} of {len(GOOD) + len(BAD)} rules cannot be asked" in warning
    assert all(rule in warning for rule in ("'list'", "'map'", "'raw'"))
    for _, _, reason in BAD[:5]:
        assert reason in warning
    if kind == "shared":
        return
    assert pairs(spark.match_files(tmp_path / "events", path, session=session)) == FOUND
    spark.register(session)
    events.createOrReplaceTempView("poisoned")
    assert pairs(session.sql(f"SELECT * FROM eligo_match(TABLE(poisoned), '{path}')")) == FOUND
    exploded = session.sql(f"SELECT id, explode(eligo_rules('{path}', struct(*))) AS rule FROM poisoned")
    assert pairs(exploded) == FOUND


def test_removing_the_rule_heals(session: Any, events: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = str(tmp_path / "rules")
    spark.compile_rules(rules_df(session, GOOD), path)
    before = facts(path, None, False).attributes

    def change(*rows: tuple[Any, ...]) -> None:
        spark.update_rules(path, session.createDataFrame(rows, CHANGES), compact=False)

    # Beside a good one, so that what is left of the delta is not merged away.
    change(("bad", "raw = 'only here'", "put"), ("fine", "x = 2", "put"), ("fine too", "x = 2", "put"))
    assert pairs(spark.match(events, path)) == sorted([*FOUND, (2, "fine"), (2, "fine too")])
    assert "raw" in facts(path, None, False).attributes
    change(("bad", None, "remove"), ("fine too", "x = 3", "replace"))
    assert set(facts(path, None, False).attributes) == set(before)
    caplog.clear()
    assert pairs(spark.match(events, path)) == sorted([*FOUND, (2, "fine")])
    assert "set aside" not in caplog.text
    assert facts(path, None, False).attributes.count("x") == 1
    spark.compact_rules(path, session)
    opened = open_held(path)
    assert set(opened.content.attributes) == set(before)
    strings: Strings = opened.engine.rules.recipe.strings
    assert "only here" not in list(strings)
    assert pairs(spark.match(events, path)) == sorted([*FOUND, (2, "fine")])
    assert opened.content.naming == {"x": 4, "s": 1, "s.b.c": 1, "nowhere": 1}


def test_the_counts_of_rules_by_attribute_are_exact(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rules")
    spark.compile_rules(
        rules_df(session, [(f"r{i}", f"x = {i} or (x = 50 and y > {i})") for i in range(40)]), path, shards=3
    )
    frame = session.createDataFrame
    spark.update_rules(
        path, frame([(f"r{i}", "z contains any (1)", "put") for i in range(30, 50)], CHANGES), compact=False
    )
    spark.update_rules(path, frame([(f"r{i}", None, "remove") for i in range(10, 45)], CHANGES), compact=False)
    expected = {"x": 10, "y": 10, "z": 5}
    assert open_held(path).content.naming == expected
    spark.compact_rules(path, session)
    assert open_held(path).content.naming == expected
    spark.update_rules(
        path, frame([(f"r{i}", None, "remove") for i in (*range(10), *range(45, 50))], CHANGES), compact=True
    )
    content = open_held(path).content
    assert (content.naming, content.attributes, content.rules) == ({}, (), 0)


def test_a_stream_goes_on_whatever_rules_come(session: Any, tmp_path: Path) -> None:
    path, folder = str(tmp_path / "rules"), tmp_path / "events"
    folder.mkdir()
    spark.compile_rules(rules_df(session, [*GOOD, ("tags", "list contains any (1)")]), path)
    stream = session.readStream.schema(SCHEMA).parquet(str(folder))
    answer = spark.match(stream, path, keep=["id"], output="array", observe="seen")
    assert answer.columns == ["id", "rules", "rules_version"]

    def run(*changes: tuple[Any, ...]) -> tuple[list[str], int]:
        """What event 1 matches in the next micro-batch, and how many rules it finds set aside."""
        if changes:
            spark.update_rules(path, session.createDataFrame(changes, CHANGES), compact=False)
        session.createDataFrame(ROWS, SCHEMA).coalesce(1).write.mode("append").parquet(str(folder))
        found: list[Any] = []
        query = (
            answer.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        assert {row.id: row.rules for row in found}[2] == ["absent"]
        return sorted({row.id: row.rules for row in found}[1]), query.lastProgress.observedMetrics["seen"].set_aside

    good = ["absent", "deep", "one", "struct"]
    assert run() == ([*good, "tags"], 0)
    found, aside = run(*((rule, text, "put") for rule, text, _ in BAD))
    assert (found, aside) == (sorted([*good, "list", "tags"]), len(BAD) - 1)
    # `list` stays multi-valued, and its rules can be asked about the array that the stream sends.
    assert run(("tags", None, "remove")) == (sorted([*good, "list"]), len(BAD) - 1)
    assert run(*((rule, None, "remove") for rule, _, _ in BAD)) == (good, 0)
