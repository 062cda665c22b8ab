"""Where the attributes of rules are in a schema, and what of them is sent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from eligo.spark.arrow_types import BARE, bare
from eligo.spark.event_columns import leaves_of, locate, sent_columns
from eligo.spark.worker_cache import Source, _unaskable

types = pytest.importorskip("pyspark.sql.types")


def schema(**columns: Any) -> Any:
    return types.StructType([types.StructField(name, kind) for name, kind in columns.items()])


INT = types.IntegerType()
MAP = types.MapType(types.StringType(), INT)
OBJECTS = schema(
    s=schema(n=INT, inner=schema(c=INT)), m=types.MapType(types.StringType(), MAP), a=types.ArrayType(MAP), v=types.VariantType()
)  # fmt: skip


def test_an_attribute_in_a_map_of_maps_may_be_in_two_places() -> None:
    found = locate(OBJECTS, ["m", "m.k", "m.k.j"], frozenset())
    assert found.paths == {"m": (("m",),), "m.k": (("m", "k"),), "m.k.j": (("m", "k.j"), ("m", "k", "j"))}
    sent = sent_columns(OBJECTS, ["m"], found.paths)
    assert [kind.simpleString() for kind in sent.types] == [
        OBJECTS["m"].dataType.simpleString(),
        "struct<>",
        "struct<>",
        "int",
    ]
    assert sent.attributes == (("m", 0), ("m.k", 1), ("m.k.j", 2), ("m.k.j", 3))


def test_two_columns_of_the_schema_for_one_attribute_cannot_be_asked() -> None:
    twice = schema(**{"s.inner": INT, "s": schema(inner=schema(c=INT))})
    found = locate(twice, ["s.inner", "s.inner.c"], frozenset())
    assert found.paths == {"s.inner.c": (("s", "inner", "c"),)}
    assert "more than once, as s.inner and s → inner" in found.unusable["s.inner"]


def test_a_list_of_objects_is_there_or_not() -> None:
    assert locate(OBJECTS, ["a"], frozenset({"a"})).paths == {"a": (("a",),)}
    assert "multi=['a']" in locate(OBJECTS, ["a"], frozenset()).unusable["a"]
    (kind,) = sent_columns(OBJECTS, (), {"a": (("a",),)}).types
    assert kind == types.StructType()
    nested = schema(a=types.ArrayType(types.ArrayType(MAP)))
    assert "cast it" in locate(nested, ["a"], frozenset({"a"})).unusable["a"]


def test_a_stream_sends_whether_objects_are_there() -> None:
    assert list(leaves_of(OBJECTS)) == ["s", "s.n", "s.inner", "s.inner.c", "m", "a"]


def test_a_variant_that_is_not_sent_needs_a_new_start() -> None:
    source = Source("unused", schema=OBJECTS.json())
    content: Any = SimpleNamespace(asked=("v", "s"), listable=frozenset())
    reasons = _unaskable(source, content)
    assert "columns='all' does not help" in reasons["v"]
    assert reasons["s"].endswith("or once with columns='all'")


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"n": 1}, None, {"n": None}], pa.struct([("n", pa.int32())])),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        pa.array([[{"n": 1}], None, []], pa.list_(pa.struct([("n", pa.int32())]))),
    ],
    ids=["struct", "map", "list"],
)
def test_of_an_object_only_its_presence_is_left(column: pa.Array) -> None:
    assert bare(column).type == BARE
    assert bare(column).to_pylist() == [{}, None, {}]
    assert bare(column.slice(1)).to_pylist() == [None, {}]
    assert bare(pa.array([[1]])).type == pa.list_(pa.int64())
