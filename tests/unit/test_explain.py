"""Explanations agree with matching, whatever the event holds."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest

import eligo


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
    assert [what for _, _, what, _ in explained("a > 1 and not (a > 5 or b)", {"a": 2, "b": False}).lines] == [
        "all of", "a > 1", "not", "all of", "not a > 5", "not b",
    ]  # fmt: skip


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
