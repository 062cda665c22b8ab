"""The columns of a CSV file: text until something tells their kind.

A column is of one kind, which its cells in the first slice with any decide: numbers, Booleans, times, or else
strings. A cell further down that is of another kind costs its row, and the message names the remedy. An empty cell is
absent.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eligo.cli.json_lines import read_time

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


class Column:
    """One column; `kind` is None until it is known."""

    def __init__(self, name: str, kind: str | None = None) -> None:
        self.name = name
        self.kind = kind

    def read(self, cells: list[str]) -> tuple[pa.Array, dict[int, str]]:
        """The values of a slice, and for each cell that is of another kind its place and what to say."""
        text = pa.array(cells, pa.string())
        if self.kind == "string":
            return _without(text, _EMPTY), {}
        filled = _without(text, _NO_VALUE)
        if self.kind is None and filled.null_count == len(filled):
            if pc.all(pc.is_in(text, _EMPTY)).as_py():
                return filled, {}
            self.kind = "string"
            return _without(text, _EMPTY), {}
        for kind, types in _TYPES.items() if self.kind is None else [(self.kind, _TYPES[self.kind])]:
            for one in types:
                try:
                    values = filled.cast(one)
                except pa.ArrowInvalid:
                    continue
                self.kind = kind
                return values, {}
        if self.kind is None:
            self.kind = "string"
            return _without(text, _EMPTY), {}
        return self._one_by_one(filled.to_pylist())

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


def _without(text: pa.Array, absent: pa.Array) -> pa.Array:
    return pc.if_else(pc.is_in(text, absent), pa.scalar(None, pa.string()), text)
