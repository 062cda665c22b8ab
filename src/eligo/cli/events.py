"""Events from NDJSON, CSV and Parquet files, in slices, each event with its number in the file.

    NDJSON    dicts, each value of the kind that JSON gives it; or texts, for a matcher that reads these itself
    CSV       Arrow, one kind for each column (delimited.py)
    Parquet   Arrow, with the file's own types

Only columns that rules name are read. Rows that cannot be read are handed to `reject` and counted, so that the
numbers of the others stay those of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import IO, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.cli.delimited import Column, Record, records
from eligo.cli.files import Advance, InputError, Source, lines, parquet_file
from eligo.cli.json_lines import decoded, with_times
from eligo.cli.rejects import BadRow
from eligo.cli.terminal import progress, say

SLICE: Final = 10_000

Reject = Callable[[BadRow], None]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class EventOptions:
    """Names of columns to read as text or as timestamps, whatever they look like."""

    strings: tuple[str, ...] = ()
    timestamps: tuple[str, ...] = ()


class Slice(NamedTuple):
    """Some events, as match_batch takes them, or JSON texts, as match_ndjson does. `rows` are their numbers from 0,
    `lines` from 1 (-1: no lines).
    """

    events: Any
    rows: Numbers
    lines: Numbers

    def dicts(self) -> list[dict[str, Any]]:
        if isinstance(self.events, list):
            return self.events
        events: list[dict[str, Any]] = self.events.to_pylist(maps_as_pydicts="strict")
        return events


def read_events(
    origin: Source, attributes: Collection[str] | None, options: EventOptions, reject: Reject, *, texts: bool = False
) -> Iterator[Slice]:
    """The events of a file. `attributes` are those that rules name; None reads every column. With `texts` those of an
    NDJSON file are not decoded, unless there are timestamps to be read.
    """
    if origin.format == "parquet":
        if options.strings or options.timestamps:
            raise InputError("a Parquet file has types of its own: --string and --timestamp are for text")
        yield from _parquet(origin, attributes)
        return
    if origin.format == "ndjson" and options.strings:
        raise InputError("JSON values have kinds of their own: --string is for CSV")
    with progress("reading events", origin.size) as advance, origin.opened() as file:
        if origin.format == "csv":
            yield from _csv(origin, records(origin, file, advance), attributes, options, reject)
        elif texts and not options.timestamps:
            yield from _json_texts(origin, file, advance)
        else:
            yield from _ndjson(origin, lines(file, advance), options.timestamps, reject)


def _json_texts(origin: Source, file: IO[bytes], advance: Advance) -> Iterator[Slice]:
    from eligo.compile.ndjson import lines_of

    row = 0
    for events, places in lines_of(file):
        advance(len(events.data))
        yield Slice(events, np.arange(row, row + len(events)), places)
        row += len(events)
    if not row:
        raise InputError(f"{origin.name}: there are no events")


def _ndjson(
    origin: Source, numbered: Iterator[tuple[int, bytes]], timestamps: tuple[str, ...], reject: Reject
) -> Iterator[Slice]:
    events: list[dict[str, Any]] = []
    rows: list[int] = []
    places: list[int] = []
    row = -1
    for row, (line, raw) in enumerate(numbered):
        event = decoded(raw, row, line)
        if isinstance(event, BadRow):
            reject(event)
            continue
        if timestamps:
            try:
                event = with_times(event, timestamps)
            except ValueError as error:
                reject(BadRow(row, line, str(error)))
                continue
        events.append(event)
        rows.append(row)
        places.append(line)
        if len(events) == SLICE:
            yield Slice(events, np.array(rows), np.array(places))
            events, rows, places = [], [], []
    if row < 0:
        raise InputError(f"{origin.name}: there are no events")
    if events:
        yield Slice(events, np.array(rows), np.array(places))


def _csv(
    origin: Source,
    found: Iterator[Record | BadRow],
    attributes: Collection[str] | None,
    options: EventOptions,
    reject: Reject,
) -> Iterator[Slice]:
    header = next(found)
    assert isinstance(header, Record)
    for name in (*options.strings, *options.timestamps):
        if name not in header.fields:
            raise InputError(f"{origin.name}: there is no column {name!r}; there are {', '.join(header.fields)}")
    forced = dict.fromkeys(options.timestamps, "time") | dict.fromkeys(options.strings, "string")
    wanted = [place for place, name in enumerate(header.fields) if attributes is None or name in attributes]
    _warn_of_none(wanted, attributes)
    columns = [Column(header.fields[place], forced.get(header.fields[place])) for place in wanted]
    pending: list[Record] = []
    for given in found:
        if isinstance(given, BadRow):
            reject(given)
            continue
        pending.append(given)
        if len(pending) == SLICE:
            yield _table(pending, wanted, columns, reject)
            pending = []
    if pending:
        yield _table(pending, wanted, columns, reject)


def _table(rows: list[Record], wanted: list[int], columns: list[Column], reject: Reject) -> Slice:
    read = [column.read([row.fields[place] for row in rows]) for place, column in zip(wanted, columns, strict=True)]
    numbers = np.array([row.row for row in rows])
    places = np.array([row.line for row in rows])
    good = np.ones(len(rows), np.bool_)
    for place, message in sorted(item for _, bad in read for item in bad.items()):
        if good[place]:
            reject(BadRow(int(numbers[place]), int(places[place]), message))
        good[place] = False
    if not columns:
        return Slice([{}] * len(rows), numbers, places)
    batch = pa.RecordBatch.from_arrays([values for values, _ in read], [column.name for column in columns])
    if good.all():
        return Slice(batch, numbers, places)
    return Slice(batch.filter(pa.array(good)), numbers[good], places[good])


def _parquet(origin: Source, attributes: Collection[str] | None) -> Iterator[Slice]:
    file = parquet_file(origin)
    wanted = [name for name in file.schema_arrow.names if _is_named(name, attributes)]
    _warn_of_none(wanted, attributes)
    first = 0
    try:
        with progress("reading events", file.metadata.num_rows) as advance:
            # Without columns Arrow would count no rows, and rules such as `x is null` hold for every one of them.
            for batch in file.iter_batches(SLICE, columns=wanted or file.schema_arrow.names[:1]):
                rows = np.arange(first, first + batch.num_rows)
                yield Slice(batch if wanted else [{}] * batch.num_rows, rows, np.full(batch.num_rows, -1))
                first += batch.num_rows
                advance(batch.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{origin.name}: damaged after row {first:,} ({error})") from None


def _is_named(column: str, attributes: Collection[str] | None) -> bool:
    """Whether rules name the column or something inside it."""
    return attributes is None or any(name == column or name.startswith(column + ".") for name in attributes)


def _warn_of_none(wanted: list[Any], attributes: Collection[str] | None) -> None:
    if not wanted and attributes:
        say("eligo: no column has the name of an attribute that rules name: all of them are absent")
