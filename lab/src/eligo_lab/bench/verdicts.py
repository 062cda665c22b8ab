"""All tables of an experiment, and what its figures come to: limits kept, orders, who is best and by how much."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from eligo_lab.bench.batching import batched
from eligo_lab.bench.changes import mixed, replaced
from eligo_lab.bench.counts import counted
from eligo_lab.bench.experiment import OTHERS
from eligo_lab.bench.join_tables import joined
from eligo_lab.bench.structures import stabbed
from eligo_lab.bench.tables import (
    Table,
    beside_paper,
    detailed,
    digits,
    duration,
    in_full,
    outside,
    own_bytes,
    ratio,
    shown,
    size,
    value_of,
    varied,
)

RIVALS = ("counting", "k-index", "propagation", "gryphon")  # of the BE-Tree paper; others are beyond its comparison
COSTS = ("build", "memory")  # what an experiment shows when it is not about time of an event
BY_METHOD = {"replace": replaced, "mix": mixed, "stab": stabbed, "join": joined, "batch": batched}


def verdict(experiment: dict[str, Any]) -> Iterator[Table]:
    """The tables that a run ends with."""
    for heading, columns, rows in everything(experiment):
        yield f"{experiment['name']}: {heading}", columns, rows


def everything(experiment: dict[str, Any]) -> Iterator[Table]:
    """All tables of an experiment, in the order in which a person reads them."""
    own = BY_METHOD.get(experiment.get("method", "compare"))
    if own is not None:
        yield from own(experiment)
        return
    table = varied(experiment)
    if table is not None:
        yield table
    if table is not None and any("setting" in f for p in experiment["points"] for f in p["contenders"].values()):
        yield best(experiment)
    came = None if in_full(experiment) else orders(experiment)
    if came is not None:
        yield came
    if experiment["measure"] == "evaluations":
        yield from counted(experiment)
    for point in experiment["points"]:
        prefix = f"{point['label']}: " if point["label"] else ""
        some = detailed(point) if in_full(experiment) else []
        some += judgement(point, experiment)
        some += [outside(point["outside"])] if "outside" in point else []
        for title, columns, rows in some:
            yield f"{prefix}{title}", columns, rows


def judgement(point: dict[str, Any], experiment: dict[str, Any]) -> Iterator[Table]:
    """What an experiment with limits, with an order to compare with, or about somebody comes to."""
    if in_full(experiment) and experiment.get("subject"):
        yield beside(point, experiment["subject"])
    if any(name in point["contenders"] for name in experiment.get("published", ())):
        yield beside_paper(point, experiment["published"], experiment["measure"])
    if experiment["limits"]:
        yield judged(point, experiment)
    expected = _orders(point, experiment)
    if expected and in_full(experiment):
        yield ordered(point, expected, experiment["measure"])
        if experiment["measure"] not in COSTS:
            yield spent(point)


def best(experiment: dict[str, Any]) -> Table:
    """The options under which each index is best, point by point."""
    rows: list[tuple[str, ...]] = []
    measure = experiment["measure"]
    for point in experiment["points"]:
        for index in dict.fromkeys(f["index"] for f in point["contenders"].values()):
            own = [f for f in point["contenders"].values() if f["index"] == index]
            values = [value_of(measure, point, f) for f in own]
            least = min(values)
            first = own[values.index(least)]
            setting = ", ".join(f"{name} {value}" for name, value in first["setting"].items())
            rows.append(
                (point["label"], index, setting, shown(measure, least), f"{100 * (max(values) / least - 1):.0f}%")
            )
    return "the best setting", (experiment["varied"], "index", "best", "time", "the worst takes more by"), rows


def beside(point: dict[str, Any], subject: list[str]) -> Table:
    """Those whom the experiment is about, each beside the best of their rivals, by the index phase."""
    there = {name: f for name, f in point["contenders"].items() if "phases_ns" in f}  # others were only built
    times = {name: value_of("index", point, f) for name, f in there.items()}
    rivals = [name for name in RIVALS if name in there] if "be-tree" in subject else []
    rivals = rivals or [name for name in there if name not in subject]
    rows: list[tuple[str, ...]] = []
    for name, f in sorted(there.items(), key=lambda item: times[item[0]]):
        against = ""
        if name in subject and rivals:
            nearest = min(rivals, key=times.__getitem__)
            against = f"{digits(times[nearest] / times[name])} × {nearest}"
        rows.append(
            (
                name,
                duration(times[name]),
                against,
                f"{f['candidates']:,.0f}",
                f"{f['evaluations']:,.0f}",
                f"{f['bytes_per_rule']:,.1f}",
                duration(f["build_s"] * 1e9),
            )
        )
    columns = (
        "index", "index phase", "faster than the best rival", "candidates", "evaluations", "bytes a rule", "build",
    )  # fmt: skip
    return f"{point['matches']:,.1f} matches an event; the index phase alone", columns, rows


def judged(point: dict[str, Any], experiment: dict[str, Any]) -> Table:
    """Whether each contender kept the experiment's limits and beat the baseline."""
    rows: list[tuple[str, ...]] = []
    limits = experiment["limits"]
    for name, f in point["contenders"].items():
        whole = own_bytes(point, f)
        rows.append(
            (
                name,
                f"{duration(f['build_s'] * 1e9)} {'ok' if f['build_s'] <= limits['build_s'] else 'OVER'}",
                f"{size(whole)} {'ok' if max(whole, f['peak_growth'] or 0) < limits['bytes'] else 'OVER'}",
                size(f["peak_growth"]) if f["peak_growth"] is not None else "",
                ratio(f["speedup"], "index"),
                ratio(f["speedup"], "match"),
                _beats(f["speedup"]["match"]) if name != point["baseline"] else "",
            )
        )
    columns = (
        "index", f"build ≤ {limits['build_s']:.0f} s", f"all bytes < {size(limits['bytes'])}", "peak while building",
        f"× {point['baseline']}, index phase", f"× {point['baseline']}, match", f"beats {point['baseline']}",
    )  # fmt: skip
    return "verdict", columns, rows


