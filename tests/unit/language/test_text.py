"""Text: every operator and literal, and every mistake with its place and remedy."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime

import pytest

from eligo.errors import LimitError, RuleSyntaxError, RuleTypeError
from eligo.language import And, Constant, Join, Limits, Not, Or, Predicate, Quantified, parse

P = Predicate
a, b, c = (P(name, "=", (1,)) for name in "abc")


def some(body):
    return Quantified("exists", "d", body)


GOOD = [
    # comparisons
    ("x = 1", P("x", "=", (1,))),
    ("x == 1", P("x", "=", (1,))),
    ("x != 1", P("x", "=", (1,), True)),
    ("x <> 1", P("x", "=", (1,), True)),
    ("x<1", P("x", "<", (1,))),
    ("x<=1", P("x", "<=", (1,))),
    ("x>1", P("x", ">", (1,))),
    ("x>=-1", P("x", ">=", (-1,))),
    # the value on the left
    ("18 <= age", P("age", ">=", (18,))),
    ("18 > age", P("age", "<", (18,))),
    ("'US' != country", P("country", "=", ("US",), True)),
    ("true = active", P("active", "=", (True,))),
    ("date '2026-01-31' < day", P("day", ">", (date(2026, 1, 31),))),
    # lists
    ("x in (1)", P("x", "in", (1,))),
    ("x IN (1, 'a', true, 1.5)", P("x", "in", (1, "a", True, 1.5))),
    ("x not in ('a','a')", P("x", "in", ("a", "a"), True)),
    ("x contains any ('a')", P("x", "contains any", ("a",))),
    ("x contains all ('a', 'b')", P("x", "contains all", ("a", "b"))),
    ("x contains none ('a')", P("x", "contains any", ("a",), True)),
    ("x not contains any ('a')", P("x", "contains any", ("a",), True)),
    ("x not contains all ('a')", P("x", "contains all", ("a",), True)),
    ("x Not Contains None ('a')", P("x", "contains any", ("a",))),
    # the rest
    ("x between 1 and 5", P("x", "between", (1, 5))),
    ("x between 5 and 1.5", P("x", "between", (5, 1.5))),
    ("x not between 'a' and 'b'", P("x", "between", ("a", "b"), True)),
    ("x like 'Sun%'", P("x", "like", ("Sun%",))),
    ("x not like ''", P("x", "like", ("",), True)),
    (r"x like '10\%'", P("x", "like", (r"10\%",))),
    (r"x like '\_\\%'", P("x", "like", (r"\_\\%",))),
    ("x like 'a!%b' escape '!'", P("x", "like", (r"a\%b",))),
    ("x not like '!!!_!%_%' ESCAPE '!' and y", And((P("x", "like", (r"!\_\%_%",), True), P("y", "=", (True,))))),
    (r"x like 'C:\t%' escape '!'", P("x", "like", (r"C:\\t%",))),
    (r"x like '\%' escape '\'", P("x", "like", (r"\%",))),
    ("x like '%%_' escape '%'", P("x", "like", (r"\%_",))),
    ("x like 'a''%' escape ''''", P("x", "like", (r"a\%",))),
    ("escape = 1 or x like 'a' and escape", Or((P("escape", "=", (1,)), And((P("x", "like", ("a",)), P("escape", "=", (True,))))))),
    ("x is null", P("x", "is null")),
    ("x is not null", P("x", "is null", (), True)),
    ("active", P("active", "=", (True,))),
    ("true", Constant(True)),
    ("FALSE", Constant(False)),
    ("(true) and x", And((Constant(True), P("x", "=", (True,))))),
    # precedence and nesting
    ("a=1 and b=1 and c=1", And((a, b, c))),
    ("a=1 or b=1 and c=1", Or((a, And((b, c))))),
    ("(a=1 or b=1) and c=1", And((Or((a, b)), c))),
    ("(a=1 and b=1) and c=1", And((And((a, b)), c))),
    ("a=1 or (b=1 or c=1)", Or((a, Or((b, c))))),
    ("((a=1)) and (((b=1)))", And((a, b))),
    ("not a=1 and b=1", And((Not(a), b))),
    ("not (a=1 and b=1)", Not(And((a, b)))),
    ("not not a=1", Not(Not(a))),
    ("not ((not (a=1)))", Not(Not(a))),
    ("not x in (1)", Not(P("x", "in", (1,)))),
    ("not x not in (1)", Not(P("x", "in", (1,), True))),
    ("x between 1 and 5 and a=1 or b=1", Or((And((P("x", "between", (1, 5)), a)), b))),
    ("AND_ and Ora", And((P("AND_", "=", (True,)), P("Ora", "=", (True,))))),
    # names
    ("a.b.c = 1", P("a.b.c", "=", (1,))),
    ("_x9 = 1", P("_x9", "=", (1,))),
    ("größe = 1", P("größe", "=", (1,))),
    ("`two words` = 1", P("two words", "=", (1,))),
    ("`and` and `a``b`", And((P("and", "=", (True,)), P("a`b", "=", (True,))))),
    ("date = 1 and timestamp = 2", And((P("date", "=", (1,)), P("timestamp", "=", (2,))))),
    ("any in (1) and all", And((P("any", "in", (1,)), P("all", "=", (True,))))),
    # layout
    ("x=1--comment", P("x", "=", (1,))),
    ("-- a ' comment\nx = -- another\r\n\t'--'", P("x", "=", ("--",))),
    (" \n x=1 \n ", P("x", "=", (1,))),
    # quantifiers
    ("exists d (price < d.price)", some(Join("price", "<", "d", "price"))),
    ("forall d (isbn != d.isbn)", Quantified("forall", "d", Join("isbn", "=", "d", "isbn", True))),
    ("exists d (d.price >= price)", some(Join("price", "<=", "d", "price"))),
    ("exists d (d.price > 5)", some(P("price", ">", (5,), False, "d"))),
    ("exists d (5 < d.price)", some(P("price", ">", (5,), False, "d"))),
    ("exists d (price > 5)", some(P("price", ">", (5,)))),
    ("exists d (`d.e` = 1 and d.a.b = 1)", some(And((P("d.e", "=", (1,)), P("a.b", "=", (1,), False, "d"))))),
    ("exists d (d.`two words` in (1))", some(P("two words", "in", (1,), False, "d"))),
    ("exists d (d.ok or a = 1)", some(Or((P("ok", "=", (True,), False, "d"), a)))),
    ("d.e = 1", P("d.e", "=", (1,))),
    ("not exists d (a = 1) and exists d (b = 1)", And((Not(some(a)), some(b)))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tree"), GOOD, ids=[text for text, _ in GOOD])
def test_reads(text, tree):
    assert repr(parse(text)) == repr(tree)  # repr, because 1 == 1.0 == True


VALUES = [
    ("0", 0),
    ("007", 7),
    ("+5", 5),
    ("-0", 0),
    ("9223372036854775807", 2**63 - 1),
    ("-9223372036854775808", -(2**63)),
    ("9007199254740993", 2**53 + 1),
    ("0" * 5000 + "1", 1),
    ("1.0", 1.0),
    ("5.", 5.0),
    (".5", 0.5),
    ("-.5e-3", -0.0005),
    ("1E3", 1000.0),
    ("1e+3", 1000.0),
    ("-0.0", -0.0),
    ("9223372036854775808.0", 2.0**63),
    ("''", ""),
    ("''''", "'"),
    ("'it''s'", "it's"),
    ("'a\nb -- c'", "a\nb -- c"),
    ("'\U0001f600'", "\U0001f600"),
    ("TRUE", True),
    ("date '2026-01-31'", date(2026, 1, 31)),
    ("DATE'0001-01-01'", date(1, 1, 1)),
    ("timestamp '2026-01-31 12:00:00Z'", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("timestamp '2026-01-31T12:00:00z'", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("timestamp '2026-01-31 12:00'", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("Timestamp  '2026-01-31 12:00:00.25'", datetime(2026, 1, 31, 12, 0, 0, 250000, UTC)),
    ("timestamp '2026-01-31 00:30:00+02:00'", datetime(2026, 1, 30, 22, 30, tzinfo=UTC)),
    ("timestamp '2026-01-31 23:30:00.000001 -0130'", datetime(2026, 2, 1, 1, 0, 0, 1, UTC)),
]


@pytest.mark.parametrize(("text", "value"), VALUES, ids=[text[:40] for text, _ in VALUES])
def test_values(text, value):
    assert repr(parse(f"x = {text}")) == repr(P("x", "=", (value,)))


BAD = [
    # text, column, part of the reason, part of the hint
    ("", 1, "empty", "true"),
    ("   ", 1, "empty", "true"),
    ("-- nothing", 1, "empty", "true"),
    ("age betwen 1 and 2", 5, "unknown word 'betwen'", "did you mean 'between'?"),
    ("age not betwen 1 and 2", 9, "after 'not'", "did you mean 'between'?"),
    ("a lik 'x'", 3, "unknown word", "did you mean 'like'?"),
    ("a contain any (1)", 3, "unknown word", "did you mean 'contains'?"),
    ("a contains some (1)", 12, "any, all or none", "contains any"),
    ("a contains ayn (1)", 12, "any, all or none", "did you mean 'any'?"),
    ("a contains 5", 12, "any, all or none", "contains any"),
    ("a = 1 an b = 1", 7, "expected and, or", "did you mean 'and'?"),
    ("a && b", 3, "found '&&'", "write 'and'"),
    ("a = 1 || b = 1", 7, "found '||'", "write 'or'"),
    ("! a", 1, "found '!'", "write 'not'"),
    ("x === 1", 3, "found '==='", "write '='"),
    ("x => 1", 3, "found '=>'", "write '>='"),
    ("x ≥ 1", 3, "found '≥'", "write '>='"),
    ('a = "x"', 5, "expected a value", "single quotes: 'x'"),
    ('"a" = 1', 1, "expected a predicate", "backquotes"),
    ("x = null", 5, "null equals nothing", "is null"),
    ("x <> NULL", 6, "null equals nothing", "is not null"),
    ("x < null", 5, "null is not a value", "is null"),
    ("x in (1, null)", 10, "null is not a value", "is null"),
    ("x between null and 1", 11, "null is not a value", ""),
    ("x is true", 6, "expected null", "= true"),
    ("x is not nul", 10, "expected null", "did you mean 'null'?"),
    ("x is", 5, "end of the rule", "is null"),
    ("(a = 1", 1, "never closed", ")"),
    ("b = 1 and (a = 1 or (c = 1)", 11, "never closed", ")"),
    ("a = 1)", 6, "closes nothing", ""),
    ("()", 2, "found ')'", "inside"),
    ("a = 1 and", 10, "end of the rule", "'and' needs a predicate"),
    ("a and or b", 7, "found 'or'", "'and' needs a predicate"),
    ("or a", 1, "found 'or'", "`or`"),
    ("not", 4, "end of the rule", "'not' needs"),
    ("a = 1 b = 2", 7, "found 'b'", "and"),
    ("a = 1, b = 2", 6, "found ','", ""),
    ("a = ", 4, "expected a value", ""),
    ("a = US", 5, "expected a value", "'US'"),
    ("a = nan", 5, "expected a value", "absent"),
    ("a = inf", 5, "expected a value", "one-sided"),
    ("a = - 5", 5, "expected a value", "-5"),
    ("a = (1)", 5, "expected one value", "in"),
    ("a = 1_000", 5, "not a number", ""),
    ("a = 5x", 5, "not a number", ""),
    ("a = 'x", 5, "string is never closed", "doubled"),
    ("a = 'it''s", 5, "string is never closed", "doubled"),
    ("`a = 1", 1, "backquote is never closed", ""),
    ("`` = 1", 1, "needs a name", ""),
    ("f(1)", 2, "expected an operator", "no functions"),
    ("x 5", 3, "expected an operator", "age >= 18"),
    ("x in 5", 6, "expected '('", "parentheses"),
    ("x in ()", 7, "empty", "false"),
    ("x contains any ()", 17, "empty", "false"),
    ("x in (1,)", 9, "expected a value", ""),
    ("x in (1 2)", 9, "expected ',' or ')'", ""),
    ("x in (1", 8, "expected ',' or ')'", ""),
    ("x between 1", 12, "two values", "between 10 and 30"),
    ("18 <= age <= 65", 11, "chain", "join two with and"),
    ("a < b < 3", 5, "expected a value", ""),
    ("a = 1 = 2", 7, "expected and, or", "chain"),
    ("18", 1, "alone", "compare"),
    ("5 < 6", 5, "expected an attribute", ""),
    ("5 < and", 5, "expected an attribute", "backquotes"),
    ("5 in (1)", 3, "expected a comparison", "left"),
    ('{"and": []}', 1, "expected a predicate", "JSON"),
    ("x.`y` = 1", 1, "not the variable", "`x.y`"),
    ("exists (a = 1)", 8, "needs a variable", "exists d"),
    ("exists d.e (a = 1)", 8, "needs a variable", "exists d"),
    ("exists in (a = 1)", 8, "needs a variable", ""),
    ("exists d a = 1", 10, "expected '('", "exists d ("),
    ("exists d (exists e (a = 1))", 11, "inside another", ""),
    ("exists d (d.x < d.y)", 17, "two attributes of the document", ""),
    ("exists d (d)", 11, "whole document", "`d`"),
    ("exists d (x < y)", 15, "expected a value", "'y'"),
    ("exists d (x between d.a and d.b)", 21, "expected a value", ""),
    ("exists", 7, "needs a variable", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "column", "reason", "hint"), BAD, ids=[case[0] for case in BAD])
def test_refuses(text, column, reason, hint):
    with pytest.raises(RuleSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert not isinstance(error, RuleTypeError)
    assert (error.line, error.column) == (1, column)
    assert reason in error.reason
    assert hint in error.hint
    assert str(error).splitlines()[2] == " " * (column + 1) + "^"


WRONG_KIND = [
    ("x < true", 5, "Booleans", "= or !="),
    ("true <= x", 1, "Booleans", "= or !="),
    ("x between false and true", 11, "Booleans", ""),
    ("x between 1 and 'a'", 17, "two kinds: a number and a string", ""),
    ("x between date '2026-01-31' and 5", 33, "two kinds: a time and a number", ""),
    ("x like 5", 8, "'like' takes a string, not a number", "'Sun%'"),
    ("x not like true", 12, "not a Boolean", ""),
    (r"x like 'C:\temp'", 8, "backslash in the pattern stands before 't'", r"write \\"),
    ("x like '10\\'", 8, "backslash in the pattern is the last character", r"write \\"),
    ("x like 'a!b' escape '!'", 8, "escape character ! in the pattern stands before 'b'", "write !!"),
    (r"x like '!\' escape '!'", 8, "escape character ! in the pattern stands before", "write !!"),
    ("x like 'a' escape ''", 19, "one character, not ''", "escape '!'"),
    ("x like 'a' escape 'ab'", 19, "one character, not 'ab'", "escape '!'"),
    ("x like 'a' escape 5", 19, "one character, not 5", "escape '!'"),
    ("x like 5 escape '!'", 8, "'like' takes a string, not a number", ""),
    ("x = 9223372036854775808", 5, "64 bits", "9223372036854775807"),
    ("x in (1, -9223372036854775809)", 10, "64 bits", ""),
    ("x = " + "9" * 5000, 5, "64 bits", ""),
    ("x = 1e999", 5, "too large", "one-sided"),
    ("x between -1e999 and 5", 11, "too large", "one-sided"),
    ("x = date '2026-02-30'", 5, "not a date", ""),
    ("x = date '20260131'", 5, "not a date", "2026-01-31"),
    ("x = date '٢026-01-31'", 5, "not a date", ""),
    ("x = timestamp '2026-01-31'", 5, "not a timestamp", "12:00:00Z"),
    ("x = timestamp '2026-01-31 25:00:00Z'", 5, "not a timestamp", ""),
    ("x = timestamp '2026-01-31 12:00:00.1234567Z'", 5, "not a timestamp", "six digits"),
    ("x = timestamp '0001-01-01 00:00:00+01:00'", 5, "not a timestamp", ""),
    ("x = timestamp '2026-01-31 12:00:00+24:00'", 5, "offset", ""),
    ("x = 'a\ud800'", 7, "surrogate", ""),
    ("`\udfff` = 1", 2, "surrogate", ""),
]


@pytest.mark.parametrize(("text", "column", "reason", "hint"), WRONG_KIND, ids=[ascii(c[0])[:50] for c in WRONG_KIND])
def test_refuses_values(text, column, reason, hint):
    with pytest.raises(RuleTypeError) as caught:
        parse(text)
    assert caught.value.column == column
    assert reason in caught.value.reason
    assert hint in caught.value.hint


def test_the_message_shows_the_place():
    with pytest.raises(RuleSyntaxError) as caught:
        parse("-- first a comment\nage >= 18 and\n  country inn ('US')\nor x = 1")
    error = caught.value
    assert (error.line, error.column, error.position) == (3, 11, 43)
    assert str(error).splitlines() == [
        "line 3, column 11: unknown word 'inn' after 'country'",
        "    country inn ('US')",
        "            ^",
        "hint: did you mean 'in'?",
    ]


@pytest.mark.parametrize("opening", ["(", "not ", "not (", "exists d ((("])
def test_depth_is_limited_and_costs_no_stack(opening):
    text = opening + "(" * 10_000 + "x = 1"
    with pytest.raises(LimitError, match=r"257 levels of nesting, the limit is 256"):
        parse(text)
    with pytest.raises(LimitError, match=r"257 levels of nesting, the limit is 256"):
        parse("not " * 10_000 + opening)


def test_deep_parentheses_vanish():
    assert parse("(" * 10_000 + "x = 1" + ")" * 10_000, Limits(depth=40_000)) == P("x", "=", (1,))


def test_deep_nots_are_kept():
    node = parse("not (" * 10_000 + "x = 1" + ")" * 10_000, Limits(depth=40_000))
    depth = 0
    while isinstance(node, Not):
        node, depth = node.child, depth + 1
    assert depth == 10_000
    assert node == P("x", "=", (1,))


def test_depth_counts_levels_of_the_tree_too():
    text = "x = 1"
    for _ in range(5):
        text = f"(a = 1 or b = 1 and {text}) and c = 1"
    parse(text, Limits(depth=12))
    with pytest.raises(LimitError, match="levels of nesting"):
        parse(text, Limits(depth=11))


def test_sizes_are_limited():
    with pytest.raises(LimitError, match=r"21 characters of text, the limit is 20"):
        parse("x = 'aaaaaaaaaaaaaaa'", Limits(text=20))
    parse("x = 'aaaaaaaaaaaaaaa'", Limits(text=21))
    wide = "x in (" + ", ".join(map(str, range(65_537))) + ")"
    with pytest.raises(LimitError, match=r"65,537 values in one list, the limit is 65,536"):
        parse(wide)
    assert len(parse(wide, Limits(values=65_537)).values) == 65_537
    many = " and ".join(["x = 1"] * 65_537)
    with pytest.raises(LimitError, match=r"65,537 predicates, the limit is 65,536"):
        parse(many)
    assert len(parse(many, Limits(leaves=65_537)).children) == 65_537


@pytest.mark.parametrize(
    "text",
    [
        "x = 1" + " " * 900_000,
        "x = " + "'" * 900_001,
        "`" * 900_001 + " = 1",
        "x = " + "1" * 900_000 + ".5x",
        "date " * 180_000,
        "a.`" * 300_000,
        "- " * 450_000,
        "(" * 900_000,
    ],
    ids=lambda text: text[:6],
)
def test_hostile_text_is_read_in_linear_time(text):
    with suppress(RuleSyntaxError, LimitError):  # a quadratic reading would take minutes
        parse(text)
