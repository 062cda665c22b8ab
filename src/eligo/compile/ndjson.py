"""Many events as JSON, from bytes, files and Arrow columns, in blocks of texts.

NDJSON has a text in each line. Lines are separated by newlines alone, those with nothing but blanks are no events, and
a byte order mark may stand before the first. A text keeps the newline behind it: a decoder that misses something says
so of the line as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eligo.arguments import directory_path, shown
from eligo.arrow import view_of
from eligo.compile.arrow import string_buffers
from eligo.compile.compiled import I64
from eligo.compile.json_texts import JsonEvents
from eligo.errors import OptionError
from eligo.jit import address_of, byte_at, equal_bytes, inline, kernel, trailing_zeros

_BLOCK: Final = 4 << 20  # bytes of a file that are read at a time
_MARK: Final = b"\xef\xbb\xbf"  # some editors begin a text with it


def json_blocks(source: Any) -> Iterator[JsonEvents]:
    """The texts of NDJSON, given as bytes, a path or a binary file, or those of an Arrow column, an element a text."""
    if isinstance(source, JsonEvents):
        yield source
    elif isinstance(source, bytes | bytearray | memoryview):
        yield split(source, True)[0]
    elif isinstance(source, str) and source.lstrip().startswith("{"):
        raise OptionError("a string is the path of a file: give the events themselves as bytes, text.encode()")
    elif isinstance(source, str | os.PathLike):
        with directory_path("the source", source).open("rb") as file:
            yield from (events for events, _ in lines_of(file))
    elif isinstance(source, pa.Array | pa.ChunkedArray):
        for chunk in source.chunks if isinstance(source, pa.ChunkedArray) else [source]:
            yield _column(chunk)
    elif callable(getattr(source, "read", None)):
        yield from (events for events, _ in lines_of(source))
    else:
        raise OptionError(
            "events as JSON are the bytes of NDJSON, a path or a binary file, or an Arrow column of texts, not "
            f"{shown(source)}"
        )


def lines_of(file: IO[bytes]) -> Iterator[tuple[JsonEvents, I64]]:
    """The lines of a file that are not blank, a block at a time, and their numbers from 1."""
    rest, before = b"", 0  # what is left of the block before, and the lines before the next
    first = True
    while True:
        block = file.read(_BLOCK)
        if isinstance(block, str):
            raise OptionError("a file of events as JSON is opened in binary mode: open(path, 'rb')")
        end = block.rfind(b"\n") + 1
        if block and not end:
            rest += block  # a line that is longer than a block
            continue
        whole = b"".join((rest, memoryview(block)[:end]))
        if whole or first:
            events, numbers, count = split(whole, first)
            if len(events):
                yield events, numbers + before
            before += count
        first, rest = False, block[end:]
        if not block:
            return


def split(given: bytes | bytearray | memoryview, first: bool) -> tuple[JsonEvents, I64, int]:
    """The lines that are not blank, their numbers from 1, and how many lines there are in all."""
    data = view_of(pa.py_buffer(given), np.uint8)
    marked = first and data[: len(_MARK)].tobytes() == _MARK
    begin, end, numbers, count = split_lines(data, len(_MARK) if marked else 0)
    return JsonEvents(data, begin, end), numbers, int(count)


def _column(column: pa.Array) -> JsonEvents:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _column(column.dictionary_decode())
    names = ("string", "large_string", "binary", "large_binary", "string_view", "binary_view")
    if not any(getattr(pa.types, f"is_{name}", lambda _: False)(kind) for name in names):
        raise OptionError(f"a column of events as JSON holds strings or binary values, not Arrow type {kind}")
    column = column.cast(pa.large_binary())
    offsets, data = string_buffers(pc.fill_null(column, b"null") if column.null_count else column)
    return JsonEvents(data, offsets[:-1].copy(), offsets[1:].copy())


@inline
def next_newline(data, at, size):
    """The place of the next newline, or the end."""
    while at + 32 <= size:
        found = equal_bytes(data, at, 10)
        if found != np.uint64(0):
            return at + np.int64(trailing_zeros(found))
        at += 32
    while at < size and byte_at(data, at) != 10:
        at += 1
    return at


@kernel
def split_lines(given, start):
    """Where lines that are not blank begin and end, their numbers from 1, and the number of all lines. The first line
    begins at `start`; what stands before it does not make it one that is empty.
    """
    data, size = address_of(given), len(given)
    count, at = 0, 0
    while at < size:
        at = next_newline(data, at, size) + 1
        count += 1
    begins, ends, numbers = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    used, number, at = 0, 0, 0
    while at < size:
        begin = max(at, start) if number == 0 else at
        at = min(next_newline(data, at, size) + 1, size)
        number += 1
        i = begin
        while i < at and (byte_at(data, i) == 32 or 9 <= byte_at(data, i) <= 13):
            i += 1
        if i < at or begin == at:
            begins[used], ends[used], numbers[used] = begin, at, number
            used += 1
    return begins[:used], ends[:used], numbers[:used], count
