"""What readers ask of a living set: everything of one answer is found inside the gate, so it is of one moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from threading import get_ident
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arrow import arrow_of
from eligo.compile.compiled import F64, I32, I64, U8
from eligo.compile.dict_events import encode_event
from eligo.compile.encode import Encode, Encoder
from eligo.compile.events import EventBuffer
from eligo.interrupts import uninterrupted
from eligo.rule import Rule, RuleId
from eligo.segments.encoding import as_given, between, encoded, slices
from eligo.segments.living.complete import CompletionScratch, complete_many, complete_one
from eligo.segments.living.pools import GOING, LIVING, ROWS, USED_CONJUNCTIONS
from eligo.segments.living.records import gather, tag_of
from eligo.segments.living.structure import Structure
from eligo.segments.rule_table import is_id, strings_of
from eligo.segments.rules import Rules, Screen, View, screened
from eligo.segments.view import wanted_tags

_SEARCHED = 256  # events of one thread after which the index may adjust itself
_EFFORT = 2048  # and by how much: a fraction of a millisecond
_PATIENCE = 0.001  # seconds that it may wait for readers to leave the gate
_STAY = 0.004  # seconds that a batch stays inside
_HURRIED = 64  # events encoded inside, where rules change faster than slices are encoded outside

_NONE: I32 = np.zeros(0, np.int32)
_ANY: U8 = np.zeros(0, np.uint8)
_R = TypeVar("_R")
Moment = tuple[Encoder, int, int]
Ids = I64 | tuple[I64, U8]  # integers, or offsets and UTF-8 bytes


class LivingView(View):
    """Of one matcher there is one; unlike that of segments, what it says changes."""

    def __init__(self, structure: Structure, rules: Rules, screen: Screen | None = None) -> None:
        self._structure = structure
        self._rules = rules
        self._screen = screen

    def asking(self, screen: Screen) -> LivingView:
        return LivingView(self._structure, self._rules, screen)

    # -- one event

    def ids(
        self,
        event: Any,
        buffer: EventBuffer,
        tags: Iterable[str] | None,
        limit: int | None,
        encode: Encode = encode_event,
    ) -> list[RuleId]:
        gate, me = self._structure.gate, get_ident()
        outside = gate.is_outside(me)
        try:
            if outside:
                gate.enter(me)
            rows = self._rows(event, buffer, tags, limit, encode)
            if not len(rows):
                return []
            ids = self._ids(rows)
        finally:
            if outside:
                gate.inside.discard(me)
                self._has_left()
        return _listed(ids)

    def top(self, event: Any, buffer: EventBuffer, tags: Iterable[str] | None, k: int) -> list[tuple[RuleId, float]]:
        def read() -> tuple[Ids, F64]:
            rows = self._rows(event, buffer, tags, None)
            weights = self._structure.pools.weight[rows]
            best = np.argsort(-weights, kind="stable")[: max(k, 0)]
            return self._ids(rows[best]), weights[best]

        ids, weights = self._inside(read)
        return list(zip(_listed(ids), weights.tolist(), strict=True))

    def weighted(self, event: Any, buffer: EventBuffer) -> tuple[I64, F64]:
        def read() -> tuple[I64, F64]:
            rows = self._rows(event, buffer, None, None)
            pools = self._structure.pools
            return pools.ids[rows], pools.weight[rows]

        return self._inside(read)

    def _rows(
        self,
        event: Any,
        buffer: EventBuffer,
        tags: Iterable[str] | None,
        limit: int | None,
        encode: Encode = encode_event,
    ) -> I32:
        structure = self._structure
        buffer.clear()
        encode(structure.encoder, event, buffer)
        wanted = _ANY if tags is None else structure.tags.wanted(wanted_tags(tags))
        if not structure.pools.state[USED_CONJUNCTIONS]:
            return _NONE
        search, completion = scratch = self._scratch()
        count = structure.index.search(buffer, 0, search)
        completion.events += 1
        rows = _NONE
        if count:
            completion.satisfied += count
            completion.fit(structure.pools.state)
            screen = self._screen
            most = -1 if limit is None or screen is not None else limit
            matched = complete_one(structure.pools.handle, search.found, count, wanted, most, completion.handle)
            rows = completion.matched[:matched].copy()
            if screen is not None:
                screen.begin(0, [event])
                rows = rows[self._screened(rows, 0)][:limit]
        structure.scratches.append(scratch)
        return rows

    def _screened(self, rows: I32, events: I64 | int) -> NDArray[np.bool_]:
        """Which of the rows are left when documents are asked."""
        assert self._screen is not None
        pools, tags = self._structure.pools, self._structure.tags
        which = tag_of(pools.handle, rows, tags.joined)
        return screened(self._screen, which, lambda number: tags.name(number)[1:], events)

    # -- many events

    def batch(
        self,
        events: Any,
        tags: Iterable[str] | None,
        limit: int | None,
        inspect: Callable[[EventBuffer], None] | None = None,
        moved_on: Callable[[], None] | None = None,
    ) -> Iterator[tuple[I64, pa.Array]]:
        """Slices are encoded outside the gate; inside it is seen whether that still holds.

        Where rules change all the time it never does, and some events are encoded inside.
        """
        most = -1 if limit is None else limit
        for number, ids, _ in self._slices(events, tags, most, inspect, moved_on):
            yield number, _array(ids)

    def best(self, events: Any, tags: Iterable[str] | None, k: int) -> Iterator[tuple[I64, pa.Array, F64]]:
        for number, ids, weight in self._slices(events, tags, -1):
            order = np.lexsort((-weight, number))  # stable: ties stay in the order of adding
            starts = np.searchsorted(number, number[order])
            order = order[np.arange(len(order)) - starts < k]
            yield number[order], _array(ids).take(arrow_of(order)), weight[order]

    def _slices(
        self,
        events: Any,
        tags: Iterable[str] | None,
        most: int,
        inspect: Callable[[EventBuffer], None] | None = None,
        moved_on: Callable[[], None] | None = None,
    ) -> Iterator[tuple[I64, Ids, F64]]:
        """Event numbers, and the ids and weights of what they match."""
        names = None if tags is None else wanted_tags(tags)
        structure = self._structure
        for first, part in slices(events):
            done, hurried = 0, False
            while done < len(part):
                rest = between(part, done)
                moment = structure.moment()
                buffer = None if hurried else encoded(rest, moment[0], first + done)
                at = 0
                while buffer is None or at < buffer.events:
                    found = self._inside(
                        partial(self._part, buffer, rest, first + done, at, moment, names, most, inspect, moved_on)
                    )
                    if found is None:
                        hurried = True
                        break
                    buffer, moment, counts, ids, weight = found
                    if len(weight):
                        start = first + done + at
                        yield np.repeat(np.arange(start, start + len(counts)), counts), ids, weight
                    at += len(counts)
                done += at

    def _part(
        self,
        buffer: EventBuffer | None,
        events: Any,
        number: int,
        at: int,
        moment: Moment,
        names: frozenset[str] | None,
        most: int,
        inspect: Callable[[EventBuffer], None] | None,
        moved_on: Callable[[], None] | None,
    ) -> tuple[EventBuffer, Moment, I64, Ids, F64] | None:
        """Match some events of a buffer, from `at` on; None: they were encoded too early. Without a buffer, some of
        `events`, the first of which has this number, are encoded here.
        """
        structure = self._structure
        if buffer is None:
            buffer = encoded(between(events, 0, min(_HURRIED, len(events))), structure.encoder, number)
        elif structure.moment() != moment:
            return None
        if inspect is not None and at == 0:
            inspect(buffer)
        if moved_on is not None:
            moved_on()
        counts, rows = self._many(buffer, at, names, -1 if self._screen is not None else most)
        if self._screen is not None and len(rows):
            self._screen.begin(number, as_given(events))
            start = number + at
            numbers = np.repeat(np.arange(start, start + len(counts)), counts)
            rows, numbers = rows[kept := self._screened(rows, numbers)], numbers[kept]
            if most >= 0:
                first = np.arange(len(rows)) - np.searchsorted(numbers, numbers) < most
                rows, numbers = rows[first], numbers[first]
            counts = np.bincount(numbers - start, minlength=len(counts))
        return buffer, structure.moment(), counts, self._ids(rows), structure.pools.weight[rows]

    def _many(self, buffer: EventBuffer, first: int, names: frozenset[str] | None, most: int) -> tuple[I64, I32]:
        """How many rules each of some events matches, from `first` on as far as time allows; and their rows."""
        structure = self._structure
        wanted = _ANY if names is None else structure.tags.wanted(names)
        if not structure.pools.state[USED_CONJUNCTIONS]:
            return np.zeros(buffer.events - first, np.int64), _NONE
        search, completion = scratch = self._scratch()
        completion.fit(structure.pools.state)
        counts: list[I64] = []
        rows: list[I32] = []
        offsets, ends = np.zeros(buffer.events + 1, np.int64), np.zeros(buffer.events + 1, np.int64)
        deadline = time.perf_counter() + _STAY
        at, size = first, 8
        while at < buffer.events and (at == first or time.perf_counter() < deadline):
            stop = structure.index.search_batch(buffer, at, min(at + size, buffer.events), search, offsets)
            done = 0
            while done < stop - at:
                some = complete_many(
                    structure.pools.handle, search.found, offsets[done:], stop - at - done, wanted, most,
                    completion.handle, ends,
                )  # fmt: skip
                counts.append(np.diff(ends[: some + 1]))
                rows.append(completion.matched[: ends[some]].copy())
                done += some
            completion.satisfied += int(offsets[stop - at])
            at, size = stop, min(2 * size, 512)
        completion.events += at - first
        structure.scratches.append(scratch)
        return np.concatenate(counts), np.concatenate(rows)

    # -- rules

    def has(self, rule: object) -> bool:
        if not is_id(rule):
            return False
        return self._inside(lambda: self._structure.row(rule, LIVING, GOING) >= 0)

    def rule(self, rule: object) -> Rule | None:
        if not is_id(rule):
            return None

        def read() -> Rule | None:
            row = self._structure.row(rule, LIVING, GOING)
            return self._structure.rule(row) if row >= 0 else None

        return self._inside(read)

    def everyone(self) -> Iterator[RuleId]:
        def read() -> Ids:
            pools = self._structure.pools
            rows = np.nonzero(pools.status[: pools.state[ROWS]] & 1)[0].astype(np.int32)
            return self._ids(rows[np.argsort(pools.sequence[rows], kind="stable")])

        return iter(_listed(self._inside(read)))

    def hidden_tags(self, mark: str) -> set[str]:
        tags = self._structure.tags
        return self._inside(lambda: {name[1:] for name in map(tags.name, range(len(tags))) if name.startswith(mark)})

    def attributes(self) -> list[str]:
        structure = self._structure
        return self._inside(lambda: structure.counts.named(structure.attributes))

    # -- parts

    def _inside(self, read: Callable[[], _R]) -> _R:
        """What `read` gives inside the gate."""
        gate, me = self._structure.gate, get_ident()
        outside = gate.is_outside(me)
        try:
            if outside:
                gate.enter(me)
            return read()
        finally:
            if outside:
                gate.inside.discard(me)
                self._has_left()

    def _has_left(self) -> None:
        self._structure.gate.left()
        self._adjust_sometimes()

    def _scratch(self) -> tuple[Any, CompletionScratch]:
        try:
            return self._structure.scratches.pop()
        except IndexError:
            return self._structure.index.scratch(), CompletionScratch()

    def _ids(self, rows: I32) -> Ids:
        """The ids of rows, copied, to be read outside the gate."""
        structure = self._structure
        if structure.has_integers:
            return structure.pools.ids[rows]
        return gather(structure.pools.handle, rows, False)  # type: ignore[no-any-return]

    def _adjust_sometimes(self) -> None:
        """Let the index adjust itself after some events, unless somebody changes it or would have to wait long."""
        structure = self._structure
        try:
            completion = structure.scratches[-1][1]
        except IndexError:
            return
        if completion.events < _SEARCHED:
            return
        with uninterrupted():
            lock = self._rules.lock
            if not lock.acquire(blocking=False):
                return
            try:
                completion.events = 0
                structure.index.prepare(0, 0, 0, 0)
                if structure.gate.close(_PATIENCE):
                    try:
                        structure.index.adjust(_EFFORT)
                    finally:
                        structure.gate.open()
            finally:
                lock.release()


def _listed(ids: Ids) -> list[RuleId]:
    return strings_of(*ids) if isinstance(ids, tuple) else ids.tolist()  # type: ignore[return-value]


def _array(ids: Ids) -> pa.Array:
    if not isinstance(ids, tuple):
        return arrow_of(ids)
    buffers = [None, pa.py_buffer(ids[0]), pa.py_buffer(ids[1])]
    return pa.Array.from_buffers(pa.large_string(), len(ids[0]) - 1, buffers)
