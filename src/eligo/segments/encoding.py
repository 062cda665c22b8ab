"""Many events, in whatever form they come, as slices of encoded ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain, islice
from typing import Any, TypeAlias

import pyarrow as pa

from eligo.compile.arrow_events import TableEvents
from eligo.compile.dict_events import encode_events
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.json_texts import JsonEvents
from eligo.errors import EventError
from eligo.threads import ALONE, Team

Events: TypeAlias = TableEvents | JsonEvents | list[Any]

SLICE = 16_384  # events of a table or of JSON that are encoded at a time
_READ = 4096  # events that are taken from an iterator at a time
_BLOCK = 1024  # events for which another thread pays


@dataclass(frozen=True)
class Encoded:
    """Events together with their encoding for one view."""

    events: Events
    buffer: EventBuffer


def encoded_slices(events: Any, encoder: Encoder, team: Team = ALONE) -> Iterator[tuple[int, Events, EventBuffer]]:
    """Yields the number of each slice's first event, the events, and these encoded, in a buffer that is reused."""
    if isinstance(events, Encoded):
        yield 0, events.events, events.buffer
        return
    buffer: EventBuffer | None = None
    for first, part in slices(events):
        if buffer is None and not isinstance(part, TableEvents):
            buffer = EventBuffer(_READ, 16 * _READ)
        yield first, part, encoded(part, encoder, first, buffer, team)


