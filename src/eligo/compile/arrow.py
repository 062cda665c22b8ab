"""From columns of an Arrow table to entries of an event buffer: what a table means, and what may be wrong with it.

Most columns are read by kernels instead (`arrow_events.py`), which leave to this file what they are not sure of.

Flat columns, struct columns by dotted name, list columns as several values, map columns as one attribute for each
key; structs and maps within each other as deep as rules name them; of a union each value by its own type. Nulls and NaN
are absent. Each column becomes entries (row, meta, key), those of one attribute next to each other.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eligo.arrow import arrow_of, numpy_of, view_of
from eligo.compile import codes
from eligo.compile.compiled import I64, U8
from eligo.compile.decimals import decimal_entries
from eligo.compile.encode import PATTERN, SEVERAL, TEXT, Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings, find_bytes
from eligo.compile.unusable import UnusableValuesError
from eligo.errors import ColumnError, EventError
from eligo.jit import kernel

Entries = tuple[I64, I64, I64]  # rows, metas, keys
Piece = tuple[str, pa.Array, I64 | None]  # dotted name, values, and the event of each value; None: value i is event i's
_FACTORS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_NO_ROWS: I64 = np.zeros(0, np.int64)


def read_columns(
    table: pa.Table | pa.RecordBatch, encoder: Encoder, buffer: EventBuffer, pairs: int = -1
) -> list[list[Entries]]:
    """The entries of all columns, of each column and its parts by themselves; strings whose bytes are looked at go to
    the text table of the buffer. `pairs` is the number of the column that holds pairs, if there is one.
    """
    seen: dict[str, list[I64]] = {}
    names = enumerate(table.schema.names)
    columns = [_pieces(name, table.column(i), encoder, i == pairs) for i, name in names]
    return [_entries(pieces, seen, encoder, buffer) for pieces in columns]


def _entries(todo: list[Piece], seen: dict[str, list[I64]], encoder: Encoder, buffer: EventBuffer) -> list[Entries]:
    parts: list[Entries] = []
    todo.reverse()
    while todo:
        name, column, events = todo.pop()
        try:
            if name in encoder.paths:
                todo.extend(reversed(_inner(name, column, events, encoder)))
            if name in encoder.metas:
                entries = _column_entries(name, column, events, encoder, buffer)
                _refuse_twice(name, entries[0], events, seen, encoder)
                parts.append(entries)
        except pa.ArrowException as error:
            raise UnusableValuesError(
                f"attribute {name!r} cannot be read from Arrow type {column.type}: {error}", name
            ) from None
    return parts


def _pieces(name: str, column: pa.Array | pa.ChunkedArray, encoder: Encoder, are_pairs: bool) -> list[Piece]:
    """A column that rules could name, or the attributes in a column of pairs, in as few arrays as Arrow can make of its
    chunks.
    """
    if not are_pairs and name not in encoder.metas and name not in encoder.paths:
        return []
    kind = _without_views(column.type)
    try:
        if kind != column.type:
            column = column.cast(kind)
            column.validate()  # of a union with nulls Arrow makes what ends the process when it is used
        if not are_pairs:
            return [(name, chunk, events) for chunk, events in _chunks(column)]
        return [piece for chunk, events in _chunks(column) for piece in _pair_values(name, chunk, events, encoder)]
    except pa.ArrowException as error:
        what = "column" if are_pairs else "attribute"
        raise ColumnError(f"{what} {name!r} cannot be read from Arrow type {column.type}: {error}") from None


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[tuple[pa.Array, I64 | None]]:
    """The arrays of a column, and the rows that their values are in; None if these are all rows."""
    if not isinstance(column, pa.ChunkedArray):
        return [(column, None)]
    if column.num_chunks <= 1:
        return [(chunk, None) for chunk in column.chunks]
    try:
        return [(pa.concat_arrays(column.chunks), None)]
    except pa.ArrowException:  # dictionaries that differ, for some types
        ends = np.cumsum([len(chunk) for chunk in column.chunks])
        return [
            (chunk, np.arange(end - len(chunk), end)) for chunk, end in zip(column.chunks, ends.tolist(), strict=True)
        ]


def _without_views(kind: pa.DataType) -> pa.DataType:
    """The same type with plain strings instead of views, for which Arrow has fewer functions."""
    types = pa.types
    if getattr(types, "is_string_view", lambda _: False)(kind):
        return pa.large_string()
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    if types.is_map(kind):
        return pa.map_(_without_views(kind.key_type), _without_views(kind.item_type), kind.keys_sorted)
    if types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = kind.value_field.with_type(_without_views(kind.value_type))
        if types.is_fixed_size_list(kind):
            return pa.list_(inner, kind.list_size)
        return pa.large_list(inner) if types.is_large_list(kind) else pa.list_(inner)
    return kind


def _inner(name: str, column: pa.Array, events: I64 | None, encoder: Encoder) -> list[Piece]:
    """The parts of a struct or a map that rules could name; a column of values has none."""
    is_map = pa.types.is_map(column.type)
    if (not is_map and not pa.types.is_struct(column.type)) or column.null_count == len(column):
        return []
    if is_map:  # one attribute, or path to some, for each key that rules name
        if not _is_key(kind := column.type.key_type):
            raise ColumnError(
                f"attribute {name!r} is a map with keys of Arrow type {kind}; only strings name attributes"
            )
        return _values_by_key(name, f"{name}.", _pair_lists(column), events, encoder)
    fields = list(column.type)
    paths = {i: f"{name}.{field.name}" for i, field in enumerate(fields)}
    paths = {i: path for i, path in paths.items() if path in encoder.metas or path in encoder.paths}
    if not any(pa.types.is_union(field.type) for field in fields):
        parts = column.flatten()  # which puts the struct's own nulls into its fields
        return [(path, parts[i], events) for i, path in paths.items()]
    # A union cannot be given the struct's nulls, and Arrow ends the process when it is asked to.
    present = np.flatnonzero(numpy_of(column.is_valid()))
    events = present if events is None else events[present]
    return [(path, column.field(i).take(arrow_of(present)), events) for i, path in paths.items()]


def _pair_values(name: str, column: pa.Array, events: I64 | None, encoder: Encoder) -> list[Piece]:
    """Maps from attributes to values, or lists of pairs of both: each attribute, or path to some, that rules name."""
    types, kind = pa.types, column.type
    if types.is_map(kind):
        column = _pair_lists(column)
    inner = column.type.value_type if types.is_list(column.type) or types.is_large_list(column.type) else pa.null()
    if not (types.is_struct(inner) and inner.num_fields == 2 and _is_key(inner.field(0).type)):
        raise ColumnError(
            f"column {name!r} holds values of Arrow type {kind}; pairs are a map from strings to values, or a list of "
            "structs with two fields, of which the first is a string"
        )
    return _values_by_key(name, "", column, events, encoder)


def _is_key(kind: pa.DataType) -> bool:
    return _is_string(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _pair_lists(column: pa.Array) -> pa.Array:
    """Maps as lists of structs."""
    return column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))


def _values_by_key(name: str, prefix: str, column: pa.Array, events: I64 | None, encoder: Encoder) -> list[Piece]:
    """Lists of pairs: the values of each key that rules name, behind a prefix."""
    parents, pairs = _items(column)
    if events is not None:
        parents = events[parents]
    parts = [pairs.field(0), pairs.field(1)]
    if pairs.null_count:
        present = np.flatnonzero(numpy_of(pairs.is_valid()))
        parents, parts = parents[present], [part.take(arrow_of(present)) for part in parts]
    keys, values = _decoded(parts[0]).cast(pa.large_string()), _decoded(parts[1])
    wrong = invalid_texts(keys)
    if len(wrong):
        raise _no_text(name, parents[wrong], "a key")
    keys = keys.dictionary_encode()
    numbers, valid = numpy_of(keys.indices), _valid(keys)
    if valid is not None:
        numbers = np.where(valid, numbers, -1)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(keys.dictionary) + 1)).tolist()
    pieces: list[Piece] = []
    for number, key in enumerate(keys.dictionary.to_pylist()):
        path = prefix + key
        if path in encoder.metas or path in encoder.paths:
            chosen = order[bounds[number] : bounds[number + 1]]
            pieces.append((path, values.take(arrow_of(chosen)), parents[chosen]))
    return pieces


def _items(column: pa.Array) -> tuple[I64, pa.Array]:
    """The values in a column of lists, and the row of each. A null list has none, whatever lies under it."""
    lengths = _or_zero(pc.list_value_length(column))
    return np.repeat(np.arange(len(column), dtype=np.int64), lengths), pc.list_flatten(column)


def _refuse_twice(name: str, rows: I64, events: I64 | None, seen: dict[str, list[I64]], encoder: Encoder) -> None:
    """An event may have an attribute once: under its flat name or along one path; and a map may have a key once."""
    if events is not None and not encoder.special.get(name, 0) & SEVERAL:
        again = np.sort(rows)
        again = again[1:][again[1:] == again[:-1]]
        if len(again):
            raise UnusableValuesError(
                f"event {again[0]}: attribute {name!r} is given twice, by a map that repeats a key: drop one",
                name,
                again,
            )
    for other in seen.get(name, ()):
        both = np.intersect1d(other, rows)
        if len(both):
            how = "under its flat name and along its path" if "." in name else "by two columns"
            raise UnusableValuesError(
                f"event {both[0]}: attribute {name!r} is given twice, {how}: drop one",
                name,
                both,
            )
    seen.setdefault(name, []).append(rows)


def _column_entries(name: str, column: pa.Array, events: I64 | None, encoder: Encoder, buffer: EventBuffer) -> Entries:
    kind, meta = column.type, encoder.metas[name]
    special = encoder.special.get(name, 0)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _list_entries(name, meta, column, events, special, encoder, buffer)
    if events is None:
        events = np.arange(len(column), dtype=np.int64)
    valid, found, keys = _scalars(name, column, events, special, encoder.strings, buffer)
    return _present(valid, events, meta + found, keys)


def _list_entries(
    name: str, meta: int, column: pa.Array, events: I64 | None, special: int, encoder: Encoder, buffer: EventBuffer
) -> Entries:
    present = np.arange(len(column), dtype=np.int64) if events is None else events
    known = _valid(column)
    if known is not None:
        present = present[known]
    if not special & SEVERAL and len(present):
        raise UnusableValuesError(
            f"event {present[0]}: attribute {name!r} holds a list but is single-valued: "
            f"declare it with Matcher(multi=[{name!r}]) or give one value",
            name,
            present,
        )
    parents, values = _items(column)
    rows = parents if events is None else events[parents]
    valid, found, keys = _scalars(name, values, rows, special, encoder.strings, buffer)
    rows, metas, keys = _present(valid, rows, meta + found, keys)
    # Present without values: an entry that satisfies nothing.
    hollow = np.setdiff1d(present, rows)
    metas = np.concatenate((metas, np.full(len(hollow), meta + codes.NO_VALUE)))
    return np.concatenate((rows, hollow)), metas, np.concatenate((keys, np.zeros(len(hollow), np.int64)))


def _present(valid: NDArray[np.bool_] | None, rows: I64, metas: int | I64, keys: I64) -> Entries:
    """The entries of the values that are present; one meta may stand for all of them."""
    metas = np.broadcast_to(np.asarray(metas, np.int64), keys.shape)
    return (rows, metas, keys) if valid is None else (rows[valid], metas[valid], keys[valid])


def _decoded(column: pa.Array) -> pa.Array:
    """Values instead of a dictionary of them."""
    if not pa.types.is_dictionary(column.type):
        return column
    return column.dictionary_decode()


def _valid(column: pa.Array) -> NDArray[np.bool_] | None:
    """Which rows are not null; None when all are."""
    return None if column.null_count == 0 else numpy_of(column.is_valid())


def _scalars(
    name: str, column: pa.Array, events: I64, special: int, strings: Strings, buffer: EventBuffer
) -> tuple[NDArray[np.bool_] | None, int | I64, I64]:
    """Of a column of plain values: which are present, their code, one for all or one a row, and a key for each row,
    anything for a null. `events` has the event of each row, for messages.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _scalars(name, _decoded(column), events, special, strings, buffer)
    if pa.types.is_union(kind):
        return _union_scalars(name, column, events, special, strings, buffer)
    valid = _valid(column)
    if column.null_count == len(column):
        return np.zeros(len(column), np.bool_), codes.INTEGER, np.zeros(len(column), np.int64)
    if pa.types.is_integer(kind):
        return valid, codes.INTEGER, _integers(name, column)
    if pa.types.is_floating(kind):
        floats = numpy_of(column.cast(pa.float64()))
        known = ~np.isnan(floats)
        if not known.all():
            valid = known if valid is None else valid & known
        return valid, codes.RAW_FLOAT, np.ascontiguousarray(floats).view(np.int64)
    if pa.types.is_decimal(kind):
        return valid, *decimal_entries(column)
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return valid, codes.BOOLEAN, np.full(len(column), codes.OBJECT, np.int64)
    if pa.types.is_boolean(kind):
        return valid, codes.BOOLEAN, numpy_of(column.cast(pa.int64()))
    if _is_string(kind):
        column = column.cast(pa.large_string())
        wrong = invalid_texts(column)
        if len(wrong):
            raise _no_text(name, events[wrong], "a string")
        return valid, *_texts(column, special, strings, buffer)
    if pa.types.is_timestamp(kind):
        return valid, codes.TIME, _moments(name, column, events)
    if pa.types.is_date(kind):
        # A day as seconds: Arrow's own cast to microseconds refuses far days without saying which.
        return valid, codes.TIME, _moments(name, column.cast(pa.timestamp("s")), events)
    raise ColumnError(
        f"attribute {name!r} holds values of Arrow type {kind}; a value is a number, string, Boolean, date or "
        "timestamp: cast the column first"
    )


