"""Tables in every shape give what the same events give as dicts."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import eligo
from eligo.compile.arrow_events import TableEvents
from eligo.compile.attributes import Attributes
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings

RULES = {
    "int": "n = 3", "big": "n > 9007199254740992", "float": "f >= 0.5", "whole": "f = 2", "text": "s = 'a'",
    "prefix": "s like 'ab%'", "pattern": "s like '%é%'", "order": "s < 'b' and s >= 'a'", "empty": "s = ''",
    "flag": "b", "unflag": "not b", "day": "t = date '2026-01-31'", "late": "t > timestamp '2026-01-31 12:00:00Z'",
    "null": "s is null", "path": "u.age >= 18", "deep": "u.home.city = 'X'", "tags": "l contains any ('x', 'y')",
    "all": "l contains all ('x', 'y')", "none": "l contains none ('x')", "key": "m.k = 1", "odd": "`m.a b` = 2",
    "numbers": "ns contains any (1, 2)",
}  # fmt: skip

EVENTS: list[dict[str, Any]] = [
    {"n": 3, "f": 0.5, "s": "a", "b": True, "t": datetime(2026, 1, 31, tzinfo=UTC), "u": {"age": 20, "home": {"city": "X"}},
     "l": ["x", "y"], "m": {"k": 1}, "ns": [1]},
    {"n": 2**53 + 1, "f": 2.0, "s": "abc", "b": False, "t": datetime(2026, 1, 31, 13, tzinfo=UTC), "l": ["z"], "ns": []},
    {"n": None, "f": float("nan"), "s": "xéx", "u": {"age": None, "home": None}, "l": [], "m": {"a b": 2, "zz": 3}},
    {"s": "", "l": None, "u": {"home": {"city": "X"}}, "ns": [None, 2]},
    {"l": ["y", None, "x"], "n": -5, "f": float("inf"), "m": {}},
]  # fmt: skip

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("t", pa.timestamp("us", "UTC")),
        ("u", pa.struct([("age", pa.int32()), ("home", pa.struct([("city", pa.string())]))])),
        ("l", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("ns", pa.large_list(pa.int8())),
        ("unused", pa.binary()),
    ]
)


def matcher() -> eligo.Matcher:
    m = eligo.Matcher()
    m.add_many(RULES)
    return m


def table() -> pa.Table:
    rows = [{**event, "m": list(event["m"].items())} if "m" in event else event for event in EVENTS]
    return pa.Table.from_pylist(rows, SCHEMA)


def one_by_one(m: eligo.Matcher, events: list[dict[str, Any]] = EVENTS) -> list[tuple[int, Any]]:
    return [(i, rule) for i, event in enumerate(events) for rule in m.match(event)]


def pairs(answer: pa.Table) -> list[tuple[int, Any]]:
    return list(zip(answer["event"].to_pylist(), answer["rule"].to_pylist(), strict=True))


def test_a_table_is_its_rows() -> None:
    m = matcher()
    assert pairs(m.match_batch(table())) == one_by_one(m) == pairs(m.match_batch(EVENTS))
    assert len(one_by_one(m)) > 20


def test_slices_chunks_and_batches() -> None:
    m = matcher()
    whole = pa.concat_tables([table(), table(), table()])
    wanted = one_by_one(m, EVENTS * 3)
    assert pairs(m.match_batch(whole)) == wanted
    assert pairs(m.match_batch(whole.combine_chunks().to_batches()[0])) == wanted
    part = whole.slice(2, 7)
    assert pairs(m.match_batch(part)) == one_by_one(m, (EVENTS * 3)[2:9])
    assert pairs(m.match_batch(whole.slice(3, 0))) == []
    assert pairs(m.match_batch(SCHEMA.empty_table())) == []


def test_more_rows_than_one_slice() -> None:
    m = matcher()
    many = pa.concat_tables([table()] * 2000)
    answer = m.match_batch(many)
    assert answer.num_rows == 2000 * len(one_by_one(m))
    assert answer["event"].to_pylist()[-1] == one_by_one(m)[-1][0] + 1999 * len(EVENTS)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, None], pa.int8()), ([3, None], pa.uint64()), ([3, None], pa.float32()), ([3, None], pa.float16()),
        ([3, None], pa.decimal128(5)),
    ],
)  # fmt: skip
def test_kinds_of_numbers(values: list[Any], kind: pa.DataType) -> None:
    m = matcher()
    array = pa.array(np.array([3, 0], np.float16)) if kind == pa.float16() else pa.array(values, kind)
    assert (0, "int") in pairs(m.match_batch(pa.table({"n": array})))


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_kinds_of_strings(kind: pa.DataType) -> None:
    m = matcher()
    column = pa.array(["a", None, "abé", "zz"]).cast(kind)
    wanted = one_by_one(m, [{"s": "a"}, {}, {"s": "abé"}, {"s": "zz"}])
    assert pairs(m.match_batch(pa.table({"s": column}))) == wanted
    assert pairs(m.match_batch(pa.table({"s": column}).slice(1))) == [(i - 1, r) for i, r in wanted if i]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_kinds_of_times(unit: str, zone: str | None) -> None:
    m = matcher()
    moments = [
        datetime(2026, 1, 31, tzinfo=UTC),
        datetime(2026, 1, 31, 13, tzinfo=UTC),
        datetime(1969, 1, 1, tzinfo=UTC),
        None,
    ]
    column = pa.array(moments, pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, "UTC"))
    column = column.cast(pa.timestamp(unit, zone)) if zone else column.cast(pa.int64()).cast(pa.timestamp(unit))
    rows = [{"t": moment} for moment in moments]
    assert pairs(m.match_batch(pa.table({"t": column}))) == one_by_one(m, rows)


def test_dates() -> None:
    m = matcher()
    for kind in (pa.date32(), pa.date64()):
        assert (0, "day") in pairs(m.match_batch(pa.table({"t": pa.array([date(2026, 1, 31), None], kind)})))


def test_lists_need_to_be_declared() -> None:
    m = matcher()
    with pytest.raises(eligo.EventError, match=r"event 1: attribute 'n' holds a list.*multi=\['n'\]"):
        m.match_batch(pa.table({"n": [None, [1, 2]]}))
    assert pairs(
        m.match_batch(pa.table({"n": pa.array([None, None], pa.list_(pa.int64())), "s": ["a", None]}))
    ) == one_by_one(m, [{"s": "a"}, {}])


def test_what_cannot_be_used_is_named() -> None:
    m = matcher()
    with pytest.raises(eligo.EventError, match="'s' holds values of Arrow type binary"):
        m.match_batch(pa.table({"s": pa.array([b"x"])}))
    with pytest.raises(eligo.EventError, match="64 bits"):
        m.match_batch(pa.table({"n": pa.array([2**64 - 1], pa.uint64())}))
    with pytest.raises(eligo.EventError, match="twice"):
        m.match_batch(pa.table({"u.age": [1], "u": [{"age": 5}]}))
    assert pairs(m.match_batch(pa.table({"u.age": [19, None], "u": [{"age": None}, {"age": 20}]}))) == one_by_one(
        m, [{"u.age": 19}, {"u.age": 20}]
    )
    with pytest.raises(eligo.EventError, match="many events"):
        m.match_batch({"n": 1})


def test_pandas_and_polars() -> None:
    m = matcher()
    # pandas makes floats of integers beside a null, so none of those is large here.
    flat = [{k: v for k, v in event.items() if k in ("n", "f", "s", "b") and v != 2**53 + 1} for event in EVENTS]
    wanted = one_by_one(m, flat)
    for name in ("pandas", "polars"):
        library = pytest.importorskip(name)
        frame = library.DataFrame(
            pa.Table.from_pylist(flat, pa.schema([SCHEMA.field(k) for k in ("n", "f", "s", "b")])).to_pydict()
        )
        assert pairs(m.match_batch(frame)) == wanted, name


def test_categories_of_polars() -> None:
    polars = pytest.importorskip("polars")
    m = matcher()
    frame = polars.DataFrame(
        {
            "s": polars.Series(["a", None, "abc"], dtype=polars.Categorical),
            "l": polars.Series([["x", "y"], ["x", None], None], dtype=polars.List(polars.Enum(["x", "y"]))),
        }
    )
    assert pairs(m.match_batch(frame)) == one_by_one(m, frame.to_dicts())
    assert pairs(m.match_batch(frame.slice(1))) == one_by_one(m, frame.to_dicts()[1:])
    chunks = pa.concat_tables([pa.table(frame), pa.table(frame.reverse())])
    assert pairs(m.match_batch(chunks)) == one_by_one(m, frame.to_dicts() + frame.reverse().to_dicts())


NESTED_RULES = {
    "field": "mm.k.x = 1", "other": "mm.j.x = 2", "deep": "mm.k.in.z = 3", "list": "mm.k.l contains any ('p')",
    "none": "mm.k.x is null", "map": "st.m.k = 1", "lists": "ml.k contains any (1, 2)", "no": "ml.k contains none (1)",
}  # fmt: skip
NESTED: list[dict[str, Any]] = [
    {"mm": {"k": {"x": 1, "in": {"z": 3}, "l": ["p", "q"]}, "j": {"x": 2}}, "st": {"m": {"k": 1}}, "ml": {"k": [1]}},
    {"mm": None, "st": None, "ml": {"k": []}},
    {"mm": {"j": {"x": 1}, "k": None}, "st": {"m": None}, "ml": {"k": None, "zz": [1]}},
    {"mm": {"zz": {"x": 1}, "k": {"x": 1, "l": []}}, "st": {"m": {"j": 1}}, "ml": {"j": [1], "k": [None, 2]}},
]
NESTED_SCHEMA = pa.schema(
    [
        (
            "mm",
            pa.map_(
                pa.string(),
                pa.struct(
                    [("x", pa.int64()), ("in", pa.map_(pa.string(), pa.int8())), ("l", pa.list_(pa.large_string()))]
                ),
            ),
        ),
        ("st", pa.struct([("m", pa.map_(pa.large_string(), pa.int64()))])),
        ("ml", pa.map_(pa.string(), pa.list_(pa.int64()))),
    ]
)


def as_pairs(value: Any, kind: pa.DataType) -> Any:
    """Dicts as Arrow takes them for maps."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return [(key, as_pairs(inner, kind.item_type)) for key, inner in value.items()]
    if pa.types.is_struct(kind):
        return {key: as_pairs(inner, kind.field(key).type) for key, inner in value.items()}
    return value


