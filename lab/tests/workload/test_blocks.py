"""Workloads in blocks: each block by itself, all of them together the workload."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eligo
from eligo.cli import main
from eligo.errors import OptionError
from eligo_lab.workload.base import WORKLOADS
from eligo_lab.workload.blocks import BLOCK, Blocks

SMALL: dict[str, dict[str, object]] = {
    "ads": {"dimensions": 30, "largest": 20, "rule_size": 5.0, "event_size": 12.0},
    "begen": {"dimensions": 20, "rule_size": 4.0, "event_size": 8.0, "match": 0.01},
    "profiles": {"attributes": 1, "overlap": 0.1},
    "trees": {"paths": 5},
}


def blocks(name: str, rules: int = BLOCK + 1_000, events: int = BLOCK + 9, **parameters: Any) -> Blocks:
    return WORKLOADS[name].blocks(rules=rules, events=events, **SMALL[name] | parameters)


def rules_of(made: Blocks, block: int) -> pa.Table:
    return pa.Table.from_batches(made.rules(block), made.rule_schema)


def events_of(made: Blocks, block: int) -> pa.Table:
    return pa.Table.from_batches(made.events(block), made.event_schema)


@pytest.mark.parametrize("name", SMALL)
def test_a_block_depends_on_its_number_alone(name: str) -> None:
    made = blocks(name)
    again = pickle.loads(pickle.dumps(made))  # as it comes to a worker
    for of in (rules_of, events_of):
        last, first = of(made, 1), of(made, 0)
        assert (first.num_rows, last.num_rows) == (BLOCK, 1_000 if of is rules_of else 9)
        assert of(again, 0) == first
        assert of(again, 1) == last
        assert last.columns[-1].slice(0, 9).to_pylist() != first.columns[-1].slice(0, 9).to_pylist()
        other = blocks(name, seed=2)
        assert of(other, 0) != first
    assert rules_of(made, 1)["id"].to_pylist() == list(range(BLOCK, BLOCK + 1_000))


@pytest.mark.parametrize("name", SMALL)
def test_blocks_hold_rules_and_events_as_the_whole_does(name: str) -> None:
    made = blocks(name, rules=3_000, events=1_000)
    whole = WORKLOADS[name].make(rules=3_000, events=1_000, **SMALL[name])
    assert set(whole.events.column_names) <= set(made.event_schema.names)
    assert {*made.parameters} == {*whole.parameters}
    matcher = eligo.Matcher()
    matcher.add_many(rules_of(made, 0))
    matches = matcher.match_batch(events_of(made, 0)).num_rows
    figures = made.measured()
    assert matches == pytest.approx(figures["match"] * 3_000 * 1_000)
    assert matches == pytest.approx(figures["matches"] * 1_000)
    usual = whole.measured.get("match", whole.measured.get("selectivity"))
    assert usual is not None
    assert figures["match"] == pytest.approx(usual, rel=0.25)


def test_the_match_probability_holds_in_every_block() -> None:
    made = blocks("begen", rules=BLOCK + 20_000, events=2_000)
    matcher = eligo.Matcher()
    matcher.add_many(rules_of(made, 1))
    share = matcher.match_batch(events_of(made, 0)).num_rows / 20_000 / 2_000
    assert share == pytest.approx(0.01, rel=0.1)


def test_events_use_all_bases_although_a_block_has_fewer_rows() -> None:
    """With a probability so small that there are more bases than rows in a block."""
    made = WORKLOADS["begen"].blocks(rules=400_000, events=2 * BLOCK, match=1e-5, dimensions=60, equality=1.0)
    assert BLOCK < len(made.world.plan.bases) <= 2 * BLOCK  # type: ignore[attr-defined]
    first, second = (np.asarray(made._events(block).value[:1_000]) for block in (0, 1))
    assert not np.array_equal(first, second)
    seen = pa.concat_tables([events_of(made, 0), events_of(made, 1)]).group_by(made.event_schema.names).aggregate([])
    assert seen.num_rows > 1.4 * BLOCK


def test_rules_that_match_by_chance_have_events_of_every_block() -> None:
    made = blocks("begen", match=None)
    assert len(made.world.plan.bases) == 1  # type: ignore[attr-defined]
    assert events_of(made, 1).num_rows == 9


def test_what_is_made_as_a_whole_is_refused() -> None:
    with pytest.raises(OptionError, match="nested cannot be made in blocks; there are: ads, begen, profiles, trees"):
        WORKLOADS["nested"].blocks()
    with pytest.raises(OptionError, match="selectivity"):
        WORKLOADS["trees"].blocks(selectivity=0.01)
    with pytest.raises(OptionError, match="over event_size"):
        WORKLOADS["begen"].blocks(rule_size=99.0)
    with pytest.raises(OptionError, match="rules=0"):
        WORKLOADS["begen"].blocks(rules=0)


def test_the_command_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["eligo", "generate", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), "".join(capfd.readouterr())

    code, said = run("profiles", "-o", "some", "--blocks", "--rules", BLOCK + 5, "--events", 100)
    assert code == 0
    assert "measured match" in said
    made = WORKLOADS["profiles"].blocks(rules=BLOCK + 5, events=100)
    assert pq.read_table("some/rules.parquet") == pa.concat_tables([rules_of(made, 0), rules_of(made, 1)])
    assert pq.read_table("some/events.parquet") == events_of(made, 0)
    assert json.loads(Path("some/parameters.json").read_text())["parameters"] == made.parameters
    code, said = run("nested", "-o", "other", "--blocks")
    assert (code, "cannot be made in blocks" in said) == (2, True)
    code, said = run("profiles", "-o", "other", "--master", "local[1]")
    assert (code, "--engine spark" in said) == (2, True)
    assert [p.name for p in tmp_path.iterdir()] == ["some"]
