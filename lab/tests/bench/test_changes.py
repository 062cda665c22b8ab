"""Experiments in which rules change, and those in which options vary: measured, verified, and shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from eligo.cli import application
from eligo.index.be_tree.nodes import ROWS
from eligo.index.be_tree.tree import BeTree
from eligo.index.registry import INDEXES
from eligo_lab.bench import mixing
from eligo_lab.bench.campaign import Wish, run_all
from eligo_lab.bench.contenders.base import UnfitError
from eligo_lab.bench.experiment import FRESH, Experiment, Point
from eligo_lab.bench.harness import Task
from eligo_lab.bench.mixing import CASES
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.replacing import STEPS, run
from eligo_lab.bench.tables import series
from eligo_lab.bench.verdicts import everything
from eligo_lab.bench.verify import DisagreementError

QUIET = Progress(quiet=True)
REPLACED = Experiment(
    "test/fig13", "replaced", "tiny", {"rules": 300, "events": 40, "present": 0.4}, "share of others", (),
    ("be-tree", "scan"), measure="index", method="replace", other={"present": 0.9},
)  # fmt: skip
MIXED = Experiment(
    "test/mixed", "mixed", "tiny", {"rules": 200, "events": 90}, "who works", (), ("be-tree", "scan"), measure="pause",
    method="mix",
)  # fmt: skip
CAPACITIES = Experiment(
    "test/fig4", "capacities", "tiny", {"rules": 200, "events": 20}, "present",
    tuple(Point(f"{p:.0%}", p, {"present": p}) for p in (0.3, 0.8)), ("be-tree", "scan"), measure="index",
    options={"max_cap": (3, 10, 50)}, across="max_cap",
)  # fmt: skip
SUMMARY = Experiment(
    "test/summary", "beside others", "tiny", {"rules": 100, "events": 10}, "case",
    (Point("a"), Point("b", None, {"present": 0.3})), ("scan", "counting", "be-tree"), measure="index",
    subject=("be-tree",),
)  # fmt: skip
EVERY = [REPLACED, MIXED, CAPACITIES, SUMMARY]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "figures.json"
    run_all(EVERY, Wish(repeat=2, inserts=0), path, QUIET, "eligo bench run test")
    return path


@pytest.fixture(scope="module")
def measured(file: Path) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in json.loads(file.read_text())["experiments"]}


def test_rules_are_replaced_and_come_back(measured: dict[str, dict[str, Any]]) -> None:
    entry = measured["test/fig13"]
    points = entry["points"]
    assert len(points) == 2 * STEPS + 1
    assert [points[n]["label"] for n in (0, STEPS, 2 * STEPS)] == ["0%", "100%", "0%"]
    assert points[0]["matches"] == points[-1]["matches"]
    assert points[0]["rules"] == points[-1]["rules"]
    assert points[0]["left_out"] == {"scan": "it does not insert by itself"}
    for point in points:
        assert set(point["contenders"]) == {"be-tree", f"be-tree{FRESH}"}
        assert point["contenders"]["be-tree"]["updates"]["count"] > 0
        for figures in point["contenders"].values():
            assert figures["phases_ns"]["index"] > 0
    titles = [(title, len(rows)) for title, _, rows in everything(entry)]
    assert [rows for _, rows in titles] == [2 * STEPS + 1, 1]


def test_a_wrong_answer_on_the_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clinging(BeTree):
        """Keeps the first conjunctions that it gets, and takes no others in their place."""

        name = "clinging"

        def delete(self, numbers: Any) -> None:
            super().delete(numbers[numbers >= 30])

        def insert(self, words: Any, offsets: Any, first: int, stop: int, attributes: int) -> None:
            if first >= 30 or stop - first > 1 or self.pools.state[ROWS] <= first:
                super().insert(words, offsets, first, stop, attributes)

    monkeypatch.setitem(INDEXES._known, "clinging", Clinging)
    task = Task("tiny", {"present": 1.0}, 60, 40, indexes=("clinging",), repeat=1, method="replace")
    with pytest.raises(DisagreementError, match="clinging finds"):
        run(task, QUIET)
    with pytest.raises(UnfitError, match="scan cannot take part"):
        run(Task("tiny", rules=60, events=40, indexes=("scan",), method="replace"), QUIET)


def test_updates_among_matches(measured: dict[str, dict[str, Any]]) -> None:
    entry = measured["test/mixed"]
    assert [point["label"] for point in entry["points"]] == list(CASES)
    for point in entry["points"]:
        assert point["events"] == 90
        assert point["updates"] == 10
        for figures in point["contenders"].values():
            counts = {name: one["count"] for name, one in figures["operations"].items()}
            assert counts == {"match": 90, "add": 5, "remove": 5}
            for one in figures["operations"].values():
                assert 0 < one["p50_ns"] <= one["p99_ns"] <= one["longest_ns"]
            assert figures["per_second"] > 0
    titles = [title for title, _, _ in everything(entry)]
    assert len(titles) == 4
    assert "one thread: 200 rules" in titles[0]


def test_a_rule_that_stays_after_its_removal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.matcher.Matcher.remove", lambda self, rule: None)
    with pytest.raises(DisagreementError):
        mixing.run(Task("tiny", {"present": 1.0}, 50, 360, indexes=("scan",), method="mix"), QUIET)


def test_an_option_along_the_axis(measured: dict[str, dict[str, Any]]) -> None:
    entry = measured["test/fig4"]
    drawn = series(entry)
    assert (drawn.axis, drawn.marks, drawn.xs) == ("max_cap", ["3", "10", "50"], [3, 10, 50])
    assert set(drawn.lines) == {"present 30%", "present 80%"}
    across, best = everything(entry)
    assert across[1] == ("max_cap", "3", "10", "50")
    assert [row[:2] for row in best[2]] == [("30%", "be-tree"), ("80%", "be-tree")]
    turned = series({**entry, "across": ""})
    assert set(turned.lines) == {f"be-tree max_cap {cap}" for cap in (3, 10, 50)}
    assert turned.marks == ["30%", "80%"]


def test_who_it_is_about_stands_beside_the_best_rival(measured: dict[str, dict[str, Any]]) -> None:
    beside = [table for table in everything(measured["test/summary"]) if "index phase alone" in table[0]][1:]
    assert len(beside) == 2
    for _, columns, rows in beside:
        assert "faster than the best rival" in columns
        told = {row[0]: row[2] for row in rows}
        assert told["be-tree"].endswith("× counting")
        assert not told["counting"]


def test_a_run_of_many_points_is_kept_as_a_whole(
    file: Path, measured: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.json"
    copy.write_text(file.read_text())
    content = run_all(EVERY, Wish(repeat=2, inserts=0), copy, QUIET, "again", resume=True)
    assert {entry["name"]: entry for entry in content["experiments"]} == measured  # nothing was measured anew


def test_pages_and_plots(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page, html = tmp_path / "performance.md", tmp_path / "report.html"
    done = CliRunner().invoke(application(), ["bench", "report", str(file), "-o", str(page), "--html", str(html)])
    assert done.exit_code == 0, done.output
    text, content = page.read_text(), html.read_text()
    assert content.count("<svg") == len(EVERY)
    for word in ("built anew", "Rules are replaced one by one", "Through the matcher", "The best setting", "50.0 ms"):
        assert word in text
    for word in ("be-tree, built anew", "one thread: match", "max_cap"):
        assert word in content


def test_times_are_told_as_they_are() -> None:
    told = mixing._spread([1_000, 2_000, 60_000_000])
    assert told["over"] == 1
    assert told["longest_ns"] == 60_000_000
    assert np.isclose(told["p50_ns"], 2_000)
