"""Variants become columns of one kind each, whatever is in them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eligo
from eligo import EventError
from eligo.spark import sql
from eligo.spark.arrow_types import is_variant, variant_type
from eligo.spark.variant import attribute_column

VariantVal = pytest.importorskip("pyspark.sql.types").VariantVal


def column_of(texts: list[str | None]) -> pa.Array:
    parsed = [None if text is None else VariantVal.parseJson(text) for text in texts]
    rows = [v and {"value": bytes(v.value), "metadata": bytes(v.metadata)} for v in parsed]
    # Behind another row, as a part of a larger batch: offsets do not begin at 0.
    return pa.array([{"value": b"\0", "metadata": b"\1\0\0"}, *rows], variant_type()).slice(1)


def found(texts: list[str | None], *keys: str, several: bool = False) -> list[Any]:
    """The value of each row."""
    rows: list[Any] = attribute_column("v", column_of(texts), keys, several).to_pylist()
    return rows


def test_an_event_of_which_rules_look_at_nothing(tmp_path: Path) -> None:
    """It is one all the same, for the function in SQL."""
    matcher = eligo.Matcher()
    matcher.add_many([("none", "z is null"), ("some", "age > 1")])
    matcher.save(tmp_path / "rules")
    event = pa.StructArray.from_arrays([column_of(['{"a": 1}', None, "3"])], fields=[pa.field("v", variant_type())])
    path = pa.array([str(tmp_path / "rules")] * 3)
    assert sql._rules(path, event, sql.TEXTS).to_pylist() == [["none"]] * 3


def test_kinds_of_values() -> None:
    values = [1, -1, 127, -128, 300, -70_000, 2**31, -(2**63), 2**63 - 1, 1.5, -0.25, 1e300, 1e-7, 0.1, True, False]
    values += ["", "short", "é" * 20, "long " * 100, None, 12345678.90123456789, 123456789012345678901234567890.5]
    texts = [json.dumps({"other": 0, "a": value}) for value in values]
    assert found(texts, "a") == values
    assert [type(value) for value in found(texts, "a")] == [type(value) for value in values]
    assert found(["123456789012345678901"]) == [123456789012345678901.0]
    whole = ["9007199254740993.0", "1152921504606846977.000", "-9223372036854775808.00000000000000000000", "3.0"]
    assert found(whole) == [2**53 + 1, 2**60 + 1, -(2**63), 3]  # decimals, exact where they fit 64 bits
    assert found([f'{{"a": [{text}]}}' for text in whole], "a", several=True) == [
        [2**53 + 1],
        [2**60 + 1],
        [-(2**63)],
        [3],
    ]
    # A digit beyond the 28 of Python's context decides which float is the nearest.
    assert found(["1.0000000000000001110223024625156540424", "1.00000000000000011102230246251565404235"]) == [
        1.0000000000000002, 1.0]  # fmt: skip


def test_paths() -> None:
    texts = ['{"a": {"b": {"c": 1}}}', '{"a": {"b": 2}}', '{"a": 3}', "4", None, '{"b": {"a": 5}, "c": 6}', "{}", "[7]"]
    assert found(texts, "a", "b", "c") == [1, *[None] * 7]
    assert found(texts[1:], "a", "b") == [2, *[None] * 6]
    assert found(texts, "c") == [*[None] * 5, 6, None, None]
    assert found(["8", "null", None, '"x"']) == [8, None, None, "x"]
    assert found([], "a") == []


def test_objects_are_there_without_their_content() -> None:
    assert found(['{"a": {"b": 1}}', '{"a": {}}', '{"a": 1}', '{"a": null}', "{}"], "a") == [{}, {}, 1, None, None]
    # Rules name none of the objects among several values, so a list with them is one without.
    lists = ['{"a": [{"b": 1}, 2, null]}', '{"a": [{}]}', '{"a": {}}', '{"a": ["x", {}]}', "{}"]
    assert found(lists, "a", several=True) == [[2], [], [], ["x"], None]


def test_objects_of_many_fields_and_long_names() -> None:
    fields = {f"{'name' * 100}{i}": i for i in range(1000)}
    text = json.dumps(fields)
    for i in (0, 255, 256, 999):
        assert found([text, "{}"], f"{'name' * 100}{i}") == [i, None]


def test_several_values() -> None:
    values: list[Any] = [
        [1, 2],
        [],
        ["a", "b" * 100],
        3,
        "c",
        [1, 2.5],
        [True],
        None,
        [None],
        [None, 4],
        list(range(400)),
        [1, "a", True, 0.5],
        [2**62 + 1, 0.5, None, {}],
    ]
    expected = [[1, 2], [], ["a", "b" * 100], [3], ["c"], [1, 2.5], [True], None, [], [4], list(range(400))]
    expected += [[1, "a", True, 0.5], [2**62 + 1, 0.5]]
    assert found([json.dumps({"a": value}) for value in values], "a", several=True) == expected


@pytest.mark.parametrize(
    ("value", "several", "message"),
    [
        ([1], False, r"event 1: attribute 'v' holds a list but is single-valued.*multi=\['v'\]"),
        ([[1]], True, "a list in a list"),
    ],
)
def test_what_is_refused(value: Any, several: bool, message: str) -> None:
    with pytest.raises(EventError, match=message):
        found(["{}", json.dumps({"a": value})], "a", several=several)


def test_damage_is_found_or_harmless() -> None:
    rng = random.Random(7)
    value = VariantVal.parseJson(json.dumps({"a": [1, 2.5], "b": {"c": "some text", "d": 1.25}, "e": "x" * 80}))
    seen = 0
    for _ in range(3000):
        parts = [bytearray(value.value), bytearray(value.metadata)]
        part = parts[rng.randrange(2)]
        part[rng.randrange(len(part))] = rng.randrange(256)
        if rng.randrange(3) == 0:
            del part[rng.randrange(len(part)) :]
        column = pa.array([{"value": bytes(parts[0]), "metadata": bytes(parts[1])}] * 2, variant_type())
        keys = rng.choice((["a"], ["b", "c"], ["b", "d"], ["e"], []))
        try:
            attribute_column("v", column, keys, True)
        except EventError:
            seen += 1
    assert seen > 100


def test_what_a_variant_is_in_arrow() -> None:
    assert is_variant(variant_type())
    assert not is_variant(pa.struct([("value", pa.binary()), ("metadata", pa.binary())]))
    assert not is_variant(pa.binary())
