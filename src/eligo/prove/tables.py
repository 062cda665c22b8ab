"""Events as Arrow tables: a column for each attribute, of every Arrow type that holds values of its kind.

A table is drawn first and its events are read back from it, so that both say the same: an 8-bit column holds what fits
8 bits, a column of milliseconds no microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eligo.prove.draw import Drawer, Kind

# Arrow types by the kind of value that they hold, written as a program would write them.
TYPES: Mapping[Kind, tuple[str, ...]] = {
    "number": (
        "pa.int64()", "pa.int64()", "pa.float64()", "pa.float64()", "pa.int8()", "pa.int16()", "pa.int32()",
        "pa.uint8()", "pa.uint16()", "pa.uint32()", "pa.float32()", "pa.dictionary(pa.int32(), pa.int64())",
        "pa.decimal128(20, 2)", "pa.decimal256(50, 3)",
    ),
    "string": (
        "pa.string()", "pa.string()", "pa.large_string()", "pa.string_view()", "pa.dictionary(pa.int32(), pa.string())",
    ),
    "time": (
        "pa.date32()", "pa.date64()", "pa.timestamp('us')", "pa.timestamp('us', tz='UTC')", "pa.timestamp('ms')",
        "pa.timestamp('s')", "pa.timestamp('us', tz='+01:00')",
    ),
    "boolean": ("pa.bool_()",),
}  # fmt: skip
LISTS = ("pa.list_", "pa.large_list")


@dataclass(frozen=True)
class Column:
    """A column: its name in the table, and its Arrow type as a program writes it."""

    name: str
    type: str

    def arrow_type(self) -> pa.DataType:
        made = eval(self.type, {"pa": pa})  # of what this file writes, and nothing else
        assert isinstance(made, pa.DataType)
        return made

    def array(self, values: Sequence[Any]) -> pa.Array:
        """The values as this column has them; Arrow takes a map as pairs."""
        kind = self.arrow_type()
        if pa.types.is_map(kind):
            values = [None if value is None else list(value.items()) for value in values]
        return pa.array(values, kind)


def table_of(events: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> pa.Table:
    """The events as a table of these columns; every value must fit its column."""
    arrays = [column.array([event.get(column.name) for event in events]) for column in columns]
    return pa.table(arrays, names=[column.name for column in columns])


def draw_table(drawer: Drawer, events: int) -> tuple[tuple[dict[str, Any], ...], tuple[Column, ...]]:
    """Events that fit one table, and its columns: each attribute of one type, or missing; paths as structs or flat."""
    choose, theme = drawer.random, drawer.theme
    columns: list[Column] = []
    values: list[list[Any]] = []
    nested = choose.choice(("", "pa.struct([({!r}, {})])", "pa.map_(pa.string(), {1})"))
    for name in theme.attributes:
        if choose.random() < 0.1 or (nested and any(other.startswith(f"{name}.") for other in theme.attributes)):
            continue
        home: Kind = (theme.singles | dict(theme.several))[name]  # type: ignore[operator]
        kind: Kind = home if choose.random() < 0.75 else choose.choice(("number", "string", "time", "boolean"))
        column = Column(name, choose.choice(TYPES[kind]))
        if name in theme.several and choose.random() < 0.8 and "dictionary" not in column.type:
            column = Column(name, f"{choose.choice(LISTS)}({column.type})")
            drawn: list[Any] = [
                None
                if choose.random() < 0.1
                else [_value(drawer, kind, column) for _ in range(choose.choice((0, 1, 2, 3)))]
                for _ in range(events)
            ]
        else:
            drawn = [_value(drawer, kind, column) for _ in range(events)]
        if "." in name and nested:
            outer, inner = name.split(".", 1)
            column = Column(outer, nested.format(inner, column.type))
            drawn = [None if choose.random() < 0.1 else {inner: one} for one in drawn]
        columns.append(column)
        values.append(column.array(drawn).to_pylist(maps_as_pydicts="strict"))
    made = tuple({column.name: one[e] for column, one in zip(columns, values, strict=True)} for e in range(events))
    return made, tuple(columns)


def _value(drawer: Drawer, kind: Kind, column: Column) -> Any:
    """A value that the innermost type of the column holds, or null."""
    choose = drawer.random
    kind_type = column.arrow_type()
    while pa.types.is_list(kind_type) or pa.types.is_large_list(kind_type):
        kind_type = kind_type.value_type
    if choose.random() < 0.08:
        return None
    for _ in range(20):
        value = drawer.any_value(kind)
        if pa.types.is_floating(kind_type) and isinstance(value, int):
            value = float(value)
        try:
            pa.array([value], kind_type).to_pylist()
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            continue
        return value
    return None
