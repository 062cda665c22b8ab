"""Documents on disk: what workers write, read and make of them.

    data/documents-<hash>.parquet                    some documents, all their columns; never changed
    values/documents-<hash>.parquet~<attribute>.json and what it names: the values of one attribute of that file, each
                                                     once and in order (documents/frozen.py), mapped by workers

The values of a file are made when rules first ask for the attribute: in tasks when a query is planned or documents are
updated, else by the worker that needs them. They follow from the file alone, so whoever makes them makes the same.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import uuid4
from weakref import WeakValueDictionary

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eligo.documents.frozen import Values, values_of_column
from eligo.errors import EventError, SnapshotError
from eligo.matcher import Matcher
from eligo.spark.arrow_types import arrow_of_spark, parquet_leaves
from eligo.spark.event_columns import column_names, locate, sent_columns
from eligo.spark.row_groups import File, Files, Span, unreadable
from eligo.store.arrays import ArrayFile, map_arrays, write_arrays
from eligo.store.files import write_through
from eligo.store.manifest import sealed, unsealed
from eligo.store.tables import TableWriter
from eligo.store.versions import VALUES, TableFile

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

log = logging.getLogger("eligo.spark")

ROWS: Final = 4_000_000  # documents of a file
_FORMAT: Final = 1
_BATCH: Final = 65_536
_opened: WeakValueDictionary[str, Values] = WeakValueDictionary()


class ValuesFile(msgspec.Struct, frozen=True):
    """What is known of an attribute of a file of documents."""

    attribute: str
    kind: int
    rows: int
    here: int
    uneven: int
    arrays: ArrayFile


def schema_of(text: str) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(text))


# -- writing


def write_documents(folder: str, schema: str, most: int, batches: Iterator[pa.RecordBatch]) -> list[TableFile]:
    """Write the documents of one partition into files of at most so many. Returns the files."""
    fields = schema_of(schema).fields
    target = pa.schema([pa.field(field.name, arrow_of_spark((field.name,), field.dataType)) for field in fields])
    written: list[TableFile] = []
    writer: TableWriter | None = None
    try:
        for batch in batches:
            table = _checked(pa.Table.from_batches([batch]).rename_columns(target.names), target)
            while table.num_rows:
                writer = writer or TableWriter(folder, "documents", target)
                room = table.slice(0, most - writer.rows)
                writer.write(room)
                table = table.slice(room.num_rows)
                if writer.rows >= most:
                    done, writer = writer, None
                    written.append(done.close())
        if writer is not None:
            written.append(writer.close())
    except BaseException:
        if writer is not None:
            writer.abort()
        raise
    return written


def _checked(table: pa.Table, target: pa.Schema) -> pa.Table:
    """The table in the types of files; values that no rule could be asked about are refused."""
    columns = []
    for field, column in zip(target, table.columns, strict=True):
        try:
            column.validate(full=True)
            kind = field.type.value_type if pa.types.is_list(field.type) else field.type
            if pa.types.is_date(kind):
                (pc.list_flatten(column) if kind is not field.type else column).cast(pa.timestamp("us"))
            columns.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise EventError(
                f"the column {field.name!r} of the documents holds a value that no rule can be asked about, a string "
                f"that is no valid UTF-8 or a date too far from 1970: mend it, or leave it out ({error})"
            ) from None
    return pa.table(columns, schema=target)


def remove_documents(where: str, table: TableFile, schema: str, text: str, staged: str) -> list[TableFile]:
    """Write a file again without the documents that an expression holds for. Returns the new file, the old one if none
    is gone, or nothing if all are.
    """
    kinds = schema_of(schema)
    matcher = Matcher(multi=_lists(kinds))
    matcher.add(0, text)
    path = os.path.join(where, table.file)
    kept, first = np.ones(table.rows, np.bool_), 0
    for batch in attribute_batches(path, table.rows, kinds, matcher.attributes):
        kept[first + matcher.match_batch(batch).column("event").to_numpy()] = False
        first += batch.num_rows
    if kept.all():
        return [table]
    return [_rewritten([path], staged, pa.array(kept))] if kept.any() else []


def merge_documents(where: str, tables: Sequence[TableFile], staged: str) -> TableFile:
    """Write some files as one; those of this job lie in the staging folder."""
    new = {table.file for table in tables if os.path.exists(os.path.join(staged, table.file))}
    paths = [os.path.join(staged if table.file in new else where, table.file) for table in tables]
    return _rewritten(paths, staged, None)


def _rewritten(paths: Sequence[str], staged: str, kept: pa.Array | None) -> TableFile:
    writer: TableWriter | None = None
    try:
        first = 0
        for path in paths:
            with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True) as file:
                writer = writer or TableWriter(staged, "documents", file.schema_arrow)
                for batch in file.iter_batches(_BATCH, use_threads=False):
                    rows = batch.num_rows
                    writer.write(batch if kept is None else batch.filter(kept.slice(first, rows)))
                    first += rows
        assert writer is not None
        return writer.close()
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None


# -- reading


def _lists(schema: StructType) -> list[str]:
    """The attributes that are lists of values."""
    from pyspark.sql.types import ArrayType, StructType

    def visit(kind: StructType, before: str) -> Iterator[str]:
        for field in kind.fields:
            if isinstance(field.dataType, ArrayType):
                yield before + field.name
            elif isinstance(field.dataType, StructType):
                yield from visit(field.dataType, f"{before}{field.name}.")

    return list(visit(schema, ""))


def attribute_batches(path: str, rows: int, schema: StructType, names: Iterable[str]) -> Iterator[pa.RecordBatch]:
    """Reads some attributes of a file of documents, a batch of rows at a time; those without a column are left out."""
    located = locate(schema, names, frozenset(names))
    sent = sent_columns(schema, (), located.paths)
    wanted = [(place, arrow_of_spark(place, kind)) for place, kind in zip(sent.paths, sent.types, strict=True)]
    try:
        groups = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None
    counts = tuple(groups.row_group(i).num_rows for i in range(groups.num_row_groups))
    if sum(counts) != rows:
        raise SnapshotError(f"{path}: has {sum(counts):,} documents instead of {rows:,}; compile the documents again")
    files = Files((File(path, counts),), ((Span(0, 0, rows),),), parquet_leaves(schema, sent, ()), tuple(wanted))
    numbers = column_names(len(wanted))
    for batch in files.read(iter([pa.record_batch({"id": pa.array([0])})])):
        columns: dict[str, pa.Array] = {}
        for name, number in sent.attributes:
            column = batch.column(numbers[number])
            columns[name] = pc.coalesce(columns[name], column) if name in columns else column
        yield pa.RecordBatch.from_pydict(columns)


# -- values


def values_path(folder: str, table: TableFile, attribute: str) -> Path:
    digest = hashlib.blake2b(attribute.encode(), digest_size=16).hexdigest()
    return Path(folder) / VALUES / f"{table.file}~{digest}.json"


def known_attributes(folder: str) -> list[str]:
    """The attributes that rules have asked for so far: some file has its values made."""
    return sorted({_described(entry).attribute for entry in (Path(folder) / VALUES).glob("*.json")})


def uneven_attributes(folder: str, tables: Iterable[TableFile], names: Iterable[str]) -> frozenset[str]:
    """Of attributes whose values are made, those of which some document has several values, or none."""
    found = ((name, _described(values_path(folder, table, name))) for table in tables for name in names)
    return frozenset(name for name, described in found if described.uneven)


def _described(path: Path) -> ValuesFile:
    return unsealed(path, path.read_bytes(), _FORMAT, ValuesFile)


def make_values(folder: str, where: str, table: TableFile, schema: str, names: Sequence[str]) -> list[Values]:
    """Make the values of some attributes of a file, which lies in the folder `where`, and write them if that is
    possible.
    """
    kinds = schema_of(schema)
    there = locate(kinds, names, frozenset(names)).paths
    columns: dict[str, list[pa.Array]] = {name: [] for name in there}
    if there:
        for batch in attribute_batches(os.path.join(where, table.file), table.rows, kinds, there):
            for name, parts in columns.items():
                parts.append(batch.column(name))
    made = []
    for name in names:
        parts = columns.pop(name, [])
        values = values_of_column(pa.chunked_array(parts) if parts else pa.nulls(table.rows))
        try:
            _write_values(values_path(folder, table, name), name, values)
        except OSError as error:
            log.warning("%s: the values of %r are kept in memory, they cannot be written: %s", folder, name, error)
        made.append(values)
    return made


def _write_values(path: Path, name: str, values: Values) -> None:
    path.parent.mkdir(exist_ok=True)
    arrays = write_arrays(path.parent, path.stem, values.arrays())
    described = ValuesFile(name, values.kind, values.rows, values.here, values.uneven, arrays)
    temporary = path.with_suffix(f".{uuid4().hex}.tmp")
    write_through(temporary, sealed(described, _FORMAT))
    os.replace(temporary, path)


def open_values(folder: str, where: str, table: TableFile, schema: str, name: str) -> Values:
    """The values of an attribute of a file, mapped; made first if nobody did."""
    path = values_path(folder, table, name)
    known = _opened.get(str(path))
    if known is None:
        try:
            found = _described(path)
            arrays = map_arrays(path.parent, found.arrays, verify=True)
            known = Values(found.kind, found.rows, found.here, found.uneven, **arrays)
        except (FileNotFoundError, SnapshotError) as error:
            if isinstance(error, SnapshotError):
                log.warning("%s is made again: %s", path, error)
            (known,) = make_values(folder, where, table, schema, [name])
        _opened[str(path)] = known
    return known
