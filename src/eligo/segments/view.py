"""What one match reads: some segments, which of their rows are alive, and how to encode events for them.

A view never changes. An update makes a new one and puts it in place with one assignment, so a reader sees all of an
update or nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arguments import tag_names
from eligo.arrow import arrow_of, room
from eligo.compile.compiled import F64, I32, I64, U8
from eligo.compile.dict_events import encode_event
from eligo.compile.encode import Encode, Encoder
from eligo.compile.events import EventBuffer
from eligo.forking import cached_property
from eligo.jit import kernel
from eligo.rule import Rule, RuleId
from eligo.segments.encoding import as_given, encoded_slices
from eligo.segments.live import LivePart, LiveTable
from eligo.segments.rule_table import RuleTable, is_id
from eligo.segments.rules import Screen, View, screened, screened_together
from eligo.segments.segment import Segment

_TAG_SETS = 256  # masks remembered, one for each set of tags asked for
ALL: U8 = np.zeros(0, np.uint8)


def wanted_tags(tags: Iterable[str]) -> frozenset[str]:
    """The tags that a caller asks for; what is no list of strings is refused."""
    return frozenset(tag_names("tags", tags))


def asked_attributes(
    segments: Sequence[Segment | LivePart], alive: Sequence[U8], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The attributes that living rules look at, and those that they ask for a pattern."""
    named: set[str] = set()
    patterned: set[str] = set()
    for segment, mask in zip(segments, alive, strict=True):
        if isinstance(segment, LivePart):
            seen, matched = segment.asked_attributes(mask)
            named.update(names[number] for number in seen)
            patterned.update(names[number] for number in matched)
            continue
        for all_of, some in zip((named, patterned), segment.asked(names, mask), strict=True):
            all_of.update(some)
    return [name for name in names if name in named], [name for name in names if name in patterned]


