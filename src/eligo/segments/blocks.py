"""Whether a segment matches batches in blocks (batch/), and the engine that does.

With `bitmap` it always does. With `auto` it does where that pays. The engine is built after so many events of batches
that matching them cost about as much as building it, so the total is about twice the optimum at most. An engine that a
snapshot or a task on Spark has built is there from the beginning. After its first batches, the steps that it took for
an event are compared with those that the index takes for some of the same events (planning.py), and if the index takes
fewer, the engine is dropped. Steps are compared, not times: the same rules and events lead to the same choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eligo.compile.compiled import I64, Arrays, Compiled
from eligo.compile.conjunctions import Conjunctions, restore_conjunctions
from eligo.compile.events import EventBuffer
from eligo.forking import INNER, fork_lock
from eligo.segments.planning import batch_time, blocks_time
from eligo.segments.sample import Sample, rank_by
from eligo.segments.statistics import Statistics

if TYPE_CHECKING:
    from eligo.batch.engine import BatchEngine
    from eligo.segments.segment import Segment

WORTH = 1024  # events of batches that pay for the engine
TRIED = 2048  # events after which it is known whether it pays
_SPACES = "spaces/"  # prefix of the arrays that a segment with conjunctions has itself


class Blocks:
    """The engine of a segment, made when it is first needed from `arrays` or, if these are empty, from the segment.

    The arrays hold the spaces of the conjunctions as well, because the segment may get an index that keeps its
    conjunctions itself.
    """

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.room: float = np.inf  # bytes that they may take
        self.sample: Sample | Statistics | None = None  # events that tell how often predicates hold
        self.pays: bool | None = None  # once that is known
        self.times = 0.0, 0.0  # microseconds of an event in blocks, and by the index; by their steps
        self._engine: BatchEngine | None = None
        self._events = 0
        self._counted = np.zeros(4, np.int64)  # by an engine that was dropped
        self._building = fork_lock(self, "_building", INNER)

    def engine(self, segment: Segment, events: EventBuffer) -> BatchEngine | None:
        """Returns the engine to match a batch of events with, or None if the index is to be used."""
        always = segment.index.blocks == "always"
        self._events += events.events
        early = not self.arrays and self._events < WORTH
        if not always and (early or self.pays is False):
            return None
        engine = self._built(segment)
        if engine is None:
            self.pays = False
        elif not always and self.pays is None and engine.events >= TRIED:
            figures = np.array([*engine.counters(), engine.matches]) / engine.events
            self.times = blocks_time(figures), batch_time(segment, events)
            self.pays = self.times[0] <= self.times[1]
            if not self.pays:
                self._counted, self._engine, self.arrays = engine.counters(), None, {}
        return engine

    @property
    def shares(self) -> bool:
        """Whether there is an engine with which several threads can search for the same events together."""
        engine = self._engine  # another thread may find that it does not pay
        return engine is not None and engine.shares

    def build(self, compiled: Compiled, conjunctions: Conjunctions, *, alone: bool) -> None:
        """Builds the engine's arrays, and keeps them if there is room. `alone` means that the segment itself does not
        keep these conjunctions, so their spaces count as well.
        """
        from eligo.batch.layout import build_layout

        rank = often = None
        if self.sample is not None:
            held = self.sample.held(conjunctions)
            rank, often = rank_by(held, conjunctions), held / self.sample.events
        made, spaces = build_layout(compiled, conjunctions, rank, often), _spaces(conjunctions)
        if sum(array.nbytes for array in (made | spaces if alone else made).values()) <= self.room:
            self.arrays = made | spaces

    def follow(self, other: Blocks) -> None:
        """Takes over the arrays of a segment with the same rules and a slower index. If blocks did not pay beside that
        index they do not now; otherwise the comparison is made again.
        """
        self.arrays, self.pays = other.arrays, None if other.pays else other.pays

    def kept(self, *, alone: bool) -> Arrays:
        """Returns the arrays that a snapshot keeps beside those of the segment. `alone` is as for `build`."""
        return {name: array for name, array in self.arrays.items() if alone or not name.startswith(_SPACES)}

    def restore(self, arrays: Arrays, conjunctions: Conjunctions | None) -> None:
        """Takes the arrays that `kept` returned for a segment with these conjunctions."""
        self.arrays = arrays | _spaces(conjunctions) if arrays and conjunctions is not None else arrays

    def _built(self, segment: Segment) -> BatchEngine | None:
        """Returns the engine, built if need be, or None if there is no room for it or it does not pay. Threads that
        arrive while another one builds it wait for it.
        """
        from eligo.batch.engine import BatchEngine

        if self._engine is not None or self.pays is False:
            return self._engine
        with self._building:
            if self._engine is None and self.pays is None:
                if not self.arrays:
                    self.build(*segment.spelt_out(), alone=segment.conjunctions is None)
                if self.arrays:
                    self._engine = BatchEngine(self._conjunctions(segment), self.arrays)
            return self._engine

    def _conjunctions(self, segment: Segment) -> Conjunctions:
        """Returns the segment's conjunctions or, if its index keeps them, as much of them as the engine needs."""
        if segment.conjunctions is not None:
            return segment.conjunctions
        spaces = {name.removeprefix(_SPACES): a for name, a in self.arrays.items() if name.startswith(_SPACES)}
        attributes = len(spaces["spaces.space_count"])
        return restore_conjunctions(spaces, segment.compiled, segment.index.strings, attributes)

    def counters(self) -> I64:
        """Returns the candidates and predicate evaluations, including those of an engine that was dropped."""
        engine = self._engine  # another thread may find that it does not pay
        rows, evaluations, asked, _ = self._counted if engine is None else engine.counters()
        return np.array([rows + asked, evaluations])

    def notes(self) -> dict[str, object]:
        """Returns the notes for `stats`, empty as long as no engine was built."""
        if self._engine is None and self.pays is None:
            return {}
        return {"segments matched in blocks": int(self.pays is not False)}


def _spaces(conjunctions: Conjunctions) -> Arrays:
    return {_SPACES + name: array for name, array in conjunctions.arrays().items()}
