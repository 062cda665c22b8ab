"""The columns of a DataFrame of rules, checked and in the types that the workers expect.

Tags go to the workers as JSON: Spark measures a batch of Arrow after each of its rows, and a column of arrays that are
null takes it as many steps as there are rows so far. The reading of rules without tags then takes twice as long.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, Literal

from eligo.errors import RuleTypeError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

COLUMNS: Final = ("id", "expression", "weight", "tags", "owner")
IdType = Literal["int", "str"]


def rule_columns(frame: DataFrame, more: tuple[str, ...] = ()) -> tuple[DataFrame, IdType]:
    """Columns id, expression, weight, tags, owner, and those strings of `more` (null where missing); kind of ids."""
    from pyspark.sql.functions import lit

    if frame.isStreaming:
        raise RuleTypeError("rules are compiled from a table, not from a stream: use foreachBatch and update_rules")
    schema = frame.schema
    for name in COLUMNS[:1] if "change" in more and "change" in schema.names else COLUMNS[:2]:
        if name not in schema.names:
            raise _missing(schema, name)
    columns = []
    for name in (*COLUMNS, *more):
        if schema.names.count(name) > 1:
            raise RuleTypeError(f"two columns of the rules have the name {name!r}: rename or drop one")
        if name in schema.names:
            columns.append(_checked(frame, name, schema[name].dataType).alias(name))
        else:
            kind = {"weight": "double"}.get(name, "string")
            columns.append(lit(None).cast(kind).alias(name))
    selected = frame.select(*columns)
    return selected, "str" if selected.schema["id"].dataType.simpleString() == "string" else "int"


def _checked(frame: DataFrame, name: str, kind: DataType) -> Column:
    """The column in the one type that workers know, or why not."""
    from pyspark.sql import types
    from pyspark.sql.functions import array, col, regexp_replace, to_json, when

    column = col(f"`{name}`")
    text = (types.StringType, types.CharType, types.VarcharType)
    whole = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
    if name == "id":
        if isinstance(kind, whole):
            return column.cast("bigint")
        if isinstance(kind, text):
            return column.cast("string")
        raise _wrong(name, kind, "ids are strings or integers: cast it to string or bigint")
    if name == "weight":
        if isinstance(kind, types.NumericType):
            return column.cast("double")
        raise _wrong(name, kind, "a weight is a number: cast it to double")
    if name == "tags":
        if isinstance(kind, text):
            # As a string of JSON: that of an array of it, without the brackets.
            return when(column.isNotNull(), regexp_replace(to_json(array(column.cast("string"))), r"^\[|\]$", ""))
        if isinstance(kind, types.ArrayType) and isinstance(kind.elementType, text):
            return to_json(column)
        raise _wrong(name, kind, "tags are an array of strings, or one string")
    if isinstance(kind, (*text, types.NullType)):
        return column.cast("string")
    raise _wrong(name, kind, f"{name} is text: cast it to string (a struct in the JSON form with to_json)")


def _missing(schema: StructType, name: str) -> RuleTypeError:
    near = difflib.get_close_matches(name, schema.names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}? withColumnRenamed({near[0]!r}, {name!r})" if near else ""
    return RuleTypeError(
        f"a table of rules has the columns id and expression; missing {name}; it has {', '.join(schema.names)}{hint}"
    )


def _wrong(name: str, kind: DataType, remedy: str) -> RuleTypeError:
    return RuleTypeError(f"the column {name} is of type {kind.simpleString()}; {remedy}")
