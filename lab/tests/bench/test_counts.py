"""Predicate evaluations as the report on profile matching counts them: yardsticks, Figures 7 and 8, Table 1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eligo_lab.bench.campaign import Wish, run_all, task_of
from eligo_lab.bench.contenders.base import UnfitError
from eligo_lab.bench.experiments import EXPERIMENTS, STAB
from eligo_lab.bench.harness import Task, run
from eligo_lab.bench.plots import plot
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.report import report
from eligo_lab.bench.verdicts import everything
from eligo_lab.workload.base import generate

QUIET = Progress(quiet=True)


def evaluations(**parameters: Any) -> dict[str, float]:
    rules = parameters.pop("rules", 100)
    task = Task("profiles", parameters, rules, 50, indexes=STAB, repeat=1, inserts=0)
    return {name: figures["evaluations"] for name, figures in run(task, QUIET)["contenders"].items()}


def test_naive_and_lazy_are_what_profiles_evaluated_one_by_one_take() -> None:
    counts = evaluations(overlap=0.7)
    assert counts["naive"] == 2 * 100
    draft = generate("profiles", rules=100, events=50, overlap=0.7)
    assert draft.draft is not None
    low, high = draft.draft.operand[::2].reshape(-1, 2), draft.draft.operand[1::2].reshape(-1, 2)
    either = [0, 0]  # the least and the most that any order of the two predicates takes
    for a0, a1 in zip(draft.events["a0"].to_pylist(), draft.events["a1"].to_pylist(), strict=True):
        holds = (low <= (a0, a1)) & ((a0, a1) <= high)
        either[0] += int(100 + holds.all(axis=1).sum())
        either[1] += int(100 + holds.any(axis=1).sum())
    assert either[0] <= 50 * counts["lazy"] <= either[1]


def test_yardsticks_are_set_beside_an_index() -> None:
    with pytest.raises(UnfitError, match="naive can only be set beside an index"):
        run(Task("profiles", {}, 20, 5, indexes=("naive",), repeat=1), QUIET)


def test_figure_7_all_indexes_are_far_below_naive() -> None:
    for rules in (100, 1_000):
        counts = evaluations(rules=rules, overlap=0.1)
        own = {name: counts[name] for name in STAB[2:]}
        assert max(own.values()) < 50 < counts["lazy"] < counts["naive"]  # the paper: 18 to 47 for the worst
        assert sorted(own, key=own.__getitem__)[:2] in (
            ["stab-cluster", "stab-interval"],
            ["stab-interval", "stab-cluster"],
        )


def test_figure_8_only_endpoint_based_indexes_depend_on_overlap() -> None:
    low, high = evaluations(overlap=0.1), evaluations(overlap=0.98)
    for name in ("stab-interval", "segment-tree"):
        assert high[name] == pytest.approx(low[name], rel=0.1)
    for name in ("stab-cluster", "interval-tree"):
        assert high[name] > 3 * low[name]
    assert low["stab-cluster"] < low["stab-hybrid"]
    assert high["stab-interval"] < high["stab-hybrid"] < high["stab-cluster"]


def test_table_1_is_set_beside_what_was_counted(tmp_path: Any) -> None:
    experiment = EXPERIMENTS["profiles/table1"]
    assert [task_of(experiment, point, Wish()).rules for point in experiment.points()] == [400, 25_600, 400, 25_600]
    small = replace(experiment, values=tuple(replace(p, parameters={**p.parameters, "rules": 40 + 3 * int(p.x or 0)})
                                             for p in experiment.points()))  # fmt: skip
    content = run_all([small], Wish(repeat=1), tmp_path / "f.json", QUIET, "a command")
    (entry,) = content["experiments"]
    tables = {title: rows for title, _, rows in everything(entry)}
    growth = next(rows for title, rows in tables.items() if title.startswith("evaluations, 40"))
    assert [row[0] for row in growth] == list(STAB)
    assert growth[2][-2:] == ("Ω(k log n)", "O(kn)")
    assert growth[0][1] == "80.0 → 86.0, × 1.07"
    assert "Profiles that the trees leave" in report([content], "a command")
    assert b"naive" in plot(entry, "a machine")
