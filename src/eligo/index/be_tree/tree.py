"""`be-tree`: conjunctions in a tree that cuts the space in two phases, by attribute and by value (be-tree.txt)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer
from eligo.index.base import Index, Scratch
from eligo.index.be_tree.growing import insert_rows
from eligo.index.be_tree.matching import search_many, search_one
from eligo.index.be_tree.nodes import CLUSTERS, PARTITIONS, Pools
from eligo.index.dynamic.asking import make_string_handle
from eligo.index.dynamic.rows import rows_of
from eligo.index.dynamic.sight import no_key_sight
from eligo.index.registry import register
from eligo.options import Option


class TreeScratch(Scratch):
    """An event in coordinates, the keys that it goes by, and a stack of c-nodes."""

    def __init__(self, conjunctions: int, attributes: int, clusters: int) -> None:
        super().__init__(conjunctions)
        self.attributes, self.entries = attributes, 0
        self.stack = np.zeros(clusters + 1, np.int64)
        self.fit(64)

    def fit(self, entries: int) -> None:
        """Room for an event of so many entries."""
        if entries > self.entries:
            self.entries = 2 * entries
            self.sight = no_key_sight(self.attributes, self.entries)
            self.keys = np.zeros(5 * self.entries, np.int64)


@register
class BeTree(Index):
    """Trees of p-nodes and buckets; nodes.py draws them."""

    name = "be-tree"
    summary = "a tree that cuts the space by attribute and by value (BE-Tree)"
    options: ClassVar[Mapping[str, Option]] = {
        "max_cap": Option(100, "conjunctions that an l-node holds before it is cut", least=1),
        "min_size": Option(4, "conjunctions with an attribute that are worth a p-node", least=2),
    }

    def __init__(self, conjunctions: Conjunctions, pools: Pools) -> None:
        super().__init__(conjunctions)
        self.pools = pools
        self._strings = make_string_handle(*conjunctions.strings.arrays())

    @classmethod
    def build(
        cls, conjunctions: Conjunctions, selectivity: I64 | None = None, *, max_cap: int = 100, min_size: int = 4
    ) -> BeTree:
        attributes = len(conjunctions.spaces.space_count)
        pools = Pools(attributes, len(conjunctions), max_cap, min_size)
        words, offsets = rows_of(conjunctions.compiled)
        done, rows = 0, len(conjunctions)
        largest = 4 * int(np.diff(offsets).max(initial=0))
        while done < rows:
            pools.make_room(attributes, largest)
            done = insert_rows(pools.handle, words, offsets, done, rows)
        # It will not grow any more, so it needs no room for that.
        return cls(conjunctions, Pools.restored({name: array.copy() for name, array in pools.arrays().items()}))

    @classmethod
    def restore(cls, conjunctions: Conjunctions, arrays: Arrays) -> BeTree:
        return cls(conjunctions, Pools.restored(arrays))

    def arrays(self) -> Arrays:
        return self.pools.arrays()

    def notes(self) -> dict[str, object]:
        state = self.pools.state
        return {"c-nodes": int(state[CLUSTERS]), "p-nodes": int(state[PARTITIONS])}

    def scratch(self) -> TreeScratch:
        clusters = int(self.pools.state[CLUSTERS])
        return TreeScratch(len(self.conjunctions), len(self.conjunctions.spaces.space_count), clusters)

    def search(self, events: EventBuffer, event: int, scratch: Any) -> int:
        handle = events.handle
        scratch.fit(events.widest)
        return search_one(  # type: ignore[no-any-return]
            self.pools.handle, handle, event, scratch.sight, self._strings, scratch.keys, scratch.stack, scratch.found,
            scratch.counters,
        )  # fmt: skip

    def search_batch(self, events: EventBuffer, first: int, stop: int, scratch: Any, offsets: I64) -> int:
        handle = events.handle
        scratch.fit(events.widest)
        return search_many(  # type: ignore[no-any-return]
            self.pools.handle, handle, first, stop, scratch.sight, self._strings, scratch.keys, scratch.stack,
            scratch.found, scratch.counters, len(self.conjunctions), offsets,
        )  # fmt: skip
