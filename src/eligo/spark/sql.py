"""Matching in SQL, after `register(session)`.

    SELECT * FROM eligo_match(TABLE(events), '/shared/rules', keep => 'id,at')       a table function, as `match`
    SELECT id, eligo_rules('/shared/rules', struct(*)) FROM events                   ids that are strings
    SELECT id, eligo_rule_numbers('/shared/rules', struct(age, country)) FROM events     ids that are integers
    SELECT id, eligo_rules('/shared/rules', value) FROM lines                        events that are JSON texts

A function of a row has one type for ever, hence two of them. It also has no moment at which Spark would ask it about a
query as a whole: each batch of rows takes the version that is the newest then, unless the path says which one it is:
'/shared/rules@7'. The table function has that moment, and a query of it sees one version.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from eligo.arguments import local_path, shown
from eligo.errors import EventError, OptionError, SnapshotError
from eligo.segments.joining import Joining
from eligo.spark.arguments import check_session
from eligo.spark.arrow_types import is_variant
from eligo.spark.event_columns import Located, Path, column_names, locate, sent_columns
from eligo.spark.preflight import folder_of
from eligo.spark.row_groups import inner
from eligo.spark.worker import Plan, answers
from eligo.spark.worker_cache import Source, manifest_hash, opened
from eligo.store.versions import hold, is_versioned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

log = logging.getLogger("eligo.spark")

TABLE: Final = "eligo_match"
TEXTS: Final = "eligo_rules"
NUMBERS: Final = "eligo_rule_numbers"
_JSON: Final = "value"  # the column of texts
_TEXTUAL: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_PINNED: Final = re.compile(r"(.+)@(\d+)")


def register(session: SparkSession) -> None:
    """Make the functions of this file known to the session's SQL."""
    session = check_session(session)
    import pyspark.sql.functions

    from eligo.spark.table_function import MatchRows

    f: Any = pyspark.sql.functions
    session.udtf.register(TABLE, f.udtf(MatchRows, useArrow=False))
    for name, function, answer in ((TEXTS, _texts, "array<string>"), (NUMBERS, _numbers, "array<bigint>")):
        if hasattr(f, "arrow_udf"):  # from Spark 4.1
            session.udf.register(name, f.arrow_udf(function, answer))
        else:
            session.udf.register(name, f.pandas_udf(_of_pandas(name), answer))


def place_of(text: Any) -> tuple[str, int | None]:
    """The folder and the version that a path in SQL names."""
    if not isinstance(text, str) or not text:
        raise OptionError(f"the path of the rules is a string such as '/shared/rules', not {shown(text)}")
    found = _PINNED.fullmatch(text)
    path, version = (found[1], int(found[2])) if found and not os.path.isdir(text) else (text, None)
    path = local_path(path)
    if not os.path.isabs(path):
        raise OptionError(f"{path!r} is a relative path, and workers are in folders of their own: write it from / on")
    return folder_of(path), version


def _texts(path: pa.Array, event: pa.Array) -> pa.Array:
    return _rules(path, event, TEXTS)


def _numbers(path: pa.Array, event: pa.Array) -> pa.Array:
    return _rules(path, event, NUMBERS)


def _of_pandas(function: str) -> Callable[..., Any]:
    """The same function for Spark 4.0, which has no Arrow here."""
    import pandas as pd

    def rules(path: Any, event: Any) -> Any:
        paths = pa.array(path, pa.string())
        if not isinstance(event, pd.DataFrame):
            return pd.Series(_rules(paths, pa.array(event, from_pandas=True), function).to_pylist())
        for name in event.columns:
            if pd.api.types.is_datetime64_any_dtype(event[name].dtype):
                raise EventError(
                    f"{function}: this version of Spark gives timestamps in the session's time zone and does not say "
                    f"which that is: leave {name!r} out, cast it to date, or use {TABLE}, or Spark 4.1"
                )
        try:
            events = pa.RecordBatch.from_pandas(event, preserve_index=False).to_struct_array()
        except (pa.ArrowException, TypeError) as error:
            raise EventError(
                f"{function}: a field has a type that this version of Spark cannot hand over: {error}"
            ) from None
        return pd.Series(_rules(paths, events, function).to_pylist())

    rules.__annotations__ = {"path": pd.Series, "event": pd.DataFrame, "return": pd.Series}  # Spark reads these
    return rules


