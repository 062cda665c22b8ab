"""Matching in SQL, after `register(session)`.

    SELECT * FROM eligo_match(TABLE(events), '/shared/rules', keep => 'id,at')       a table function, as `match`
    SELECT id, eligo_rules('/shared/rules', struct(*)) FROM events                   ids that are strings
    SELECT id, eligo_rule_numbers('/shared/rules', struct(age, country)) FROM events     ids that are integers

A function of a row has one type for ever, hence two of them. It also has no moment at which Spark would ask it about a
query as a whole: each batch of rows takes the version that is the newest then, unless the path says which one it is:
'/shared/rules@7'. The table function has that moment, and a query of it sees one version.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from eligo.errors import EventError, OptionError, SnapshotError
from eligo.spark.preflight import folder_of
from eligo.spark.rule_sets import Source, manifest_hash, opened
from eligo.spark.variant import attribute_columns, is_variant
from eligo.spark.worker import Plan, answers
from eligo.store.versions import current_version, hold, is_versioned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE: Final = "eligo_match"
TEXTS: Final = "eligo_rules"
NUMBERS: Final = "eligo_rule_numbers"
_PINNED: Final = re.compile(r"(.+)@(\d+)")


def register(session: SparkSession) -> None:
    """Make the functions of this file known to the session's SQL."""
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
        raise OptionError(f"the path of the rules is a string such as '/shared/rules', not {text!r}")
    found = _PINNED.fullmatch(text)
    path, version = (found[1], int(found[2])) if found and not os.path.isdir(text) else (text, None)
    if not os.path.isabs(path) and "://" not in path:
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
        if not isinstance(event, pd.DataFrame):
            raise _no_struct(function)
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
        return pd.Series(_rules(pa.array(path, pa.string()), events, function).to_pylist())

    rules.__annotations__ = {"path": pd.Series, "event": pd.DataFrame, "return": pd.Series}  # Spark reads these
    return rules


def _rules(path: pa.Array, event: pa.Array, function: str) -> pa.Array:
    """The rules that each event makes true; the paths are one and the same, as a rule."""
    if not pa.types.is_struct(event.type):
        raise _no_struct(function)
    events = pa.RecordBatch.from_arrays(event.flatten(), names=[field.name for field in event.type])
    texts = path.unique().to_pylist()
    if len(texts) <= 1:
        return _matched(texts[0], events, function) if texts else pa.array([], pa.list_(_type(function)))
    numbers = path.dictionary_encode(null_encoding="encode").indices.to_numpy()
    rows = [np.nonzero(numbers == number)[0] for number in range(len(texts))]
    found = [_matched(text, events.take(pa.array(mine)), function) for text, mine in zip(texts, rows, strict=True)]
    return pa.concat_arrays(found).take(pa.array(np.argsort(np.concatenate(rows))))


def _no_struct(function: str) -> EventError:
    return EventError(
        f"{function}(path, event): the event is a struct with a field for each attribute, as struct(*) is"
    )


def _matched(text: Any, events: pa.RecordBatch, function: str) -> pa.Array:
    folder, version = place_of(text)
    source, integers = _source(folder, version)
    if integers != (function == NUMBERS):
        kind, other = ("integers", NUMBERS) if integers else ("strings", TEXTS)
        raise OptionError(f"the ids of the rules at {folder!r} are {kind}: use {other} instead of {function}")
    matcher = opened(source, source.version, integers)
    parts = [part for name in events.schema.names for part in _opened(name, events.column(name), matcher)]
    # A batch without columns would have no rows, and an event of which rules look at nothing is one all the same.
    parts = parts or [("", pa.nulls(events.num_rows))]
    events = pa.RecordBatch.from_arrays([column for _, column in parts], names=[name for name, _ in parts])
    plan = Plan(source, kept=(), attributes=(), columns=0, output="array", integers=integers)
    found = [batch.column(0) for batch in answers(plan, source.version, events, events)]
    return pa.concat_arrays(found) if found else pa.array([], pa.list_(_type(function)))


def _opened(name: str, column: pa.Array, matcher: Any) -> Iterator[tuple[str, pa.Array]]:
    """A column as it is; of a Variant, also inside a struct, what rules look at."""
    if is_variant(column.type):
        for attribute in matcher.attributes:
            if attribute == name or attribute.startswith(f"{name}."):
                keys = attribute[len(name) + 1 :].split(".") if attribute != name else []
                for found in attribute_columns(attribute, column, keys, attribute in matcher.multi):
                    yield attribute, found
    elif not _has_variant(column.type):
        yield name, column
    else:
        for field, part in zip(column.type, column.flatten(), strict=True):
            yield from _opened(f"{name}.{field.name}", part, matcher)


def _has_variant(kind: pa.DataType) -> bool:
    return is_variant(kind) or (pa.types.is_struct(kind) and any(_has_variant(field.type) for field in kind))


def _type(function: str) -> pa.DataType:
    return pa.int64() if function == NUMBERS else pa.string()


def _source(folder: str, version: int | None) -> tuple[Source, bool]:
    """The rules as they are now, and whether their ids are integers."""
    if is_versioned(folder):
        version = current_version(folder) if version is None else version
        return Source(folder, version=version), _has_integers(folder, version)
    manifest = manifest_hash(folder)
    if version is not None:
        raise SnapshotError(f"{folder!r} is a snapshot without versions: leave @{version} out")
    source = Source(folder, manifest)
    return source, str(opened(source, 0, False).rule_type) == "int64"


def _has_integers(folder: str, version: int) -> bool:
    with hold(folder, version) as held:
        return held.content.id_type == "int"
