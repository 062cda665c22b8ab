"""What is left of the rules that an event matches when documents are asked."""

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
    """Asks documents what rules with quantifiers leave to be asked of them. The documents stand still meanwhile."""

    def begin(self, first: int, events: Any) -> None:
        """From now on event number `first` is the first of these: a list of dicts, or a table."""

    def holds(self, event: int, tag: str) -> bool:
        """Whether what a tag says, behind JOINED (rule_table.py), is true of an event."""

    def compared(self, event: int, tags: list[str], which: I32) -> tuple[I64, bool]:
        """The same for some of a table's tags, given by number, -1 being true, as 0 and 1, as far as it is found by
        comparing values alone; ASK where `holds` must tell, and whether there is such. A list of tags never changes.
        """


ASK = 2  # in place of a truth
_TOGETHER = 4  # rules of an event that are worth being decided together


def screened(screen: Screen, joined: Joined, events: I64 | int) -> NDArray[np.bool_]:
    """Returns which rules an event, or the event beside each of them, still satisfies when documents are asked."""
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
        except UnusableValuesError:  # names its events itself
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
    return tags.__getitem__ if isinstance(tags, list) else tags
