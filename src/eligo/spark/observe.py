"""`observe`: learn from past events how often values come, and build the indexes anew with it.

    events ─ a tally an attribute and partition (value_counts.py) ─ merged by attribute ─ statistics-<hash>.parquet
    every segment of the newest version ─ its index and labels built anew, a task each ─ a new version

Others may publish while events are counted. The table stays with the rule set: later compilations and compactions use
it too.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from eligo.compile.compiled import Arrays
from eligo.errors import EventError
from eligo.spark.arguments import check_frame
from eligo.spark.event_columns import few, locate, sent_columns, variant_depth
from eligo.spark.jobs import run_partitions, run_tasks
from eligo.spark.preflight import check_once
from eligo.spark.published import Published, published
from eligo.spark.update import versioned_folder
from eligo.spark.value_counts import Tally, unpacked
from eligo.store.arrays import map_arrays, write_arrays
from eligo.store.opening import open_held
from eligo.store.publish import Staging, publish, publishing
from eligo.store.tables import STATISTICS_SCHEMA, TableWriter, read_statistics
from eligo.store.versions import DATA, PATIENCE, Content, Part, TableFile, hold

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

log = logging.getLogger("eligo.spark")

_TALLY = pa.schema([pa.field("attribute", pa.string(), False), pa.field("tally", pa.string(), False)])
_TALLY_DDL = "attribute string not null, tally string not null"
_ROWS = "eligo_row"


def observe(events_df: DataFrame, path: str | os.PathLike[str]) -> Published:
    """Count in one pass over the events how often attributes and values come, and publish the same rules with indexes
    that look at the rarest first. The counts are kept with the rules.
    """
    started = time.perf_counter()
    events_df = check_frame("events_df", events_df)
    if events_df.isStreaming:
        raise EventError("what events hold is learned from a table of them, not from a stream")
    from pyspark.sql.functions import lit

    folder = versioned_folder(path)
    session = events_df.sparkSession
    with Staging.begin(folder) as staging:
        paths = _paths(events_df.schema, folder)
        check_once(session, folder, writing=True)
        sent = sent_columns(events_df.schema, (), paths)
        names = [name for name, _ in sent.attributes]
        columns = [column.alias(f"c{i}") for i, column in enumerate(sent.columns())]
        table = _counted(events_df.select(lit(True).alias(_ROWS), *columns), names, str(staging.folder))
        with publishing(folder), hold(folder) as held:
            made = _published(session, folder, held.content, staging, table)
    done = published(folder, made, time.perf_counter() - started)
    log.info(
        "version %d: indexes built anew with what %d attributes hold, %.1f s", done.version, len(names), done.seconds
    )
    return done


def _paths(schema: StructType, folder: str) -> dict[str, list[Any]]:
    """The attributes that can be counted, and where they are."""
    with hold(folder) as held:
        content = held.content
    multi = frozenset(content.multi)
    located = locate(schema, content.asked, multi).paths.items()
    # What is in a Variant is not counted: its types are known only row by row.
    paths = {name: [path for path in ways if variant_depth(schema, path) is None] for name, ways in located}
    if not any(paths.values()):
        raise EventError(
            f"none of the attributes that rules name ({few(content.asked)}) is a column of the events "
            f"({few(schema.names)}): there is nothing to learn"
        )
    return paths


def _published(session: Any, folder: str, content: Content, staging: Staging, table: TableFile) -> Content:
    """The rules of the current version with indexes built anew."""
    version, staged = content.version, str(staging.folder)
    parts = run_tasks(session, len(content.parts), lambda i: reindex(folder, version, staged, table, i), Part)
    files = [table.file, *(part.segment.file for part in parts)]
    dead = _dead(Path(folder), content, parts, staging)
    files += [dead.file] if dead is not None else []
    shards = len(content.shards)
    learned = msgspec.structs.replace(
        content,
        shards=tuple(parts[:shards]),
        deltas=tuple(parts[shards:]),
        dead=dead,
        statistics=table,
        rejects=(),
        rejected=0,
    )
    return publish(staging, files, learned, expect_parent=content.version)


def _counted(chosen: DataFrame, names: list[str], folder: str) -> TableFile:
    """One pass over the events; the table of what they hold."""
    tallies = chosen.mapInArrow(lambda batches: count_partition(names, batches), _TALLY_DDL)
    # A tally has up to some thousand values, there is one for each attribute and partition, and one task writes.
    by_attribute = tallies.repartition("attribute").sortWithinPartitions("attribute")
    merged = by_attribute.mapInArrow(merge_tallies, _TALLY_DDL)
    whole = merged.repartition(1).sortWithinPartitions("attribute")
    written = run_partitions(whole, lambda batches: write_tallies(folder, batches), TableFile)
    if not written:  # Spark knew that there are no rows
        raise _no_events()
    return written[0]


def _no_events() -> EventError:
    return EventError("there are no events: there is nothing to learn")


def count_partition(names: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: a tally of every column after the first, which only counts rows."""
    from pyspark import TaskContext

    context = TaskContext.get()
    seed = context.partitionId() if context is not None else 0
    tallies = [Tally(seed) for _ in names]
    rows = Tally()
    for batch in batches:
        rows.present += batch.num_rows
        for tally, column in zip(tallies, batch.columns[1:], strict=True):
            tally.add(column)
    yield from _packed(zip(("", *names), (rows, *tallies), strict=True))


