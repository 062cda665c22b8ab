"""Events from a real Kafka broker through Spark's own connector: every one once, through restarts.

`make test-kafka` runs this in an environment of its own, with the Spark that a connector can be had for: it is also the
test of the oldest Spark that eligo works with.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo import spark
from eligo.spark.batch_writer import BatchWriter

sys.path.insert(0, str(Path(__file__).parent))

import broker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("ELIGO_KAFKA" not in os.environ, reason="run by make test-kafka"),
]

TOPIC = "events"


@pytest.fixture(scope="module")
def jars() -> Path:
    """Fetched beside the environment that runs this."""
    pyspark = pytest.importorskip("pyspark")
    try:
        return broker.fetch(Path(sys.prefix), pyspark.__version__)
    except broker.UnavailableError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def address(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker.running(jars, tmp_path_factory.mktemp("kafka")) as address:
        yield address


@pytest.fixture(scope="module")
def session(jars: Path) -> Iterator[Any]:
    settings = {"spark.jars": broker.connector(jars), "spark.driver.memory": "1g"}
    session = spark.local_session("eligo kafka", 2, **settings)
    yield session
    session.stop()


def send(session: Any, address: str, first: int, stop: int) -> None:
    """Events as JSON; the key decides the partition."""
    rows = session.range(first, stop).selectExpr(
        "cast(id as string) as key", "to_json(named_struct('x', id, 'word', concat('w', id % 7))) as value"
    )
    rows.write.format("kafka").option("kafka.bootstrap.servers", address).option("topic", TOPIC).save()


def events(reader: Any, address: str) -> Any:
    rows = (
        reader.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", TOPIC)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 60)
        .load()
    )
    parsed = rows.selectExpr(
        "partition", "offset", "from_json(cast(value as string), 'x bigint, word string') as event"
    )
    return parsed.selectExpr("partition", "offset", "event.*")


def test_every_event_once_through_restarts(session: Any, address: str, tmp_path: Path) -> None:
    matcher = eligo.Matcher()
    matcher.add_many([("small", "x < 25"), ("threes", "word = 'w3'"), ("late", "x between 150 and 170")])
    rules = str(tmp_path / "rules.eligo")
    matcher.save(rules)

    def run(sink: str) -> None:
        answer = spark.match(events(session.readStream, address), rules, keep=["partition", "offset", "x"])
        writer = answer.writeStream.option("checkpointLocation", str(tmp_path / f"checkpoint-{sink}"))
        target = tmp_path / sink
        if sink == "batches":
            writer = writer.foreachBatch(BatchWriter(target))
        else:
            writer = writer.format("parquet").option("path", str(target))
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(200)

    def found(sink: str) -> list[Any]:
        columns = ["partition", "offset", "x", "rule"]
        return sorted(session.read.parquet(str(tmp_path / sink)).select(*columns).collect())

    def expected() -> list[Any]:
        batch = spark.match(events(session.read, address), rules, keep=["partition", "offset", "x"])
        return sorted(batch.select("partition", "offset", "x", "rule").collect())

    send(session, address, 0, 100)
    for sink in ("batches", "files"):
        run(sink)
        assert found(sink) == expected()
        # As if the driver had died before the last micro-batch was done.
        commits = tmp_path / f"checkpoint-{sink}" / "commits"
        last = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
        assert last >= 1  # 100 events are two micro-batches of at most 60
        for file in commits.glob(f"*{last}*"):
            file.unlink()
    send(session, address, 100, 180)
    for sink in ("batches", "files"):
        run(sink)
        assert found(sink) == expected()
    assert [row["x"] for row in sorted(expected(), key=lambda row: row["x"]) if row["rule"] == "late"] == list(
        range(150, 171)
    )
    assert len({row["partition"] for row in expected()}) == 3
