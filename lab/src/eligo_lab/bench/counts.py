"""Tables of experiments that count predicate evaluations: what the counts come from, and how they grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eligo_lab.bench.tables import Table, digits


def counted(experiment: dict[str, Any]) -> Iterator[Table]:
    """The tables beside that of the counts themselves."""
    for point in dict.fromkeys((0, len(experiment["points"]) - 1)) if experiment["points"] else ():
        yield behind(experiment["points"][point], experiment["varied"])
    if experiment.get("bounds"):
        yield grown(experiment)


def behind(point: dict[str, Any], varied: str) -> Table:
    """Returns what the counts of a point come from: a deep tree, profiles looked at one by one, or long lists."""
    rows = [
        (
            name,
            *(_whole(f["notes"].get(note)) for note in ("nodes", "entries of ordered lists")),
            _whole(f.get("candidates")),
            digits(f["evaluations"]),
        )
        for name, f in sorted(point["contenders"].items(), key=lambda item: float(item[1]["evaluations"]))
    ]
    columns = ("index", "nodes", "entries of ordered lists", "profiles left by the trees", "evaluations")
    found = f"{point['matches']:,.1f} of {point['rules']:,} profiles match"
    return f"what the evaluations are, {varied} {point['label']}; {found}", columns, rows


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
