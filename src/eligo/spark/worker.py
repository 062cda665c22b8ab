"""What runs inside Spark's Python workers: Arrow batches of events in, Arrow batches of matches out.

An incoming batch holds the columns that `match` selected, named by number (a dot or a backquote in a column's own
name is a syntax error inside `mapInArrow`), those to keep first:

    c0 … ck │ ck+1 … cn      the attributes that are not kept, flattened: the field `age` of `user` is one column
    ╰── given back untouched

    exploded:  kept columns, rule          one row a match
    array:     kept columns, rules         one row an event

Spark takes the columns of the answer by position, so this file is the one place where their order and types are made:
kept columns keep the Arrow types they came with, and `rule` has the type that the driver declared to Spark.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

import eligo
from eligo.errors import SnapshotError
from eligo.store.snapshot import MANIFEST

# Rows of one outgoing batch. An event may match thousands of rules; its kept columns are repeated for each, and a
# bounded batch keeps that out of memory and below Arrow's 2 GB of characters a string column.
_OUTPUT_ROWS: Final = 65_536

# A worker lives for many queries. Snapshots are memory-mapped, so a few open ones cost next to nothing.
_OPEN_SNAPSHOTS: Final = 4
_snapshots: OrderedDict[tuple[str, str], Any] = OrderedDict()


@dataclass(frozen=True)
class Plan:
    """All that a worker needs to know; travels inside the query."""

    path: str  # of the snapshot
    manifest: str  # the content hash that the driver saw
    kept: tuple[str, ...]  # names of the first incoming columns, which are given back
    attributes: tuple[tuple[str, int], ...]  # what rules look at: the attribute and the number of its column
    columns: int  # how many come in
    output: str  # "exploded" or "array"
    integers: bool  # rule ids are integers, not strings


def manifest_hash(path: str) -> str:
    """Hash of a snapshot's manifest, which itself holds the hashes of its files. Reads one small file."""
    manifest = Path(path) / MANIFEST
    try:
        return hashlib.sha256(manifest.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        if not Path(path).exists():
            raise SnapshotError(
                f"there is no snapshot at {path!r} on this machine; Matcher.save(path) makes one, "
                "in a folder that the driver and every worker can read"
            ) from None
        raise SnapshotError(f"{path!r} is not a snapshot: it has no {MANIFEST}") from None


def open_snapshot(path: str, manifest: str) -> Any:
    """The Matcher of the snapshot with just this manifest, opened once in this process.

    A query keeps the snapshot it started with where it is open, and fails where it is not: it never mixes two.
    """
    key = (path, manifest)
    matcher = _snapshots.get(key)
    if matcher is None:
        _refuse_another(path, manifest)
        matcher = eligo.open(path)
        _refuse_another(path, manifest)  # replaced while it was being opened
        _snapshots[key] = matcher
        while len(_snapshots) > _OPEN_SNAPSHOTS:
            _snapshots.popitem(last=False)
    _snapshots.move_to_end(key)
    return matcher


def _refuse_another(path: str, manifest: str) -> None:
    found = manifest_hash(path)
    if found != manifest:
        raise SnapshotError(
            f"the snapshot at {path!r} is not the one this query was planned with (manifest {found[:12]}…, expected "
            f"{manifest[:12]}…): it was replaced meanwhile, or this machine holds another copy; run the query again, "
            "and give every new snapshot a path of its own where queries run for long"
        )


def column_names(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]


def run(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The function given to `mapInArrow`."""
    for batch in batches:
        if batch.schema.names != column_names(plan.columns):
            raise RuntimeError(f"Spark sent the columns {batch.schema.names}, planned were c0 … c{plan.columns - 1}")
        events = pa.RecordBatch.from_arrays(
            [batch.column(i) for _, i in plan.attributes], names=[name for name, _ in plan.attributes]
        )
        found = open_snapshot(plan.path, plan.manifest).match_batch(events)
        answer = _exploded if plan.output == "exploded" else _array
        yield from answer(plan, batch, found)


def _exploded(plan: Plan, batch: pa.RecordBatch, found: pa.Table) -> Iterator[pa.RecordBatch]:
    schema = _schema(plan, batch, pa.field("rule", _rule_type(plan), nullable=False))
    for start in range(0, found.num_rows, _OUTPUT_ROWS):
        part = found.slice(start, _OUTPUT_ROWS)
        rows = _flat(part["event"])
        columns = [batch.column(i).take(rows) for i in range(len(plan.kept))]
        yield pa.RecordBatch.from_arrays([*columns, _rules(plan, part)], schema=schema)


def _array(plan: Plan, batch: pa.RecordBatch, found: pa.Table) -> Iterator[pa.RecordBatch]:
    kind = pa.list_(pa.field("element", _rule_type(plan), nullable=False))
    matches = np.bincount(found["event"].to_numpy(), minlength=batch.num_rows)
    offsets = np.concatenate(([0], np.cumsum(matches))).astype(np.int32)
    rules = pa.ListArray.from_arrays(pa.array(offsets), _rules(plan, found), type=kind)
    columns = [batch.column(i) for i in range(len(plan.kept))]
    schema = _schema(plan, batch, pa.field("rules", kind, nullable=False))
    yield pa.RecordBatch.from_arrays([*columns, rules], schema=schema)


def _schema(plan: Plan, batch: pa.RecordBatch, answer: pa.Field) -> pa.Schema:
    """What Spark was told, to the letter: it compares names, types and what may be null, inside lists too."""
    return pa.schema([*(batch.schema.field(i).with_name(name) for i, name in enumerate(plan.kept)), answer])


def _rule_type(plan: Plan) -> pa.DataType:
    return pa.int64() if plan.integers else pa.string()


def _rules(plan: Plan, found: pa.Table) -> pa.Array:
    """The ids in the one type that Spark was told; a dictionary or an unsigned integer would fail inside the JVM."""
    return _flat(found["rule"].cast(_rule_type(plan)))


def _flat(column: pa.ChunkedArray) -> pa.Array:
    """One contiguous array, also where there are no chunks."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
