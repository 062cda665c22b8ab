"""Workloads in blocks: any part of a hundred million rules or events, made by itself.

    seed ─┬─ world      what all blocks have in common (popularity, plan, market): made once, small, travels to workers
          ├─ rules      block 0 │ block 1 │ …     rows 65,536 b … of random numbers (seed; 0, b)
          └─ events     block 0 │ block 1 │ …                             and of (seed; 1, b)

Invariant: a block depends on the parameters, the seed and its own number, and on nothing else. So whoever makes it,
and in whatever order, it is the same, and the blocks one after another are the workload.

A rule's id is its row. What a workload promises of all rules together (all different, a match probability) holds
within a block. Columns of events are all attributes of the world, in its order, whether or not a block has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from eligo_lab.workload.draft import Draft
from eligo_lab.workload.events import EventDraft, match_probability

BLOCK: Final = 65_536  # rows; another number would make other workloads of the same seed
_RULES, _EVENTS = 0, 1
_SLICE: Final = 8_192  # events that become a table at once: of hundreds of columns, most of them null


class World(Protocol):
    """What all blocks of a workload have in common."""

    @property
    def chosen(self) -> dict[str, object]:
        """Parameters that follow from others."""

    def rules(self, rng: np.random.Generator, first: int, n: int) -> Draft:
        """The n rules from row `first` on."""

    def events(self, rng: np.random.Generator, first: int, n: int) -> EventDraft:
        """The n events from row `first` on."""


@dataclass(frozen=True)
class Blocks:
    """A workload of which any block can be made; travels to workers as it is."""

    name: str
    asked: dict[str, Any]
    world: World

    @property
    def parameters(self) -> dict[str, object]:
        return self.asked | self.world.chosen

    @property
    def rule_blocks(self) -> int:
        return -(-int(self.asked["rules"]) // BLOCK)

    @property
    def event_blocks(self) -> int:
        return -(-int(self.asked["events"]) // BLOCK)

    @property
    def rule_schema(self) -> pa.Schema:
        return pa.schema([("id", pa.int64()), ("expression", pa.string())])

    @cached_property
    def event_schema(self) -> pa.Schema:
        return self.world.events(self._rng(_EVENTS, 0), 0, 1).table(every=True).schema

    def rules(self, block: int) -> Iterator[pa.RecordBatch]:
        """A block of rules: id and expression."""
        draft = self._rules(block)
        ids = pa.array(np.arange(len(draft)) + block * BLOCK)
        expressions = draft.table()["expression"].combine_chunks()
        yield pa.RecordBatch.from_arrays([ids, expressions], schema=self.rule_schema)

    def events(self, block: int) -> Iterator[pa.RecordBatch]:
        """A block of events, in slices: a column for every attribute."""
        draft = self._events(block)
        for start in range(0, len(draft), _SLICE):
            rows = np.arange(start, min(start + _SLICE, len(draft)))
            yield from draft.take(rows).table(every=True).to_batches()

    def measured(self) -> dict[str, float]:
        """What the first blocks show: how probably an event matches a rule, and how many rules that would be of all."""
        match = match_probability(self._rules(0), self._events(0))
        return {"match": match, "matches": match * self.asked["rules"]}

    def _rules(self, block: int) -> Draft:
        return self.world.rules(self._rng(_RULES, block), block * BLOCK, self._rows("rules", block))

    def _events(self, block: int) -> EventDraft:
        return self.world.events(self._rng(_EVENTS, block), block * BLOCK, self._rows("events", block))

    def _rng(self, stream: int, block: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self.asked["seed"], spawn_key=(stream, block)))

    def _rows(self, of: str, block: int) -> int:
        return min(BLOCK, int(self.asked[of]) - block * BLOCK)
