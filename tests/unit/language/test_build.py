"""Rules in Python, and trees made by hand."""

from __future__ import annotations

import enum
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest

from eligo.errors import EligoError, LimitError, RuleSyntaxError, RuleTypeError
from eligo.language import (
    And,
    Constant,
    Join,
    Limits,
    Node,
    Not,
    Or,
    Predicate,
    Quantified,
    attr,
    exists,
    forall,
    parse,
    read,
)

P = Predicate
x = attr("x")


class Colour(str, enum.Enum):  # noqa: UP042 - its str() is 'Colour.RED', which must not get in
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


GOOD = [
    (x == 1, "x = 1"),
    (x != 1, "x != 1"),
    (x < 1, "x < 1"),
    (x <= 1, "x <= 1"),
    (x > 1, "x > 1"),
    (x >= 1, "x >= 1"),
    (attr("age") >= 18, "age >= 18"),
    (np.int64(18) <= attr("age"), "age >= 18"),
    (x == 1.5, "x = 1.5"),
    (x.is_in(["US", "CA"]), "x in ('US', 'CA')"),
    (x.is_in({2, 1}), "x in (1, 2)"),
    (x.is_in(np.array([1, 2])), "x in (1, 2)"),
    (x.not_in(c for c in "ab"), "x not in ('a', 'b')"),
    (x.between(1, 2), "x between 1 and 2"),
    (x.not_between(1, 2), "x not between 1 and 2"),
    (x.like("Sun%"), "x like 'Sun%'"),
    (x.not_like("Sun%"), "x not like 'Sun%'"),
    (x.like(r"10\%"), r"x like '10\%'"),
    (x.like("10!%", escape="!"), r"x like '10\%'"),
    (x.not_like(r"\!!", escape="!"), r"x not like '\\!'"),
    (x.is_null(), "x is null"),
    (x.is_not_null(), "x is not null"),
    (x.contains_any(["a"]), "x contains any ('a')"),
    (x.contains_all(["a"]), "x contains all ('a')"),
    (x.contains_none(["a"]), "x contains none ('a')"),
    (x & attr("y") | ~attr("z"), "x and y or not z"),
    ((x == 1) & attr("y") & (x == 2), "x = 1 and y and x = 2"),
    (x & (attr("y") == 1), "x and y = 1"),
    (x | attr("y") | (x == 2), "x or y or x = 2"),
    (~(x == 1), "not x = 1"),
    (exists("d", lambda d: attr("price") < d.price), "exists d (price < d.price)"),
    (exists("d", lambda d: d.price > attr("price")), "exists d (price < d.price)"),
    (forall("d", lambda d: attr("isbn") != d["is bn"]), "forall d (isbn != d.`is bn`)"),
    (exists("d", lambda d: (d.price > 5) & d.ok & attr("d.e")), "exists d (d.price > 5 and d.ok and `d.e`)"),
    (exists("d", lambda d: d.ok), "exists d (d.ok)"),
]


@pytest.mark.parametrize(("built", "text"), GOOD, ids=[text for _, text in GOOD])
def test_builds(built, text):
    assert isinstance(built, Node)
    assert repr(read(built)) == repr(parse(text))


VALUES = [
    (True, True),
    (np.True_, True),
    (np.int8(-5), -5),
    (np.uint64(2**63 - 1), 2**63 - 1),
    (np.float64(0.5), 0.5),
    (np.float32(0.1), float(np.float32(0.1))),
    (np.longdouble(2), 2.0),
    (np.str_("a"), "a"),
    (Colour.RED, "red"),
    (Level.HIGH, 3),
    (date(2026, 1, 31), date(2026, 1, 31)),
    (datetime(2026, 1, 31, 12), datetime(2026, 1, 31, 12, tzinfo=UTC)),
    (datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 31, 10, tzinfo=UTC)),
    (Decimal("5.00"), 5),
    (Decimal("0.10"), 0.1),
    (Decimal("9223372036854775807.0"), 2**63 - 1),
    (Decimal(2**63), 2.0**63),
    (np.datetime64("2026-01-31"), date(2026, 1, 31)),
    (np.datetime64("2026-01-31T12:00:00.5", "ns"), datetime(2026, 1, 31, 12, 0, 0, 500000, UTC)),
]


@pytest.mark.parametrize(("given", "kept"), VALUES, ids=[repr(given) for given, _ in VALUES])
def test_values_become_plain(given, kept):
    (value,) = (x == given).values
    assert type(value) is type(kept)
    assert repr(value) == repr(kept)


