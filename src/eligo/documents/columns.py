"""Rows of Arrow tables as Python values: what `match` would get for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eligo.language.reference import Moment
from eligo.segments.encoding import as_events

_SLICE = 65_536


def rows_of(events: Any) -> Iterable[Any]:
    """Many events, in whatever form they come, one by one."""
    found = as_events(events)
    return rows_of_table(found) if isinstance(found, pa.Table | pa.RecordBatch) else found


def column_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """The values of a column; times that Python cannot write as moments."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        numbers = pc.cast(column, pa.timestamp("us", kind.tz), safe=False).cast(pa.int64()).to_pylist()
        return [None if number is None else Moment(number) for number in numbers]
    if isinstance(kind, pa.MapType):
        return [None if pairs is None else dict(pairs) for pairs in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def rows_of_table(table: pa.Table | pa.RecordBatch, names: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows as dicts, with all columns or some; a null is left out."""
    chosen = table.schema.names if names is None else [name for name in table.schema.names if name in set(names)]
    for start in range(0, table.num_rows, _SLICE):
        part = table.slice(start, _SLICE)
        columns = [column_values(part.column(name)) for name in chosen]
        for values in zip(*columns, strict=True) if columns else ((),) * part.num_rows:
            yield {name: value for name, value in zip(chosen, values, strict=True) if value is not None}
