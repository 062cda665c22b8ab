"""Documents with all their attributes, by slot, whether or not a rule names these.

    one that came alone       bytes: data[begin:end]
    one of a table            a row of it: `begin` is the row, `chunk` the number of the table, which is kept as it came

Bytes of documents that are gone are left behind; when they are more than half of all, the others move together. So do
the rows of a table of which less than a quarter is still there: they become bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.compiled import I64
from eligo.documents.columns import rows_of_table
from eligo.documents.values import packed, plain_document, unpacked

_WORTH = 1 << 20  # bytes that nobody moves records for


class Records:
    """Documents as they came."""

    def __init__(self) -> None:
        self._data = np.zeros(1024, np.uint8)
        self._begin, self._end = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self._chunk = np.full(64, -1, np.int32)
        self._tables: dict[int, tuple[pa.Table, int]] = {}  # and how many rows are still there
        self._next_table = 0
        self._used = self._dead = 0

    @property
    def size(self) -> int:
        fixed = self._data.nbytes + self._begin.nbytes + self._end.nbytes + self._chunk.nbytes
        return fixed + sum(int(table.nbytes) for table, _ in self._tables.values())

    def put(self, slot: int, raw: bytes) -> None:
        size = len(raw)
        if self._used + size > len(self._data):
            self._data = _grown(self._data, self._used + size)
        self._reserve(slot)
        self._data[self._used : self._used + size] = np.frombuffer(raw, np.uint8)
        self._begin[slot], self._end[slot] = self._used, self._used + size
        self._used += size

    def put_table(self, slots: I64, table: pa.Table) -> None:
        """Keep the rows of a table, one for each slot."""
        self._reserve(int(slots.max()))
        self._begin[slots], self._chunk[slots] = np.arange(len(slots)), self._next_table
        self._tables[self._next_table] = table, len(slots)
        self._next_table += 1

    def get(self, slot: int) -> dict[str, Any]:
        chunk = int(self._chunk[slot])
        if chunk >= 0:
            return plain_document(next(iter(rows_of_table(self._tables[chunk][0].slice(int(self._begin[slot]), 1)))))
        return unpacked(self.raw(slot))

    def get_many(self, slots: I64) -> list[dict[str, Any]]:
        """The documents at many slots; rows of tables are read together."""
        found: dict[int, dict[str, Any]] = {}
        chunks = self._chunk[slots]
        for number in np.unique(chunks[chunks >= 0]).tolist():
            mine = slots[chunks == number]
            rows = self._tables[number][0].take(pa.array(self._begin[mine]))
            found.update(zip(mine.tolist(), map(plain_document, rows_of_table(rows)), strict=True))
        return [found[slot] if slot in found else self.get(slot) for slot in slots.tolist()]

    def raw(self, slot: int) -> bytes:
        """The bytes of a document that came alone."""
        return self._data[self._begin[slot] : self._end[slot]].tobytes()

    def is_single(self, slots: I64) -> NDArray[np.bool_]:
        """Which of the documents at some slots are no rows of a table."""
        alone: NDArray[np.bool_] = self._chunk[slots] < 0
        return alone

    def tables(self, names: Iterable[str] | None = None) -> Iterator[tuple[I64, pa.Table]]:
        """What is left of each table: slots, and the rows; with some columns, if names are given."""
        for number, (table, _) in self._tables.items():
            slots = np.flatnonzero(self._chunk == number)
            slots = slots[np.argsort(self._begin[slots])]
            chosen = table if names is None else table.select([name for name in names if name in table.schema.names])
            yield slots, chosen.take(pa.array(self._begin[slots]))

    def drop(self, slot: int) -> None:
        chunk = int(self._chunk[slot])
        if chunk >= 0:
            table, left = self._tables[chunk]
            self._chunk[slot] = -1
            self._begin[slot] = self._end[slot] = 0
            self._tables[chunk] = table, left - 1
            if 4 * (left - 1) < table.num_rows:
                self._spread(chunk)
            return
        self._dead += int(self._end[slot] - self._begin[slot])
        self._begin[slot] = self._end[slot] = 0
        if self._dead > _WORTH and 2 * self._dead > self._used:
            self._move_together()

    def _reserve(self, slot: int) -> None:
        if slot >= len(self._begin):
            self._begin, self._end = _grown(self._begin, slot + 1), _grown(self._end, slot + 1)
            chunk = np.full(len(self._begin), -1, np.int32)
            chunk[: len(self._chunk)] = self._chunk
            self._chunk = chunk

    def _spread(self, chunk: int) -> None:
        """Keep what is left of a table as bytes."""
        slots = np.flatnonzero(self._chunk == chunk)
        documents = self.get_many(slots)
        del self._tables[chunk]
        self._chunk[slots] = -1
        for slot, document in zip(slots.tolist(), documents, strict=True):
            self.put(slot, packed(document))

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