def test_maps_and_structs_in_each_other() -> None:
    m = eligo.Matcher()
    m.add_many(NESTED_RULES)
    rows = [{k: as_pairs(v, NESTED_SCHEMA.field(k).type) for k, v in event.items()} for event in NESTED]
    whole = pa.Table.from_pylist(rows, NESTED_SCHEMA)
    wanted = one_by_one(m, NESTED)
    assert {rule for _, rule in wanted} == set(NESTED_RULES)
    assert pairs(m.match_batch(whole)) == wanted
    assert pairs(m.match_batch(whole.slice(1))) == one_by_one(m, NESTED[1:])
    assert pairs(m.match_batch(pa.concat_tables([whole.slice(2), whole]))) == one_by_one(m, NESTED[2:] + NESTED)


def test_a_key_beside_a_flat_column() -> None:
    m = matcher()
    m.add("struct", "mm.k.x = 1")
    maps = pa.array([[("k", 1)], [("k", 1)], [("k", None)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(eligo.EventError, match=r"event 1: attribute 'm.k' is given twice"):
        m.match_batch(pa.table({"m": maps, "m.k": [None, 1, 1]}))
    assert pairs(m.match_batch(pa.table({"m": maps, "m.k": [None, None, 1]}))) == one_by_one(m, [{"m.k": 1}] * 3)
    deep = pa.array([[("k", {"x": 1})]], pa.map_(pa.string(), pa.struct([("x", pa.int64())])))
    with pytest.raises(eligo.EventError, match=r"event 0: attribute 'mm.k.x' is given twice"):
        m.match_batch(pa.table({"mm": deep, "mm.k": [{"x": 2}]}))


def test_a_map_that_repeats_a_key() -> None:
    m = matcher()
    m.add("several", "m.l contains all (1, 2)")
    maps = pa.map_(pa.string(), pa.int64())
    with pytest.raises(eligo.EventError, match=r"event 1: attribute 'm.k' is given twice"):
        m.match_batch(pa.table({"m": pa.array([[], [("k", 1), ("zz", 1), ("k", 2)]], maps)}))
    allowed = pa.array([[("k", 1), ("k", None), ("zz", 1), ("zz", 1), ("l", 1), ("l", 2)]], maps)
    assert pairs(m.match_batch(pa.table({"m": allowed}))) == one_by_one(m, [{"m": {"k": 1, "l": [1, 2]}}])


def test_null_lists_with_something_under_them() -> None:
    m = matcher()
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 5]), pa.array(["x", "y", "x", "x", "z"]), mask=pa.array([False, True, False])
    )
    fixed = pa.array([["x", "y"], None, ["z", "z"]], pa.list_(pa.string(), 2))
    for column in (hidden, fixed):
        assert pairs(m.match_batch(pa.table({"l": column}))) == one_by_one(m, [{"l": ["x", "y"]}, {}, {"l": ["z"]}])


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("t", pa.array([700_000_000], pa.int32()).cast(pa.date32())),
        ("t", pa.array([2**62], pa.int64()).cast(pa.date64())),
        ("t", pa.array([-(2**63)], pa.int64()).cast(pa.timestamp("s"))),
        ("m", pa.array([[(b"\xff", 1)]], pa.map_(pa.binary(), pa.int64()))),
        ("m", pa.array([[(1, 1)]], pa.map_(pa.int64(), pa.int64()))),
        ("n", pa.array([5], pa.duration("s"))),
    ],
)
def test_what_arrow_refuses_is_named(name: str, column: pa.Array) -> None:
    with pytest.raises(eligo.EventError, match=f"attribute '{name}"):
        matcher().match_batch(pa.table({name: column}))
    matcher().match_batch(pa.table({name: pa.nulls(1, column.type)}))


