"""Which phase comes first: the rules' own predicates, or what they ask of documents.

    constants first     search the index, then ask documents what the rules that it found leave to be asked
    joins first         ask documents all that rules ask; if no answer is yes, no rule can match and nothing is searched

The second can only help where every rule asks something, and does where asking is cheap, and the answer often no to all
(Index Structures and Algorithms for Efficient Profile Matching, §4.3.1: "given j, k, N and D (and maybe some statistics
about the distribution of coming documents), we can estimate which phase is more beneficial to apply first"). What both
cost is measured on one event in 64, and so is how often all answers are no.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from eligo.documents.event_state import EventScreen, EventState
from eligo.segments.view import View

if TYPE_CHECKING:
    from eligo.compile.events import EventBuffer
    from eligo.documents.joins import Formula, Joins

_SAMPLE = 64  # one event in so many is measured
_MOST = 256  # formulas: to ask more than these before searching is never worth it
_WEIGHT = 0.1  # of the newest measurement

Order = Literal["constants", "joins"]


class Phases:
    """What was measured, and the order that follows from it. `fixed` is for whoever wants to compare."""

    def __init__(self, joins: Joins) -> None:
        self._joins = joins
        self.fixed: Order | None = None
        self.first: Order = "constants"
        self.reason = "nothing was measured yet"
        self._events = 0
        self._view: View | None = None
        self._formulas: tuple[Formula, ...] | None = ()
        self._searching = self._needed = self._asking = self._none = -1.0  # microseconds, and a share

    def none_can_match(self, view: View, event: Mapping[str, Any], screen: EventScreen) -> bool:
        """Whether documents say no to all that rules ask, if that is asked first."""
        if (self.fixed or self.first) == "constants":
            return False
        formulas = self._all(view)
        return formulas is not None and not any(map(screen.state(event).holds, formulas))

    def measure(self, view: View, event: Mapping[str, Any], buffer: EventBuffer) -> None:
        """Count an event and, now and then, measure both phases with it."""
        self._events += 1
        if self._events % _SAMPLE != 1:
            return
        formulas = self._all(view)
        if formulas is None:
            self.first = "constants"
            self.reason = f"not every rule asks documents, or more than {_MOST} things are asked"
            return
        start = perf_counter()
        view.ids(event, buffer, None, None)
        searched = perf_counter()
        view.asking(EventScreen(self._joins)).ids(event, buffer, None, None)
        asked = perf_counter()
        state = EventState(self._joins, event)
        none = sum(map(state.holds, formulas)) == 0
        end = perf_counter()
        self._searching = _mean(self._searching, 1e6 * (searched - start))
        self._needed = _mean(self._needed, max(0.0, 1e6 * (asked - searched - (searched - start))))
        self._asking = _mean(self._asking, 1e6 * (end - asked))
        self._none = _mean(self._none, float(none))
        constants = self._searching + self._needed
        joins = self._asking + (1 - self._none) * self._searching
        # Where no event is done by asking, it cannot help: what seems to be a gain is noise.
        self.first = "joins" if self._none > 0 and joins < constants else "constants"
        self.reason = (
            f"searching takes {self._searching:.0f} µs and asking for what is found {self._needed:.0f}; asking all "
            f"{len(formulas):,} takes {self._asking:.0f}, and {self._none:.0%} of events are then done"
        )

    def forget(self) -> None:
        """Look anew at what rules ask."""
        self._view = None

    def _all(self, view: View) -> tuple[Formula, ...] | None:
        """All that the rules of a view ask; None if some ask nothing, or too much is asked."""
        if view is not self._view:
            texts = view.all_joins(_MOST)
            self._formulas = None if texts is None else tuple(map(self._joins.formula, sorted(texts)))
            self._view = view
        return self._formulas


def _mean(before: float, now: float) -> float:
    return now if before < 0 else before + _WEIGHT * (now - before)
