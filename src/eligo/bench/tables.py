"""Figures as rows of tables: what `eligo bench run` prints at its end, and what docs/performance.md is made of."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Contenders down, points across; None for an experiment in which nothing varies."""
    points = experiment["points"]
    if not experiment["varied"] or len(points) < 2:
        return None
    names = list(dict.fromkeys(name for point in points for name in point["contenders"]))
    measure = experiment["measure"]
    rows: list[tuple[str, ...]] = []
    for name in names:
        cells = [
            shown(measure, value_of(measure, point, point["contenders"][name])) if name in point["contenders"] else "–"
            for point in points
        ]
        rows.append((name, *cells))
    matches = tuple(f"{point['matches']:,.1f}" for point in points)
    rows.append(("*matches an event*", *matches))
    return MEASURES[measure], (experiment["varied"], *(point["label"] for point in points)), rows


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
    return sorted(point["contenders"].items(), key=lambda item: item[1]["match_ns"]["quiet"])


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


def verdict(experiment: dict[str, Any]) -> Iterator[Table]:
    """The tables that a run ends with."""
    table = varied(experiment)
    if table is not None and not experiment["limits"]:
        yield f"{experiment['name']}: {table[0]}", table[1], table[2]
    for point in experiment["points"]:
        title = f"{experiment['name']}{' ' + point['label'] if point['label'] else ''}"
        if in_full(experiment):
            for heading, columns, rows in detailed(point):
                yield f"{title}: {heading}", columns, rows
        for heading, columns, rows in judgement(point, experiment):
            yield f"{title}: {heading}", columns, rows
        if "outside" in point:
            heading, columns, rows = outside(point["outside"])
            yield f"{title}: {heading}", columns, rows


def judgement(point: dict[str, Any], experiment: dict[str, Any]) -> Iterator[Table]:
    """What an experiment with limits, or with an order to compare with, comes to."""
    if experiment["limits"]:
        yield judged(point, experiment)
    if point["label"] in experiment["orders"]:
        yield ordered(point, experiment["orders"][point["label"]])
        yield spent(point)


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


def ordered(point: dict[str, Any], expected: list[str]) -> Table:
    """The order that contenders came in, beside that of the paper."""
    theirs = [name for name in expected if name in point["contenders"]]
    rows: list[tuple[str, ...]] = []
    for what, measure in (("match", "match"), ("index phase", "index")):
        times = {name: value_of(measure, point, f) for name, f in point["contenders"].items()}
        order = sorted(times, key=times.__getitem__)
        same = [name for name in order if name in theirs] == theirs
        rows.append((what, " < ".join(order), "the same" if same else "another"))
    rows.append(("the paper", " < ".join(theirs), ""))
    return "order", ("by", "fastest first", "as the paper has it"), rows


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
