"""A stream of files into files gives what the same query over all of them gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from eligo import spark

pytestmark = pytest.mark.spark


def test_stream_equals_batch(session: Any, snapshot: Any, tmp_path: Path) -> None:
    _, path = snapshot([("low", "x < 5"), ("even", "kind = 'even' and x >= 2"), ("none", "kind is null")])
    events = session.range(40).selectExpr("id as x", "if(id % 2 = 0, 'even', if(id = 7, null, 'odd')) as kind")
    source = str(tmp_path / "events")
    events.repartition(2).write.parquet(source)
    stream = session.readStream.schema(events.schema).option("maxFilesPerTrigger", 1).parquet(source)
    outputs: list[tuple[Literal["exploded", "array"], list[str], int]] = [
        ("exploded", ["x", "rule"], 5 + 19 + 1),
        ("array", ["x"], 40),
    ]
    for output, key, rows in outputs:
        answer = spark.match(stream, path, output=output)
        assert answer.isStreaming
        target = str(tmp_path / output)
        writer = answer.writeStream.format("parquet").option("path", target)
        query = writer.option("checkpointLocation", f"{target}-checkpoint").trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        batch = spark.match(session.read.parquet(source), path, output=output)
        streamed = session.read.parquet(target).select(*batch.columns).sort(key).collect()
        assert streamed == batch.sort(key).collect()
        assert len(streamed) == rows
