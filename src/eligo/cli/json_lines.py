"""One JSON object a line."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from eligo.cli.rejects import BadRow

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_DECODE = msgspec.json.Decoder().decode


def decoded(raw: bytes, row: int, line: int) -> dict[str, Any] | BadRow:
    """The object of a line, or why there is none."""
    try:
        form = _DECODE(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = ""
        if raw.strip() in (b"{", b"["):
            hint = "; a JSON text over several lines has to be put on one"
        elif _HALF.search(raw):
            hint = "; \\ud800 … \\udfff stand in pairs, each the half of one character"
        return BadRow(row, line, f"not JSON: {error}{hint}")
    if isinstance(form, dict):
        return form
    hint = "; write its elements as one object a line" if isinstance(form, list) else ""
    return BadRow(row, line, f"expected an object, found {raw.strip()[:60].decode(errors='replace')}{hint}")


def with_times(event: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The event with its text under these names, plain or dotted, read as timestamps; ValueError for other text."""
    for name in names:
        if name in event:
            event[name] = _time(name, event[name])
            continue
        *path, last = name.split(".")
        inner: Any = event
        for part in path:
            inner = inner.get(part) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and last in inner:
            inner[last] = _time(name, inner[last])
    return event


def _time(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_time(name, one) for one in value]
    if not isinstance(value, str):
        return value
    return read_time(name, value)


def read_time(name: str, text: str) -> datetime:
    """An ISO 8601 date or time; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name}: {text[:60]!r} is no timestamp (such as 2026-01-31T12:00:00Z)") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
