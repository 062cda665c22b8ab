"""The view of a living set: everything of one answer is found inside the gate, so it is of one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from threading import get_ident
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.interrupts import uninterrupted
from eligo.segments.encoding import as_given, between, encoded, slices
from eligo.segments.living.structure import Structure
from eligo.segments.matches import Matches
from eligo.segments.rules import Rules
from eligo.segments.view import ALL, View, wanted_tags
from eligo.threads import ALONE, Team

_SEARCHED = 256  # events after which the index may adjust itself
_EFFORT = 2048  # of that adjustment: a fraction of a millisecond
_PATIENCE = 0.001  # seconds that it may wait for readers to leave the gate
_HURRIED = 64  # events encoded inside at a time, where rules change faster than slices are encoded outside

P = ParamSpec("P")
R = TypeVar("R")
Moment = tuple[Encoder, int, int]


def _inside(read: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Wraps a method of the view so that it runs inside the gate."""

    @wraps(read)
    def inside(view: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        structure, me = view.structure, get_ident()
        gate = structure.gate
        outside = gate.is_outside(me)
        try:
            if outside:
                gate.enter(me)
            view.encoder = structure.encoder  # the same for all readers inside
            return read(view, *args, **kwargs)
        finally:
            if outside:
                gate.inside.discard(me)
                gate.left()
                if structure.searched >= _SEARCHED:
                    view.adjust()

    return inside


class LivingView(View):
    """The view of a living set. A matcher has one, and unlike the view of segments it changes with the rules."""

    changes: ClassVar[bool] = True

    def __init__(self, structure: Structure, rules: Rules) -> None:
        super().__init__((structure,), (ALL,), structure.encoder)
        self.structure = structure
        self._rules = rules

    ids, top, weighted = _inside(View.ids), _inside(View.top), _inside(View.weighted)
    has, rule, everyone, check = _inside(View.has), _inside(View.rule), _inside(View.everyone), _inside(View.check)
    hidden_tags = _inside(View.hidden_tags)

    def allowed(self, tags: Iterable[str] | None) -> tuple[Any, ...]:
        return self.alive if tags is None else (self.structure.allowed(wanted_tags(tags), ALL),)

    def all_joins(self, most: int) -> None:
        """Returns None, because the rules may change as soon as this is known."""

    @_inside
    def attributes(self) -> list[str]:
        return self.structure.counts.named(self.structure.attributes)

    def _slices(
        self,
        events: Any,
        tags: Iterable[str] | None,
        limit: int | None = None,
        inspect: Callable[[EventBuffer], None] | None = None,
        moved_on: Callable[[], None] | None = None,
        *,
        named: bool = False,
        team: Team = ALONE,
    ) -> Iterator[list[Matches]]:
        """Encodes slices outside the gate, and tests inside it that the encoding is still valid.

        Where rules change faster than slices are encoded, a few events at a time are encoded inside.
        """
        names = None if tags is None else wanted_tags(tags)
        for first, part in slices(events):
            hurried = False
            while len(part):
                moment, at = self.structure.moment(), 0
                buffer = None if hurried else encoded(part, moment[0], first)
                while buffer is None or at < buffer.events:
                    some = self._some(buffer, part, first, at, moment, names, limit, inspect, moved_on)
                    if some is None:
                        hurried = True
                        break
                    buffer, moment, at, found = some
                    if found is not None:
                        yield [found]
                first, part = first + at, between(part, at)

    @_inside
    def _some(
        self,
        buffer: EventBuffer | None,
        events: Any,
        number: int,
        at: int,
        moment: Moment,
        names: frozenset[str] | None,
        limit: int | None,
        inspect: Callable[[EventBuffer], None] | None,
        moved_on: Callable[[], None] | None,
    ) -> tuple[EventBuffer, Moment, int, Matches | None] | None:
        """Matches some events of a buffer from `at` on, or without a buffer some of `events`, which are encoded here
        and the first of which has this number. Returns the buffer, its moment, the index of the next event, and the
        matches or None if there are none. Returns None if the buffer's encoding is no longer valid.
        """
        structure, found = self.structure, None
        if buffer is None:
            buffer = encoded(between(events, 0, min(_HURRIED, len(events))), structure.encoder, number)
        elif structure.moment() != moment:
            return None
        if inspect is not None and at == 0:
            inspect(buffer)
        if moved_on is not None:
            moved_on()
        ends, rows = structure.match_batch(buffer, ALL if names is None else structure.allowed(names, ALL), at)
        if len(rows):
            if self._screen is not None:
                self._screen.begin(number, as_given(events))
            found = self._found(structure, number + at, ends, rows, limit)
            found.read()
        return buffer, structure.moment(), at + len(ends) - 1, found

    def adjust(self) -> None:
        """Lets the index adjust itself, unless a writer is at work or readers do not leave the gate soon."""
        structure, lock = self.structure, self._rules.lock
        with uninterrupted():
            if not lock.acquire(blocking=False):
                return
            try:
                structure.searched = 0
                structure.index.prepare(0, 0, 0, 0)
                if structure.gate.close(_PATIENCE):
                    try:
                        structure.index.adjust(_EFFORT)
                    finally:
                        structure.gate.open()
            finally:
                lock.release()
