"""The protocol of a segment: rules that are searched together. They are sealed (segment.py) or live (live.py), or they
change in place (living/structure.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I32, I64, U8
from eligo.compile.encode import PATTERN, SEVERAL, TEXT, Encode, Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.evaluate.base import Completion
from eligo.index.base import Index

if TYPE_CHECKING:
    from eligo.segments.live import LiveTable
    from eligo.segments.living.table import PooledTable
    from eligo.segments.rule_table import RuleTable

NO_ROWS: I32 = np.zeros(0, np.int32)
# For some rows, the number of the tag that says what to ask of documents, or -1; and the tags without their mark, as a
# list that never changes or as a function of the number.
Joined = tuple[I32, list[str] | Callable[[int], str]]


class BaseSegment(ABC):
    """Rules that are searched together. A row is a rule's number in the segment."""

    table: RuleTable | LiveTable | PooledTable
    text_attributes: Any  # numbers of the attributes whose events must bring the bytes of their strings
    pattern_attributes: Any  # and of those with a pattern that only the text itself can answer

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def present(self, alive: U8) -> NDArray[Any]:
        """Returns the rows of the rules that readers see. `alive` is the view's mask of this segment."""

    @abstractmethod
    def allowed(self, tags: frozenset[str], alive: U8) -> U8:
        """Returns the mask with which `match` reports only rules that readers see and that have one of the tags."""

    @abstractmethod
    def joined(self, rows: I32) -> Joined | None:
        """Returns what the rules of some rows ask of documents, or None if no rule of the segment asks anything."""

    @abstractmethod
    def asked(self, names: Sequence[str], alive: U8) -> tuple[Iterable[str], Iterable[str]]:
        """Returns the names of the attributes that living rules look at, and of those that they match with a pattern.
        `names` gives the names by number.
        """

    @abstractmethod
    def match(self, events: EventBuffer, event: int, allowed: U8) -> I32:
        """Returns the rows that an event of the buffer matches, in the order in which they were added."""

    def match_event(self, encoder: Encoder, event: Any, buffer: EventBuffer, allowed: U8, encode: Encode) -> I32:
        """Encodes an event into the buffer, which must be empty, and returns the rows that it matches, in order."""
        encode(encoder, event, buffer)
        return self.match(buffer, 0, allowed)

    @abstractmethod
    def match_batch(self, events: EventBuffer, allowed: U8) -> tuple[I64, Any]:
        """Matches all n events of the buffer. Returns n + 1 ends and the rows; event i has rows[ends[i]:ends[i+1]]."""

    @abstractmethod
    def counters(self) -> NDArray[np.int64]:
        """Returns the candidates and predicate evaluations of all searches so far, without those under way."""


class MaskedSegment(BaseSegment):
    """Rules that keep their rows. Removed ones are left out by a mask of one byte a row; an empty one keeps all."""

    table: RuleTable | LiveTable

    def __len__(self) -> int:
        return len(self.table)

    def present(self, alive: U8) -> NDArray[Any]:
        return np.flatnonzero(alive) if len(alive) else np.arange(len(self))

    def allowed(self, tags: frozenset[str], alive: U8) -> U8:
        return self.table.rows_with_tags(tags) & (alive if len(alive) else np.uint8(1))

    def joined(self, rows: I32) -> Joined | None:
        joins = self.table.joins
        return None if joins is None else (joins[0][rows], joins[1])


class IndexedSegment(BaseSegment):
    """Rules whose conjunctions are found by an index, and completed by an evaluator."""

    index: Index
    evaluator: Completion
    _scratches: deque[tuple[Any, Any]]

    @abstractmethod
    def mark(self, attributes: NDArray[np.bool_], strings: NDArray[np.bool_]) -> None:
        """Sets both arrays at the numbers of the attributes and strings that some rule names, alive or not."""

    def match(self, events: EventBuffer, event: int, allowed: U8) -> I32:
        scratches = self._scratches
        try:
            found, evaluated = scratch = scratches.pop()
        except IndexError:
            found, evaluated = scratch = self._new_scratch()
        count = self.index.search(events, event, found)
        matched = self.evaluator.evaluate(found.found, count, allowed, evaluated) if count else 0
        rows: I32 = evaluated.matched[:matched].copy() if matched else NO_ROWS
        scratches.append(scratch)
        return rows

    def match_between(self, events: EventBuffer, first: int, stop: int, allowed: U8) -> tuple[I64, list[I32]]:
        """Matches events first … stop-1. Returns how many rows each one matches, and the rows, in several arrays."""
        scratch = self._scratch()
        counts, offsets, ends = (np.zeros(stop - first + 1, np.int64) for _ in range(3))
        pieces: list[I32] = []
        at = first
        while at < stop:
            searched = self.index.search_batch(events, at, stop, scratch[0], offsets)
            done = 0
            while at + done < searched:
                some = self.evaluator.evaluate_batch(
                    scratch[0].found, offsets[done:], searched - at - done, allowed, scratch[1], ends
                )
                to = at - first + done
                counts[to : to + some] = np.diff(ends[: some + 1])
                pieces.append(scratch[1].matched[: ends[some]].copy())
                done += some
            at = searched
        self._scratches.append(scratch)
        return counts[:-1], pieces

    def counters(self) -> NDArray[np.int64]:
        return sum((scratch.counters[:2] for scratch, _ in list(self._scratches)), np.zeros(2, np.int64))

    def _scratch(self) -> tuple[Any, Any]:
        try:
            return self._scratches.pop()
        except IndexError:
            return self._new_scratch()

    def _new_scratch(self) -> tuple[Any, Any]:
        return self.index.scratch(), self.evaluator.scratch()


def encoder_for(
    segments: Iterable[BaseSegment],
    attributes: Attributes,
    strings: Strings,
    multi: Iterable[str],
    asked: Callable[[], tuple[Iterable[str], Iterable[str]]],
) -> Encoder:
    """Returns the encoder of events for some segments. `multi` are the attributes that may have several values, and
    `asked` returns those that rules look at and those that they match with a pattern.
    """
    special = dict.fromkeys(multi, SEVERAL)
    for segment in segments:
        for flag, numbers in ((TEXT, segment.text_attributes), (PATTERN, segment.pattern_attributes)):
            for name in map(attributes.names.__getitem__, numbers):
                special[name] = special.get(name, 0) | flag
    return Encoder(attributes, strings, special, asked)


def ends_of(counts: NDArray[Any]) -> I64:
    """Returns where each of several groups ends, given their sizes, with a 0 in front."""
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    return ends
