"""`eligo compile`: every format, and rows that cannot be used."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import RULES, Run, ndjson

import eligo

CSV = """id,expression,weight,tags
adults,"age >= 18 and country in ('US', 'CA')",2.5,eu; us
minors,age < 18,,
"""


def rejects_of(path: str) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in Path(path).read_bytes().splitlines()]


def test_ndjson_to_a_snapshot(run: Run, rules: str) -> None:
    done = run("compile", rules, "-o", "out.eligo")
    assert done.code == 0, done.err
    assert "rules: 3" in done.text
    assert "rejects: 0" in done.text
    opened = eligo.open("out.eligo")
    assert list(opened) == ["adults", "minors", "no country"]
    assert opened.get("adults").tags == ("eu", "us")
    assert not Path("out.eligo.rejects.ndjson").exists()


def test_csv_has_weights_tags_and_text_ids(run: Run) -> None:
    Path("rules.csv").write_text(CSV)
    assert run("compile", "rules.csv", "-o", "out.eligo").code == 0
    rule = eligo.open("out.eligo").get("adults")
    assert (rule.weight, rule.tags) == (2.5, ("eu", "us"))


def test_csv_ids_are_integers_when_asked(run: Run) -> None:
    Path("rules.csv").write_text("id,expression\n7,a = 1\n007,a = 2\nx,a = 3\n8,a = 4\n")
    assert list(eligo_ids(run, "rules.csv")) == ["7", "007", "x", "8"]
    done = run("compile", "rules.csv", "-o", "int.eligo", "--int-ids")
    assert done.code == 1
    assert list(eligo.open("int.eligo")) == [7, 8]
    assert [bad["line"] for bad in rejects_of("int.eligo.rejects.ndjson")] == [4, 3]


def eligo_ids(run: Run, path: str) -> list[object]:
    assert run("compile", path, "-o", "text.eligo").code == 0
    return list(eligo.open("text.eligo"))


def test_parquet(run: Run) -> None:
    table = pa.table({"id": [1, 2, None], "expression": ["a = 1", "a = ", "a = 3"], "tags": [["t"], None, None]})
    pq.write_table(table, "rules.parquet")
    done = run("compile", "rules.parquet", "-o", "out.eligo")
    assert done.code == 1
    assert list(eligo.open("out.eligo")) == [1]
    assert sorted((bad["row"], bad["id"]) for bad in rejects_of("out.eligo.rejects.ndjson")) == [(1, 2), (2, None)]


def test_gzip_and_standard_input(run: Run) -> None:
    text = b"".join(msgspec.json.encode(rule) + b"\n" for rule in RULES)
    Path("rules.ndjson.gz").write_bytes(gzip.compress(text))
    assert run("compile", "rules.ndjson.gz", "-o", "a.eligo").code == 0
    assert run("compile", "-", "-o", "b.eligo", "--format", "ndjson", stdin=text).code == 0
    assert list(eligo.open("a.eligo")) == list(eligo.open("b.eligo"))
    Path("cut.ndjson.gz").write_bytes(gzip.compress(text)[:-12])
    assert run("compile", "cut.ndjson.gz", "-o", "c.eligo").code == 2


def test_bad_rows_do_not_stop_the_others(run: Run) -> None:
    ndjson(
        "rules.ndjson",
        [
            '{"id": "good", "expression": "a = 1"}',
            '{"id": "broken',
            "[1, 2]",
            '{"expression": "a = 1"}',
            '{"id": "misspelt", "expresion": "a = 1"}',
            "",
            '{"id": "syntax", "expression": "a >> 1"}',
            '{"id": "good", "expression": "a = 2"}',
            '{"id": 5, "expression": "a = 2"}',
            '{"id": "weight", "expression": "a = 2", "weight": "much"}',
            '{"id": "json", "expression": "{\\"attr\\": \\"a\\", \\"op\\": \\"=\\", \\"value\\": 3}"}',
        ],
    )
    done = run("compile", "rules.ndjson", "-o", "out.eligo", "--rejects", "bad.ndjson")
    assert done.code == 1
    assert list(eligo.open("out.eligo")) == ["good", "json"]
    bad = {row["line"]: row for row in rejects_of("bad.ndjson")}
    assert sorted(bad) == [2, 3, 4, 5, 7, 8, 9, 10]
    assert bad[7]["id"] == "syntax"
    assert bad[7]["row"] == 5  # the blank line is no row
    assert bad[7]["position"] == 2
    assert "did you mean 'expresion'" in str(bad[5]["message"])
    assert bad[8]["message"] == "another rule has this id"


def test_csv_rows_that_are_broken_cost_only_themselves(run: Run) -> None:
    Path("rules.csv").write_text(
        'id,expression\na,x = 1\nb,x = 2,extra\nc,"x = 3\nd,x = 4\ne,"x = \n5"\nf\ng,"x = "6\n,x = 7\nh,x = 8\n'
    )
    assert run("compile", "rules.csv", "-o", "out.eligo").code == 1
    assert list(eligo.open("out.eligo")) == ["a", "d", "e", "h"]
    assert sorted(int(str(bad["line"])) for bad in rejects_of("out.eligo.rejects.ndjson")) == [3, 4, 8, 9, 10]


def test_csv_bytes_that_are_no_text(run: Run) -> None:
    Path("rules.csv").write_bytes(b"\xef\xbb\xbfid,expression\na,x = '\xff'\nb,x = '\xc3\xa4'\n")
    assert run("compile", "rules.csv", "-o", "out.eligo").code == 1
    assert list(eligo.open("out.eligo")) == ["b"]


def test_a_rejects_file_from_before_does_not_stay(run: Run, rules: str) -> None:
    old = Path("out.eligo.rejects.ndjson")
    old.write_text("old")
    assert run("compile", rules, "-o", "out.eligo").code == 0
    assert not old.exists()
    assert run("compile", rules, "-o", "out.eligo", "--rejects", "bad.ndjson").code == 0
    assert Path("bad.ndjson").read_text() == ""


def test_options_reach_the_matcher(run: Run, rules: str) -> None:
    done = run("compile", rules, "-o", "out.eligo", "--absent", "classical", "--multi", "age", "--index", "scan")
    assert done.code == 0, done.err
    opened = eligo.open("out.eligo")
    assert opened.absent == "classical"
    assert opened.multi == {"age"}


def test_options_of_the_evaluator(run: Run) -> None:
    wide = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(13))
    ndjson("rules.ndjson", [{"id": "wide", "expression": wide}, {"id": "plain", "expression": "a0 = 1"}])
    done = run("compile", "rules.ndjson", "-o", "out.eligo", "--evaluator", "dnf")
    assert done.code == 1
    assert [bad["id"] for bad in rejects_of("out.eligo.rejects.ndjson")] == ["wide"]
    given = ("--evaluator", "dnf", "--option", "past_terms=interval")
    done = run("compile", "rules.ndjson", "-o", "out.eligo", *given)
    assert done.code == 0, done.err
    assert eligo.open("out.eligo").options["past_terms"] == "interval"
    event = b'{"a0": 1, "a1": 1}\n'
    done = run("match", "rules.ndjson", "-", "--format", "ndjson", *given, stdin=event)
    assert (done.code, done.rows) == (0, [(0, "plain")])
    for wrong, told in (("past_terms", "name=value"), ("past_term=refuse", "did you mean 'past_terms'"),
                        ("past_terms=maybe", "'refuse' or 'interval'")):  # fmt: skip
        done = run("compile", "rules.ndjson", "-o", "out.eligo", "--evaluator", "dnf", "--option", wrong)
        assert (done.code, told in done.err) == (2, True), done.err
    done = run("compile", "rules.ndjson", "-o", "out.eligo", "--option", "past_terms=refuse")
    assert (done.code, "is an option of dnf" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("empty.ndjson", b"", "empty"),
        ("blank.ndjson", b"\n\n", "no rules"),
        ("bad.ndjson", b"x\ny\n", "all 2 rows were rejected"),
        ("header.csv", b"id,expression\n", "no rules"),
        ("columns.csv", b"name,rule\na,b\n", "columns id and expression"),
        ("twice.csv", b"id,id,expression\na,b,c\n", "two columns"),
        ("cut.parquet", b"PAR1 and no more", "not a whole Parquet file"),
        ("rules.txt", b"a = 1\n", "give --format"),
    ],
)
def test_files_without_rules_are_refused(run: Run, name: str, content: bytes, expected: str) -> None:
    Path(name).write_bytes(content)
    done = run("compile", name, "-o", "out.eligo")
    assert done.code == 2
    assert expected in done.err
    assert "Traceback" not in done.err
    assert not Path("out.eligo").exists()


def test_wrong_usage(run: Run, rules: str) -> None:
    assert run("compile", "missing.ndjson", "-o", "out.eligo").code == 2
    assert run("compile", rules).code == 2
    assert "did you mean 'scan'" in run("compile", rules, "-o", "out.eligo", "--index", "sacn").err
    assert run("compile", rules, "-o", "out.eligo", "--absent", "maybe").code == 2
    assert run("compile", rules, "-o", "out.eligo", "--format", "xml").code == 2
    assert run("compile", "-", "-o", "out.eligo").code == 2