def test_a_data_frame_with_mixed_values_is_its_records() -> None:
    pandas = pytest.importorskip("pandas")
    m = matcher()
    rows = [
        {"n": 3, "s": "a", "l": ["x"]},
        {"n": "x", "s": None, "l": None},
        {"n": True, "s": float("nan")},
        {"n": 2**70},
    ]
    frame = pandas.DataFrame(rows[:3], dtype=object)
    assert pairs(m.match_batch(frame)) == one_by_one(m, rows[:3])
    assert (0, "int") in pairs(m.match_batch(frame.set_index("n")))
    times = pandas.DataFrame({"n": [3, "x"], "t": [pandas.Timestamp("2026-01-31"), pandas.NaT]})
    assert pairs(m.match_batch(times)) == one_by_one(m, [{"n": 3, "t": date(2026, 1, 31)}, {}])
    with pytest.raises(eligo.EventError, match=r"event 3: attribute 'n'.*64 bits"):
        m.match_batch(pandas.DataFrame(rows, dtype=object))
    with pytest.raises(eligo.EventError, match="Duplicate"):
        m.match_batch(pandas.DataFrame([[1, 2]], columns=["n", "n"]))


def test_rules_as_a_data_frame_with_mixed_values() -> None:
    pandas = pytest.importorskip("pandas")
    m = eligo.Matcher()
    form = {"attr": "n", "op": "=", "value": 3}
    frame = pandas.DataFrame({"id": ["a", "b"], "expression": ["n = 3", form], "weight": [2.0, float("nan")]})
    assert m.add_many(frame) == []
    assert m.top({"n": 3}) == [("a", 2.0), ("b", 1.0)]
    with pytest.raises(eligo.RuleTypeError, match="missing expression"):
        m.add_many(pandas.DataFrame({"id": ["a", 5], "rule": ["x", "y"]}))
    with pytest.raises(eligo.RuleTypeError, match="Duplicate"):
        m.add_many(pandas.DataFrame([["a", "n = 1", "n = 2"]], columns=["id", "expression", "expression"]))