def _rules(path: pa.Array, event: pa.Array, function: str) -> pa.Array:
    """The rules that each event makes true; the paths are one and the same, as a rule."""
    event = event.cast(pa.string()) if pa.types.is_null(event.type) else event
    json = None if pa.types.is_struct(event.type) else _JSON
    if json is None:
        events = pa.RecordBatch.from_arrays(event.flatten(), names=[field.name for field in event.type])
    elif any(is_text(event.type) for is_text in _TEXTUAL):
        events = pa.RecordBatch.from_arrays([event], names=[_JSON])
    else:
        raise EventError(
            f"{function}(path, event): the event is a struct with a field for each attribute, as struct(*) is, or a "
            "JSON text"
        )
    texts = path.unique().to_pylist()
    if len(texts) <= 1:
        return _matched(texts[0], events, function, json) if texts else pa.array([], pa.list_(_type(function)))
    numbers = path.dictionary_encode(null_encoding="encode").indices.to_numpy()
    rows = [np.nonzero(numbers == number)[0] for number in range(len(texts))]
    parts = (events.take(pa.array(mine)) for mine in rows)
    found = [_matched(text, part, function, json) for text, part in zip(texts, parts, strict=True)]
    return pa.concat_arrays(found).take(pa.array(np.argsort(np.concatenate(rows))))


def _matched(text: Any, events: pa.RecordBatch, function: str, json: str | None) -> pa.Array:
    folder, version = place_of(text)
    source, integers = _source(folder, version)
    if integers != (function == NUMBERS):
        kind, other = ("integers", NUMBERS) if integers else ("strings", TEXTS)
        raise OptionError(f"the ids of the rules at {folder!r} are {kind}: use {other} instead of {function}")
    plan, paths = _planned(source, integers, events.schema, json)
    columns = [inner(events.column(path[0]), path[1:]) if path else pa.nulls(events.num_rows) for path in paths]
    batch = pa.RecordBatch.from_arrays(columns, names=column_names(len(columns)))
    found = [part.column(0) for part in answers(plan, source.version, batch)]
    return pa.concat_arrays(found) if found else pa.array([], pa.list_(_type(function)))


@lru_cache(maxsize=64)
def _planned(source: Source, integers: bool, kind: pa.Schema, json: str | None) -> tuple[Plan, tuple[Path, ...]]:
    """Plans how structs of this type, or texts, are matched. Returns the plan, and the path of each of its columns."""
    rules, schema = opened(source, source.version, integers), _spark_schema(kind)
    if json is None:
        located = locate(schema, sorted(rules.asked), rules.listable)
    else:
        located = Located({json: ((json,),)}, {})
    sent = sent_columns(schema, (), located.paths)
    plan = Plan(
        source=replace(source, aside=frozenset(located.unusable)),
        kept=(),
        attributes=sent.attributes,
        columns=len(sent.paths),
        output="array",
        integers=integers,
        variants=sent.variants,
        json=json,
    )
    aside = replace(opened(plan.source, source.version, integers).aside, reasons=located.unusable)
    if aside.rules:
        log.warning("%s: %s", source.path, aside.sentence())
    return plan, sent.paths


def refuse_joins(joining: Joining) -> None:
    """Functions of SQL have no documents."""
    if joining.rules:
        raise OptionError(
            f"{joining.rules:,} of these rules ask about documents seen before, and functions of SQL have none: use "
            "spark.match(events_df, path, documents=…)"
        )


def _spark_schema(kind: pa.Schema) -> StructType:
    """The columns of a batch in Spark's types."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import CalendarIntervalType, StructField, StructType, VariantType

    def of(field: pa.Field) -> DataType:
        if is_variant(field.type):
            return VariantType()
        if pa.types.is_struct(field.type):
            return StructType([StructField(inside.name, of(inside)) for inside in field.type])
        try:
            return from_arrow_type(field.type)
        except PySparkException:  # the one type of Spark's that has none in Arrow and comes all the same
            return CalendarIntervalType()

    return StructType([StructField(field.name, of(field)) for field in kind])


def _type(function: str) -> pa.DataType:
    return pa.int64() if function == NUMBERS else pa.string()


def _source(folder: str, version: int | None) -> tuple[Source, bool]:
    """The rules as they are now, and whether their ids are integers."""
    if is_versioned(folder):
        with hold(folder, version) as held:
            content = held.content
            refuse_joins(content.joining)
            return Source(folder, content.job, content.version), content.id_type == "int"
    manifest = manifest_hash(folder)
    if version is not None:
        raise SnapshotError(f"{folder!r} is a snapshot without versions: leave @{version} out")
    source = Source(folder, manifest)
    return source, opened(source, 0, False).engine.loader.id_type is int
