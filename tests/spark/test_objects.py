"""A struct, a map or an object in a Variant is itself a value: present, and satisfying every negated predicate."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo import spark
from eligo.spark.worker import Plan

pytestmark = pytest.mark.spark

SCHEMA = (
    "id int, s struct<text: string, n: int, b: struct<c: int>>, m map<string, int>, deep map<string, map<string, int>>, "
    "numbered map<int, int>, items array<struct<n: int>>, lists array<map<string, int>>"
)
EVENTS: list[dict[str, Any]] = [
    {
        "s": {"text": "a", "n": 1, "b": {"c": 1}},
        "m": {"k": 1},
        "deep": {"k": {"j": 1}},
        "numbered": {1: 1},
        "items": [{"n": 1}, None],
        "lists": [{"k": 1}],
        "v": {"x": 1, "o": {"y": {"z": 1}}, "l": [{"x": 1}]},
    },
    {
        "s": {"text": None, "n": None, "b": None},
        "m": {},
        "deep": {"k.j": {}},
        "numbered": {},
        "items": [None],
        "lists": [],
        "v": {"o": 1, "l": [{}, 1]},
    },
    {"s": {"n": 2, "b": {}}, "m": {"k": None}, "deep": {"k": {}}, "items": [], "v": 5},
    {"deep": {"k": None}, "v": {"l": {}}},
    {},
]
NAMES = ["s", "s.b", "m", "deep", "deep.k", "deep.k.j", "numbered", "v", "v.o", "v.o.y"]
LISTS = ["items", "lists", "v.l"]
RULES = [
    *(f"{name} {rest}" for name in (*NAMES, *LISTS) for rest in ("is null", "is not null", "!= 1", "= 1", "not like 'a%'")),
    *(f"not {name}" for name in NAMES),
    *(f"{name} contains none (1)" for name in LISTS),
    "s is not null and s.n = 1", "s.b != true and s.b.c = 1", "not (s = 1 or m.k = 2)", "deep.k.j = 1 and deep is not null",
    "v != 5 and v.x = 1", "v.l contains any (1)",
]  # fmt: skip


@pytest.fixture(scope="module")
def events(session: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = str(tmp_path_factory.mktemp("objects") / "events")
    rows = []
    for number, event in enumerate(EVENTS):
        s = event.get("s")
        s = s and (s.get("text"), s["n"], s["b"] and (s["b"]["c"],) if s["b"] != {} else (None,))
        items = event.get("items")
        items = items and [item and (item["n"],) for item in items]
        others = (event.get(name) for name in ("m", "deep", "numbered"))
        text = json.dumps(event["v"]) if "v" in event else None
        rows.append((number, s, *others, items, event.get("lists"), text))
    frame = session.createDataFrame(rows, f"{SCHEMA}, json string").selectExpr("*", "parse_json(json) AS v")
    session.conf.set("spark.sql.variant.writeShredding.enabled", "false")
    try:
        frame.drop("json").coalesce(2).write.parquet(folder)
    finally:
        session.conf.unset("spark.sql.variant.writeShredding.enabled")
    read = session.read.parquet(folder)
    read.createOrReplaceTempView("objects")
    return read


@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_every_way_gives_what_dicts_give(
    absent: Any, session: Any, events: Any, snapshot: Any, drained: Any, tmp_path: Path
) -> None:
    rules = [(f"{number:03d} {text}", text) for number, text in enumerate(RULES)]
    matcher, path = snapshot(rules, absent=absent, multi=LISTS)
    expected = {number: matcher.match(event) for number, event in enumerate(EVENTS)}

    def check(frame: Any) -> None:
        rows = frame if isinstance(frame, list) else frame.collect()
        assert {row.id: row.rules for row in rows} == expected

    for keep in (["id"], None):  # a kept struct travels as a whole
        check(spark.match(events, path, keep=keep, output="array"))
        folder = Path(events.inputFiles()[0].removeprefix("file://")).parent
        check(spark.match_files(folder, path, session=session, keep=keep, output="array"))
    spark.register(session)
    check(session.sql(f"SELECT * FROM eligo_match(TABLE(objects), '{path}', keep => 'id', output => 'array')"))
    check(session.sql(f"SELECT id, eligo_rules('{path}', struct(*)) AS rules FROM objects"))
    stream = session.readStream.schema(events.schema).parquet(str(folder))
    check([row for batch in drained(spark.match(stream, path, keep=["id"], output="array")) for row in batch])


def test_only_the_presence_of_an_object_is_sent(
    session: Any, events: Any, snapshot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("eligo.spark.match")
    _, path = snapshot([("r", "s is not null and s.n = 1 and m is not null")])
    seen: list[Any] = []
    original = module.matched_by
    monkeypatch.setattr(module, "matched_by", lambda df, *rest: seen.append(df) or original(df, *rest))
    spark.match(events, path, keep=["id"])
    assert [kind for _, kind in seen[0].dtypes] == ["int", "struct<>", "int", "struct<>"]
    spark.match(events, path, keep=["s"])
    assert [kind for _, kind in seen[1].dtypes] == [dict(events.dtypes)["s"], "int", "struct<>"]


def test_of_a_file_one_field_tells_whether_a_struct_is_there(
    session: Any, events: Any, snapshot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module("eligo.spark.files")
    plans: list[Plan] = []
    original = module.matched
    monkeypatch.setattr(module, "matched", lambda *all: plans.append(all[2]) or original(*all))

    def leaves(rule: str, name: str) -> tuple[str, ...]:
        _, path = snapshot([("r", rule)], name)
        folder = Path(events.inputFiles()[0].removeprefix("file://")).parent
        spark.match_files(folder, path, session=session, keep=[])
        assert plans[-1].files is not None
        return plans[-1].files.leaves

    assert leaves("s is not null", "a") == ("s.n",)
    assert leaves("s is not null and s.text = 'a'", "b") == ("s.text",)
    assert leaves("s is not null and s.b is null", "c") == ("s.b.c",)
    assert leaves("m is null and m.k = 1", "d") == ("m",)


def test_a_stream_takes_up_rules_on_objects(session: Any, tmp_path: Path) -> None:
    path, folder = str(tmp_path / "rules"), tmp_path / "events"
    folder.mkdir()
    schema = "id int, s struct<n: int>, m map<string, int>"
    rows = [(1, (1,), {}), (2, None, None)]
    frame = session.createDataFrame
    spark.compile_rules(frame([("one", "s.n = 1")], "id string, expression string"), path)
    stream = session.readStream.schema(schema).parquet(str(folder))
    answer = spark.match(stream, path, keep=["id"], output="array", observe="seen")

    def run() -> tuple[dict[int, list[str]], int]:
        frame(rows, schema).coalesce(1).write.mode("append").parquet(str(folder))
        found: list[Any] = []
        query = (
            answer.writeStream.foreachBatch(lambda batch, _: found.extend(batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(300)
        return {row.id: row.rules for row in found}, query.lastProgress.observedMetrics["seen"].set_aside

    assert run() == ({1: ["one"], 2: []}, 0)
    changes = [("s", "s is not null and s != 1"), ("m", "m is not null"), ("no m", "m is null")]
    spark.update_rules(path, frame(changes, "id string, expression string"), compact=False)
    assert run() == ({1: ["one", "m", "s"], 2: ["no m"]}, 0)


def test_an_object_beside_a_column_of_its_name_is_there_twice(session: Any, snapshot: Any) -> None:
    """Locally such an event is refused; here the rule is set aside."""
    matcher, path = snapshot([("twice", "a.b = 1"), ("below", "a.b.c = 2")])
    with pytest.raises(eligo.EventError, match="given twice"):
        matcher.match({"a.b": 1, "a": {"b": {"c": 2}}})
    events = session.createDataFrame([(1, ((2,),))], "`a.b` int, a struct<b: struct<c: int>>")
    assert [row.rule for row in spark.match(events, path).collect()] == ["below"]


def test_objects_are_counted_by_their_presence(session: Any, events: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rules")
    rules = [(f"r{number}", text) for number, text in enumerate(RULES)]
    spark.compile_rules(session.createDataFrame(rules, "id string, expression string"), path, multi=LISTS)
    before = [(row.id, row.rules) for row in spark.match(events, path, keep=["id"], output="array").collect()]
    spark.observe(events, path)
    assert [(r.id, r.rules) for r in spark.match(events, path, keep=["id"], output="array").collect()] == before
