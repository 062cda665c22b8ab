"""From an Arrow table to entries of an event buffer, a column at a time.

Flat columns, struct columns by dotted name, list columns as several values, map columns as one attribute for each
key. Nulls and NaN are absent. Each column becomes entries (row, meta, key); the entries of all columns are then dealt
out to the rows, so that those of one attribute stay next to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.compiled import I64, U8
from eligo.compile.encode import PATTERN, SEVERAL, TEXT, Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings, find_bytes
from eligo.errors import EventError
from eligo.jit import kernel

Entries = tuple[I64, I64, I64]  # rows, metas, keys
_FACTORS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def encode_table(table: pa.Table | pa.RecordBatch, encoder: Encoder, buffer: EventBuffer) -> None:
    """Put all the rows of a table into an empty buffer."""
    rows = table.num_rows
    parts: list[Entries] = []
    seen: dict[str, I64] = {}
    for name, column in _columns(table, encoder):
        meta = encoder.metas.get(name)
        if meta is None:
            if pa.types.is_map(column.type) and name in encoder.paths:
                parts.extend(_map_entries(name, column, encoder, buffer))
            continue
        entries = _column_entries(name, meta, column, encoder, buffer)
        if name in seen:
            both = np.intersect1d(seen[name], entries[0])
            if len(both):
                raise EventError(
                    f"event {int(both[0])}: attribute {name!r} is given twice, under its flat name and along its path: "
                    "drop one"
                )
        seen[name] = entries[0]
        parts.append(entries)
    counts = np.zeros(rows + 1, np.int64)
    for part in parts:
        counts[1:] += np.bincount(part[0], minlength=rows)
    offsets = np.cumsum(counts)
    total = int(offsets[-1])
    cursor = offsets[:-1].copy()
    metas, keys = np.zeros(max(total, 1), np.int64), np.zeros(max(total, 1), np.int64)
    for part in parts:
        deal(part[0], part[1], part[2], cursor, metas, keys)
    buffer.replace(offsets, metas, keys, int(counts.max(initial=0)))


def _columns(table: pa.Table | pa.RecordBatch, encoder: Encoder) -> Iterator[tuple[str, pa.Array]]:
    """Every leaf column that rules could name, with its dotted name."""
    todo = [(field.name, table.column(i)) for i, field in enumerate(table.schema)][::-1]
    while todo:
        name, column = todo.pop()
        if pa.types.is_struct(column.type):
            if name in encoder.metas:
                raise EventError(f"attribute {name!r} holds a struct; name a field of it, such as {name}.x")
            if name not in encoder.paths:
                continue
            fields = [column.type.field(i).name for i in range(column.type.num_fields)]
            # flatten() puts the struct's own nulls into its fields.
            todo.extend(
                reversed([(f"{name}.{f}", part) for f, part in zip(fields, _whole(column).flatten(), strict=True)])
            )
        elif name in encoder.metas or name in encoder.paths:
            yield name, _whole(column)


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks == 1:
            return column.chunk(0)
        if column.num_chunks == 0:
            return pa.array([], column.type)
        return pa.concat_arrays(column.chunks)
    return column


def _column_entries(name: str, meta: int, column: pa.Array, encoder: Encoder, buffer: EventBuffer) -> Entries:
    kind = column.type
    special = encoder.special.get(name, 0)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _list_entries(name, meta, column, special, encoder, buffer)
    valid, code, keys = _scalars(name, column, special, encoder.strings, buffer)
    rows = np.arange(len(column), dtype=np.int64) if valid is None else np.nonzero(valid)[0]
    keys = keys if valid is None else keys[valid]
    return rows, np.full(len(rows), meta + code, np.int64), keys


def _list_entries(
    name: str, meta: int, column: pa.Array, special: int, encoder: Encoder, buffer: EventBuffer
) -> Entries:
    present = _valid(column)
    if not special & SEVERAL and (present is None or present.any()):
        row = 0 if present is None else int(np.argmax(present))
        raise EventError(
            f"event {row}: attribute {name!r} holds a list but is single-valued: "
            f"declare it with Matcher(multi=[{name!r}]) or give one value"
        )
    parents = pc.list_parent_indices(column).to_numpy(zero_copy_only=False).astype(np.int64)
    values = pc.list_flatten(column)
    valid, code, keys = _scalars(name, values, special, encoder.strings, buffer)
    rows = parents if valid is None else parents[valid]
    keys = keys if valid is None else keys[valid]
    # Present without values: an entry that satisfies nothing.
    empty = np.ones(len(column), np.bool_) if present is None else present.copy()
    empty[rows] = False
    hollow = np.nonzero(empty)[0]
    rows = np.concatenate((rows, hollow))
    metas = np.concatenate((np.full(len(keys), meta + code, np.int64), np.full(len(hollow), meta + codes.NO_VALUE)))
    return rows, metas, np.concatenate((keys, np.zeros(len(hollow), np.int64)))


def _map_entries(name: str, column: pa.Array, encoder: Encoder, buffer: EventBuffer) -> Iterator[Entries]:
    """A map from names to values: one attribute for each key that rules name."""
    as_list = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
    parents = pc.list_parent_indices(as_list).to_numpy(zero_copy_only=False).astype(np.int64)
    keys, values = pc.list_flatten(as_list).flatten()
    keys = keys.cast(pa.large_string()).dictionary_encode()
    indices = keys.indices.to_numpy(zero_copy_only=False)
    for number, key in enumerate(keys.dictionary.to_pylist()):
        path = f"{name}.{key}"
        meta = encoder.metas.get(path)
        if meta is not None:
            chosen = np.nonzero(indices == number)[0]
            rows, metas, found = _column_entries(path, meta, values.take(pa.array(chosen)), encoder, buffer)
            yield parents[chosen][rows], metas, found


def _valid(column: pa.Array) -> NDArray[np.bool_] | None:
    """Which rows are not null; None when all are."""
    return None if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)


def _scalars(
    name: str, column: pa.Array, special: int, strings: Strings, buffer: EventBuffer
) -> tuple[NDArray[np.bool_] | None, int, I64]:
    """Of a column of plain values: which are present, their kind, and a key for each row."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _scalars(name, column.dictionary_decode(), special, strings, buffer)
    valid = _valid(column)
    if pa.types.is_null(kind):
        return np.zeros(len(column), np.bool_), codes.INTEGER, np.zeros(len(column), np.int64)
    if pa.types.is_integer(kind):
        return valid, codes.INTEGER, _integers(name, column)
    if pa.types.is_floating(kind):
        floats = _numpy(column.cast(pa.float64()), 0.0)
        known = ~np.isnan(floats)
        if not known.all():
            valid = known if valid is None else valid & known
        return valid, codes.RAW_FLOAT, np.ascontiguousarray(floats).view(np.int64)
    if pa.types.is_boolean(kind):
        return valid, codes.BOOLEAN, _numpy(column.cast(pa.int64()), 0)
    if _is_string(kind):
        return valid, *_texts(column.cast(pa.large_string()), special, strings, buffer)
    if pa.types.is_timestamp(kind):
        return valid, codes.TIME, _moments(name, column)
    if pa.types.is_date(kind):
        return valid, codes.TIME, _moments(name, column.cast(pa.timestamp("us")))
    raise EventError(
        f"attribute {name!r} holds values of Arrow type {kind}; a value is a number, string, Boolean, date or "
        "timestamp: cast the column first"
    )


