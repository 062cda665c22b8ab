"""Reads rows of an Arrow table into event buffers, by kernels (arrow_kernels.py) as a plan says (arrow_plan.py).

Columns that are slow, and those that turn out to be odd in some rows, are read by `arrow.py`, which says what a table
means; the others are not, so that one odd column does not slow them.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa

from eligo.arrow import room
from eligo.compile import arrow_kernels as kernels
from eligo.compile.arrow import Entries, read_columns
from eligo.compile.arrow_events import TableEvents
from eligo.compile.arrow_plan import Plan, addresses, plan_for
from eligo.compile.compiled import I64
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError

_SHORT: Final = 256  # rows of a stretch on the average, below which copying the table is worth it
_NO_NODES: Final[I64] = np.zeros((0, kernels.FIELDS), np.int64)
_NO_INTEGERS: Final[I64] = np.zeros(0, np.int64)

_NO_ENTRIES: Final[Entries] = (_NO_INTEGERS, _NO_INTEGERS, _NO_INTEGERS)

_RELEASE: Final = 8  # the word of the struct, of ten, with the function that frees it
_FREE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Exported:
    """A record batch as Arrow describes it in memory, as long as this object lives.

    `__arrow_c_array__` gives the same, but describes the schema as well, which takes twice as long.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._struct = (ctypes.c_int64 * 10)()
        self.address = ctypes.addressof(self._struct)
        batch._export_to_c(self.address)

    def __del__(self) -> None:
        if self._struct[_RELEASE]:
            _FREE(self._struct[_RELEASE])(self.address)


class Reader:
    """Reads the rows of one table for one encoder."""

    def __init__(self, whole: pa.Table | pa.RecordBatch, encoder: Encoder, plan: Plan | None = None) -> None:
        self._encoder, self._plan = encoder, plan or plan_for(whole.schema, encoder)
        plan = self._plan
        batches = _stretches(whole, plan.read)
        self._starts = np.cumsum([0, *map(len, batches)]) if plan.read else np.array([0, len(whole)])
        self._exported = [Exported(batch) for batch in batches]
        self._nodes = np.zeros((len(self._starts) - 1, len(plan.paths), kernels.FIELDS), np.int64)
        known = 0
        for number, one in enumerate(self._exported):
            before = self._nodes[number - 1] if number else _NO_NODES
            known = int(kernels.gather(one.address, plan.paths, plan.branches, self._nodes[number], before, known))
        self._known = np.zeros(2 * known, np.int64)
        self._seen, self._clock = np.zeros(len(encoder.attributes) if plan.pairs else 0, np.int64), 0
        self._look_up()

    def _look_up(self) -> None:
        self._state, self._table = self._encoder.strings.state, self._encoder.strings.table()
        self._strings = np.array([*addresses(self._table), len(self._table[-1])], np.int64)

    def is_for(self, encoder: Encoder) -> bool:
        """Whether it reads what rules name now; it looks up the strings that rules name now then."""
        if encoder is not self._encoder or self._plan.attributes != len(encoder.metas):
            return False
        if self._state is not encoder.strings.state:
            self._known[:] = 0
            self._look_up()
        return True

    def encode(self, first: int, events: TableEvents, buffer: EventBuffer) -> None:
        """Put rows into an empty buffer, the first of which is the row `first` of the table."""
        slow = self._plan.slow
        while True:
            try:
                odd = self._encode(first, events, buffer, slow)
            except EventError:  # but it may be that a column before that is odd, and wrong
                read_columns(events.table, np.unique(self._plan.numbers).tolist(), self._encoder, buffer)
                raise
            if not odd:
                return
            slow = slow | odd
            buffer.clear()

    def _encode(self, first: int, events: TableEvents, buffer: EventBuffer, slow: set[int]) -> set[int]:
        """Put rows into an empty buffer. Returns the numbers of columns that are odd, so that it was in vain."""
        plan, stop = self._plan, first + len(events)
        columns, numbers = plan.with_parts(slow)
        part_offsets, part_rows, part_metas, part_keys = _parts(
            read_columns(events.table, sorted(slow), self._encoder, buffer) if slow else []
        )
        places = np.zeros((len(self._starts) - 1, len(columns)) if plan.pairs else (0, 0), np.int64)
        pairs = _NO_INTEGERS
        if plan.pairs:
            pairs = room(int(kernels.locate_pairs(self._nodes, self._starts, columns, first, stop, places)))
        counts, odd = np.zeros(len(events) + 1, np.int64), np.zeros(len(columns), np.uint8)
        texts, size, self._clock = kernels.count(
            self._nodes, self._starts, columns, plan.names, first, stop, part_rows, places, pairs, self._seen,
            self._clock, counts, odd,
        )  # fmt: skip
        if not odd.any():
            widest = int(counts.max())
            offsets = np.cumsum(counts)
            total = int(offsets[-1])
            if texts:
                buffer.make_text_room(buffer.texts + texts, buffer.text_end + size)
            buffer.replace(offsets, room(total), room(total), widest)
            buffer.texts, buffer.text_end = kernels.fill(
                self._nodes, self._starts, columns, plan.names, self._strings, self._known, first, stop, part_rows,
                part_metas, part_keys, part_offsets, places, pairs, offsets[:-1].copy(), buffer.handle, buffer.texts,
                buffer.text_end, odd,
            )  # fmt: skip
            if not odd.any():
                return set()
        return set(numbers[odd != 0].tolist())


def _stretches(whole: pa.Table | pa.RecordBatch, numbers: list[int]) -> list[pa.RecordBatch]:
    """The columns of these numbers, each of them one array in each batch."""
    if not numbers:
        return []
    some = whole if len(numbers) == whole.num_columns else whole.select(numbers)
    if isinstance(some, pa.RecordBatch):
        return [some]
    batches: list[pa.RecordBatch] = some.to_batches()
    if len(batches) > 1 and len(batches) * _SHORT > len(some):
        with suppress(pa.ArrowException):  # dictionaries that differ, for some types
            batches = some.combine_chunks().to_batches()
    return batches


def _parts(columns: list[list[Entries]]) -> tuple[I64, I64, I64, I64]:
    """The entries of columns, those of one together and sorted by row: where each column's begin, rows, metas, keys."""
    offsets, sorted_entries = [0], [_NO_ENTRIES]
    for pieces in columns:
        rows, metas, keys = (np.concatenate(arrays) for arrays in zip(_NO_ENTRIES, *pieces, strict=True))
        order = np.argsort(rows, kind="stable")
        sorted_entries.append((rows[order], metas[order], keys[order]))
        offsets.append(offsets[-1] + len(rows))
    rows, metas, keys = (np.concatenate(arrays) for arrays in zip(*sorted_entries, strict=True))
    return np.array(offsets), rows, metas, keys
