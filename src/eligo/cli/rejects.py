"""Rows that were refused: shown in part, written whole."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from typing import IO, Final

import msgspec

from eligo.cli.files import replaced
from eligo.cli.terminal import plural, say

DUPLICATE: Final = "another rule has this id"
_SHOWN: Final = 10


class BadRow(msgspec.Struct, frozen=True):
    """`row` counts all rows of the input from 0, refused ones too; `line` lines from 1. Both are -1 where there are
    none: tables on Spark have no order.

    `position` is the character of the rule's text where the trouble is, -1 where there is no such place.
    """

    row: int
    line: int
    message: str
    id: object = None
    position: int = -1


class Rejects:
    """Takes bad rows as they come. The first few go to stderr, all of them to `path` if there is one.

    `always` writes the file even if it stays empty; otherwise one that is left from an earlier run is removed.
    """

    def __init__(self, path: str | None, *, always: bool = True) -> None:
        self.count = 0
        self._path = path
        self._always = always
        self._opened = ExitStack()
        self._file: IO[bytes] | None = None

    def add(self, bad: BadRow) -> None:
        if self.count < _SHOWN:
            say(_line(bad))
        self.count += 1
        if self._path is not None:
            self._open().write(msgspec.json.encode(bad) + b"\n")

    def _open(self) -> IO[bytes]:
        if self._file is None:
            self._file = self._opened.enter_context(replaced(self._path))
        return self._file

    def __enter__(self) -> Rejects:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._path is not None and self._always and error is None:
            self._open()
        if self._file is not None:
            # Written even if the command fails later: why rows were refused is what one then wants to know.
            self._opened.close()
        elif self._path is not None and error is None and os.path.isfile(self._path):
            os.unlink(self._path)
        if self.count > _SHOWN:
            say(f"… and {plural(self.count - _SHOWN, 'more reject')}")
        if self.count and self._path is not None:
            say(f"{plural(self.count, 'reject')} in {self._path}")
        elif self.count > _SHOWN:
            say("--rejects FILE writes all of them")


def for_shell(message: str) -> str:
    """A message of the library with its remedy in terms of the command line."""
    if message.startswith(("there is a rule ", "another row has the id ")):
        return DUPLICATE
    return re.sub(r"Matcher\(multi=\['([^']*)'\]\)", r"--multi \1 where the rules are compiled", message)


def _line(bad: BadRow) -> str:
    places = [f"line {bad.line}"] if bad.line > 0 else [f"row {bad.row}"] if bad.row >= 0 else []
    places += [] if bad.id is None else [f"rule {bad.id}"]
    return f"rejected: {', '.join(places) or 'a row'}: {bad.message}"
