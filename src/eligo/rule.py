"""A rule as users get it back, and what was refused."""

from __future__ import annotations

import msgspec

RuleId = str | int


class Rule(msgspec.Struct, frozen=True):
    """A rule of a matcher. `expression` is the text as written, or rendered if it was given in another form."""

    id: RuleId
    expression: str
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    owner: str | None = None


class Reject(msgspec.Struct, frozen=True):
    """A rule that a bulk load refused, or an event that a batch left out: its place in the input, and why.

    `id` is that of the rule, if it had one. `position` is the character of the rule's text where the trouble is, -1
    where there is no such place.
    """

    row: int
    id: object
    message: str
    position: int = -1
