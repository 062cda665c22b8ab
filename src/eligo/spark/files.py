"""`match_files`: the events of Parquet files, which the workers read themselves.

    driver    asks Spark which files there are and what types their columns have; reads all footers; cuts tasks
    worker    opens its files, reads the columns that rules name and those to keep, matches (`row_groups.py`)

The rows of a DataFrame cross from the JVM into Python one column at a time, and that takes longer than reading them
here. Nothing else differs: files, types and answers are those of `match(session.read.parquet(…), …)`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlparse

import pyarrow as pa

from eligo.arguments import path_of, scheme_of
from eligo.errors import EventError, OptionError
from eligo.spark.arguments import session_of
from eligo.spark.arrow_types import arrow_of_spark, is_variant, parquet_leaves
from eligo.spark.event_columns import Sent, sent_columns
from eligo.spark.match import (
    MOST_DOCUMENTS,
    VERSION,
    begin_plan,
    check_options,
    facts_and_source,
    locate_attributes,
    matched,
    plan_documents,
)
from eligo.spark.preflight import folder_of
from eligo.spark.row_groups import File, Files, as_type, cut, unreadable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession
    from pyspark.sql.types import StructType

_READERS: Final = 8  # footers read at a time: it is waiting, mostly
_SHREDDED: Final = ".typed_value"  # where Parquet has the parts of a Variant that are columns of their own
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"  # null, in the name of a folder


def match_files(
    parquet_path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    session: SparkSession | None = None,
    output: Literal["exploded", "array"] = "exploded",
    keep: Iterable[str] | None = None,
    top_k: int | None = None,
    tags: Iterable[str] | None = None,
    version: int | None = None,
    version_column: str | None = VERSION,
    key: Iterable[str] | None = None,
    memory: int = 2 << 30,
    observe: str | Observation | None = None,
    check: bool = True,
    documents: str | os.PathLike[str] | None = None,
    most_documents: int = MOST_DOCUMENTS,
    json: str | None = None,
) -> DataFrame:
    """Match every row of some Parquet files against the rules at `path`.

    parquet_path  a file, a folder, a pattern such as `/data/day=*`, or a list of these; all workers must reach the
                  files under these paths. Folders named `day=2026-01-31` are a column `day`, as in Spark.
    session       the Spark session; None takes the active one

    The other arguments, and the answer, are those of `match` over `session.read.parquet(parquet_path)`.
    """
    session = session_of(session)
    folder = folder_of(path)
    version, key, memory = check_options(version, version_column, key, memory, observe, check)
    places = _places(parquet_path)
    found, source = facts_and_source(session, folder, version, documents, most_documents, check)
    listing = _listing(session, places)
    schema = listing.schema
    plan = begin_plan(schema, source, found, output, keep, top_k, tags, version_column, json)
    plan = plan_documents(session, plan, found)
    attributes, plan, aside = locate_attributes(schema, found, plan)
    sent = sent_columns(schema, plan.kept, attributes)
    _refuse_shredded(listing, sent)
    files = Files(
        files=listing.files,
        tasks=cut(listing.files),
        leaves=parquet_leaves(schema, sent, listing.constants),
        wanted=tuple((path, arrow_of_spark(path, kind)) for path, kind in zip(sent.paths, sent.types, strict=True)),
        constants=listing.constants,
    )
    plan = replace(plan, attributes=sent.attributes, variants=sent.variants, columns=len(sent.paths), files=files)
    chosen = session.range(0, len(files.tasks), 1, max(1, len(files.tasks)))
    return matched(chosen, schema, plan, found, key, memory, observe, aside)


@dataclass(frozen=True)
class _Listing:
    schema: StructType  # Spark's
    files: tuple[File, ...]
    constants: tuple[str, ...]  # the columns that stand in the names of folders
    footers: list[Any]


def _places(given: Any) -> list[str]:
    """The paths that the caller named."""
    local = [_local(path) for path in (given if isinstance(given, list | tuple | set | Iterator) else [given])]
    if not local:
        raise OptionError("match_files needs at least one path, and the list of them is empty")
    return local


def _listing(session: SparkSession, local: list[str]) -> _Listing:
    """The files that Spark would read, each looked at."""
    paths = _as_spark_lists(session, local)
    with ThreadPoolExecutor(_READERS) as pool:
        footers = list(pool.map(_footer, paths))
    for path, footer in zip(paths[1:], footers[1:], strict=True):
        _refuse_another_schema(paths[0], footers[0], path, footer)
    schema = _spark_schema(session, local)
    above = min(len(_parts(path)) for path in local)
    folders = [[part.partition("=") for part in _parts(path)[above:-1] if "=" in part] for path in paths]
    constants = tuple(unquote(name) for name, _, _ in folders[0])
    files = []
    for path, footer, parts in zip(paths, footers, folders, strict=True):
        if tuple(unquote(name) for name, _, _ in parts) != constants:
            raise EventError(f"{path} is not in folders named {', '.join(constants)} as {paths[0]} is: move it")
        values = (_constant(schema, unquote(name), text, path) for name, _, text in parts)
        rows = tuple(footer.row_group(i).num_rows for i in range(footer.num_row_groups))
        files.append(File(path, rows, tuple(values)))
    return _Listing(schema, tuple(files), constants, footers)


def _as_spark_lists(session: SparkSession, paths: list[str]) -> list[str]:
    """The files that Spark finds there: without hidden ones, and of a stream's output only what was committed."""
    from pyspark.errors import AnalysisException

    where = ", ".join(paths)
    try:
        # With a schema, whichever, Spark does not look into files; those that are damaged are found by us, by name.
        found = session.read.schema("eligo int").parquet(*(f"file://{path}" for path in paths)).inputFiles()
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise EventError(f"there is nothing at {where}: match_files reads a file, a folder, a pattern") from None
        raise EventError(f"Spark cannot list {where}: {_first_line(error)}") from None
    if not found:
        raise EventError(f"there are no Parquet files in {where} (names that begin with _ or . do not count)")
    return sorted(unquote(urlparse(url).path) for url in found)


