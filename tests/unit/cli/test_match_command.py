"""`eligo match`: every format in and out, bad events, pipes, and outputs that are replaced whole or not at all."""

from __future__ import annotations

import gzip
import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from command_line import EVENTS, EXPECTED, Run, ndjson

TEXT = b"".join(msgspec.json.encode(event) + b"\n" for event in EVENTS)


def bad_rows(path: str) -> list[tuple[int, int]]:
    found = [msgspec.json.decode(line) for line in Path(path).read_bytes().splitlines()]
    return sorted((row["row"], row["line"]) for row in found)


def test_rules_and_snapshots_give_the_same(run: Run, rules: str, events: str) -> None:
    assert run("compile", rules, "-o", "rules.eligo").code == 0
    for given in (rules, "rules.eligo"):
        done = run("match", given, events)
        assert done.code == 0, done.err
        assert done.rows == EXPECTED
        assert done.err == ""


def test_every_event_format_gives_the_same(run: Run, rules: str) -> None:
    pq.write_table(pa.Table.from_pylist(EVENTS), "events.parquet", row_group_size=2)
    Path("events.csv").write_text("country,age\nUS,20\nCA,12\n,30\nFR,40\n")
    for name in ("events.parquet", "events.csv"):
        done = run("match", rules, name)
        assert done.code == 0, done.err
        assert done.rows == EXPECTED
        piped = run("match", rules, "-", "--format", name.split(".")[1], stdin=Path(name).read_bytes())
        assert piped.rows == EXPECTED


def test_every_output_format(run: Run, rules: str, events: str) -> None:
    expected = [{"event": event, "rule": rule} for event, rule in EXPECTED]
    assert run("match", rules, events, "-o", "out.parquet").code == 0
    assert pq.read_table("out.parquet").to_pylist() == expected
    assert run("match", rules, events, "-o", "out.csv").code == 0
    assert pyarrow.csv.read_csv("out.csv").to_pylist() == expected
    assert run("match", rules, events, "-o", "out.txt", "--output-format", "ndjson").code == 0
    assert [msgspec.json.decode(line) for line in Path("out.txt").read_bytes().splitlines()] == expected
    done = run("match", rules, events, "--output-format", "parquet")
    assert pq.read_table(pa.BufferReader(done.out)).to_pylist() == expected


def test_integer_ids_and_ids_that_need_quoting(run: Run, events: str) -> None:
    ndjson("ints.ndjson", [{"id": 7, "expression": "age = 20"}])
    assert run("match", "ints.ndjson", events).rows == [(0, 7)]
    odd = 'a "quoted"\n\\ id, é'
    ndjson("odd.ndjson", [{"id": odd, "expression": "age = 20"}])
    assert run("match", "odd.ndjson", events).rows == [(0, odd)]
    assert run("match", "odd.ndjson", events, "-o", "out.csv").code == 0
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    assert pyarrow.csv.read_csv("out.csv", parse_options=options)["rule"].to_pylist() == [odd]


def test_bad_events_cost_only_themselves(run: Run, rules: str) -> None:
    lines = [msgspec.json.encode(event).decode() for event in EVENTS]
    ndjson("events.ndjson", [lines[0], '{"age": 1', "17", "", '{"age": [1, 2]}', *lines[1:], f'{{"age": {2**70}}}'])
    done = run("match", rules, "events.ndjson", "--rejects", "bad.ndjson")
    assert done.code == 1
    assert done.rows == [(0, "adults"), (4, "minors"), (5, "no country")]
    assert bad_rows("bad.ndjson") == [(1, 2), (2, 3), (3, 5), (7, 9)]
    assert "--multi age" in done.err
    again = run("match", rules, "events.ndjson", "--multi", "age", "--rejects", "bad.ndjson")
    assert (3, "minors") in again.rows
    assert bad_rows("bad.ndjson") == [(1, 2), (2, 3), (7, 9)]


