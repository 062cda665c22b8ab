"""Tables of experiments that count predicate evaluations: what the counts come from, and how they grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eligo_lab.bench.tables import Table, digits


def counted(experiment: dict[str, Any]) -> Iterator[Table]:
    """The tables beside that of the counts themselves."""
    if experiment["points"]:
        yield left(experiment)
        yield behind(experiment["points"][-1], experiment["varied"])
    if experiment.get("bounds"):
        yield grown(experiment)


def left(experiment: dict[str, Any]) -> Table:
    """Returns how many profiles an index comes to at each point; where more than match, they have to be checked."""
    points = experiment["points"]
    names = dict.fromkeys(name for point in points for name, f in point["contenders"].items() if "candidates" in f)
    rows: list[tuple[str, ...]] = [
        (name, *(_few(point["contenders"].get(name, {}).get("candidates")) for point in points)) for name in names
    ]
    rows.append(("*matches an event*", *(_few(point["matches"]) for point in points)))
    return "profiles that the trees leave", (experiment["varied"], *(point["label"] for point in points)), rows


def behind(point: dict[str, Any], varied: str) -> Table:
    """Returns how large the trees and lists are that the evaluations of a point go through."""
    rows = [
        (
            name,
            *(_whole(f["notes"].get(note)) for note in ("nodes", "entries of ordered lists")),
            digits(f["evaluations"]),
        )
        for name, f in sorted(point["contenders"].items(), key=lambda item: float(item[1]["evaluations"]))
    ]
    columns = ("index", "nodes", "entries of ordered lists", "evaluations")
    return f"what the evaluations go through, {varied} {point['label']}", columns, rows


def _few(count: float | None) -> str:
    return "" if count is None else f"{count:,.1f}"


def _whole(count: float | None) -> str:
    return "" if count is None else f"{count:,.0f}"


def grown(experiment: dict[str, Any]) -> Table:
    """Returns how evaluations grow from the fewest profiles to the most, at each overlap, beside the paper's bounds."""
    overlaps: dict[float, list[dict[str, Any]]] = {}
    for point in experiment["points"]:
        overlaps.setdefault(point["parameters"]["overlap"], []).append(point)
    rows: list[tuple[str, ...]] = []
    for name, (best, worst) in experiment["bounds"].items():
        growth = []
        for points in overlaps.values():
            fewest, most = (choose(points, key=lambda point: int(point["rules"])) for choose in (min, max))
            there = name in fewest["contenders"] and name in most["contenders"]
            counts = [point["contenders"][name]["evaluations"] for point in (fewest, most)] if there else []
            growth.append(
                f"{digits(counts[0])} → {digits(counts[1])}, × {digits(counts[1] / counts[0])}" if there else ""
            )
        rows.append((name, *growth, f"Ω({best})", f"O({worst})"))
    sizes = " → ".join(dict.fromkeys(f"{point['rules']:,}" for point in experiment["points"]))
    columns = ("index", *(f"overlap {overlap:.0%}" for overlap in overlaps), "the paper, at best", "at worst")
    return f"evaluations, {sizes} profiles", columns, rows