def _union_scalars(
    name: str, column: pa.Array, events: I64, special: int, strings: Strings, buffer: EventBuffer
) -> tuple[NDArray[np.bool_], I64, I64]:
    """The same of values of several types: the values of each type by themselves."""
    kind, count = column.type, len(column)
    valid, found, keys = np.zeros(count, np.bool_), np.zeros(count, np.int64), np.zeros(count, np.int64)
    first, stop = column.offset, column.offset + count
    _, types, *offsets = column.buffers()[:3]
    of = np.frombuffer(types, np.int8)[first:stop] if count else np.zeros(0, np.int8)
    at: I64 = np.arange(count)  # of a sparse union, whose parts are cut as it is
    if kind.mode == "dense" and count:
        at = np.frombuffer(offsets[0], np.int32)[first:stop].astype(np.int64)
    for number, code in enumerate(kind.type_codes):
        rows = np.nonzero(of == code)[0]
        part = column.field(number).take(arrow_of(at[rows]))
        known, found[rows], keys[rows] = _scalars(name, part, events[rows], special, strings, buffer)
        valid[rows] = True if known is None else known
    return valid, found, keys


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _or_zero(column: pa.Array) -> NDArray[Any]:
    """The values of a column, 0 for a null."""
    values, valid = numpy_of(column), _valid(column)
    return values if valid is None else np.where(valid, values, values.dtype.type(0))