def test_json_is_matched_as_if_it_were_decoded(run: Run, rules: str) -> None:
    """A name to read as a timestamp, which no event has, makes the program decode every event."""
    given = [
        b'\xef\xbb\xbf{"age": 20, "country": "US"}', b"", b' \t{"country":"C\\u0041","age":1.2e1}\r', b'{"age": "\\ud800"}', b"[1]",
        b'{"age": [1, 2]}', b'{"age": "x', b'{"age": 30, "age": 12}', b'{"country": "\xff"}', b"null", b'{"age": 17, "z": 1e999}',
        b'{"age": 12345678901234567890}', b"{", b'{"age": 18.0, "country": "CA", "more": {"age": [{}]}}',
    ]  # fmt: skip
    Path("events.ndjson").write_bytes(b"\n".join(given))
    Path("events.ndjson.gz").write_bytes(gzip.compress(b"\n".join(given)))
    decoded = run("match", rules, "events.ndjson", "--timestamp", "never", "--rejects", "decoded.ndjson")
    assert decoded.rows == [(0, "adults"), (1, "minors"), (6, "minors"), (6, "no country"), (12, "adults")]
    for source, stdin in (("events.ndjson", None), ("events.ndjson.gz", None), ("-", b"\n".join(given))):
        done = run("match", rules, source, "--format", "ndjson", "--rejects", "read.ndjson", stdin=stdin)
        assert (done.code, done.rows) == (1, decoded.rows)
        found, wanted = (Path(name).read_bytes().splitlines() for name in ("read.ndjson", "decoded.ndjson"))
        assert sorted(found) == sorted(wanted)
        assert len(found) == 9


def test_parquet_events_that_are_refused(run: Run, rules: str) -> None:
    table = pa.table({"age": pa.array([None, [1], None], pa.list_(pa.int64())), "country": ["US", "US", None]})
    pq.write_table(table, "events.parquet")
    done = run("match", rules, "events.parquet")
    assert done.code == 1
    assert done.rows == [(2, "no country")]
    assert "row 1:" in done.err


def test_parquet_columns_of_a_type_that_no_rule_can_use(run: Run, rules: str) -> None:
    pq.write_table(pa.table({"age": [b"x", b"y"], "country": ["US", "US"]}), "events.parquet")
    done = run("match", rules, "events.parquet")
    assert (done.code, done.out) == (2, b"")
    assert "'age'" in done.err


def test_csv_columns_are_of_one_kind(run: Run) -> None:
    ndjson("rules.ndjson", [{"id": "zip", "expression": "zip = '007'"}, {"id": "number", "expression": "zip = 7"}])
    Path("events.csv").write_text("zip,other\n007,x\n8,x,y\nNA,x\n")
    done = run("match", "rules.ndjson", "events.csv")
    assert (done.code, done.rows) == (1, [(0, "number")])
    assert "line 3: 3 fields, the header has 2" in done.err
    assert run("match", "rules.ndjson", "events.csv", "--string", "zip").rows == [(0, "zip")]
    assert run("match", "rules.ndjson", "events.csv", "--string", "zap").code == 2


