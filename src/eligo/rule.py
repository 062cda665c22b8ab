"""A rule as users get it back."""

from __future__ import annotations

import msgspec


class Rule(msgspec.Struct, frozen=True):
    """`expression` is the text as it was written, or rendered if the rule was given in another form."""

    id: str | int
    expression: str
    weight: float = 1.0
    tags: tuple[str, ...] = ()


class Reject(msgspec.Struct, frozen=True):
    """A rule that a bulk load refused: its place in the input, its id if it had one, and why.

    `position` is the character of the text where the trouble is, -1 where there is no such place.
    """

    row: int
    id: object
    message: str
    position: int = -1
