"""Arrow arrays over the memory of NumPy arrays, and the other way round.

`pyarrow.array` and `Array.to_numpy` do the same, but import pandas wherever it is installed: 24 MB and half a second of
every process, and a cluster has one for each core.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_TYPES: Final = {pa.int32(): np.int32, pa.int64(): np.int64, pa.float64(): np.float64}


def arrow_of(array: NDArray[Any]) -> pa.Array:
    """Returns an Arrow array of the same values, over the same memory if it is contiguous; Booleans become bits."""
    if array.dtype == np.bool_:
        bits = np.packbits(array, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(array), [None, pa.py_buffer(bits)])
    array = np.ascontiguousarray(array)
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, pa.py_buffer(array)])


def numpy_of(column: pa.Array) -> NDArray[Any]:
    """Returns a NumPy array of a column of Booleans, or numbers of `_TYPES`. At a null the value is undefined."""
    start, stop = column.offset, column.offset + len(column)
    data = column.buffers()[1]
    if pa.types.is_boolean(column.type):
        bits = np.frombuffer(data, np.uint8) if stop else np.zeros(0, np.uint8)
        return np.unpackbits(bits, count=stop, bitorder="little")[start:].view(np.bool_)
    kind = _TYPES[column.type]
    return np.frombuffer(data, kind)[start:stop] if len(column) else np.zeros(0, kind)


def view_of(buffer: pa.Buffer | None, kind: Any) -> NDArray[Any]:
    """Returns a buffer as an array that cannot be written, even if the buffer can, so that kernels know one type."""
    array = np.frombuffer(buffer, kind) if buffer is not None and buffer.size else np.zeros(0, kind)
    array.flags.writeable = False
    return array


def texts_of(texts: Sequence[str]) -> pa.Array:
    """Returns an Arrow array of strings."""
    raw = [text.encode() for text in texts]
    offsets = np.array([0, *accumulate(map(len, raw))], np.int32)
    return pa.Array.from_buffers(pa.string(), len(raw), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(raw))])


def room(count: int) -> NDArray[np.int64]:
    """Returns an array of undefined integers in Arrow's memory, which Arrow keeps for the next one when this is freed:
    new memory from the system takes longer than what is written to it.
    """
    array: NDArray[np.int64] = np.frombuffer(pa.allocate_buffer(8 * max(1, count)), np.int64)
    return array[:count]
