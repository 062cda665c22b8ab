"""Redis Streams as a streaming source: `session.dataSource.register(RedisStreams)`, then

    events = session.readStream.format("redis-streams").options(url="redis://localhost:6379/0", keys="orders").load()

    row       key     string               the stream
              id      string               of the entry, as 1731772800000-0
              at      timestamp            the milliseconds in front of the id
              fields  map<string, string>  of the entry; cast what rules compare as numbers

    offset    {"orders": {"id": "1731772800000-0", "entries": 1042}}
              of each key the last entry that was read, and how many had been added to the stream up to it

No consumer groups: what was read is in Spark's checkpoint, so that a repeated micro-batch reads the same range again.

Invariant: no entry is left out in silence. Redis counts what was ever added to a stream (from version 7 on). If more
entries are gone than had been read, one was removed unread, by XTRIM, MAXLEN or XDEL: an error says so. And a task
that finds fewer entries in its range than were counted when the range was made fails in the same way.

The first offset is asked for again when the first micro-batch has to be repeated; with from=$ it may then lie behind
that batch. This too is an error, for else the entries between would be lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from eligo.errors import EligoError, OptionError

try:  # from Spark 4.2 on a source can end where it stood when the query was started, and bound its batches
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Nothing to support."""


Offset: TypeAlias = dict[str, dict[str, Any]]  # by key: id and entries

_STEP: Final = 1_000  # entries looked at by one command: Redis does nothing else meanwhile
_OPTIONS: Final = ("url", "keys", "from", "maxRows", "partitionRows", "failOnDataLoss")

# How many entries of a range there are, at most so many, and the last one's id; the entries themselves stay there.
_WALK: Final = """
local found = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], ARGV[2], 'COUNT', ARGV[3])
return {#found, #found > 0 and found[#found][1] or ''}
"""


class RedisStreams(DataSource):
    """The source. Options, all but `keys` with a default:

    url             redis://localhost:6379/0; rediss:// for TLS; user and password as in any URL
    keys            the streams, with commas between
    from            the id behind which a new query begins: 0-0 (all that is there), $ (what comes now), or any
    maxRows         most entries of each key in a micro-batch (Spark 4.2 or newer); none: all that are there
    partitionRows   entries of a task: 10000
    failOnDataLoss  true: entries that were removed unread are an error; false: they are not looked for
    """

    @classmethod
    def name(cls) -> str:
        return "redis-streams"

    def schema(self) -> str:
        return "key string, id string, at timestamp, fields map<string, string>"

    def streamReader(self, schema: Any) -> RedisReader:  # noqa: N802
        return RedisReader(_settings(self.options))


@dataclass(frozen=True)
class Settings:
    url: str
    keys: tuple[str, ...]
    begin: str
    max_rows: int | None
    partition_rows: int
    strict: bool


@dataclass(frozen=True)
class Range(InputPartition):
    """Entries of a key behind `start`, up to `end`."""

    key: str
    start: str
    end: str
    entries: int  # that there are


class RedisReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets and ranges on the driver, entries on the workers. Names are Spark's."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stop_at: Offset | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        """Where a new query begins. Entries that were removed before are none of its business."""
        begin = self.settings.begin
        offset = {}
        for key, state in self._states().items():
            after = state.last if begin == "$" else begin
            read = state.added if begin == "$" else min(state.removed + self._count(key, "0-0", after), state.added)
            offset[key] = {"id": after, "entries": read}
        return offset

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802
        """Where the next micro-batch ends; Spark before 4.2 gives neither start nor limit."""
        most = getattr(limit, "max_rows", None)
        ends = {}
        for key, state in self._states().items():
            begun = (start or {}).get(key)
            if begun is not None and self.settings.strict:
                self._refuse_loss(key, state, begun)
            end = (self.stop_at or {}).get(key) or {"id": state.last, "entries": state.added}
            if begun is not None and most is not None and end["entries"] - begun["entries"] > most:
                parts = list(self._walk(key, begun["id"], end["id"], most))
                if parts:
                    end = {"id": parts[-1].end, "entries": begun["entries"] + sum(part.entries for part in parts)}
            # Never back: entries may have been counted twice where some were removed.
            ends[key] = end if begun is None or _number(end["id"]) > _number(begun["id"]) else begun
        return ends

    def partitions(self, start: Offset, end: Offset) -> list[Range]:
        """Ranges of about `partitionRows` entries each."""
        ranges: list[Range] = []
        for key, ended in end.items():
            begun = start.get(key)
            if begun is None:
                raise EligoError(
                    f"the checkpoint knows nothing of the stream {key!r}, which option keys now names: start a query "
                    "of its own for it, or give this one a new checkpoint"
                )
            if _number(begun["id"]) > _number(ended["id"]):
                raise EligoError(
                    f"the first micro-batch was not finished and has to be repeated up to entry {ended['id']} of "
                    f"{key!r}, but option from={self.settings.begin} now means {begun['id']}: give the id to begin with"
                )
            found = list(self._walk(key, begun["id"], ended["id"], None))
            missing = ended["entries"] - begun["entries"] - sum(one.entries for one in found)
            if missing > 0 and self.settings.strict:
                raise EligoError(_lost(key, f"{missing:,} entries between {begun['id']} and {ended['id']} are gone"))
            ranges += found
        return ranges

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The entries of a range."""
        assert isinstance(partition, Range)
        client, start, read = _client(self.settings.url), partition.start, 0
        while found := client.xrange(partition.key, f"({start}", partition.end, _STEP):
            start, read = found[-1][0].decode(), read + len(found)
            yield _batch(partition.key, found)
        if read < partition.entries and self.settings.strict:
            raise EligoError(_lost(partition.key, f"{partition.entries - read:,} entries went while they were read"))

    def commit(self, end: Offset) -> None:
        """Nothing to tell Redis: the checkpoint has it."""

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        most = self.settings.max_rows
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """What comes from here on is for the next run."""
        self.stop_at = {key: {"id": state.last, "entries": state.added} for key, state in self._states().items()}

    def _states(self) -> dict[str, State]:
        client = _client(self.settings.url)
        return {key: _state(client, key) for key in self.settings.keys}

    def _walk(self, key: str, start: str, end: str, most: int | None) -> Iterator[Range]:
        """The range behind `start` in parts, each with its count; at most so many entries."""
        client, size = _client(self.settings.url), self.settings.partition_rows
        begin, at, entries, left = start, start, 0, most
        while left is None or left > 0:
            wanted = min(_STEP, size - entries, _STEP if left is None else left)
            count, last = client.eval(_WALK, 1, key, at, end, wanted)
            if count:
                at, entries, left = last.decode(), entries + count, None if left is None else left - count
            if entries and (count < wanted or entries == size or left == 0):
                yield Range(key, begin, at, entries)
                begin, entries = at, 0
            if count < wanted:
                return

    def _count(self, key: str, start: str, end: str) -> int:
        return 0 if end == "0-0" else sum(one.entries for one in self._walk(key, start, end, None))

    def _refuse_loss(self, key: str, state: State, begun: Mapping[str, Any]) -> None:
        if state.removed > begun["entries"]:
            gone = state.removed - begun["entries"]
            raise EligoError(_lost(key, f"at least {gone:,} entries behind {begun['id']} are gone"))
        if state.added < begun["entries"]:
            raise EligoError(
                f"the Redis stream {key!r} has had {state.added:,} entries in all, and {begun['entries']:,} were read: "
                "it was deleted and made anew. Start with a new checkpoint"
            )


@dataclass(frozen=True)
class State:
    """What Redis says of a stream; one that is not there yet is empty."""

    last: str
    added: int
    length: int

    @property
    def removed(self) -> int:
        return self.added - self.length


def _state(client: Any, key: str) -> State:
    import redis

    try:
        found = {_plain(name): _plain(value) for name, value in client.xinfo_stream(key).items()}
    except redis.ResponseError as error:
        if "no such key" in str(error):
            return State("0-0", 0, 0)
        raise EligoError(f"the key {key!r} in Redis is no stream: {error}") from None
    if "entries-added" not in found:
        raise EligoError("Redis 7 or newer is needed: older ones do not count what was added to a stream")
    return State(str(found["last-generated-id"]), int(found["entries-added"]), int(found["length"]))


def _client(url: str) -> Any:
    """A connection of this process; made anew where it is needed, for it cannot travel."""
    try:
        import redis
    except ImportError:
        raise EligoError("the Redis client is not installed, here or on a worker: pip install redis") from None
    return redis.Redis.from_url(url)


def _batch(key: str, entries: list[tuple[bytes, dict[bytes, bytes]]]) -> pa.RecordBatch:
    text = pa.string()
    ids = [entry.decode() for entry, _ in entries]
    try:
        fields = [[(name.decode(), value.decode()) for name, value in found.items()] for _, found in entries]
    except UnicodeDecodeError as error:
        raise EligoError(f"an entry of {key!r} between {ids[0]} and {ids[-1]} is no UTF-8 text: {error}") from None
    at = pa.array([_number(entry)[0] for entry in ids], pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
    columns = [pa.array([key] * len(ids), text), pa.array(ids, text), at, pa.array(fields, pa.map_(text, text))]
    return pa.RecordBatch.from_arrays(columns, names=["key", "id", "at", "fields"])


def _settings(options: Mapping[str, str]) -> Settings:
    given = {name.lower(): value for name, value in options.items()}
    unknown = sorted(given.keys() - {name.lower() for name in _OPTIONS})
    if unknown:
        raise OptionError(f"redis-streams has no option {unknown[0]!r} (there are: {', '.join(_OPTIONS)})")
    keys = tuple(key.strip() for key in given.get("keys", "").split(",") if key.strip())
    if not keys:
        raise OptionError("redis-streams: give the option keys, the streams to read with commas between")
    begin = given.get("from", "0-0")
    if begin != "$":
        begin = "-".join(map(str, _number(begin)))
    strict = given.get("failondataloss", "true").lower()
    if strict not in ("true", "false"):
        raise OptionError(f"redis-streams: failOnDataLoss={strict} is neither true nor false")
    return Settings(
        given.get("url", "redis://localhost:6379/0"),
        keys,
        begin,
        _positive(given, "maxRows", None),
        _positive(given, "partitionRows", 10_000) or 10_000,
        strict == "true",
    )


def _positive(given: Mapping[str, str], name: str, default: int | None) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"redis-streams: {name}={text} is no number of entries, 1 or more")
    return int(text)


def _number(entry: str) -> tuple[int, int]:
    """An entry's id as numbers, in the order of ids."""
    milliseconds, _, place = entry.partition("-")
    try:
        return int(milliseconds), int(place or 0)
    except ValueError:
        raise OptionError(f"{entry!r} is no id of an entry: those are as 1731772800000-0, and $ is the last") from None


def _lost(key: str, what: str) -> str:
    return (
        f"the Redis stream {key!r} was trimmed, or entries deleted, before they were read: {what}. Trim later, "
        "or accept the loss: option failOnDataLoss=false"
    )


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
