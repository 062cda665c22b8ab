"""How many events are matched at a time, so that their matches fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from eligo.errors import EventError
from eligo.segments.encoding import Events, between, moved

MATCHES: Final = 1 << 20

_FIRST: Final = 16  # events matched at first
_FASTER: Final = 8  # times as many the next time, at most
_MOST: Final = 4096

Found = tuple[Any, ...]  # of some events: numbers, ascending, the rule of each match[, weights[, sequence numbers]]


class Pace:
    """The number of events to match at a time, adapted so that they have about MATCHES matches together.

    All matches of the events that are matched at a time are in memory together, so it begins with a few events.
    """

    def __init__(self) -> None:
        self.events = _FIRST

    def through(self, events: Events, look: Callable[[Any], Iterator[Found]]) -> Iterator[Found]:
        """Yields what `look` finds for one part of the events after another, with numbers among all of the events."""
        first = 0
        while first < len(events):
            some = between(events, first, min(first + self.events, len(events)))
            matches = 0
            try:
                for numbers, *others in look(some):
                    matches += len(numbers)
                    yield numbers + first, *others
            except EventError as error:
                raise moved(error, first) from None
            first += len(some)
            fitting = MATCHES * len(some) // max(1, matches)
            self.events = max(1, min(fitting, _FASTER * self.events, _MOST))
