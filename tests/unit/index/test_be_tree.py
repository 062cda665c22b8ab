"""BE-Tree: its invariance after every change, and its answers, while conjunctions come and go."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.mixed import answers, compiled, events, texts

import eligo
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.index.be_tree.nodes import CLUSTERS, MAX_CAP, REINSERTED, ROWS, Pools
from eligo.index.be_tree.tree import BeTree, BeTreeBatch
from eligo.index.rows.allocator import FREE, USED
from eligo.index.rows.row_encoder import rows_of
from eligo.index.scan import Scan
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf
from eligo.language.reference import matches
from invariants.be_tree import verify_tree


class Changing:
    """A tree over some of the conjunctions of a segment."""

    def __init__(self, conjunctions: Conjunctions, **options: Any) -> None:
        self.attributes = len(conjunctions.spaces.space_count)
        self.index = BeTree.empty(conjunctions.strings, **options)
        self.words, self.offsets = rows_of(conjunctions.compiled, conjunctions.strings)
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
@pytest.mark.parametrize(
    ("max_cap", "min_size", "adapt"),
    [(1, 2, "all"), (3, 2, "reinsertion"), (8, 3, "recycling"), (2, 2, "exploration"), (5, 2, "none")],
)
def test_any_order_of_changes(max_cap: int, min_size: int, adapt: str, absent: str) -> None:
    rng = random.Random(max_cap)
    conjunctions, encoder = compiled(texts(400, seed=max_cap, most=4), absent)
    some = events(30, seed=9)
    every = answers(Scan.build(conjunctions), encoder, some)
    tree = Changing(conjunctions, max_cap=max_cap, min_size=min_size, adapt=adapt, theta=1.0)
    for step in range(1200):
        grows = rng.random() < (0.75 if step % 400 < 250 else 0.2)
        absent_ones = sorted(set(range(len(conjunctions))) - tree.living)
        if (grows and absent_ones) or not tree.living:
            tree.insert(rng.choice(absent_ones))
        else:
            tree.delete(rng.choice(sorted(tree.living)))
        tree.index.adjust(rng.choice((1, 4, 30)))
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


def watched(tree: BeTree, encoder: Encoder, some: list[dict[str, Any]], times: int) -> None:
    """Search again and again, so that many events are watched, and let the tree adjust itself meanwhile."""
    buffer = EventBuffer()
    for event in some:
        encoder.encode(event, buffer)
    scratch = tree.scratch()
    offsets = np.zeros(len(some) + 1, np.int64)
    for _ in range(times):
        first = 0
        while first < len(some):
            first = tree.search_batch(buffer, first, len(some), scratch, offsets)
        tree.adjust(500)


def test_what_events_never_have_leads_to_rules() -> None:
    """By popularity both attributes are alike; events then show that one of them is in all and the other in none."""
    rules = [f"common = {i % 40} and rare = {i % 37}" for i in range(3000)]
    conjunctions, encoder = compiled(rules)
    tree = Changing(conjunctions, max_cap=50, adapt="all")
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
    some = [{"common": i % 40} for i in range(200)]
    scratch = tree.index.scratch()

    def candidates() -> int:
        before = int(scratch.counters[0])
        buffer = EventBuffer()
        for event in some:
            buffer.clear()
            encoder.encode(event, buffer)
            tree.index.search(buffer, 0, scratch)
        return int(scratch.counters[0]) - before

    at_first = candidates()
    watched(tree.index, encoder, some, 200)
    verify_tree(tree.pools)
    assert candidates() < at_first / 4
    assert tree.pools.state[REINSERTED] > 0
    mixed = [*some[:5], {"common": 3, "rare": 3}, {"rare": 3}]
    assert answers(tree.index, encoder, mixed) == answers(Scan.build(conjunctions), encoder, mixed)


def test_observed_events_are_learnt_from_without_a_search() -> None:
    conjunctions, encoder = compiled([f"common = {i % 40} and rare = {i % 37}" for i in range(2000)])
    tree = Changing(conjunctions, max_cap=50)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
    buffer = EventBuffer()
    for i in range(500):
        encoder.encode({"common": i % 40}, buffer)
    tree.index.observe(buffer)
    while tree.index.adjust(1000):
        pass
    assert tree.pools.state[REINSERTED] > 0
    verify_tree(tree.pools)


def test_capacity_follows_the_match_probability() -> None:
    conjunctions, encoder = compiled([f"a >= {i % 7} and b >= {i}" for i in range(600)])
    tree = Changing(conjunctions, max_cap=0)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
    before = int(tree.pools.state[MAX_CAP])
    watched(tree.index, encoder, [{"a": 9, "b": i} for i in range(600)], 60)
    assert tree.pools.state[MAX_CAP] > before
    verify_tree(tree.pools)


def test_all_rules_known_in_advance() -> None:
    conjunctions, encoder = compiled(texts(800, seed=11, most=5))
    some = events(40, seed=3)
    tree = BeTreeBatch.build(conjunctions, max_cap=4, min_size=2)
    verify_tree(tree.pools)
    assert answers(tree, encoder, some) == answers(Scan.build(conjunctions), encoder, some)


@pytest.mark.parametrize("count", [300, 5_000, 70_000])
def test_rows_of_any_length(count: int) -> None:
    """Lists of many values, and conjunctions of many predicates."""
    apart = ", ".join(str(1000 * i) for i in range(count // 2))
    wide = " and ".join(f"x{i} >= {i % 3}" for i in range(min(count, 6000)))
    conjunctions, encoder = compiled([f"a in ({apart})", wide, f"a not in ({apart})", "a = 1000", f"{wide} and a = 3"])
    tree = Changing(conjunctions, max_cap=1, min_size=2)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
        verify_tree(tree.pools)
    full = {f"x{i}": 2 for i in range(6000)}
    some = [{"a": 1000}, {"a": 1001}, {**full, "a": 3}, {**full, "x5": 0}, full]
    wanted = answers(Scan.build(conjunctions), encoder, some)
    assert answers(tree.index, encoder, some) == wanted
    while tree.index.adjust(100):
        pass
    assert answers(tree.index, encoder, some) == wanted
    for conjunction in range(len(conjunctions)):
        tree.delete(conjunction)
        verify_tree(tree.pools)


def test_pools_that_have_to_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that lends no address space: pools begin small and grow."""

    def refused(*_: object, **__: object) -> object:
        raise OSError("no memory")

    monkeypatch.setattr("eligo.index.rows.growable.mmap.mmap", refused)
    conjunctions, encoder = compiled(texts(1500, seed=6))
    tree = Changing(conjunctions, max_cap=3, min_size=2)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
        assert tree.pools.heads[USED] <= len(tree.pools.words)
        assert 8 * tree.pools.state[CLUSTERS] <= len(tree.pools.cluster)
    verify_tree(tree.pools)
    some = events(20, seed=2)
    wanted = answers(Scan.build(conjunctions), encoder, some)
    assert answers(tree.index, encoder, some) == wanted
    assert answers(BeTree.build(conjunctions, max_cap=5, min_size=2), encoder, some) == wanted


