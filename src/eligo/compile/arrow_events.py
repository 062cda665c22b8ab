"""Events that are rows of an Arrow table."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError

if TYPE_CHECKING:
    from eligo.compile.arrow_reader import Reader


class TableEvents:
    """Some of the rows of a table. The table is not to be changed meanwhile, which Arrow's are not."""

    def __init__(
        self,
        whole: pa.Table | pa.RecordBatch,
        first: int = 0,
        count: int | None = None,
        readers: list[Reader] | None = None,
    ) -> None:
        self._whole, self._first = whole, first
        self._count = len(whole) - first if count is None else count
        self._readers: list[Reader] = [] if readers is None else readers  # those that no thread has

    def __len__(self) -> int:
        return self._count

    def slice(self, first: int, count: int | None = None) -> TableEvents:
        """Some of them, or all from one on."""
        left = max(0, self._count - first)
        return TableEvents(self._whole, self._first + first, left if count is None else min(left, count), self._readers)

    @cached_property
    def table(self) -> pa.Table | pa.RecordBatch:
        """The rows as a table of their own."""
        return self._whole.slice(self._first, self._count)

    def encode(self, encoder: Encoder, buffer: EventBuffer) -> None:
        """Put all the rows into an empty buffer."""
        from eligo.compile.arrow_reader import Reader  # with its kernels, which few need

        reader: Reader | None
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = None
        if reader is None or not reader.is_for(encoder):
            reader = Reader(self._whole, encoder)
        try:
            reader.encode(self._first, self, buffer)
        except EventError:
            fewer = encoder.narrowed()
            if fewer is None:
                raise
            Reader(self._whole, fewer).encode(self._first, self, buffer)
        self._readers.append(reader)
