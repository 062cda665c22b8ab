"""Events as dicts: every value is read for what it is, left out, or refused by name."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import numpy as np
import pytest

import eligo
from odd_values import Rude

RULES = {
    "one": "n = 1", "five": "n = 5", "red": "n = 'red'", "prefix": "p like 're%'", "null": "n is null", "deep": "u.x = 1",
    "day": "n = date '2026-01-31'", "tags": "l contains any (1, 'red')", "empty": "l contains none (1)", "true": "n",
}  # fmt: skip


class Colour(str, Enum):  # noqa: UP042 - the older way, whose str() is 'Colour.RED'
    RED = "red"


class Level(IntEnum):
    ONE = 1


class OddKeys(Mapping[Any, Any]):
    """A mapping with a key that cannot be hashed."""

    def __getitem__(self, key: Any) -> Any:
        return {"n": 1}[key]

    def __iter__(self) -> Iterator[Any]:
        return iter((["x"], "n"))

    def __len__(self) -> int:
        return 2

    def items(self) -> Any:
        return [(["x"], 2), ("n", 1)]


def match(event: Any) -> list[Any]:
    m = eligo.Matcher()
    m.add_many(RULES)
    found = m.match(event)
    assert m.match_batch([{}, event])["rule"].to_pylist() == [*m.match({}), *found]
    return found


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, "red"), (Level.ONE, 1), (np.str_("red"), "red"), (np.int8(5), 5), (np.float32(5), 5), (np.bool_(True), True),
        (np.array(5), 5), (np.array("red"), "red"), (np.datetime64("2026-01-31"), date(2026, 1, 31)),
        (np.datetime64("2026-01-31T00:00:00.000000001", "ns"), date(2026, 1, 31)), (np.array(None), None),
        (np.datetime64("NaT"), None), (np.timedelta64("NaT"), None), (np.float64("nan"), None), (np.float16("nan"), None),
        (Decimal("nan"), None), (Decimal("snan"), None), (Decimal("5.00"), 5), (Decimal("5E+0"), 5), (Decimal("0.1"), 0.1),
        (Decimal("9007199254740993.0"), 2**53 + 1), (Decimal(2**63), 2.0**63), (Decimal("1e400"), math.inf),
        (Decimal("-inf"), -math.inf), (Decimal("1e-999999999"), 0), (Decimal("1e999999999"), math.inf),
    ],
)  # fmt: skip
def test_values_that_stand_for_plain_ones(value: Any, plain: Any) -> None:
    for name in ("n", "p", "l"):
        assert match({name: value}) == match({name: plain})
    assert match({"u": {"x": 1}, "n": value}) == match({"u": {"x": 1}, "n": plain})
    assert match({"l": [value]}) == match({"l": [plain]})


def test_an_enum_is_what_it_holds() -> None:
    assert match({"n": Colour.RED, "p": Colour.RED, "l": [Colour.RED]}) == ["red", "prefix", "tags", "empty"]
    assert match({"n": Level.ONE}) == ["one"]


def test_missing_values_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    for missing in (pandas.NA, pandas.NaT):
        assert match({"n": missing, "p": missing}) == ["null"]
        assert match({"n": missing, "u": {"x": 1}}) == ["null", "deep"]
        assert match({"n": missing, "u.x": missing, "u": {"x": 1}}) == ["null", "deep"]
        assert match({"l": [missing, 1]}) == ["null", "tags"]
    assert match({"n": pandas.Timestamp("2026-01-31")}) == ["day"]


def test_arrays_beside_nested_values() -> None:
    assert match({"u": {"x": 1}, "l": np.array([1, 2])}) == ["null", "deep", "tags"]
    assert match({"u": {"x": 1}, "l": np.array([2, 3])}) == ["null", "deep", "empty"]
    assert match({"l": np.array([])}) == ["null", "empty"]


@pytest.mark.parametrize(
    "value",
    [
        np.timedelta64(5, "ns"), np.timedelta64(5, "D"), timedelta(5), Rude(), [Rude()], np.array([[1, 2], [3, 4]]),
        np.array([[1]]), np.datetime64("300000-01-01"), np.datetime64(2**62, "s"), 1j, b"x", np.bytes_(b"x"),
        2**70, "\ud800", eligo.Between(0, 10**400), eligo.OneOf("\ud800"), object(), np.array([1, None, Rude()]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_cannot_be_used_is_named(value: Any) -> None:
    m = eligo.Matcher(multi=["l"])
    m.add_many(RULES)
    for name, event in (
        ("n", {"n": value}),
        ("l", {"l": value}),
        ("u.x", {"u": {"x": value}}),
        ("l", {"u": {"x": 1}, "l": value}),
    ):
        with pytest.raises(eligo.EventError, match=f"attribute '{name}'"):
            m.match(event)
        with pytest.raises(eligo.EventError, match=f"event 1: attribute '{name}'"):
            m.match_batch([{}, event])
    assert m.match({"n": 1}) == match({"n": 1})
    assert m.match({"other": value, "n": 1}) == match({"n": 1})


def test_keys_that_are_no_strings_are_ignored() -> None:
    assert match({1: 2, ("n",): 1, None: 3, "n": 1}) == ["one"]
    assert match({"u": {1: 2, "x": 1}, 2: {"x": 2}}) == ["null", "deep"]
    assert match(OddKeys()) == ["one"]
    assert match({"u": OddKeys(), "n": np.int8(1)}) == ["one"]


def test_times_far_away() -> None:
    m = eligo.Matcher()
    m.add_many({"late": "t > timestamp '9999-12-31 23:59:59Z'", "number": "t > 0"})
    assert m.match({"t": np.datetime64("30000-01-01")}) == ["late"]
    assert m.match({"t": datetime(2026, 1, 1, tzinfo=UTC)}) == []
