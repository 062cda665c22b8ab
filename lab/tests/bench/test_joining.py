"""Joins with documents: drawn, verified, measured and judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.errors import OptionError
from eligo.language.reference import matches
from eligo.language.text import parse
from eligo_lab.bench import joining
from eligo_lab.bench.alerts import ATTRIBUTES, CATEGORIES, as_dict, draw, truths_of
from eligo_lab.bench.campaign import Wish, missing, run_all, task_of
from eligo_lab.bench.experiments import EXPERIMENTS
from eligo_lab.bench.harness import Task
from eligo_lab.bench.join_tables import GOALS, joined
from eligo_lab.bench.joining import ALL, JOINS, ORDERS, PLAIN, STOPPING, UNFILTERED, run
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.report import report
from eligo_lab.bench.verify import DisagreementError

QUIET = Progress(quiet=True)
NAMES = ("profiles/joins", "profiles/two-joins", "profiles/prefilter", "profiles/phases")
SMALL = Wish(rules=200, events=20, repeat=2, parameters={"documents": 300})


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path: Path = tmp_path_factory.mktemp("bench") / "figures.json"
    run_all([EXPERIMENTS[name] for name in NAMES], SMALL, path, QUIET, "eligo bench run profiles/joins")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_every_way_is_measured(content: dict[str, Any]) -> None:
    for entry in content["experiments"]:
        assert not missing(EXPERIMENTS[entry["name"]])[1]
        for point in entry["points"]:
            expected = {JOINS, PLAIN, ALL, STOPPING} | ({UNFILTERED} if "prefilter" in entry["name"] else set())
            expected |= set(ORDERS) if "phases" in entry["name"] else set()
            assert set(point["contenders"]) == expected
            assert all(figures["match_ns"]["quiet"] > 0 for figures in point["contenders"].values())
            mine = point["contenders"][JOINS]
            assert mine["publish_ns"]["quiet"] > mine["match_ns"]["quiet"]
            assert sum(mine["answered"].values()) > 0
            assert point["verified"]["reference_pairs"] == 60 * 30


def test_tables_say_what_was_to_be_reached(content: dict[str, Any]) -> None:
    for entry in content["experiments"]:
        _, costs, reached = joined(entry)
        assert len(costs[2]) == len(entry["points"])
        assert len(reached[2]) == len(entry["limits"])
        assert {row[-1] for row in reached[2]} <= {"ok", "MISSED"}
        assert set(entry["limits"]) <= set(GOALS)
    assert "trying, stopping early" in report([content], "eligo bench report")


def test_scale_makes_documents_fewer() -> None:
    experiment = EXPERIMENTS["profiles/joins"]
    last = experiment.points()[-1]
    assert task_of(experiment, last, Wish()).parameters["documents"] == 1_000_000
    assert task_of(experiment, last, Wish(scale=0.01)).parameters["documents"] == 10_000
    assert task_of(experiment, last, SMALL).parameters["documents"] == 300


@pytest.mark.parametrize(("form", "impossible"), [("one", 0.0), ("two", 0.0), ("two", 0.9)])
def test_trying_all_agrees_with_the_reference(form: str, impossible: float) -> None:
    alerts = draw(120, 60, 10, 3, form, impossible)
    roots = [parse(text) for text in alerts.texts()]
    seen = [as_dict(codes) for codes in alerts.documents.tolist()]
    assert alerts.table().to_pylist() == seen
    held = 0
    for number in range(10):
        expected = [matches(root, alerts.event(number), documents=seen) for root in roots]
        for stopping in (False, True):
            assert truths_of(alerts, alerts.rules, number, stopping).tolist() == expected
        held += sum(expected)
    assert held > 0 or impossible


def test_impossible_rules_match_nothing() -> None:
    alerts = draw(400, 500, 50, 1, "two", 1.0)
    assert not any(truths_of(alerts, alerts.rules, number).any() for number in range(50))
    assert (alerts.documents[:, ATTRIBUTES.index("category")] < CATEGORIES).all()


def test_same_seed_draws_the_same() -> None:
    first, second = (draw(50, 40, 10, 7) for _ in range(2))
    assert np.array_equal(first.rules, second.rules)
    assert np.array_equal(first.documents, second.documents)
    assert np.array_equal(first.events, second.events)


def test_wrong_answer_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    right = eligo.Matcher.match
    monkeypatch.setattr(eligo.Matcher, "match", lambda self, event: right(self, event)[1:])
    with pytest.raises(DisagreementError):
        run(Task("alerts", {"documents": 50}, 40, 10, repeat=1, method="join"), QUIET)


@pytest.mark.parametrize(
    "odd", [{"document": 5}, {"documents": "many"}, {"documents": 0}, {"form": "three"}, {"impossible": 0.5}]
)
def test_odd_parameters_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        run(Task("alerts", odd, 40, 10, repeat=1, method="join"), QUIET)
    assert joining.WORKLOAD == "alerts"
