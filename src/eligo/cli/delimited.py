"""CSV files: their records with line numbers, and their columns, which are text until something tells their kind.

A broken record costs one line and not the rest of the file. A quote that is never closed makes everything after it part
of one field. So the lines of the record being read are kept: when the file ends inside a quote, or the record grows
past any sensible length, only its first line is given up and reading goes on with the line after it.

A column is of one kind, which its cells in the first slice with any decide: numbers, Booleans, times, or else
strings. A cell further down that is of another kind costs its row, and the message names the remedy. An empty cell is
absent.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from typing import IO, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eligo.cli.files import Advance, InputError, Source
from eligo.cli.json_lines import read_time
from eligo.cli.rejects import BadRow
from eligo.cli.terminal import plural, say

_LONGEST: Final = 1_000  # lines of one record
_WIDEST: Final = 16_000_000  # characters of one field; a rule may have a million, and more if the limits are raised

# In the order in which they are tried; integers and floats are one kind, so a slice without fractions stays exact.
_TYPES: Final = {
    "number": (pa.int64(), pa.float64()),
    "Boolean": (pa.bool_(),),
    "time": (pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
}
_EMPTY: Final = pa.array([""])
# How other programs write a cell without a value; among strings these are strings (NA is Namibia).
_NO_VALUE: Final = pa.array(["", "NA", "N/A", "NULL", "null", "NaN", "nan"])
_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False}


class Record(NamedTuple):
    """The fields of a record, its number from 0 and its first line from 1."""

    row: int
    line: int
    fields: list[str]


class _UnclosedError(Exception):
    """A record has grown past any sensible length."""


class _Lines:
    """Lines as text, those of the current record kept so that all but its first can be read again."""

    def __init__(self, file: IO[bytes], advance: Advance) -> None:
        self._file, self._advance = file, advance
        self._again: deque[str] = deque()
        self._current: list[str] = []
        self.line = 0  # number of the line read last
        self.all_text = True  # no line so far had bytes that are not UTF-8

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if len(self._current) >= _LONGEST:
            raise _UnclosedError
        if self._again:
            text = self._again.popleft()
        else:
            raw = next(self._file)
            self._advance(len(raw))
            if self.line == 0:
                raw = raw.removeprefix(b"\xef\xbb\xbf")  # some editors begin a text with this mark
            try:
                text = raw.decode()
            except UnicodeDecodeError:
                # As lone surrogates, which no text has: only the record that holds them is lost.
                text = raw.decode(errors="surrogateescape")
                self.all_text = False
        self.line += 1
        self._current.append(text)
        return text

    def begin(self) -> None:
        self._current = []

    def give_up_first(self) -> int:
        """Put back all lines of the record but its first; how many there were."""
        self.line -= len(self._current) - 1
        self._again.extendleft(reversed(self._current[1:]))
        return len(self._current)


def records(source: Source, file: IO[bytes], advance: Advance) -> Iterator[Record | BadRow]:
    """First the header (row -1), then every record that has as many fields; the others as bad rows."""
    csv.field_size_limit(_WIDEST)
    text = _Lines(file, advance)
    reader = csv.reader(text, strict=True)
    header: Record | None = None
    row = -1
    while True:
        text.begin()
        line = text.line + 1
        try:
            fields = next(reader)
        except StopIteration:
            break
        except (csv.Error, _UnclosedError) as error:
            # Most often the quote was meant to end on its line, and what csv stumbled over stands lines below.
            several = text.give_up_first() > 1
            reason = "a quote is not closed" if several or "unexpected end" in str(error) else str(error)
            if header is None:
                raise InputError(f"{source.name}, line {line}: the header cannot be read: {reason}") from None
            yield BadRow(row, line, reason)
            row += 1
            continue
        if not fields:
            continue
        if header is None:
            header = Record(-1, line, [name.strip() for name in fields])
            _check_header(source, header.fields)
            yield header
        elif len(fields) != len(header.fields):
            yield BadRow(row, line, f"{len(fields)} fields, the header has {len(header.fields)}")
        elif not text.all_text and not all(map(_is_text, fields)):
            yield BadRow(row, line, "not UTF-8 text")
        else:
            yield Record(row, line, fields)
        row += 1
    if header is None:
        raise InputError(f"{source.name}: the file is empty")


def _check_header(source: Source, names: list[str]) -> None:
    if not all(map(_is_text, names)):
        raise InputError(f"{source.name}: the header is not UTF-8 text")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{source.name}: two columns have the name {twice!r}")


def _is_text(field: str) -> bool:
    if field.isascii():
        return True
    try:
        field.encode()
    except UnicodeEncodeError:
        return False
    return True


class Column:
    """One column; `kind` is None until it is known."""

    def __init__(self, name: str, kind: str | None = None) -> None:
        self.name = name
        self.kind = kind

    def read(self, cells: list[str]) -> tuple[pa.Array, dict[int, str]]:
        """The values of a slice, and for each cell that is of another kind its place and what to say."""
        text = pa.array(cells, pa.string())
        filled = _without(text, _NO_VALUE)
        if self.kind is None and pc.all(pc.is_in(text, _EMPTY)).as_py():
            return filled, {}
        if self.kind is not None or filled.null_count < len(filled):
            for kind, types in _TYPES.items():
                for one in types if self.kind in (None, kind) else ():
                    try:
                        values = filled.cast(one)
                    except pa.ArrowInvalid:
                        continue
                    self.kind = kind
                    return values, {}
        if self.kind in (None, "string"):
            if self.kind is None:
                self._warn_of_numbers(filled.to_pylist())
            self.kind = "string"
            return _without(text, _EMPTY), {}
        return self._one_by_one(filled.to_pylist())

    def _warn_of_numbers(self, cells: list[str | None]) -> None:
        """Warns where a few cells among numbers make a column text, on which comparisons with numbers never hold."""
        others = [cell for cell in cells if cell is not None and not _is_number(cell)]
        if 0 < 4 * len(others) <= sum(cell is not None for cell in cells):
            say(
                f"eligo: column {self.name} is read as text, because of {plural(len(others), 'cell')} such as "
                f"{others[0]!r:.60}: comparisons with numbers hold for none of it (--string {self.name} if it is text)"
            )

    def _one_by_one(self, cells: list[str | None]) -> tuple[pa.Array, dict[int, str]]:
        values: list[Any] = []
        bad: dict[int, str] = {}
        for place, cell in enumerate(cells):
            try:
                values.append(None if cell is None else self._value(cell))
            except ValueError:
                values.append(None)
                bad[place] = (
                    f"{self.name}: {cell!r:.60} is no {self.kind}, as the column's first values are; "
                    f"--string {self.name} reads all of them as text"
                )
        return pa.array(values, _TYPES[self.kind or ""][-1]), bad

    def _value(self, cell: str) -> Any:
        if self.kind == "number":
            return float(cell)
        if self.kind == "time":
            return read_time(self.name, cell)
        if cell.lower() not in _BOOLEANS:
            raise ValueError(cell)
        return _BOOLEANS[cell.lower()]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _without(text: pa.Array, absent: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_in(text, absent), pa.scalar(None, pa.string()), text)
