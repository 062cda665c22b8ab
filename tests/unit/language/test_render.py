"""Trees as text, with the fewest parentheses."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from eligo.language import And, Constant, Join, Limits, Node, Not, Or, Predicate, Quantified, parse, render

P = Predicate

# Each is its own rendering.
CANONICAL = [
    "true",
    "not false",
    "x = 1",
    "x != 1",
    "x = 1.0",
    "x = false",
    "x != true",
    "x = -0.0",
    "x = 1e+300",
    "x >= -9223372036854775808",
    "x in (1, 'a', true)",
    "x not in (1)",
    "x between 1 and 5 and y",
    "x not between 'a' and 'b'",
    "x like 'it''s%'",
    "x not like ''",
    r"x like '\%\_\\%' and x not like '\\'",
    "x is null or x is not null",
    "x contains any (1) and x contains all (1)",
    "x contains none (1) and x not contains all (1)",
    "active and not active",
    "a or b and c",
    "(a or b) and c",
    "a and (b and c) and d",
    "a or (b or c)",
    "not (a and b)",
    "not not a",
    "a and not (b or c)",
    "x < date '2026-01-31'",
    "x < timestamp '2026-01-31 12:00:00Z'",
    "x < timestamp '0001-01-01 00:00:00.000001Z'",
    "`and` and `TRUE` and `two words` and `a``b` and ```` and `1a` and `a.`",
    "a.b.c and größe and date and timestamp and any",
    "exists d (price < d.price)",
    "not exists d (a or b) and forall doc (a != doc.a and doc.b != 1)",
    "exists d (`d` and `d.e` and d.e and d.`two words` and d.and and e.d and date)",
    "exists d (x = d.`a``b` and d.0)",
    "d and d.e",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_renders_as_written(text):
    assert render(parse(text)) == text


SHORTER = [
    ("((x == 1))", "x = 1"),
    ("X <> 1 AND (Y)", "X != 1 and Y"),
    ("active = true", "active"),
    ("18 <= age", "age >= 18"),
    ("(a and b) or (c and d)", "a and b or c and d"),
    ("not (x = 1)", "not x = 1"),
    ("x not contains any (1)", "x contains none (1)"),
    ("x = .5 or x = 1e3", "x = 0.5 or x = 1000.0"),
    ("x = timestamp '2026-01-31T12:00+01:00'", "x = timestamp '2026-01-31 11:00:00Z'"),
    ("exists d (d.a > a)", "exists d (a < d.a)"),
]


@pytest.mark.parametrize(("text", "rendered"), SHORTER)
def test_renders_shorter(text, rendered):
    assert render(parse(text)) == rendered


UNREADABLE = [
    (And((P("x", "=", (1,)),)), "x = 1"),
    (Not(Or((And((Or((P("x", "=", (1,)), P("y", "=", (1,)))),)),))), "not (x = 1 or y = 1)"),
    (And(()), "true"),
    (Not(Or(())), "not false"),
    (P("x", "<", (1,), True), "not x < 1"),
    (Quantified("exists", "d", Join("x", "<", "d", "y", True), True), "not exists d (not x < d.y)"),
]


@pytest.mark.parametrize(("tree", "rendered"), UNREADABLE)
def test_shapes_without_a_notation_keep_their_meaning(tree, rendered):
    assert render(tree) == rendered


def test_kinds_stay_apart():
    day = datetime(2026, 1, 31, tzinfo=UTC)
    texts = {render(P("x", "in", (value,))) for value in (1, 1.0, True, "1", day, date(2026, 1, 31), "2026-01-31")}
    assert len(texts) == 7


def test_depth_costs_no_stack():
    tree = P("x", "=", (1,))
    for _ in range(20_000):
        tree = Not(And((tree, Constant(True))))
    text = render(tree)
    assert render(parse(text, Limits(depth=50_000))) == text


def test_refuses_what_is_no_tree():
    with pytest.raises(TypeError):
        render(Node())
