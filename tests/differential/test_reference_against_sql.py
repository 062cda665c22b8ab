"""The reference evaluator against SQL: random rules as conditions of DuckDB, with all three values of its logic.

What eligo has of its own is left out: several values, ranges, values of another kind than the column. What is left
must be SQL: a rule is true, false (its negation is true) or unknown (neither is). Each rule is drawn in two languages at
once, so that the parser is part of what is compared.

Integers and decimals are compared exactly by both. Integers with floats are not: DuckDB rounds the integer, and
docs/language.md compares by value; so fractions beside an integer column are written as DECIMAL. NaN is a number to DuckDB
and absence here, so it becomes NULL on the way.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eligo.language import parse
from eligo.language.reference import matches
from eligo.language.tree import Node, Not

duckdb = pytest.importorskip("duckdb")

RULES = 2500 * int(os.environ.get("ELIGO_EXAMPLES", "1"))
EVENTS = 48
AT_ONCE = 250  # rules in one SELECT

Both = tuple[str, str]  # the same in eligo's language and in SQL

BIG = 2**53
DAY, NOON = datetime(2026, 1, 31), datetime(2026, 1, 31, 12, 0, 0, 1)

# What the events hold.
COLUMNS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "i": (pa.int64(), (-1, 0, 1, 2, 3, BIG, BIG + 1, -(2**63), -(2**63) + 1, 2**63 - 1)),
    "k": (pa.int64(), (0, 1, 2, 3)),
    "d": (pa.float64(), (-0.0, 0.0, 0.5, 1.0, 2.5, 5e-324, -1e300, float(BIG), math.inf, -math.inf, math.nan)),
    "s": (pa.string(), ("", "a", "ab", "b", "B", "aé", "é", "%", "a%", "_", "a_b", "\\", "a\\", "a\\b", "a!", "it's", "a\nb", "\U0001f600")),
    "u": (pa.string(), ("", "a", "ab", "aab", "aba", "a%b", "a\x00")),
    "b": (pa.bool_(), (True, False)),
    "t": (pa.timestamp("us"), (DAY, NOON, NOON - timedelta(microseconds=1), datetime(1, 1, 1), datetime(9999, 12, 31, 23))),
    "day": (pa.date32(), (date(2026, 1, 30), date(2026, 1, 31), date(1, 1, 1), date(9999, 12, 31))),
}  # fmt: skip


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def integer(value: int) -> Both:
    return str(value), f"CAST('{value}' AS BIGINT)"


def fraction(value: float) -> Both:
    return repr(value), f"CAST('{Decimal(value):f}' AS DECIMAL(38, 4))"


def double(value: float) -> Both:
    return repr(value), f"CAST('{value!r}' AS DOUBLE)"


def string(value: str) -> Both:
    return quoted(value), quoted(value)


def moment(value: date) -> Both:
    if isinstance(value, datetime):
        return f"timestamp '{value} Z'", f"TIMESTAMP '{value}'"
    return f"date '{value}'", f"DATE '{value}'"


def same_moment(value: datetime) -> Both:
    """With an offset, which a TIMESTAMP without a zone does not know."""
    return f"timestamp '{value + timedelta(hours=2)}+02:00'", f"TIMESTAMP '{value}'"


def all_of(write: Callable[[Any], Both], values: Sequence[Any]) -> list[Both]:
    return [write(value) for value in values]


TIMES = [*all_of(moment, (*COLUMNS["t"][1], *COLUMNS["day"][1])), same_moment(NOON), same_moment(DAY)]
FINITE = [value for value in COLUMNS["d"][1] if math.isfinite(value)]
# What rules compare the columns with; all that has an order.
OPERANDS: dict[str, list[Both]] = {
    "i": all_of(integer, COLUMNS["i"][1]) + all_of(fraction, (0.5, 2.0, float(BIG), 2.0**63, -(2.0**63), 1e19)),
    "k": all_of(integer, (0, 1, 2, 3, 4)) + all_of(fraction, (0.5, 2.0)),
    "d": all_of(double, FINITE) + all_of(integer, (0, 1, BIG)),
    "s": all_of(string, COLUMNS["s"][1]),
    "u": all_of(string, COLUMNS["u"][1][:-1]),
    "t": TIMES,
    "day": TIMES,
}
COMPARISONS = (("=", "="), ("==", "="), ("!=", "<>"), ("<>", "!="), ("<", "<"), ("<=", "<="), (">", ">"), (">=", ">="))
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def predicate(rng: random.Random) -> Both:
    name = rng.choice((*COLUMNS, "s", "u"))
    form = rng.random()
    if form < 0.12:
        null = rng.choice(("is null", "is not null"))
        return f"{name} {null}", f"{name} {null}"
    if name == "b":
        return rng.choice(
            (("b", "b"), ("b = false", "b = false"), ("b != true", "b <> true"), ("b in (true, false)", "b in (true, false)"),
             ("b not in (true)", "b not in (true)"), ("true = b", "b = true"))
        )  # fmt: skip
    if form < 0.45:
        (mine, theirs), (value, sql) = rng.choice(COMPARISONS), rng.choice(OPERANDS[name])
        if rng.random() < 0.3:
            return f"{value} {FLIPPED.get(mine, mine)} {name}", f"{name} {theirs} {sql}"
        return f"{name} {mine} {value}", f"{name} {theirs} {sql}"
    negation = rng.choice(("", "not "))
    if name in "su" and form < 0.7:
        return like(rng, name, negation)
    if form < 0.75:
        some = rng.choices(OPERANDS[name], k=rng.randint(1, 4))
        values, sqls = (", ".join(parts) for parts in zip(*some, strict=True))
        return f"{name} {negation}in ({values})", f"{name} {negation}in ({sqls})"
    low, high = rng.choices(OPERANDS[name], k=2)
    return f"{name} {negation}between {low[0]} and {high[0]}", f"{name} {negation}between {low[1]} and {high[1]}"


def like(rng: random.Random, name: str, negation: str) -> Both:
    """A pattern of few characters; DuckDB has no escape character unless one is named."""
    escape = rng.choice("\\\\!%")
    pieces = ["a", "b", "é", "_", "it's", escape + "%", escape + "_", escape * 2] + ["%"] * (escape != "%")
    pattern = quoted("".join(rng.choices(pieces, k=rng.randint(0, 5))))
    sql = f"{name} {negation}like {pattern} escape '{escape}'"
    if escape == "\\" and rng.random() < 0.7:
        return f"{name} {negation}like {pattern}", sql
    return sql, sql


def rule(rng: random.Random, levels: int) -> Both:
    form = rng.random()
    if levels == 0 or form < 0.2:
        return rng.choice((("true", "true"), ("false", "false"))) if form < 0.01 else predicate(rng)
    if form < 0.45:
        mine, theirs = rule(rng, levels - 1)
        return f"not ({mine})", f"not ({theirs})"
    word = rng.choice((" and ", " or "))
    parts = [rule(rng, levels - 1) for _ in range(rng.randint(2, 3))]
    mine, theirs = (word.join(f"({part})" for part in side) for side in zip(*parts, strict=True))
    return mine, theirs


def draw_events(rng: random.Random) -> list[dict[str, Any]]:
    """Every column is absent now and then: not there, null or NaN."""
    return [
        {
            name: rng.choice((None, math.nan)) if rng.random() < 0.15 else rng.choice(values)
            for name, (_, values) in COLUMNS.items()
            if rng.random() > 0.1
        }
        for _ in range(EVENTS)
    ]


def table(events: list[dict[str, Any]]) -> pa.Table:
    def cell(value: Any) -> Any:
        return None if isinstance(value, float) and math.isnan(value) else value

    columns = {name: pa.array([cell(e.get(name)) for e in events], kind) for name, (kind, _) in COLUMNS.items()}
    return pa.table({"row": pa.array(range(len(events))), **columns})


def sql_answers(events: list[dict[str, Any]], conditions: Sequence[str]) -> list[list[bool | None]]:
    """What DuckDB says of each condition, event by event."""
    answers: list[list[bool | None]] = []
    with duckdb.connect() as connection:
        connection.register("events", table(events))
        for first in range(0, len(conditions), AT_ONCE):
            columns = ", ".join(f"({condition})" for condition in conditions[first : first + AT_ONCE])
            found = connection.execute(f"SELECT {columns} FROM events ORDER BY row").fetchall()
            answers += [list(column) for column in zip(*found, strict=True)]
    return answers


def reference_answer(root: Node, event: dict[str, Any]) -> bool | None:
    if matches(root, event):
        assert not matches(Not(root), event), "a rule and its negation hold"
        return True
    return False if matches(Not(root), event) else None


@pytest.mark.parametrize("seed", range(4))
def test_rules_are_true_false_and_unknown_as_in_sql(seed: int) -> None:
    rng = random.Random(seed)
    events = draw_events(rng)
    rules = [rule(rng, rng.randrange(5)) for _ in range(RULES // 4)]
    answers = sql_answers(events, [sql for _, sql in rules])
    seen: dict[bool | None, int] = dict.fromkeys((True, False, None), 0)
    for (text, sql), column in sorted(zip(rules, answers, strict=True), key=lambda one: len(one[0][0])):
        root = parse(text)
        for event, said in zip(events, column, strict=True):
            mine = reference_answer(root, event)
            assert mine == said, f"\nrule:  {text}\nSQL:   {sql}\nevent: {event}\neligo: {mine}\nSQL:   {said}"
            seen[said] += 1
    assert min(seen.values()) > 0.05 * sum(seen.values()), "the rules do not say enough of the events"
