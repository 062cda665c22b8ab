"""What one match reads: some segments, which of their rows are alive, and how to encode events for them.

A view never changes. An update makes a new one and puts it in place with one assignment, so a reader sees all of an
update or nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, ClassVar, Self

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
from eligo.segments.base import BaseSegment
from eligo.segments.encoding import as_given, encoded_slices
from eligo.segments.live import LivePart
from eligo.segments.rule_table import JOINED, is_id
from eligo.segments.screen import Screen, name_of, screened
from eligo.segments.segment import Segment
from eligo.threads import ALONE, Team

_TAG_SETS = 256  # masks remembered, one for each set of tags asked for
_SOME = 4096  # ids that are made at a time
_MANY = 1 << 18  # matches of which the numbers are worth a second thread to write
ALL: U8 = np.zeros(0, np.uint8)


def wanted_tags(tags: Iterable[str]) -> frozenset[str]:
    """The tags that a caller asks for; what is no list of strings is refused."""
    return frozenset(tag_names("tags", tags))


def asked_attributes(
    segments: Sequence[BaseSegment], alive: Sequence[U8], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The attributes that living rules look at, and those that they ask for a pattern."""
    named: set[str] = set()
    patterned: set[str] = set()
    for segment, mask in zip(segments, alive, strict=True):
        for all_of, some in zip((named, patterned), segment.asked(names, mask), strict=True):
            all_of.update(some)
    return [name for name in names if name in named], [name for name in names if name in patterned]