@pytest.mark.parametrize("given", [5, None, 1.5, {"n": 1}, "n", object()])
def test_what_is_not_many_events(given: Any) -> None:
    with pytest.raises(eligo.EventError, match="many events are"):
        matcher().match_batch(given)


def strings_with(wrong: bytes, kind: pa.DataType | None = None) -> pa.Array:
    """The strings "x", "é" and one of these bytes, which Arrow does not look at."""
    data = "xé".encode() + wrong
    offsets = np.array([0, 1, 3, 3 + len(wrong)], np.int32)
    column = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return column if kind is None else column.cast(kind)


@pytest.mark.parametrize("wrong", [b"\xff", b"a\xc3", b"\xa9", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80"])
def test_a_string_that_is_no_utf8_is_named_by_column_and_row(wrong: bytes) -> None:
    m = eligo.Matcher(multi=["l"])
    m.add_many(enumerate(["s = 'x'", "u.s = 'x'", "l = 'x'", "m.k = 'x'", "m.x = 'y'", "p like '%x%'"]))
    texts = strings_with(wrong)
    ends = pa.array([0, 1, 1, 3], pa.int32())
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), texts)
    cases: list[tuple[str, str, int]] = [("s", "a string", 2), ("p", "a string", 2), ("u.s", "a string", 2)]
    columns = {
        "s": [texts, texts.cast(pa.large_string()), texts.cast(pa.string_view()), encoded, texts.slice(1)],
        "p": [texts],
        "u.s": [pa.StructArray.from_arrays([texts], ["s"])],
        "l": [pa.ListArray.from_arrays(ends, texts)],
        "m.k": [pa.MapArray.from_arrays(ends, pa.array(["k", "j", "k"]), texts)],
        "m": [pa.MapArray.from_arrays(ends, texts, pa.array(["y", "y", "y"]))],
    }
    cases += [("l", "a string", 2), ("m.k", "a string", 2), ("m", "a key", 2)]
    for name, what, row in cases:
        for column in columns[name]:
            at = row - 1 if column.offset else row
            with pytest.raises(eligo.EventError, match=f"event {at}: attribute '{name}' holds {what} that is no valid"):
                m.match_batch(pa.table({name.split(".")[0]: column}))
    nothing = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x03"), *texts.buffers()[1:]])
    assert nothing.null_count == 1
    assert pairs(m.match_batch(pa.table({"s": nothing, "unused": texts}))) == [(0, 0)]  # nobody looks under a null


