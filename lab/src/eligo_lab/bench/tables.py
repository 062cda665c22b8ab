"""Figures as rows of tables: what `eligo bench run` prints at its end, and what docs/performance.md is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]  # title, columns, rows

MEASURES = {
    "match": "time of an event",
    "index": "time of an event, index phase alone",
    "evaluate": "time of an event, grouping and evaluation alone",
    "build": "time to build",
    "memory": "bytes of index and labels",
    "rule": "bytes of index and labels, a rule",
    "evaluations": "predicate evaluations an event",
    "selectivity": "share of the rules that match",
    "insert": "time of a single addition",
    "pause": "longest time of an operation",
    "locate": "time of a point, locating alone",
}


def value_of(measure: str, point: dict[str, Any], figures: dict[str, Any]) -> float:
    """What an experiment shows of a contender at a point: nanoseconds, bytes or a number."""
    if measure == "index":
        return float(figures["phases_ns"]["index"])
    if measure == "evaluate":
        return float(figures["phases_ns"]["group"] + figures["phases_ns"]["evaluate"])
    if measure == "build":
        return float(figures["build_s"]) * 1e9
    if measure == "memory":
        return float(figures["bytes"] + figures["evaluator_bytes"])
    if measure == "rule":
        return float(figures["bytes"] + figures["evaluator_bytes"]) / float(point["rules"])
    if measure == "evaluations":
        return float(figures["evaluations"])
    if measure == "selectivity":
        return float(point["matches"] / point["rules"])
    if measure == "insert":
        return float(figures["insert"]["mean_ms"]) * 1e6
    if measure == "locate":
        times = figures["point_ns"]
        return float(times.get("locate", times["count"])["best"])  # scan has nothing to locate
    if measure == "pause":
        return float(max(one["longest_ns"] for one in figures["operations"].values()))
    return float(figures["match_ns"]["quiet"])


def shown(measure: str, value: float) -> str:
    """That value as a person reads it."""
    if measure in ("memory", "rule"):
        return size(value)
    if measure == "evaluations":
        return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
    if measure == "selectivity":
        return f"{value:.2%}"
    return duration(value)


def duration(nanoseconds: float) -> str:
    """Three digits and a unit."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= factor:
            return f"{digits(nanoseconds / factor)} {unit}"
    return f"{digits(nanoseconds)} ns"


