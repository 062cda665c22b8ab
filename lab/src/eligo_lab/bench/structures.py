"""Tables of experiments with structures of one attribute: `stab` (stabbing.py)."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from eligo_lab.bench.tables import Table, beside_paper, digits, duration, ratio, size, value_of

OPERATIONS = ("locate", "count", "matches")


def stabbed(experiment: dict[str, Any]) -> Iterator[Table]:
    """Structures of one attribute: beside the paper's table, operation by operation, and whether PS-Tree is best."""
    published, points = experiment["published"], experiment["points"]
    for point in points:
        title, columns, rows = beside_paper(point, published, "locate")
        title = (
            f"{point['label']}: {point['rules']:,} intervals, of which {point['matches']:,.1f} hold a point; {title}"
        )
        scanned = f"scan: count of {point['scanned']:,} points, scaled"
        yield title, columns, [(scanned if row[0] == "scan" else row[0], *row[1:]) for row in rows]
        yield operations(point)
    rows = [_end(point, rival, published) for point in points for rival in ("segment-tree", "interval-tree")
            if {"ps-tree", rival} <= point["contenders"].keys()]  # fmt: skip
    if rows:
        yield "locating in PS-Tree", (experiment["varied"], "faster than", "times", "the paper", "faster"), rows
        most = experiment["limits"].get("bytes", float("inf"))
        known = [point for point in points if "ps-tree" in point["contenders"]]
        sizes = {point["label"]: point["contenders"]["ps-tree"]["bytes"] for point in known}
        kept: list[tuple[str, ...]] = [
            (n, f"{size(own)} {'ok' if own <= most else 'OVER'}") for n, own in sizes.items()
        ]
        yield "memory of PS-Tree", (experiment["varied"], f"bytes ≤ {size(most)}"), kept


def operations(point: dict[str, Any]) -> Table:
    """What follows upon locating: to count, and to write numbers down."""
    there = point["contenders"]
    rows: list[tuple[str, ...]] = []
    for name in sorted(there, key=lambda name: value_of("locate", point, there[name])):
        times = there[name]["point_ns"]
        written = times["matches"]["best"] / max(point["matches"], 1)
        said = (duration(times[what]["best"]) if what in times else "–" for what in OPERATIONS)
        rows.append((name, *said, duration(written)))
    title, given = f"{point['label']}: time of a point", point["enumerated"]
    if given < point["events"]:
        whole = size(4.0 * point["events"] * point["matches"])
        title += f"; matches of {given:,} points alone, since all numbers would take {whole}"
    return title, ("structure", *OPERATIONS, "a match"), rows


def _end(point: dict[str, Any], rival: str, published: dict[str, Any]) -> tuple[str, ...]:
    """How many times faster PS-Tree is than a rival: the median of the repetitions and between what it lay."""
    both = [point["contenders"][name]["point_ns"]["locate"]["repetitions"] for name in (rival, "ps-tree")]
    ratios = [theirs / mine for theirs, mine in zip(*both, strict=True)]
    times = {"low": min(ratios), "median": median(ratios), "high": max(ratios)}
    paper = digits(published[rival][0] / published["ps-tree"][0])
    faster = "yes" if times["low"] > 1 else "in some repetitions" if times["high"] > 1 else "no"
    return point["label"], rival, ratio({"locate": times}, "locate"), paper, faster
