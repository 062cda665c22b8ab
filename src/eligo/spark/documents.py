"""`compile_documents` and `update_documents`: a DataFrame of events seen before, for rules with quantifiers.

    documents_df ─ a task a partition ─▶ files of up to 4,000,000 documents ─ publish ─▶ a version, as of rule sets
    update         new files beside the old ones; those with documents to remove are written again, small ones merged

The driver sees one line a task. Readers keep the version that they have; what they ask for of a file is made once and
serves all versions that have the file (`document_files.py`).
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eligo.arguments import text as text_given
from eligo.arguments import whole_number
from eligo.errors import EventError, OptionError
from eligo.matcher import Matcher
from eligo.spark import document_files
from eligo.spark.arguments import check_frame, session_of
from eligo.spark.event_columns import column_names, hint_of, locate, unusable_type
from eligo.spark.jobs import run_partitions, run_tasks
from eligo.spark.preflight import check_once, folder_of
from eligo.store.publish import Staging, publish, publishing
from eligo.store.versions import DATA, DocumentSet, TableFile, hold_documents

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

log = logging.getLogger("eligo.spark")

MANY_SMALL: Final = 8  # files; more are merged


@dataclass(frozen=True)
class PublishedDocuments:
    """A version of documents."""

    path: str
    version: int
    parent: int  # the version before it; 0: none
    documents: int
    files: int
    bytes: int  # of the files; not of what is made of them for queries
    made: str
    seconds: float = 0.0


def compile_documents(
    documents_df: DataFrame, path: str | os.PathLike[str], *, file_documents: int = document_files.ROWS
) -> PublishedDocuments:
    """Write the documents of a DataFrame to `path`, as a new version if documents are there, and without those.

    documents_df    a column for each attribute: numbers, strings, Booleans, dates, timestamps, arrays of these, structs
                    and maps with string keys
    path            a folder that the driver and all workers reach under this path
    file_documents  how many documents a file has at most; a worker holds one column of so many at a time
    """
    started = time.perf_counter()
    documents_df = check_frame("documents_df", documents_df)
    most = whole_number("file_documents", file_documents, least=1)
    folder = folder_of(path)
    schema = _checked_schema(documents_df)
    session = documents_df.sparkSession
    with Staging.begin(Path(folder)) as staging:
        check_once(session, folder, writing=True)
        tables = _merged(session, folder, staging, _written(documents_df, schema.json(), staging, most), most)
        content = _published(session, staging, tables, tables, schema.json(), None)
    return _described(folder, content, started)


def update_documents(
    path: str | os.PathLike[str],
    documents_df: DataFrame | None = None,
    *,
    remove: str | None = None,
    session: SparkSession | None = None,
    file_documents: int = document_files.ROWS,
) -> PublishedDocuments:
    """Remove documents at `path`, then add those of a DataFrame, and publish the outcome as one new version.

    documents_df  columns of the names and types that are there; one that is missing is absent in all of them
    remove        an expression; documents that it holds for are removed: "published < date '2026-01-01'"
    session       the Spark session, where no DataFrame brings one; None takes the active one
    """
    started = time.perf_counter()
    folder = folder_of(path)
    most = whole_number("file_documents", file_documents, least=1)
    if documents_df is None and remove is None:
        raise OptionError("update_documents needs documents to add, or an expression of those to remove: remove='…'")
    given = None if documents_df is None else check_frame("documents_df", documents_df)
    with publishing(folder), hold_documents(folder) as held, Staging.begin(folder) as staging:
        parent = held.content
        schema = document_files.schema_of(parent.schema)
        frame = None if given is None else _in_schema(given, schema)
        spark = session_of(session) if frame is None else frame.sparkSession
        tables = list(parent.tables)
        if remove is not None:
            _check_removal(remove, schema)
            tables = _left(spark, folder, staging, parent, remove)
        if frame is not None:
            check_once(spark, folder, writing=True)
            tables += _written(frame, parent.schema, staging, most)
        if tables == list(parent.tables):
            return _described(folder, parent, started)
        tables = _merged(spark, folder, staging, tables, most)
        new = [table for table in tables if table not in parent.tables]
        content = _published(spark, staging, tables, new, parent.schema, parent.version)
    return _described(folder, content, started)


def ensure_values(
    session: Any, folder: str, where: str, tables: Sequence[TableFile], schema: str, names: Sequence[str]
) -> None:
    """Have the values of attributes made that are not yet: of each file in a task of its own."""
    jobs: list[tuple[TableFile, list[str]]] = []
    for table in tables:
        missing = [name for name in names if not document_files.values_path(folder, table, name).exists()]
        if missing:
            jobs.append((table, missing))

    def make(number: int) -> None:
        document_files.make_values(folder, where, jobs[number][0], schema, jobs[number][1])

    run_tasks(session, len(jobs), make, type(None))


def _written(frame: DataFrame, schema: str, staging: Staging, most: int) -> list[TableFile]:
    folder, chosen = str(staging.folder), frame.toDF(*column_names(len(frame.columns)))
    written = run_partitions(
        chosen, lambda batches: document_files.write_documents(folder, schema, most, batches), list[TableFile]
    )
    return [table for some in written for table in some]


def _left(session: Any, folder: str, staging: Staging, parent: DocumentSet, remove: str) -> list[TableFile]:
    """The files without the documents that an expression holds for."""
    where, staged, schema, tables = os.path.join(folder, DATA), str(staging.folder), parent.schema, parent.tables

    def drop(number: int) -> list[TableFile]:
        return document_files.remove_documents(where, tables[number], schema, remove, staged)

    return [table for some in run_tasks(session, len(tables), drop, list[TableFile]) for table in some]


def _merged(session: Any, folder: str, staging: Staging, tables: list[TableFile], most: int) -> list[TableFile]:
    """The same documents in fewer files, if many are small: each file is looked at for each event."""
    small = [table for table in tables if 4 * table.rows < most]
    if len(small) <= MANY_SMALL:
        return tables
    groups: list[list[TableFile]] = [[]]
    for table in small:
        if sum(one.rows for one in groups[-1]) + table.rows > most:
            groups.append([])
        groups[-1].append(table)
    where, staged = os.path.join(folder, DATA), str(staging.folder)
    merged = run_tasks(
        session, len(groups), lambda i: document_files.merge_documents(where, groups[i], staged), TableFile
    )
    return [*(table for table in tables if 4 * table.rows >= most), *merged]


def _published(
    session: Any,
    staging: Staging,
    tables: Sequence[TableFile],
    new: Sequence[TableFile],
    schema: str,
    parent: int | None,
) -> DocumentSet:
    """Publish a version. What rules have asked for so far is made before, lest a micro-batch wait for it."""
    folder = str(staging.directory)
    ensure_values(session, folder, str(staging.folder), new, schema, document_files.known_attributes(folder))
    content = DocumentSet(sum(table.rows for table in tables), schema, tuple(tables))
    return publish(staging, [table.file for table in new], content, expect_parent=parent)


def _described(folder: str, content: DocumentSet, started: float) -> PublishedDocuments:
    return PublishedDocuments(
        path=folder,
        version=content.version,
        parent=content.parent,
        documents=content.documents,
        files=len(content.tables),
        bytes=sum(table.size for table in content.tables),
        made=content.made,
        seconds=time.perf_counter() - started,
    )


# -- columns


def _checked_schema(frame: DataFrame) -> StructType:
    """The columns of documents; those that no rule could be asked about are refused."""
    if frame.isStreaming:
        raise EventError("documents come from a table, not from a stream: use foreachBatch and update_documents")
    schema = frame.schema
    twice = [name for name in schema.names if schema.names.count(name) > 1]
    if twice:
        raise EventError(f"two columns of the documents have the name {twice[0]!r}: rename or drop one")
    if not schema.names:
        raise EventError("the documents have no columns")
    leaves = list(_leaves(schema, ""))
    for name, kind in leaves:
        why = unusable_type(kind)
        if why:
            raise EventError(f"the column {name!r} of the documents is of type {kind.simpleString()}, {why}")
    unclear = locate(schema, [name for name, _ in leaves], frozenset(name for name, _ in leaves)).unusable
    for name, why in unclear.items():
        raise EventError(f"the attribute {name!r} of the documents {why}")
    return schema


def _leaves(kind: StructType, before: str) -> Iterator[tuple[str, DataType]]:
    """Attributes with their types, down to the fields of structs and the values of maps."""
    from pyspark.sql.types import MapType, StructType

    for field in kind.fields:
        inner, name = field.dataType, before + field.name
        while isinstance(inner, MapType) and not unusable_type(inner):
            inner, name = inner.valueType, f"{name}.*"
        if isinstance(inner, StructType):
            yield from _leaves(inner, f"{name}.")
        else:
            yield name, inner


def _in_schema(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns that documents have, in that order; null where they are missing."""
    from pyspark.sql.functions import col, lit

    given = _checked_schema(frame)
    for name in given.names:
        if name not in schema.names:
            hint = hint_of(name, schema.names, "they have")
            raise EventError(
                f"the documents have no column {name!r}: {hint} Leave it out, or compile all documents again with it"
            )
        kind, known = given[name].dataType, schema[name].dataType
        if kind.simpleString() != known.simpleString():  # which leaves out what may be null
            raise EventError(
                f"the column {name!r} is of type {kind.simpleString()}, and that of the documents is of type "
                f"{known.simpleString()}: cast it"
            )
    missing = [field for field in schema.fields if field.name not in given.names]
    renamed = frame.toDF(*column_names(len(given.names)))
    places = dict(zip(given.names, renamed.columns, strict=True))
    empty = {field.name: lit(None).cast(field.dataType) for field in missing}
    return renamed.select(
        *(empty[name] if name in empty else col(places[name]).alias(f"e{i}") for i, name in enumerate(schema.names))
    )


def _check_removal(text: str, schema: StructType) -> None:
    """Refuse an expression that is none, or that names what documents do not have."""
    matcher = Matcher()
    matcher.add(0, text_given("remove", text, "an expression"))
    located = locate(schema, matcher.attributes, frozenset(matcher.attributes))
    for name in matcher.attributes:
        if name not in located.paths:
            hint = hint_of(name, schema.names, "they have")
            raise OptionError(f"remove names {name!r}, which is no attribute of the documents; {hint}")
