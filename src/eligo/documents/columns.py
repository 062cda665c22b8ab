"""Rows of Arrow tables as Python values: what `match` would get for each of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.codes import RAW_FLOAT
from eligo.compile.compiled import I64
from eligo.compile.decimals import decimal_entries
from eligo.documents.values import number_key
from eligo.errors import ColumnError, EventError
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
    if is_type.is_dictionary(kind):  # which may have nulls of its own
        column = column.cast(pa.large_string())
        kind = column.type
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False)) if column.null_count else None
    left = column.drop_null()
    count = len(left)
    rest: I64 = np.zeros(count, np.int64)
    data, offsets = _NO_BYTES, _NO_OFFSETS
    key: I64
    if is_type.is_string(kind) or is_type.is_large_string(kind):
        words = in_one_piece(left).dictionary_encode()
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
        found, entry = decimal_entries(in_one_piece(left))
        floats = np.where(found == RAW_FLOAT, entry.view(np.float64), entry.astype(np.float64))
        number, key = NUMBER, ordered_floats(floats)
        _put_large(entry, np.flatnonzero(found != RAW_FLOAT), key, rest)
    elif is_type.is_boolean(kind):
        number, key = BOOLEAN, left.cast(pa.int64()).to_numpy()
    else:
        number, key = TIME, moments_of(left)
    return Column(np.arange(count) if rows is None else rows, number, key, rest, data, offsets)


_UNITS = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 0}  # microseconds


def moments_of(column: pa.ChunkedArray | pa.Array) -> I64:
    """The microseconds of dates or timestamps, none of which is null."""
    kind = column.type
    if pa.types.is_date32(kind):
        whole, factor = column.cast(pa.int32()).cast(pa.int64()).to_numpy(), 86_400_000_000
    else:
        factor = 1000 if pa.types.is_date64(kind) else _UNITS[kind.unit]
        whole = column.cast(pa.int64()).to_numpy()
    moments: I64
    if not factor:
        moments = np.floor_divide(whole, 1000)
        return moments
    beyond = np.flatnonzero(np.abs(whole.astype(np.float64)) * factor >= 2.0**63)
    if len(beyond):
        raise EventError(
            f"{column[int(beyond[0])].cast(pa.int64() if factor != 86_400_000_000 else pa.int32())} as {kind} lies "
            "beyond what 64 bits of microseconds hold"
        )
    moments = whole * factor
    return moments


def in_one_piece(column: pa.ChunkedArray | pa.Array) -> pa.Array:
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
    """The values of a column: times as moments, for Python cannot write all of them; maps as dicts."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        valid = column.is_valid().to_pylist()
        times = iter(moments_of(column.drop_null()).tolist())
        return [Moment(next(times)) if there else None for there in valid]
    values: list[Any] = column.to_pylist()
    return [_with_dicts(kind, value) for value in values] if pa.types.is_nested(kind) else values


def _with_dicts(kind: pa.DataType, value: Any) -> Any:
    """A nested value with maps as dicts."""
    if value is None:
        return None
    if isinstance(kind, pa.MapType):
        return {key: _with_dicts(kind.item_type, inner) for key, inner in value}
    if pa.types.is_struct(kind):
        return {field.name: _with_dicts(field.type, value[field.name]) for field in kind}
    if pa.types.is_nested(kind) and hasattr(kind, "value_type"):
        return [_with_dicts(kind.value_type, inner) for inner in value]
    return value


def rows_of_table(table: pa.Table | pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows as dicts; a null is left out."""
    names = table.schema.names
    if len(set(names)) < len(names):
        raise ColumnError("two columns of the table have one name: rename one")
    for start in range(0, table.num_rows, _SLICE):
        part = table.slice(start, _SLICE)
        columns = [column_values(part.column(name)) for name in names]
        for values in zip(*columns, strict=True) if columns else ((),) * part.num_rows:
            yield {name: value for name, value in zip(names, values, strict=True) if value is not None}
