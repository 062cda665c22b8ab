"""One comparison: everyone measured on the same work, and nothing measured when answers differ."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from eligo.cli import application
from eligo.errors import OptionError
from eligo.index.registry import INDEXES
from eligo.index.scan import Scan
from eligo.language import parse
from eligo.language.reference import matches
from eligo_lab.bench.contenders.base import UnfitError
from eligo_lab.bench.contenders.indexed import Indexed
from eligo_lab.bench.experiment import Experiment
from eligo_lab.bench.experiments import EXPERIMENTS
from eligo_lab.bench.harness import Task, run
from eligo_lab.bench.kept import KEPT
from eligo_lab.bench.prepare import as_dicts, picked, prepare, texts
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.verdicts import everything
from eligo_lab.bench.verify import DisagreementError
from eligo_lab.rivals.op_kept import KeptSorted
from eligo_lab.workload.base import generate

QUIET = Progress(quiet=True)


class Forgetful(Scan):
    """Drops the last conjunction of an event with many."""

    name = "forgetful"

    def search(self, events: Any, event: int, scratch: Any) -> int:
        count = super().search(events, event, scratch)
        return count - 1 if count > 3 else count


class ForgetfulInBatch(Scan):
    """Right one by one; in a batch it loses what it found first."""

    name = "forgetful-in-batch"

    def search_batch(self, events: Any, first: int, stop: int, scratch: Any, offsets: Any) -> int:
        end = super().search_batch(events, first, stop, scratch, offsets)
        offsets[0] = min(1, offsets[1])
        return end


@pytest.fixture(autouse=True)
def wrong_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    INDEXES.all()  # all that there are, before two more are lent to the registry
    for kind in (Forgetful, ForgetfulInBatch):
        monkeypatch.setitem(INDEXES._known, kind.name, kind)


@pytest.fixture(scope="module")
def right() -> tuple[str, ...]:
    return tuple(name for name in INDEXES.all() if not name.startswith("forgetful"))


def test_every_index_is_measured_on_the_same_work(right: tuple[str, ...]) -> None:
    point = run(Task("tiny", rules=200, events=30, indexes=right, repeat=2, inserts=40), QUIET)
    json.dumps(point)  # as a result file has it
    assert set(point["contenders"]) == set(right)
    assert point["verified"]["events"] == 30
    assert point["verified"]["reference_pairs"] > 100
    assert point["baseline"] == "scan"
    workload = generate("tiny", rules=240, events=30)
    roots = [parse(text) for text in workload.rules.column("expression").to_pylist()[:200]]
    total = sum(matches(root, event) for root in roots for event in as_dicts(workload.events))
    assert point["matches"] == pytest.approx(total / 30)
    for figures in point["contenders"].values():
        assert figures["build_s"] > 0
        assert figures["bytes"] == sum(figures["arrays"].values())
        assert set(figures["phases_ns"]) == {"index", "group", "evaluate", "emit"}
        match = figures["match_ns"]
        assert 0 < match["quiet"] <= match["mean"] <= match["worst"]
        assert match["p50"] <= match["p99"]
        assert len(match["repetitions"]) == 2
        assert figures["batch_ns"]["mean"] > 0
        assert figures["evaluations"] >= 0
        ratio = figures["speedup"]["match"]
        assert 0 < ratio["low"] <= ratio["median"] <= ratio["high"]
        assert figures["insert"]["rules"] == 40
    assert point["contenders"]["scan"]["speedup"]["match"]["median"] == 1
    assert point["contenders"]["scan"]["candidates"] == point["conjunctions"]


def test_contenders_from_outside_have_their_own_section_with_fewer_rules() -> None:
    task = Task(
        "tiny", rules=120, events=20, indexes=("scan",), repeat=1, inserts=0, outside=("dict", "lambdas"),
        outside_rules=60, outside_events=10, absent="classical",
    )  # fmt: skip
    section = run(task, QUIET)["outside"]
    assert (section["rules"], section["events"]) == (60, 10)
    assert set(section["contenders"]) == {"scan", "dict", "lambdas"}
    assert section["contenders"]["scan"]["phases_ns"]["encode"] > 0  # all start from a dict
    assert section["contenders"]["dict"]["speedup"]["total"]["median"] > 0


@pytest.mark.parametrize("company", ["scan,", ""])  # alone, too
@pytest.mark.parametrize("wrong", ["forgetful", "forgetful-in-batch"])
def test_a_wrong_index_stops_the_run_and_nothing_is_recorded(wrong: str, company: str, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    given = [
        "bench",
        "run",
        "tiny",
        "--index",
        f"{company}{wrong}",
        "--rules",
        "200",
        "--events",
        "30",
        "--json",
        str(file),
    ]
    done = CliRunner().invoke(application(), [*given, "--no-inserts"])
    assert done.exit_code == 1
    assert not list(tmp_path.iterdir())
    told = done.stderr
    assert "the contenders disagree, so nothing was measured" in told
    event = next(line for line in told.splitlines() if line.strip().startswith("event "))
    rule = next(line for line in told.splitlines() if line.strip().startswith("rule "))
    number, _, content = event.strip().removeprefix("event ").partition(": ")
    row, _, text = rule.strip().removeprefix("rule ").partition(": ")
    workload = generate("tiny", rules=200, events=30)
    assert as_dicts(workload.events)[int(number)] == eval(content)
    assert text == workload.rules.column("expression")[int(row)].as_py()
    assert matches(parse(text), eval(content))
    lines = {line.split("  ")[1].strip(): line for line in told.splitlines() if "match" in line}
    assert "wrong" in next(line for name, line in lines.items() if name.startswith(wrong) and "does not" in line)
    assert "does not" not in next(line for name, line in lines.items() if name.startswith("the reference"))


DEEP: dict[str, Any] = {"workload": "trees", "parameters": {"max_depth": 4}, "rules": 60, "events": 10}


def test_an_evaluator_that_cannot_take_the_rules_is_left_out_with_the_reason() -> None:
    task = Task(**DEEP, indexes=("propagation",), evaluators=("interval", "dnf"), repeat=1, inserts=5)
    point = run(task, QUIET)
    assert set(point["contenders"]) == {"propagation+interval"}
    assert "of 60 rules have more than 4,096 terms" in point["left_out"]["propagation+dnf"]
    with pytest.raises(UnfitError, match=r"propagation cannot take part: \d+ of 60 rules"):
        run(replace(task, evaluators=("dnf",)), QUIET)


def test_options_are_for_those_who_have_them() -> None:
    task = Task(**DEEP, indexes=("propagation",), evaluators=("interval", "dnf"), repeat=1, inserts=5)
    point = run(replace(task, options={"past_terms": "interval"}), QUIET)
    plain, dnf = point["contenders"]["propagation+interval"], point["contenders"]["propagation+dnf"]
    assert dnf["notes"]["rules past limits.terms, evaluated as trees"] > 0
    assert dnf["conjunctions"] > plain["conjunctions"] == point["conjunctions"]
    assert plain["own_bytes"] == plain["bytes"] + plain["evaluator_bytes"] + point["shared_bytes"]
    assert dnf["own_bytes"] > dnf["bytes"] + dnf["evaluator_bytes"] + point["shared_bytes"]
    with pytest.raises(OptionError, match="unknown option 'past_terms'"):
        run(replace(task, evaluators=("interval",), options={"past_terms": "interval"}), QUIET)


def test_options_that_vary_make_contenders_of_those_who_have_them() -> None:
    settings = ({"max_cap": 3}, {"max_cap": 50})
    task = Task(
        "tiny", rules=200, events=20, indexes=("scan", "be-tree"), repeat=1, inserts=3, settings=settings,
        options={"min_size": 2},
    )  # fmt: skip
    point = run(task, QUIET)
    assert set(point["contenders"]) == {"be-tree max_cap 3", "be-tree max_cap 50"}
    assert point["left_out"] == {"scan": "it has no option max_cap"}
    for (name, figures), setting in zip(point["contenders"].items(), settings, strict=True):
        assert (figures["index"], figures["setting"]) == ("be-tree", setting), name
    small, large = point["contenders"].values()
    assert small["notes"]["c-nodes"] > large["notes"]["c-nodes"]
    with pytest.raises(UnfitError, match="scan cannot take part: it has no option max_cap"):
        run(replace(task, indexes=("scan",), options={}), QUIET)


def test_the_reference_is_asked_even_when_all_agree() -> None:
    with pytest.raises(DisagreementError, match=r"the reference +matches"):
        run(Task("tiny", rules=200, events=30, indexes=("forgetful",), repeat=1, inserts=0), QUIET)


def test_what_is_timed_has_to_find_what_was_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Indexed.run

    def hasty(self: Indexed, clock: Any, first: int, stop: int, emit: bool) -> int:
        return usual(self, clock, first, stop, emit) if self.name == "scan" else 0

    monkeypatch.setattr(Indexed, "run", hasty)
    with pytest.raises(DisagreementError, match="what was timed is not what was verified"):
        run(Task("tiny", rules=50, events=20, indexes=("scan", "counting"), repeat=1, inserts=0), QUIET)


def test_rules_are_written_out_only_where_they_are_wanted() -> None:
    workload = generate("tiny", rules=50, events=2)
    whole = workload.rules.column("expression").to_pylist()
    rows = [7, 3, 49, 3]
    assert workload.draft is not None
    assert texts(workload, rows) == [whole[row] for row in rows]
    assert len(picked(workload.draft, np.array(rows))) == 4
    assert texts(workload, []) == []


def test_rules_that_exist_as_text_alone_are_compiled_too(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = generate("tiny", rules=80, events=10)
    as_text = replace(workload, draft=None, text=workload.rules)
    for absent in ("fails", "classical"):
        left, right = prepare(workload, 60, 10, absent), prepare(as_text, 60, 10, absent)
        assert len(left.conjunctions) == len(right.conjunctions)
        assert left.texts([5]) == right.texts([5])
        assert left.dicts == right.dicts


def test_op_index_kept_in_order_is_built_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("tiny", rules=80, events=10, indexes=("op-index", KEPT), repeat=1, inserts=3)
    point = run(task, Progress(quiet=True))
    assert point["contenders"][KEPT]["build_s"] > 0
    assert set(point["contenders"]) == {"op-index", KEPT}
    experiment = Experiment("x", "x", "tiny", measure="build", subject=("op-index",), orders={"": (KEPT, "op-index")})
    entry = experiment.entry() | {"points": [{"label": "", "x": None, **point}]}
    titles = [title for title, _, _ in everything(json.loads(json.dumps(entry)))]
    assert titles[-1] == "order"
    with pytest.raises(UnfitError, match="beside an index that matches"):
        run(replace(task, indexes=(KEPT,)), Progress(quiet=True))
    monkeypatch.setattr(KeptSorted, "search", lambda *given: 0)
    with pytest.raises(DisagreementError, match=f"{KEPT} finds 0"):
        run(task, Progress(quiet=True))


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(EXPERIMENTS, "test/later", Experiment("test/later", "x", "tiny", needs="what is not there"))
    return lambda *given: CliRunner().invoke(application(), ["bench", *map(str, given)])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("run", "tiny", "--index", "skan"), "did you mean 'scan'"),
        (("run", "tyny"), "did you mean 'tiny'"),
        (("run", "be-tree/fig99"), "bench list"),
        (("run", "tiny", "--set", "present"), "name=value"),
        (("run", "tiny", "--set", "presnt=1"), "did you mean 'present'"),
        (("run", "tiny", "--set", "present=much"), "present"),
        (("run", "tiny", "--absent", "maybe"), "fails or classical"),
        (("run", "tiny", "--evaluator", "intervall"), "did you mean 'interval'"),
        (("run", "tiny", "--option", "past_term=refuse"), "did you mean 'past_terms'"),
        (("run", "tiny", "--option", "past_terms=refuse"), "unknown option 'past_terms'"),
        (("run", "tiny", "--contenders", "dikt"), "there is no contender 'dikt'"),
        (("run", "test/later"), "cannot run yet: it needs what is not there"),
        (("run", "classic", "--scale", "0"), "scale"),
    ],
)
def test_what_cannot_be_measured_is_refused_with_the_reason(given: tuple[str, ...], told: str, invoke: Any) -> None:
    done = invoke(*given, "--json", "out.json")
    assert done.exit_code == 2
    # A terminal's frame may break a message anywhere.
    assert told.replace(" ", "") in "".join(done.stderr.split()).replace("│", "")
    assert not Path("out.json").exists()
