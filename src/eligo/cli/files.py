"""Inputs and outputs as files: which format, opened how, and replaced only when whole."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from eligo.errors import EligoError

SUFFIXES: Final = {
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".json": "ndjson",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS: Final = ("ndjson", "csv", "parquet")

Advance = Callable[[int], None]


class InputError(EligoError, ValueError):
    """A file or option that nothing can be done with."""


@dataclass(frozen=True)
class Source:
    """A file to read, or `-` for standard input."""

    path: str
    format: str

    @property
    def name(self) -> str:
        return "standard input" if self.path == "-" else self.path

    @property
    def size(self) -> int | None:
        return None if self.path == "-" else os.path.getsize(self.path)

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The bytes, unpacked."""
        if self.path == "-":
            yield sys.stdin.buffer
            return
        with open(self.path, "rb") as file:
            if not self.path.endswith(".gz"):
                yield file
                return
            try:
                with gzip.open(file) as unpacked:
                    yield io.BufferedReader(unpacked)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise InputError(f"{self.name}: not a whole gzip file ({error})") from None


def is_snapshot(path: str) -> bool:
    """Whether a folder holds rules that can be opened: a plain snapshot, or versions."""
    return any(os.path.isfile(os.path.join(path, name)) for name in ("manifest.json", "CURRENT"))


def is_folder(out: str) -> bool:
    """Whether an output is a folder, which Spark writes itself: a URL, or a name that ends with a slash."""
    return out.endswith("/") or "://" in out


def source(path: str, given: str | None = None, option: str = "--format") -> Source:
    """What to read, checked: it exists, is a file, is not empty, and its format is known."""
    if path != "-":
        if not os.path.exists(path):
            raise InputError(f"{path}: there is no such file")
        if os.path.isdir(path):
            kind = "a snapshot, where a file is needed" if is_snapshot(path) else "a folder without a manifest.json"
            raise InputError(f"{path}: {kind}")
        if os.path.isfile(path) and os.path.getsize(path) == 0:
            raise InputError(f"{path}: the file is empty")
    return Source(path, format_of(path, given, option))


def format_of(path: str, given: str | None, option: str = "--format") -> str:
    """The format asked for, else the one that the file's name tells."""
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"unknown format {given!r}: {option} is one of {', '.join(FORMATS)}")
        return given
    if path == "-":
        raise InputError(f"standard input has no name to tell its format: give {option} ({', '.join(FORMATS)})")
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if suffix not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise InputError(f"{path}: the format cannot be told from the name (known: {known}); give {option}")
    return SUFFIXES[suffix]


def lines(file: IO[bytes], advance: Advance) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1."""
    for number, line in enumerate(file, 1):
        advance(len(line))
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")  # some editors begin a text with this mark
        if not line.isspace():
            yield number, line


@contextmanager
def replaced(path: str | None) -> Iterator[IO[bytes]]:
    """A file to write that takes its name only when the block has ended well; None is standard output."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        # A pipe or a device is written to; putting a file in its place would break it for everybody.
        if os.path.isdir(target):
            raise InputError(f"{path}: is a folder, where a file is to be written")
        with open(target, "wb") as device:
            yield device
        return
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise InputError(f"{path}: there is no folder {folder}")
    beside = os.path.join(folder, f".{name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.unlink(beside)
        raise


def parquet_file(source: Source) -> Any:
    """An open Parquet file; one that is cut short or something else is refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Parquet is read from its end, so a pipe has to be read whole.
        return pq.ParquetFile(io.BytesIO(sys.stdin.buffer.read()) if source.path == "-" else source.path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{source.name}: not a whole Parquet file ({str(error).splitlines()[0]})") from None