def _packed(tallies: Iterable[tuple[str, Tally]]) -> Iterator[pa.RecordBatch]:
    for name, tally in tallies:
        line = msgspec.json.encode(tally.packed()).decode()
        yield pa.RecordBatch.from_arrays([pa.array([name], pa.string()), pa.array([line], pa.string())], schema=_TALLY)


def _merged(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, Tally]]:
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for attribute, group in groupby(rows, key=lambda row: row[0]):
        whole = Tally(len(attribute))
        # In an order of their own, so that the outcome does not depend on which worker was first.
        for line in sorted(line for _, line in group):
            whole.merge(unpacked(msgspec.json.decode(line)))
        yield attribute, whole


def merge_tallies(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a worker: all tallies of some attributes, sorted by attribute, each attribute's made one."""
    yield from _packed(_merged(batches))


def write_tallies(folder: str, batches: Iterator[pa.RecordBatch]) -> TableFile:
    """In a worker: all tallies, sorted by attribute, to one table."""
    writer = TableWriter(folder, "statistics", STATISTICS_SCHEMA)
    try:
        for attribute, whole in _merged(batches):
            if not attribute and not whole.present:
                raise _no_events()
            writer.write(_table(attribute, whole))
        return writer.close()
    except BaseException:
        writer.abort()
        raise


def _table(attribute: str, tally: Tally) -> pa.Table:
    if not attribute:
        found: list[tuple[str, str, Any, float]] = [("events", "", "", float(tally.present))]
    else:
        found = list(tally.rows())
    what, kinds, values, counts = zip(*found, strict=True)
    texts = ["" if not kind else msgspec.json.encode(value).decode() for kind, value in zip(kinds, values, strict=True)]
    columns = ([attribute] * len(found), what, kinds, texts, counts)
    return pa.table([pa.array(list(column)) for column in columns], schema=STATISTICS_SCHEMA)


def reindex(path: str, version: int, folder: str, table: TableFile, number: int) -> Part:
    """In a worker: one segment with its index and labels built anew."""
    opened = open_held(path, version, patience=PATIENCE)
    rules, part = opened.rules, opened.content.parts[number]
    statistics = read_statistics(Path(folder), table, rules.recipe.attributes, rules.recipe.strings)
    better = replace(rules.recipe, sample=statistics).reindexed(rules.segments[number])
    written = write_arrays(Path(folder), "segment", better.arrays())
    return msgspec.structs.replace(part, segment=written)


def _dead(directory: Path, content: Content, parts: list[Part], staging: Staging) -> Any:
    """The dead rows under the names of the new segments."""
    if content.dead is None:
        return None
    old: Arrays = map_arrays(directory / DATA, content.dead, verify=True)
    renamed = {
        after.segment.file: old[before.segment.file]
        for before, after in zip(content.parts, parts, strict=True)
        if before.segment.file in old
    }
    return write_arrays(staging.folder, "dead", renamed)