def test_updates_leave_no_memory_behind() -> None:
    rng = random.Random(4)
    conjunctions, _ = compiled(texts(900, seed=4))
    tree = Changing(conjunctions, max_cap=5, min_size=2)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
    words, clusters = int(tree.pools.heads[USED]), int(tree.pools.state[CLUSTERS])
    for _ in range(20_000):
        conjunction = rng.randrange(len(conjunctions))
        tree.delete(conjunction)
        tree.insert(conjunction)
        tree.index.adjust(4)
    verify_tree(tree.pools)
    assert tree.pools.heads[USED] < 1.5 * words
    assert tree.pools.state[CLUSTERS] < 1.5 * clusters
    assert tree.pools.heads[FREE] < words


def test_memory_is_given_back() -> None:
    rng = random.Random(8)
    conjunctions, encoder = compiled(texts(3000, seed=8))
    tree = Changing(conjunctions, max_cap=5, min_size=2)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
    words = int(tree.pools.heads[USED])
    for conjunction in rng.sample(range(len(conjunctions)), 9 * len(conjunctions) // 10):
        tree.delete(conjunction)
    for _ in range(5):
        while tree.index.adjust(50):
            verify_tree(tree.pools)
    assert tree.pools.heads[USED] < words / 2
    some = events(20, seed=2)
    wanted = [[c for c in one if c in tree.living] for one in answers(Scan.build(conjunctions), encoder, some)]
    assert answers(tree.index, encoder, some) == wanted
    for conjunction in set(range(len(conjunctions))) - tree.living:
        tree.insert(conjunction)
    verify_tree(tree.pools)


def test_equal_rows_and_rows_without_predicates() -> None:
    """An l-node that nothing can divide grows; what has no predicates stays at the root and always holds."""
    conjunctions, encoder = compiled([f"n0 = 1 and n{1 + i % 5} >= {i % 8}" for i in range(60)] + ["true"])
    tree = Changing(conjunctions, max_cap=4, min_size=2)
    for conjunction in range(len(conjunctions)):
        tree.insert(conjunction)
        verify_tree(tree.pools)
    some = [{}, {"n0": 1}, {"n0": 1, "n1": 3, "n2": 7}]
    assert answers(tree.index, encoder, some) == answers(Scan.build(conjunctions), encoder, some)


@pytest.mark.parametrize("index", ["be-tree", "be-tree-batch"])
def test_ends_of_the_short_line(index: str) -> None:
    """Values and ranges around the places that are special: zero, where the line ends, where masks do."""
    edges = (0, 1, -1, 2**19 - 3, 2**19 - 2, 2**19 - 1, 2**19, -(2**19) + 2, -(2**19) + 1, -(2**19), 2**53, -(2**63))
    rules = [f"a {operator} {edge}" for operator in ("=", "!=", "<", "<=", ">", ">=") for edge in edges]
    rules += [f"a in (1, 2, {1 + span})" for span in (31, 32, 62, 63, 64, 65, 126, 127)]
    rules += [f"a in ({edge}, {edge + 2}, {edge - 3})" for edge in edges[:10]]
    rules += ["a in (0.5, 1)", "a in ('x', 'y')", "a in (true, false)", "a > 0.5", "a <= -0.5", "a = true"]
    m = eligo.Matcher(index=index, options={"max_cap": 2, "min_size": 2})
    m.add_many(enumerate(rules))
    values: list[Any] = [v + step for v in edges for step in (-1, 0, 1)] + [0.5, -0.5, -0.0, 1e300, True, "x", "z"]
    values += [1 + span for span in (31, 32, 62, 63, 64, 65, 126, 127)] + [32.5]
    for edge in edges[:10]:
        values += [Above(edge), Above(edge, inclusive=True), Below(edge), Below(edge, inclusive=True)]
        values += [Between(edge, edge + 1), Between(edge + 0.25, edge + 0.5), OneOf(edge, edge + 3), NoneOf(edge)]
    trees = [normalize(parse(rule)) for rule in rules]
    for value in values:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            continue
        event = {"a": value}
        assert m.match(event) == [i for i, tree in enumerate(trees) if matches(tree, event)], value