def size(bytes_: float) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if bytes_ >= factor:
            return f"{digits(bytes_ / factor)} {unit}"
    return f"{bytes_:.0f} B"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def digits(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 or value == 0 else f"{value:.2g}"


def ratio(speedup: dict[str, Any], what: str) -> str:
    """`12.3 (11.9–12.8)`: the median over the repetitions, and between what it lay."""
    if what not in speedup:
        return ""
    one = speedup[what]
    if one["low"] == one["high"]:
        return digits(one["median"])
    return f"{digits(one['median'])} ({digits(one['low'])}–{digits(one['high'])})"


def varied(experiment: dict[str, Any]) -> Table | None:
    """Lines down, marks of the axis across; None for an experiment in which nothing varies."""
    points = experiment["points"]
    if not experiment["varied"] or len(points) < 2:
        return None
    measure, drawn = experiment["measure"], series(experiment)
    rows: list[tuple[str, ...]] = [
        (name, *(shown(measure, values[mark]) if mark in values else "–" for mark in range(len(drawn.marks))))
        for name, values in drawn.lines.items()
    ]
    if not experiment.get("across"):
        rows.append(("*matches an event*", *(f"{point['matches']:,.1f}" for point in points)))
    return MEASURES[measure], (drawn.axis, *drawn.marks), rows


@dataclass
class Series:
    """What a plot or a table of several points shows: marks along an axis, and lines with a value at some of them."""

    axis: str
    marks: list[str]
    xs: list[float] | None  # places of the marks; None: they are cases, side by side
    lines: dict[str, dict[int, float]]


def series(experiment: dict[str, Any]) -> Series:
    """Points along the axis and contenders as lines; or an option along the axis, and points as lines."""
    points, measure, option = experiment["points"], experiment["measure"], experiment.get("across", "")
    lines: dict[str, dict[int, float]] = {}
    if not option:
        for mark, point in enumerate(points):
            for name, figures in point["contenders"].items():
                lines.setdefault(name, {})[mark] = value_of(measure, point, figures)
        xs = [point["x"] for point in points]
        marks = [point["label"] for point in points]
        return Series(experiment["varied"], marks, None if None in xs else xs, lines)
    everyone = [figures for point in points for figures in point["contenders"].values()]
    given = list(dict.fromkeys(figures["setting"][option] for figures in everyone))
    several = len({figures["index"] for figures in everyone}) > 1
    for point in points:
        for figures in point["contenders"].values():
            line = f"{experiment['varied']} {point['label']}"
            line = f"{figures['index']}, {line}" if several else line
            lines.setdefault(line, {})[given.index(figures["setting"][option])] = value_of(measure, point, figures)
    numeric = all(isinstance(value, int | float) for value in given)
    return Series(option, [f"{v:,}" if numeric else str(v) for v in given], given if numeric else None, lines)


def in_full(experiment: dict[str, Any]) -> bool:
    """Whether each point has tables of its own: where there is one, or they are cases and not places on an axis."""
    return len(experiment["points"]) == 1 or any(point["x"] is None for point in experiment["points"])


def detailed(point: dict[str, Any]) -> list[Table]:
    """Everything about one point, a row for each contender, fastest first: times, where they go, and costs."""
    return [times(point), phases(point), costs(point)]


def times(point: dict[str, Any]) -> Table:
    columns = ("index", "mean", "quiet", "p50", "p99", "in a batch", f"× {point['baseline']}")
    rows: list[tuple[str, ...]] = []
    for name, f in fastest_first(point):
        match = f["match_ns"]
        figures = (match["mean"], match["quiet"], match["p50"], match["p99"], f["batch_ns"]["mean"])
        rows.append((name, *map(duration, figures), ratio(f["speedup"], "match")))
    return f"{point['rules']:,} rules, {point['matches']:,.1f} matches an event; time of an event", columns, rows


def costs(point: dict[str, Any]) -> Table:
    columns = (
        "index", "build", "bytes a rule", "labels", "in all", "RSS", "candidates", "evaluations", "additions/s",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = [
        (
            name,
            duration(f["build_s"] * 1e9),
            f"{f['bytes_per_rule']:,.1f}",
            f"{f['evaluator_bytes'] / point['rules']:,.1f}",
            f"{own_bytes(point, f) / point['rules']:,.1f}",
            size(f["rss_growth"]),
            f"{f['candidates']:,.0f}",
            f"{f['evaluations']:,.0f}",
            f"{f['insert']['per_second']:,.0f}" if "insert" in f else "",
        )
        for name, f in fastest_first(point)
    ]
    return "building, memory, and what an event costs in counts", columns, rows


def own_bytes(point: dict[str, Any], figures: dict[str, Any]) -> float:
    """All bytes of a contender as if it were alone: its index, its labels, and the rules that these stand on."""
    shared = figures["bytes"] + figures["evaluator_bytes"] + point["shared_bytes"]
    return float(figures.get("own_bytes", shared))


def fastest_first(point: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    timed = [item for item in point["contenders"].items() if "match_ns" in item[1]]  # others were only built
    return sorted(timed, key=lambda item: item[1]["match_ns"]["quiet"])


def phases(point: dict[str, Any]) -> Table:
    """Where the time of an event goes, one at a time and in a batch."""
    columns = ("index", "index phase", "group", "evaluate", "emit", "batch: index", "evaluate", "emit")
    rows: list[tuple[str, ...]] = []
    for name, f in fastest_first(point):
        one, batch = f["phases_ns"], f["batch_ns"]["phases"]
        figures = (one["index"], one["group"], one["evaluate"], one["emit"])
        rows.append((name, *map(duration, (*figures, batch["index"], batch["evaluate"], batch["emit"]))))
    return "the phases of an event", columns, rows


def outside(section: dict[str, Any]) -> Table:
    """The comparison with contenders from outside, fastest first: from a dict to a list of ids."""
    columns = ("who", "build", "mean", "quiet", "p50", "p99", f"× {section['baseline']}")
    rows: list[tuple[str, ...]] = [
        (
            name,
            duration(f["build_s"] * 1e9),
            duration(f["total_ns"]["mean"]),
            duration(f["total_ns"]["quiet"]),
            duration(f["total_ns"]["p50"]),
            duration(f["total_ns"]["p99"]),
            ratio(f["speedup"], "total"),
        )
        for name, f in sorted(section["contenders"].items(), key=lambda item: item[1]["total_ns"]["quiet"])
    ]
    return f"{section['rules']:,} rules, from a dict to a list of ids", columns, rows


def beside_paper(point: dict[str, Any], published: dict[str, Any], measure: str) -> Table:
    """Our figures and those of a paper's table, with the ratios of both to the first of its contenders."""
    there = point["contenders"]
    base = next(name for name in published if name in there)
    of_all = point["events"] if measure == "locate" else 1
    rows: list[tuple[str, ...]] = []
    for name in sorted((name for name in published if name in there), key=lambda n: value_of(measure, point, there[n])):
        f, (query, build, memory) = there[name], published[name]
        rows.append(
            (
                name,
                duration(value_of(measure, point, f) * of_all),
                duration(query),
                digits(value_of(measure, point, there[base]) / value_of(measure, point, f)),
                digits(published[base][0] / query),
                *((duration(f["build_s"] * 1e9), duration(build)) if build else ("", "")),
                *((size(f["bytes"]), size(memory)) if memory else ("", "")),
            )
        )
    what = f"locate {of_all:,} points" if measure == "locate" else "index phase"
    columns = (
        "", what, "the paper", f"× {base}", "the paper", "build", "the paper", "bytes", "the paper",
    )  # fmt: skip
    return "beside the paper's table", columns, rows
