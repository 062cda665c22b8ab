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
from eligo.arrow import arrow_of
from eligo.compile.compiled import F64, I32, I64, U8
from eligo.compile.dict_events import encode_event
from eligo.compile.encode import Encode, Encoder
from eligo.compile.events import EventBuffer
from eligo.forking import cached_property
from eligo.rule import Rule, RuleId
from eligo.segments.base import BaseSegment
from eligo.segments.encoding import as_given, encoded_slices
from eligo.segments.live import LivePart
from eligo.segments.matches import Matches, in_order, listed_best, listed_in_order, of_one_event, ranked
from eligo.segments.rule_table import JOINED, is_id
from eligo.segments.screen import Screen, name_of, screened
from eligo.segments.segment import Segment
from eligo.threads import ALONE, Team

_TAG_SETS = 256  # sets of tags whose masks are kept
_SOME = 4096  # ids that are made at a time
ALL: U8 = np.zeros(0, np.uint8)


def wanted_tags(tags: Iterable[str]) -> frozenset[str]:
    """Returns the tags that a caller asks for as a set. Raises OptionError if they are no list of strings."""
    return frozenset(tag_names("tags", tags))


def asked_attributes(
    segments: Sequence[BaseSegment], alive: Sequence[U8], names: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Returns which of `names` are attributes that living rules look at, and which they match with a pattern."""
    named: set[str] = set()
    patterned: set[str] = set()
    for segment, mask in zip(segments, alive, strict=True):
        for all_of, some in zip((named, patterned), segment.asked(names, mask), strict=True):
            all_of.update(some)
    return [name for name in names if name in named], [name for name in names if name in patterned]


class View:
    """Segments with their masks, as readers use them. The answer to one event is that of one moment.

    An empty mask in `alive` means that all rows are alive.
    """

    changes: ClassVar[bool] = False  # True if the rules change while it is used (living/view.py)

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
        """Returns the same view for rules with quantifiers, with `screen` to answer what they ask of documents."""
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__, _screen=screen)
        return same

    @cached_property
    def _in_order(self) -> bool:
        """Whether all rules of a segment were added before all of the next one, as is the case if none was replaced."""
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
        """Whether batches may be answered with ids directly: all ids are integers, in one sealed segment."""
        alone = self._alone
        return isinstance(alone, Segment) and len(alone.table.ids) > 0 and self._screen is None

    @property
    def shares(self) -> bool:
        """Whether threads should search for the same events together, rather than for some events each: almost all
        rules are matched in blocks that can be shared.
        """
        shared = sum(len(each) for each in self.segments if isinstance(each, Segment) and each.blocks.shares)
        return self._screen is None and shared > 0 and shared >= 0.9 * sum(map(len, self.segments))

    def allowed(self, tags: Iterable[str] | None) -> tuple[U8, ...]:
        """Returns for every segment the mask of living rules that have one of the tags, or of all if `tags` is None."""
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
        """Tests whether there is a rule with that id."""
        return self._find(rule) is not None

    def rule(self, rule: object) -> Rule | None:
        """Returns the rule with that id, or None if there is none. Any object may be given."""
        found = self._find(rule)
        return None if found is None else found[0].table.rule(found[1])

    def everyone(self) -> Iterator[RuleId]:
        """Returns an iterator over the ids of all rules, in the order in which they were added."""
        parts = [(each.table, each.present(mask)) for each, mask in zip(self.segments, self.alive, strict=True)]
        parts = [(table, rows) for table, rows in parts if len(rows)]
        if not parts:
            return iter(())
        order = np.argsort(np.concatenate([table.sequence[rows] for table, rows in parts]), kind="stable")
        ids = pa.concat_arrays([table.id_column(rows) for table, rows in parts]).take(arrow_of(order))
        return chain.from_iterable(ids.slice(first, _SOME).to_pylist() for first in range(0, len(ids), _SOME))

    def hidden_tags(self, mark: str) -> set[str]:
        """Returns the tags that begin with a mark (rule_table.py), without it; some may be of removed rules."""
        names = (name for segment in self.segments for name in segment.table.tag_names())
        return {name[1:] for name in names if name.startswith(mark)}

    def joins(self) -> set[str]:
        """Returns what rules ask of documents, as texts of their residuals."""
        return self.hidden_tags(JOINED)

    def check(self, event: Any, buffer: EventBuffer) -> None:
        """Raises EventError if an event cannot be matched."""
        buffer.clear()
        encode_event(self.encoder, event, buffer)

    def all_joins(self, most: int) -> set[str] | None:
        """Returns what rules ask of documents, if all rules ask something and at most `most` things; else None."""
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
        """Returns the attributes that living rules look at."""
        return asked_attributes(self.segments, self.alive, self.names)[0]

    def _find(self, rule: object) -> tuple[BaseSegment, int] | None:
        """Returns the segment and row of the living rule with that id, or None."""
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
        """Returns the segments that have a match for an event, each with the rows that match."""
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
        """Returns the ids of the rules that an event matches, in the order in which they were added, at most `limit`.
        `encode` reads the event, which must be a mapping where rules ask about documents.
        """
        ids: list[RuleId] = []
        if tags is None and self._screen is None:  # the usual case, in few steps
            alone = self._alone
            if alone is not None:
                buffer.clear()
                rows = alone.match_event(self.encoder, event, buffer, self.alive[0], encode)
                return alone.table.id_list(rows if limit is None else rows[:limit])
            if self._in_order:
                buffer.clear()
                encode(self.encoder, event, buffer)
                for segment, mask in zip(self.segments, self.alive, strict=True):
                    if limit is not None and len(ids) >= limit:
                        break
                    rows = segment.match(buffer, 0, mask)
                    if len(rows):
                        ids += segment.table.id_list(rows if limit is None else rows[: limit - len(ids)])
                return ids
        found = self.rows(event, buffer, tags, encode)
        if len(found) == 1:
            segment, rows = found[0]
            return segment.table.id_list(rows if limit is None else rows[:limit])
        return listed_in_order([of_one_event(*part) for part in found], limit) if found else []

    def top(self, event: Any, buffer: EventBuffer, tags: Iterable[str] | None, k: int) -> list[tuple[RuleId, float]]:
        """Returns the ids and weights of the k matches with the highest weights. Ties are in the order of adding."""
        found = self.rows(event, buffer, tags)
        if not found:
            return []
        return listed_best([of_one_event(*part) for part in found], k)

    def weighted(self, event: Any, buffer: EventBuffer) -> tuple[I64, F64]:
        """Returns the ids, which must be integers, and the weights of all matches."""
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
        """Yields slices of the answer: event numbers, and rule ids beside them. Threads of `team` share each slice.

        `inspect` is called with the events once they are encoded. `moved_on` is called before events are matched at
        another moment than that at which the view was made; nothing changes until they are matched.
        """
        for found in self._slices(events, tags, limit, inspect, moved_on, named=self._named, team=team):
            yield in_order(found, limit, team)

    def best(
        self, events: Any, tags: Iterable[str] | None, k: int, team: Team = ALONE
    ) -> Iterator[tuple[I64, pa.Array, F64]]:
        """Yields slices of the answer: event numbers, and the ids and weights of the k best matches, as `top` does."""
        for number, rules, weight, _ in self.ranked(events, tags, k, team):
            yield number, rules, weight

    def ranked(
        self, events: Any, tags: Iterable[str] | None, k: int | None, team: Team = ALONE
    ) -> Iterator[tuple[I64, pa.Array, F64, I64]]:
        """Yields the same with sequence numbers, by which the matches of several views can be merged. If k is None, all
        matches are yielded, in the order of these.
        """
        for found in self._slices(events, tags, team=team):
            yield ranked(found, k, team)

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
        """Yields for some events at a time their matches in each segment that has any, at most `limit` of each event
        and segment. `named` says that nothing but ids will be needed.
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
        """Returns the matches of events from number `first` on, without those that documents deny."""
        found = Matches(segment, first, ends, rows, team, named)
        if self._screen is not None and (joined := segment.joined(rows)) is not None:
            found.kept(screened(self._screen, joined, found.numbers))
        if limit is not None:
            found.limit(limit)
        return found
