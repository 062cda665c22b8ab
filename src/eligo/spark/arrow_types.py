"""Columns of Spark in Arrow and in Parquet files: their types, and which leaves hold them.

Of objects rules see only whether a struct or a map is there, so no content goes along to the matcher:

    s     {x: 1, y: "a"}  null  {x: 2, y: null}         a kept column, or one of a file
    bare  {}              null  {}                      what the matcher gets as the attribute `s`

The fields that rules name come as columns of their own, such as `s.x`; a struct with fields would bring them twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from eligo.errors import EventError
from eligo.spark.event_columns import Path, Sent, is_bare, type_at

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

BARE: Final = pa.struct([])


def bare(column: pa.Array) -> pa.Array:
    """Structs without fields in place of structs, maps, and lists of them; any other column as it is."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if not pa.types.is_struct(kind) and not pa.types.is_map(kind):
        return column
    return pa.Array.from_buffers(BARE, len(column), column.buffers()[:1], offset=column.offset)


def variant_type() -> pa.DataType:
    """The Arrow type in which Spark sends a Variant."""
    metadata = pa.field("metadata", pa.binary(), False, metadata={"variant": "true"})
    return pa.struct([pa.field("value", pa.binary(), False), metadata])


def is_variant(kind: pa.DataType) -> bool:
    if not pa.types.is_struct(kind) or {field.name for field in kind} != {"value", "metadata"}:
        return False
    return (kind.field("metadata").metadata or {}).get(b"variant") == b"true"


def parquet_leaves(schema: StructType, sent: Sent, constants: Sequence[str]) -> tuple[str, ...]:
    """Returns the leaves of a file to read: of structs the fields by their paths, maps as a whole, nothing twice."""
    from pyspark.sql.types import StructType

    wanted: set[Path] = set()
    bare: list[Path] = []
    for path, kind in zip(sent.paths, sent.types, strict=True):
        if path and path[0] not in constants:
            length = 1
            while length < len(path) and isinstance(type_at(schema, path[:length]), StructType):
                length += 1
            is_presence = length == len(path) and is_bare(kind) and isinstance(type_at(schema, path), StructType)
            (bare.append if is_presence else wanted.add)(path[:length])
    # Whether a struct is there is seen by any of its fields: by one that is read anyway, or by a small one.
    for path in sorted(bare, key=len, reverse=True):
        if not any(path == other[: len(path)] or other == path[: len(other)] for other in wanted):
            wanted.add(_small_leaf(schema, path))
    return tuple(sorted(".".join(p) for p in wanted if not any(p[:n] in wanted for n in range(1, len(p)))))


def _small_leaf(schema: StructType, path: Path) -> Path:
    """The field in a struct that takes the least to read, as far as its type tells."""
    from pyspark.sql.types import BooleanType, DateType, NumericType, StringType, StructType

    sizes = (BooleanType, DateType | NumericType, StringType)
    while isinstance(kind := type_at(schema, path), StructType) and kind.fields:
        order = [[isinstance(field.dataType, size) for size in sizes] for field in kind.fields]
        path = (*path, kind.fields[order.index(max(order))].name)
    return path


def arrow_of_spark(where: Path, kind: DataType | None) -> pa.DataType:
    """The Arrow type of a column that `match_files` reads; others are refused."""
    try:
        return arrow_type(kind)
    except KeyError:
        raise EventError(
            f"the column {'.'.join(where)} is of type {kind.simpleString() if kind else None}, which match_files does "
            "not read: leave it out with keep=[…], or use spark.match(session.read.parquet(…), …)"
        ) from None


def arrow_type(kind: DataType | None) -> pa.DataType:
    """Returns the Arrow type that Spark has for one of its own; KeyError for one that has none here."""
    from pyspark.sql import types

    if kind is None:
        return pa.bool_()  # of the column that stands in for none
    if isinstance(kind, types.ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType), kind.containsNull))
    if isinstance(kind, types.MapType):
        value = pa.field("value", arrow_type(kind.valueType), kind.valueContainsNull)
        return pa.map_(pa.field("key", arrow_type(kind.keyType), False), value)
    if isinstance(kind, types.StructType):
        return pa.struct([pa.field(field.name, arrow_type(field.dataType), field.nullable) for field in kind.fields])
    if isinstance(kind, types.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, types.StringType | types.CharType | types.VarcharType):
        return pa.string()
    if isinstance(kind, types.VariantType):
        return variant_type()
    return _PLAIN[kind.typeName()]


_PLAIN: Final = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
