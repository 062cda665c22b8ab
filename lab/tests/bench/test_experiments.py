"""The table of experiments is complete, its names and parameters are real, and a run can be taken up again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eligo.cli import application
from eligo.errors import OptionError
from eligo_lab.bench import campaign
from eligo_lab.bench.campaign import Wish, chosen, missing, run_all, scaled, task_of
from eligo_lab.bench.experiment import OTHERS, Experiment, Point
from eligo_lab.bench.experiments import EXPERIMENTS
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.tables import MEASURES
from eligo_lab.workload.base import WORKLOADS

# Every figure and table of the evaluations, by paper; those with graphs a, b, … are begun by the name.
PAPERS = {
    "be-tree": [*(f"fig{n}" for n in range(4, 14)), "table4", "table5"],
    "ps-tree": [*(f"fig{n}" for n in range(5, 16)), "table2", "table3"],
    "complex": ["table2", "table3", "table4", *(f"fig{n}" for n in range(7, 15))],
    "profiles": ["fig7", "fig8", "table1"],
}
OWN = {f"sharing/{name}" for name in ("selective", "none", "paths", "memory", "nested", "total")}
OWN |= {"be-tree/mixed", "be-tree/summary", "ps-tree/summary", "batch/summary"}
OWN |= {"profiles/joins", "profiles/two-joins", "profiles/prefilter", "profiles/phases"}
GRAPHS = {"be-tree/fig8": 4, "be-tree/fig11": 6, "be-tree/fig4": 1, "ps-tree/fig5": 4}
FUTURE = {
    "be-tree", "be-tree-batch", "pst-bloom", "pst-hash", "stab-cluster", "stab-interval", "stab-hybrid",
    "segment-tree", "interval-tree", "ps-tree", "scan", "counting", "k-index", "propagation", "op-index", "gryphon",
    "op-index-kept", "naive", "lazy",
}  # fmt: skip


@pytest.mark.parametrize("name", [f"{paper}/{part}" for paper, parts in PAPERS.items() for part in parts])
def test_every_figure_and_table_of_the_papers_is_there(name: str) -> None:
    graphs = [e.name for e in chosen(name)]
    two = name.startswith(("be-tree/fig", "ps-tree/fig"))
    assert len(graphs) == GRAPHS.get(name, 2 if two else 1)


def test_a_name_is_an_experiment_a_workload_or_the_beginning_of_some() -> None:
    assert [e.name for e in chosen("be-tree/fig5")] == ["be-tree/fig5a", "be-tree/fig5b"]
    for name in ("be-tree/fig1", "complex/fig1", "be-tree/fig5c"):
        with pytest.raises(OptionError):
            chosen(name)
    assert [e.name for e in chosen("profiles")] == ["profiles"]
    assert [e.name for e in chosen("profiles/")][:3] == ["profiles/fig7", "profiles/fig8", "profiles/table1"]
    assert len(chosen("be-tree")) > 20


def test_nothing_else_is_there() -> None:
    known = {f"{paper}/{part}" for paper, parts in PAPERS.items() for part in parts} | {"classic"} | OWN
    assert {name.rstrip("abcdef") if "/fig" in name else name for name in EXPERIMENTS} == known


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.name)
def test_every_line_makes_sense(experiment: Experiment) -> None:
    assert experiment.measure in MEASURES
    assert set(experiment.indexes) <= FUTURE
    assert set(experiment.evaluators) <= {"interval", "dewey", "shared", "dnf", "walk", "scan"}
    labels = [point.label for point in experiment.points()]
    assert len(set(labels)) == len(labels)
    assert set(experiment.orders) <= set(labels)
    for given in experiment.orders.values():
        for order in given if isinstance(given[0], tuple) else (given,):
            assert set(order) <= {*experiment.indexes, OTHERS}
            assert len(order) > 1
    assert set(experiment.published) | set(experiment.bounds) <= set(experiment.indexes)
    assert experiment.method in ("compare", "replace", "mix", "stab", "join", "batch")
    assert not experiment.across or experiment.across in experiment.options
    if experiment.needs:
        return
    for point in experiment.points():
        name = point.workload or experiment.workload
        if name not in WORKLOADS:
            continue
        task = task_of(experiment, point, Wish(scale=0.01, repeat=1))
        for parameter, value in (*task.parameters.items(), *task.other.items()):
            WORKLOADS[name].checked(parameter, value)


def test_the_acceptance_run_is_a_million_rules_at_the_size_of_the_paper() -> None:
    experiment = EXPERIMENTS["classic"]
    tasks = {point.label: task_of(experiment, point, Wish()) for point in experiment.points()}
    assert set(tasks) == {"uniform 1%", "uniform 0.1%", "Zipf 1%"}
    for task in tasks.values():
        assert task.rules == 1_000_000
        wanted = {"dimensions": 400, "cardinality": 48, "rule_size": 7, "event_size": 15, "equality": 0.3}
        assert wanted.items() <= task.parameters.items()
    assert tasks["uniform 0.1%"].parameters["match"] == 0.001
    assert tasks["Zipf 1%"].parameters["zipf"] > 0


def test_an_experiment_says_what_it_waits_for() -> None:
    assert missing(EXPERIMENTS["profiles/fig7"]) == ({}, "")
    assert not any(missing(experiment)[1] for name, experiment in EXPERIMENTS.items() if name.startswith("be-tree/"))
    without = Experiment("x", "x", "tiny", indexes=("scan", "from-the-future"), evaluators=("interval", "later"))
    left_out, blocked = missing(without)
    assert set(left_out) == {"from-the-future", "evaluator later"}
    assert not blocked
    assert task_of(without, Point(), Wish()).indexes == ("scan",)
    assert missing(Experiment("x", "x", "tiny", indexes=("from-the-future",)))[1]
    assert missing(Experiment("x", "x", "no such workload"))[1]
    assert missing(Experiment("x", "x", "tiny", indexes=("scan", "y"), subject=("y",)))[1]


def test_scale_makes_fewer_but_never_too_few() -> None:
    assert scaled(1_000_000, 0.1, 1_000) == 100_000
    assert scaled(5_000, 0.1, 1_000) == 1_000
    assert scaled(100, 0.1, 1_000) == 100


def test_all_are_listed() -> None:
    done = CliRunner().invoke(application(), ["bench", "list"])
    assert done.exit_code == 0
    for name in (*EXPERIMENTS, "foundation", "tiny"):
        assert name in done.stdout


VARIED = Experiment(
    "test/fig1", "match time by presence", "tiny", {"rules": 60, "events": 12}, "present", (0.3, 0.6, 0.9),
    ("scan", "from-the-future"),
)  # fmt: skip


def test_a_run_that_is_stopped_can_be_taken_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "figures.json"
    real, runs = campaign.run, []

    def stopping(task: Any, progress: Progress) -> list[dict[str, Any]]:
        runs.append(task.parameters["present"])
        if len(runs) == 3:
            raise KeyboardInterrupt
        return real(task, progress)

    monkeypatch.setattr(campaign, "run", stopping)
    wish = Wish(repeat=1, inserts=0)
    with pytest.raises(KeyboardInterrupt):
        run_all([VARIED], wish, file, Progress(quiet=True), "test")
    kept = json.loads(file.read_text())["experiments"][0]["points"]
    assert [point["label"] for point in kept] == ["0.3", "0.6"]
    content = run_all([VARIED], wish, file, Progress(quiet=True), "test", resume=True)
    assert runs == [0.3, 0.6, 0.9, 0.9]
    assert json.loads(file.read_text()) == json.loads(json.dumps(content))
    points = content["experiments"][0]["points"]
    assert [point["x"] for point in points] == [0.3, 0.6, 0.9]
    assert points[0] == kept[0]
    assert content["experiments"][0]["left_out"] == {"from-the-future": "no such index yet"}
    run_all([VARIED], Wish(repeat=1, inserts=0, seed=2), file, Progress(quiet=True), "test", resume=True)
    assert len(runs) == 7  # another seed is other work


def test_a_point_that_the_workload_refuses_is_left_out(tmp_path: Path) -> None:
    experiment = Experiment(
        "test/fig2", "x", "tiny", {"rules": 40, "events": 5}, "case",
        (Point("good", 1.0), Point("bad", 2.0, {"no_such": 1})), ("scan",),
    )  # fmt: skip
    content = run_all([experiment], Wish(repeat=1, inserts=0), tmp_path / "f.json", Progress(quiet=True), "test")
    entry = content["experiments"][0]
    assert [point["label"] for point in entry["points"]] == ["good"]
    assert "no_such" in entry["left_out"]["bad"]


def test_a_point_where_nobody_can_take_part_is_left_out(tmp_path: Path) -> None:
    experiment = Experiment(
        "test/fig3", "x", "trees", {"rules": 40, "events": 5}, "depth",
        tuple(Point(str(d), d, {"max_depth": d}) for d in (2, 4)), ("propagation",), ("dnf",), "rule",
    )  # fmt: skip
    content = run_all([experiment], Wish(repeat=1), tmp_path / "f.json", Progress(quiet=True), "test")
    entry = content["experiments"][0]
    assert [point["label"] for point in entry["points"]] == ["2"]
    assert "of 40 rules have more than 4,096 terms" in entry["left_out"]["4"]


def test_an_unknown_name_is_told_the_nearest() -> None:
    with pytest.raises(OptionError, match=r"did you mean 'be-tree/fig5a?'"):
        chosen("be-tree/fg5")
