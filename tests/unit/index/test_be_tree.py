"""BE-Tree: its invariance after every change, and its answers, while conjunctions come and go."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.mixed import answers, compiled, events, texts

from eligo.compile.conjunctions import Conjunctions
from eligo.index.be_tree.nodes import CLUSTERS, FREE_WORDS, ROWS, WORDS, Pools
from eligo.index.be_tree.tree import BeTree
from eligo.index.be_tree.verify import verify_tree
from eligo.index.dynamic.rows import rows_of
from eligo.index.scan import Scan


class Changing:
    """A tree over some of the conjunctions of a segment."""

    def __init__(self, conjunctions: Conjunctions, max_cap: int, min_size: int) -> None:
        self.attributes = len(conjunctions.spaces.space_count)
        self.index = BeTree.empty(conjunctions.strings, max_cap=max_cap, min_size=min_size)
        self.words, self.offsets = rows_of(conjunctions.compiled)
        self.living: set[int] = set()

    @property
    def pools(self) -> Pools:
        return self.index.pools

    def insert(self, conjunction: int) -> None:
        self.index.insert(self.words, self.offsets, conjunction, conjunction + 1, self.attributes)
        self.living.add(conjunction)

    def delete(self, conjunction: int) -> None:
        self.index.delete(np.array([conjunction], np.int64))
        self.living.remove(conjunction)


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize(("max_cap", "min_size"), [(1, 2), (3, 2), (8, 3)])
def test_any_order_of_changes(max_cap: int, min_size: int, absent: str) -> None:
    rng = random.Random(max_cap)
    conjunctions, encoder = compiled(texts(400, seed=max_cap, most=4), absent)
    some = events(30, seed=9)
    every = answers(Scan.build(conjunctions), encoder, some)
    tree = Changing(conjunctions, max_cap, min_size)
    for step in range(1200):
        grows = rng.random() < (0.75 if step % 400 < 250 else 0.2)
        absent_ones = sorted(set(range(len(conjunctions))) - tree.living)
        if (grows and absent_ones) or not tree.living:
            tree.insert(rng.choice(absent_ones))
        else:
            tree.delete(rng.choice(sorted(tree.living)))
        if step % 7 == 0:
            verify_tree(tree.pools)
        if step % 40 == 0:
            wanted = [[c for c in one if c in tree.living] for one in every]
            assert answers(tree.index, encoder, some) == wanted
    for conjunction in sorted(tree.living, key=lambda _: rng.random()):
        tree.delete(conjunction)
        verify_tree(tree.pools)
    assert tree.pools.state[ROWS] == 0
    assert answers(tree.index, encoder, some) == [[] for _ in some]


def test_pools_that_have_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that lends no address space: pools begin small and grow."""

    def refused(*_: object, **__: object) -> object:
        raise OSError("no memory")

    monkeypatch.setattr("eligo.index.dynamic.pool.mmap.mmap", refused)
    conjunctions, encoder = compiled(texts(1500, seed=6))
    tree = Changing(conjunctions, 3, 2)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
        assert tree.pools.state[WORDS] <= len(tree.pools.words)
        assert 8 * tree.pools.state[CLUSTERS] <= len(tree.pools.cluster)
    verify_tree(tree.pools)
    some = events(20, seed=2)
    wanted = answers(Scan.build(conjunctions), encoder, some)
    assert answers(tree.index, encoder, some) == wanted
    assert answers(BeTree.build(conjunctions, max_cap=5, min_size=2), encoder, some) == wanted


def test_updates_leave_no_memory_behind() -> None:
    rng = random.Random(4)
    conjunctions, _ = compiled(texts(900, seed=4))
    tree = Changing(conjunctions, 5, 2)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
    words, clusters = int(tree.pools.state[WORDS]), int(tree.pools.state[CLUSTERS])
    for _ in range(20_000):
        conjunction = rng.randrange(len(conjunctions))
        tree.delete(conjunction)
        tree.insert(conjunction)
    verify_tree(tree.pools)
    assert tree.pools.state[WORDS] < 1.5 * words
    assert tree.pools.state[CLUSTERS] < 1.5 * clusters
    assert tree.pools.state[FREE_WORDS] < words


def test_equal_rows_and_rows_without_predicates() -> None:
    """An l-node that nothing can divide grows; what has no predicates stays at the root and always holds."""
    conjunctions, encoder = compiled([f"n0 = 1 and n{1 + i % 5} >= {i % 8}" for i in range(60)] + ["true"])
    tree = Changing(conjunctions, 4, 2)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
        verify_tree(tree.pools)
    some = [{}, {"n0": 1}, {"n0": 1, "n1": 3, "n2": 7}]
    assert answers(tree.index, encoder, some) == answers(Scan.build(conjunctions), encoder, some)