def _is_string(kind: pa.DataType) -> bool:
    is_view: Callable[[pa.DataType], bool] = getattr(pa.types, "is_string_view", lambda _: False)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or is_view(kind))


def _numpy(column: pa.Array, filler: Any) -> NDArray[Any]:
    filled = column.fill_null(filler) if column.null_count else column
    return np.asarray(filled.to_numpy(zero_copy_only=False))


def _integers(name: str, column: pa.Array) -> I64:
    try:
        return _numpy(column.cast(pa.int64()), 0)
    except pa.ArrowInvalid as error:
        raise EventError(
            f"attribute {name!r}: an integer does not fit 64 bits; cast the column to float64 ({error})"
        ) from None


def _moments(name: str, column: pa.Array) -> I64:
    unit = column.type.unit
    raw: I64 = _numpy(column.cast(pa.int64()) if not column.type.tz else column.view(pa.int64()), 0)
    if unit == "ns":
        return raw // 1000
    factor = _FACTORS[unit]
    if factor > 1 and len(raw) and np.abs(raw).max() > (2**63 - 1) // factor:
        raise EventError(f"attribute {name!r}: a timestamp lies beyond what 64 bits of microseconds hold")
    return raw * factor


def _texts(column: pa.Array, special: int, strings: Strings, buffer: EventBuffer) -> tuple[int, I64]:
    offsets, data = string_buffers(column)
    known_data, known_offsets, slots = strings.table()
    numbers: I64 = find_all(known_data, known_offsets, slots, data, offsets)
    if special & (TEXT | PATTERN):
        return codes.TEXT, buffer.add_texts(numbers, offsets, data)
    return codes.STRING, numbers


def string_buffers(column: pa.Array) -> tuple[I64, U8]:
    """Offsets and bytes of a large_string array."""
    _, raw_offsets, raw_data = column.buffers()
    if len(column) == 0:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(raw_offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    data = np.frombuffer(raw_data, np.uint8) if raw_data is not None and raw_data.size else np.zeros(0, np.uint8)
    return offsets, data


@kernel
def find_all(data, offsets, slots, text, starts):  # type: ignore[no-untyped-def]
    """The number of each string text[starts[i]:starts[i+1]], or -1."""
    n = len(starts) - 1
    numbers = np.empty(n, np.int64)
    for i in range(n):
        numbers[i] = find_bytes(data, offsets, slots, text, starts[i], starts[i + 1])
    return numbers


@kernel
def deal(rows, metas, keys, cursor, out_metas, out_keys):  # type: ignore[no-untyped-def]
    """Put every entry at the next free place of its row."""
    for i in range(len(rows)):
        at = cursor[rows[i]]
        out_metas[at] = metas[i]
        out_keys[at] = keys[i]
        cursor[rows[i]] = at + 1
