"""`BatchWriter`: every micro-batch of a stream in the target exactly once, by `foreachBatch`.

    target/
      _query              the id of the query that writes here; another one is refused
      batch=0/  batch=1/  the rows of a micro-batch, put in place by one rename; readers get a column `batch`
      .batch=2-<random>/  an attempt under way, or one that died; Spark ignores names with a dot

Spark repeats the micro-batch that was under way when a driver died, with the same number and the same events. So a
batch that is in its place was written before, and is left as it is; one that is not, is not there at all.

A target by URL has no rename that can be relied on. There a batch is written over what an earlier attempt left: the
outcome is the same, but until the repetition is done a reader may see a part of the batch.

Numbers of batches begin at 0 in every checkpoint. That is why a target belongs to one query: a new checkpoint is a new
query, and its batch 0 would else be taken for the old one.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eligo.arguments import path_of, scheme_of
from eligo.errors import EligoError, OptionError
from eligo.spark.arguments import name_given

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_QUERY: Final = "_query"
_PROPERTY: Final = "sql.streaming.queryId"  # of the thread that runs a micro-batch


class BatchWriter:
    """Give it to `foreachBatch`: `matches.writeStream.foreachBatch(BatchWriter("/data/matches")).start()`.

    target      a folder that the driver and all executors see under one path, or a URL that Spark can write to
    format      any that Spark writes to files: parquet, orc, json, csv, avro
    checkpoint  the query's checkpointLocation, which tells whose batches these are; needed on Spark Connect alone
    options     those of the format
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        format: str = "parquet",
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        **options: str,
    ) -> None:
        self.target = path_of(target, "the target")
        self.format = name_given("format", format, "parquet")
        self.checkpoint: str | None = None
        if checkpoint is not None:
            path_of(checkpoint, "the checkpoint")
            self.checkpoint = os.fspath(checkpoint).rstrip("/")  # as Spark names it, which may be a URL
        self.options = options
        # Absolute here, where the user is: the function may run in a process with another working directory.
        self.folder = None if scheme_of(self.target) else os.path.abspath(self.target)

    def __repr__(self) -> str:
        return f"BatchWriter({self.target!r}, {self.format!r})"

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Write the micro-batch, unless it is there."""
        query = self._query(batch.sparkSession)
        if self.folder is None:
            self._claim_url(batch.sparkSession, query)
            self._write(batch, f"{self.target.rstrip('/')}/batch={batch_id}", "overwrite")
            return
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        _claim(folder, query)
        for leftover in folder.glob(".batch=*"):
            shutil.rmtree(leftover, ignore_errors=True)
        place = folder / f"batch={batch_id}"
        if place.exists():
            return
        attempt = folder / f".batch={batch_id}-{uuid.uuid4().hex}"
        self._write(batch, f"file://{attempt}", "error")  # Spark's own file system may be another than this
        _refuse_nothing(attempt)
        put_in_place(attempt, place)

    def _write(self, batch: DataFrame, path: str, mode: str) -> None:
        batch.write.format(self.format).options(**self.options).mode(mode).save(path)

    def _query(self, session: SparkSession) -> str:
        """The id of the query, which its checkpoint keeps."""
        if self.checkpoint is not None:
            return str(json.loads(_text(session, f"{self.checkpoint}/metadata"))["id"])
        try:
            found: Any = session.sparkContext.getLocalProperty(_PROPERTY)
        except AttributeError:  # Spark Connect has no SparkContext
            found = None
        if not found:
            raise OptionError(
                f"the query that writes to {self.target!r} cannot be told here: say where its checkpoint is, "
                "BatchWriter(target, checkpoint=…), the path given as checkpointLocation"
            )
        return str(found)

    def _claim_url(self, session: SparkSession, query: str) -> None:
        from pyspark.errors import AnalysisException

        path = f"{self.target.rstrip('/')}/{_QUERY}"
        try:
            _refuse_another(self.target, _text(session, path), query)
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            session.createDataFrame([(query,)], "value string").coalesce(1).write.mode("overwrite").text(path)


def put_in_place(attempt: Path, place: Path) -> None:
    """The one step that makes a batch visible."""
    os.rename(attempt, place)


def _claim(folder: Path, query: str) -> None:
    """Write the query's id into the folder, or see that it is there."""
    mark = folder / _QUERY
    if not mark.exists():
        draft = folder / f".{_QUERY}-{uuid.uuid4().hex}"
        draft.write_text(query + "\n", encoding="utf-8")
        try:
            os.link(draft, mark)  # unlike a rename this does not replace what another has put there
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    _refuse_another(str(folder), mark.read_text(encoding="utf-8"), query)


def _refuse_nothing(attempt: Path) -> None:
    """Even an empty batch is a file with its columns. None at all: executors wrote to disks of their own."""
    if not attempt.is_dir() or all(entry.name.startswith((".", "_")) for entry in attempt.iterdir()):
        raise EligoError(
            f"no file of the micro-batch arrived in {str(attempt.parent)!r}: executors do not see the folder of the "
            "driver. Give a target that all machines see under one path (a shared mount), or a URL"
        )


def _refuse_another(target: str, there: str, query: str) -> None:
    if there.strip() != query:
        raise EligoError(
            f"{target!r} belongs to the query {there.strip()}, as its {_QUERY} says, and this is {query}: batches of "
            "two queries have the same numbers. Give this one a target of its own, or start it with the old checkpoint"
        )


def _text(session: SparkSession, path: str) -> str:
    return "\n".join(row[0] for row in session.read.text(path).collect())