BAD = [
    (lambda: x == math.nan, "NaN", "is null"),
    (lambda: x.is_in([1, np.nan]), "NaN", "is null"),
    (lambda: x < math.inf, "infinity", "one-sided"),
    (lambda: x.between(-math.inf, 5), "infinity", "is not null"),
    (lambda: x == 2**63, "64 bits", ""),
    (lambda: x == np.uint64(2**63), "64 bits", ""),
    (lambda: x == None, "None is not a value", ".is_null()"),  # noqa: E711
    (lambda: x != None, "None is not a value", ".is_not_null()"),  # noqa: E711
    (lambda: x == Decimal("nan"), "NaN", "is null"),
    (lambda: x < Decimal("-inf"), "infinity", "one-sided"),
    (lambda: x.is_in([1, Decimal("1e400")]), "too large for a float", "one-sided"),
    (lambda: x == 1j, "complex", ""),
    (lambda: x == [1], "not a value", "in"),
    (lambda: x == "\ud800", "surrogate", ""),
    (lambda: x == np.datetime64("NaT"), "NaT", ""),
    (lambda: x == np.datetime64("2026-01-31T12:00:00.000000001"), "microseconds", ""),
    (lambda: x == np.datetime64("20000-01-31"), "microseconds in the years", ""),
    (lambda: x == datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "years 1 to 9999", ""),
    (lambda: x < True, "Booleans", ""),
    (lambda: x.between(1, "a"), "two kinds", ""),
    (lambda: x.like(5), "takes a string", ""),
    (lambda: x.like(5, escape="!"), "takes a string", ""),
    (lambda: x.like("a\\"), "is the last character", ""),
    (lambda: x.like("a!b", escape="!"), "stands before 'b'", "write !!"),
    (lambda: x.not_like("a", escape="ab"), "one character", ""),
    (lambda: x.not_like("a", escape=None), "one character", ""),
    (lambda: x.is_in("US"), "list of values", "['US']"),
    (lambda: x.is_in(5), "list of values", ""),
    (lambda: x.is_in([1, None]), "null", ""),
    (lambda: x == attr("y"), "two attributes of the event", "exists"),
    (lambda: exists("d", lambda d: d.a < d.b), "two attributes of the document", ""),
    (lambda: x >= 18 & attr("y"), "expected an expression", "parentheses"),
    (lambda: x & True, "expected an expression", ""),
    (lambda: exists("d", True), "function of the document", "lambda d"),
    (lambda: exists("d", lambda d: True), "expected an expression", ""),
    (lambda: 1 in x, "'in' cannot", "contains_any"),
    (lambda: attr(5), "is a string", ""),
]


@pytest.mark.parametrize(("build", "reason", "hint"), BAD, ids=range(len(BAD)))
def test_refuses(build, reason, hint):
    with pytest.raises(RuleTypeError) as caught:
        build()
    assert reason in caught.value.reason
    assert hint in caught.value.hint


FOREIGN = [
    (x.is_in, "empty"),
    (lambda _: attr(""), "needs a name"),
    (lambda _: exists("not", lambda d: x), "cannot name"),
    (lambda _: exists("d.e", lambda d: x), "cannot name"),
    (lambda _: exists("d", lambda d: exists("e", lambda e: x)), "inside another"),
    (lambda _: read(And(())), "And of nothing"),
    (lambda _: read(P("x", "!=", (1,))), "unknown operator"),
    (lambda _: read(P("x", "=", ())), "takes 1 values, not 0"),
    (lambda _: read(P("x", "between", (1,))), "takes 2 values, not 1"),
    (lambda _: read(P("x", "in", ())), "empty"),
    (lambda _: read(P("x", "=", (math.nan,))), "NaN"),
    (lambda _: read(P("x", "=", (1,), False, "d")), "not the variable"),
    (lambda _: read(Join("x", "=", "d", "y")), "not the variable"),
    (lambda _: read(Quantified("exists", "d", Join("x", "in", "d", "y"))), "does not compare"),
    (lambda _: read(Quantified("some", "d", Constant(True))), "unknown quantifier"),
    (lambda _: read(Node()), "unknown node"),
    (lambda _: read(b"x = 1"), "not a bytes"),
    (lambda _: read(None), "not a NoneType"),
    (lambda _: read(["x = 1"]), "not a list"),
]


@pytest.mark.parametrize(("build", "reason"), FOREIGN, ids=range(len(FOREIGN)))
def test_refuses_trees(build, reason):
    with pytest.raises(RuleSyntaxError) as caught:
        build([])
    assert reason in caught.value.reason


def test_foreign_trees_are_cleaned():
    one = P("x", "in", (np.int64(1), Level.HIGH))
    tree = read(And((Or((one,)), Quantified("exists", "d", And((Constant(True),))))))
    assert repr(tree) == repr(And((P("x", "in", (1, 3)), Quantified("exists", "d", Constant(True)))))
    assert type(tree.children[0].values[1]) is int


def test_limits_are_those_of_the_reader():
    wide = x.is_in(range(100_000))
    assert len(wide.values) == 100_000
    with pytest.raises(LimitError, match="100,000 values"):
        read(wide)
    deep = x.as_node()
    for _ in range(50_000):
        deep = Not(deep)
    with pytest.raises(LimitError, match="257 levels"):
        read(deep)
    assert read(deep, Limits(depth=50_001)) is deep


def test_attributes_have_no_truth_value():
    for ask in (lambda: bool(x), lambda: x and x, lambda: 1 <= x <= 2, lambda: list(x), lambda: hash(x)):
        with pytest.raises((TypeError, EligoError)):
            ask()
    assert repr(x) == "attr('x')"
