"""Events that are rows of an Arrow table."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arrow import arrow_of
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError
from eligo.forking import cached_property

if TYPE_CHECKING:
    from eligo.compile.arrow_reader import Reader, Stretches


class _Whole:
    """What slices of one table share: the table, what is known of its memory, and readers that no thread has."""

    def __init__(self, table: pa.Table | pa.RecordBatch, pairs: str | None) -> None:
        self.table, self.pairs = table, pairs
        self._number = -1 if pairs is None else _number(table, pairs)
        self.stretches: Stretches | None = None
        self.readers: list[Reader] = []

    def columns(self, numbers: list[int]) -> pa.Table | pa.RecordBatch:
        """Some of the columns."""
        return self.table if numbers == [*range(self.table.num_columns)] else self.table.select(numbers)

    def reader(self, encoder: Encoder) -> Reader:
        from eligo.compile.arrow_plan import plan_for  # with its kernels, which few need
        from eligo.compile.arrow_reader import Reader, Stretches

        with suppress(IndexError):
            reader = self.readers.pop()
            if reader.is_for(encoder):
                return reader
        plan, stretches = plan_for(self.table.schema, encoder, self._number), self.stretches
        if stretches is None or stretches.plan is not plan:
            stretches = self.stretches = Stretches(self.columns(plan.read), plan)
        return Reader(stretches, encoder)


def _number(table: pa.Table | pa.RecordBatch, name: str) -> int:
    numbers: list[int] = table.schema.get_all_field_indices(name)
    if len(numbers) != 1:
        raise EventError(f"pairs={name!r}: the table of events has {len(numbers) or 'no'} columns of this name")
    return numbers[0]


class TableEvents:
    """Some of the rows of a table. `pairs`: the name of a column with attributes and values of each row."""

    def __init__(self, table: pa.Table | pa.RecordBatch, pairs: str | None = None) -> None:
        self._whole, self._first, self._count = _Whole(table, pairs), 0, len(table)

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

    def columns(self, numbers: list[int]) -> pa.Table | pa.RecordBatch:
        """Some columns of these rows."""
        return self._whole.columns(numbers).slice(self._first, self._count)

    def filtered(self, kept: NDArray[np.bool_]) -> TableEvents:
        """Those of them that are to be kept."""
        return TableEvents(self.table.filter(arrow_of(kept)), self._whole.pairs)

    def given(self) -> pa.Table | pa.RecordBatch | list[dict[str, Any]]:
        """The rows as a table or, where some of their attributes are in pairs, as dicts."""
        column = self._whole.pairs
        if column is None:
            return self.table
        rows: list[dict[str, Any]] = self.table.to_pylist()
        for row in rows:
            found: dict[str, list[Any]] = {}
            for pair in row.pop(column) or ():
                name, value = pair.values() if isinstance(pair, dict) else pair or (None, None)
                if name is not None and value is not None:
                    found.setdefault(name, []).append(value)
            row.update({name: values if len(values) > 1 else values[0] for name, values in found.items()})
        return rows

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
            _Whole(self.table, self._whole.pairs).reader(fewer).encode(0, self, buffer)
        self._whole.readers.append(reader)