class SegmentsView(View):
    """Segments with their masks; `alive` masks without bytes mean that all rows are."""

    def __init__(
        self, segments: Sequence[Segment | LivePart], alive: Sequence[U8], encoder: Encoder, names: Sequence[str] = ()
    ) -> None:
        self.segments = tuple(segments)
        self.alive = tuple(alive)
        self.encoder = encoder
        self.names = names  # of attributes, by number
        self._masks: dict[frozenset[str], tuple[U8, ...]] = {}
        self._screen: Screen | None = None
        self._alone = self.segments[0] if len(self.segments) == 1 else None

    def asking(self, screen: Screen) -> SegmentsView:
        same = object.__new__(SegmentsView)
        same.__dict__.update(self.__dict__, _screen=screen)
        return same

    @cached_property
    def _in_order(self) -> bool:
        """Whether all rules of a segment came before all of the next one, as they do if none was replaced."""
        ends = []
        for segment in self.segments:
            sequence = segment.table.sequence
            if isinstance(segment, LivePart):
                sequence = np.sort(sequence)
            if len(sequence):
                ends.append((sequence[0], sequence[-1]))
        return all(one[1] < other[0] for one, other in pairwise(ends))

    @property
    def _named(self) -> bool:
        """Whether a batch may be given the ids of rules at once: all are integers, in one segment."""
        alone = self._alone
        return isinstance(alone, Segment) and len(alone.table.ids) > 0 and self._screen is None

    def allowed(self, tags: Iterable[str] | None) -> tuple[U8, ...]:
        """For every segment the rows to report: the living, with one of the tags."""
        if tags is None:
            return self.alive
        wanted = wanted_tags(tags)
        masks = self._masks.get(wanted)
        if masks is None:
            masks = tuple(
                segment.table.rows_with_tags(wanted) & (alive if len(alive) else np.uint8(1))
                for segment, alive in zip(self.segments, self.alive, strict=True)
            )
            if len(self._masks) < _TAG_SETS:
                self._masks[wanted] = masks
        return masks

    def has(self, rule: object) -> bool:
        return self._find(rule) is not None

    def rule(self, rule: object) -> Rule | None:
        found = self._find(rule)
        if found is None:
            return None
        table, row = found
        return table.rule(row)

    def everyone(self) -> Iterator[RuleId]:
        rows = [
            np.nonzero(a)[0] if len(a) else np.arange(len(s)) for s, a in zip(self.segments, self.alive, strict=True)
        ]
        if not rows:
            return
        part = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
        row = np.concatenate(rows)
        sequence = np.concatenate([s.table.sequence[r] for s, r in zip(self.segments, rows, strict=True)])
        for i in np.argsort(sequence, kind="stable"):
            yield self.segments[part[i]].table.id(int(row[i]))

    def hidden_tags(self, mark: str) -> set[str]:
        names = (name for segment in self.segments for name in segment.table.tag_names())
        return {name[1:] for name in names if name.startswith(mark)}

    def check(self, event: Any, buffer: EventBuffer) -> None:
        buffer.clear()
        encode_event(self.encoder, event, buffer)

    def all_joins(self, most: int) -> set[str] | None:
        found: set[str] = set()
        for segment, alive in zip(self.segments, self.alive, strict=True):
            rows = np.flatnonzero(alive) if len(alive) else np.arange(len(segment))
            if not len(rows):
                continue
            joins = segment.table.joins
            if joins is None or (joins[0][rows] < 0).any():
                return None
            numbers = np.unique(joins[0][rows])
            if len(numbers) > most:
                return None
            found.update(joins[1][number] for number in numbers.tolist())
        return found if len(found) <= most else None

    def attributes(self) -> list[str]:
        return asked_attributes(self.segments, self.alive, self.names)[0]

    def _find(self, rule: object) -> tuple[RuleTable | LiveTable, int] | None:
        if not is_id(rule):
            return None
        for segment, alive in zip(reversed(self.segments), reversed(self.alive), strict=True):
            row = segment.table.row(rule)
            if row >= 0 and (not len(alive) or alive[row]):
                return segment.table, row
        return None

    def rows(
        self, event: Any, buffer: EventBuffer, tags: Iterable[str] | None, encode: Encode = encode_event
    ) -> list[tuple[Segment | LivePart, Any]]:
        """The segments with a match, and the rows."""
        buffer.clear()
        encode(self.encoder, event, buffer)
        found, masks, screen = [], self.alive if tags is None else self.allowed(tags), self._screen
        if screen is not None:
            screen.begin(0, [event])
        for segment, mask in zip(self.segments, masks, strict=True):
            rows = segment.match(buffer, 0, mask)
            if screen is not None and len(rows):
                rows = _screened(screen, segment.table, rows, 0)
            if len(rows):
                found.append((segment, rows))
        return found

    def ids(
        self,
        event: Any,
        buffer: EventBuffer,
        tags: Iterable[str] | None,
        limit: int | None,
        encode: Encode = encode_event,
    ) -> list[RuleId]:
        ids: list[RuleId] = []
        if tags is None and self._screen is None:  # the usual, in few steps
            alone = self._alone
            if alone is not None:
                buffer.clear()
                rows = alone.match_event(self.encoder, event, buffer, self.alive[0], encode)
                return alone.table.id_list(rows if limit is None else rows[:limit])
            if self._in_order:
                buffer.clear()
                encode(self.encoder, event, buffer)
                for segment, mask in zip(self.segments, self.alive, strict=True):
                    rows = segment.match(buffer, 0, mask)
                    if len(rows):
                        ids += segment.table.id_list(rows)
                return ids if limit is None else ids[:limit]
        found = self.rows(event, buffer, tags, encode)
        if len(found) == 1:
            segment, rows = found[0]
            return segment.table.id_list(rows if limit is None else rows[:limit])
        for segment, rows in found:
            ids += segment.table.id_list(rows)
        sequences = [segment.table.sequence[rows] for segment, rows in found]
        if all(one[-1] < other[0] for one, other in pairwise(sequences)):
            return ids[:limit]
        order = np.argsort(np.concatenate(sequences), kind="stable")[:limit]
        return [ids[i] for i in order.tolist()]

    def top(self, event: Any, buffer: EventBuffer, tags: Iterable[str] | None, k: int) -> list[tuple[RuleId, float]]:
        found = self.rows(event, buffer, tags)
        if not found:
            return []
        weights = np.concatenate([segment.table.weight[rows] for segment, rows in found])
        sequence = np.concatenate([segment.table.sequence[rows] for segment, rows in found])
        places = [(segment, row) for segment, rows in found for row in rows.tolist()]
        best = np.lexsort((sequence, -weights))[: max(k, 0)]
        return [(places[i][0].table.id(places[i][1]), float(weights[i])) for i in best]

    def weighted(self, event: Any, buffer: EventBuffer) -> tuple[I64, F64]:
        found = self.rows(event, buffer, None)
        if not found:
            return np.zeros(0, np.int64), np.zeros(0)
        ids = np.concatenate([segment.table.ids[rows] for segment, rows in found])
        return ids, np.concatenate([segment.table.weight[rows] for segment, rows in found])

    def batch(
        self,
        events: Any,
        tags: Iterable[str] | None,
        limit: int | None,
        inspect: Callable[[EventBuffer], None] | None = None,
        moved_on: Callable[[], None] | None = None,
    ) -> Iterator[tuple[I64, pa.Array]]:
        allowed = self.allowed(tags)
        for first, part, buffer in encoded_slices(events, self.encoder):
            if inspect is not None:
                inspect(buffer)
            found = self._matches(first, part, buffer, allowed, named=self._named)
            if not found:
                continue
            number, rules = found[0].numbers, found[0].ids()
            if len(found) > 1:
                number = np.concatenate([part.numbers for part in found])
                order = np.lexsort((np.concatenate([part.sequence() for part in found]), number))
                number = number[order]
                rules = pa.concat_arrays([rules, *(part.ids() for part in found[1:])]).take(arrow_of(order))
            if limit is not None:
                kept = _first(number, limit)
                number, rules = number[kept], rules.filter(arrow_of(kept))
            yield number, rules

    def best(self, events: Any, tags: Iterable[str] | None, k: int) -> Iterator[tuple[I64, pa.Array, F64]]:
        for number, rules, weight, _ in self.ranked(events, tags, k):
            yield number, rules, weight

    def ranked(
        self, events: Any, tags: Iterable[str] | None, k: int | None
    ) -> Iterator[tuple[I64, pa.Array, F64, I64]]:
        """The same with sequence numbers, which order matches of several views; without k all, in that order."""
        allowed = self.allowed(tags)
        for first, part, buffer in encoded_slices(events, self.encoder):
            found = self._matches(first, part, buffer, allowed)
            if not found:
                continue
            number = np.concatenate([part.numbers for part in found])
            weight = np.concatenate([part.weight() for part in found])
            sequence = np.concatenate([part.sequence() for part in found])
            if k is None:
                order = np.lexsort((sequence, number))
            else:
                order = np.lexsort((sequence, -weight, number))
                order = order[_first(number[order], k)]
            rules = pa.concat_arrays([part.ids() for part in found]).take(arrow_of(order))
            yield number[order], rules, weight[order], sequence[order]

    def _matches(
        self, first: int, events: Any, buffer: EventBuffer, allowed: tuple[U8, ...], *, named: bool = False
    ) -> list[_Found]:
        """What some events, in a buffer already, match in each segment with a match; the number of the first of them is
        `first`. `named`: nothing but the ids of rules will be asked for.
        """
        found = []
        if self._screen is not None:
            self._screen.begin(first, as_given(events))
        for segment, mask in zip(self.segments, allowed, strict=True):
            if named and isinstance(segment, Segment):
                ends, rows = segment.match_batch(buffer, mask, named=True)
            else:
                ends, rows = segment.match_batch(buffer, mask)
            if len(rows):
                numbers = room(len(rows))
                write_numbers(ends, first, numbers)
                if self._screen is not None and (joins := segment.table.joins) is not None:
                    kept = screened(self._screen, joins[0][rows], joins[1].__getitem__, numbers)
                    numbers, rows = numbers[kept], rows[kept]
                found.append(_Found(segment.table, numbers, rows, named))
        return found


