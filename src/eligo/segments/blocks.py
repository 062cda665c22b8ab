"""Whether a segment matches batches in blocks (batch/), and the engine that does.

With `bitmap` it always does. With `auto` it does where that pays. The engine is built when as many events have come in
batches as make their matching about as dear as building it, so that nobody pays more than twice; what a snapshot or a
task on Spark has built is there from the beginning. Then, after its first batches, the steps that it took for an event
are compared with those that the index takes for some of the same events (planning.py), and if these are fewer the
engine goes. Counts, not times: the same rules and events lead to the same choice.
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
_SPACES = "spaces/"  # of its arrays, those that a segment with conjunctions has itself


class Blocks:
    """The engine of a segment, made when it is needed from `arrays`, or from the segment if there are none.

    They have the spaces of the conjunctions too: the segment may get another index, which keeps these itself.
    """

    def __init__(self) -> None:
        self.arrays: Arrays = {}
        self.room: float = np.inf  # bytes that they may take
        self.sample: Sample | Statistics | None = None  # events that tell how often predicates hold
        self.pays: bool | None = None  # once that is known
        self.times = 0.0, 0.0  # microseconds of an event in blocks, and by the index; by their steps
        self._engine: BatchEngine | None = None
        self._events = 0
        self._counted = np.zeros(4, np.int64)  # by an engine that is gone
        self._building = fork_lock(self, "_building", INNER)

    def engine(self, segment: Segment, events: EventBuffer) -> BatchEngine | None:
        """The engine for a batch of events, or None: the index is to be used."""
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
        """Whether threads search for the same events together: there is an engine that can."""
        engine = self._engine  # another thread may find that it does not pay
        return engine is not None and engine.shares

    def build(self, compiled: Compiled, conjunctions: Conjunctions, *, alone: bool) -> None:
        """Have the engine's arrays, if there is room for them. `alone`: the segment does not keep these rules."""
        from eligo.batch.layout import build_layout

        rank = often = None
        if self.sample is not None:
            held = self.sample.held(conjunctions)
            rank, often = rank_by(held, conjunctions), held / self.sample.events
        made, spaces = build_layout(compiled, conjunctions, rank, often), _spaces(conjunctions)
        if sum(array.nbytes for array in (made | spaces if alone else made).values()) <= self.room:
            self.arrays = made | spaces

    def follow(self, other: Blocks) -> None:
        """Be for the same rules with a faster index: what did not pay beside the other does not now, and what did is to
        be compared again.
        """
        self.arrays, self.pays = other.arrays, None if other.pays else other.pays

    def kept(self, *, alone: bool) -> Arrays:
        """The arrays that are to be kept beside those of the segment."""
        return {name: array for name, array in self.arrays.items() if alone or not name.startswith(_SPACES)}

    def restore(self, arrays: Arrays, conjunctions: Conjunctions | None) -> None:
        """Take what `kept` gave of a segment with these conjunctions."""
        self.arrays = arrays | _spaces(conjunctions) if arrays and conjunctions is not None else arrays

    def _built(self, segment: Segment) -> BatchEngine | None:
        """The engine, or None if it is larger than there is room for. Who comes while another thread makes it waits, as
        the rest of its own batch does.
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
        """Those of the segment or, if the index keeps them, as much of them as the engine needs."""
        if segment.conjunctions is not None:
            return segment.conjunctions
        spaces = {name.removeprefix(_SPACES): a for name, a in self.arrays.items() if name.startswith(_SPACES)}
        attributes = len(spaces["spaces.space_count"])
        return restore_conjunctions(spaces, segment.compiled, segment.index.strings, attributes)

    def counters(self) -> I64:
        """Candidates and predicate evaluations."""
        engine = self._engine  # another thread may find that it does not pay
        rows, evaluations, asked, _ = self._counted if engine is None else engine.counters()
        return np.array([rows + asked, evaluations])

    def notes(self) -> dict[str, object]:
        """What `stats` should say."""
        if self._engine is None and self.pays is None:
            return {}
        return {"segments matched in blocks": int(self.pays is not False)}


def _spaces(conjunctions: Conjunctions) -> Arrays:
    return {_SPACES + name: array for name, array in conjunctions.arrays().items()}
