"""What callers get wrong is said in one sentence of our own, before any job runs; file: URLs are paths."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo import EligoError, OptionError, SnapshotError, spark

pytestmark = pytest.mark.spark


@pytest.fixture
def events(session: Any) -> Any:
    return session.createDataFrame([(1, 2)], "id int, x int")


@pytest.fixture(scope="module")
def written(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events in files."""
    folder: Path = tmp_path_factory.mktemp("arguments") / "events"
    session.createDataFrame([(1, 2)], "id int, x int").write.parquet(str(folder))
    return folder


@pytest.fixture
def rules(session: Any) -> Any:
    return session.createDataFrame([("r", "x = 2")], "id string, expression string")


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("output", "rows", "output is 'exploded' or 'array', not 'rows'"),
        ("output", None, "output is"),
        ("keep", "id", r"keep is a list of column names .*, not 'id'"),
        ("keep", 5, "keep is a list of column names .*, not 5"),
        ("keep", ["id", 5], r"keep is a list of column names .*, not \['id', 5\]"),
        ("keep", "column", "keep is a list of column names .*, not Column<'id'>"),
        ("keep", "columns", r"keep is a list of column names .*withColumn\), not \[Column<'id'>\]"),
        ("top_k", 1.5, "top_k is a whole number of 1 or more, not 1.5"),
        ("top_k", True, "top_k is a whole number"),
        ("top_k", "1", "top_k is a whole number"),
        ("tags", 5, "tags is a list of strings .*, not 5"),
        ("tags", [["eu"]], r"tags is a list of strings .*, not \[\['eu'\]\]"),
        ("version", "7", "version is a whole number of 1 or more, not '7'"),
        ("version", 0, "version is a whole number of 1 or more, not 0"),
        ("version_column", 5, "version_column is a string such as 'rules_version', not 5"),
        ("version_column", "", "version_column is a string such as 'rules_version', not ''"),
        ("columns", "some", "columns is 'named' or 'all', not 'some'"),
        ("key", [5], "key is a list of column names"),
        ("memory", "2g", "memory, in bytes, is a whole number of 1 or more, not '2g'"),
        ("memory", None, "memory, in bytes, is a whole number of 1 or more, not None"),
        ("observe", 5, "observe is a string such as 'eligo', not 5"),
        ("check", "no", "check is True or False, not 'no'"),
    ],
)
def test_match_says_what_is_wrong_with_an_argument(
    argument: str, value: Any, message: str, session: Any, events: Any, snapshot: Any, written: Path
) -> None:
    from pyspark.sql import functions as f

    _, path = snapshot([("r", "x = 2")])
    value = {"column": f.col("id"), "columns": [f.col("id")]}.get(value, value) if isinstance(value, str) else value
    with pytest.raises(EligoError, match=message):
        spark.match(events, path, **{argument: value})
    if argument != "columns":
        with pytest.raises(EligoError, match=message):
            spark.match_files(written, path, session=session, **{argument: value})


def test_arguments_are_taken_as_a_local_matcher_takes_them(session: Any, events: Any, tmp_path: Path) -> None:
    """Numbers of NumPy's, iterables that can be read once, one string of tags."""
    path = tmp_path / "rules"
    tagged = session.createDataFrame(
        [("r", "x = 2", ["eu"]), ("s", "x = 2", ["us"])], "id string, expression string, tags array<string>"
    )
    spark.compile_rules(tagged, path, shards=np.int64(2), shard_bytes=np.int32(1 << 20), units=np.uint8(1))
    found = spark.match(
        events, path, keep=(name for name in ["id"]), key=(name for name in ["id"]), tags="as; us", memory=1,
        top_k=2**70, version=np.int64(1), output="array", check=np.True_,
    )  # fmt: skip
    assert [(row.id, row.rules) for row in found.collect()] == [(1, ["s"])]


