"""One JSON object a line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from eligo.cli.rejects import BadRow
from eligo.compile.json_texts import decoded_event
from eligo.errors import EventError


def decoded(raw: bytes, row: int, line: int) -> dict[str, Any] | BadRow:
    """The object of a line, or why there is none."""
    try:
        return decoded_event(raw)
    except EventError as error:
        return BadRow(row, line, str(error))


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