def _spark_schema(session: SparkSession, paths: list[str]) -> StructType:
    from pyspark.errors import AnalysisException

    try:
        return session.read.parquet(*(f"file://{path}" for path in paths)).schema
    except AnalysisException as error:
        raise EventError(f"Spark cannot read {', '.join(paths)}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


def _local(given: object) -> str:
    path = path_of(given, "parquet_path")
    if scheme_of(path):
        raise EventError(
            f"{path!r} is a URL; match_files reads files that every machine has under one path, or file:/// URL: mount "
            "it, or use spark.match(session.read.parquet(…), …)"
        )
    return os.path.abspath(path)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _footer(path: str) -> Any:
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(path, error) from None


def _refuse_another_schema(first: str, expected: Any, path: str, found: Any) -> None:
    """Columns that differ between files would be absent or of another kind in some events only."""
    if found.schema.equals(expected.schema):
        return
    here, there = _columns(found), _columns(expected)
    differing = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
    if differing:
        name = differing[0]
        raise EventError(
            f"{path} has another schema than {first}: the column {name} is {here.get(name, 'missing')} there and "
            f"{there.get(name, 'missing')} here; rewrite it, or use spark.match with "
            "session.read.option('mergeSchema', True).parquet(…)"
        )


def _columns(footer: Any) -> dict[str, str]:
    """Parquet's columns by their paths. Whether they may be null does not matter, nor how a Variant is cut up."""
    columns = (footer.schema.column(i) for i in range(len(footer.schema)))
    return {c.path: f"{c.physical_type} {c.logical_type}" for c in columns if _SHREDDED not in c.path}


def _refuse_shredded(listing: _Listing, sent: Sent) -> None:
    """Refuses Variants that Spark has shredded: fields in columns of their own are missing from the value."""
    for path, kind in zip(sent.paths, sent.types, strict=True):
        if is_variant(arrow_of_spark(path, kind)):
            parts = ".".join(path) + _SHREDDED
            for file, footer in zip(listing.files, listing.footers, strict=True):
                if any(footer.schema.column(i).path.startswith(parts) for i in range(len(footer.schema))):
                    raise EventError(
                        f"the Variant {'.'.join(path)} is shredded in {file.path}; match_files reads whole ones: use "
                        "spark.match(session.read.parquet(…), …), leave it out with keep=[…], or write the files with "
                        "spark.sql.variant.writeShredding.enabled=false"
                    )


def _constant(schema: StructType, name: str, text: str, path: str) -> Any:
    """The value in the name of a folder, in the type that Spark found for all of them."""
    kind = schema[name].dataType
    if text == _NO_VALUE:
        return None
    if kind.typeName() not in ("string", "integer", "long", "double", "date"):
        raise EventError(
            f"the folders of {path} name {name}, which Spark takes for {kind.simpleString()}: match_files reads "
            "numbers, dates and strings there; use spark.match(session.read.parquet(…), …)"
        )
    return as_type(pa.array([unquote(text)]), arrow_of_spark((name,), kind))[0].as_py()
