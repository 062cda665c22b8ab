"""What only removed rules named is nothing to an event, whatever it holds there."""

from __future__ import annotations

from datetime import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eligo
from eligo import EventError, Matcher

INDEXES = ("propagation", "be-tree", "pst-hash", "k-index")
ODD: dict[str, Any] = {"list": [1, 2], "bytes": b"x", "time": time(1), "large": 2**70, "surrogate": "\ud800"}
COLUMNS: dict[str, pa.Array] = {
    "list": pa.array([[1, 2]]),
    "binary": pa.array([b"x"]),
    "time": pa.array([time(1)]),
    "large": pa.array([2**64 - 1], pa.uint64()),
}


def after_removal(index: str) -> Matcher:
    """Too few rules are removed for a merge, which would make the tables anew."""
    matcher = Matcher(index)
    matcher.add_many((str(n), f"a = {n}") for n in range(50))
    matcher.add("gone", "b = 1 or c like 'a%b%' or d.e = 1")
    matcher.add("stays", "a = 1 and f is null")
    matcher.remove("gone")
    return matcher


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_a_value_that_no_rule_can_be_asked_about(index: str, value: Any, tmp_path: Path) -> None:
    matcher = after_removal(index)
    matcher.save(tmp_path / "rules")
    for one in (matcher, eligo.open(tmp_path / "rules")):
        for event in ({"a": 1, "b": value}, {"c": value, "a": 1}, {"d": {"e": value}, "a": 1}):
            assert one.match(event) == ["1", "stays"]
            assert one.match_batch([event, event])["rule"].to_pylist() == 2 * ["1", "stays"]
        one.observe([{"a": 1, "b": value}])
    with pytest.raises(EventError, match="'f'"):
        matcher.match({"a": 1, "b": value, "f": value})
    matcher.add("again", "b = 1")
    with pytest.raises(EventError, match="'b'"):
        matcher.match({"a": 1, "b": value})


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_column_that_no_rule_can_be_asked_about(index: str, column: pa.Array) -> None:
    matcher = after_removal(index)
    assert matcher.match_batch(pa.table({"b": column, "a": [1]}))["rule"].to_pylist() == ["1", "stays"]
    numbered = pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))  # along the path d.e
    assert matcher.match_batch(pa.table({"a": [1], "d": numbered}))["rule"].to_pylist() == ["1", "stays"]
    with pytest.raises(EventError, match="'f'"):
        matcher.match_batch(pa.table({"b": column, "a": [1], "f": column}))
