"""The JSON form: every shape, and every mistake with its path."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from eligo.errors import LimitError, RuleSyntaxError, RuleTypeError
from eligo.language import And, Constant, Join, Limits, Not, Or, Predicate, Quantified, attr, from_json, parse, to_json

P = Predicate

GOOD = [
    (True, "true"),
    (False, "false"),
    ({"attr": "active"}, "active"),
    ({"attr": "age", "op": ">=", "value": 18}, "age >= 18"),
    ({"attr": "age", "op": "<>", "value": 18.0}, "age != 18.0"),
    ({"attr": "x", "op": "in", "value": ["US", 1, True]}, "x in ('US', 1, true)"),
    ({"attr": "x", "op": "NOT  In", "value": ("US",)}, "x not in ('US')"),
    ({"attr": "x", "op": "between", "value": [1, 2.5]}, "x between 1 and 2.5"),
    ({"attr": "x", "op": "not between", "value": [1, 2]}, "x not between 1 and 2"),
    ({"attr": "x", "op": "like", "value": "Sun%"}, "x like 'Sun%'"),
    ({"attr": "x", "op": "not like", "value": "Sun%"}, "x not like 'Sun%'"),
    ({"attr": "x", "op": "like", "value": r"10\%"}, r"x like '10\%'"),
    ({"attr": "x", "op": "is null"}, "x is null"),
    ({"attr": "x", "op": "is not null", "value": None}, "x is not null"),
    ({"attr": "x", "op": "contains any", "value": [1]}, "x contains any (1)"),
    ({"attr": "x", "op": "contains all", "value": [1]}, "x contains all (1)"),
    ({"attr": "x", "op": "contains none", "value": [1]}, "x contains none (1)"),
    ({"attr": "x", "op": "not contains all", "value": [1]}, "x not contains all (1)"),
    ({"attr": "two words", "op": "=", "value": "it's"}, "`two words` = 'it''s'"),
    ({"attr": "x", "op": "=", "value": {"date": "2026-01-31"}}, "x = date '2026-01-31'"),
    ({"attr": "x", "op": "in", "value": [{"timestamp": "2026-01-31T12:00+01:00"}]},
     "x in (timestamp '2026-01-31 11:00')"),
    ({"and": [{"attr": "a"}, {"or": [{"attr": "b"}, {"not": {"attr": "c"}}]}]}, "a and (b or not c)"),
    ({"and": [{"attr": "a"}]}, "a"),
    ({"or": [{"and": [{"or": [{"attr": "a"}]}]}, {"attr": "b"}]}, "a or b"),
    ({"exists": "d", "where": {"attr": "price", "op": "<", "of": "d", "other": "price"}}, "exists d (price < d.price)"),
    ({"forall": "d", "where": {"attr": "x", "op": "!=", "of": "d", "other": "y"}}, "forall d (x != d.y)"),
    (
        {"exists": "d", "where": {"and": [{"attr": "p", "of": "d", "op": ">", "value": 5}, {"attr": "q", "of": "d"}]}},
        "exists d (d.p > 5 and d.q)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("form", "text"), GOOD, ids=[text for _, text in GOOD])
def test_reads(form, text):
    assert repr(from_json(form)) == repr(parse(text))
    assert repr(from_json(to_json(parse(text)))) == repr(parse(text))


def test_takes_nodes_and_python_values():
    form = {"and": [attr("a") == 1, {"not": attr("b")}, {"attr": "t", "op": "<", "value": date(2026, 1, 31)}]}
    assert from_json(form) == And((P("a", "=", (1,)), Not(P("b", "=", (True,))), P("t", "<", (date(2026, 1, 31),))))
    naive = {"attr": "t", "op": "=", "value": datetime(2026, 1, 31, 12)}
    assert from_json(naive) == P("t", "=", (datetime(2026, 1, 31, 12, tzinfo=UTC),))


def leaf(**keys):
    return {"attr": "x", **keys}


BAD = [
    # form, path, part of the reason, part of the hint
    ({}, "$", "empty object", "attr"),
    ({"adn": []}, "$", "unknown keys 'adn'", "did you mean 'and'?"),
    ({"and": []}, "$.and", "empty", "true"),
    ({"or": ()}, "$.or", "empty", "false"),
    ({"and": {"attr": "x"}}, "$.and", "expected a list", ""),
    ({"and": [True], "or": [True]}, "$", "'or' cannot stand beside 'and'", ""),
    ({"and": [True, {"not": "x = 1"}]}, "$.and[1].not", "expected an object", "text"),
    ([True], "$", "expected an object", ""),
    (None, "$", "expected an object", ""),
    (leaf(op="=", valeu=1), "$", "unknown key 'valeu'", "did you mean 'value'?"),
    (leaf(**{"and": []}), "$", "beside", ""),
    (leaf(value=1), "$", 'needs an "op"', ""),
    (leaf(op="="), "$", 'needs a "value"', ""),
    (leaf(op="ilike", value="x%"), "$.op", "unknown operator 'ilike'", "lower-case"),
    (leaf(op="regexp", value="x"), "$.op", "unknown operator 'regexp'", "no regular expressions"),
    (leaf(op="===", value=1), "$.op", "unknown operator '==='", "write '='"),
    (leaf(op="gte", value=1), "$.op", "unknown operator 'gte'", "write '>='"),
    (leaf(op="betwen", value=[1, 2]), "$.op", "unknown operator 'betwen'", "did you mean 'between'?"),
    (leaf(op=5, value=1), "$.op", "an operator is a string", ""),
    (leaf(op="in", value="US"), "$.value", "takes a list", "in a list"),
    (leaf(op="in", value=[]), "$.value", "empty", ""),
    (leaf(op="between", value=[1]), "$.value", "two values, got 1", "low"),
    (leaf(op="is null", value=1), "$.value", "takes no value", ""),
    ({"attr": ""}, "$.attr", "needs a name", ""),
    ({"exists": "d"}, "$", 'needs "where"', "where"),
    ({"exists": "d", "were": True}, "$", "'were' cannot stand", "did you mean 'where'?"),
    ({"exists": "in", "where": True}, "$.exists", "cannot name", "letters"),
    ({"exists": "d", "where": {"not": {"forall": "e", "where": True}}}, "$.where.not", "inside another", ""),
    (leaf(op="<", of="d", value=1), "$.of", "not the variable", "exists"),
    (leaf(op="<", other="y"), "$", '"other" needs "of"', ""),
    ({"exists": "d", "where": leaf(op="<", of="e", other="y")}, "$.where.of", "not the variable", '"d"'),
    ({"exists": "d", "where": leaf(op="in", of="d", other="y")}, "$.where.op", "does not compare", "<="),
    ({"exists": "d", "where": leaf(op="<", of="d", other="y", value=1)}, "$.where", "exclude", ""),
    (leaf(op="=", value={"dat": "2026-01-31"}), "$.value", "is not a value", "did you mean 'date'?"),
]

WRONG_KIND = [
    ({"attr": 5}, "$.attr", "is a string", ""),
    ({"attr": "a\ud800"}, "$.attr", "surrogate", ""),
    (leaf(op="=", value=None), "$.value", "null", "is null"),
    (leaf(op="=", value=[1]), "$.value", "not a value", "in, between or contains"),
    (leaf(op="=", value="\udfff"), "$.value", "surrogate", ""),
    (leaf(op="=", value=2**63), "$.value", "64 bits", ""),
    (leaf(op="=", value=float("nan")), "$.value", "NaN", "is null"),
    (leaf(op="<", value=float("inf")), "$.value", "infinity", "one-sided"),
    (leaf(op="<", value=True), "$.value", "Booleans", ""),
    (leaf(op="like", value=5), "$.value", "takes a string", ""),
    (leaf(op="not like", value="a\\b"), "$.value", "stands before 'b'", r"write \\"),
    (leaf(op="in", value=[1, None]), "$.value[1]", "null", ""),
    ({"or": [True, leaf(op="between", value=[1, "a"])]}, "$.or[1].value[1]", "two kinds", ""),
    (leaf(op="in", value=[{"date": "2026-02-30"}]), "$.value[0]", "not a date", ""),
    (leaf(op="=", value={"timestamp": 5}), "$.value", "as a string", ""),
    ({"not": P("x", "<", (True,))}, "$.not", "Booleans", ""),
    ({"not": P("x", "like", ("\\",))}, "$.not", "last character", ""),
]


@pytest.mark.parametrize(("form", "path", "reason", "hint"), BAD, ids=[ascii(case[0]) for case in BAD])
def test_refuses(form, path, reason, hint):
    with pytest.raises(RuleSyntaxError) as caught:
        from_json(form)
    assert not isinstance(caught.value, RuleTypeError)
    check(caught.value, path, reason, hint)


@pytest.mark.parametrize(("form", "path", "reason", "hint"), WRONG_KIND, ids=[ascii(case[0]) for case in WRONG_KIND])
def test_refuses_values(form, path, reason, hint):
    with pytest.raises(RuleTypeError) as caught:
        from_json(form)
    check(caught.value, path, reason, hint)


def check(error, path, reason, hint):
    assert str(error).startswith(f"at {path}: ")
    assert reason in error.reason
    assert hint in error.hint
    assert error.position == -1


def test_depth_is_limited_and_costs_no_stack():
    form = {"attr": "x"}
    for _ in range(100_000):
        form = {"not": {"and": [form]}}
    with pytest.raises(LimitError, match=r"257 levels of nesting, the limit is 256"):
        from_json(form)
    tree = from_json(form, Limits(depth=200_001))
    back = to_json(tree)
    for _ in range(100_000):
        back, form = back["not"], form["not"]["and"][0]
    assert back == {"attr": "x", "op": "=", "value": True}


def test_sizes_are_limited():
    with pytest.raises(LimitError, match="4 predicates, the limit is 3"):
        from_json({"and": [{"attr": "x"}] * 4}, Limits(leaves=3))
    with pytest.raises(LimitError, match="4 predicates, the limit is 3"):
        from_json({"and": [attr("x") & attr("y"), attr("x") & attr("y")]}, Limits(leaves=3))
    with pytest.raises(LimitError, match="3 values in one list, the limit is 2"):
        from_json({"attr": "x", "op": "in", "value": [1, 2, 3]}, Limits(values=2))


def test_shapes_without_a_notation_keep_their_meaning():
    x = P("x", "<", (5,), True)
    assert to_json(x) == {"not": {"attr": "x", "op": "<", "value": 5}}
    assert to_json(Quantified("exists", "d", Constant(True), True)) == {"not": {"exists": "d", "where": True}}
    assert to_json(Join("x", "<", "d", "y", True)) == {"not": {"attr": "x", "op": "<", "of": "d", "other": "y"}}
    assert to_json(And(())) is True
    assert to_json(Or(())) is False
