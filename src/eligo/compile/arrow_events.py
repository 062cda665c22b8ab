"""Events that are rows of an Arrow table."""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError

if TYPE_CHECKING:
    from eligo.compile.arrow_reader import Reader, Stretches


class _Whole:
    """What slices of one table share: the table, what is known of its memory, and readers that no thread has."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        self.table = table
        self.stretches: Stretches | None = None
        self.readers: list[Reader] = []

    def reader(self, encoder: Encoder) -> Reader:
        from eligo.compile.arrow_plan import plan_for  # with its kernels, which few need
        from eligo.compile.arrow_reader import Reader, Stretches

        with suppress(IndexError):
            reader = self.readers.pop()
            if reader.is_for(encoder):
                return reader
        plan, stretches = plan_for(self.table.schema, encoder), self.stretches
        if stretches is None or stretches.plan is not plan:
            stretches = self.stretches = Stretches(self.table, plan)
        return Reader(stretches, encoder)


class TableEvents:
    """Some of the rows of a table."""

    def __init__(self, table: pa.Table | pa.RecordBatch) -> None:
        self._whole, self._first, self._count = _Whole(table), 0, len(table)

    def __len__(self) -> int:
        return self._count

    def slice(self, first: int, count: int | None = None) -> TableEvents:
        """Some of them, or all from one on."""
        left = max(0, self._count - first)
        some = object.__new__(TableEvents)
        some._whole, some._first = self._whole, self._first + first
        some._count = left if count is None else min(left, count)
        return some

    @cached_property
    def table(self) -> pa.Table | pa.RecordBatch:
        """The rows as a table of their own."""
        return self._whole.table.slice(self._first, self._count)

    def encode(self, encoder: Encoder, buffer: EventBuffer) -> None:
        """Put all the rows into an empty buffer."""
        reader = self._whole.reader(encoder)
        try:
            reader.encode(self._first, self, buffer)
        except EventError:
            fewer = encoder.narrowed()
            if fewer is None:
                raise
            buffer.clear()
            _Whole(self.table).reader(fewer).encode(0, self, buffer)
        self._whole.readers.append(reader)