def test_csv_cells_of_another_kind_further_down(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.cli.events.SLICE", 2)
    ndjson(
        "rules.ndjson",
        [
            {"id": "n", "expression": "n >= 1.5"},
            {"id": "t", "expression": "t >= date '2026-01-02'"},
            {"id": "b", "expression": "b"},
        ],
    )
    Path("events.csv").write_text(
        "n,t,b,unused\n1,2026-01-01,,1\n2,2026-01-02,,2\n1.5,2026-01-03T00:00:00Z,true,x\nmany,,false,y\n3,soon,no,z\n"
    )
    done = run("match", "rules.ndjson", "events.csv", "--rejects", "bad.ndjson")
    assert done.code == 1
    assert done.rows == [(1, "n"), (1, "t"), (2, "n"), (2, "t"), (2, "b")]
    assert bad_rows("bad.ndjson") == [(3, 5), (4, 6)]
    assert "--string n" in done.err


def test_text_read_as_timestamps(run: Run) -> None:
    ndjson("rules.ndjson", [{"id": "late", "expression": "at > timestamp '2026-01-31 12:00:00Z' or in.at is null"}])
    ndjson("events.ndjson", [{"at": "2026-02-01T00:00:00+01:00", "in": {"at": "2026-01-01"}}, {"at": "x"}, {"at": 5}])
    assert run("match", "rules.ndjson", "events.ndjson").rows == [(1, "late"), (2, "late")]
    done = run("match", "rules.ndjson", "events.ndjson", "--timestamp", "at", "--timestamp", "in.at")
    assert (done.code, done.rows) == (1, [(0, "late"), (2, "late")])
    assert "no timestamp" in done.err


def test_limit_and_tags(run: Run, rules: str, events: str) -> None:
    assert run("match", rules, events, "--tags", "us").rows == EXPECTED[:2]
    assert run("match", rules, events, "--tags", "eu", "--tags", "none").rows == EXPECTED[:1]
    assert run("match", rules, events, "--limit", "0").rows == []
    assert run("match", rules, events, "--limit", "-1").code == 2


def test_events_without_any_named_attribute(run: Run, rules: str) -> None:
    Path("events.csv").write_text("x\n1\n2\n")
    pq.write_table(pa.table({"x": [1, 2]}), "events.parquet")
    for name in ("events.csv", "events.parquet"):
        done = run("match", rules, name)
        assert done.rows == [(0, "no country"), (1, "no country")]
        assert "all of them are absent" in done.err


def test_an_output_is_replaced_whole_or_not_at_all(run: Run, rules: str, events: str) -> None:
    for name in ("out.ndjson", "out.csv", "out.parquet"):
        Path(name).write_text("before")
    pq.write_table(pa.table({"age": list(range(50_000)), "country": ["US"] * 50_000}), "events.parquet")
    whole = Path("events.parquet").read_bytes()
    damaged = whole[:40_000] + bytes(20_000) + whole[60_000:]
    Path("events.parquet").write_bytes(damaged)
    for name in ("out.ndjson", "out.csv", "out.parquet"):
        done = run("match", rules, "events.parquet", "-o", name)
        assert done.code == 2
        assert Path(name).read_text() == "before"
    assert not list(Path().glob(".*.part"))
    assert run("match", rules, events, "-o", "out.ndjson").code == 0
    assert Path("out.ndjson").read_text() != "before"
    assert run("match", rules, events, "-o", "no/such/folder").code == 2


def test_devices_and_links_are_written_through(run: Run, rules: str, events: str) -> None:
    assert run("match", rules, events, "-o", os.devnull).code == 0
    assert not Path(os.devnull).is_file()
    Path("target.ndjson").touch()
    Path("link.ndjson").symlink_to("target.ndjson")
    assert run("match", rules, events, "-o", "link.ndjson").code == 0
    assert Path("link.ndjson").is_symlink()
    assert Path("target.ndjson").stat().st_size > 0


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("empty.ndjson", b"", 2),
        ("blank.ndjson", b"\n", 2),
        ("empty.csv", b"", 2),
        ("header.csv", b"age,country\n", 0),
        ("cut.parquet", b"PAR1abc", 2),
        ("events.xml", b"<a/>", 2),
    ],
)
def test_files_without_events(run: Run, rules: str, name: str, content: bytes, code: int) -> None:
    Path(name).write_bytes(content)
    done = run("match", rules, name)
    assert (done.code, done.out) == (code, b"")
    assert "Traceback" not in done.err


def test_wrong_usage(run: Run, rules: str, events: str) -> None:
    assert run("match", rules).code == 2
    assert run("match", "-", "-").code == 2
    assert run("match", rules, events, "--engine", "abacus").code == 2
    assert run("match", rules, events, "--output-format", "xml").code == 2
    Path("folder").mkdir()
    assert "manifest.json" in run("match", "folder", events).err
    Path("folder/manifest.json").write_text("{}")
    assert run("match", "folder", events).code == 2


