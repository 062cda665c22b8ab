"""Many events, in whatever form they come, as slices of encoded ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from eligo.compile.arrow import encode_table
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError

_SLICE = 4096  # events at a time: their entries stay in the cache


def encoded_slices(events: Any, encoder: Encoder, *, fresh: bool = False) -> Iterator[tuple[int, EventBuffer]]:
    """The events, encoded some at a time, and the number of the first of each slice.

    A buffer is used again for the next slice, unless each is to be a fresh one.
    """
    table = as_table(events)
    if table is not None:
        for first in range(0, table.num_rows, _SLICE):
            buffer = EventBuffer()
            try:
                encode_table(table.slice(first, _SLICE), encoder, buffer)
            except EventError as error:
                raise _moved(error, first) from None
            yield first, buffer
        return
    buffer = EventBuffer(_SLICE, 16 * _SLICE)
    first = number = 0
    for number, event in enumerate(events):
        try:
            encoder.encode(event, buffer)
        except EventError as error:
            raise EventError(f"event {number}: {error}") from None
        if buffer.events == _SLICE:
            yield first, buffer
            first = number + 1
            if fresh:
                buffer = EventBuffer(_SLICE, 16 * _SLICE)
            buffer.clear()
    if buffer.events:
        yield first, buffer


def as_table(events: Any) -> pa.Table | pa.RecordBatch | None:
    """A table as Arrow: tables and batches as they are, pandas, Polars and others through Arrow's C interface."""
    if isinstance(events, pa.Table | pa.RecordBatch):
        return events
    if isinstance(events, pa.RecordBatchReader):
        return events.read_all()
    if isinstance(events, dict | str | bytes):
        raise EventError(
            f"many events are a list of dicts or a table, not a {type(events).__name__}; for one event use match"
        )
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        try:
            return pa.table(events)
        except pa.ArrowInvalid as error:
            raise EventError(
                f"the table of events cannot be read as Arrow: {error}; give each column one type"
            ) from None
    if hasattr(events, "to_arrow"):
        return events.to_arrow()
    return None


def _moved(error: EventError, first: int) -> EventError:
    """The error with the event's number in the whole table instead of in the slice."""
    text = str(error)
    if first and text.startswith("event "):
        number, _, rest = text.removeprefix("event ").partition(":")
        return EventError(f"event {int(number) + first}:{rest}")
    return error
