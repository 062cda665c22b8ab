"""Matches of many events in the order of the answer: by event, then in the order of adding, or the best ones first.

    part       the matches of one segment: rows[ends[i] … ends[i+1]] for the i-th event of a slice, in order of adding
    sources    for kernels, of each part the addresses of ends, rows, and the table's sequence numbers, weights and, if
               they are integers, ids; and where its matches begin among those of all parts

Each event's matches of one segment are in order already, and mostly all rules of one segment were added before those
of the next. So parts are merged by runs, not sorted: a run reaches as far as no other segment has an earlier rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arrow import arrow_of, numpy_of, room
from eligo.compile.compiled import F64, I32, I64
from eligo.forking import cached_property
from eligo.jit import float_of, inline, int32_at, int64_at, kernel
from eligo.rule import RuleId
from eligo.segments.base import BaseSegment, ends_of
from eligo.threads import ALONE, Team

_FEW = 4096  # matches of one event that NumPy sorts sooner than a kernel is called
_MANY = 1 << 18  # matches from which a second thread to write them pays
_ENDS, _ROWS, _SEQUENCE, _WEIGHT, _IDS, _BEGIN = 0, 1, 2, 3, 4, 5  # columns of `sources`
_LAST = np.int64(2**63 - 1)


class Matches:
    """Matches of one segment for the events from number `first` on: their ends, and rows or, if `named`, ids."""

    def __init__(
        self, segment: BaseSegment, first: int, ends: I64, rows: NDArray[Any], team: Team, named: bool = False
    ) -> None:
        self.table: Any = segment.table
        self.first, self.ends, self.rows, self._team, self._named = first, ends, rows, team, named

    def kept(self, kept: NDArray[np.bool_]) -> None:
        """Leaves out all matches but those that are `kept`."""
        self.ends, self.rows = ends_of(kept)[self.ends], self.rows[kept]
        vars(self).pop("numbers", None)

    def limit(self, most: int) -> None:
        """Leaves out all matches but the first `most` of each event."""
        counts = np.diff(self.ends)
        if (counts > most).any():
            self.kept(np.arange(len(self.rows)) - np.repeat(self.ends[:-1], counts) < most)

    def read(self) -> None:
        """Copies what rules have of which the answer may tell, before rows change."""
        self.table, self.rows = _Copied(self.table, self.rows), np.arange(len(self.rows), dtype=np.int32)

    @cached_property
    def numbers(self) -> I64:
        """The event of each match."""
        numbers = room(len(self.rows))
        _shared(self.ends, self._team, lambda begin, end: write_numbers(self.ends, self.first, begin, end, numbers))
        return numbers

    @property
    def ids(self) -> pa.Array:
        return arrow_of(self.rows) if self._named else self.table.id_column(self.rows)


class _Copied:
    """Some rows of a table."""

    def __init__(self, table: Any, rows: NDArray[Any]) -> None:
        self._column = table.id_column(rows)
        self.ids = numpy_of(self._column) if pa.types.is_integer(self._column.type) else np.zeros(0, np.int64)
        self.weight, self.sequence = table.weight[rows], table.sequence[rows]

    def id_column(self, rows: NDArray[Any]) -> pa.Array:
        return self._column.take(arrow_of(rows))


def in_order(parts: Sequence[Matches], most: int | None, team: Team) -> tuple[I64, pa.Array]:
    """Returns the matches of all parts in the order of adding, at most `most` of each event: event numbers and ids."""
    if len(parts) == 1:
        return parts[0].numbers, parts[0].ids
    numbers, found, places = _merged(parts, most, team, ids=True)
    return numbers, pa.concat_arrays([part.ids for part in parts]).take(arrow_of(found)) if places else arrow_of(found)


def of_one_event(segment: BaseSegment, rows: I32) -> Matches:
    """Returns the matches of one event."""
    return Matches(segment, 0, np.array([0, len(rows)]), rows, ALONE)


def listed_in_order(parts: Sequence[Matches], most: int | None) -> list[RuleId]:
    """Returns the ids of the matches of one event in the order of adding, at most `most`."""
    _, found, places = _merged(parts, most, ALONE, ids=True)
    if not places:
        ids: list[RuleId] = found.tolist()
        return ids
    ids = [rule for part in parts for rule in part.table.id_list(part.rows)]
    return [ids[i] for i in found.tolist()]


def ranked(parts: Sequence[Matches], most: int | None, team: Team) -> tuple[I64, pa.Array, F64, I64]:
    """Returns event numbers, ids, weights and sequence numbers of the `most` matches of each event with the highest
    weights, ties in the order of adding; of all matches, in the order of adding, if `most` is None.
    """
    if most is None:
        numbers, found, _ = _merged(parts, None, team, ids=False)
        return numbers, *_taken(parts, found)
    counts, found = _best(parts, most, team)
    return np.repeat(np.arange(parts[0].first, parts[0].first + len(counts)), counts), *_taken(parts, found)


def listed_best(parts: Sequence[Matches], most: int) -> list[tuple[RuleId, float]]:
    """Returns the ids and weights of the best matches of one event, as Python objects."""
    if len(parts) == 1 and len(parts[0].rows) < _FEW:
        rows, table = parts[0].rows, parts[0].table
        rows = rows[np.argsort(-table.weight[rows], kind="stable")[: max(most, 0)]]
        return list(zip(table.id_list(rows), table.weight[rows].tolist(), strict=True))
    _, found = _best(parts, most, ALONE)
    listed: dict[int, tuple[RuleId, float]] = {}
    for part, mine, rows in _divided(parts, found):
        listed.update(
            zip(
                mine.tolist(), zip(part.table.id_list(rows), part.table.weight[rows].tolist(), strict=True), strict=True
            )
        )
    return [listed[i] for i in range(len(found))]


def _best(parts: Sequence[Matches], most: int, team: Team) -> tuple[I64, I64]:
    """Returns how many of the best matches each event has, and their places among the matches of all parts."""
    sources, _alive = _sources(parts)
    counts = np.minimum(_counts(parts), max(most, 0))
    ends = ends_of(counts)
    found = np.empty(int(ends[-1]), np.int64)
    widest = int(counts.max(initial=0))
    _shared(ends, team, lambda begin, stop: choose_best(sources, begin, stop, widest, ends, found))
    return counts, found


def _merged(parts: Sequence[Matches], most: int | None, team: Team, *, ids: bool) -> tuple[I64, I64, bool]:
    """Returns the event numbers of all matches in order, and their ids or, unless `ids` are asked for and integers,
    their places among the matches of all parts; and whether it is places.
    """
    sources, alive = _sources(parts)
    places = not ids or any(len(part.table.ids) == 0 for part in parts)
    if places:
        sources[:, _IDS] = 0
    counts = _counts(parts)
    ends = ends_of(counts if most is None else np.minimum(counts, most))
    numbers, found, first = room(int(ends[-1])), room(int(ends[-1])), parts[0].first
    _shared(ends, team, lambda begin, stop: merge_runs(sources, begin, stop, first, ends, numbers, found))
    del alive
    return numbers, found, places


def _counts(parts: Sequence[Matches]) -> I64:
    """Returns how many matches each event has in all parts."""
    counts: I64 = np.diff(sum((part.ends for part in parts), np.zeros(1, np.int64)))
    return counts


def _sources(parts: Sequence[Matches]) -> tuple[I64, list[NDArray[Any]]]:
    """Returns the `sources` of some parts, and the arrays to which they point, which must be kept meanwhile."""
    alive, sources, begin = [], np.zeros((len(parts), _BEGIN + 1), np.int64), 0
    for part, source in zip(parts, sources, strict=True):
        arrays = [part.ends, part.rows, part.table.sequence, part.table.weight, part.table.ids]
        arrays = [np.ascontiguousarray(array) for array in arrays]
        assert [array.itemsize for array in arrays] == [8, 4, 8, 8, 8]
        source[:_BEGIN], source[_BEGIN] = [array.ctypes.data for array in arrays], begin
        begin += len(part.rows)
        alive += arrays
    return sources, alive


def _taken(parts: Sequence[Matches], places: I64) -> tuple[pa.Array, F64, I64]:
    """Returns ids, weights and sequence numbers of the matches at some places among those of all parts."""
    ids, weights, sequences = [], np.empty(len(places)), np.empty(len(places), np.int64)
    back, done = np.empty(len(places), np.int64), 0
    for part, mine, rows in _divided(parts, places):
        ids.append(part.table.id_column(rows))
        weights[mine], sequences[mine] = part.table.weight[rows], part.table.sequence[rows]
        back[mine] = np.arange(done, done + len(mine))
        done += len(mine)
    return pa.concat_arrays(ids).take(arrow_of(back)) if len(parts) > 1 else ids[0], weights, sequences


def _divided(parts: Sequence[Matches], places: I64) -> Iterator[tuple[Matches, I64, NDArray[Any]]]:
    """Yields each part with those of some places that are its own, by their indices, and with the rows there."""
    begin = 0
    for part in parts:
        mine = np.flatnonzero((places >= begin) & (places < begin + len(part.rows)))
        yield part, mine, part.rows[places[mine] - begin]
        begin += len(part.rows)


def _shared(ends: I64, team: Team, write: Callable[[int, int], object]) -> None:
    """Calls write(begin, stop) for all events, about as many matches in each thread of a team, or here if few."""
    events = len(ends) - 1
    if ends[-1] < _MANY or team.threads == 1:
        write(0, events)
        return
    inner = np.searchsorted(ends, ends[-1] * np.arange(1, team.threads) // team.threads)
    borders = list(pairwise([0, *np.minimum(inner, events).tolist(), events]))
    team.each(lambda i: write(*borders[i]))


@kernel
def write_numbers(ends, first, begin, stop, numbers):
    """Writes the event's number for each match of events begin … stop-1; those of event first + i end at ends[i+1]."""
    for event in range(begin, stop):
        for k in range(ends[event], ends[event + 1]):
            numbers[k] = first + event


