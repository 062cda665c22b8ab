"""Documents as bytes, by slot: all attributes, whether or not a rule names them.

data    … │ document │ document │ …            bytes, appended; those of documents that are gone are left behind
begin, end                                     of each slot
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_WORTH = 1 << 20  # bytes that nobody moves records for


class Records:
    """A growing heap of bytes. When more than half of it is of documents that are gone, the others move together."""

    def __init__(self) -> None:
        self._data = np.zeros(1024, np.uint8)
        self._begin, self._end = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self._used = self._dead = 0

    @property
    def size(self) -> int:
        return self._data.nbytes + self._begin.nbytes + self._end.nbytes

    def put(self, slot: int, raw: bytes) -> None:
        size = len(raw)
        if self._used + size > len(self._data):
            self._data = _grown(self._data, self._used + size)
        if slot >= len(self._begin):
            self._begin, self._end = _grown(self._begin, slot + 1), _grown(self._end, slot + 1)
        self._data[self._used : self._used + size] = np.frombuffer(raw, np.uint8)
        self._begin[slot], self._end[slot] = self._used, self._used + size
        self._used += size

    def get(self, slot: int) -> bytes:
        return self._data[self._begin[slot] : self._end[slot]].tobytes()

    def drop(self, slot: int) -> None:
        self._dead += int(self._end[slot] - self._begin[slot])
        self._begin[slot] = self._end[slot] = 0
        if self._dead > _WORTH and 2 * self._dead > self._used:
            self._move_together()

    def _move_together(self) -> None:
        slots = np.flatnonzero(self._end > self._begin)
        slots = slots[np.argsort(self._begin[slots])]
        sizes = self._end[slots] - self._begin[slots]
        ends = np.cumsum(sizes)
        source = np.arange(int(ends[-1]) if len(ends) else 0)
        source += np.repeat(self._begin[slots] - (ends - sizes), sizes)
        kept = self._data[source]
        self._data = _grown(kept, len(kept) + len(kept) // 4 + 1024)
        self._begin[slots], self._end[slots] = ends - sizes, ends
        self._used, self._dead = len(kept), 0


def _grown(array: NDArray[Any], least: int) -> NDArray[Any]:
    bigger = np.zeros(max(least, len(array) + len(array) // 2), array.dtype)
    bigger[: len(array)] = array
    return bigger
