"""`be-tree`: conjunctions in a tree that cuts the space in two phases, by attribute and by value (the BE-Tree
paper).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.index.be_tree.adapt import EXPLORATION, RECYCLING, REINSERTION, adjust_tree
from eligo.index.be_tree.delete import copy_rows, delete_rows, mark_rows
from eligo.index.be_tree.draw import drawn, measure
from eligo.index.be_tree.insert import foresee_rows, insert_rows
from eligo.index.be_tree.nodes import (
    ATTRIBUTES,
    CHOOSES,
    CLUSTERS,
    EXPLORE,
    HIGHEST,
    LONGEST,
    MAX_CAP,
    POLICIES,
    RECYCLED,
    REINSERTED,
    ROUNDS,
    THETA,
    Pools,
)
from eligo.index.be_tree.search import make_work, observe_events, search_many
from eligo.index.rows.allocator import USED
from eligo.index.rows.growable import EARLY, release
from eligo.index.rows.pooled_index import PooledIndex, PooledScratch, largest_and_highest
from eligo.options import Option

POLICY = {
    "all": RECYCLING | REINSERTION | EXPLORATION,
    "recycling": RECYCLING,
    "reinsertion": REINSERTION,
    "exploration": EXPLORATION,
    "none": 0,
}
USUAL_CAP = 200  # before any event was seen
_PIECE = 1024  # rows inserted before the tree is adjusted
_FEW = 16  # rows in a root that is not cut: there is nothing to adjust, so the kernel for it need not be compiled


class TreeScratch(PooledScratch):
    """An event in coordinates, its keys, a stack of c-nodes, stretches of rows."""

    clusters = -1

    def fit(self, state: I64, entries: int) -> None:
        fresh = self.fit_event(int(state[ATTRIBUTES]), entries, int(state[HIGHEST]))
        if fresh or state[CLUSTERS] >= self.clusters:
            self.clusters = 5 * int(state[CLUSTERS]) // 4 + 16
            self.keys = np.zeros(5 * self.entries, np.int64)
            self.work = make_work(self.keys, *(np.zeros(self.clusters, np.int64) for _ in range(3)))


class BeTree(PooledIndex):
    """Trees of p-nodes and buckets; nodes.py draws them."""

    name = "be-tree"
    summary = "a tree that cuts the space by attribute and by value (BE-Tree)"
    options: ClassVar[Mapping[str, Option]] = {
        "max_cap": Option(0, "conjunctions in an l-node before it is cut; 0: by the match probability", least=0),
        "min_size": Option(4, "conjunctions with an attribute that are worth a p-node", least=2),
        "theta": Option(0.0, "rank of an l-node below which its conjunctions are inserted anew"),
        "adapt": Option("all", "policies of self-adjustment that are on", choices=tuple(POLICY)),
    }

    pools_type = Pools
    scratch_type = TreeScratch
    search_many = staticmethod(search_many)
    highest = HIGHEST
    copy_rows = staticmethod(copy_rows)

    def __init__(self, pools: Pools, strings: Strings) -> None:
        super().__init__(pools, strings)
        self._chosen = np.zeros(512, np.int64)
        self._carry = np.zeros(int(pools.state[LONGEST]), np.int64)

    @classmethod
    def empty(
        cls, strings: Strings, *, max_cap: int = 0, min_size: int = 4, theta: float = 0.0, adapt: str = "all"
    ) -> BeTree:
        pools = Pools(max_cap or USUAL_CAP, min_size)
        pools.state[CHOOSES] = max_cap == 0
        pools.state[POLICIES] = POLICY[adapt]
        pools.state[EXPLORE] = 100 if POLICY[adapt] & EXPLORATION else 0
        pools.state[THETA] = round(100 * theta)
        return cls(pools, strings)

    def fill(self, words: I64, offsets: I64, rows: int, attributes: int) -> None:
        """As if they came one by one, with adjustment between them as a matcher does it."""
        for first in range(0, rows, _PIECE):
            stop = min(rows, first + _PIECE)
            self.insert(words, offsets, first, stop, attributes)
            self.adjust(4 * (stop - first))

    def notes(self) -> dict[str, object]:
        state, measures = self.pools.state, measure(self.pools)
        return {
            "c-nodes": measures.c_nodes,
            "p-nodes": measures.p_nodes,
            "l-nodes": measures.leaf_sizes(),
            "depth": f"{measures.depth} c-nodes, {measures.cuts} attributes",
            "max_cap": int(state[MAX_CAP]),
            "rounds of adjustment": int(state[ROUNDS]),
            "l-nodes recycled": int(state[RECYCLED]),
            "conjunctions reinserted": int(state[REINSERTED]),
        }

    def draw(self, names: Sequence[str], depth: int = 3, width: int = 8) -> list[str]:
        return drawn(self.pools, self.strings, names, depth, width)

    # -- changing

    def insert(self, words: I64, offsets: I64, first: int, stop: int, attributes: int) -> None:
        largest, highest = largest_and_highest(words, offsets, first, stop)
        if largest > len(self._carry):
            self._carry = np.zeros(2 * largest, np.int64)
            self.pools.state[LONGEST] = 2 * largest
        while first < stop:
            self.pools.make_room(attributes, 4 * largest, highest)
            first = insert_rows(self.pools.handle, words, offsets, first, stop)
        self._follow_strings()

    def prepare(self, words: int, rows: int, highest: int, attributes: int) -> None:
        largest = max(4 * len(self._carry), 8 * words // max(rows, 1))
        self.pools.make_room(attributes, largest, highest, (rows, words), EARLY)

    def delete(self, numbers: I64) -> None:
        for first in range(0, len(numbers), 16):
            self.pools.make_room(0, 4 * len(self._carry), 0)
            delete_rows(self.pools.handle, numbers, first, min(len(numbers), first + 16))

    def mark(self, attributes: NDArray[np.bool_], strings: NDArray[np.bool_]) -> None:
        mark_rows(self.pools.handle, attributes, strings)

    def adjust(self, effort: int) -> bool:
        state = self.pools.state
        if not state[POLICIES] or (state[CLUSTERS] == 1 and state[HIGHEST] < _FEW):
            return False
        self.pools.make_room(0, 4 * len(self._carry), 0)
        before = self.pools.heads[USED]
        finished = adjust_tree(self.pools.handle, effort, self._chosen, self._carry)
        if self.pools.heads[USED] < before:
            release(self.pools.words, int(self.pools.heads[USED]))
        return not finished

    def observe(self, events: EventBuffer) -> None:
        scratch = self.scratch()
        scratch.fit(self.pools.state, events.widest)
        observe_events(self.pools.handle, events.handle, events.events, scratch.event_view, scratch.keys)


class BeTreeBatch(BeTree):
    """The same tree when all conjunctions are known in advance (BE-B): even the first is placed by what all have."""

    name = "be-tree-batch"
    summary = "BE-Tree with all conjunctions known in advance, so that the first are placed as well as the last (BE-B)"
    updates = "rebuild"

    def fill(self, words: I64, offsets: I64, rows: int, attributes: int) -> None:
        self.pools.make_room(attributes, 0, 0)
        foresee_rows(self.pools.handle, words, offsets, 0, rows, 1)
        self.insert(words, offsets, 0, rows, attributes)
        foresee_rows(self.pools.handle, words, offsets, 0, rows, -1)
