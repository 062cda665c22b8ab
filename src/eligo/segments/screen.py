"""Filters the rules that an event matches by what they ask of documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64
from eligo.compile.unusable import UnusableValuesError
from eligo.errors import EventError
from eligo.segments.base import Joined


class Screen(Protocol):
    """Answers what rules with quantifiers ask of documents. The documents do not change while it is used."""

    def begin(self, first: int, events: Any) -> None:
        """Begins with new events, a list of dicts or a table, the first of which has the number `first`."""

    def holds(self, event: int, tag: str) -> bool:
        """Tests whether the residual in a tag, given without its mark JOINED (rule_table.py), is true of an event."""

    def compared(self, event: int, tags: list[str], which: I32) -> tuple[I64, bool]:
        """Returns for each number in `which` whether that tag is true of an event: 0, 1, or ASK where comparing values
        is not enough and `holds` must decide; and whether there is an ASK. The number -1 is true. A list of tags never
        changes, so results of it may be kept.
        """


ASK = 2  # instead of 0 or 1: not decided
_TOGETHER = 4  # rules of an event from which deciding them together pays


def screened(screen: Screen, joined: Joined, events: I64 | int) -> NDArray[np.bool_]:
    """Returns which rules still match when documents are asked. `events` is their event, or one beside each."""
    which, tags = joined
    if isinstance(events, int):
        if len(which) < _TOGETHER or not isinstance(tags, list):
            return _one_by_one(screen, which, tags, events)
        truths, some_left = screen.compared(events, tags, which)
        if some_left:
            left = np.flatnonzero(truths == ASK)
            truths[left] = _one_by_one(screen, which[left], tags, events)
        return truths.astype(np.bool_)
    name = name_of(tags)
    pairs, places = np.unique(np.stack((events, which)), axis=1, return_inverse=True)
    asked = []
    for event, number in pairs.T.tolist():
        try:
            asked.append(number < 0 or screen.holds(event, name(number)))
        except UnusableValuesError:  # its text names the events already
            raise
        except EventError as error:
            raise EventError(f"event {event}: {error}") from None
    kept: NDArray[np.bool_] = np.array(asked, np.bool_)[places.ravel()]
    return kept


def _one_by_one(screen: Screen, which: I32, tags: list[str] | Callable[[int], str], event: int) -> NDArray[np.bool_]:
    known, name = {-1: True}, name_of(tags)
    for number in (numbers := which.tolist()):
        if number not in known:
            known[number] = screen.holds(event, name(number))
    return np.array([known[number] for number in numbers], np.bool_)


def name_of(tags: list[str] | Callable[[int], str]) -> Callable[[int], str]:
    """Returns the function that returns a tag by its number."""
    return tags.__getitem__ if isinstance(tags, list) else tags