def test_a_pipe_that_closes_early(run: Run) -> None:
    ndjson("rules.ndjson", [{"id": f"rule {n}", "expression": f"a >= {n % 3}"} for n in range(200)])
    ndjson("events.ndjson", [{"a": 5}] * 5_000)
    command = [sys.executable, "-c", "from eligo.cli import main; main()", "match", "rules.ndjson", "events.ndjson"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


@pytest.mark.parametrize(
    ("command", "redirected", "said"),
    [
        ("match rules.ndjson events.ndjson", ">&-", "standard output is closed"),
        ("match rules.ndjson events.ndjson", "<&- >&-", "standard output is closed"),
        ("match rules.ndjson events.ndjson", ">/dev/full", "No space left"),
        ("match rules.ndjson events.ndjson --output-format parquet", ">&-", "standard output is closed"),
        ("indexes", ">&-", "standard output is closed"),
        ("--version", ">&-", "standard output is closed"),
        ("--version", ">/dev/full", "No space left"),
        ("--version", ">&- 2>&-", ""),
    ],
)
def test_a_standard_output_that_cannot_be_written_is_told_in_one_line(
    rules: str, events: str, command: str, redirected: str, said: str
) -> None:
    program = f"{shlex.quote(sys.executable)} -c 'from eligo.cli import main; main()' {command} {redirected}"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    if said:
        assert done.stderr.startswith("eligo: ")
        assert said in done.stderr
    assert done.stderr.count("\n") == bool(said)


def test_an_output_file_needs_no_standard_output(rules: str, events: str) -> None:
    program = f"{shlex.quote(sys.executable)} -c 'from eligo.cli import main; main()'"
    done = subprocess.run(["sh", "-c", f"{program} match {rules} {events} -o out.ndjson >&-"], capture_output=True)
    assert done.returncode == 0
    assert Path("out.ndjson").read_text().count("\n") == len(EXPECTED)


def test_an_object_in_json_or_parquet_is_there_without_being_a_value(run: Run) -> None:
    ndjson(
        "rules.ndjson",
        [{"id": rule, "expression": rule} for rule in ("a is null", "a is not null", "a != 1", "a.b = 1")],
    )
    nested: list[dict[str, object]] = [{"a": {"b": 1}}, {"a": None}, {"a": {"b": 2}}]
    ndjson("events.ndjson", nested)
    pq.write_table(pa.Table.from_pylist(nested), "events.parquet")
    wanted = [
        (0, "a is not null"),
        (0, "a != 1"),
        (0, "a.b = 1"),
        (1, "a is null"),
        (2, "a is not null"),
        (2, "a != 1"),
    ]
    for events in ("events.ndjson", "events.parquet"):
        done = run("match", "rules.ndjson", events)
        assert (done.code, done.rows) == (0, wanted), done.err
        checked = run("check", "rules.ndjson", "--events", events)
        assert "compared with numbers (rule a != 1), but events hold objects" in checked.text
    explained = run("explain", "rules.ndjson", '{"a": {"b": 1}}', "--rule", "a != 1")
    assert (explained.code, "matches" in explained.text) == (0, True)


def test_a_cell_that_makes_a_column_of_numbers_text_is_named(run: Run) -> None:
    rules = ndjson("numbers.ndjson", [{"id": "grown", "expression": "age >= 18"}])
    Path("mixed.csv").write_text("age,name\n20,a\n30,b\n4O,1\n50,d\n", encoding="utf-8")
    done = run("match", rules, "mixed.csv")
    assert (done.code, done.rows) == (0, [])
    assert "column age is read as text, because of 1 cell such as '4O'" in done.err
    assert "column name" not in done.err
    assert run("match", rules, "mixed.csv", "--string", "age").err == ""
