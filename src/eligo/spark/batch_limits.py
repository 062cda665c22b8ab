"""How much a worker holds at a time, whatever an event matches and however wide its columns are.

    events   ─ Pace (segments/pace.py): so many that they have some MATCHES matches ─▶ found, in memory together
    found    ─ cuts: ROWS rows, or BYTES of kept columns, which every match repeats ─▶ batches of one row a match
             ─ by_event: events with about MATCHES matches ─▶ batches of one row an event

Arrow has at most 2 GB of characters in a string column, and Spark takes a batch as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eligo.arrow import numpy_of
from eligo.compile.compiled import I64
from eligo.segments.pace import MATCHES, Found

ROWS: Final = 65_536
BYTES: Final = 64 << 20  # one row may have more

_OF_BYTES: Final = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)


def cuts(sizes: I64, numbers: I64) -> Iterator[tuple[int, int]]:
    """Where to cut matches of events into batches: by rows, and by the bytes of the events that they repeat."""
    if not len(numbers):
        return
    events = sizes[numbers[0] : numbers[-1] + 1]
    if int(events.max()) * ROWS <= BYTES:
        yield from ((start, start + ROWS) for start in range(0, len(numbers), ROWS))
        return
    ends = np.cumsum(sizes[numbers])
    start = 0
    while start < len(numbers):
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + BYTES, side="right"))
        stop = max(start + 1, min(fitting, start + ROWS))
        yield start, stop
        start = stop


def by_event(batch: pa.RecordBatch, found: Iterator[Found]) -> Iterator[tuple[int, pa.RecordBatch, list[Found]]]:
    """Events, the number of the first, with all their matches: as many events as have about MATCHES."""
    first, matches, some = 0, 0, list[Found]()
    for part in chain.from_iterable(map(_pieces, found)):
        some.append(part)
        matches += len(part[0])
        if matches >= MATCHES:
            stop = int(part[0][-1]) + 1  # events come in order, so all up to here are complete
            yield first, batch.slice(first, stop - first), some
            first, matches, some = stop, 0, []
    if first < batch.num_rows:
        yield first, batch.slice(first), some


def _pieces(part: Found) -> Iterator[Found]:
    """Matches of some events, cut between events where they are more than MATCHES; what one event has stays whole."""
    numbers, start = part[0], 0
    while start < len(numbers):
        stop = start + MATCHES
        if stop < len(numbers):
            whole = int(np.searchsorted(numbers, numbers[stop]))
            stop = whole if whole > start else int(np.searchsorted(numbers, numbers[start], side="right"))
        yield tuple(column[start:stop] for column in part)
        start = stop


def bytes_by_row(column: pa.Array) -> I64:
    """How many bytes of values each row of a column has, about."""
    kind = column.type
    if not len(column):  # there need not even be offsets then
        return np.zeros(0, np.int64)
    if any(is_kind(kind) for is_kind in _OF_BYTES):
        lengths = numpy_of(pc.binary_length(column)).astype(np.int64)
        return np.where(numpy_of(column.is_valid()), lengths, 0) + 4
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        offsets = numpy_of(column.offsets)
        low, high = int(offsets[0]), int(offsets[-1])
        inner = [column.keys, column.items] if pa.types.is_map(kind) else [column.values]
        sizes = sum((bytes_by_row(part.slice(low, high - low)) for part in inner), np.zeros(high - low, np.int64))
        ends = np.concatenate(([0], np.cumsum(sizes)))
        return ends[offsets[1:] - low] - ends[offsets[:-1] - low] + 4  # type: ignore[no-any-return]
    if pa.types.is_struct(kind):
        return sum((bytes_by_row(part) for part in column.flatten()), np.zeros(len(column), np.int64))
    try:
        return np.full(len(column), (kind.bit_width + 7) // 8, np.int64)
    except ValueError:  # a type without a width of its own: what it has on the average
        return np.full(len(column), column.nbytes // max(1, len(column)), np.int64)