def test_texts_that_are_valid_only_together_are_refused() -> None:
    offsets = np.array([0, 1, 2], np.int32)
    column = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer("é".encode())])
    with pytest.raises(eligo.EventError, match="event 0: attribute 's'"):
        matcher().match_batch(pa.table({"s": column}))


def test_what_arrow_cannot_make_of_views_beside_a_union_is_an_error_and_not_the_end_of_the_process() -> None:
    m = eligo.Matcher()
    m.add_many([(1, "u.p = 1"), (2, "u.d = 1")])
    union = pa.UnionArray.from_sparse(pa.array([0, 1] * 9, pa.int8()), [pa.array([1] * 18), pa.nulls(18)])
    slow = pa.array([1] * 18, pa.decimal128(5, 1))
    views = pa.array(["x"] * 18, pa.string_view())
    column = pa.StructArray.from_arrays([union, views, slow], ["p", "s", "d"])
    with pytest.raises(eligo.EventError, match="attribute 'u' cannot be read from Arrow type struct"):
        m.match_batch(pa.table({"u": column.slice(12)}))


def test_string_views_anywhere() -> None:
    view = pa.string_view()
    m = eligo.Matcher(multi=["l", "m.l"])
    m.add_many(enumerate(["s = 'x'", "u.s = 'x'", "l = 'x'", "m.k = 'x'", "m.u.s = 'x'", "m.m.k = 'x'", "m.l = 'x'"]))
    columns: list[tuple[str, Any, pa.DataType]] = [
        ("s", "x", view),
        ("u", {"s": "x"}, pa.struct([("s", view)])),
        ("l", ["x"], pa.list_(view)),
        ("m", [("j", "z"), ("k", "x")], pa.map_(view, view)),
        ("m", [("u", {"s": "x"})], pa.map_(view, pa.struct([("s", view)]))),
        ("m", [("m", [("k", "x")])], pa.map_(view, pa.map_(view, view))),
        ("m", [("l", ["x"])], pa.map_(pa.string(), pa.large_list(view))),
    ]
    for rule, (name, value, kind) in enumerate(columns):
        column = pa.array([None, value, None, value], kind)
        for table in (
            pa.table({name: column}),
            pa.table({name: pa.chunked_array([column.slice(0, 1), column.slice(1)])}),
        ):
            assert pairs(m.match_batch(table)) == [(1, rule), (3, rule)]