def test_tables_sessions_and_paths_of_other_kinds(session: Any, events: Any, rules: Any, tmp_path: Path) -> None:
    path = tmp_path / "rules"
    spark.compile_rules(rules, path)
    made = events.toPandas()
    wrong: Any = [
        (lambda: spark.match(made, path), "events_df is a DataFrame of Spark, not a pandas DataFrame.*createDataFrame"),
        (lambda: spark.match(None, path), "events_df is a DataFrame of Spark, not None"),
        (lambda: spark.match(path, events), "events_df is a DataFrame of Spark"),
        (lambda: spark.match(events, 5), "path of the rules is text or a pathlib.Path, not 5"),
        (lambda: spark.match(events, ""), "path of the rules is empty"),
        (lambda: spark.match(events, b"/tmp"), "path of the rules is text"),
        (lambda: spark.compile_rules("r", path), "rules_df is a DataFrame of Spark, not 'r'"),
        (lambda: spark.compile_rules(rules, None), "path of the rules is text"),
        (lambda: spark.compile_rules(rules, path, shards=True), "shards is a whole number"),
        (lambda: spark.compile_rules(rules, path, units="2"), "units is a whole number"),
        (lambda: spark.compile_rules(rules, path, shard_bytes=None), "shard_bytes is a whole number of 1 or more"),
        (lambda: spark.compile_rules(rules, path, on_error="ignore"), "on_error is 'collect' or 'raise'"),
        (lambda: spark.update_rules(rules, path), "path of the rules is text"),
        (lambda: spark.update_rules(path, [("r", "x = 3")]), "changes_df is a DataFrame of Spark"),
        (lambda: spark.update_rules(path, rules, compact="yes"), "compact is True or False, not 'yes'"),
        (lambda: spark.compact_rules(path, "session"), "session is a SparkSession, not 'session'"),
        (lambda: spark.observe(made, path), "events_df is a DataFrame of Spark"),
        (lambda: spark.versions(5), "path of the rules is text"),
        (lambda: spark.sweep(path, keep="2"), "keep is a whole number of 1 or more, not '2'"),
        (lambda: spark.sweep(path, grace=None), "grace is a number of seconds, 0 or more, not None"),
        (lambda: spark.register("session"), "session is a SparkSession"),
        (lambda: spark.match_files(5, path, session=session), "parquet_path is text or a pathlib.Path, not 5"),
        (lambda: spark.match_files([], path, session=session), "the list of them is empty"),
        (lambda: spark.match_files(tmp_path, path, session=5), "session is a SparkSession, not 5"),
        (lambda: spark.BatchWriter(5), "the target is text or a pathlib.Path, not 5"),
        (lambda: spark.BatchWriter(tmp_path, checkpoint=5), "the checkpoint is text"),
        (lambda: spark.BatchWriter(tmp_path, 5), "format is a string such as 'parquet', not 5"),
    ]  # fmt: skip
    for call, message in wrong:
        with pytest.raises(OptionError, match=message):
            call()


def test_file_urls_are_paths(session: Any, events: Any, rules: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a folder, 100% {rules}"
    url = folder.as_uri()
    assert url.startswith("file:///")
    assert "%20" in url
    assert spark.compile_rules(rules, url).version == 1
    assert spark.update_rules(url, rules, compact=False).version == 2
    assert spark.compact_rules(url, session).version == 3
    assert [one.version for one in spark.versions(url)] == [1, 2, 3]
    assert spark.match(events, url).count() == 1
    assert spark.match(events, f"file:{url.removeprefix('file://')}").count() == 1
    assert spark.match(events, url.replace("file://", "file://localhost")).count() == 1
    written = tmp_path / "some events"
    events.write.parquet(str(written))
    assert spark.match_files(written.as_uri(), url, session=session).count() == 1
    spark.register(session)
    events.createOrReplaceTempView("located")
    assert session.sql(f"SELECT * FROM eligo_match(TABLE(located), '{url}')").count() == 1
    (row,) = session.sql(f"SELECT eligo_rules('{url}@2', struct(*)) AS rules FROM located").collect()
    assert row.rules == ["r"]
    assert eligo.open(url).match({"x": 2}) == ["r"]
    plain = (tmp_path / "plain").as_uri()
    eligo.open(url).save(plain)
    assert eligo.open(plain).match({"x": 2}) == ["r"]
    spark.observe(events, url)
    assert spark.sweep(url, keep=1, grace=0) > 0
    assert not any(name.startswith("file:") for name in map(str, Path.cwd().iterdir()))
    assert spark.BatchWriter(url).folder == str(folder)
    assert spark.BatchWriter("s3a://bucket/x").folder is None


@pytest.mark.parametrize("url", ["s3://bucket/rules", "hdfs://host/rules", "dbfs:/rules", "S3A://b/r"])
def test_other_urls_are_refused_with_what_is_supported(url: str, events: Any, rules: Any) -> None:
    for call in (
        lambda: spark.match(events, url),
        lambda: spark.compile_rules(rules, url),
        lambda: spark.update_rules(url, rules),
        lambda: spark.versions(url),
        lambda: spark.sweep(url),
        lambda: eligo.open(url),
        lambda: eligo.Matcher().save(url),
    ):
        with pytest.raises(SnapshotError, match=r"is a URL, but rules are memory-mapped.*file:/// URL"):
            call()
    with pytest.raises(EligoError, match="is a URL; match_files reads"):
        spark.match_files(url, "/nowhere", session=events.sparkSession, check=False)
    with pytest.raises(OptionError, match="names the machine 'host'"):
        spark.match(events, "file://host/rules")


def test_a_reason_is_a_sentence(session: Any, events: Any, snapshot: Any) -> None:
    from pyspark.errors import PySparkException

    _, path = snapshot([("r", "id = 2")])
    planned = spark.match(events, path)
    shutil.rmtree(path)
    with pytest.raises(PySparkException) as raised:
        planned.collect()
    reason = spark.reason(raised.value)
    assert isinstance(reason, str)
    assert str(path) in reason
    assert "\n" not in reason
    with pytest.raises(PySparkException) as raised:
        events.selectExpr("raise_error('something else')").collect()
    assert "something else" in spark.reason(raised.value)
    assert "\n" not in spark.reason(raised.value)
    assert spark.reason(SnapshotError("there is nothing")) == "there is nothing"
    assert spark.reason(KeyboardInterrupt()) == "KeyboardInterrupt"