def _orders(point: dict[str, Any], experiment: dict[str, Any]) -> list[list[str]]:
    """What the paper found at a point, as far as those whom it names are there: who is left alone has no order."""
    given = experiment["orders"].get(point["label"], [])
    several = [given] if given and isinstance(given[0], str) else given
    there = [[name for name in order if name in point["contenders"] or name == OTHERS] for order in several]
    return [order for order in there if len(order) > 1]


def ordered(point: dict[str, Any], expected: list[list[str]], measure: str) -> Table:
    """The order that contenders came in, beside what the paper found."""
    phases = (("match", "match"), ("index phase", "index"))
    rows: list[tuple[str, ...]]
    rows = [(what, *_came(point, expected, by)) for what, by in (((measure, measure),) if measure in COSTS else phases)]
    rows.append(("the paper", _said(expected), ""))
    return "order", ("by", _first(measure), "as the paper has it"), rows


def orders(experiment: dict[str, Any]) -> Table | None:
    """The same along an axis, by what the experiment shows: a row for each point of which the paper says something."""
    measure = experiment["measure"]
    rows: list[tuple[str, ...]] = []
    for point in experiment["points"]:
        expected = _orders(point, experiment)
        if expected:
            came, same = _came(point, expected, measure)
            rows.append((point["label"], came, _said(expected), same))
    columns = (experiment["varied"], _first(measure), "the paper", "as the paper has it")
    return ("order", columns, rows) if rows else None


def _came(point: dict[str, Any], expected: list[list[str]], measure: str) -> tuple[str, str]:
    values = {name: value_of(measure, point, f) for name, f in point["contenders"].items()}
    same = ("the same" if _keeps(values, order) else "another" for order in expected)
    return " < ".join(sorted(values, key=values.__getitem__)), "; ".join(same)


def _said(expected: list[list[str]]) -> str:
    return "; ".join(" < ".join(order) for order in expected)


def _first(measure: str) -> str:
    return "least first" if measure in (*COSTS, "evaluations") else "fastest first"


def _keeps(values: dict[str, float], order: list[str]) -> bool:
    """Whether each contender of an order, or each of the others, comes before those behind it."""
    others = [value for name, value in values.items() if name not in order]
    groups = [others if name == OTHERS else [values[name]] for name in order]
    return all(max(before) <= min(after) for before, after in pairwise(filter(None, groups)))


def spent(point: dict[str, Any]) -> Table:
    """What the index phase of each contender goes through, and what that costs apiece: why they come in that order."""
    rows: list[tuple[str, ...]] = []
    for name, f in sorted(point["contenders"].items(), key=lambda item: item[1]["phases_ns"]["index"]):
        steps = f["candidates"] + f["evaluations"]
        each = f["phases_ns"]["index"] / max(steps, 1)
        rows.append((name, f"{f['candidates']:,.0f}", f"{f['evaluations']:,.0f}", f"{each:.1f} ns"))
    return "what the index phase spends", ("index", "candidates", "evaluations", "a piece of either"), rows


def _beats(speedup: dict[str, float]) -> str:
    if speedup["low"] > 1:
        return "yes"
    return "in some repetitions" if speedup["high"] > 1 else "no"
