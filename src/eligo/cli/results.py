"""Matching slices of events, and writing the matches as they come: rows of (event, rule)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eligo.cli.events import Numbers, Reject, Slice
from eligo.cli.files import InputError, replaced
from eligo.cli.rejects import BadRow, for_shell
from eligo.compile.json_texts import JsonEvents
from eligo.errors import ColumnError, EventError

if TYPE_CHECKING:
    from eligo import Matcher

_TEXT_ROWS: Final = 65_536  # matches turned into text at a time
_GROUP_ROWS: Final = 1_048_576  # matches of one row group of a Parquet file; many small ones are slow to read


def matches_of(
    matcher: Matcher, part: Slice, reject: Reject, tags: tuple[str, ...] | None = None, limit: int | None = None
) -> Iterator[pa.Table]:
    """The matches of a slice, events by their number in the file. An event that is refused does not cost the others."""
    if isinstance(part.events, JsonEvents):
        found, refused = matcher.match_ndjson(part.events, tags=tags, limit=limit, on_error="collect")
        for one in refused:
            reject(BadRow(int(part.rows[one.row]), int(part.lines[one.row]), for_shell(one.message)))
        if found.num_rows:
            yield _renumbered(found, part.rows)
        return
    todo = [(0, len(part.rows))]
    while todo:
        first, stop = todo.pop()
        events = part.events if stop - first == len(part.rows) else _between(part.events, first, stop)
        try:
            found = matcher.match_batch(events, tags=tags, limit=limit)
        except ColumnError as error:
            raise InputError(_message(error)) from None
        except EventError as error:
            if stop - first > 1:
                middle = (first + stop) // 2
                todo += [(middle, stop), (first, middle)]
            else:
                reject(BadRow(int(part.rows[first]), int(part.lines[first]), _message(error)))
            continue
        if found.num_rows:
            yield _renumbered(found, part.rows[first:stop])


def _renumbered(found: pa.Table, rows: Numbers) -> pa.Table:
    """The matches with the numbers of events in the file, instead of those in the slice."""
    return found.set_column(0, "event", pa.array(rows[found["event"].to_numpy()], pa.int64()))


def _message(error: EventError) -> str:
    return for_shell(re.sub(r"^event \d+: ", "", str(error)))  # a number within the slice, which nobody knows


def _between(events: Any, first: int, stop: int) -> Any:
    return events[first:stop] if isinstance(events, list) else events.slice(first, stop - first)


class Output:
    """Takes tables of matches and writes them in one format."""

    def __init__(self, file: IO[bytes], format: str, rule_type: pa.DataType) -> None:
        self.schema = pa.schema([("event", pa.int64()), ("rule", rule_type)])
        self.matches = 0
        self._file = file
        self._writer: Any = None
        self._waiting: list[pa.Table] = []
        self._grouped = format == "parquet"
        if format == "csv":
            import pyarrow.csv

            self._writer = pyarrow.csv.CSVWriter(file, self.schema)
        elif format == "parquet":
            import pyarrow.parquet

            self._writer = pyarrow.parquet.ParquetWriter(file, self.schema)

    def write(self, found: pa.Table) -> None:
        self.matches += found.num_rows
        if self._writer is not None:
            self._waiting.append(found.cast(self.schema))
            if not self._grouped or sum(table.num_rows for table in self._waiting) >= _GROUP_ROWS:
                self._write_waiting()
            return
        for first in range(0, found.num_rows, _TEXT_ROWS):
            part = found.slice(first, _TEXT_ROWS)
            self._file.write(_json_lines(part["event"].combine_chunks(), part["rule"].combine_chunks()))

    def close(self) -> None:
        if self._writer is not None:
            self._write_waiting()
            self._writer.close()

    def abandon(self) -> None:
        """After an error: Arrow's writers would otherwise write to a closed file when they are collected."""
        if self._writer is not None:
            with suppress(Exception):
                self._writer.close()

    def _write_waiting(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting))
            self._waiting = []


@contextmanager
def output(path: str | None, format: str, rule_type: pa.DataType) -> Iterator[Output]:
    """An output in the file `path`, which is replaced only if all goes well, or on standard output."""
    with replaced(path) as file:
        result = Output(file, format, rule_type)
        try:
            yield result
            result.close()
        except BaseException:
            result.abandon()
            raise


def _json_lines(events: pa.Array, rules: pa.Array) -> memoryview:
    """`{"event":0,"rule":"a"}` for each row: built by Arrow as one long string, each different id encoded once."""
    names = rules.dictionary_encode()
    encoded = pa.array([msgspec.json.encode(name).decode() for name in names.dictionary.to_pylist()], pa.string())
    joined = pc.binary_join_element_wise(
        '{"event":', events.cast(pa.string()), ',"rule":', encoded.take(names.indices), "}\n", ""
    )
    _, offsets, data = joined.buffers()
    ends = np.frombuffer(offsets, np.int32)[joined.offset : joined.offset + len(joined) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
