"""Events as JSON texts, one or many in a block of bytes, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64, U8
from eligo.errors import EventError

_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_SHOWN: Final = 60
_DECODE: Final[Callable[[bytes], Any]] = msgspec.json.Decoder().decode


def decoded_event(raw: bytes) -> dict[str, Any]:
    """The event that a JSON text is; EventError if it is no JSON, or no object."""
    try:
        form = _DECODE(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = ""
        if raw.strip() in (b"{", b"["):
            hint = "; a JSON text over several lines has to be put on one"
        elif _HALF.search(raw):
            hint = "; \\ud800 … \\udfff stand in pairs, each the half of one character"
        raise EventError(f"not JSON: {error}{hint}") from None
    if isinstance(form, dict):
        return form
    hint = "; write its elements as one object a line" if isinstance(form, list) else ""
    raise EventError(f"expected an object, found {raw.strip()[:_SHOWN].decode(errors='replace')}{hint}")


def text_bytes(event: object) -> bytes:
    """The bytes of a JSON text, however it is given."""
    if isinstance(event, str):
        try:
            return event.encode()
        except UnicodeEncodeError as error:
            raise EventError(f"not JSON: {error}") from None
    if isinstance(event, bytes | bytearray | memoryview):
        return bytes(event)
    raise EventError(f"an event as JSON is bytes or a string, not {type(event).__name__}; for a dict use match")


class JsonEvents:
    """Many JSON texts: text i is data[begin[i]:end[i]], of bytes that nobody changes meanwhile.

    Where there is `refused`, an event that cannot be used does not raise: it is encoded as one without attributes, and
    the reason is put there under its number. Whoever made it so leaves out what such an event matches.
    """

    def __init__(self, data: U8, begin: I64, end: I64, refused: dict[int, str] | None = None) -> None:
        self.data, self.begin, self.end, self.refused = data, begin, end, refused

    def __len__(self) -> int:
        return len(self.begin)

    def __getitem__(self, number: int) -> dict[str, Any]:
        """One of the events, decoded."""
        return decoded_event(self.data[self.begin[number] : self.end[number]].tobytes())

    def slice(self, first: int, count: int | None = None) -> JsonEvents:
        """Some of them, or all from one on."""
        stop = None if count is None else first + count
        return JsonEvents(self.data, self.begin[first:stop], self.end[first:stop], self.refused)

    def filtered(self, kept: NDArray[np.bool_]) -> JsonEvents:
        """Those that are marked."""
        return JsonEvents(self.data, self.begin[kept], self.end[kept], self.refused)
