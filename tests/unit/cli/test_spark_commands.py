"""`compile`, `match` and `stream` on Spark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import EXPECTED, RULES, Run, ndjson

import eligo

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]  # which commands use, being active


def test_compile_match_and_stream(run: Run, rules: str, events: str) -> None:
    done = run("compile", rules, "-o", "r.eligo", "--engine", "spark", "--shards", 2)
    assert done.code == 0, done.err
    assert "version" in done.text
    opened = eligo.open("r.eligo")
    assert list(opened) == sorted(str(rule["id"]) for rule in RULES)
    assert opened.get("adults").tags == ("eu", "us")
    for engine in ("local", "spark"):
        done = run("match", "r.eligo", events, "--engine", engine)
        assert (done.code, done.rows) == (0, EXPECTED)
    tagged = run("match", "r.eligo", events, "--engine", "spark", "--tags", "eu")
    assert tagged.rows == EXPECTED[:1]

    done = run("match", "r.eligo", events, "--engine", "spark", "-o", "matched/")
    assert done.code == 0, done.err
    assert "3 matches" in done.err
    found = pq.read_table("matched").to_pylist()
    assert sorted((row["age"], row["rule"], row["rules_version"]) for row in found) == [
        (12, "minors", 1), (20, "adults", 1), (30, "no country", 1),
    ]  # fmt: skip
    assert run("match", "r.eligo", events, "--engine", "spark", "-o", "matched/").code == 2
    ndjson("broken.ndjson", ['{"age": 12, "country": "CA"}', '{"age": '])
    done = run("match", "r.eligo", "broken.ndjson", "--engine", "spark", "-o", "partly/")
    assert (done.code, "1 match, 1 reject" in done.err) == (1, True), done.err
    assert "rejected: a row: cannot be read" in done.err

    Path("incoming").mkdir()
    os.rename(events, "incoming/1.json")
    stream = ("stream", "r.eligo", "incoming", "--format", "ndjson", "--checkpoint", "cp", "--trigger", "available-now")
    done = run(*stream, "-o", "streamed", "--keep", "age")
    assert done.code == 0, done.err
    assert "batch 0: 4 events, 3 matches, version 1" in done.err
    ndjson("rules2.ndjson", [*RULES, {"id": "old", "expression": "age >= 40"}])  # type: ignore[list-item]
    assert run("compile", "rules2.ndjson", "-o", "r.eligo", "--engine", "spark").code == 0
    ndjson("incoming/2.json", ['{"age": 50, "country": "FR"}', '{"age": 51, "cou', '{"age": "many"}'])
    stream += ("--schema", "age bigint, country string")  # what is there would make the age a text
    done = run(*stream, "-o", "streamed", "--keep", "age")
    assert "batch 1: 3 events, 1 match, 2 rejects, version 2" in done.err, done.err
    assert 'rejected: batch 1: 2 events cannot be read, such as \'{"age": ' in done.err
    assert done.code == 1
    rows = pq.ParquetDataset("streamed", filters=None).read().to_pylist()
    assert sorted((row["age"], row["rule"], row["rules_version"]) for row in rows) == [
        (12, "minors", 1), (20, "adults", 1), (30, "no country", 1), (50, "old", 2),
    ]  # fmt: skip
    again = (*stream, "--batches", "--array", "--top-k", 1, "--on-error", "raise")  # the last --checkpoint counts
    other = run(*again, "-o", "batches", "--checkpoint", "cp2")
    assert (other.code, "incoming: an event cannot be read: {" in other.err) == (2, True), other.err
    assert not [name for name in os.listdir("batches") if name.startswith("batch=")]
    os.unlink("incoming/2.json")
    ndjson("incoming/3.json", [{"age": 50, "country": "FR"}])
    other = run(*again, "-o", "others", "--checkpoint", "cp3")
    assert other.code == 0, other.err
    assert sorted(name for name in os.listdir("others") if name.startswith("batch=")) == ["batch=0"]


@pytest.mark.parametrize(("name", "text"), [("x.csv", "x,y\n1,2\n"), ("x.ndjson", '{"x": 1}\n')])
def test_events_without_a_column_that_rules_name(run: Run, rules: str, name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    for engine in ("local", "spark"):
        done = run("match", rules, name, "--engine", engine)
        assert (done.code, done.rows) == (0, [(0, "no country")]), done.err
    done = run("match", rules, name, "--engine", "spark", "-o", "found/")
    assert (done.code, "1 match" in done.err) == (0, True), done.err


def test_streams_of_csv_have_a_header(run: Run, rules: str) -> None:
    assert run("compile", rules, "-o", "r.eligo").code == 0
    Path("incoming").mkdir()
    Path("incoming/1.csv").write_text("age,country\n20,US\n17,FR\n", encoding="utf-8")
    stream = ("stream", "r.eligo", "incoming", "--format", "csv", "--trigger", "available-now")
    for number, more in enumerate([(), ("--schema", "age int, country string")]):
        done = run(*stream, *more, "-o", f"found{number}", "--checkpoint", f"cp{number}")
        assert (done.code, "batch 0: 2 events, 2 matches" in done.err) == (0, True), done.err


def test_streams_of_json_texts(run: Run, rules: str, events: str) -> None:
    """No schema: lines of several kinds are matched, each as it is."""
    assert run("compile", rules, "-o", "r.eligo").code == 0
    Path("incoming").mkdir()
    lines = ['{"age": 12, "country": "CA"}', '{"age": ', "  ", '{"age": "many"}', '{"age": [12]}', '{"age": 13}']
    ndjson("incoming/1.json", lines)
    stream = ("stream", "r.eligo", "incoming", "--format", "ndjson", "--checkpoint", "cp", "--trigger", "available-now")
    done = run(*stream, "-o", "streamed", "--json", "value")
    assert "batch 0: 6 events, 4 matches, 2 rejects" in done.err, done.err
    assert done.code == 1
    found = pq.ParquetDataset("streamed", filters=None).read().to_pylist()
    opened = eligo.open("r.eligo")
    assert sorted((row["value"], row["rule"]) for row in found) == sorted(
        (line, rule) for line in (lines[0], lines[3], lines[5]) for rule in opened.match_json(line)
    )
    for more, words in (
        (("--json", "text"), "json names 'text', which is not a column of the DataFrame; it has value"),
        (("--json", "value", "--schema", "age int"), "leave one out"),
        (("--json", "value", "--on-error", "raise"), "instead of --json"),
    ):
        done = run(*stream, "-o", "other", *more)
        assert (done.code, words in done.err) == (2, True), done.err


def test_events_that_are_no_json(session: Any) -> None:
    """What a Kafka topic and a Redis stream may hold."""
    from pyspark.sql.types import StructType

    from eligo.cli.stream import of_fields, of_json, readable

    kind = StructType.fromDDL("age int, name string")
    texts = ['{"age": 1, "name": "a", "more": 0}', "{}", "", "no", None, "[1]", '{"age": "x"}', '"age"', '{"age": 2']
    rows = session.createDataFrame([(text,) for text in texts], "value string").selectExpr("cast(value as binary)")
    found = of_json(rows, kind).collect()
    assert [row.eligo_broken is None for row in found] == [True, True] + 7 * [False]
    assert [tuple(row) for row in readable(of_json(rows, kind), "collect").collect()] == [(1, "a"), (None, None)]
    with pytest.raises(Exception, match="an event cannot be read"):
        readable(of_json(rows, kind), "raise").collect()

    entries = [("k", "1", None, {"age": "5", "name": "b"}), ("k", "2", None, {"age": "old"}), ("k", "3", None, {})]
    frame = session.createDataFrame(entries, "key string, id string, at timestamp, fields map<string, string>")
    assert [row.eligo_broken for row in of_fields(frame, kind).collect()] == [None, "age: old", None]
    assert [row.id for row in readable(of_fields(frame, kind), "collect").collect()] == ["1", "3"]


def test_rules_that_are_rejected(run: Run) -> None:
    lines = [json.dumps(rule) for rule in RULES]
    heavy = '{"id": "heavy", "expression": "age = 1", "weight": "much"}'
    ndjson("rules.ndjson", [*lines, '{"id": "bad", "expression": "age >="}', '{"id": ', lines[0], heavy])
    done = run("compile", "rules.ndjson", "-o", "r.eligo", "--engine", "spark")
    assert done.code == 1
    assert "rejected: rule bad: line 1, column 7" in done.err
    assert "another rule has this id" in done.err
    rejects = [json.loads(line) for line in Path("r.eligo.rejects.ndjson").read_text().splitlines()]
    assert sorted(str(row["id"]) for row in rejects) == ["None", "adults", "bad", "heavy"]
    assert len(eligo.open("r.eligo")) == 3
    Path("rules.csv").write_text(
        'id,expression,weight,tags\n1,"age > 1",2.5,a; b\n2,"age > 2",,\nx,"age > 3",1,\n4,"age > 4",heavy,\n'
    )
    assert run("compile", "rules.csv", "-o", "csv.eligo", "--engine", "spark", "--int-ids").code == 1
    opened = eligo.open("csv.eligo")
    assert [(opened.get(i).weight, opened.get(i).tags) for i in opened] == [(2.5, ("a", "b")), (1.0, ())]
    pq.write_table(pa.table({"id": [5], "expression": ["age = 1"]}), "rules.parquet")
    assert run("compile", "rules.parquet", "-o", "pq.eligo", "--engine", "spark").code == 0
    assert list(eligo.open("pq.eligo")) == [5]


def test_what_is_refused(run: Run, rules: str, events: str) -> None:
    for arguments, words in (
        (("compile", "-", "-o", "x", "--engine", "spark", "--format", "csv"), "standard input"),
        (("compile", rules, "-o", "x", "--engine", "flink"), "local or spark"),
        (("compile", rules, "-o", "x", "--master", "local[1]"), "for --engine spark"),
        (("compile", "none.parquet", "-o", "x", "--engine", "spark"), "no such file"),
        (("match", rules, events, "--conf", "a=b"), "for --engine spark"),
        (("stream", rules, "incoming", "-o", "x", "--checkpoint", "c"), "eligo compile"),
    ):
        done = run(*arguments)
        assert (done.code, words in done.err) == (2, True), done.err
    run("compile", rules, "-o", "r.eligo")
    done = run("stream", "r.eligo", "nothing", "-o", "x", "--checkpoint", "c", "--trigger", "available-now")
    assert (done.code, "--schema" in done.err) == (2, True), done.err
    done = run("stream", "r.eligo", "host:1/t", "-o", "x", "--checkpoint", "c", "--format", "kafka")
    assert (done.code, "host:port/topic" in done.err) == (2, True), done.err


def test_a_cluster_writes_a_folder() -> None:
    from eligo.cli.files import InputError
    from eligo.cli.spark import refuse_cluster

    class Elsewhere:
        sparkContext = None  # noqa: N815, the name is Spark's

        class conf:  # noqa: N801, the name is Spark's
            @staticmethod
            def get(key: str, default: str) -> str:
                return "spark://host:7077"

    with pytest.raises(InputError, match="end OUT with a slash"):
        refuse_cluster(Elsewhere())  # type: ignore[arg-type]
