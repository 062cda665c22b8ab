"""What drivers run for the tests: each a small use of the public surface, once or slowly enough to be disturbed."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from eligo import spark


def match(session: SparkSession, folder: Path, target: str, pause: int) -> None:
    """A batch match of all events, written as Parquet."""
    events = slowly(session.read.parquet(str(folder / "events")), pause)
    session.sparkContext.setJobDescription(f"match {target}")
    spark.match(events, str(folder / "rules.eligo")).write.parquet(str(folder / target))


def stream(session: SparkSession, folder: Path, target: str, sink: str, pause: int, linger: int | None = None) -> None:
    """The same events as a stream, four files a batch; then what a reader of the sink sees, and the batches.

    `linger`: a batch after whose writing, and before whose commit, the driver waits to be killed.
    """
    schema = session.read.parquet(str(folder / "events" / "part-00000.parquet")).schema
    events = session.readStream.schema(schema).option("maxFilesPerTrigger", 4).parquet(str(folder / "events"))
    matches = spark.match(slowly(events, pause), str(folder / "rules.eligo"))
    writer = matches.writeStream.queryName(f"stream {target}").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(folder / f"{target}-checkpoint"))
    if sink == "files":
        writer = writer.format("parquet").option("path", str(folder / target))
    else:
        write = spark.BatchWriter(folder / target)

        def write_batch(rows: DataFrame, batch: int) -> None:
            write(rows, batch)
            if batch == linger:
                time.sleep(600)

        writer = writer.foreachBatch(write_batch)
    query = writer.start()
    query.awaitTermination()
    pq.write_table(session.read.parquet(str(folder / target)).toArrow(), folder / f"{target}.parquet")
    batches = [progress["batchId"] for progress in query.recentProgress if progress["numInputRows"]]
    (folder / f"{target}-batches.json").write_text(json.dumps(batches))


def compile(session: SparkSession, folder: Path, target: str, units: int, shards: int) -> None:
    """Rules from a table to a rule set."""
    rules = session.read.parquet(str(folder / "rules"))
    session.sparkContext.setJobDescription(f"compile {target}")
    done = spark.compile_rules(rules, str(folder / target), units=units, shards=shards)
    session.sparkContext.setJobDescription("rejects")
    rejects = done.rejects(session).toArrow()
    pq.write_table(rejects, folder / f"{target}-rejects.parquet")


def slowly(rows: DataFrame, pause: int) -> DataFrame:
    """The same rows; every tenth takes `pause` milliseconds in the JVM, before it comes to the engine under test."""
    if not pause:
        return rows
    sleep = f"reflect('java.lang.Thread', 'sleep', {pause}L)"
    return rows.where(f"id % 10 <> 0 or coalesce({sleep}, '') <> 'always true'")
