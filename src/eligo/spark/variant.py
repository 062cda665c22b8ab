"""Variant columns: values of any type in any row, as a column that rules can look at.

    v   {"a": 1, "b": {"c": "x"}}        attribute v.a    a union of integers and strings    1    "one"  null
        {"a": "one"}                     attribute v.b.c  strings                            "x"  null   null
        null

What is at the end of a path becomes a column of the attribute's own: of one type where all rows have values of one
kind, else a union of types. A dot leads from an object to its field, always.

A number with a decimal point, which parse_json makes a decimal, is an integer or a float as all decimals are. An array
is several values. Of an object it matters only that it is there; among several values, none of which can be it, not
even that. Binary data is no value that rules compare, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arrow import view_of
from eligo.compile import codes
from eligo.compile.compiled import F64, I64, U8
from eligo.compile.decimals import scaled_entries
from eligo.compile.unusable import UnusableValuesError
from eligo.language.decimals import number_of
from eligo.spark.arrow_types import BARE
from eligo.spark.variant_kernels import (
    ARRAY,
    BOOLEAN,
    DAMAGED,
    DECIMAL,
    FLOAT,
    INTEGER,
    LONG_DECIMAL,
    NOTHING,
    OBJECT,
    OTHER,
    REAL,
    TEXT,
    TIME,
    decode,
    elements,
    gather,
    locate,
)

Masks = NDArray[np.bool_]


def attribute_column(name: str, column: pa.Array, keys: Sequence[str], several: bool) -> pa.Array:
    """What an attribute is in each row, along the keys of a Variant column. Values that are none are refused."""
    values, value_offsets = _bytes(column.field("value"))
    metas, meta_offsets = _bytes(column.field("metadata"))
    valid = np.ones(len(column), np.bool_) if not column.null_count else column.is_valid().to_numpy(False)
    named, name_offsets = _bytes(pa.array([key.encode() for key in keys], pa.binary()))
    at, end = locate(values, value_offsets, metas, meta_offsets, valid, named, name_offsets)
    kind, number, extra = decode(values, at, end)
    _refuse(name, kind, np.arange(len(column)), several)
    if several:
        return _lists(name, values, at, end, kind, number, extra)
    return _values(values, *_settled(values, kind, number, extra), extra)


def _bytes(column: pa.Array) -> tuple[U8, I64]:
    column = column.cast(pa.large_binary())
    _, offsets, data = column.buffers()
    if not len(column):
        return view_of(None, np.uint8), view_of(pa.py_buffer(bytes(8)), np.int64)
    found = view_of(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return view_of(data, np.uint8), found


def _refuse(name: str, kind: U8, rows: I64, several: bool) -> None:
    """Say what is there and is no value."""
    bad = (kind >= OTHER) | ((kind == ARRAY) & (not several))
    if not bad.any():
        return
    first = int(np.argmax(bad))
    event = f"event {int(rows[first])}: attribute {name!r}"
    what = int(kind[first])
    if what == ARRAY:
        message = (
            f"{event} holds a list but is single-valued: declare it with multi=[{name!r}] when the rules are compiled, "
            "or give one value"
        )
    elif what == OTHER:
        message = f"{event} holds binary data, a list in a list, or another type that rules do not compare"
    else:
        message = f"{event}: the Variant is damaged, or of a newer format"
    raise UnusableValuesError(message, name, np.unique(rows[bad]))


def _settled(values: U8, kind: U8, number: I64, extra: I64) -> tuple[U8, I64, F64]:
    """Floats of all sizes and decimals as 64-bit floats, in a column of their own, or as integers."""
    short, small, large = kind == FLOAT, kind == DECIMAL, kind == LONG_DECIMAL
    if not (short.any() or small.any() or large.any()):
        return kind, number, number.view(np.float64)
    kind, keys = np.where(short, np.uint8(REAL), kind), number.copy()
    keys.view(np.float64)[short] = number[short].astype(np.int32).view(np.float32)
    found, keys[small], done = scaled_entries(number[small], extra[small])
    kind[small] = np.where(found == codes.INTEGER, np.uint8(INTEGER), np.uint8(REAL))
    large[np.nonzero(small)[0][~done]] = True
    for row in np.nonzero(large)[0].tolist():
        unscaled = int(number[row])
        if not small[row]:
            unscaled = int.from_bytes(values[unscaled : unscaled + 16].tobytes(), "little", signed=True)
        decimal = number_of(Decimal(f"{unscaled}E-{int(extra[row])}"))  # scaleb would round to 28 digits
        kind[row] = INTEGER if isinstance(decimal, int) else REAL
        keys[row] = decimal if isinstance(decimal, int) else np.float64(decimal).view(np.int64)
    return kind, keys, keys.view(np.float64)


def _values(values: U8, kind: U8, number: I64, real: F64, extra: I64) -> pa.Array:
    """The values as a column of their type, or a union of the types that occur; null where there is none."""
    families = [f for f in (INTEGER, REAL, BOOLEAN, TIME, TEXT, OBJECT) if (kind == f).any()] or [INTEGER]
    if len(families) == 1:
        return _column(values, families[0], kind == families[0], number, extra, real)
    present = kind != NOTHING
    # A union has no nulls of its own: rows without a value are with the first type.
    kind = np.where(kind == NOTHING, np.uint8(families[0]), kind)
    types, offsets = np.zeros(len(kind), np.int8), np.zeros(len(kind), np.int32)
    parts = []
    for code, family in enumerate(families):
        rows = np.nonzero(kind == family)[0]
        types[rows], offsets[rows] = code, np.arange(len(rows))
        parts.append(_column(values, family, present[rows], number[rows], extra[rows], real[rows]))
    return pa.UnionArray.from_dense(pa.array(types), pa.array(offsets), parts)


def _column(values: U8, family: int, mine: Masks, number: I64, extra: I64, real: F64) -> pa.Array:
    """The rows of one kind, null elsewhere."""
    if family == TEXT:
        offsets, data = gather(values, mine, number, extra)
        validity = pa.array(mine).buffers()[1]
        buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), len(mine), buffers)
    if family == OBJECT:
        return pa.Array.from_buffers(BARE, len(mine), [pa.array(mine).buffers()[1]])
    if family == REAL:
        return pa.array(real, mask=~mine)
    if family == BOOLEAN:
        return pa.array(number == 1, mask=~mine)
    return pa.array(number, pa.timestamp("us", "UTC") if family == TIME else pa.int64(), mask=~mine)


def _lists(name: str, values: U8, at: I64, end: I64, kind: U8, number: I64, extra: I64) -> pa.Array:
    """The same for several values: a list for each row in which the attribute is present."""
    absent = kind == NOTHING
    rows, starts, ends = elements(values, at, end, kind)
    _refuse(name, np.where(starts < 0, np.uint8(DAMAGED), np.uint8(NOTHING)), rows, True)
    kind, number, extra = decode(values, starts, ends)
    _refuse(name, np.where(kind == ARRAY, np.uint8(OTHER), kind), rows, True)
    some = (kind != NOTHING) & (kind != OBJECT)  # a null in an array is no value; an object is none that rules name
    rows, kind, number, extra = rows[some], kind[some], number[some], extra[some]
    items = _values(values, *_settled(values, kind, number, extra), extra)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(at)))))
    return pa.LargeListArray.from_arrays(pa.array(offsets), items, mask=pa.array(absent))