def _integers(name: str, column: pa.Array) -> I64:
    try:
        return numpy_of(column.cast(pa.int64()))
    except pa.ArrowInvalid as error:
        raise EventError(
            f"attribute {name!r}: an integer does not fit 64 bits; cast the column to float64 ({error})"
        ) from None


def _moments(name: str, column: pa.Array, events: I64) -> I64:
    unit = column.type.unit
    raw: I64 = _or_zero(column.cast(pa.int64()) if not column.type.tz else column.view(pa.int64()))
    if unit == "ns":
        return raw // 1000
    factor = _FACTORS[unit]
    most = (2**63 - 1) // factor
    if factor > 1 and len(raw) and (raw.max() > most or raw.min() < -most):
        rows = events[(raw > most) | (raw < -most)]
        raise UnusableValuesError(
            f"event {rows[0]}: attribute {name!r}: a date or timestamp lies beyond what 64 bits of microseconds hold",
            name,
            rows,
        )
    return raw * factor


def _texts(column: pa.Array, special: int, strings: Strings, buffer: EventBuffer) -> tuple[int, I64]:
    offsets, data = string_buffers(column)
    numbers: I64 = find_all(*strings.table(), data, offsets)
    if special & (TEXT | PATTERN):
        return codes.TEXT, buffer.add_texts(numbers, offsets, data)
    return codes.STRING, numbers


