"""BatchWriter: every event once in the target, whatever happened in between."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eligo import spark
from eligo.errors import EligoError
from eligo.spark import batch_writer
from eligo.spark.batch_writer import BatchWriter

pytestmark = pytest.mark.spark

ROWS = 10  # of a file, which is a micro-batch


class Stream:
    """A stream of small files that can be started again and again."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session, self.folder = session, folder
        self.source = folder / "events"
        self.source.mkdir()
        self.files = 0

    def arrive(self, files: int = 1) -> None:
        for _ in range(files):
            numbers = list(range(self.files * ROWS, (self.files + 1) * ROWS))
            file = self.source / f"{self.files}.parquet"
            pq.write_table(pa.table({"x": numbers}), file)
            at = time.time() - 1_000 + self.files  # files come in the order of their times, which are else alike
            os.utime(file, (at, at))
            self.files += 1

    def run(self, writer: Callable[[Any, int], None], checkpoint: str = "checkpoint", rules: str | None = None) -> Any:
        """All that has arrived; the error that ended it, or None."""
        frame = self.session.readStream.schema("x bigint").option("maxFilesPerTrigger", 1).parquet(str(self.source))
        if rules is not None:
            frame = spark.match(frame, rules, keep=["x"])
        query = (
            frame.writeStream.foreachBatch(writer)
            .option("checkpointLocation", str(self.folder / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120)
        except Exception as error:
            return error
        return None

    def found(self, target: Path) -> list[tuple[int, int]]:
        rows = self.session.read.parquet(str(target)).select("batch", "x").collect()
        return sorted((row["batch"], row["x"]) for row in rows)

    def expected(self) -> list[tuple[int, int]]:
        return [(n // ROWS, n) for n in range(self.files * ROWS)]


@pytest.fixture
def stream(session: Any, tmp_path: Path) -> Stream:
    return Stream(session, tmp_path)


def names(target: Path) -> list[str]:
    return sorted(entry.name for entry in target.iterdir())


def test_batches_of_matches_and_a_crash_before_the_rename(
    stream: Stream, snapshot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, rules = snapshot([("all", "x >= 0")])
    target = tmp_path / "a target"
    writer = BatchWriter(target)
    stream.arrive(2)
    assert stream.run(writer, rules=rules) is None
    assert stream.found(target) == stream.expected()

    with monkeypatch.context() as patch:

        def die(attempt: Path, place: Path) -> None:
            assert list(attempt.glob("*.parquet"))
            raise KeyError("killed")

        patch.setattr(batch_writer, "put_in_place", die)
        stream.arrive()
        assert "killed" in str(stream.run(writer, rules=rules))
    assert names(target)[0].startswith(".batch=2-")
    assert stream.found(target) == stream.expected()[: 2 * ROWS]

    assert stream.run(writer, rules=rules) is None
    assert stream.found(target) == stream.expected()
    assert names(target) == ["_query", "batch=0", "batch=1", "batch=2"]


def test_a_batch_that_is_repeated_is_left_as_it_is(stream: Stream, tmp_path: Path) -> None:
    target = tmp_path / "target"
    stream.arrive(2)
    assert stream.run(BatchWriter(target.as_uri())) is None
    before = {file: file.stat().st_mtime_ns for file in target.rglob("*.parquet")}
    # What a driver that dies after the rename leaves: the batch is planned and written, but not committed.
    for file in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        file.unlink()
    stream.arrive()
    assert stream.run(BatchWriter(target)) is None
    assert stream.found(target) == stream.expected()
    assert before.items() <= {file: file.stat().st_mtime_ns for file in target.rglob("*.parquet")}.items()


def test_another_query_is_refused(stream: Stream, tmp_path: Path) -> None:
    target = tmp_path / "target"
    stream.arrive()
    assert stream.run(BatchWriter(target)) is None
    owner = (target / "_query").read_text().strip()
    error = stream.run(BatchWriter(target), checkpoint="other")
    assert "belongs to the query " + owner in str(error)
    assert "a target of its own" in str(error)
    assert stream.found(target) == stream.expected()


def test_a_target_by_url_is_written_over(stream: Stream, session: Any, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    session.conf.set("fs.viewfs.mounttable.default.link./out", f"file://{target}")
    writer = BatchWriter("viewfs:///out", checkpoint=tmp_path / "checkpoint", compression="gzip")
    stream.arrive(2)
    assert stream.run(writer) is None
    for file in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        file.unlink()
    half = next((target / "batch=1").glob("*.parquet"))
    os.truncate(half, 10)
    assert stream.run(writer) is None
    assert stream.found(target) == stream.expected()
    assert all(file.name.endswith(".gz.parquet") for file in target.rglob("*.parquet"))
    assert "belongs to the query" in str(stream.run(BatchWriter("viewfs:///out"), checkpoint="other"))


def test_executors_that_write_elsewhere_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(getLocalProperty=lambda _: "a query")
    batch = SimpleNamespace(sparkSession=SimpleNamespace(sparkContext=context))

    def write(self: BatchWriter, batch: Any, path: str, mode: str) -> None:
        folder = Path(path.removeprefix("file://"))
        folder.mkdir()
        (folder / "_SUCCESS").touch()

    monkeypatch.setattr(BatchWriter, "_write", write)
    with pytest.raises(EligoError, match="do not see the folder of the driver"):
        BatchWriter(tmp_path / "target")(batch, 0)  # type: ignore[arg-type]
    assert not (tmp_path / "target" / "batch=0").exists()


def test_an_empty_batch_is_a_batch(session: Any, tmp_path: Path) -> None:
    for format in ("parquet", "csv"):
        writer = BatchWriter(tmp_path / format, format, checkpoint=tmp_path)
        (tmp_path / "metadata").write_text('{"id": "q"}')
        writer(session.range(0), 0)
        writer(session.range(3), 1)
        assert session.read.format(format).load(str(tmp_path / format)).count() == 3


def test_the_writer_travels(tmp_path: Path) -> None:
    writer = pickle.loads(pickle.dumps(BatchWriter("some/where", "json", lineSep="\n")))
    assert (writer.folder, writer.options) == (os.path.abspath("some/where"), {"lineSep": "\n"})
    assert BatchWriter("file:/a%20b/c").folder == "/a b/c"
    assert BatchWriter("s3a://bucket/c").folder is None
