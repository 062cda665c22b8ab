"""PS-Tree: intervals that come and go against looking at each, and predicates of one attribute against the reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eligo.compile.compiled import I64
from eligo.errors import DuplicateRuleError, EventError, LimitError, RuleTypeError, UnknownRuleError
from eligo.index.rows.allocator import FREE, USED
from eligo.language.reference import Moment, operand_edges, samples
from eligo.language.reference import matches as holds
from eligo.language.tree import Predicate, Value
from eligo_lab.intervals.attribute import AttributeTree, elements
from eligo_lab.intervals.single import LARGEST, LEAST, PsTree

patient = settings(deadline=None)

# Intervals.

bounds = st.one_of(st.integers(-4, 12), st.sampled_from((LEAST, LEAST + 1, LARGEST - 1, LARGEST)))
steps = st.lists(st.one_of(st.tuples(bounds, bounds), st.integers(0, 50)), max_size=50)


class Intervals:
    """A tree and what should be in it."""

    def __init__(self, low: I64, high: I64) -> None:
        self.tree = PsTree.build(low, high)
        self.there = dict(enumerate(zip(low.tolist(), high.tolist(), strict=True)))
        self.next = len(low)

    def insert(self, low: int, high: int) -> None:
        self.tree.insert(self.next, low, high)
        self.there[self.next] = low, high
        self.next += 1

    def delete(self, number: int) -> None:
        self.tree.delete(number)
        del self.there[number]

    def borders(self) -> set[int]:
        """Where spaces should begin, but for the first one."""
        some = [(low, high) for low, high in self.there.values() if low <= high]
        return {low for low, _ in some if low > LEAST} | {high + 1 for _, high in some if high < LARGEST}

    def check(self) -> None:
        borders = self.borders()
        assert self.tree.spaces == len(borders) + 1
        points = np.array(sorted({LEAST, LARGEST, *borders, *(b - 1 for b in borders)}), np.int64)
        pairs = np.array(list(self.there.values()), np.int64).reshape(-1, 2)
        held = (pairs[:, 0] <= points[:, None]) & (points[:, None] <= pairs[:, 1])
        assert np.array_equal(self.tree.count(points), held.sum(axis=1))
        assert len(set(self.tree.locate(points).tolist())) == len(borders) + 1
        offsets, numbers = self.tree.matches(points)
        known = np.array(list(self.there), np.int64)
        for p in range(len(points)):
            assert sorted(numbers[offsets[p] : offsets[p + 1]]) == sorted(known[held[p]])

    def empty(self) -> None:
        for number in list(self.there):
            self.delete(number)
        self.check()
        pools, runs = self.tree._pools, self.tree._runs
        assert pools.tree_heads[USED] - 2 == pools.tree_heads[FREE]
        assert pools.heads[USED] - 2 == pools.heads[FREE]
        assert runs[USED] - runs[FREE] == 16  # the numbers of the last window


def none() -> I64:
    return np.zeros(0, np.int64)


@patient
@given(first=st.lists(st.tuples(bounds, bounds), max_size=20), then=steps)
@example(first=[(LEAST, LARGEST)], then=[0, (LEAST, LEAST), (LARGEST, LARGEST)])
@example(first=[(5, 3)], then=[(6, 2), 0])
def test_intervals_come_and_go(first: list[tuple[int, int]], then: list[tuple[int, int] | int]) -> None:
    ends = np.array(first, np.int64).reshape(-1, 2)
    intervals = Intervals(ends[:, 0], ends[:, 1])
    for step in then:
        if isinstance(step, tuple):
            intervals.insert(*step)
        elif intervals.there:
            intervals.delete(list(intervals.there)[step % len(intervals.there)])
    intervals.check()
    intervals.empty()


@pytest.mark.parametrize(
    ("domain", "width"), [(10**12, 10**9), (10**12, 10**12), (3_000, 1), (3_000, 2_000), (40, 2), (40, 40)]
)
def test_many_intervals_come_and_go(domain: int, width: int) -> None:
    """Windows are cut in two, become crowded, and are joined again."""
    rng = np.random.default_rng(domain + width)
    low = rng.integers(0, domain, 300)
    intervals = Intervals(low, low + rng.integers(0, width + 1, 300))
    for share in (0.8, 0.3, 0.9, 0.1):
        for _ in range(500):
            if rng.random() < share or not intervals.there:
                begin = int(rng.integers(0, domain))
                intervals.insert(begin, begin + int(rng.integers(0, width + 1)))
            else:
                intervals.delete(list(intervals.there)[int(rng.integers(len(intervals.there)))])
        intervals.check()
    intervals.empty()


def test_narrow_ones_then_wide_ones_then_narrow_ones() -> None:
    """What goes through windows of few spaces grows, so that they become one; and the other way round."""
    rng = np.random.default_rng(5)
    low = rng.integers(0, 10_000, 500)
    intervals = Intervals(low, low + 3)
    wide = range(500, 2_000)
    for _ in wide:
        intervals.insert(int(rng.integers(0, 1_000)), 9_000 + int(rng.integers(0, 1_000)))
    intervals.check()
    assert int(intervals.tree._pools.heads[USED]) < 20 * len(intervals.there)  # words; not windows times intervals
    for number in wide:
        intervals.delete(number)
    intervals.check()
    intervals.empty()


def test_the_example_of_the_paper() -> None:
    """The PS-Tree paper §4.4: age, in [1, 100]."""
    tree = PsTree()
    assert tree.spaces == 1
    tree.insert(1, 20, 60)
    tree.insert(2, 30, 80)
    ages = np.arange(1, 101)

    def spaces() -> list[tuple[int, int, int]]:
        """First and last age of each space, and how many intervals cover it."""
        located, count = tree.locate(ages), tree.count(ages)
        first = [0, *(np.flatnonzero(np.diff(located)) + 1).tolist()]
        return [
            (int(ages[a]), int(ages[b - 1]), int(count[a])) for a, b in zip(first, [*first[1:], len(ages)], strict=True)
        ]

    assert spaces() == [(1, 19, 0), (20, 29, 1), (30, 60, 2), (61, 80, 1), (81, 100, 0)]
    tree.delete(2)
    assert spaces() == [(1, 19, 0), (20, 60, 1), (61, 100, 0)]
    assert tree.spaces == 3


def test_the_figure_of_the_paper() -> None:
    """The PS-Tree paper Figure 2(b)."""
    tree = PsTree.build(np.array([-5, 1]), np.array([-1, 5]))
    assert tree.spaces == 5
    offsets, numbers = tree.matches(np.array([-128, -5, -1, 0, 1, 2, 5, 127]))
    assert np.diff(offsets).tolist() == [0, 1, 1, 0, 1, 1, 1, 0]
    assert numbers.tolist() == [0, 0, 1, 1, 1]


def test_events_are_counted() -> None:
    tree = PsTree.build(np.array([0]), np.array([9]))
    points = np.array([-1, 0, 9])
    assert tree.events(points).tolist() == [0, 0, 0]
    tree.observe(np.array([0, 5, 9, 70]))
    assert tree.events(points).tolist() == [0, 3, 3]
    tree.insert(1, 5, 20)  # the part that is new has what was counted before
    assert tree.events(np.array([0, 5, 10, 21])).tolist() == [3, 3, 1, 1]
    tree.observe(np.array([5, 6]))
    tree.delete(1)
    assert tree.events(points).tolist() == [0, 5, 5]
    for number in range(2, 40):  # windows made anew keep what was counted
        tree.insert(number, 2 * number, 2 * number)
    assert tree.events(np.array([-1, 0, 9, 200])).tolist() == [0, 5, 5, 1]


def test_lists_stay_linear_however_wide_intervals_are() -> None:
    rng = np.random.default_rng(3)
    sizes = []
    for count in (1_000, 4_000):
        ends = np.sort(rng.integers(0, 10**9, (2, count)), axis=0)
        tree = PsTree.build(ends[0], ends[1])
        sizes.append(int(tree._pools.heads[USED]) / count)
    assert max(sizes) < 8  # words an interval; a list for each space would have hundreds


def test_one_bound_of_many() -> None:
    """A border that all intervals share is no reason to look at them on its other side."""
    count = 2_000
    intervals = Intervals(np.zeros(count, np.int64), np.arange(count) % 7)
    intervals.check()
    for number in range(0, count, 2):
        intervals.delete(number)
    intervals.check()
    intervals.empty()


def test_what_makes_no_sense_is_refused() -> None:
    tree = PsTree.build(np.array([1, 5]), np.array([2, 3]))
    for number in (0, 1):
        with pytest.raises(DuplicateRuleError, match=f"interval {number} is already there"):
            tree.insert(number, 7, 8)
    for number in (-1, 2, 10**6):
        with pytest.raises(UnknownRuleError, match=f"interval {number} is not there"):
            tree.delete(number)
    for number, low, high in ((-1, 0, 0), (2**29, 0, 0), (3, 0, 2**63), (3, -(2**63) - 1, 0)):
        with pytest.raises(LimitError, match=str(number)):
            tree.insert(number, low, high)
    tree.insert(7, 0, -1)
    tree.insert(8, 0, 0)
    for number in (7, 8, 1):
        tree.delete(number)
    with pytest.raises(UnknownRuleError):
        tree.delete(8)
    assert tree.count(np.array([0, 1, 2, 3])).tolist() == [0, 1, 1, 0]


def test_what_would_take_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = np.arange(200), np.arange(200) + 50
    monkeypatch.setattr("eligo_lab.intervals.single._MOST_WORDS", 100)
    with pytest.raises(LimitError, match="words of lists"):
        PsTree.build(low, high)
    monkeypatch.setattr("eligo_lab.intervals.single._MOST", 100)
    with pytest.raises(LimitError, match="200 intervals"):
        PsTree.build(low, high)


def test_where_no_address_space_is_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object, **more: object) -> None:
        raise OSError("no memory")

    monkeypatch.setattr("eligo.index.rows.growable.mmap.mmap", refused)
    rng = np.random.default_rng(7)
    low = rng.integers(0, 10**12, 2_000)
    intervals = Intervals(low, low + rng.integers(0, 10**10, 2_000))
    intervals.insert(0, 10**11)
    intervals.tree.insert(300_000, 5, 6)
    intervals.there[300_000] = 5, 6
    intervals.check()
    assert intervals.tree.bytes() < 10**7
    tree = AttributeTree()
    tree.insert(1, Predicate("a", ">", ("x" * 70_000,)))
    assert tree.matching("x" * 70_001) == [1]


# Predicates of one attribute.

_near_one = (math.nextafter(1.0, 0.0), 1.0, math.nextafter(1.0, 2.0))
NUMBERS: tuple[int | float, ...] = (
    0, 0.0, -0.0, 5e-324, -5e-324, 1, 2, -1, 0.5, *_near_one, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, float(2**53),
    -(2**53) - 1, -(2**53), 2**60 + 7, -(2**60) - 7, 2**63 - 1, 2**63 - 2, 2.0**63, -(2**63), -(2**63) + 1, 1.8e308,
    1e300, math.inf, -math.inf,
)  # fmt: skip
STRINGS = (
    "", "\0", "\0\0", "a", "a\0", "ab", "abcdef", "abcdef\0", "abcdefg", "abcdefg\0", "abcdefgh", "abcdefghijklmn",
    "abcdefghijklm\0", "abcdefghijklmno", "abcdefg\U0010ffff", "b", "é", "\ud7ff", "\ue000", "\U0010ffff", "x" * 300,
    "x" * 300 + "y",
)  # fmt: skip
TIMES = (
    date(1, 1, 1), datetime(1, 1, 1, 0, 0, 0, 1, tzinfo=UTC), date(2026, 1, 31), datetime(2026, 1, 31),
    datetime(2026, 1, 31, tzinfo=UTC) + timedelta(microseconds=1), datetime.max.replace(tzinfo=UTC),
)  # fmt: skip

_numbers = st.one_of(
    st.sampled_from(NUMBERS), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.integers(-3, 9)
)
_strings = st.one_of(st.sampled_from(STRINGS), st.text(alphabet="ab\0", max_size=16))
_times = st.one_of(st.sampled_from(TIMES), st.datetimes(timezones=st.just(UTC)))
_ordered = (_numbers, _strings, _times)
anything = st.one_of(*_ordered, st.booleans())


def _of(strategy: st.SearchStrategy[Any], count: int) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.tuples(*[strategy] * count)


def _predicate(operator: str, values: st.SearchStrategy[tuple[Any, ...]]) -> st.SearchStrategy[Predicate]:
    return st.builds(Predicate, st.just("a"), st.just(operator), values, st.booleans())


predicates = st.one_of(
    _predicate("=", _of(anything, 1)),
    *(_predicate(operator, st.one_of(*(_of(kind, 1) for kind in _ordered))) for operator in ("<", "<=", ">", ">=")),
    _predicate("in", st.lists(anything, min_size=1, max_size=4).map(tuple)),
    _predicate("between", st.one_of(*(_of(kind, 2) for kind in _ordered))),
    _predicate("like", st.tuples(_strings.map(lambda text: text + "%"))),
)


def values_around(predicates: list[Predicate]) -> list[Value]:
    operands = [value for predicate in predicates for value in operand_edges(predicate)]
    return [value for value in samples(operands) if not isinstance(value, Moment)]


def check(tree: AttributeTree, there: dict[int, Predicate], values: list[Value]) -> None:
    for value in values:
        true = [number for number, predicate in there.items() if holds(predicate, {"a": value})]
        assert tree.matching(value) == sorted(true)
        assert tree.count(value) == len(true)


def is_empty(tree: AttributeTree) -> bool:
    heads = tree._pools.tree_heads
    return tree.spaces == 1 and len(tree) == 0 and heads[USED] - 2 == heads[FREE]


@patient
@given(
    given=st.lists(predicates, max_size=8),
    out=st.lists(st.integers(0, 50), max_size=6),
    more=st.lists(anything, max_size=8),
    last=st.randoms(use_true_random=False),
)
@example(
    given=[Predicate("a", "like", (text + "%",), False) for text in ("", "a", "abcdefg", "abcdefgh", "abcdefghijklmn")],
    out=[], more=list(STRINGS), last=Random(1),
)  # fmt: skip
@example(given=[Predicate("a", "=", (n,), True) for n in NUMBERS], out=[0, 5], more=list(NUMBERS), last=Random(2))
@example(given=[Predicate("a", ">", (t,)) for t in (*STRINGS, *TIMES)], out=[], more=list(STRINGS), last=Random(3))
def test_predicates_come_and_go(given: list[Predicate], out: list[int], more: list[Value], last: Random) -> None:
    tree, there = AttributeTree(), dict(enumerate(given))
    for number, predicate in there.items():
        tree.insert(number, predicate)
    values = values_around(given) + more
    check(tree, there, values)
    for number in out:
        if number in there:
            tree.delete(number)
            del there[number]
    check(tree, there, values)
    for number in last.sample(list(there), len(there)):
        tree.delete(number)
    assert is_empty(tree)
    check(tree, {}, values)


@patient
@given(given=st.lists(predicates, max_size=6), values=st.lists(anything, min_size=2, max_size=10))
def test_values_in_one_space_satisfy_the_same(given: list[Predicate], values: list[Value]) -> None:
    tree = AttributeTree()
    for number, predicate in enumerate(given):
        tree.insert(number, predicate)
    answers = dict[int, list[bool]]()
    for value in (*values, *values_around(given)):
        true = [holds(predicate, {"a": value}) for predicate in given]
        assert answers.setdefault(tree.space_of(value), true) == true


def one(operator: Any, *values: Value, negated: bool = False) -> Predicate:
    return Predicate("a", operator, values, negated)


def test_spaces_of_numbers() -> None:
    tree = AttributeTree()
    assert tree.spaces == 1
    tree.insert(1, one("between", 20, 60))
    tree.insert(2, one("between", 30, 80))
    assert tree.spaces == 6  # the five of the PS-Tree paper §4.4, and what is no number
    tree.delete(2)
    assert tree.spaces == 4
    assert tree.space_of(20) == tree.space_of(60.0) != tree.space_of(math.nextafter(60, 61))
    assert tree.space_of("x") == tree.space_of(True) == tree.space_of(date(2026, 1, 1))
    tree.delete(1)
    assert is_empty(tree)


@pytest.mark.parametrize(
    ("below", "above"),
    [
        (2**53, 2**53 + 1), (2**53 + 1, 2**53 + 2), (2.0**53, 2**53 + 1), (-(2**53) - 1, -(2**53)),
        (2**63 - 2, 2**63 - 1), (2**63 - 1, 2.0**63), (-(2**63), -(2**63) + 1), (math.nextafter(-(2.0**63), -math.inf),
        -(2**63)), (1.7976931348623157e308, math.inf), (-math.inf, -1.7976931348623157e308), (-5e-324, -0.0),
        (0.0, 5e-324), (1.0, math.nextafter(1.0, 2.0)), ("", "\0"), ("abcdef", "abcdef\0"), ("abcdefg", "abcdefg\0"),
        ("abcdefg\0", "abcdefg\0\0"), ("abcdefghijklmn", "abcdefghijklmn\0"), (False, True),
        (date(1, 1, 1), datetime(1, 1, 1, 0, 0, 0, 1)),
    ],
)  # fmt: skip
def test_neighbours_are_told_apart(below: Value, above: Value) -> None:
    tree = AttributeTree()
    tree.insert(1, one("=", below))
    tree.insert(2, one("=", above, negated=True))
    if not isinstance(below, bool):
        tree.insert(3, one("<", above))
        tree.insert(4, one(">", below))
        tree.insert(5, one("<=", below, negated=True))
        assert (tree.matching(below), tree.matching(above)) == ([1, 2, 3], [4, 5])
    else:
        assert (tree.matching(below), tree.matching(above)) == ([1, 2], [])
    for number in range(1, len(tree) + 1):
        tree.delete(number)
    assert is_empty(tree)


def test_equal_numbers_are_one() -> None:
    tree = AttributeTree()
    for number, value in enumerate((0, 0.0, -0.0)):
        tree.insert(number, one("=", value))
    assert tree.matching(-0.0) == tree.matching(0) == [0, 1, 2]
    assert tree.spaces == 4
    tree.insert(3, one(">=", 2**53))
    tree.insert(4, one(">=", 2.0**53))
    assert tree.space_of(2**53) == tree.space_of(2.0**53)
    assert tree.spaces == 5


def test_prefixes_nest() -> None:
    tree = AttributeTree()
    for number, prefix in enumerate(("", "S", "Sun", "Sunda", "Sunday", "Sunday m", "Sunday morning")):
        tree.insert(number, one("like", prefix + "%"))
    assert tree.matching("Sunday morning and evening") == list(range(7))
    assert tree.matching("Sunday mornin") == list(range(6))
    assert tree.matching("Sunday") == list(range(5))
    assert tree.matching("Sun") == [0, 1, 2]
    assert (tree.matching("Suo"), tree.matching("Sum"), tree.matching(""), tree.matching(3)) == (
        [0, 1],
        [0, 1],
        [0],
        [],
    )
    tree.insert(7, one("like", "Sunday", negated=False))  # without a wildcard it is one string
    assert tree.matching("Sunday")[-1] == 7
    for number in (3, 0, 7, 6, 1, 2, 5, 4):
        tree.delete(number)
    assert is_empty(tree)


def test_very_long_strings() -> None:
    tree, long = AttributeTree(), "y" * 100_000
    tree.insert(1, one("=", long))
    tree.insert(2, one("like", long + "%"))
    tree.insert(3, one(">", long + "y"))
    assert tree.matching(long) == [1, 2]
    assert tree.matching(long + "x") == [2]
    assert tree.matching(long + "yy") == [2, 3]
    assert tree.matching(long[:-1]) == []
    for number in (2, 1, 3):
        tree.delete(number)
    assert is_empty(tree)


def test_absent_values_satisfy_nothing() -> None:
    tree = AttributeTree()
    tree.insert(1, one("=", 5, negated=True))
    assert tree.matching(None) == tree.matching(math.nan) == []
    assert tree.matching("x") == [1]


def test_events_of_an_attribute_are_counted() -> None:
    tree = AttributeTree()
    for value in (1, "x", 70):
        tree.observe(value)
    assert tree.events(False) == 3
    tree.insert(1, one(">", 5))
    tree.observe(6)
    assert (tree.events(7), tree.events(5)) == (4, 3)


@pytest.mark.parametrize(
    ("act", "kind", "said"),
    [
        (lambda tree: tree.insert(1, one("=", 5)), DuplicateRuleError, "predicate 1 is already there"),
        (lambda tree: tree.delete(2), UnknownRuleError, "predicate 2 is not there"),
        (lambda tree: tree.insert(2, one("like", "a%b")), RuleTypeError, "a like 'a%b'"),
        (lambda tree: tree.insert(2, one("is null")), RuleTypeError, "a is null"),
        (lambda tree: tree.insert(2, one("contains any", 5)), RuleTypeError, "a contains any"),
        (lambda tree: tree.matching(2**63), EventError, "9223372036854775808 does not fit 64 bits"),
        (lambda tree: tree.matching([1]), EventError, "is no value"),
    ],
)
def test_what_a_tree_does_not_take(act: Callable[[AttributeTree], object], kind: type[Exception], said: str) -> None:
    tree = AttributeTree()
    tree.insert(1, one("=", 5))
    with pytest.raises(kind, match=said):
        act(tree)
    assert tree.matching(5) == [1]
    assert len(tree) == 1


def test_elements() -> None:
    """What the top of attribute.py says of each kind."""
    assert [len(list(elements(value))) for value in (5, 2**60 + 1, 0.5, True, date(2026, 1, 1))] == [3, 3, 3, 2, 2]
    assert list(elements(2**53 + 1))[1:] == [list(elements(2**53))[1], 1]
    assert [len(list(elements("x" * length))) for length in (0, 6, 7, 8, 14, 15)] == [2, 2, 2, 3, 3, 4]