def slices(events: Any, threads: int = 1, pairs: str | None = None) -> Iterator[tuple[int, Events]]:
    """Yields slices of the events as given, each with the number of its first event. A table or JSON is cut so that
    each of `threads` gets a slice. `pairs` is the name of a table's column that holds attributes and values.
    """
    found = events if isinstance(events, JsonEvents) else table_events(events, pairs)
    if isinstance(found, JsonEvents | TableEvents):
        # Each thread gets a slice, but no slice is smaller than a block of events.
        size = max(_BLOCK, min(SLICE, -(-len(found) // (threads * _BLOCK)) * _BLOCK))
        for first in range(0, len(found), size):
            yield first, found.slice(first, size)
        return
    left = iter(found)
    first = 0
    while part := list(islice(left, _READ)):
        yield first, part
        first += len(part)


def between(events: Events, first: int, stop: int | None = None) -> Events:
    """Returns events first … stop-1, or all from `first` on if `stop` is None."""
    if isinstance(events, list):
        return events[first:stop]
    return events.slice(first, (len(events) if stop is None else stop) - first)


def as_given(events: Events) -> Any:
    """Returns a table as the caller gave it, and other events as they are."""
    return events.given() if isinstance(events, TableEvents) else events


def encoded(
    part: Events, encoder: Encoder, first: int, buffer: EventBuffer | None = None, team: Team = ALONE
) -> EventBuffer:
    """Encodes a slice, into `buffer` unless it is a table, and returns the buffer. `first` is the number of its first
    event in error messages. Raises EventError for an event that cannot be used.
    """
    if isinstance(part, TableEvents):
        return _encoded_table(part, encoder, first, team if len(part) >= team.threads * _BLOCK else ALONE)
    buffer = buffer or EventBuffer(len(part), 16 * len(part))
    buffer.clear()
    if isinstance(part, JsonEvents):
        from eligo.compile.json_events import encode_json_batch  # with its kernels, which few need

        encode_json_batch(part, encoder, buffer, first)
        return buffer
    encode_events(encoder, part, buffer, first)
    return buffer


def _encoded_table(table: TableEvents, encoder: Encoder, first: int, team: Team) -> EventBuffer:
    """Encodes the rows of a table, a part in each thread. `first` is the number of the first row in error messages."""
    buffers = [EventBuffer() for _ in range(team.threads)]
    if team.threads == 1:
        with moving(first):
            table.encode(encoder, buffers[0])
        return buffers[0]
    size = -(-len(table) // team.threads)

    def encode(i: int) -> None:
        with moving(first + i * size):
            table.slice(i * size, size).encode(encoder, buffers[i])

    team.each(encode)
    if any(buffer.ranges for buffer in buffers):
        return _encoded_table(table, encoder, first, ALONE)
    for buffer in buffers[1:]:
        buffers[0].extend(buffer)
    return buffers[0]


def table_events(events: Any, pairs: str | None = None) -> TableEvents | Iterable[Any]:
    """Returns the rows of a table, or the events as they are if they are no table. `pairs` is the name of a column of
    attributes and values. Raises EventError if `pairs` is given and there is no table.
    """
    if isinstance(events, TableEvents):
        return events
    found = as_events(events)
    if isinstance(found, pa.Table | pa.RecordBatch):
        return TableEvents(found, pairs)
    if pairs is not None:
        raise EventError(f"pairs={pairs!r} is a column: the events have to be a table, not {type(events).__name__}")
    return found


def as_events(events: Any) -> pa.Table | pa.RecordBatch | Iterable[Any]:
    """Returns a table as an Arrow table or batch; pandas, Polars and others come through Arrow's C interface.

    Returns other iterables as they are, and a data frame that Arrow refuses as a list of its records. Raises EventError
    for a single event, and for what cannot be iterated over.
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
    """Returns a data frame as Arrow or, if a column holds Python objects that Arrow would change, as its records.

    Arrow gives a column one type: a datetime among dates becomes a date, 1 among Booleans is True. Raises EventError
    for a frame that Arrow cannot read.
    """
    if _is_pandas(frame):
        if not all(map(_is_kept_by_arrow, _object_columns(frame))):
            return _records(frame)
    elif any(str(kind) == "Object" for kind in getattr(frame, "dtypes", ())):  # a Polars type that Arrow does not know
        records: list[dict[str, Any]] = frame.to_dicts()
        return records
    try:
        return pa.table(frame)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        if _is_pandas(frame) and frame.columns.is_unique:
            return _records(frame)
        raise EventError(
            f"the table cannot be read as Arrow: {error}; events are rows of columns, each with a name of its own and "
            "values of one type"
        ) from None


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.startswith("pandas.") and hasattr(frame, "to_dict")


def _object_columns(frame: Any) -> Iterator[Any]:
    """Yields the Python objects of each column or named index level of type `object`, and those of categories."""
    levels = [frame.index.get_level_values(i) for i, name in enumerate(frame.index.names) if name is not None]
    for column in (*(frame.iloc[:, i] for i in range(frame.shape[1])), *levels):
        values = column.dtype.categories if hasattr(column.dtype, "categories") else column
        if values.dtype == object:
            yield values.to_numpy()


_KEPT = frozenset((str, bool, int, float, date, datetime))  # types of which a column stays what it is in Arrow
_NO_VALUE = frozenset(("NoneType", "NAType", "NaTType"))


def _is_kept_by_arrow(values: Iterable[Any]) -> bool:
    """Tests whether all values are missing, or of one type that Arrow keeps, or lists of values of one such type."""
    kinds = {kind for kind in set(map(type, values)) if kind.__name__ not in _NO_VALUE}
    if float in kinds and len(kinds) > 1:  # NaN stands for a missing value of any type
        kinds.discard(float)
        if any(value == value for value in values if type(value) is float):
            return False
    if kinds == {list}:
        inner = list(chain.from_iterable(value for value in values if type(value) is list))
        return list not in set(map(type, inner)) and _is_kept_by_arrow(inner)
    return not kinds or (len(kinds) == 1 and kinds <= _KEPT)


def _records(frame: Any) -> list[dict[str, Any]]:
    # Arrow keeps an index that has a name, and knows a column by the text of its name.
    named = any(name is not None for name in frame.index.names)
    records: list[dict[str, Any]] = (frame.reset_index() if named else frame).rename(columns=str).to_dict("records")
    return records


@contextmanager
def moving(first: int) -> Iterator[None]:
    """Returns a context in which an EventError about an event of a slice gets the event's number in the whole batch."""
    try:
        yield
    except EventError as error:
        if not first:
            raise
        raise moved(error, first) from None


def moved(error: EventError, first: int) -> EventError:
    """Returns the error with the event's number in the whole table instead of in the slice that begins at `first`."""
    text = str(error)
    if first and text.startswith("event "):
        number, _, rest = text.removeprefix("event ").partition(":")
        return EventError(f"event {int(number) + first}:{rest}")
    return error
