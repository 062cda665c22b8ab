"""Which version a micro-batch of a stream is matched with, and that it is none before that of an earlier one.

    CURRENT ─ read by one task of a micro-batch ─ broadcast ─▶ a column beside the events ─▶ worker.run admits it

The task that reads runs on any machine, and where a file system keeps what it has read, one machine may see an older
file than another saw before. So every process remembers what it has seen:

    (query, folder) → batch, before, here        here: the highest version in this micro-batch
                                                 before: the highest in those before it; no lower one is taken

The task that reads waits until it sees that version or a later one. Events that come with an older one are refused, as
the other tasks have the same; the micro-batch fails, and is repeated when the query is started again.

A process cannot know what it has not seen. The version that was current when `match` was called is a bound for all.
"""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from eligo.arrow import arrow_of
from eligo.errors import SnapshotError
from eligo.store.versions import CURRENT, PATIENCE, wait_for_version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_QUERIES: Final = 1024  # remembered
_COLUMN: Final = "eligo_version"

Place = tuple[str, str]  # the id of a query, which its checkpoint keeps, and the folder of the rules


@dataclass
class _Seen:
    batch: int
    before: int
    here: int


_seen: OrderedDict[Place, _Seen] = OrderedDict()


def with_version(events_df: DataFrame, folder: str, least: int) -> tuple[DataFrame, Column]:
    """The events of a stream, joined with what CURRENT says when a micro-batch runs; and the version's column."""
    from pyspark.sql import functions as f

    patience = PATIENCE
    name = _COLUMN
    while name in events_df.columns:
        name += "_"

    def read_current(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                version = read(folder, least, patience)
                schema = pa.schema([pa.field(name, pa.int64(), nullable=False)])
                yield pa.RecordBatch.from_arrays([arrow_of(np.array([version]))], schema=schema)

    one = events_df.sparkSession.range(0, 1, 1, 1)
    return events_df.crossJoin(f.broadcast(one.mapInArrow(read_current, f"{name} bigint not null"))), f.col(name)


def read(folder: str, least: int, patience: float) -> int:
    """The version that CURRENT names; one that is older than what was used before is waited out."""
    version = wait_for_version(folder, lambda: _floor(folder, least), patience)
    admit(folder, version, least)
    return version


def admit(folder: str, version: int, least: int) -> None:
    """Remember the version of a micro-batch; one that goes back is refused."""
    floor = _floor(folder, least)
    if version < floor:
        raise SnapshotError(
            f"{socket.gethostname()} was to match with version {version} of {folder!r}, but this query has used "
            f"version {floor} before: some machine sees an old {CURRENT} (on NFS mount with lookupcache=none). Start "
            "the query again; if an older folder was put back on purpose, do so in a new application"
        )
    found = _micro_batch()
    if found is None:
        return
    query, batch = found
    seen = _seen.setdefault((query, folder), _Seen(batch, 0, 0))
    if batch > seen.batch:
        seen.batch, seen.before = batch, max(seen.before, seen.here)
    seen.here = max(seen.here, version)
    _seen.move_to_end((query, folder))
    while len(_seen) > _QUERIES:
        _seen.popitem(last=False)


def _floor(folder: str, least: int) -> int:
    """The lowest version that may be taken in the micro-batch under way."""
    found = _micro_batch()
    seen = _seen.get((found[0], folder)) if found is not None else None
    if found is None or seen is None:
        return least
    # Within one micro-batch two may be used: by two matches of one query, or when it is repeated.
    return max(least, seen.before, seen.here if found[1] > seen.batch else 0)


def _micro_batch() -> tuple[str, int] | None:
    """The query that this task is of, and the number of its micro-batch."""
    from pyspark import TaskContext

    task = TaskContext.get()
    query = task.getLocalProperty("sql.streaming.queryId") if task is not None else None
    batch = task.getLocalProperty("streaming.sql.batchId") if task is not None else None
    return (query, int(batch)) if query and batch else None
