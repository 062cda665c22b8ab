"""What the tests of the commands share: rules, events, and the outcome of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

RULES = [
    {"id": "adults", "expression": "age >= 18 and country in ('US', 'CA')", "weight": 2.0, "tags": ["eu", "us"]},
    {"id": "minors", "expression": {"attr": "age", "op": "<", "value": 18}, "tags": ["us"]},
    {"id": "no country", "expression": "country is null"},
]
EVENTS = [{"age": 20, "country": "US"}, {"age": 12, "country": "CA"}, {"age": 30}, {"age": 40, "country": "FR"}]
EXPECTED = [(0, "adults"), (1, "minors"), (2, "no country")]


class Done(NamedTuple):
    """What a run of the program left behind."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def rows(self) -> list[tuple[int, object]]:
        """NDJSON matches as pairs."""
        return [(row["event"], row["rule"]) for row in map(msgspec.json.decode, self.out.splitlines())]


Run = Callable[..., Done]


def ndjson(path: str, rows: list[dict[str, object]] | list[str]) -> str:
    """Write objects, or lines as they are."""
    lines = [row if isinstance(row, str) else msgspec.json.encode(row).decode() for row in rows]
    Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path
