"""A tree drawn as text: counts that add up, buckets in the words of rules, limits that hold."""

from __future__ import annotations

import random
from datetime import datetime

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eligo.compile.strings import Strings
from eligo.index.be_tree.draw import Part, drawn, measure, top, values_of
from eligo.index.be_tree.nodes import CLUSTERS, DEAD, LEAF, PARTITIONS, ROWS, SHAPE
from eligo.index.be_tree.tree import BeTree
from eligo.index.rows.line import BOOLEAN, NUMBER, STRING, TIME
from eligo.index.scan import Scan
from eligo.language.values import microseconds
from eligo.matcher import Matcher


def texts(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    some = []
    for i in range(count):
        parts = [f"n{a} between {rng.randrange(50)} and {50 + rng.randrange(50)}" for a in rng.sample(range(4), 2)]
        parts.append(f"city = 'c{rng.randrange(20)}'" if i % 2 else f"seen > timestamp '202{i % 6}-01-02 03:04:05'")
        some.append(" and ".join([*parts, "member"] if i % 3 == 0 else parts))
    return some


def tree(count: int, **options: int) -> tuple[BeTree, list[str]]:
    """A tree over rules, some of which have gone again, with the names of its attributes."""
    matcher = Matcher("scan")
    matcher.add_many(enumerate(texts(count, 1)))
    index = matcher.engine.rules.view.segments[0].index  # type: ignore[attr-defined]
    assert isinstance(index, Scan)
    built = BeTree.build(index.conjunctions, max_cap=options.get("max_cap", 6), min_size=2)
    built.delete(np.arange(0, count // 4, dtype=np.int64))
    return built, matcher.engine.rules.recipe.attributes.names


def everyone(part: Part) -> list[Part]:
    return [part, *(one for below in part.parts for one in everyone(below))]


def test_counts_add_up() -> None:
    index, names = tree(800)
    pools = index.pools
    whole = top(pools, index.strings, names, 50, 10_000)
    assert whole.below == pools.state[ROWS]
    for part in everyone(whole):
        assert part.more == 0
        assert part.below == part.here + sum(one.below for one in part.parts)
    measures = measure(pools)
    living = [c for c in range(pools.state[CLUSTERS]) if pools.cluster[8 * c + SHAPE] & 0x7F != DEAD]
    sizes = sorted(int(pools.cluster[8 * c + LEAF] >> 32) for c in living)
    assert measures.c_nodes == len(living)
    assert_array_equal(measures.sizes, [size for size in sizes if size])
    assert 0 < measures.p_nodes <= pools.state[PARTITIONS]
    assert 1 < measures.cuts < measures.depth
    assert sum(one.here for one in everyone(whole)) == measures.sizes.sum()


def test_limits_hold_and_what_is_left_out_is_counted() -> None:
    index, names = tree(800)
    whole = top(index.pools, index.strings, names, 2, 3)
    for part in everyone(whole):
        assert len(part.parts) <= 3
        assert part.below == part.here + part.more_below + sum(one.below for one in part.parts)
    assert all(not low.parts for one in whole.parts for low in one.parts)
    assert whole.more
    lines = drawn(index.pools, index.strings, names, 2, 3)
    assert any(f"… {whole.more:,} more" in line for line in lines)
    assert len(lines) < 40
    nothing = top(index.pools, index.strings, names, 0, 3)
    assert not nothing.parts
    assert nothing.below == nothing.here + nothing.more_below


def test_a_person_reads_names_and_values() -> None:
    index, names = tree(800)
    page = "\n".join(drawn(index.pools, index.strings, names, 20, 1000))
    for word in ("all conjunctions", "city, a string", "city = 'c", "n0, a number", "≤ n", "rows of an l-node", "█"):
        assert word in page
    assert f"{int(index.pools.state[ROWS]):,}" in page


def test_an_empty_tree() -> None:
    index = BeTree.empty(Strings())
    assert measure(index.pools).leaf_sizes() == "none with rows"
    lines = drawn(index.pools, index.strings, [])
    assert any(line.startswith("all conjunctions") for line in lines)


def coordinate(value: float) -> int:
    bits = int(np.array([value]).view(np.int64)[0])
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


LOWEST, HIGHEST = -(2**63), 2**63 - 1
NOON = microseconds(datetime(2026, 1, 31, 12))


@pytest.mark.parametrize(
    ("kind", "low", "high", "text"),
    [
        (NUMBER, coordinate(2.0), coordinate(4.0) - 1, "2 ≤ x < 4"),
        (NUMBER, coordinate(5.0), coordinate(5.0), "x = 5"),
        (NUMBER, 0, HIGHEST, "x ≥ 0"),
        (NUMBER, LOWEST, -1, "x < 0"),
        (NUMBER, coordinate(-2.5), coordinate(-1.25) - 1, "-2.5 ≤ x < -1.25"),
        (NUMBER, LOWEST, HIGHEST, "x is anything"),
        (BOOLEAN, 1, 1, "x is true"),
        (BOOLEAN, LOWEST, 0, "x is false"),
        (BOOLEAN, 0, 1, "x is false or true"),
        (BOOLEAN, 2, 3, "x is an object"),
        (TIME, NOON, NOON, "x = 2026-01-31 12:00:00"),
        (TIME, NOON, NOON + 999_999, "2026-01-31 12:00:00 ≤ x < 2026-01-31 12:00:01"),
        (TIME, 0, HIGHEST, "x ≥ 1970-01-01 00:00:00"),
        (STRING, 1, 1, "x = 'b'"),
        (STRING, 4, 7, "x in ('e', 'f')"),
        (STRING, 5, 7, "x = 'f'"),
        (STRING, 0, 7, "x in ('a', 'b', 'c', 'd', … 2 more)"),
    ],
)
def test_buckets_in_the_words_of_rules(kind: int, low: int, high: int, text: str) -> None:
    strings = Strings()
    for letter in "abcdef":
        strings.intern(letter)
    assert values_of("x", kind, low, high, strings) == text
