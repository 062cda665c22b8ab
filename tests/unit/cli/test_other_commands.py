"""`eligo explain`, `check`, `indexes`, `warm` and what stands before a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import EVENTS, Run, ndjson

import eligo
from eligo import warm


def test_explain_what_matches(run: Run, rules: str) -> None:
    done = run("explain", rules, '{"age": 20, "country": "US"}')
    assert done.code == 0, done.err
    assert "adults matches" in done.text
    assert "minors" not in done.text
    none = run("explain", rules, '{"age": 20, "country": "FR"}')
    assert none.code == 1
    assert "none of the 3 rules" in none.text


def test_explain_one_rule(run: Run, rules: str) -> None:
    assert run("explain", rules, '{"age": 20, "country": "US"}', "--rule", "adults").code == 0
    done = run("explain", rules, '{"age": 17, "country": "US"}', "--rule", "adults")
    assert done.code == 1
    assert "adults does not match" in done.text
    unknown = run("explain", rules, "{}", "--rule", "nobody")
    assert unknown.code == 2
    assert "nobody" in unknown.err
    ndjson("ints.ndjson", [{"id": 7, "expression": "a = 1"}])
    assert run("explain", "ints.ndjson", '{"a": 1}', "--rule", "7").code == 0
    assert run("explain", "ints.ndjson", '{"a": 1}', "--rule", "seven").code == 2


def test_explain_is_bounded(run: Run) -> None:
    ndjson("rules.ndjson", [{"id": n, "expression": "a = 1"} for n in range(25)])
    done = run("explain", "rules.ndjson", '{"a": 1}')
    assert done.text.count("matches") == 20
    assert "and 5 more rules" in done.text
    assert run("explain", "rules.ndjson", '{"a": 1}', "--all").text.count("matches") == 25


def test_explain_an_event_of_a_file(run: Run, rules: str, events: str) -> None:
    pq.write_table(pa.Table.from_pylist(EVENTS), "events.parquet")
    Path("events.csv").write_text("age,country\n20,US\n12,CA\n")
    Path("one.json").write_text('{\n  "age": 12,\n  "country": "CA"\n}\n')
    for arguments in (
        (events, "--event", 1),
        ("events.parquet", "--event", 1),
        ("events.csv", "--event", 1),
        ("one.json",),
    ):
        done = run("explain", rules, *arguments)
        assert (done.code, "minors matches" in done.text) == (0, True), done.err
    assert run("explain", rules, "-", stdin=b'{"age": 12}').code == 0
    assert run("explain", rules, events, "--event", 99).code == 2
    assert run("explain", rules, "{broken").code == 2
    assert run("explain", rules, "-").code == 2
    assert run("explain", rules, "missing.json").code == 2
    refused = run("explain", rules, '{"age": [1, 2]}')
    assert (refused.code, "Traceback" in refused.err) == (2, False)


def test_check_finds_nothing_in_good_rules(run: Run, rules: str, events: str) -> None:
    done = run("check", rules, "--events", events)
    assert done.code == 0, done.text
    assert "3 good rules, 4 events, 0 findings" in done.text


def test_check_finds_what_is_odd(run: Run, events: str) -> None:
    ndjson(
        "rules.ndjson",
        [
            {"id": "fine", "expression": "age = 20"},
            {"id": "never", "expression": "age > 5 and age < 3"},
            {"id": "always", "expression": "age = 1 or true"},
            {"id": "kinds", "expression": "age = 'twenty'"},
            {"id": "typo", "expression": "Contry = 'US'"},
            {"id": "all", "expression": "age > 1"},
            {"id": "broken", "expression": "age ="},
            {"id": "fine", "expression": "age = 30"},
        ],
    )
    done = run("check", "rules.ndjson", "--events", events, "--json")
    assert done.code == 1
    report = msgspec.json.decode(done.out)
    assert (report["rules"], report["events"]) == (6, 4)
    found = {(one["finding"], one["rule"] or one["attribute"]): one for one in report["findings"]}
    assert set(found) == {
        ("error", "broken"),
        ("duplicate", "fine"),
        ("never", "never"),
        ("always", "always"),
        ("kinds", "age"),
        ("other kind", "age"),
        ("unknown attribute", "Contry"),
        ("matches none", "kinds"),
        ("matches none", "typo"),
        ("matches all", "all"),
    }
    assert found["error", "broken"]["line"] == 7
    assert found["error", "broken"]["position"] == 5
    assert "did you mean 'country'" in found["unknown attribute", "Contry"]["message"]
    assert "events hold numbers" in found["other kind", "age"]["message"]
    plain = run("check", "rules.ndjson")
    assert plain.code == 1
    assert "2\tnever\tcan hold for no event" in plain.text


def test_check_points_at_times_written_as_text(run: Run) -> None:
    ndjson("rules.ndjson", [{"id": "a", "expression": "at > date '2026-01-01'"}])
    ndjson("events.ndjson", [{"at": "2026-02-01"}, {"at": "2025-01-01"}])
    assert "--timestamp at" in run("check", "rules.ndjson", "--events", "events.ndjson").text
    assert run("check", "rules.ndjson", "--events", "events.ndjson", "--timestamp", "at").code == 0


def test_check_knows_several_values_and_semantics(run: Run) -> None:
    ndjson("rules.ndjson", [{"id": "a", "expression": "x = 1 and x = 2"}, {"id": "b", "expression": "y = 1 or y != 1"}])
    assert "never" in run("check", "rules.ndjson").text
    assert "never" not in run("check", "rules.ndjson", "--multi", "x").text
    assert "always" in run("check", "rules.ndjson", "--absent", "classical").text


def test_check_refuses_what_cannot_be_read(run: Run, rules: str) -> None:
    assert run("check", "missing.ndjson").code == 2
    Path("empty.ndjson").touch()
    assert run("check", "empty.ndjson").code == 2
    assert run("check", rules, "--events", "missing.ndjson").code == 2


def test_indexes(run: Run) -> None:
    done = run("indexes", "--json")
    listed = msgspec.json.decode(done.out)
    assert "scan" in [one["name"] for one in listed["indexes"]]
    assert "interval" in [one["name"] for one in listed["evaluators"]]
    dnf = next(one for one in listed["evaluators"] if one["name"] == "dnf")
    assert [(one["name"], one["default"]) for one in dnf["options"]] == [("past_terms", "refuse")]
    assert "scan\t" in run("indexes").text
    assert "dnf\tpast_terms\trefuse\t'refuse' or 'interval'" in run("indexes").text


def test_version_help_and_debug(run: Run) -> None:
    assert run("--version").text.strip() == f"eligo {eligo.__version__}"
    assert run("--help").code == 0
    assert run("nonsense").code == 2
    assert "Traceback" not in run("check", "missing.ndjson").err


def test_debug_shows_where_an_error_came_from(run: Run) -> None:
    done = run("check", "missing.ndjson", "--debug")
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.endswith("eligo: missing.ndjson: there is no such file\n")


def test_warm_says_so_if_kernels_cannot_be_kept(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def warmed(processes: int | None, said: Callable[[warm.Step], None]) -> frozenset[str]:
        said(warm.Step("auto/walk", "some kernel"))
        return frozenset()

    monkeypatch.setattr(warm, "warm", warmed)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nothing")
    done = run("warm")
    assert (done.code, "1 kernel" in done.err, "NUMBA_CACHE_DIR" in done.err) == (2, True, True), done.err


def test_warm(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm, "tasks", lambda: ["auto/walk", "exchange"])  # of all that `make test` has run before
    done = run("warm")
    assert done.code == 0, done.err
    assert "kernels at hand, 0 of them compiled" in done.text
