"""Explanations agree with matching, whatever the event holds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.language import parse
from eligo.language.reference import matches
from eligo.language.tree import And, Not, Or, Predicate


def explained(rule: str, event: dict[str, Any], **settings: Any) -> eligo.explain.Explanation:
    m = eligo.Matcher(**settings)
    m.add("r", rule)
    explanation = m.explain(event, "r")
    assert explanation.matched == (m.match(event) == ["r"])
    return explanation


def test_one_value_has_to_do_for_a_whole_conjunction() -> None:
    event = {"a": eligo.Between(0, 10), "b": 1}
    assert not explained("(a < 3 and b = 1) and a > 7", event)
    assert explained("(a < 3 and b = 1) or a > 7", event)
    assert explained("(a < 3 or b = 2) and (a > 7 or b = 2)", event)
    assert explained("not (a >= 3 or (b = 1 and not a > 7))", event)
    assert not explained("not (a >= 3 or (b = 2 or not a > 7))", event)
    assert "Between(0, 10)" in str(explained("(a < 3 and b = 1) and a > 2", event))


def test_ranges_at_the_ends_of_time() -> None:
    assert explained("not a <= timestamp '9999-12-31 23:59:59.999999Z'", {"a": eligo.Above(date(2026, 1, 31))})
    assert explained("a < date '0001-01-01'", {"a": eligo.Below(date(2026, 1, 31))})


def test_an_event_without_ranges_keeps_the_tree_as_written() -> None:
    assert explained("a > 1 and not (a > 5 or not b)", {"a": 2, "b": True}).lines == [
        (1, True, "all of", "2 of 2 hold"),
        (2, True, "a > 1", "a is 2"),
        (2, True, "not", ""),
        (3, False, "any of", "0 of 2 hold"),
        (4, False, "a > 5", "a is 2"),
        (4, False, "not", ""),
        (5, True, "b", "b is True"),
    ]


def test_a_negation_that_fails_for_an_absent_attribute_says_so() -> None:
    rule = "not (a = 1 or b = 2)"
    assert str(explained(rule, {"a": 3})).splitlines() == [
        "r does not match",
        "  ✗ not   (what it negates is neither true nor false)",
        "    ✗ any of   (0 of 2 hold, 1 is neither true nor false)",
        "      ✗ a = 1   (a is 3)",
        "      ✗ b = 2   (b is absent, so this is neither true nor false)",
    ]
    assert str(explained(rule, {"a": 3}, absent="classical")).splitlines() == [
        "r matches",
        "  ✓ not",
        "    ✗ any of   (0 of 2 hold)",
        "      ✗ a = 1   (a is 3)",
        "      ✗ b = 2   (b is absent)",
    ]
    # One conjunct that is false makes the whole false, whatever the other would be.
    assert explained("not (a = 1 and b = 2)", {"a": 3})
    assert [why for *_, why in explained("a != 1", {}).lines] == ["a is absent"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (date(2026, 1, 31), "2026-01-31"),
        (datetime(2026, 1, 31, 12), "2026-01-31 12:00:00"),
        (datetime(2026, 1, 31, 12, 0, 0, 5, UTC), "2026-01-31 12:00:00.000005"),
        (datetime(2026, 1, 31, 12, tzinfo=timezone(timedelta(hours=2))), "2026-01-31 12:00:00+02:00"),
        (np.datetime64("2026-01-31T12:00"), "2026-01-31 12:00:00"),
        (np.datetime64("30000-01-01"), "30000-01-01 00:00:00.000000"),
        ([date(2026, 1, 31), "x"], "[2026-01-31, 'x']"),
    ],
)
def test_times_are_written_as_people_write_them(value: Any, shown: str) -> None:
    assert explained("a = date '2026-01-31'", {"a": value}, multi=["a"]).lines[0][3] == f"a is {shown}"


def test_times_in_ranges_are_written_as_people_write_them() -> None:
    for value, shown in (
        (eligo.Between(date(2026, 1, 1), datetime(2026, 2, 1)), "Between(2026-01-01, 2026-02-01 00:00:00)"),
        (eligo.Below(date(2026, 1, 1), inclusive=True), "Below(2026-01-01, inclusive=True)"),
        (eligo.Above(5), "Above(5)"),
        (eligo.OneOf(date(2026, 1, 1), "x"), "OneOf(2026-01-01, 'x')"),
        (eligo.NoneOf("x"), "NoneOf('x')"),
    ):
        assert explained("a = date '2026-01-31'", {"a": value}).lines[0][3] == f"a is {shown}"


def test_each_predicate_is_asked_twice_however_deep_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    ask = eligo.explain.leaf_holds

    def counting(*arguments: Any) -> bool:
        nonlocal asked
        asked += 1
        return ask(*arguments)

    monkeypatch.setattr(eligo.explain, "leaf_holds", counting)
    root = parse("a = 1")
    for level in range(1000):
        root = (
            Not(And((Predicate("b", "=", (level,)), root)))
            if level % 2
            else Or((root, Predicate("c", "is null", (), True)))
        )
    explanation = eligo.explain.explain("r", root, {"a": 1, "b": 5}, "fails", ())
    assert explanation.matched == matches(root, {"a": 1, "b": 5})
    assert asked == 2 * 1001
    assert len(str(explanation)) < 300_000


def test_what_is_printed_is_bounded() -> None:
    wide = explained(" or ".join(f"(a = {n} and b > 3)" for n in range(5000)), {"a": 7, "b": 4})
    assert len(wide.lines) == 15001
    text = str(wide).splitlines()
    assert len(text) == 2 + 21 * 3 + 1
    assert text[2:5] == ["    ✗ all of   (1 of 2 hold)", "      ✗ a = 0   (a is 7)", "      ✓ b > 3   (b is 4)"]
    assert "      ✓ a = 7   (a is 7)" in text
    assert text[-1] == "    … 0 more that hold, 4,979 more that do not"
    listed = ", ".join(map(str, range(1000)))
    both = str(explained(f"a in ({listed}) and s like '{'x' * 1000}%'", {"a": 7, "s": "y" * 1000}))
    assert "19, … 980 more)" in both
    assert max(map(len, both.splitlines())) < 300


@pytest.mark.parametrize(
    "value",
    [
        np.int64(5), np.float32(5), np.str_("x"), np.bool_(True), np.array(5), np.datetime64("2026-01-31"),
        np.datetime64("2026-01-31", "ns"), np.datetime64("30000-01-01"), np.datetime64("NaT"), np.float64("nan"), None,
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "rule", ["a = 5", "a = 'x'", "a", "a is null", "a = date '2026-01-31'", "a != 5", "a > date '9999-12-31'"]
)
def test_values_of_numpy(rule: str, value: Any) -> None:
    explained(rule, {"a": value})
    explained(rule, {"a": [value]}, multi=["a"])


@pytest.mark.parametrize(
    "rule", ["a contains any (1, 'x')", "a contains none (1)", "a contains any (date '2026-01-31')"]
)
def test_arrays(rule: str) -> None:
    for given in ([1, 2], [], ["x"], ["2026-01-31", "NaT"]):
        kind = "datetime64[ns]" if "NaT" in given else None
        explained(rule, {"a": np.array(given, kind)})
        explained(rule, {"a": list(np.array(given, kind))})


def test_missing_values_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    for missing in (pandas.NaT, pandas.NA):
        assert explained("a is null", {"a": missing})
        assert not explained("a = 1", {"a": missing})
        assert "a is absent" in str(explained("a = 1", {"a": missing}))
    assert explained("a = date '2026-01-31'", {"a": pandas.Timestamp("2026-01-31")})


@pytest.mark.parametrize("event", [5, [1], {"a": np.timedelta64(5, "ns")}, {"a": object()}, {"a": [1]}, {"a": 1j}])
def test_what_matching_refuses_is_refused(event: Any) -> None:
    m = eligo.Matcher()
    m.add("r", "a = 5")
    with pytest.raises(eligo.EventError):
        m.match(event)
    with pytest.raises(eligo.EventError):
        m.explain(event, "r")
