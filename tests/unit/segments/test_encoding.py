"""Many events in one table are matched as each of them is by itself."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eligo
from eligo import Between, EventError, Matcher
from eligo.segments.encoding import from_frame

RULES = [
    "x is null", "x = 1", "x != 1", "x = true", "x = false", "x > 0.25", "x >= 9007199254740993", "x = '1'", "x = 'a'",
    "not x >= 'a'", "x = date '2020-01-01'", "x > date '2020-01-01'", "x = timestamp '2020-01-01 12:00:00Z'", "x.b = 1",
]  # fmt: skip

# Values by kind; a column of a data frame has some of one kind, or of several.
VALUES: dict[str, list[Any]] = {
    "int": [0, 1, 2**53 + 1, -(2**63), 2**63 - 1], "huge": [2**63, 2**70], "float": [0.0, 1.0, 0.5, 2.0**53, math.inf],
    "nan": [math.nan], "None": [None], "NA": [pd.NA], "NaT": [pd.NaT], "bool": [True, False],
    "np.bool": [np.True_, np.False_], "np.int": [np.int64(1), np.uint64(2**63 + 5)], "np.float": [np.float32(0.5)],
    "str": ["", "a", "1", "é"], "np.str": [np.str_("a")], "surrogate": ["\ud800"], "bytes": [b"a"],
    "date": [date(2020, 1, 1), date(1, 1, 1)], "datetime": [datetime(2020, 1, 1, 12), datetime(2020, 1, 1)],
    "aware": [datetime(2020, 1, 1, 12, tzinfo=UTC)], "Timestamp": [pd.Timestamp("2020-01-01 12:00:00.000000001")],
    "datetime64": [np.datetime64("2020-01-01T12", "s"), np.datetime64("NaT")], "timedelta": [timedelta(1)],
    "Decimal": [Decimal("1"), Decimal("NaN")], "range": [Between(0, 1)],
    "list": [["a"], [1, 2], [], ["a", 1], [True, 1], [None, "a"], [math.nan, 1.0], [[1]], [date(2020, 1, 1), datetime(2020, 1, 1, 12)]],
    "tuple": [("a",), (1,)], "set": [{"a"}], "array": [np.array([1, 2]), np.array(["a", 1], object)],
    "dict": [{"b": 1}, {"b": "x"}, {}],
}  # fmt: skip


def one_by_one(m: Matcher, events: list[dict[str, Any]]) -> list[tuple[int, Any]] | None:
    """What each event matches by itself; None if one of them is refused."""
    try:
        return [(i, rule) for i, event in enumerate(events) for rule in m.match(event)]
    except EventError:
        return None


def together(m: Matcher, table: Any) -> list[tuple[int, Any]] | None:
    try:
        found = m.match_batch(table)
    except EventError:
        return None
    return list(zip(found["event"].to_pylist(), found["rule"].to_pylist(), strict=True))


@pytest.mark.parametrize("multi", [(), ("x",)])
@pytest.mark.parametrize("form", ["object", "inferred", "categories", "converted"])
@pytest.mark.filterwarnings("ignore")
def test_a_data_frame_is_matched_as_its_records(multi: tuple[str, ...], form: str) -> None:
    m = Matcher(multi=multi)
    m.add_many(enumerate(RULES))
    rng = random.Random(f"{multi} {form}")
    compared = 0
    for _ in range(600):
        kinds = rng.sample(list(VALUES), rng.choice((1, 2, 2, 3)))
        values = [rng.choice(VALUES[kind]) for kind in kinds for _ in range(rng.randint(1, 3))]
        rng.shuffle(values)
        column = pd.Series(values, dtype=object)
        try:
            if form == "inferred":
                column = pd.Series(values)
            elif form == "categories":
                column = pd.Series(pd.Categorical(values))
            elif form == "converted":
                column = column.convert_dtypes()
        except (TypeError, ValueError, OverflowError):
            continue  # pandas does not take them
        expected = one_by_one(m, [{"x": value} for value in column])
        assert together(m, pd.DataFrame({"x": column})) == expected, values
        compared += expected is not None
    assert compared > 50


def test_columns_of_one_type_stay_arrow() -> None:
    kept = {
        "s": ["a", None, math.nan], "i": [1, None, 2], "b": [True, False, None], "d": [date(2020, 1, 1), pd.NaT, None],
        "t": [datetime(2020, 1, 1), None, None], "f": [0.5, None, math.nan], "l": [["a"], None, []], "none": [None] * 3,
    }  # fmt: skip
    found = from_frame(pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in kept.items()}))
    assert isinstance(found, pa.Table)


def test_an_index_with_a_name_is_looked_at_too() -> None:
    m = Matcher()
    m.add_many(enumerate(RULES))
    values = [date(2020, 1, 1), datetime(2020, 1, 1, 12)]
    frame = pd.DataFrame({"y": [1, 2]}, index=pd.Index(values, dtype=object, name="x"))
    assert together(m, frame) == one_by_one(m, [{"x": value} for value in values])


def test_columns_are_known_by_the_text_of_their_names() -> None:
    m = Matcher()
    m.add("a", "`0` = 1")
    for values in ([1, 2], [1, "x"]):
        assert m.match_batch(pd.DataFrame({0: pd.Series(values, dtype=object)}))["event"].to_pylist() == [0]


def test_objects_of_polars_are_matched_as_records() -> None:
    m = Matcher()
    m.add_many(enumerate(RULES))
    values = [1, "a", True, date(2020, 1, 1), datetime(2020, 1, 1, 12), None]
    frame = pl.DataFrame({"x": values}, schema={"x": pl.Object})
    assert together(m, frame) == one_by_one(m, [{"x": value} for value in values])


def test_rules_of_a_data_frame_may_be_in_json_form() -> None:
    forms = [{"attr": "x", "op": "is null"}, {"attr": "x", "op": "=", "value": 1}]
    m = Matcher()
    m.add_many(pd.DataFrame({"id": ["a", "b"], "expression": forms}))
    assert m.match({"x": 1}) == ["b"]
    assert m.match({}) == ["a"]
    assert eligo.Matcher().add_many(pd.DataFrame({"id": [], "expression": []})) == []
