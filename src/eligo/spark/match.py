"""`match`: which rules does every row of a DataFrame make true?"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

import eligo
from eligo.errors import EligoError, EventError, SnapshotError
from eligo.spark import worker

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

log = logging.getLogger("eligo.spark")

_ANSWER: Final = {"exploded": "rule", "array": "rules"}

# Sent where rules name none of the columns: a batch without columns has no rows, and `x is null` holds for each row.
_FILLER: Final = "eligo_row"


def match(
    events_df: DataFrame,
    snapshot_path: str | os.PathLike[str],
    *,
    output: Literal["exploded", "array"] = "exploded",
    keep: Iterable[str] | None = None,
) -> DataFrame:
    """Match every row of `events_df`, a batch or a stream, against the rules of a snapshot.

    output  "exploded": one row for each match, the kept columns and `rule`; events without a match do not appear.
            "array": one row for each event, the kept columns and `rules`, which may be empty.
    keep    names of the event's columns to give back, in this order; None gives all of them.

    Only kept columns and those that rules name leave the JVM. The dotted attribute `user.age` is the column of that
    very name, or else the field `age` of the struct (or the key `age` of the map) `user`. An attribute that the
    DataFrame lacks is absent in every event. The snapshot must be readable under the same path on every worker.
    """
    functions = _functions()
    if output not in _ANSWER:
        raise EligoError(f"output must be 'exploded' or 'array', not {output!r}")
    path = _local_path(snapshot_path)
    manifest = worker.manifest_hash(path)
    matcher = eligo.open(path)

    schema = events_df.schema
    kept = _kept(schema, keep, _ANSWER[output])
    attributes = _columns_of_attributes(schema, matcher.attributes, matcher.multi)
    if not attributes:
        if matcher.attributes:
            log.warning(
                "none of the %d attributes that rules name (%s) is a column of the DataFrame (%s): all are absent",
                len(matcher.attributes),
                _few(matcher.attributes),
                _few(schema.names),
            )
        attributes = {_FILLER: functions.lit(True)}

    sent = {name: functions.col(_quoted(name)) for name in kept}
    sent |= {name: column for name, column in attributes.items() if name not in sent}
    places = {name: place for place, name in enumerate(sent)}
    aliases = worker.column_names(len(sent))
    selected = events_df.select(*(column.alias(alias) for column, alias in zip(sent.values(), aliases, strict=True)))
    plan = worker.Plan(
        path=path,
        manifest=manifest,
        kept=tuple(kept),
        attributes=tuple((name, places[name]) for name in attributes),
        columns=len(sent),
        output=output,
        integers=str(matcher.rule_type) == "int64",
    )

    def match_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return worker.run(plan, batches)

    return selected.mapInArrow(match_partition, _answer_schema(schema, kept, plan))


def _functions() -> Any:
    try:
        from pyspark.sql import functions
    except ImportError as error:
        raise EligoError("Spark is not installed: pip install 'eligo[spark]'") from error
    return functions


def _local_path(snapshot_path: str | os.PathLike[str]) -> str:
    """Absolute, because a worker runs in a folder of its own."""
    path = os.fspath(snapshot_path)
    if "://" in path:
        raise SnapshotError(
            f"{path!r} is a URL, but a snapshot is memory-mapped: copy it to a folder that the driver and every worker "
            "see under the same path (a shared mount, or a local disk that all of them fill)"
        )
    return os.path.abspath(path)


def _kept(schema: StructType, keep: Iterable[str] | None, answer: str) -> list[str]:
    """The names of the columns to give back, checked."""
    if isinstance(keep, str):
        raise EligoError(f"keep must be a list of column names, not the string {keep!r}: keep=[{keep!r}]")
    kept = list(schema.names if keep is None else keep)
    for name in kept:
        if name not in schema.names:
            near = difflib.get_close_matches(name, schema.names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; it has {_few(schema.names)}"
            raise EligoError(f"keep names {name!r}, which is not a column of the DataFrame{hint}")
        if name.casefold() == answer:
            raise EligoError(
                f"the event column {name!r} and the answer's column {answer!r} would have one name: rename it with "
                f"events_df.withColumnRenamed({name!r}, 'event_{answer}'), or leave it out of keep=[…]"
            )
    twice = sorted({name for name in kept if kept.count(name) > 1 or schema.names.count(name) > 1})
    if twice:
        raise EligoError(f"two columns have the name {twice[0]!r}: rename one, or leave it out of keep=[…]")
    return kept


def _columns_of_attributes(schema: StructType, attributes: Iterable[str], multi: frozenset[str]) -> dict[str, Column]:
    """Attribute → the expression that finds it, for the attributes that the DataFrame has."""
    from pyspark.sql.functions import col
    from pyspark.sql.types import MapType, StructType

    found: dict[str, Column] = {}
    for attribute in attributes:
        paths = dict(_paths(schema, attribute))
        if len(paths) > 1:  # a struct on the way is no value; two values are one too many
            paths = {path: kind for path, kind in paths.items() if not isinstance(kind, StructType | MapType)} or paths
        if len(paths) > 1:
            ways = " and ".join(" → ".join(path) for path in paths)
            raise EventError(f"the attribute {attribute!r} is in the DataFrame more than once, as {ways}: drop one")
        for (first, *rest), kind in paths.items():
            _refuse_unusable(attribute, kind, attribute in multi)
            if schema.names.count(first) > 1:
                raise EventError(f"two columns have the name {first!r}, which rules look at: rename or drop one")
            column = col(_quoted(first))
            for name in rest:
                column = column.getItem(name)
            found[attribute] = column
    return found


def _refuse_unusable(attribute: str, kind: DataType, several: bool) -> None:
    """Say now, and by Spark's names, what every worker would otherwise say about its first batch."""
    from pyspark.sql import types

    plain = (types.StringType, types.BooleanType, types.DateType, types.TimestampType, types.TimestampNTZType)
    value = kind.elementType if isinstance(kind, types.ArrayType) else kind
    if isinstance(kind, types.ArrayType) and not several:
        raise EventError(
            f"the attribute {attribute!r} is an array column but single-valued in the rules: declare it with "
            f"Matcher(multi=[{attribute!r}]) when they are compiled, or give one value"
        )
    numeric = isinstance(value, types.NumericType) and not isinstance(value, types.DecimalType)
    if not (numeric or isinstance(value, (*plain, types.NullType))):
        raise EventError(
            f"the attribute {attribute!r} is a column of type {kind.simpleString()}; rules compare numbers, strings, "
            "Booleans, dates and timestamps: cast it (a decimal to double or bigint), or name a field of the struct"
        )


