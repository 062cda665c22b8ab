"""`be-tree`: conjunctions in a tree that cuts the space in two phases, by attribute and by value (be-tree.txt)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from eligo.compile.compiled import I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.index.base import Scratch
from eligo.index.be_tree.growing import insert_rows
from eligo.index.be_tree.matching import search_many, search_one
from eligo.index.be_tree.nodes import ATTRIBUTES, CLUSTERS, HIGHEST, PARTITIONS, Pools
from eligo.index.be_tree.shrinking import copy_row, delete_rows
from eligo.index.dynamic.asking import make_string_handle
from eligo.index.dynamic.rows import rows_of
from eligo.index.dynamic.sight import no_key_sight
from eligo.index.native import NativeIndex
from eligo.index.registry import register
from eligo.options import Option


class TreeScratch(Scratch):
    """An event in coordinates, the keys that it goes by, and a stack of c-nodes; it follows the tree as that grows."""

    def __init__(self) -> None:
        super().__init__(0)
        self.attributes = self.entries = 0
        self.stack = np.zeros(0, np.int64)

    def fit(self, state: I64, entries: int) -> None:
        """Room for a tree in this state, and an event of so many entries."""
        if state[ATTRIBUTES] > self.attributes or entries > self.entries:
            self.attributes = max(self.attributes, int(state[ATTRIBUTES]))
            self.entries = max(self.entries, 2 * entries, 64)
            self.sight = no_key_sight(self.attributes, self.entries)
            self.keys = np.zeros(5 * self.entries, np.int64)
        if state[CLUSTERS] >= len(self.stack):
            self.stack = np.zeros(5 * int(state[CLUSTERS]) // 4 + 64, np.int64)
        if state[HIGHEST] > len(self.found):
            self.found = np.zeros(5 * int(state[HIGHEST]) // 4 + 1024, np.int32)


@register
class BeTree(NativeIndex):
    """Trees of p-nodes and buckets; nodes.py draws them."""

    name = "be-tree"
    summary = "a tree that cuts the space by attribute and by value (BE-Tree)"
    options: ClassVar[Mapping[str, Option]] = {
        "max_cap": Option(100, "conjunctions that an l-node holds before it is cut", least=1),
        "min_size": Option(4, "conjunctions with an attribute that are worth a p-node", least=2),
    }

    def __init__(self, pools: Pools, strings: Strings) -> None:
        self.pools = pools
        self.strings = strings
        self._known_strings = -1
        self._follow_strings()

    @classmethod
    def empty(cls, strings: Strings, *, max_cap: int = 100, min_size: int = 4) -> BeTree:
        return cls(Pools(max_cap, min_size), strings)

    @classmethod
    def revived(cls, strings: Strings, arrays: Arrays) -> BeTree:
        return cls(Pools.restored(arrays), strings)

    @classmethod
    def build(
        cls, conjunctions: Conjunctions, selectivity: I64 | None = None, *, max_cap: int = 100, min_size: int = 4
    ) -> BeTree:
        tree = cls.empty(conjunctions.strings, max_cap=max_cap, min_size=min_size)
        words, offsets = rows_of(conjunctions.compiled)
        tree.insert(words, offsets, 0, len(conjunctions), len(conjunctions.spaces.space_count))
        # It will not grow any more, so it needs no room for that.
        arrays = {name: array.copy() for name, array in tree.arrays().items()}
        return cls(Pools.restored(arrays), conjunctions.strings)

    @classmethod
    def restore(cls, conjunctions: Conjunctions, arrays: Arrays) -> BeTree:
        return cls.revived(conjunctions.strings, arrays)

    def arrays(self) -> Arrays:
        return self.pools.arrays()

    def notes(self) -> dict[str, object]:
        state = self.pools.state
        return {"c-nodes": int(state[CLUSTERS]), "p-nodes": int(state[PARTITIONS])}

    # -- changing

    def insert(self, words: I64, offsets: I64, first: int, stop: int, attributes: int) -> None:
        largest = 4 * int(np.diff(offsets[first : stop + 1]).max(initial=0))
        highest = int((words[offsets[first:stop]] >> 32).max(initial=-1)) + 1
        while first < stop:
            self.pools.make_room(attributes, largest, highest)
            first = insert_rows(self.pools.handle, words, offsets, first, stop)
        self._follow_strings()

    def delete(self, numbers: I64) -> None:
        self.pools.make_room(0, 0, 0)
        delete_rows(self.pools.handle, numbers)

    def row(self, number: int) -> I64:
        return copy_row(self.pools.handle, number)  # type: ignore[no-any-return]

    def adjust(self, effort: int) -> bool:
        return False

    def observe(self, events: EventBuffer) -> None:
        pass

    def _follow_strings(self) -> None:
        """A check may ask for a string that came after the handle was made."""
        if len(self.strings) != self._known_strings:
            self._known_strings = len(self.strings)
            self._strings = make_string_handle(*self.strings.arrays())

    # -- searching

    def scratch(self) -> TreeScratch:
        made = TreeScratch()
        made.fit(self.pools.state, 0)
        return made

    def search(self, events: EventBuffer, event: int, scratch: Any) -> int:
        handle = events.handle
        scratch.fit(self.pools.state, events.widest)
        return search_one(  # type: ignore[no-any-return]
            self.pools.handle, handle, event, scratch.sight, self._strings, scratch.keys, scratch.stack, scratch.found,
            scratch.counters,
        )  # fmt: skip

    def search_batch(self, events: EventBuffer, first: int, stop: int, scratch: Any, offsets: I64) -> int:
        handle = events.handle
        scratch.fit(self.pools.state, events.widest)
        return search_many(  # type: ignore[no-any-return]
            self.pools.handle, handle, first, stop, scratch.sight, self._strings, scratch.keys, scratch.stack,
            scratch.found, scratch.counters, self.pools.state[HIGHEST], offsets,
        )  # fmt: skip
