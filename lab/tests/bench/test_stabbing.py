"""Structures of one attribute: measured, verified, and set beside the paper's Table 3."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from eligo.cli import application
from eligo.errors import OptionError
from eligo_lab.bench import stabbing
from eligo_lab.bench.campaign import Wish, missing, run_all
from eligo_lab.bench.contenders.base import UnfitError
from eligo_lab.bench.experiments import EXPERIMENTS
from eligo_lab.bench.harness import Task
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.stabbing import Scan, draw, run, structures
from eligo_lab.bench.tables import value_of
from eligo_lab.bench.verdicts import everything
from eligo_lab.bench.verify import DisagreementError
from eligo_lab.intervals.interval_tree import IntervalTree
from eligo_lab.intervals.segment_tree import SegmentTree

QUIET = Progress(quiet=True)
TABLE = EXPERIMENTS["ps-tree/table3"]
SMALL = Wish(rules=400, events=300, repeat=2)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "figures.json"
    run_all([TABLE], SMALL, path, QUIET, "eligo bench run ps-tree/table3")
    return path


@pytest.fixture(scope="module")
def entry(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())["experiments"][0]
    return found


def test_it_can_run(entry: dict[str, Any]) -> None:
    assert not missing(TABLE)[1]
    assert [point["label"] for point in entry["points"]] == ["narrow", "wide"]
    for point in entry["points"]:
        assert set(point["contenders"]) == set(structures())
        for name, figures in point["contenders"].items():
            operations = {"locate", "count", "matches"} - ({"locate"} if name == "scan" else set())
            assert set(figures["point_ns"]) == operations
            assert figures["build_s"] >= 0
            assert (figures["bytes"] > 0) == (name != "scan")
            assert len(figures["point_ns"]["count"]["repetitions"]) == 2
            assert value_of("locate", point, figures) > 0


def test_few_or_a_third_of_the_intervals_hold_a_point() -> None:
    narrow, wide = (draw(20_000, 5_000, 1, coverage, 10**9) for coverage in (5.0, 0.0))
    assert 4.5 < narrow.held.mean() < 5.5
    assert 0.3 < wide.held.mean() / 20_000 < 0.36
    for stage in (narrow, wide):
        assert (stage.low <= stage.high).all()
    assert narrow.enumerated == 5_000
    assert 0 < wide.enumerated < 1_000
    again = draw(20_000, 5_000, 1, 5.0, 10**9)
    assert np.array_equal(again.high, narrow.high)
    assert len(narrow.share("scan", "count")) == stabbing.SCANNED
    assert len(narrow.share("segment-tree", "count")) == 5_000


def test_scan_is_right() -> None:
    stage = draw(700, 200, 2, 5.0, 2_000)
    scan = Scan.build(stage.low, stage.high)
    assert np.array_equal(scan.count(stage.points), stage.held)
    offsets, numbers = scan.matches(stage.points)
    for p, x in enumerate(stage.points):
        assert (
            numbers[offsets[p] : offsets[p + 1]].tolist()
            == np.flatnonzero((stage.low <= x) & (x <= stage.high)).tolist()
        )


class Miscounting(SegmentTree):
    def count(self, points: Any) -> Any:
        return super().count(points) + (points == points[-1])


class Repeating(IntervalTree):
    """As many as there should be, but one twice and another not at all."""

    def matches(self, points: Any) -> Any:
        offsets, numbers = super().matches(points)
        first = offsets[np.flatnonzero(np.diff(offsets) > 1)]
        numbers[first] = numbers[first + 1]
        return offsets, numbers


class Straying(SegmentTree):
    """As many as there should be, but others."""

    def matches(self, points: Any) -> Any:
        offsets, numbers = super().matches(points)
        return offsets, (numbers + 1) % 400


@pytest.mark.parametrize(("kind", "said"), [(Miscounting, "counts"), (Repeating, "gives"), (Straying, "gives")])
def test_a_wrong_answer_is_found(kind: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stabbing, "structures", lambda: {"scan": Scan, "wrong": kind})
    with pytest.raises(DisagreementError, match=f"wrong {said}"):
        run(Task("intervals", {}, 400, 300, repeat=1, method="stab"), QUIET)


def test_names_and_parameters_are_checked() -> None:
    with pytest.raises(UnfitError, match="be-tree: no structure of one attribute"):
        run(Task("intervals", {}, 40, 30, indexes=("scan", "be-tree"), method="stab"), QUIET)
    for odd in ({"cover": 1}, {"coverage": "many"}, {"domain": 0}, {"coverage": -1}):
        with pytest.raises(OptionError, match=next(iter(odd))):
            run(Task("intervals", odd, 40, 30, method="stab"), QUIET)
    point = run(Task("intervals", {"coverage": "2", "domain": "50"}, 40, 30, repeat=1, method="stab"), QUIET)[0]
    assert point["parameters"]["domain"] == 50


def test_tables(entry: dict[str, Any]) -> None:
    beside, operations = list(everything(entry))[:2]
    assert beside[0].startswith("narrow: 400 intervals")
    assert {row[0].partition(":")[0] for row in beside[2]} == set(structures())
    assert {"23.1 s", "2.52 s", "6.27 ms"} <= {row[2] for row in beside[2]}
    scan = next(row for row in beside[2] if row[0].startswith("scan"))
    assert "count of 300 points, scaled" in scan[0]
    assert operations[1] == ("structure", "locate", "count", "matches", "a match")
    assert next(row for row in operations[2] if row[0] == "scan")[1] == "–"


def test_who_is_best_is_told(entry: dict[str, Any]) -> None:
    def times(locate: float) -> dict[str, Any]:
        one = {"best": locate, "repetitions": [locate, 2 * locate]}
        return {"point_ns": {"locate": one, "count": one, "matches": one}, "build_s": 1e-3, "bytes": 9e6, "notes": {}}

    for own, said in ((5.0, ["yes", "yes"]), (15.0, ["no", "yes"])):
        known = {"ps-tree": times(own), "segment-tree": times(10.0), "interval-tree": times(20.0)}
        point = {**entry["points"][0], "contenders": known}
        beside, _, faster, memory = everything({**entry, "points": [point]})
        assert [row[1] for row in faster[2]] == ["segment-tree", "interval-tree"]
        assert [row[3] for row in faster[2]] == ["8.83", "3,549"]  # 6.27 ms and 2.52 s by 0.71 ms
        assert [row[4] for row in faster[2]] == said
        assert memory[2] == [("narrow", "9.00 MB ok")]
        assert [row[4] for row in beside[2] if row[0] == "ps-tree"] == ["8.83"]


def test_numbers_that_would_not_fit_are_told(entry: dict[str, Any]) -> None:
    point = {**entry["points"][1], "enumerated": 20, "events": 100_000, "matches": 33_333.0}
    titles = [title for title, _, _ in everything({**entry, "points": [point]})]
    assert "matches of 20 points alone, since all numbers would take 13.3 GB" in titles[1]


def test_a_run_is_taken_up_again_and_pages_show_it(file: Path, entry: dict[str, Any], tmp_path: Path) -> None:
    copy = tmp_path / "copy.json"
    copy.write_text(file.read_text())
    assert run_all([TABLE], SMALL, copy, QUIET, "again", resume=True)["experiments"][0] == entry
    pytest.importorskip("matplotlib")
    page, html = tmp_path / "performance.md", tmp_path / "report.html"
    done = CliRunner().invoke(application(), ["bench", "report", str(file), "-o", str(page), "--html", str(html)])
    assert done.exit_code == 0, done.output
    assert "can only be locating" in page.read_text()
    assert "narrow: segment-tree" in html.read_text()


def test_from_the_command_line(tmp_path: Path) -> None:
    ask = ["bench", "run", "ps-tree/table3", "--rules", "60", "--events", "40", "--repeat", "1", "--json"]
    done = CliRunner().invoke(application(), [*ask, str(tmp_path / "f.json"), "--index", "scan,segment-tree"])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(application(), [*ask, str(tmp_path / "f.json"), "--index", "segment-trie"])
    assert done.exit_code != 0
