"""Columns of decimals as entries of an event: what `language/decimals.py` says of one decimal, for many.

A decimal is an integer, its *unscaled* value, divided by a power of ten.

    up to 2⁵³ / up to 10²²        both are floats, so their quotient is the nearest float (IEEE 754)
    a multiple of the power       a 64-bit integer
    anything else                 Arrow writes it as text and reads that as a float, which rounds to the nearest;
                                  its own cast of decimals to floats does not
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arrow import arrow_of, numpy_of
from eligo.compile import codes
from eligo.compile.compiled import I64
from eligo.language.decimals import number_of

EXACT: Final = 1 << 53  # all integers up to here are floats as well
_FLOAT_TENS: Final = np.array([float(10**n) for n in range(23)])  # powers of ten, as far as floats have them
_WHOLE_TENS: Final = np.array([10**n for n in range(19)], np.int64)


def decimal_entries(column: pa.Array) -> tuple[I64, I64]:
    """Of each row of a column of decimals its code and key (codes.py), anything for a null."""
    kind = column.type
    if kind.bit_width < 128:
        column = column.cast(pa.decimal128(kind.precision, kind.scale))
    unscaled, settled = _unscaled(column)
    found, keys, done = scaled_entries(unscaled, np.full(len(column), kind.scale, np.int64))
    rows = np.nonzero(~(settled & done) & numpy_of(column.is_valid()))[0]
    if len(rows):
        found[rows], keys[rows] = _slow_entries(column.take(arrow_of(rows)))
    return found, keys


def scaled_entries(unscaled: I64, scale: I64) -> tuple[I64, I64, NDArray[np.bool_]]:
    """Codes and keys of the decimals unscaled / 10**scale, and which of them are known; the others are for text."""
    small = (unscaled >= -EXACT) & (unscaled <= EXACT) & (scale >= 0) & (scale < len(_FLOAT_TENS))
    tens = _WHOLE_TENS[np.clip(scale, 0, len(_WHOLE_TENS) - 1)]
    whole = ~small & (unscaled % tens == 0) & (scale >= 0) & (scale < len(_WHOLE_TENS))
    floats = unscaled / _FLOAT_TENS[np.clip(scale, 0, len(_FLOAT_TENS) - 1)]
    found = np.where(whole, codes.INTEGER, codes.RAW_FLOAT).astype(np.int64)
    return found, np.where(whole, unscaled // tens, floats.view(np.int64)), small | whole


def _unscaled(column: pa.Array) -> tuple[I64, NDArray[np.bool_]]:
    """The lowest 64 bits of each unscaled value, and whether they are all of it."""
    words = column.type.bit_width // 64
    start = column.offset * words
    limbs = np.frombuffer(column.buffers()[1], np.int64)[start : start + len(column) * words].reshape(-1, words)
    low = np.ascontiguousarray(limbs[:, 0])
    return low, (limbs[:, 1:] == (low >> 63)[:, None]).all(axis=1)


def _slow_entries(column: pa.Array) -> tuple[I64, I64]:
    """Codes and keys of decimals of any size."""
    if column.type.scale < 0:
        floats = np.array([float(value) for value in column.to_pylist()])
    else:
        floats = numpy_of(column.cast(pa.large_string()).cast(pa.float64()))
    found, keys = np.full(len(column), codes.RAW_FLOAT, np.int64), floats.view(np.int64).copy()
    # Between 2⁵³ and 2⁶³ the nearest float of a whole number may be another number.
    for row in np.nonzero((np.abs(floats) >= EXACT) & (np.abs(floats) <= 2.0**63))[0].tolist():
        number = number_of(column[row].as_py())
        if isinstance(number, int):
            found[row], keys[row] = codes.INTEGER, number
    return found, keys
