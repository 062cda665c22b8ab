"""The table function `eligo_match`: `match` for people who write SQL.

    analyze     once for a query, on the driver: which columns are needed, what comes back, which version
    eval        a row; 4,096 of them are matched at a time
    terminate   the rest

Rows come one by one, which is slower than the columns that `match` sends. The kept values are given back as they came;
those that rules look at become columns of Arrow, and go the way of all events.

PySpark is needed to load this file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, SelectedColumn

from eligo.arguments import shown
from eligo.errors import OptionError
from eligo.spark import worker
from eligo.spark.arrow_types import BARE, arrow_type, is_variant
from eligo.spark.event_columns import Path, column_names, is_bare, quoted, sent_columns, type_at
from eligo.spark.match import VERSION, answer_schema, begin_plan, locate_attributes
from eligo.spark.sql import TABLE, place_of, refuse_joins
from eligo.spark.worker import Plan
from eligo.spark.worker_cache import Source, facts

_ROWS: Final = 4096  # matched at a time
_USE: Final = f"{TABLE}(TABLE(events), '/shared/rules')"


@dataclass
class Analyzed(AnalyzeResult):
    """What Spark hands to every instance of the function."""

    plan: Plan | None = None
    kept: int = 0  # how many of the row's first columns are given back
    types: list[pa.DataType] = field(default_factory=list)  # of the others


class MatchRows:
    """One instance for a partition of the events."""

    @staticmethod
    def analyze(
        events: AnalyzeArgument,
        path: AnalyzeArgument,
        keep: AnalyzeArgument | None = None,
        output: AnalyzeArgument | None = None,
        top_k: AnalyzeArgument | None = None,
        tags: AnalyzeArgument | None = None,
        version_column: AnalyzeArgument | None = None,
        json: AnalyzeArgument | None = None,
    ) -> Analyzed:
        """Plan the query; keep and tags are names separated by commas."""
        schema = events.dataType
        if not events.isTable or not isinstance(schema, StructType):
            raise OptionError(f"the first argument is a table: {_USE}")
        if path.isTable or not path.isConstantExpression:
            raise OptionError(f"the path of the rules is one string for the whole query: {_USE}")
        folder, version = place_of(path.value)
        found = facts(folder, version, check=False)
        refuse_joins(found.joining)
        plan = begin_plan(
            schema,
            Source(folder, found.manifest, found.version),
            found,
            _value(output, "output", "exploded"),
            _names(keep, "keep"),
            _value(top_k, "top_k", None),
            _names(tags, "tags"),
            _value(version_column, "version_column", VERSION),
            _value(json, "json", None),
        )
        attributes, plan, _ = locate_attributes(schema, found, plan)
        sent = sent_columns(schema, (), attributes)
        selected = [
            *map(quoted, plan.kept),
            *(_expression(schema, *each) for each in zip(sent.paths, sent.types, strict=True)),
        ]
        return Analyzed(
            schema=answer_schema(schema, plan),
            select=[SelectedColumn(*each) for each in zip(selected, column_names(len(selected)), strict=True)],
            # Of what is kept only the number of the row goes through the matching, as the first column.
            plan=replace(
                plan,
                kept=("row",),
                attributes=tuple((name, number + 1) for name, number in sent.attributes),
                variants=tuple((name, number + 1, keys) for name, number, keys in sent.variants),
                columns=1 + len(sent.paths),
            ),
            kept=len(plan.kept),
            types=[arrow_type(kind) for kind in sent.types],
        )

    def __init__(self, analyzed: Analyzed) -> None:
        assert analyzed.plan is not None
        self.plan = analyzed.plan
        self.kept = analyzed.kept
        self.types = analyzed.types
        self.rows: list[Any] = []

    def eval(self, row: Any, *_: Any, **__: Any) -> Iterator[tuple[Any, ...]]:
        """Take a row; the answers come when there are enough of them."""
        self.rows.append(row)
        if len(self.rows) >= _ROWS:
            yield from self._answers()

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """The answers of the last rows."""
        if self.rows:
            yield from self._answers()

    def _answers(self) -> Iterator[tuple[Any, ...]]:
        rows, self.rows = self.rows, []
        columns = [pa.array(range(len(rows)), pa.int64())]
        columns += [_column([row[i] for row in rows], kind) for i, kind in enumerate(self.types, self.kept)]
        batch = pa.RecordBatch.from_arrays(columns, names=column_names(len(columns)))
        for found in worker.run(self.plan, iter([batch])):
            answers = zip(*(column.to_pylist() for column in found.columns), strict=True)
            for number, *answer in answers:
                yield (*rows[number][: self.kept], *answer)


def _expression(schema: StructType, where: Path, kind: DataType | None) -> str:
    """How SQL finds the attribute. A moment comes as a number: Python would see it in the worker's own time zone."""
    if not where:
        return "true"
    text = quoted(where[0])
    for depth in range(1, len(where)):
        if isinstance(type_at(schema, where[:depth]), MapType):
            key = where[depth].replace("\\", "\\\\").replace("'", "\\'")
            text += f"['{key}']"
        else:
            text += f".{quoted(where[depth])}"
    if is_bare(kind):
        return f"CASE WHEN {text} IS NOT NULL THEN struct() END"
    if isinstance(kind, TimestampType):
        return f"unix_micros({text})"
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, TimestampType):
        return f"transform({text}, x -> unix_micros(x))"
    return text


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind) and kind.tz:
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_list(kind) and pa.types.is_timestamp(kind.value_type) and kind.value_type.tz:
        return pa.array(values, pa.list_(pa.int64())).cast(pa.list_(kind.value_type))
    if kind == BARE:
        values = [None if value is None else {} for value in values]
    if is_variant(kind):
        values = [value and {"value": bytes(value.value), "metadata": bytes(value.metadata)} for value in values]
    return pa.array(values, kind)


def _value(argument: AnalyzeArgument | None, name: str, default: Any) -> Any:
    if argument is None:
        return default
    if argument.isTable or not argument.isConstantExpression:
        raise OptionError(f"{name} is a constant: {_USE[:-1]}, {name} => …)")
    return argument.value


def _names(argument: AnalyzeArgument | None, name: str) -> list[str] | None:
    """A list of names, of an array or of a string with commas; names that hold commas need the array."""
    value = _value(argument, name, None)
    if value is None or isinstance(value, list | tuple):
        return None if value is None else list(value)
    if not isinstance(value, str):
        raise OptionError(f"{name} is a string such as 'id,at', or an array of strings, not {shown(value)}")
    return [part.strip() for part in value.split(",") if part.strip()]
