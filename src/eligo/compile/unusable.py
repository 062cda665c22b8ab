"""The error of a table in which some rows hold what no rule can be asked about."""

from __future__ import annotations

from eligo.compile.compiled import I64
from eligo.errors import EventError


class UnusableValuesError(EventError):
    """Values of one attribute that cannot be used.

    `rows` are the numbers of all the rows of the table that hold such values; None means that every row may.
    """

    def __init__(self, message: str, attribute: str = "", rows: I64 | None = None) -> None:
        super().__init__(message)
        self.attribute = attribute
        self.rows = rows