@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_structs_and_maps_are_objects_where_rules_name_the_whole(absent: Any) -> None:
    m = eligo.Matcher(absent=absent, multi=["l"])
    rules = ["{} is null", "{} is not null", "{} = true", "{} != true", "{} = 1", "{} != 1", "not {} like '%'", "{}.b = 1",
             "{}.b is null", "{}.b != 1", "{}.b.c = 2", "{}.b.c is null"]  # fmt: skip
    m.add_many(enumerate(rule.format(name) for name in ("a", "l") for rule in rules))
    deep = pa.struct([("b", pa.struct([("c", pa.int64())]))])
    columns: list[tuple[str, pa.DataType, list[Any]]] = [
        ("a", pa.struct([("b", pa.int64())]), [{"b": 1}, {"b": None}, None, {"b": 2}]),
        ("a", deep, [{"b": {"c": 2}}, {"b": {"c": None}}, {"b": None}, None]),
        ("a", pa.map_(pa.string(), pa.int64()), [{"b": 1}, {}, None, {"z": 1}]),
        ("a", pa.map_(pa.string(), deep.field(0).type), [{"b": {"c": 2}}, {}, None, {"b": None}]),
        ("l", pa.struct([("b", pa.int64())]), [{"b": 1}, None]),
        ("l", pa.list_(pa.struct([("b", pa.int64())])), [[{"b": 1}], [None], [], None]),
        ("l", pa.list_(pa.map_(pa.string(), pa.int64())), [[{"b": 1}, {}], None]),
    ]
    for name, kind, values in columns:
        items = [list(value.items()) if pa.types.is_map(kind) and value is not None else value for value in values]
        if pa.types.is_list(kind) and pa.types.is_map(kind.value_type):
            items = [None if value is None else [list(one.items()) for one in value] for value in values]
        column = pa.array(items, kind)
        expected = one_by_one(m, [{name: value} for value in values])
        assert pairs(m.match_batch(pa.table({name: column}))) == expected, kind
        assert pairs(m.match_batch(pa.table({name: pa.concat_arrays([column, column]).slice(len(column))}))) == expected
    n = eligo.Matcher()
    n.add("r", "a.a is null")
    struct = pa.array([{"a": None}, {"a": {"b": 1}}], pa.struct([("a", pa.struct([("b", pa.int64())]))]))
    with pytest.raises(eligo.EventError, match=r"event 1: attribute 'a\.a' is given twice"):
        n.match_batch(pa.table({"a": struct, "a.a": pa.array([1, 2])}))


def test_columns_of_one_name_and_what_has_no_columns() -> None:
    m = eligo.Matcher()
    m.add("r", "a = 1")
    with pytest.raises(eligo.EventError, match=r"event 0: attribute 'a' is given twice, by two columns: drop one"):
        m.match_batch(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))
    for frame in (pd.DataFrame([[1, 2]], columns=["a", "a"]), pa.chunked_array([pa.array([1])])):
        with pytest.raises(eligo.EventError, match=r"events are rows of columns, each with a name of its own"):
            m.match_batch(frame)


@pytest.mark.parametrize("index", ["auto", "be-tree"])
@pytest.mark.parametrize("mode", ["dense", "sparse"])
def test_unions_hold_each_value_in_its_own_type(index: str, mode: str) -> None:
    """Also of several values, behind other rows, and in chunks."""
    values: list[Any] = [7, 1, "a", None, True, "ab", 2, 0.5]
    kinds = [
        0 if value is None or type(value) is int else [str, bool, float].index(type(value)) + 1 for value in values
    ]
    types = [pa.int64(), pa.string(), pa.bool_(), pa.float64()]
    if mode == "dense":
        parts = [[v for v, k in zip(values, kinds, strict=True) if k == n] for n in range(4)]
        places = pa.array([kinds[:i].count(kind) for i, kind in enumerate(kinds)], pa.int32())
        arrays = [pa.array(part, kind) for part, kind in zip(parts, types, strict=True)]
        union = pa.UnionArray.from_dense(pa.array(kinds, pa.int8()), places, arrays)
    else:
        parts = [[v if k == n else None for v, k in zip(values, kinds, strict=True)] for n in range(4)]
        arrays = [pa.array(part, kind) for part, kind in zip(parts, types, strict=True)]
        union = pa.UnionArray.from_sparse(pa.array(kinds, pa.int8()), arrays)
    assert union.to_pylist() == values
    matcher = eligo.Matcher(index, multi=["l"])
    rules = ["{} = 1", "{} like 'a%'", "{}", "{} < 1", "{} is null", "{} = 'ab'", "{} in (2, 'a', true)", "{} = 7"]
    matcher.add_many((f"{name} {rule}", rule.format(name)) for name in "xl" for rule in rules)
    lists = pa.ListArray.from_arrays([0, 1, 4, 4, 8], union)
    for table, column in (("x", union.slice(1)), ("l", lists.slice(1))):
        events = [{table: value} for value in column.to_pylist()]
        expected = matcher.match_batch(events).to_pylist()
        assert len(expected) > 4
        assert matcher.match_batch(pa.record_batch({table: column})).to_pylist() == expected
        chunks = pa.chunked_array([column.slice(0, 2), column.slice(2)])
        assert matcher.match_batch(pa.table({table: chunks})).to_pylist() == expected


