"""Rows of Arrow tables as Python values: what `match` would get for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eligo.compile.codes import RAW_FLOAT
from eligo.compile.compiled import I64
from eligo.compile.decimals import decimal_entries
from eligo.documents.values import number_key
from eligo.language.reference import Moment
from eligo.language.values import BOOLEAN, NUMBER, STRING, TIME
from eligo.segments.encoding import as_events

_SLICE = 65_536


def rows_of(events: Any) -> Iterable[Any]:
    """Many events, in whatever form they come, one by one."""
    found = as_events(events)
    return rows_of_table(found) if isinstance(found, pa.Table | pa.RecordBatch) else found


@dataclass(frozen=True)
class Column:
    """The values of a column as values.py has them, and the rows that have one. Strings have no key yet, and those of
    a row are data[offsets[i]:offsets[i+1]] for i in `rest`.
    """

    rows: I64
    kind: int
    key: I64
    rest: I64
    data: NDArray[np.uint8]
    offsets: I64


_NO_BYTES, _NO_OFFSETS = np.zeros(0, np.uint8), np.zeros(1, np.int64)


def is_flat(table: pa.Table | pa.RecordBatch) -> bool:
    """Whether every column is of a type that `flat_column` reads, and names are different."""
    names = table.schema.names
    return len(set(names)) == len(names) and all(_is_flat(field.type) for field in table.schema)


def _is_flat(kind: pa.DataType) -> bool:
    is_type = pa.types
    if is_type.is_dictionary(kind):
        return bool(is_type.is_string(kind.value_type) or is_type.is_large_string(kind.value_type))
    return bool(
        (is_type.is_integer(kind) and kind != pa.uint64())
        or is_type.is_decimal(kind)
        or is_type.is_float64(kind)
        or is_type.is_float32(kind)
        or is_type.is_boolean(kind)
        or is_type.is_date(kind)
        or is_type.is_timestamp(kind)
        or is_type.is_string(kind)
        or is_type.is_large_string(kind)
    )


def flat_column(column: pa.ChunkedArray | pa.Array) -> Column:
    """A column of one of these types as integers of the same order."""
    kind, is_type = column.type, pa.types
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)) if column.null_count else None
    left = column.drop_null()
    count = len(left)
    rest: I64 = np.zeros(count, np.int64)
    data, offsets = _NO_BYTES, _NO_OFFSETS
    key: I64
    if is_type.is_string(kind) or is_type.is_large_string(kind) or is_type.is_dictionary(kind):
        words = left.cast(pa.large_string()) if is_type.is_dictionary(kind) else left
        words = _whole(words).dictionary_encode()
        texts = words.dictionary.cast(pa.large_string())
        offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
        data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        number, key = STRING, rest
        rest = words.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    elif is_type.is_floating(kind):
        values = left.to_numpy(zero_copy_only=False) if isinstance(left, pa.Array) else left.to_numpy()
        values = values.astype(np.float64)
        there = ~np.isnan(values)
        if not there.all():
            rows = (np.arange(count) if rows is None else rows)[there]
            values, rest = values[there], rest[there]
        number, key = NUMBER, ordered_floats(values)
    elif is_type.is_integer(kind):
        whole = left.cast(pa.int64()).to_numpy()
        number, key = NUMBER, ordered_floats(whole.astype(np.float64))
        _put_large(whole, np.flatnonzero((whole > 2**53) | (whole < -(2**53))), key, rest)
    elif is_type.is_decimal(kind):
        found, entry = decimal_entries(_whole(left))
        floats = np.where(found == RAW_FLOAT, entry.view(np.float64), entry.astype(np.float64))
        number, key = NUMBER, ordered_floats(floats)
        _put_large(entry, np.flatnonzero(found != RAW_FLOAT), key, rest)
    elif is_type.is_boolean(kind):
        number, key = BOOLEAN, left.cast(pa.int64()).to_numpy()
    else:
        moments = left.cast(pa.timestamp("us", kind.tz if is_type.is_timestamp(kind) else None), safe=False)
        number, key = TIME, moments.cast(pa.int64()).to_numpy()
    return Column(np.arange(count) if rows is None else rows, number, key, rest, data, offsets)


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece."""
    if isinstance(column, pa.Array):
        return column
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _put_large(whole: I64, rows: I64, key: I64, rest: I64) -> None:
    """Writes the keys of integers that may be no floats."""
    for i in rows.tolist():
        key[i], rest[i] = number_key(int(whole[i]))


def ordered_floats(values: NDArray[np.float64]) -> I64:
    """Floats as integers of the same order; −0.0 as 0.0."""
    bits = (values + 0.0).view(np.int64)
    ordered: I64 = np.where(bits >= 0, bits, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF))
    return ordered


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
