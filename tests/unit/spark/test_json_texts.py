"""Events that are JSON texts have the answers of the decoded events; one that cannot be used matches nothing."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import eligo
from eligo.compile.json_texts import decoded_event
from eligo.segments import pace
from eligo.spark import worker
from eligo.spark.partial_events import Searcher
from eligo.spark.worker import Plan
from eligo.spark.worker_cache import Source, manifest_hash

pytest.importorskip("pyspark")

RULES = [
    ("age", "age >= 18 and country in ('US', 'ä')", 3.0, ["one"]),
    ("young", "not age >= 18", 2.0, ["two"]),
    ("path", "user.name like 'a%' or user.id = 7", 5.0, ["one"]),
    ("list", "tags contains any ('x', 'y')", 1.0, ["two"]),
    ("no list", "tags contains none ('x')", 4.0, ["one"]),
    ("absent", "country is null", 0.5, ["one"]),
    ("any", "true", 0.25, ["two"]),
]
ODD = [
    b"", b" ", b"null", b"{", b"[]", b'[{"age": 20}]', b'"age"', b"7", b'{"age": 20', b'{"age": 20}}', b"\xff",
    b'{"age": [20]}', b'{"age": [[20]]}', b'{"country": "\xff"}', b'{"country": "\\ud800"}', b'{"tags": [["x"]]}',
    b'{"age": 100000000000000000000}', b'{"user": {"id": 7}, "user.id": 7}', b'{"age": NaN}', b'{"age": 20} x',
    b"\xef\xbb\xbf{}", b'{"age":20}\n', b'{"age":\n20}', b"{'age': 20}",
]  # fmt: skip


def text_of(rng: random.Random) -> bytes | None:
    """A usual event, one of the odd texts, null, or a usual one with a byte that was changed."""
    drawn = rng.random()
    if drawn < 0.1:
        return rng.choice([None, *ODD])
    event: dict[str, Any] = {}
    for name, values in (
        ("age", (17, 18, 20.5, "20", True, None)),
        ("country", ("US", "ä", "CA", 1, None)),
        ("user", ({"name": "ann"}, {"name": "bob", "id": 7}, {"id": {"a": 1}}, "ann", None)),
        ("tags", (["x"], [], "y", ["z", 1, None], {"x": 1})),
        ("other", ([[1]], {"deep": [{}]}, "\u20ac")),
    ):
        if rng.random() < 0.6:
            event[name] = rng.choice(values)
    raw = json.dumps(event, ensure_ascii=rng.random() < 0.5).encode()
    if drawn < 0.3:
        place = rng.randrange(len(raw))
        raw = raw[:place] + bytes([rng.randrange(256)]) + raw[place + rng.randrange(2) :]
    return raw


def saved(matcher: eligo.Matcher, path: Path) -> Source:
    matcher.save(path)
    return Source(str(path), manifest_hash(str(path)))


def table_of(plan: Plan, batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches(list(worker.run(plan, iter([batch]))))


@pytest.mark.parametrize("index", ["auto", "be-tree"])
@pytest.mark.parametrize("top_k", [None, 2])
@pytest.mark.parametrize("tags", [None, ("one",)])
def test_answers_are_those_of_the_decoded_events(
    index: str, top_k: int | None, tags: tuple[str, ...] | None, tmp_path: Path
) -> None:
    rng = random.Random(f"{index} {top_k} {tags}")
    matcher = eligo.Matcher(index)
    matcher.add_many(RULES)
    source = saved(matcher, tmp_path / "rules")
    texts = [None, *ODD, *(text_of(rng) for _ in range(1500))]
    expected, broken = list[list[str]](), list[int]()
    for text in texts:
        try:
            event = decoded_event(b"null" if text is None else text)
            ranked = [rule for rule, _ in matcher.top(event, top_k or 1, tags=tags)]
            expected.append(matcher.match(event, tags=tags) if top_k is None else ranked)
            broken.append(0)
        except eligo.EventError:
            expected.append([])
            broken.append(1)
    pairs = [(number, rule) for number, rules in enumerate(expected) for rule in rules]
    assert 100 < sum(broken) < 800
    column = pa.array(texts, pa.binary())
    numbers = pa.array(range(len(texts)))
    # Texts with broken bytes as Spark's strings are too: it does not look.
    for kind, output in ((pa.string(), "array"), (pa.binary(), "exploded"), (pa.large_string(), "exploded")):
        given = column.cast(pa.large_binary()).view(kind) if kind == pa.large_string() else column.view(kind)
        batch = pa.RecordBatch.from_arrays([numbers, given], names=["c0", "c1"])
        plan = Plan(
            source, ("id",), (("value", 1),), 2, output, False,
            top_k=top_k, tags=tags, counts_partial=True, json="value",
        )  # fmt: skip
        found = table_of(plan, batch)
        if output == "array":
            assert found["id"].to_pylist() == list(range(len(texts)))
            assert found["rules"].to_pylist() == expected
            assert found[worker.PARTIAL].to_pylist() == broken
        else:
            real = found.filter(pc.equal(found[worker.PARTIAL], 0))
            assert list(zip(real["id"].to_pylist(), real["rule"].to_pylist(), strict=True)) == pairs
            assert sum(found[worker.PARTIAL].to_pylist()) == sum(broken)


def test_the_texts_may_be_what_is_kept(tmp_path: Path) -> None:
    matcher = eligo.Matcher()
    matcher.add_many([("r", "x = 1"), ("s", "value = 1")])
    plan = Plan(saved(matcher, tmp_path / "rules"), ("value",), (("value", 0),), 1, "exploded", False, json="value")
    texts = ['{"x": 1}', "broken", None, '{"x": 1, "value": 1}']
    for slices in (pa.record_batch({"c0": texts}), pa.record_batch({"c0": ["{}", *texts, "{}"]}).slice(1, 4)):
        found = table_of(plan, slices)
        assert found.to_pydict() == {"value": [texts[0], texts[3], texts[3]], "rule": ["r", "r", "s"]}


def test_all_broken_and_none_at_all(tmp_path: Path) -> None:
    matcher = eligo.Matcher()
    matcher.add("r", "x is null")
    source = saved(matcher, tmp_path / "rules")
    for output in ("array", "exploded"):
        plan = Plan(source, (), (("value", 0),), 1, output, False, counts_partial=True, json="value")
        found = table_of(plan, pa.record_batch({"c0": pa.array([None] * 5000, pa.string())}))
        assert sum(found[worker.PARTIAL].to_pylist()) == 5000
        rules = found["rules"].to_pylist() if output == "array" else []
        assert rules == [[]] * len(rules)
        empty = pa.record_batch({"c0": pa.array([], pa.string())})
        assert sum(part.num_rows for part in worker.run(plan, iter([empty]))) == 0


def test_broken_texts_are_few_at_a_time_where_events_without_attributes_match_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = eligo.Matcher(absent="classical")
    matcher.add_many((f"r{i}", f"not x = {i}") for i in range(500))
    source = saved(matcher, tmp_path / "rules")
    together = []

    def search(searcher: Searcher, events: Any, *rest: Any) -> Any:
        together.append(len(events))
        return asked(searcher, events, *rest)

    asked = Searcher.search
    monkeypatch.setattr(Searcher, "search", search)
    monkeypatch.setattr(pace, "MATCHES", 1000)
    plan = Plan(source, (), (("value", 0),), 1, "array", False, json="value")
    found = table_of(plan, pa.record_batch({"c0": pa.array([None] * 99 + ["{}"], pa.string())}))
    assert [len(rules) for rules in found["rules"].to_pylist()] == [0] * 99 + [500]
    assert together == [16, *[2] * 42]


def test_attributes_that_no_rule_names_any_more_refuse_nothing(tmp_path: Path) -> None:
    matcher = eligo.Matcher()
    matcher.add_many([("gone", "old = 1"), ("r", "x = 1")])
    matcher.remove("gone")
    plan = Plan(
        saved(matcher, tmp_path / "rules"), (), (("value", 0),), 1, "array", False, counts_partial=True, json="value"
    )
    found = table_of(plan, pa.record_batch({"c0": ['{"x": 1, "old": [1]}', '{"x": [1], "old": 1}']}))
    assert found["rules"].to_pylist() == [["r"], []]
    assert found[worker.PARTIAL].to_pylist() == [0, 1]


def test_the_first_broken_text_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    matcher = eligo.Matcher()
    matcher.add("r", "x = 1")
    plan = Plan(saved(matcher, tmp_path / "rules"), (), (("value", 0),), 1, "array", False, json="value")
    with caplog.at_level(logging.WARNING, "eligo.spark"):
        table_of(plan, pa.record_batch({"c0": ["{}", '{"x": [1]}', "broken"]}))
    (record,) = caplog.records
    assert record.getMessage() == (
        f"{tmp_path / 'rules'}: events match nothing whose JSON text cannot be used, of the first one: attribute 'x' "
        "holds [1], a list, but is single-valued: declare it with Matcher(multi=['x']) or give one value"
    )
