"""The driver's side: a session on the cluster, and the programs of `programs.py` one after another as they are asked for.

    python driver.py MASTER FOLDER
    standard input     one JSON object a line: {"program": "match", "folder": …, and what the program takes}
    FOLDER             running.json, where Spark's report is found; spark-events, its record
    the job's folder   what the program writes; at the end <program>.done, with the error if there was one

One session serves many tests: starting it takes longer than most of them.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

import programs
from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    # The report that the test looks at, up to date at every task.
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.ui.liveUpdate.period": "0",
    "spark.ui.showConsoleProgress": "false",
    # The record that proves it, one plain file.
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.log.level": "WARN",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    # A task meets several batches, so that it can die between two.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "250",
    # Every file of a source is a task of its own.
    "spark.sql.files.maxPartitionBytes": "1m",
    "spark.sql.files.openCostInBytes": "1m",
    # Ranges of a shuffle are found from all rows, not from a sample: two runs then cut a table at the same places.
    "spark.sql.execution.rangeExchange.sampleSizePerPartition": "100000",
    # A dead worker's shuffled rows are given up soon.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
    # Losing an executor is nobody's fault here.
    "spark.task.maxFailures": "8",
}


def write(file: Path, content: Any) -> None:
    """All of it or nothing, for those who look at the same time."""
    new = file.with_name(file.name + ".new")
    new.write_text(json.dumps(content))
    os.replace(new, file)


def main(master: str, folder: Path) -> None:
    log = folder / "spark-events"
    log.mkdir()
    builder: Any = SparkSession.builder
    builder = builder.master(master).appName(folder.name).config(map=SETTINGS | {"spark.eventLog.dir": log.as_uri()})
    session = builder.getOrCreate()
    context = session.sparkContext
    write(folder / "running.json", {"ui": context.uiWebUrl, "application": context.applicationId})
    for line in sys.stdin:
        job = json.loads(line)
        name, place = job.pop("program"), Path(job.pop("folder"))
        context.setJobDescription(None)  # nothing is left of the program before
        error = None
        try:
            getattr(programs, name)(session, place, **job)
        except Exception:
            error = traceback.format_exc()
        write(place / f"{name}.done", {"error": error})
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