class View:
    """What readers ask: segments with their masks. Each answer to one event is that of one moment.

    `alive` masks without bytes mean that all rows are.
    """

    changes: ClassVar[bool] = False  # True: what it says changes (living/view.py)

    def __init__(
        self, segments: Sequence[BaseSegment], alive: Sequence[U8], encoder: Encoder, names: Sequence[str] = ()
    ) -> None:
        self.segments = tuple(segments)
        self.alive = tuple(alive)
        self.encoder = encoder
        self.names = names  # of attributes, by number
        self._masks: dict[frozenset[str], tuple[U8, ...]] = {}
        self._screen: Screen | None = None
        self._alone = self.segments[0] if len(self.segments) == 1 else None

    def asking(self, screen: Screen) -> Self:
        """The same view for rules with quantifiers: what they leave to be asked of documents is asked of `screen`."""
        same = object.__new__(type(self))
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

    @property
    def shares(self) -> bool:
        """Whether threads that search for the same events together do less than with some events each: almost all rules
        are matched in blocks that can be shared.
        """
        shared = sum(len(each) for each in self.segments if isinstance(each, Segment) and each.blocks.shares)
        return self._screen is None and shared > 0 and shared >= 0.9 * sum(map(len, self.segments))

    def allowed(self, tags: Iterable[str] | None) -> tuple[U8, ...]:
        """For every segment what it takes to report the living, with one of the tags."""
        if tags is None:
            return self.alive
        wanted = wanted_tags(tags)
        masks = self._masks.get(wanted)
        if masks is None:
            masks = tuple(
                segment.allowed(wanted, alive) for segment, alive in zip(self.segments, self.alive, strict=True)
            )
            if len(self._masks) < _TAG_SETS:
                self._masks[wanted] = masks
        return masks

    def has(self, rule: object) -> bool:
        """Whether there is a rule with that id."""
        return self._find(rule) is not None

    def rule(self, rule: object) -> Rule | None:
        """The rule with that id; None if there is none, or if no rule's id could be that."""
        found = self._find(rule)
        return None if found is None else found[0].table.rule(found[1])

    def everyone(self) -> Iterator[RuleId]:
        """The ids of all rules, in the order in which they were added."""
        parts = [(each.table, each.present(mask)) for each, mask in zip(self.segments, self.alive, strict=True)]
        parts = [(table, rows) for table, rows in parts if len(rows)]
        if not parts:
            return iter(())
        order = np.argsort(np.concatenate([table.sequence[rows] for table, rows in parts]), kind="stable")
        ids = pa.concat_arrays([table.id_column(rows) for table, rows in parts]).take(arrow_of(order))
        return chain.from_iterable(ids.slice(first, _SOME).to_pylist() for first in range(0, len(ids), _SOME))

    def hidden_tags(self, mark: str) -> set[str]:
        """The tags that begin with a mark (rule_table.py), without it, and perhaps those of rules that are gone."""
        names = (name for segment in self.segments for name in segment.table.tag_names())
        return {name[1:] for name in names if name.startswith(mark)}

    def joins(self) -> set[str]:
        """What rules have to ask of documents."""
        return self.hidden_tags(JOINED)

    def check(self, event: Any, buffer: EventBuffer) -> None:
        """Refuse an event that cannot be matched."""
        buffer.clear()
        encode_event(self.encoder, event, buffer)

    def all_joins(self, most: int) -> set[str] | None:
        """What rules have to ask of documents, if all have, and it is at most so much; else None."""
        found: set[str] = set()
        for segment, alive in zip(self.segments, self.alive, strict=True):
            rows = segment.present(alive)
            if not len(rows):
                continue
            joined = segment.joined(rows)
            if joined is None or (joined[0] < 0).any():
                return None
            numbers, name = np.unique(joined[0]), name_of(joined[1])
            if len(numbers) > most:
                return None
            found.update(map(name, numbers.tolist()))
        return found if len(found) <= most else None

    def attributes(self) -> list[str]:
        """The attributes that rules look at."""
        return asked_attributes(self.segments, self.alive, self.names)[0]

    def _find(self, rule: object) -> tuple[BaseSegment, int] | None:
        if not is_id(rule):
            return None
        for segment, alive in zip(reversed(self.segments), reversed(self.alive), strict=True):
            row = segment.table.row(rule)
            if row >= 0 and (not len(alive) or alive[row]):
                return segment, row
        return None

    def rows(
        self, event: Any, buffer: EventBuffer, tags: Iterable[str] | None, encode: Encode = encode_event
    ) -> list[tuple[BaseSegment, I32]]:
        """The segments with a match, and the rows."""
        buffer.clear()
        encode(self.encoder, event, buffer)
        found, masks, screen = [], self.alive if tags is None else self.allowed(tags), self._screen
        if screen is not None:
            screen.begin(0, [event])
        for segment, mask in zip(self.segments, masks, strict=True):
            rows = segment.match(buffer, 0, mask)
            if screen is not None and len(rows) and (joined := segment.joined(rows)) is not None:
                rows = rows[screened(screen, joined, 0)]
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
        """The ids of the rules that an event matches, in the order in which they were added. `encode` is what reads the
        event; where rules ask about documents, an event is a mapping.
        """
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
        """Ids and weights of the k matches with the highest weights; ties in the order of adding."""
        found = self.rows(event, buffer, tags)
        if not found:
            return []
        weights = np.concatenate([segment.table.weight[rows] for segment, rows in found])
        if len(found) == 1:
            segment, rows = found[0]
            best = np.argsort(-weights, kind="stable")[: max(k, 0)]
            ids = segment.table.id_list(rows[best])
        else:
            sequence = np.concatenate([segment.table.sequence[rows] for segment, rows in found])
            best = np.lexsort((sequence, -weights))[: max(k, 0)]
            every = [rule for segment, rows in found for rule in segment.table.id_list(rows)]
            ids = [every[i] for i in best.tolist()]
        return list(zip(ids, weights[best].tolist(), strict=True))

    def weighted(self, event: Any, buffer: EventBuffer) -> tuple[I64, F64]:
        """Ids, which are integers, and weights of all matches."""
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
        team: Team = ALONE,
    ) -> Iterator[tuple[I64, pa.Array]]:
        """Slices of the answer: event numbers, and rule ids beside them. `team`: threads that share each slice.

        `inspect` sees the events once encoded. `moved_on` is called before events are matched whose moment is not that
        of the view's making; nothing changes until they are matched.
        """
        for found in self._slices(events, tags, limit, inspect, moved_on, named=self._named, team=team):
            number, rules = found[0].numbers, found[0].ids
            if len(found) > 1:
                number = np.concatenate([part.numbers for part in found])
                order = np.lexsort((np.concatenate([part.sequence for part in found]), number))
                order = order if limit is None else order[_first(number[order], limit)]
                number = number[order]
                rules = pa.concat_arrays([part.ids for part in found]).take(arrow_of(order))
            yield number, rules

    def best(
        self, events: Any, tags: Iterable[str] | None, k: int, team: Team = ALONE
    ) -> Iterator[tuple[I64, pa.Array, F64]]:
        """Slices of the answer: event numbers, and the ids and weights of their best k matches as `top` gives them."""
        for number, rules, weight, _ in self.ranked(events, tags, k, team):
            yield number, rules, weight

    def ranked(
        self, events: Any, tags: Iterable[str] | None, k: int | None, team: Team = ALONE
    ) -> Iterator[tuple[I64, pa.Array, F64, I64]]:
        """The same with sequence numbers, which order matches of several views; without k all, in that order."""
        for found in self._slices(events, tags, team=team):
            number = np.concatenate([part.numbers for part in found])
            weight = np.concatenate([part.weight for part in found])
            sequence = np.concatenate([part.sequence for part in found])
            if k is None:
                order = np.lexsort((sequence, number))
            else:
                order = np.lexsort((sequence, -weight, number))
                order = order[_first(number[order], k)]
            rules = pa.concat_arrays([part.ids for part in found]).take(arrow_of(order))
            yield number[order], rules, weight[order], sequence[order]

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
        """What some events at a time match, in each segment with a match; of each segment the first so many. `named`:
        nothing but the ids of rules will be asked for.
        """
        allowed, screen = self.allowed(tags), self._screen
        for first, part, buffer in encoded_slices(events, self.encoder, team):
            if inspect is not None:
                inspect(buffer)
            if screen is not None:
                screen.begin(first, as_given(part))
            found = []
            for segment, mask in zip(self.segments, allowed, strict=True):
                if isinstance(segment, Segment):
                    ends, rows = segment.match_batch(buffer, mask, named=named, team=team)
                else:
                    ends, rows = segment.match_batch(buffer, mask)
                if len(rows):
                    found.append(self._found(segment, first, ends, rows, limit, named, team))
            if found:
                yield found

    def _found(
        self,
        segment: BaseSegment,
        first: int,
        ends: I64,
        rows: NDArray[Any],
        limit: int | None,
        named: bool = False,
        team: Team = ALONE,
    ) -> Matches:
        """Matches of events from number `first` on, without those that documents deny."""
        numbers = room(len(rows))
        if len(rows) < _MANY:
            write_numbers(ends, first, 0, len(ends) - 1, numbers)
        else:
            inner = np.searchsorted(ends, len(rows) * np.arange(1, team.threads) // team.threads)
            parts = [0, *inner.tolist(), len(ends) - 1]
            team.each(lambda i: write_numbers(ends, first, parts[i], parts[i + 1], numbers))
        if self._screen is not None and (joined := segment.joined(rows)) is not None:
            kept = screened(self._screen, joined, numbers)
            numbers, rows = numbers[kept], rows[kept]
        if limit is not None:
            kept = _first(numbers, limit)
            numbers, rows = numbers[kept], rows[kept]
        return Matches(segment, numbers, rows, named)


class Matches:
    """Matches of one segment: the number of the event, ascending, and the row of the rule, or its id if `named`; and
    what its table tells.
    """

    def __init__(self, segment: BaseSegment, numbers: I64, rows: NDArray[Any], named: bool) -> None:
        self._table, self.numbers, self._rows, self._named = segment.table, numbers, rows, named

    def read(self) -> None:
        """Have all of it now, before rows change."""
        _ = self.ids, self.sequence, self.weight

    @cached_property
    def ids(self) -> pa.Array:
        return arrow_of(self._rows) if self._named else self._table.id_column(self._rows)

    @cached_property
    def sequence(self) -> I64:
        sequence: I64 = self._table.sequence[self._rows]
        return sequence

    @cached_property
    def weight(self) -> F64:
        weight: F64 = self._table.weight[self._rows]
        return weight


@kernel
def write_numbers(ends, first, begin, stop, numbers):
    """Writes the number of its event for each match of some events; those of event first + i end at ends[i + 1]."""
    for event in range(begin, stop):
        for k in range(ends[event], ends[event + 1]):
            numbers[k] = first + event


def _first(number: I64, most: int) -> NDArray[np.bool_]:
    """Of each event's rows, which stand together, whether they are among the first so many."""
    starts = np.searchsorted(number, number)
    kept: NDArray[np.bool_] = np.arange(len(number)) - starts < most
    return kept
