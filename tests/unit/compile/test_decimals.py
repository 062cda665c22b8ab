"""A decimal is the 64-bit integer that it equals, or the nearest float: in columns, dicts, ranges and rules alike."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eligo
from eligo.compile import codes
from eligo.compile.decimals import decimal_entries
from eligo.language import parse
from eligo.language.decimals import number_of
from eligo.language.reference import matches

TYPES = [
    pa.decimal32(9, 2), pa.decimal64(18, 4), pa.decimal128(10, 2), pa.decimal128(19, 0), pa.decimal128(38, 0),
    pa.decimal128(38, 18), pa.decimal128(38, 38), pa.decimal128(20, 1), pa.decimal128(9, -3), pa.decimal256(76, 30),
    pa.decimal256(76, 76), pa.decimal256(40, 0),
]  # fmt: skip


def decimals_of(kind: pa.DataType, seed: int) -> list[Decimal | None]:
    """Decimals of every size that the type holds, and those around 2⁵³, 2⁶³ and halfway between two floats."""
    draw = random.Random(seed)
    top = 10**kind.precision - 1
    found = [0, 1, -1, top, -top]
    found += [draw.randint(-(10**n), 10**n) for n in range(1, kind.precision) for _ in range(20)]
    ten = 10 ** max(kind.scale, 0)
    for near in (2**53, 2**54, 2**63, -(2**53), -(2**63), 2**64):
        found += [(near + step) * ten for step in (-3, -2, -1, 0, 1, 2, 3)]
        found += [near * ten + step for step in (-1, 1, ten // 2)]
    fitting = [n for n in found if -top <= n <= top]
    return [Decimal(f"{n}E{-kind.scale}") for n in fitting] + [None]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_column_holds_the_numbers_that_its_decimals_are(kind: pa.DataType) -> None:
    values = decimals_of(kind, 5)
    column = pa.array([None, *values], kind).slice(1)  # an offset, as of a slice
    found, keys = decimal_entries(column)
    for value, code, key in zip(values, found.tolist(), keys, strict=True):
        if value is not None:
            number = int(key) if code == codes.INTEGER else float(key.view(np.float64))
            assert number == number_of(value), value
            assert code in (codes.INTEGER, codes.RAW_FLOAT)


RULES = [
    "x = 0.1", "x = 1", "x < 2", "x > 9007199254740992", "x = 9007199254740993", "x != 1", "x in (0.5, 'a')", "x is null",
    "x between 0.1 and 0.5", "x >= 9223372036854775808.0", "x = '1'", "not x", "x > 1e300",
]  # fmt: skip
EVENTS = [
    *("0.1", "1.00", "-1.5", "9007199254740993", "9007199254740993.0", "9007199254740992.5", "0.5", "9223372036854775808"),
    *("0.1000000000000000055511151231257827021181583404541015625", "0.10000000000000000555", "0.30000000000000000000001"),
]  # fmt: skip
ODD = ["NaN", "sNaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "0E+100"]


def expected(event: dict[str, Any], several: bool) -> list[str]:
    return [rule for rule in RULES if matches(parse(rule), event, multi=["x"] if several else [])]


@pytest.mark.parametrize("index", ["scan", "propagation", "pst-hash", "be-tree"])
@pytest.mark.parametrize("several", [False, True])
def test_decimals_in_events_are_what_the_reference_says(index: str, several: bool) -> None:
    m = eligo.Matcher(index, multi=["x"] if several else [])
    m.add_many([(rule, rule) for rule in RULES])
    for text in [*EVENTS, *ODD]:
        event: dict[str, Any] = {"x": Decimal(text)}
        assert m.match(event) == expected(event, several), text
        if several:
            event = {"x": [Decimal(text), None, Decimal(1)]}
            assert m.match(event) == expected(event, several), text


def shapes(values: list[Decimal | None]) -> dict[str, tuple[pa.Table, list[dict[str, Any]]]]:
    plain = pa.array(values, pa.decimal256(76, 56))
    lists = pa.array([[value, None] for value in values], pa.list_(plain.type))
    maps = pa.array([[("x", value), ("y", value)] for value in values], pa.map_(pa.string(), plain.type))
    flat = [{"x": value} for value in values]
    nested = [{"u": event} for event in flat]
    return {
        "column": (pa.table({"x": plain}), flat),
        "chunks": (pa.table({"x": pa.chunked_array([plain.slice(0, 3), plain.slice(3)])}), flat),
        "dictionary": (pa.table({"x": plain.dictionary_encode()}), flat),
        "struct": (pa.table({"u": pa.StructArray.from_arrays([plain], ["x"])}), nested),
        "map": (pa.table({"u": maps}), nested),
        "list": (pa.table({"x": lists}), [{"x": [value]} for value in values]),
        "list in a struct": (pa.table({"u": pa.StructArray.from_arrays([lists], ["x"])}), [{"u": {"x": [value]}} for value in values]),
    }  # fmt: skip


@pytest.mark.parametrize("shape", shapes([Decimal(1)]))
def test_tables_with_decimals_are_their_rows(shape: str) -> None:
    table, events = shapes([Decimal(text) for text in EVENTS] + [None])[shape]
    name = "u.x" if "u" in table.column_names else "x"
    m = eligo.Matcher(multi=[name] if "list" in shape else [])
    m.add_many([(rule, rule.replace("x", name, 1)) for rule in RULES])
    found = m.match_batch(table)
    assert list(zip(found["event"].to_pylist(), found["rule"].to_pylist(), strict=True)) == [
        (number, rule) for number, event in enumerate(events) for rule in m.match(event)
    ]
    assert found.num_rows > 2 * len(EVENTS)


def test_data_frames_with_decimals_are_their_records() -> None:
    pandas = pytest.importorskip("pandas")
    m = eligo.Matcher()
    m.add_many([(rule, rule) for rule in RULES])
    for texts in (EVENTS, ODD, [*EVENTS, *ODD]):
        values = [*map(Decimal, texts), 1, 0.5, None]
        found = m.match_batch(pandas.DataFrame({"x": pandas.Series(values, dtype=object)}))
        assert found["rule"].to_pylist() == [rule for value in values for rule in m.match({"x": value})]


def test_ranges_and_rules_take_decimals() -> None:
    assert eligo.Between(Decimal("0.1"), Decimal(2)) == eligo.Between(0.1, 2)
    assert eligo.OneOf(Decimal(2**53 + 1), "a") == eligo.OneOf(2**53 + 1, "a")
    with pytest.raises(eligo.EventError, match="NaN"):
        eligo.Above(Decimal("NaN"))
    m = eligo.Matcher()
    m.add("json", {"attr": "x", "op": "in", "value": [Decimal("0.1"), Decimal(3)]})
    m.add("python", eligo.attr("x") == Decimal("0.10"))
    assert m.match({"x": 0.1}) == m.match({"x": Decimal("0.1")}) == ["json", "python"]
    assert m.match({"x": 3}) == ["json"]
    assert m.get("json").expression == "x in (0.1, 3)"