@inline
def sequence_at(sources, part, match):
    """Returns the sequence number of the rule of a match."""
    return int64_at(sources[part, _SEQUENCE], int32_at(sources[part, _ROWS], match))


@kernel
def merge_runs(sources, begin, stop, first, ends, numbers, found):
    """Writes the matches of events begin … stop-1 in the order of adding, from ends[event] up to ends[event + 1]: the
    event's number, and the rule's id or, where ids are no integers, the match's place among those of all parts.
    """
    parts = len(sources)
    heads = np.empty(parts, np.int64)
    for event in range(begin, stop):
        for part in range(parts):
            heads[part] = int64_at(sources[part, _ENDS], event)
        k, end = ends[event], ends[event + 1]
        while k < end:
            one, least, next_least = 0, _LAST, _LAST
            for part in range(parts):
                if heads[part] < int64_at(sources[part, _ENDS], event + 1):
                    sequence = sequence_at(sources, part, heads[part])
                    if sequence < least:
                        one, least, next_least = part, sequence, least
                    else:
                        next_least = min(next_least, sequence)
            at = heads[one]
            run, last = at + 1, min(int64_at(sources[one, _ENDS], event + 1), at + end - k)
            if sequence_at(sources, one, last - 1) < next_least:
                run = last
            while run < last and sequence_at(sources, one, run) < next_least:
                run += 1
            rows, ids, place = sources[one, _ROWS], sources[one, _IDS], sources[one, _BEGIN]
            for match in range(at, run):
                numbers[k] = first + event
                found[k] = int64_at(ids, int32_at(rows, match)) if ids else place + match
                k += 1
            heads[one] = run