def test_a_day_too_far_away_is_named_by_column_and_row() -> None:
    matcher = eligo.Matcher()
    matcher.add("day", "d > date '2026-01-31'")
    days = pa.array([0, None, 200_000_000, 20_500], pa.int32()).cast(pa.date32())
    with pytest.raises(eligo.EventError, match="event 2: attribute 'd': a date or timestamp lies beyond"):
        matcher.match_batch(pa.table({"d": days}))
    assert matcher.match_batch(pa.table({"d": days.take([0, 1, 3])})).to_pylist() == [{"event": 2, "rule": "day"}]


SPARSE = [
    {"n": 3, "s": "a", "t": datetime(2026, 1, 31, tzinfo=UTC)},
    {},
    {"s": "abc", "f": 0.5, "u.age": 20, "unknown": 1},
    {"l": "x", "b": True, "n": 2**60},
]


def in_pairs(kind: str) -> pa.Array:
    """Sparse events as one column of a union of types: of maps, or of lists of structs."""
    types = [pa.int64(), pa.string(), pa.bool_(), pa.float64(), pa.timestamp("us", "UTC")]
    pairs = [pair for event in SPARSE for pair in event.items()]
    kinds = [[int, str, bool, float, datetime].index(type(value)) for _, value in pairs]
    parts = [pa.array([v for (_, v), k in zip(pairs, kinds, strict=True) if k == n], t) for n, t in enumerate(types)]
    places = pa.array([kinds[:i].count(k) for i, k in enumerate(kinds)], pa.int32())
    values = pa.UnionArray.from_dense(pa.array(kinds, pa.int8()), places, parts)
    names = pa.array([name for name, _ in pairs])
    offsets = pa.array(np.cumsum([0, *map(len, SPARSE)]), pa.int32())
    if kind == "map":
        return pa.MapArray.from_arrays(offsets, names, values)
    structs = pa.StructArray.from_arrays([names, values], ["attribute", "value"])
    return pa.ListArray.from_arrays(offsets, structs)


@pytest.mark.parametrize("index", ["auto", "be-tree"])
@pytest.mark.parametrize("kind", ["map", "list"])
def test_pairs_are_attributes_as_columns_are(kind: str, index: str) -> None:
    m = eligo.Matcher(index)
    m.add_many(RULES)
    column, whole = in_pairs(kind), [{"k": 1, **event} for event in SPARSE]
    m.add("beside", "k = 1 and n = 3")
    events = pa.table({"has": column, "k": [1] * len(SPARSE)})
    wanted = one_by_one(m, whole)
    assert pairs(m.match_batch(events, pairs="has")) == wanted
    assert (0, "beside") in wanted
    assert pairs(m.match_stream(events, pairs="has").read_all()) == wanted
    assert m.top_batch(events, 100, pairs="has")["rule"].to_pylist() == m.top_batch(whole, 100)["rule"].to_pylist()
    many = pa.concat_tables([events] * 2000)
    m.observe(many, pairs="has")
    for threads in (1, 2):
        assert len(m.match_batch(many, pairs="has", threads=threads)) == 2000 * len(wanted)
    assert pairs(m.match_batch(events.slice(1, 2), pairs="has")) == one_by_one(m, whole[1:3])