def string_buffers(column: pa.Array) -> tuple[I64, U8]:
    """Offsets and bytes of a large_string array."""
    _, raw_offsets, raw_data = column.buffers()
    if len(column) == 0:
        return view_of(pa.py_buffer(bytes(8)), np.int64), view_of(None, np.uint8)
    offsets = view_of(raw_offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    data = view_of(raw_data, np.uint8)
    return offsets, data


def invalid_texts(column: pa.Array) -> I64:
    """The rows of a large_string array that are no valid UTF-8, which Arrow does not promise."""
    offsets, data = string_buffers(column)
    used = data[offsets[0] : offsets[-1]]
    if not len(used) or used.max() < 128:  # ASCII
        return _NO_ROWS
    # All of them as one text, which is quick, are valid and begin where a character does; or else each by itself.
    whole = pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(offsets[[0, -1]]), column.buffers()[2]])
    starts = offsets[:-1][offsets[:-1] < offsets[-1]]
    with suppress(pa.ArrowInvalid):
        whole.validate(full=True)
        if not (data[starts] & 0xC0 == 0x80).any():
            return _NO_ROWS
    wrong = []
    for row, text in enumerate(column.cast(pa.large_binary())):
        try:
            str(text.as_py() or b"", "utf-8")
        except UnicodeDecodeError:
            wrong.append(row)
    return np.array(wrong, np.int64)


def _no_text(name: str, events: I64, what: str) -> EventError:
    return UnusableValuesError(
        f"event {events[0]}: attribute {name!r} holds {what} that is no valid UTF-8: mend the bytes, or leave the "
        "value out",
        name,
        events,
    )


@kernel
def find_all(data, begin, end, slots, text, starts):
    """The number of each string text[starts[i]:starts[i+1]], or -1."""
    n = len(starts) - 1
    numbers = np.empty(n, np.int64)
    for i in range(n):
        numbers[i] = find_bytes(data, begin, end, slots, text, starts[i], starts[i + 1])
    return numbers
