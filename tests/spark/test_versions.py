"""A stream takes up new versions between micro-batches, never within one, and never goes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo import SnapshotError, spark
from eligo.spark.changes import apply_rows
from eligo.spark.update import publish_changes

pytestmark = pytest.mark.spark


def compiled(session: Any, path: str, rules: list[tuple[Any, str]]) -> None:
    spark.compile_rules(session.createDataFrame(rules, "id string, expression string"), path)


@contextmanager
def publishing_markers(path: str, versions: int, every: float) -> Iterator[threading.Thread]:
    """Beside: version v has the rule m<v> instead of m<v-1>, so a row tells which version it should have."""

    def publish() -> None:
        for version in range(2, versions + 1):
            rows = [(f"m{version - 1}", None, None, None, "remove"), (f"m{version}", "x >= 0", 1.0, None, "add")]
            publish_changes(path, lambda v, folder, rows=rows: apply_rows(path, v, folder, rows))  # type: ignore[misc]
            time.sleep(every)

    thread = threading.Thread(target=publish)
    thread.start()
    yield thread
    thread.join()


def run_under_publications(
    session: Any, tmp_path: Path, files: int, rows: int, versions: int, every: float
) -> list[list[Any]]:
    """Run a stream of files while versions are published; for each batch its rows (x, rule, rules_version)."""
    path = str(tmp_path / "rules [1]{a}")  # letters that mean something to Spark
    compiled(session, path, [("m1", "x >= 0"), *((f"r{i}", f"x = {i}") for i in range(50))])
    source = tmp_path / "events"
    session.range(files * rows).selectExpr("id as x").repartition(files).write.parquet(str(source))
    stream = session.readStream.schema("x long").option("maxFilesPerTrigger", 1).parquet(str(source))
    batches: list[list[Any]] = []

    def keep(frame: Any, number: int) -> None:
        assert number == len(batches)
        batches.append(frame.where("rule like 'm%'").collect())

    answer = spark.match(stream, path)
    with publishing_markers(path, versions, every) as publisher:
        query = answer.writeStream.foreachBatch(keep).trigger(availableNow=True).start()
        query.awaitTermination(300)
    publisher.join()
    # One more batch: the last version is reached.
    last = session.readStream.schema("x long").parquet(str(source))
    query = spark.match(last, path).writeStream.foreachBatch(lambda frame, _: keep(frame, len(batches)))
    query.trigger(availableNow=True).start().awaitTermination(120)
    assert len(eligo.open(path)) == 51
    return batches


def check(batches: list[list[Any]], files: int, rows: int, last: int) -> int:
    """Every event has the marker of its version, a batch has one version, versions rise, the last one is reached."""
    assert len(batches) == files + 1
    assert sorted(row.x for batch in batches[:-1] for row in batch) == list(range(files * rows))
    seen = []
    for batch in batches:
        assert {row.rule for row in batch} == {f"m{batch[0].rules_version}"}
        (version,) = {row.rules_version for row in batch}
        seen.append(version)
    assert seen == sorted(seen)
    assert seen[-1] == last
    return len(set(seen))


def test_versions_come_between_batches(session: Any, tmp_path: Path) -> None:
    batches = run_under_publications(session, tmp_path, files=8, rows=40, versions=12, every=0.3)
    assert check(batches, 8, 40, 12) >= 3


@pytest.mark.slow
def test_a_hundred_versions_under_load(session: Any, tmp_path: Path) -> None:
    batches = run_under_publications(session, tmp_path, files=60, rows=20_000, versions=100, every=0.3)
    assert check(batches, 60, 20_000, 100) >= 20


def test_a_version_that_asks_for_a_column_which_is_not_sent(session: Any, tmp_path: Path) -> None:
    path, source = str(tmp_path / "rules"), str(tmp_path / "events")
    compiled(session, path, [("r", "x = 1")])
    session.createDataFrame([(1, "a"), (2, "b")], "x int, city string").write.parquet(source)
    stream = session.readStream.schema("x int, city string").parquet(source)
    narrow = spark.match(stream, path, columns="named")
    wide = spark.match(stream, path)
    changes = session.createDataFrame([("s", "city = 'b' and country is null")], "id string, expression string")
    spark.update_rules(path, changes)
    found: list[Any] = []
    query = wide.writeStream.foreachBatch(lambda frame, _: found.extend(frame.collect())).trigger(availableNow=True)
    query.start().awaitTermination(120)
    assert sorted((row.x, row.rule, row.rules_version) for row in found) == [(1, "r", 2), (2, "s", 2)]
    query = narrow.writeStream.format("noop").trigger(availableNow=True).start()
    with pytest.raises(Exception, match="looks at 'city'") as failed:
        query.awaitTermination(120)
    assert isinstance(spark.reason(failed.value), SnapshotError)


def test_a_stream_may_stay_with_one_version(session: Any, tmp_path: Path) -> None:
    path, source = str(tmp_path / "rules"), str(tmp_path / "events")
    compiled(session, path, [("r", "x = 1")])
    session.createDataFrame([(1,), (2,)], "x int").write.parquet(source)
    pinned = spark.match(session.readStream.schema("x int").parquet(source), path, version=1)
    spark.update_rules(path, session.createDataFrame([("s", "x = 2")], "id string, expression string"))
    found: list[Any] = []
    query = pinned.writeStream.foreachBatch(lambda frame, _: found.extend(frame.collect())).trigger(availableNow=True)
    query.start().awaitTermination(120)
    assert [(row.x, row.rule, row.rules_version) for row in found] == [(1, "r", 1)]
