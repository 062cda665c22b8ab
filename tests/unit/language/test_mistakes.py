"""What people who know SQL or Python write by mistake, and the remedy that the message has to name."""

from __future__ import annotations

import pytest

from eligo.errors import RuleSyntaxError
from eligo.language import parse

REMEDIES = [
    # names that need backquotes
    ("user-id = 5", "`user-id`"),
    ("a = 1 and not first-name like 'A%'", "`first-name`"),
    ("x-y-z in (1)", "`x-y-z`"),
    ("utf-8 = 1", "`utf-8`"),
    ("a.b-c = 1", "`a.b-c`"),
    ("5 < user-id", "`user-id`"),
    ("exists d (user-id = d.x)", "`user-id`"),
    ("$amount > 5", "`$amount`"),
    ("a = 1 and @x = 1", "`@x`"),
    ("#tag = 1", "`#tag`"),
    ("ns:name = 1", "`ns:name`"),
    ("user id = 5", "`user id`"),
    ("[user id] = 5", "backquotes"),
    ('"user id" = 5', "`user id`"),
    ("2nd = 5", "backquotes"),
    (".a = 5", "backquotes"),
    ("a[0] = 5", "with a dot"),
    ("a->b = 5", "with a dot"),
    # functions, parameters, arithmetic, casts
    ("created > now()", "timestamp '"),
    ("created > current_timestamp", "timestamp '"),
    ("now() > created", "timestamp '"),
    ("a in (now())", "timestamp '"),
    ("x = date(2020, 1, 1)", "date '2026-01-31'"),
    ("x = datetime '2020-01-01 00:00:00'", "timestamp '"),
    ("x > date 2020-01-01", "date '2026-01-31'"),
    ("x > 2020-01-01", "date '2026-01-31'"),
    ("lower(x) = 'a'", "no functions"),
    ("x = lower('A')", "no functions"),
    ("date(x) = '2020-01-01'", "no functions"),
    ("x.startswith('a')", "like 'Sun%'"),
    ("a = any (1, 2)", "in (…)"),
    ("a <> all (1, 2)", "not in (…)"),
    ("a = :p", "no parameters"),
    ("a = ?", "no parameters"),
    ("a in ($1)", "no parameters"),
    ("a between :x and :y", "no parameters"),
    ("a = %s", "no parameters"),
    ("a = @p", "no parameters"),
    ("price = $amount", "no parameters"),
    ("price = $50", "without a unit"),
    ("price = 50€", "without a unit"),
    ("a + 1 = 5", "no arithmetic"),
    ("a = 5 - 3", "no arithmetic"),
    ("a = 5-3", "no arithmetic"),
    ("a - 1 = 5", "no arithmetic"),
    ("x::int = 5", "no casts"),
    ("x = '5'::int", "no casts"),
    # operators of others
    ("a ~ 'x'", "no regular expressions"),
    ("a !~ 'x'", "no regular expressions"),
    ("a =~ 'x'", "no regular expressions"),
    ("a regexp 'x'", "no regular expressions"),
    ("a rlike 'x'", "no regular expressions"),
    ("a ilike 'x%'", "lower-case"),
    ("a not ilike 'x%'", "lower-case"),
    ("a > = 5", "'>=' without a blank"),
    ("a ! = 5", "'!=' without a blank"),
    ("a := 5", "write '='"),
    ("a ＝ 5", "write '='"),
    ("a = −5", "write '-'"),
    ("a eq 5", "write '='"),
    ("a not = 5", "!="),
    ("a not null", "is not null"),
    ("a isnull", "is null"),
    ("a xor b", "and, or and not"),
    ("'x' in a", "a contains any ('x')"),
    ("'x' not in a", "a contains none ('x')"),
    ("a has 'x'", "contains any"),
    # null, is
    ("x = None", "is null"),
    ("x != None", "is not null"),
    ("x is None", "write: is null"),
    ("x is not None", "write: is not null"),
    ("x is 5", "= 5"),
    ("x is not 5", "!= 5"),
    ("x is not true", "!= true"),
    ("x is 'a'", "= 'a'"),
    ("x is not in (1)", "not in"),
    ("x is empty", "= ''"),
    # quotes
    ("x = 'it's'", "doubled"),
    ("x = ‘a’", "straight single quotes"),
    ("x = “a”", "straight single quotes"),
    ("x = b'a'", "no letter"),
    ("x = some-value", "'some-value'"),
    ("x = a@b.c", "'a@b.c'"),
    ("x = yes", "true and false"),
    # lists, bounds, numbers
    ("x in [1, 2]", "parentheses"),
    ("x in (1, 2", "add ')'"),
    ("x in ('a' 'b')", "commas"),
    ("x in (1,)", "last comma"),
    ("x in (select y from z)", "no subqueries"),
    ("x between (1, 5)", "between 10 and 30"),
    ("x = 1,000", "without a comma"),
    ("x = 127.0.0.1", "single quotes"),
    ("x=5or y=5", "blank before 'or'"),
    ("a = 1 or 2", "in (1, 2)"),
    ("a > 1 and < 5", "repeat the attribute"),
    ("a = 'x' || 'y'", "whole string"),
    # more than a condition
    ("WHERE x = 1", "leave 'WHERE' out"),
    ("select * from t where x = 1", "leave 'select' out"),
    ("if x = 1", "leave 'if' out"),
    ("x = 1;", "leave ';' out"),
    ("x = 1 order by y", "leave 'order'"),
    ("x = 1 limit 5", "leave 'limit'"),
    ("x = 1 // why", "--"),
    ("x = 1 # why", "--"),
    ("/* why */ x = 1", "--"),
]


@pytest.mark.parametrize(("text", "remedy"), REMEDIES, ids=[text for text, _ in REMEDIES])
def test_the_hint_names_the_remedy(text: str, remedy: str) -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse(text)
    assert remedy in caught.value.hint


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("created > now()", "single quotes"),
        ("a = :p", "write '='"),
        ("x is not true", "write: = true"),
        ("a ~ 'x'", "write 'like'"),
        ("x::int = 5", "write '='"),
        ("a - 1 = 5", "age >= 18"),
        ("[user id] = 5", "JSON"),
    ],
)
def test_the_hint_does_not_mislead(text: str, wrong: str) -> None:
    with pytest.raises(RuleSyntaxError) as caught:
        parse(text)
    assert wrong not in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "`user-id` = 5", "`$amount` > 5", "created > timestamp '2026-01-31 12:00:00Z'", "a contains any ('x')",
        "x = 'it''s'", "a = 1 or a = 2", "a in (1, 2)", "x != 5",
    ],
)  # fmt: skip
def test_remedies_are_read(text: str) -> None:
    parse(text)
