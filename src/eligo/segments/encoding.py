"""Many events, in whatever form they come, as slices of encoded ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import pyarrow as pa

from eligo.compile.arrow import encode_table
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError

_SLICE = 4096  # events at a time: their entries stay in the cache


def encoded_slices(events: Any, encoder: Encoder) -> Iterator[tuple[int, EventBuffer]]:
    """The events, encoded some at a time, and the number of the first of each slice; a buffer may be used again."""
    buffer = EventBuffer(_SLICE, 16 * _SLICE)
    for first, part in slices(events):
        yield first, encoded(part, encoder, first, buffer)


def slices(events: Any) -> Iterator[tuple[int, pa.Table | pa.RecordBatch | list[Any]]]:
    """The events as they come, some at a time, and the number of the first of each slice."""
    found = as_events(events)
    if isinstance(found, pa.Table | pa.RecordBatch):
        for first in range(0, found.num_rows, _SLICE):
            yield first, found.slice(first, _SLICE)
        return
    left = iter(found)
    first = 0
    while part := list(islice(left, _SLICE)):
        yield first, part
        first += len(part)


def encoded(
    part: pa.Table | pa.RecordBatch | list[Any], encoder: Encoder, first: int, buffer: EventBuffer | None = None
) -> EventBuffer:
    """A slice encoded, into the buffer if it is no table; `first` is the number of its first event in messages."""
    if isinstance(part, pa.Table | pa.RecordBatch):
        table = EventBuffer()
        try:
            encode_table(part, encoder, table)
        except EventError as error:
            raise moved(error, first) from None
        return table
    buffer = buffer or EventBuffer(len(part), 16 * len(part))
    buffer.clear()
    for number, event in enumerate(part):
        try:
            encoder.encode(event, buffer)
        except EventError as error:
            raise EventError(f"event {first + number}: {error}") from None
    return buffer


def as_events(events: Any) -> pa.Table | pa.RecordBatch | Iterable[Any]:
    """A table as Arrow: tables and batches as they are, pandas, Polars and others through Arrow's C interface.

    What is no table is given back as it is, and a data frame that Arrow refuses as its records.
    """
    if isinstance(events, pa.Table | pa.RecordBatch):
        return events
    if isinstance(events, pa.RecordBatchReader):
        return events.read_all()
    if isinstance(events, Mapping | str | bytes):
        raise EventError(
            f"many events are a list of dicts or a table, not a {type(events).__name__}; for one event use match"
        )
    if hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__"):
        return from_frame(events)
    if hasattr(events, "to_arrow"):
        return events.to_arrow()
    if not isinstance(events, Iterable):
        raise EventError(f"many events are a list of dicts or a table, not a {type(events).__name__}")
    return events


def from_frame(frame: Any) -> pa.Table | list[dict[str, Any]]:
    """A data frame as Arrow or, when one of its columns holds values of several types, as its records."""
    try:
        return pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        columns = getattr(frame, "columns", None)
        if not hasattr(frame, "to_dict") or not getattr(columns, "is_unique", False):
            raise EventError(f"the table cannot be read as Arrow: {error}; give each column one type") from None
    # Arrow keeps an index that has a name.
    named = any(name is not None for name in frame.index.names)
    records: list[dict[str, Any]] = (frame.reset_index() if named else frame).to_dict("records")
    return records


def moved(error: EventError, first: int) -> EventError:
    """The error with the event's number in the whole table instead of in the slice."""
    text = str(error)
    if first and text.startswith("event "):
        number, _, rest = text.removeprefix("event ").partition(":")
        return EventError(f"event {int(number) + first}:{rest}")
    return error
