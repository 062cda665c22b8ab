"""What `pst-bloom` and `pst-hash` have in common: pools, strings, and how rows come to them."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.index.ps_tree.access_predicates import FEW
from eligo.index.ps_tree.cover import MOST_COVERED
from eligo.index.ps_tree.event_spaces import observe_events
from eligo.index.ps_tree.pools import (
    AT_ROW,
    BEGAN,
    BY_PRESENCE,
    BY_RANGE,
    BY_VALUE,
    EVENTS,
    HIGHEST,
    LONGEST,
    MOVED,
    ROUNDS,
    Pools,
)
from eligo.index.ps_tree.postings import mark_rows
from eligo.index.ps_tree.update import SOME_EVENTS, adjust_rows, copy_rows, delete_rows, foresee, insert_rows
from eligo.index.rows.growable import EARLY
from eligo.index.rows.pooled_index import PooledIndex, largest_and_highest

_MOST_ACCESSES = 6  # access predicates of a rule, or its predicates in signatures, that an option allows
_IN_TURN: I64 = np.zeros(0, np.int64)


_shared = threading.local()


def spaces_room() -> I64:
    """Room for the spaces that each predicate of a row covers; a thread has one for all the indexes that it changes."""
    room: I64 | None = getattr(_shared, "spaces", None)
    if room is None:
        room = _shared.spaces = np.empty((_MOST_ACCESSES, MOST_COVERED + 64), np.int64)
    return room


class PsIndex(PooledIndex):
    """An index on PS-Trees."""

    pools_type = Pools
    highest = HIGHEST
    copy_rows = staticmethod(copy_rows)

    def __init__(self, pools: Pools, strings: Strings) -> None:
        super().__init__(pools, strings)
        self._carry = np.zeros(int(pools.state[LONGEST]) + 64, np.int64)
        self._chosen, self._options = np.empty(16, np.int64), np.empty(FEW, np.int64)
        self._weights = np.empty((FEW, 3))

    def common_notes(self) -> dict[str, object]:
        state = self.pools.state
        return {
            "spaces": int(self.pools.spaces.sum()),
            "found by values": int(state[BY_VALUE]),
            "found by ranges": int(state[BY_RANGE]),
            "found by presence alone": int(state[BY_PRESENCE]),
            "events watched": int(state[EVENTS]),
            "rounds of adjustment": int(state[ROUNDS]),
            "rules moved": int(state[MOVED]),
        }

    # -- changing

    def insert(self, words: I64, offsets: I64, first: int, stop: int, attributes: int) -> None:
        largest, highest = largest_and_highest(words, offsets, first, stop)
        self._insert(words, offsets, first, stop, _IN_TURN, (attributes, largest, highest))

    def fill(self, words: I64, offsets: I64, rows: int, attributes: int) -> None:
        """Insert rows that are all known in advance: by what all have, and neighbours one after the other, so that they
        lie beside each other.
        """
        largest = int(np.diff(offsets[: rows + 1]).max(initial=0))
        self.pools.make_room(attributes, largest, rows)
        near = foresee(self.pools.handle, words, offsets, rows, self._chosen, self._options, self._weights)
        # Rows that look alike one after the other, so that what verification has to do next can be guessed.
        alike = words[offsets[:rows]] & 0xFFFF_FFFF
        self._insert(words, offsets, 0, rows, np.lexsort((alike, near)), (attributes, largest, rows))

    def _insert(self, words: I64, offsets: I64, first: int, stop: int, order: I64, room: tuple[int, int, int]) -> None:
        self._carry_at_least(room[1])
        self._follow_strings()
        if not self.pools.has_places(room[0], room[2]):
            self.pools.make_room(*room)
        while True:
            first = insert_rows(
                self.pools.handle, words, offsets, first, stop, order, self._strings, spaces_room(), self._carry,
                self._chosen, self._options, self._weights,
            )  # fmt: skip
            if first == stop:
                return
            self.pools.make_room(*room)

    def prepare(self, words: int, rows: int, highest: int, attributes: int) -> None:
        largest = max(int(self.pools.state[LONGEST]), 2 * words // max(rows, 1))
        self.pools.make_room(attributes, largest, highest, words, EARLY)

    def delete(self, numbers: I64) -> None:
        self._carry_at_least(int(self.pools.state[LONGEST]))
        first = 0
        while first < len(numbers):
            self.pools.make_room(0, int(self.pools.state[LONGEST]), 0)
            first = delete_rows(
                self.pools.handle, numbers, first, len(numbers), self._strings, spaces_room(), self._carry
            )

    def mark(self, attributes: NDArray[np.bool_], strings: NDArray[np.bool_]) -> None:
        mark_rows(self.pools.handle, attributes, strings)

    def adjust(self, effort: int) -> bool:
        """There is a round whenever twice as many events were seen as at the last."""
        state = self.pools.state
        if state[AT_ROW] == 0 and state[EVENTS] < 2 * state[BEGAN] + SOME_EVENTS:
            return False
        self._carry_at_least(0)
        self.pools.make_room(0, int(self.pools.state[LONGEST]), 0)
        return not adjust_rows(
            self.pools.handle, effort, self._strings, spaces_room(), self._carry, self._chosen, self._options,
            self._weights,
        )  # fmt: skip

    def observe(self, events: EventBuffer) -> None:
        scratch = self.scratch()
        scratch.fit(self.pools.state, events.widest)
        observe_events(self.pools.handle, events.handle, events.events, scratch.event_view, scratch.work)

    def _carry_at_least(self, words: int) -> None:
        words = max(words, int(self.pools.state[LONGEST])) + 16
        if words > len(self._carry):
            self._carry = np.zeros(2 * words, np.int64)
