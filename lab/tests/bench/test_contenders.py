"""Contenders from outside say what the reference says, or why they cannot take part."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from eligo.language import parse
from eligo.language.reference import matches
from eligo_lab.bench.contenders.base import UnfitError
from eligo_lab.bench.contenders.outside import OUTSIDE, Outside
from eligo_lab.bench.prepare import Prepared, prepare
from eligo_lab.workload.base import Workload, generate

RULES = [
    "a = 1",
    "a != 1",
    "not (a < 3)",
    "a between 2 and 4 and b in (1, 2)",
    "not (a between 2 and 4)",
    "a not in (1, 2) or s = 'x'",
    "not (a = 1 and (b > 2 or s = 'y'))",
    "(a = 1 or a = 2) and (b <= 1 or not b in (2, 3))",
    "s in ('x', 'é')",
    "s is null",
    "s is not null and a >= 0",
    "never = 1 or b = 2",
    "never != 1",
    "s = 1",
    "not s = 1",
    "s in (1, 'y')",
    "a in ('x', 3)",
    "`in` = 2 and a > -1",
    "true",
    "false",
]
EVENTS = pa.table(
    {
        "a": [1, 2, 3, 5, None, 0, None],
        "b": [1, 2, None, 3, None, 0, 2],
        "s": ["x", "y", None, "é", "x", "", None],
        "in": [2, None, 2, 3, 2, None, None],
    }
)


def prepared(rules: list[str], events: pa.Table = EVENTS, absent: str = "fails") -> Prepared:
    table = pa.table({"id": range(len(rules)), "expression": rules})
    return prepare(Workload("text", {}, None, events, text=table), len(rules), events.num_rows, absent)


def ready(name: str, work: Prepared) -> Outside:
    contender = OUTSIDE[name](work)
    try:
        contender.read()
    except UnfitError as error:
        pytest.skip(str(error))
    contender.build()
    contender.finish()
    return contender


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_they_say_what_the_reference_says(name: str, absent: str) -> None:
    work = prepared(RULES, absent=absent)
    contender = ready(name, work)
    for number, event in enumerate(work.dicts):
        expected = [row for row, text in enumerate(RULES) if matches(parse(text), event, absent)]
        assert contender.rows(number).tolist() == expected, event


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize("name", OUTSIDE)
def test_they_say_it_of_many_rules(name: str, absent: str) -> None:
    workload = generate("tiny", rules=150, events=12, seed=5)
    work = prepare(workload, 150, 12, absent)
    contender = ready(name, work)
    roots = [parse(text) for text in work.texts(range(150))]
    for number, event in enumerate(work.dicts):
        expected = [row for row, root in enumerate(roots) if matches(root, event, absent)]
        assert contender.rows(number).tolist() == expected


def test_patterns_are_python_only() -> None:
    rules = ["s like 'x%'", "not s like '_'", "s like 'a.c%'", "s like 'a!%!_!!' escape '!'"]
    events = pa.table({"s": ["x\ny", "a", None, "a.c", "abc", "a%_!"]})
    work = prepared(rules, events)
    for name in ("dict", "lambdas"):
        contender = ready(name, work)
        for number, event in enumerate(work.dicts):
            assert contender.rows(number).tolist() == [r for r, text in enumerate(rules) if matches(parse(text), event)]
    for name in ("rule-engine", "zen-engine", "cel"):
        with pytest.raises(UnfitError, match="like"):
            ready(name, work)


def test_times_are_python_only() -> None:
    rules = ["t >= date '2026-01-31'", "t in (timestamp '2026-01-31 12:00:00Z', date '2026-02-01')", "not t = 5"]
    moments = [
        datetime(2026, 1, 31, 12, tzinfo=UTC),
        datetime(2026, 1, 30, tzinfo=UTC),
        None,
        datetime(2026, 2, 1, tzinfo=UTC),
    ]
    work = prepared(rules, pa.table({"t": pa.array(moments, pa.timestamp("us", "UTC"))}))
    for name in ("dict", "lambdas"):
        contender = ready(name, work)
        for number, event in enumerate(work.dicts):
            assert contender.rows(number).tolist() == [r for r, text in enumerate(rules) if matches(parse(text), event)]


def test_what_does_not_fit_is_refused_with_the_reason() -> None:
    with pytest.raises(UnfitError, match="several values"):
        ready("lambdas", prepared(["s contains any ('x')"], pa.table({"s": [["x"]]})))
    days = pa.table({"t": pa.array([1], pa.date32())})
    with pytest.raises(UnfitError, match="date32"):
        ready("dict", prepared(["t = date '2026-01-31'"], days))
    with pytest.raises(UnfitError, match="dates and times"):
        ready("rule-engine", prepared(["t = date '2026-01-31'"]))
    with pytest.raises(UnfitError, match="no order on strings"):
        ready("zen-engine", prepared(["s > 'a'"]))
    with pytest.raises(UnfitError, match="decimals"):
        ready("zen-engine", prepared(["f > 1"], pa.table({"f": [0.5]})))


def test_the_dict_asks_few_rules() -> None:
    work = prepared(["a = 1 and b = 1", "a = 1 and b = 2", "a = 1 and b > 1", "b > 1 or a = 1"])
    contender = ready("dict", work)
    assert {key: len(some) for key, some in contender.buckets.items()} == {("b", 1): 1, ("b", 2): 1, ("a", 1): 1}  # type: ignore[attr-defined]
    assert len(contender.always) == 1  # type: ignore[attr-defined]
