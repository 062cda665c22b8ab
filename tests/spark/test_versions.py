"""A stream takes up new versions between micro-batches, never within one, and never goes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eligo
from eligo import SnapshotError, spark
from eligo.spark import current
from eligo.spark.changes import apply_rows
from eligo.spark.jobs import original
from eligo.spark.update import publish_changes
from eligo.store.versions import current_line
from unit.store.making import Maker

pytestmark = pytest.mark.spark


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


def write(folder: Path, name: str, first: int, rows: int) -> None:
    """A file of events."""
    folder.mkdir(exist_ok=True)
    numbers = range(first, first + rows)
    pq.write_table(pa.table({"x": numbers, "city": [f"c{n}" for n in numbers]}), folder / f"{name}.parquet")


def reading(session: Any, folder: Path) -> Any:
    return session.readStream.schema("x long, city string").option("maxFilesPerTrigger", 1).parquet(str(folder))


def run_under_publications(
    session: Any, drained: Any, tmp_path: Path, files: int, rows: int, versions: int, every: float
) -> list[list[Any]]:
    """Run a stream of files while versions are published; for each batch its rows (x, rule, rules_version)."""
    path = str(tmp_path / "rules [1]{a}")  # letters that mean something to Spark
    rules = [("m1", "x >= 0"), *((f"r{i}", f"x = {i}") for i in range(50))]
    spark.compile_rules(session.createDataFrame(rules, "id string, expression string"), path)
    source = tmp_path / "events"
    for file in range(files):
        write(source, str(file), file * rows, rows)
    answer = spark.match(reading(session, source), path, keep=["x"]).where("rule like 'm%'")
    with publishing_markers(path, versions, every) as publisher:
        batches: list[list[Any]] = drained(answer)
    publisher.join()
    write(source, "last", 0, rows)  # one more batch: the last version is reached
    batches += drained(answer)
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


def test_versions_come_between_batches(session: Any, drained: Any, tmp_path: Path) -> None:
    batches = run_under_publications(session, drained, tmp_path, files=6, rows=40, versions=12, every=0.3)
    assert check(batches, 6, 40, 12) >= 3


@pytest.mark.slow
def test_a_hundred_versions_under_load(session: Any, drained: Any, tmp_path: Path) -> None:
    batches = run_under_publications(session, drained, tmp_path, files=60, rows=20_000, versions=100, every=0.3)
    assert check(batches, 60, 20_000, 100) >= 20


@pytest.fixture
def rules(tmp_path: Path) -> Maker:
    """A rule set of one version, and events in the folder beside it."""
    maker = Maker(tmp_path / "rules")
    maker.matcher.add("r", "x = 1")
    maker.publish()
    write(tmp_path / "events", "0", 1, 2)
    return maker


def test_what_is_fixed_when_a_query_is_planned(session: Any, drained: Any, rules: Maker, tmp_path: Path) -> None:
    stream = reading(session, tmp_path / "events")
    narrow = spark.match(stream, rules.path, columns="named")
    wide = spark.match(stream.withColumn("eligo_version", stream.x), rules.path)  # a name that we use as well
    pinned = spark.match(stream, rules.path, version=1)
    rules.matcher.add("s", "city = 'c2' and country is null")
    rules.publish()
    wide = wide.drop("eligo_version")
    for answer, expected in ((pinned, [(1, "r", 1)]), (wide, [(1, "r", 2), (2, "s", 2)])):
        (found,) = drained(answer, checkpoint=f"checkpoint-{len(expected)}")
        assert sorted((row.x, row.rule, row.rules_version) for row in found) == expected
    # What looks at a column that is not sent is set aside, and stops nothing.
    (found,) = drained(narrow, checkpoint="checkpoint-narrow")
    assert [(row.x, row.rule, row.rules_version) for row in found] == [(1, "r", 2)]


def test_an_older_version_is_not_taken(
    session: Any, drained: Any, rules: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a machine sees an old CURRENT: the query stops, and goes on when it is right again."""
    monkeypatch.setattr(current, "PATIENCE", 0.5)
    rules.matcher.add("s", "x = 2")
    rules.publish()
    answer = spark.match(reading(session, tmp_path / "events"), rules.path, keep=["x"])

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            (query, number) = current._micro_batch() or ("", -1)
            columns = [batch.column(0), pa.array([query] * len(batch)), pa.array([number] * len(batch), pa.int64())]
            yield pa.RecordBatch.from_arrays(columns, ["version", "query", "batch"])

    seen = answer.select("rules_version").mapInArrow(place, "version long, query string, batch long")
    ((first, *_),) = drained(seen)
    assert (first.version, first.batch) == (2, 0)
    write(tmp_path / "events", "1", 1, 2)
    (rules.path / "CURRENT").write_text(current_line(1) + "\n")
    with pytest.raises(Exception, match="has used version 2 before") as failed:
        drained(seen)
    assert isinstance(original(failed.value), SnapshotError)
    assert spark.reason(failed.value) == str(original(failed.value))
    (rules.path / "CURRENT").write_text(current_line(2) + "\n")
    ((again, *_),) = drained(seen)
    assert (again.version, again.query, again.batch) == (2, first.query, 1)
