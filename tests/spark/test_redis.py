"""Redis Streams as a source: every entry once, and none lost in silence. Needs redis-server 7 or newer."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eligo import spark
from eligo.errors import EligoError, OptionError
from eligo.spark.batch_writer import BatchWriter

redis = pytest.importorskip("redis", reason="the Redis client is not installed: pip install redis")
source = pytest.importorskip("eligo.spark.redis_source", reason="PySpark is not installed: pip install 'eligo[spark]'")

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of this test's own, without files."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server: apt-get install redis-server")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("redis")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(folder)]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    try:
        with redis.Redis.from_url(url) as client:
            for _ in range(100):
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.1)
            if "entries-added" not in _info(client):
                pytest.skip("redis-server is older than version 7")
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _info(client: Any) -> dict[str, Any]:
    client.xadd("probe", {"x": 1})
    return {
        key.decode() if isinstance(key, bytes) else key: value for key, value in client.xinfo_stream("probe").items()
    }


@pytest.fixture
def client(server: str) -> Iterator[Any]:
    with redis.Redis.from_url(server) as client:
        client.flushall()
        yield client


def add(client: Any, key: str, numbers: range) -> None:
    for n in numbers:
        client.xadd(key, {"x": n, "word": f"w{n}"}, id=f"{1_000 + n}-0")


def reader(server: str, **options: str) -> Any:
    streams = source.RedisStreams({"url": server, "keys": "a", **options})
    return streams.streamReader(streams.schema())


def entries(some: Any, start: Any, end: Any) -> list[str]:
    return [
        entry for part in some.partitions(start, end) for batch in some.read(part) for entry in batch["id"].to_pylist()
    ]


class Limit:
    def __init__(self, rows: int) -> None:
        self.max_rows = rows


def test_offsets_bound_what_is_read(server: str, client: Any) -> None:
    some = reader(server, partitionRows="700")
    assert some.initialOffset() == {"a": {"id": "0-0", "entries": 0}}  # the stream is not there yet
    start = some.initialOffset()
    assert some.latestOffset(start) == start
    assert some.partitions(start, start) == []
    add(client, "a", range(2_500))
    whole = some.latestOffset(start)
    assert whole == {"a": {"id": "3499-0", "entries": 2_500}}
    assert [part.entries for part in some.partitions(start, whole)] == [700, 700, 700, 400]
    assert entries(some, start, whole) == [f"{1_000 + n}-0" for n in range(2_500)]
    part = some.latestOffset(start, Limit(1_100))
    assert part == {"a": {"id": "2099-0", "entries": 1_100}}
    assert len(entries(some, part, some.latestOffset(part, Limit(9_999)))) == 1_400
    assert reader(server, **{"from": "1009"}).initialOffset() == {"a": {"id": "1009-0", "entries": 10}}
    assert reader(server, **{"from": "$"}).initialOffset() == {"a": {"id": "3499-0", "entries": 2_500}}
    assert some.latestOffset() == whole  # as Spark before 4.2 asks


def test_what_was_removed_unread_is_an_error(server: str, client: Any) -> None:
    add(client, "a", range(100))
    client.xtrim("a", minid="1020-0", approximate=False)  # before the query begins: none of its business
    some = reader(server)
    start = some.initialOffset()
    middle = some.latestOffset(start, Limit(30))
    assert len(entries(some, start, middle)) == 30
    client.xtrim("a", minid="1050-0", approximate=False)  # all of these were read
    end = some.latestOffset(middle)
    assert len(entries(some, middle, end)) == 50
    client.xtrim("a", minid="1051-0", approximate=False)  # this one was not
    with pytest.raises(EligoError, match=r"'a' was trimmed.*at least 1 entries behind 1049-0.*failOnDataLoss"):
        some.latestOffset(middle)
    with pytest.raises(EligoError, match=r"1 entries between 1049-0 and 1099-0 are gone"):
        some.partitions(middle, end)
    lenient = reader(server, failOnDataLoss="false")
    assert len(entries(lenient, middle, lenient.latestOffset(middle))) == 49
    ranges = some.partitions({"a": {"id": "1059-0", "entries": 60}}, end)
    client.xdel("a", "1070-0")
    with pytest.raises(EligoError, match=r"1 entries went while they were read"):
        list(some.read(ranges[0]))
    client.delete("a")
    with pytest.raises(EligoError, match=r"deleted and made anew"):
        some.latestOffset(end)


def test_mistakes_are_told(server: str, client: Any) -> None:
    for options, reason in (
        ({"keys": ""}, "option keys"),
        ({"key": "a"}, "no option 'key'"),
        ({"maxRows": "0"}, "maxRows=0"),
        ({"from": "now"}, "'now' is no id"),
        ({"failOnDataLoss": "no"}, "neither true nor false"),
    ):
        with pytest.raises(OptionError, match=reason):
            reader(server, **options)
    client.set("a", "text")
    with pytest.raises(EligoError, match="no stream"):
        reader(server).initialOffset()
    later = reader(server, keys="b", **{"from": "2000"})
    with pytest.raises(EligoError, match="the first micro-batch was not finished"):
        later.partitions(later.initialOffset(), {"b": {"id": "1500-0", "entries": 3}})
    with pytest.raises(EligoError, match="knows nothing of the stream 'c'"):
        later.partitions({}, {"c": {"id": "1500-0", "entries": 3}})


def test_every_entry_once_through_restarts(
    session: Any, snapshot: Any, server: str, client: Any, tmp_path: Path
) -> None:
    _, rules = snapshot([("even", "x in (0, 2, 4, 6, 8)"), ("all", "word like 'w%'")])
    session.dataSource.register(source.RedisStreams)
    target = tmp_path / "target"

    def run() -> Any:
        rows = session.readStream.format("redis-streams").options(url=server, keys="a, b", maxRows="30").load()
        events = rows.selectExpr("key", "at", "cast(fields['x'] as bigint) as x", "fields['word'] as word")
        query = (
            spark.match(events, rules, keep=["key", "at", "x"])
            .writeStream.foreachBatch(BatchWriter(target))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(120)
        except Exception as error:
            return error
        return None

    def found() -> list[tuple[str, int]]:
        rows = session.read.parquet(str(target)).where("rule = 'all'").collect()
        assert all(round(row["at"].timestamp() * 1_000) == 1_000 + row["x"] for row in rows)
        return sorted((row["key"], row["x"]) for row in rows)

    add(client, "a", range(45))
    assert run() is None
    assert found() == [("a", n) for n in range(45)]
    add(client, "a", range(45, 60))
    add(client, "b", range(8))
    for file in (tmp_path / "checkpoint" / "commits").glob("*1*"):  # as if killed before the last batch was done
        file.unlink()
    assert run() is None
    expected = [*(("a", n) for n in range(60)), *(("b", n) for n in range(8))]
    assert found() == expected
    assert session.read.parquet(str(target)).where("rule = 'even'").count() == 5 + 4
    add(client, "b", range(8, 30))
    client.xtrim("b", 5, approximate=False)
    assert "'b' was trimmed" in str(run())
    assert found() == expected