@dataclass(frozen=True)
class _Found:
    """Matches of one segment: the number of the event, ascending, and the row of the rule, or its id if `named`."""

    table: RuleTable | LiveTable
    numbers: I64
    rows: NDArray[Any]
    named: bool

    def ids(self) -> pa.Array:
        if self.named:
            return arrow_of(self.rows)
        if isinstance(self.table, RuleTable) and len(self.table.ids):
            return arrow_of(self.table.integer_ids(self.rows))
        return self.table.id_array().take(arrow_of(self.rows))

    def sequence(self) -> I64:
        sequence: I64 = self.table.sequence[self.rows]
        return sequence

    def weight(self) -> F64:
        weight: F64 = self.table.weight[self.rows]
        return weight


@kernel
def write_numbers(ends, first, numbers):
    """Writes the number of its event for each match; those of event first + i end at ends[i + 1]."""
    for event in range(len(ends) - 1):
        for k in range(ends[event], ends[event + 1]):
            numbers[k] = first + event


def _screened(screen: Screen, table: RuleTable | LiveTable, rows: I32, event: int) -> I32:
    """Of the rows of one event, those that are left when documents are asked."""
    joins = table.joins
    return rows if joins is None else rows[screened_together(screen, joins[0][rows], joins[1], event)]


def _first(number: I64, most: int) -> NDArray[np.bool_]:
    """Of each event's rows, which stand together, whether they are among the first so many."""
    starts = np.searchsorted(number, number)
    kept: NDArray[np.bool_] = np.arange(len(number)) - starts < most
    return kept