@inline
def is_worse(weights, sequences, i, j):
    """Whether the i-th of some matches comes after the j-th."""
    return weights[i] < weights[j] or (weights[i] == weights[j] and sequences[i] > sequences[j])


@inline
def sink(weights, sequences, places, i, n):
    """Puts the i-th of n matches where it belongs in a heap that has the worst on top, if those below are in order."""
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and is_worse(weights, sequences, child + 1, child):
            child += 1
        if not is_worse(weights, sequences, child, i):
            break
        weights[i], weights[child] = weights[child], weights[i]
        sequences[i], sequences[child] = sequences[child], sequences[i]
        places[i], places[child] = places[child], places[i]
        i = child


@kernel
def choose_best(sources, begin, stop, most, ends, found):
    """Writes the best matches of events begin … stop-1, best first, from ends[event] up to ends[event + 1], as places
    among the matches of all parts.
    """
    weights, sequences, places = np.empty(most), np.empty(most, np.int64), np.empty(most, np.int64)
    for event in range(begin, stop):
        size, n, worst = ends[event + 1] - ends[event], np.int64(0), 0.0
        if size == 0:
            continue
        for part in range(len(sources)):
            for match in range(int64_at(sources[part, _ENDS], event), int64_at(sources[part, _ENDS], event + 1)):
                weight = float_of(int64_at(sources[part, _WEIGHT], int32_at(sources[part, _ROWS], match)))
                if n == size and weight < worst:
                    continue
                sequence = sequence_at(sources, part, match)
                if n == size and weight == worst and sequence > sequences[0]:
                    continue
                to = n if n < size else 0
                weights[to], sequences[to], places[to] = weight, sequence, sources[part, _BEGIN] + match
                lowest = 0
                if n < size:
                    n += 1
                    lowest = size // 2 - 1 if n == size else -1
                for i in range(lowest, -1, -1):
                    sink(weights, sequences, places, i, size)
                worst = weights[0]
        for i in range(size - 1, -1, -1):
            found[ends[event] + i] = places[0]
            weights[0], sequences[0], places[0] = weights[i], sequences[i], places[i]
            sink(weights, sequences, places, 0, i)
