"""Whether a segment matches batches in blocks (batch/), and the engine that does.

With `bitmap` it always does. With `auto` it does where that pays. The engine is built when as many events have come in
batches as make their matching about as dear as building it, so that nobody pays more than twice; what a snapshot or a
task on Spark has built is there from the beginning. Then it counts, in its
first batches, how many events have a row of it in common: where nearly every row is looked at for one event alone,
there is nothing to share, and the index is faster. Both are counts, not times: the same rules and events lead to the
same choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.forking import INNER, fork_lock

if TYPE_CHECKING:
    from eligo.batch.engine import BatchEngine
    from eligo.segments.segment import Segment

WORTH = 1024  # events of batches that pay for the engine
TRIED = 2048  # events after which it is known whether it pays
SHARED = 2.0  # events that have a row in common, on average, where it does


class Blocks:
    """The engine of a segment, made when it is needed from `arrays`, or from the segment if there are none."""

    def __init__(self, arrays: Arrays | None = None) -> None:
        self.arrays: Arrays = arrays or {}
        self._engine: BatchEngine | None = None
        self._events = 0
        self._shared: float | None = None  # events that have a row in common, once that is known
        self._building = fork_lock(self, "_building", INNER)

    def engine(self, segment: Segment, events: int) -> BatchEngine | None:
        """The engine for a batch of so many events, or None: the index is to be used."""
        always = segment.index.blocks == "always"
        self._events += events
        early = not self.arrays and self._events < WORTH
        if not always and (early or (self._shared is not None and self._shared < SHARED)):
            return None
        engine = self._built(segment)
        if not always and self._shared is None and engine.events >= TRIED:
            alone, together = engine.counters()[[2, 0]].tolist()
            self._shared = np.inf if engine.has_trees else alone / max(1, together)
        return engine

    def build(self, segment: Segment) -> None:
        """Have the engine's arrays, for those who save them."""
        if segment.index.blocks != "never":
            self._built(segment)

    def _built(self, segment: Segment) -> BatchEngine:
        """The engine; who comes while another thread makes it waits, as the rest of its own batch does."""
        from eligo.batch.engine import BatchEngine
        from eligo.batch.layout import build_layout

        if self._engine is not None:
            return self._engine
        with self._building:
            if self._engine is None:
                assert segment.conjunctions is not None, "an index that keeps rows has no blocks"
                if not self.arrays:
                    self.arrays = build_layout(segment.compiled, segment.conjunctions)
                self._engine = BatchEngine(segment.conjunctions, self.arrays)
            return self._engine

    def counters(self) -> I64:
        """Candidates and predicate evaluations."""
        return np.zeros(2, np.int64) if self._engine is None else self._engine.counters()[:2]

    def notes(self) -> dict[str, object]:
        """What `stats` should say."""
        if self._engine is None:
            return {}
        return {"segments matched in blocks": int(self._shared is None or self._shared >= SHARED)}
