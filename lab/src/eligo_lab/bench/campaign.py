"""Experiments, point by point, into one result file that is complete after each of them."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eligo.errors import OptionError
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo_lab.bench import batching, harness, joining, mixing, replacing, results, stabbing
from eligo_lab.bench.contenders.base import UnfitError
from eligo_lab.bench.experiment import Experiment, Point
from eligo_lab.bench.experiments import EXPERIMENTS
from eligo_lab.bench.harness import Task
from eligo_lab.bench.kept import KEPT
from eligo_lab.bench.machine import describe
from eligo_lab.bench.progress import Progress
from eligo_lab.bench.yardsticks import YARDSTICKS
from eligo_lab.workload.base import WORKLOADS


@dataclass(frozen=True)
class Wish:
    """What a person wants otherwise than the experiment has it; None: as it is."""

    scale: float = 1.0
    rules: int | None = None
    events: int | None = None
    indexes: tuple[str, ...] | None = None
    evaluators: tuple[str, ...] | None = None
    parameters: dict[str, Any] | None = None
    absent: str | None = None
    seed: int = 1
    repeat: int = 5
    inserts: int = 200
    outside: tuple[str, ...] = ()
    outside_rules: int = 10_000
    outside_events: int = 100
    options: dict[str, Any] | None = None  # of indexes and evaluators


def chosen(name: str) -> list[Experiment]:
    """The experiment or workload of that name, or all that it begins: `be-tree/fig5` is 5a and 5b, `be-tree/` all."""
    if name in EXPERIMENTS:
        return [EXPERIMENTS[name]]
    if name in WORKLOADS:
        return [Experiment(name, "a comparison", name)]
    paper = f"{name.rstrip('/')}/"
    some = [e for key, e in EXPERIMENTS.items() if key.startswith(paper) or _figure(key) == name]
    if some:
        return some
    names = [*EXPERIMENTS, *{_figure(key) for key in EXPERIMENTS}, *WORKLOADS, "foundation"]
    near = difflib.get_close_matches(name, names, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise OptionError(f"there is no workload or experiment {name!r}{hint} (`eligo bench list` lists them)")


def _figure(name: str) -> str:
    """`be-tree/fig5` of `be-tree/fig5a`; other names as they are."""
    return name[:-1] if name[-2:-1].isdigit() and name[-1].isalpha() else name


def missing(experiment: Experiment, wish: Wish | None = None) -> tuple[dict[str, str], str]:
    """Who of those wanted is not there yet, and what the experiment waits for before it can run at all, if anything."""
    indexes = (wish and wish.indexes) or experiment.indexes
    evaluators = (wish and wish.evaluators) or experiment.evaluators
    gone = [name for name in indexes if name not in _contenders(experiment)]
    without = [name for name in evaluators if name not in EVALUATORS.all()]
    left_out = dict.fromkeys(gone, "no such index yet")
    left_out |= {f"evaluator {name}": "no such evaluator yet" for name in without}
    workloads = {point.workload or experiment.workload for point in experiment.points()}
    own = experiment.method in ("stab", "join")  # these draw what they need
    unknown = [] if own else sorted(workloads - set(WORKLOADS))
    blocked = experiment.needs
    if not blocked and unknown:
        blocked = f"the workload {', '.join(unknown)}"
    if not blocked and experiment.subject and set(experiment.subject) <= set(gone):
        blocked = f"the index {' or '.join(experiment.subject)}"
    if not blocked and indexes and len(gone) == len(indexes):
        blocked = f"the index {' or '.join(gone)}"
    if not blocked and len(without) == len(evaluators):
        blocked = f"the evaluator {' or '.join(without)}"
    return left_out, blocked


def _contenders(experiment: Experiment) -> Iterable[str]:
    """Who can take part in it."""
    if experiment.method == "stab":
        return stabbing.structures()
    if experiment.method == "join":
        return ()
    beside = {"build": (KEPT,), "evaluations": YARDSTICKS}.get(experiment.measure, ())
    return [*INDEXES.all(), *beside]


def task_of(experiment: Experiment, point: Point, wish: Wish) -> Task:
    """What to measure at a point."""
    left_out, _ = missing(experiment, wish)
    parameters = {**experiment.fixed, **point.parameters, **(wish.parameters or {})}
    rules, events = int(parameters.pop("rules", 100_000)), int(parameters.pop("events", 1_000))
    absent = str(parameters.pop("absent", "fails"))
    if "documents" in parameters and "documents" not in (wish.parameters or {}):
        parameters["documents"] = scaled(int(parameters["documents"]), wish.scale, 1_000)
    indexes = wish.indexes or tuple(name for name in experiment.indexes if name not in left_out)
    inserts = min(wish.inserts, rules) if experiment.measure in ("match", "build", "insert") else 0
    evaluators = wish.evaluators or tuple(n for n in experiment.evaluators if f"evaluator {n}" not in left_out)
    return Task(
        workload=point.workload or experiment.workload,
        parameters=parameters,
        rules=wish.rules or scaled(rules, wish.scale, 1_000),
        events=wish.events or scaled(events, wish.scale, 200),
        seed=wish.seed,
        indexes=indexes,
        evaluators=evaluators,
        absent=wish.absent or absent,
        repeat=wish.repeat,
        inserts=inserts,
        outside=wish.outside,
        outside_rules=wish.outside_rules,
        outside_events=wish.outside_events,
        left_out=left_out,
        options={**point.options, **(wish.options or {})},
        settings=experiment.settings(),
        method=experiment.method,
        other=experiment.other,
    )


def scaled(count: int, scale: float, least: int) -> int:
    """So many, made fewer, but not fewer than makes sense."""
    return max(min(count, least), round(count * scale))


def run_all(
    experiments: Sequence[Experiment], wish: Wish, path: Path, progress: Progress, command: str, resume: bool = False
) -> dict[str, Any]:
    """Measure every point of every experiment; the content of the file."""
    content: dict[str, Any] = {
        "format": results.FORMAT,
        "machine": describe(),
        "command": command,
        "started": time.strftime("%Y-%m-%d %H:%M:%S"),
        "experiments": [],
    }
    known = {name for experiment in experiments for name in _contenders(experiment)}
    for index in wish.indexes or ():
        if index not in known:
            INDEXES.get(index)  # a name that a person gave has to be one
    for evaluator in wish.evaluators or ():
        EVALUATORS.get(evaluator)
    done = _done(path) if resume and path.exists() else []
    waiting: list[tuple[Experiment, dict[str, Any], Point, Task]] = []
    for experiment in experiments:
        left_out, blocked = missing(experiment, wish)
        if blocked and len(experiments) == 1:
            raise OptionError(f"{experiment.name} cannot run yet: it needs {blocked}")
        if blocked:
            progress.say(f"{experiment.name}: left out, needs {blocked}")
            continue
        entry = experiment.entry() | {"scale": wish.scale, "left_out": left_out, "points": []}
        content["experiments"].append(entry)
        for point, task in _tasks(experiment, wish):
            head = {"label": point.label, "x": point.x, "task": as_json(task)}
            before = [old for old in done if _is_of(old, head)]
            # A point that is still to come has its place already, so that the order is that of the experiment.
            entry["points"] += before or [head]
            if not before:
                waiting.append((experiment, entry, point, task))
    alone = len(waiting) == 1 and not waiting[0][0].vary
    for experiment, entry, point, task in waiting:
        title = f"{experiment.name}{f', {experiment.vary} {point.label}' if point.label else ''}"
        progress.say(f"{title}: {task.rules:,} rules, {task.events:,} events")
        figures = _measured(task, progress, entry, point, alone)
        place = next(i for i, head in enumerate(entry["points"]) if head["task"] == as_json(task))
        head = entry["points"][place]
        entry["points"][place : place + 1] = [head | one for one in figures]
        if not figures:
            continue
        results.write(path, _finished(content))
    return _finished(content)


def _finished(content: dict[str, Any]) -> dict[str, Any]:
    """The content without the points that are still to come."""
    entries = [
        {**entry, "points": [point for point in entry["points"] if "contenders" in point]}
        for entry in content["experiments"]
    ]
    return {**content, "experiments": entries}


def _tasks(experiment: Experiment, wish: Wish) -> Iterable[tuple[Point, Task]]:
    """Points with their tasks; those that a small scale has made the same only once."""
    seen: list[Task] = []
    for point in experiment.points():
        task = task_of(experiment, point, wish)
        if task in seen:
            continue
        seen.append(task)
        if experiment.vary == "rules":
            point = replace(point, x=task.rules, label=f"{task.rules:,}")
        elif experiment.vary == "rules, documents":
            point = replace(point, label=f"{task.rules:,}, {task.parameters['documents']:,}")
        yield point, task


def run(task: Task, progress: Progress) -> list[dict[str, Any]]:
    """The figures of a task: one point, or as many as its method has along the axis, each with label and x."""
    methods = {
        "replace": replacing.run,
        "mix": mixing.run,
        "stab": stabbing.run,
        "join": joining.run,
        "batch": batching.run,
    }
    if task.method in methods:
        return methods[task.method](task, progress)
    return [harness.run(task, progress)]


def _measured(task: Task, progress: Progress, entry: dict[str, Any], point: Point, alone: bool) -> list[dict[str, Any]]:
    """The figures; none for a point that the workload refuses, or where nobody can take part: others may be fine."""
    try:
        return run(task, progress)
    except (OptionError, UnfitError) as error:
        if alone:
            raise
        progress.say(f"left out: {error}")
        entry["left_out"] = {**entry["left_out"], point.label: str(error)}
        return []


def as_json(task: Task) -> dict[str, Any]:
    """A task as a result file has it, where tuples are lists; of what few tasks have, only what this one has."""
    values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(task).items()}
    usual = {"settings": [], "method": "compare", "other": {}}
    return {key: value for key, value in values.items() if key not in usual or value != usual[key]}


def _is_of(old: dict[str, Any], head: dict[str, Any]) -> bool:
    """Whether a point of a file is the one that would be measured, or one of those that it would become."""
    keys = ("task",) if "method" in head["task"] else head
    return all(old.get(key) == head[key] for key in keys)


def _done(path: Path) -> list[dict[str, Any]]:
    return [point for entry in results.read(path).get("experiments", []) for point in entry["points"]]
