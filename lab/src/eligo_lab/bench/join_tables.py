"""Tables of experiments with rules that ask about documents: `join` (joining.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eligo_lab.bench.joining import ALL, JOINS, ORDERS, PLAIN, STOPPING, UNFILTERED
from eligo_lab.bench.tables import Table, digits, duration, value_of

# What an experiment may ask of its last point, by key of `limits`: in words, and whether more is better.
GOALS = {
    "all": ("times faster than trying all", True),
    "plain": ("times the same rules without joins", False),
    "publish": ("publish, in times of a match", False),
    "load_s": ("seconds to load the documents from Arrow", False),
    "bytes": ("bytes of a document and indexed attribute", False),
    "unfiltered": ("times faster than without pre-filtering", True),
    "phases": ("times the better order of both phases", False),
}


def joined(experiment: dict[str, Any]) -> Iterator[Table]:
    """Times of matching by rules and documents, what else documents cost, and what was to be reached."""
    points = experiment["points"]
    known = {name for point in points for name in point["contenders"]}
    others = (PLAIN, *(name for name in (UNFILTERED, *ORDERS) if name in known), ALL, STOPPING)
    columns = ("rules, documents", JOINS, *(part for name in others for part in (name, "ratio")), "matches an event")
    rows: list[tuple[str, ...]] = []
    for point in points:
        times = {name: value_of("match", point, figures) for name, figures in point["contenders"].items()}
        cells = [
            part
            for name in others
            for part in ((duration(times[name]), digits(_ratio(name, times))) if name in times else ("", ""))
        ]
        rows.append((_named(point), duration(times[JOINS]), *cells, f"{point['matches']:,.1f}"))
    yield "time of an event; ratios say how many times faster joins are or, beside without joins, slower", columns, rows
    yield costs(points)
    if experiment["limits"] and points:
        yield reached(points[-1], experiment["limits"])


def _named(point: dict[str, Any]) -> str:
    return f"{point['rules']:,}, {point['documents']:,}"


def _ratio(name: str, times: dict[str, float]) -> float:
    return times[JOINS] / times[name] if name == PLAIN else times[name] / times[JOINS]


def _bytes(point: dict[str, Any]) -> float:
    mine = point["contenders"][JOINS]
    return float(mine["index_bytes"] / (point["documents"] * mine["attributes"]))


def costs(points: list[dict[str, Any]]) -> Table:
    """What documents cost beside matching, and how questions were answered."""
    columns = (
        "rules, documents", "publish", "× match", "load documents", "attributes", "bytes each", "questions of an event",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for point in points:
        mine = point["contenders"][JOINS]
        answered = (f"{how} {digits(count)}" for how, count in mine["answered"].items() if count)
        rows.append(
            (
                _named(point),
                duration(mine["publish_ns"]["quiet"]),
                digits(mine["publish_ns"]["quiet"] / value_of("match", point, mine)),
                duration(mine["load_s"] * 1e9),
                str(mine["attributes"]),
                f"{_bytes(point):,.0f}",
                ", ".join(answered),
            )
        )
    return "documents: publishing, loading from Arrow, index", columns, rows


def reached(point: dict[str, Any], limits: dict[str, float]) -> Table:
    """What the last point should reach, and whether it does."""
    times = {name: value_of("match", point, figures) for name, figures in point["contenders"].items()}
    mine = point["contenders"][JOINS]
    values = {
        "all": times[ALL] / times[JOINS],
        "plain": times[JOINS] / times[PLAIN],
        "publish": mine["publish_ns"]["quiet"] / times[JOINS],
        "load_s": mine["load_s"],
        "bytes": _bytes(point),
        "unfiltered": times.get(UNFILTERED, times[JOINS]) / times[JOINS],
        "phases": times[JOINS] / min(times.get(name, times[JOINS]) for name in ORDERS),
    }
    rows: list[tuple[str, ...]] = []
    for key, limit in limits.items():
        words, more = GOALS[key]
        kept = values[key] >= limit if more else values[key] <= limit
        rows.append((words, digits(values[key]), f"{'≥' if more else '≤'} {limit:,g}", "ok" if kept else "MISSED"))
    return f"{_named(point)}: what was to be reached", ("what", "measured", "to reach", ""), rows
