"""One comparison: the same rules and events for everyone, verified, then timed in turn.

    generate ─▶ compile once ─▶ build each ─▶ verify ─▶ time, in turn, several times ─▶ inserts ─▶ figures
                                                 └ a difference: DisagreementError, and no figures

Contenders from outside are far slower and take fewer rules. They are compared in a section of its own, where everyone
has these few rules and starts from dicts, so that its ratios are as honest as the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.options import declared, validated
from eligo_lab.bench.contenders.base import Contender, UnfitError
from eligo_lab.bench.contenders.indexed import Indexed
from eligo_lab.bench.contenders.outside import OUTSIDE
from eligo_lab.bench.inserts import measure_inserts
from eligo_lab.bench.kept import KEPT, measure_kept
from eligo_lab.bench.machine import Growth
from eligo_lab.bench.prepare import Prepared, prepare, texts
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.timing import clock_cost, measure, speedups, summary
from eligo_lab.bench.verify import verify
from eligo_lab.bench.yardsticks import YARDSTICKS, count_yardsticks
from eligo_lab.workload.base import Workload, generate

_WARM_RULES, _WARM_EVENTS, _WARM_INSERTS = 500, 8, 150  # as many as it takes for small segments to be merged


class Entrant(NamedTuple):
    """Who is measured: an index with an evaluator, and options of its own."""

    name: str
    kind: str  # of index
    evaluator: str
    setting: dict[str, Any]


@dataclass(frozen=True)
class Task:
    """What to compare on what."""

    workload: str
    parameters: dict[str, Any] = field(default_factory=dict)
    rules: int = 100_000
    events: int = 1_000
    seed: int = 1
    indexes: tuple[str, ...] = ()  # none: all that are registered
    evaluators: tuple[str, ...] = ("interval",)
    absent: str = "fails"
    repeat: int = 5
    inserts: int = 200  # single additions to measure; 0: none
    outside: tuple[str, ...] = ()
    outside_rules: int = 10_000
    outside_events: int = 100
    left_out: dict[str, str] = field(default_factory=dict)  # who should have taken part, and why not
    options: dict[str, Any] = field(default_factory=dict)  # each for those whose index or evaluator has it
    settings: tuple[dict[str, Any], ...] = ()  # options that vary: who has them takes part once for each
    method: str = "compare"  # experiment.py says which there are
    other: dict[str, Any] = field(default_factory=dict)  # parameters of a second workload

    def pairs(self) -> list[tuple[str, str, str]]:
        """Name, index and evaluator; the evaluator is named where there are several."""
        names = tuple(dict.fromkeys(self.indexes)) or tuple(INDEXES.all())
        several = len(self.evaluators) > 1
        return [
            (f"{index}+{evaluator}" if several else index, index, evaluator)
            for index in names
            for evaluator in dict.fromkeys(self.evaluators)
        ]

    def entrants(self) -> list[Entrant]:
        """Every contender; its options are part of its name where they vary, and who has none of them is not there."""
        if not self.settings:
            return [Entrant(*pair, {}) for pair in self.pairs()]
        return [
            Entrant(" ".join((name, *(f"{k} {v}" for k, v in setting.items()))), index, evaluator, setting)
            for name, index, evaluator in self.pairs()
            for setting in self.settings
            if setting.keys() <= declared((INDEXES.get(index), EVALUATORS.get(evaluator))).keys()
        ]

    def without(self) -> dict[str, str]:
        """Who lacks the options that vary, and is left out."""
        names = " and ".join(dict.fromkeys(name for setting in self.settings for name in setting))
        there = {(entrant.kind, entrant.evaluator) for entrant in self.entrants()}
        return {name: f"it has no option {names}" for name, i, e in self.pairs() if (i, e) not in there}


def run(task: Task, progress: Progress) -> dict[str, Any]:
    """Measure one task; the figures are those that a result file has for one point."""
    kept = KEPT in task.indexes
    counted = [name for name in YARDSTICKS if name in task.indexes]
    matching = tuple(name for name in task.indexes if name not in (KEPT, *YARDSTICKS))
    if task.indexes and not matching:
        alone = " and ".join(task.indexes)
        raise UnfitError(f"{alone} can only be set beside an index that matches: name one, as in --index scan,{alone}")
    task = replace(task, indexes=matching)
    progress.stage(f"generating {task.rules:,} rules of {task.workload}")
    started = time.perf_counter()
    workload = generate(
        task.workload, **task.parameters, rules=task.rules + task.inserts, events=task.events, seed=task.seed
    )
    generated = time.perf_counter() - started
    entrants = task.entrants()
    validated(task.options, [kind for _, i, e in task.pairs() for kind in (INDEXES.get(i), EVALUATORS.get(e))])
    if not entrants:
        raise UnfitError("; ".join(f"{name} cannot take part: {why}" for name, why in task.without().items()))
    progress.stage("warming kernels", len(entrants))
    _warm(workload, task, progress)
    progress.stage("compiling rules and encoding events")
    prepared = prepare(workload, task.rules, task.events, task.absent)
    contenders: list[Contender] = [
        Indexed(prepared, index, evaluator, name, options=task.options | setting)
        for name, index, evaluator, setting in entrants
    ]
    point: dict[str, Any] = {
        "workload": task.workload,
        "parameters": workload.parameters,  # its rules are those measured and those inserted
        "measured": workload.measured,
        "rules": task.rules,
        "events": len(prepared.places),
        "absent": task.absent,
        "repeat": task.repeat,
        "conjunctions": len(prepared.conjunctions),
        "predicates": len(prepared.conjunctions.predicates),
        "shared_bytes": prepared.shared_bytes(),
        "generate_s": generated,
        **prepared.figures,
        "clock_ns": clock_cost(),
        "left_out": task.left_out | task.without(),
    }
    point |= _compare(prepared, contenders, task, progress, point["left_out"])
    for entrant in entrants:
        if entrant.setting and entrant.name in point["contenders"]:
            point["contenders"][entrant.name] |= {"index": entrant.kind, "setting": entrant.setting}
    if kept:
        progress.stage(f"building {KEPT}")
        point["contenders"][KEPT] = measure_kept(prepared)
    if counted:
        evaluations = count_yardsticks(prepared)
        point["contenders"] |= {name: evaluations[name] for name in counted}
    if task.inserts:
        more = texts(workload, range(task.rules, task.rules + task.inserts))
        measured = [contender for contender in contenders if contender.name in point["contenders"]]
        progress.stage("single additions", len(measured))
        for contender in measured:
            assert isinstance(contender, Indexed)
            point["contenders"][contender.name]["insert"] = measure_inserts(contender, more)
            progress.step()
    if task.outside:
        del contenders, prepared
        point["outside"] = _with_outsiders(workload, task, progress)
    return point


def _warm(workload: Workload, task: Task, progress: Progress) -> None:
    """Run everything once on a few rules: a kernel is compiled, or loaded, at its first call."""
    few = prepare(workload, min(task.rules, _WARM_RULES), min(task.events, _WARM_EVENTS), task.absent)
    for name, index, evaluator, setting in task.entrants():
        contender = Indexed(few, index, evaluator, name, options=task.options | setting)
        try:
            contender.read()
        except UnfitError:
            progress.step()
            continue  # nor will it be fit for all the rules, and is told why when it comes to them
        contender.build()
        contender.finish()
        contender.rows(0)
        measure([contender], 1, always_emit=True, step=progress.step)
        if task.inserts:
            measure_inserts(contender, texts(workload, range(few.rules, few.rules + min(_WARM_INSERTS, task.inserts))))


def _with_outsiders(workload: Workload, task: Task, progress: Progress) -> dict[str, Any]:
    """The section with the contenders from outside."""
    rules, events = min(task.rules, task.outside_rules), min(task.events, task.outside_events)
    prepared = prepare(workload, rules, events, task.absent)
    contenders: list[Contender] = [
        Indexed(prepared, index, evaluator, name, from_dicts=True, options=task.options | setting)
        for name, index, evaluator, setting in task.entrants()
    ]
    contenders += [OUTSIDE[name](prepared) for name in task.outside]
    section: dict[str, Any] = {"rules": rules, "events": events, "left_out": {}}
    return section | _compare(prepared, contenders, task, progress, section["left_out"], always_emit=True)


def _compare(
    prepared: Prepared,
    contenders: list[Contender],
    task: Task,
    progress: Progress,
    left_out: dict[str, str],
    *,
    always_emit: bool = False,
) -> dict[str, Any]:
    """Build, verify, time. Those who are unfit are entered in `left_out`; `always_emit`: ids in every repetition."""
    progress.stage(f"building over {prepared.rules:,} rules", len(contenders))
    built = _built(contenders, left_out, progress.step)
    taking_part = [contender for contender in contenders if contender.name in built]
    if not taking_part:
        raise UnfitError("; ".join(f"{c.name} cannot take part: {left_out[c.name]}" for c in contenders))
    progress.stage("verifying", len(taking_part))
    verified = verify(prepared, [*taking_part, *_witness(prepared, taking_part)], task.seed, progress.step)
    progress.stage("timing", len(taking_part) * task.repeat)
    times = measure(taking_part, task.repeat, always_emit=always_emit, step=progress.step)
    baseline = "scan" if "scan" in built else taking_part[0].name
    faster = speedups(taking_part, times, baseline)
    for contender in taking_part:
        built[contender.name] |= {**summary(contender, times[contender.name]), "speedup": faster[contender.name]}
    return {
        "baseline": baseline,
        "matches": verified.matches,
        "verified": {"events": verified.events, "reference_pairs": verified.pairs},
        "contenders": built,
    }


def _witness(prepared: Prepared, contenders: Sequence[Contender]) -> list[Contender]:
    """`scan`, where it does not take part itself: somebody who was left alone would agree with himself."""
    plain = ("scan", "scan")  # what no index and no label has to do with
    if any(isinstance(contender, Indexed) and contender.made_of == plain for contender in contenders):
        return []
    witness = Indexed(prepared, *plain, "scan of all trees, as a witness")
    witness.read()
    witness.build()
    witness.finish()
    return [witness]


def _built(
    contenders: Sequence[Contender], left_out: dict[str, str], step: Callable[[], None]
) -> dict[str, dict[str, Any]]:
    """Figures of building, by contender; why not, for those who cannot."""
    built: dict[str, dict[str, Any]] = {}
    for contender in contenders:
        try:
            contender.read()
            with Growth() as growth:
                started = time.perf_counter()
                contender.build()
                seconds = time.perf_counter() - started
            contender.finish()
        except UnfitError as error:
            left_out[contender.name] = str(error)
            step()
            continue
        built[contender.name] = {
            "kind": contender.kind,
            "build_s": seconds,
            "rss_growth": growth.kept,
            "peak_growth": growth.peak,
            **contender.facts(),
        }
        step()
    return built