def _paths(kind: DataType | None, name: str) -> Iterator[tuple[tuple[str, ...], DataType]]:
    """Every way to read a dotted name: as one name, or as a name inside a struct or map, each with the type found."""
    whole = _member(kind, name)
    if whole is not None:
        yield (name,), whole
    dot = name.find(".")
    while dot >= 0:
        for path, leaf in _paths(_member(kind, name[:dot]), name[dot + 1 :]):
            yield (name[:dot], *path), leaf
        dot = name.find(".", dot + 1)


def _member(kind: DataType | None, name: str) -> DataType | None:
    """The type of a struct's field or of a map's values."""
    from pyspark.sql.types import MapType, StringType, StructType

    if isinstance(kind, StructType):
        return kind[name].dataType if name in kind.names else None
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return kind.valueType
    return None


def _answer_schema(schema: StructType, kept: list[str], plan: worker.Plan) -> StructType:
    from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

    rule: DataType = LongType() if plan.integers else StringType()
    answer: DataType = rule if plan.output == "exploded" else ArrayType(rule, containsNull=False)
    return StructType([*(schema[name] for name in kept), StructField(_ANSWER[plan.output], answer, nullable=False)])


def _quoted(name: str) -> str:
    """A column's name in backquotes: a dot in it is then no path."""
    return "`" + name.replace("`", "``") + "`"


def _few(names: Iterable[str], most: int = 6) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")