def test_many_pairs_in_any_order() -> None:
    r = random.Random(8)
    m = eligo.Matcher(multi=["w7", "w300"])
    m.add_many((i, f"w{i} = {i % 5} and w{(i + 13) % 400} >= 1") for i in range(400))
    m.add(400, "w7 contains all (1, 2) and w300 contains any (3)")
    events, given = [], []
    for size in (1, 31, 32, 33, 34, 63, 64, 65, 399, 400):
        event: dict[str, Any] = {f"w{k}": r.randrange(5) for k in r.sample(range(400), size)}
        event |= {name: [1, 2, 3] for name in ("w7", "w300") if name in event}
        flat = [(name, one) for name, value in event.items() for one in (value if isinstance(value, list) else [value])]
        r.shuffle(flat)
        events.append(event)
        given.append(flat)
    table = pa.table({"has": pa.array(given, pa.map_(pa.string(), pa.int64()))})
    assert pairs(m.match_batch(table, pairs="has")) == one_by_one(m, events)


def test_an_attribute_by_a_column_and_by_a_pair_is_refused() -> None:
    m = matcher()
    has = pa.array([[("n", 3)], [("n", 3)], [("n", 3), ("n", 4)], None], pa.map_(pa.string(), pa.int64()))
    events = pa.table({"n": pa.array([None, 3, None, 3]), "has": has})
    found, rejects = m.match_batch(events, pairs="has", on_error="collect")
    assert pairs(found) == [(0, "int"), (0, "null"), (3, "int"), (3, "null")]
    assert [(reject.row, reject.message) for reject in rejects] == [
        (1, "attribute 'n' is given twice, by two columns: drop one"),
        (2, "attribute 'n' is given twice, by a map that repeats a key: drop one"),
    ]


def test_pairs_that_are_none() -> None:
    m = matcher()
    with pytest.raises(eligo.EventError, match="pairs='has': the table of events has no columns of this name"):
        m.match_batch(table(), pairs="has")
    with pytest.raises(eligo.EventError, match="pairs='has' is a column: the events have to be a table, not list"):
        m.match_batch(EVENTS, pairs="has")
    with pytest.raises(eligo.EventError, match=r"column 'n' holds values of Arrow type int64; pairs are a map"):
        m.match_batch(table(), pairs="n")
    with pytest.raises(eligo.OptionError, match="pairs is the name of the column"):
        m.match_batch(table(), pairs=1)  # type: ignore[call-overload]
    assert pairs(m.match_batch(table().slice(0, 0), pairs="m")) == []


def test_documents_are_asked_about_attributes_in_pairs() -> None:
    documents = eligo.Documents()
    documents.add_many([{"price": 5, "name": "x"}])
    m = eligo.Matcher(documents=documents)
    m.add("less", "exists d (price < d.price)")
    has = pa.array([[("price", 4)], [("price", 6)], None], pa.map_(pa.string(), pa.int64()))
    assert pairs(m.match_batch(pa.table({"has": has}), pairs="has")) == [(0, "less")]


def test_tables_of_many_short_chunks() -> None:
    m = matcher()
    whole = pa.concat_tables([table().slice(i % 5, 1) for i in range(3000)])
    assert whole["n"].num_chunks == 3000
    wanted = m.match_batch(whole.combine_chunks())
    assert m.match_batch(whole).equals(wanted)
    apart = pa.table(
        {name: whole[name].combine_chunks() if name in "nf" else whole[name] for name in whole.schema.names}
    )
    assert m.match_batch(apart).equals(wanted)


def test_strings_and_attributes_of_rules_that_come_between_two_slices_are_found() -> None:
    attributes, strings = Attributes(["s"]), Strings()
    encoder = Encoder(attributes, strings, {})
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), ["a", "b"])
    events = TableEvents(pa.table({"s": words, "n": [1, 2], "m": pa.array([[("b", 5)], None], SCHEMA.field("m").type)}))

    def entries() -> list[tuple[int, int]]:
        buffer = EventBuffer()
        events.slice(0, 2).encode(encoder, buffer)
        return list(zip(buffer.meta.tolist(), buffer.key.tolist(), strict=True))

    assert entries() == [(13, -1), (13, -1)]
    strings.intern("b")
    assert entries() == [(13, -1), (13, 0)]
    attributes.intern("n")
    attributes.intern("m.b")
    assert entries() == [(13, -1), (256 + 1, 1), (512 + 1, 5), (13, 0), (256 + 1, 2)]
