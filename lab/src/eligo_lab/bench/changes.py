"""Tables of experiments in which rules change: `replace` (replacing.py) and `mix` (mixing.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eligo_lab.bench.experiment import FRESH, LONGEST
from eligo_lab.bench.tables import Table, digits, duration, value_of

WITHIN = 1.25  # of the time of an index built anew


def replaced(experiment: dict[str, Any]) -> Iterator[Table]:
    """Each index on its way, beside one built anew; and whether it comes out of it as good as that."""
    names = list(dict.fromkeys(n for p in experiment["points"] for n in p["contenders"] if not n.endswith(FRESH)))
    for name in names:
        rows = [_step(point, name) for point in experiment["points"]]
        columns = (
            experiment["varied"], name, "built anew", "ratio", "candidates", "anew", "evaluations", "anew",
            "bytes a rule", "anew", "updates/s", "longest update",
        )  # fmt: skip
        yield f"{name} while rules are replaced; time of an event, index phase alone", columns, rows
    ends: list[tuple[str, ...]] = []
    for name in names:
        ratios = [_ratio(point, name) for point in experiment["points"]]
        verdict = "yes" if ratios[-1] <= WITHIN else "no"
        ends.append((name, digits(ratios[-1]), verdict, digits(max(ratios))))
    limit = f"at most {WITHIN:g}"
    yield "beside an index built anew", ("index", "ratio at the end", limit, "largest ratio on the way"), ends


def _ratio(point: dict[str, Any], name: str) -> float:
    there = point["contenders"]
    return value_of("index", point, there[name]) / value_of("index", point, there[f"{name}{FRESH}"])


def _step(point: dict[str, Any], name: str) -> tuple[str, ...]:
    mine, anew = point["contenders"][name], point["contenders"][f"{name}{FRESH}"]
    counts = [f"{one[what]:,.0f}" for what in ("candidates", "evaluations", "bytes_per_rule") for one in (mine, anew)]
    updates = mine.get("updates")
    return (
        point["label"],
        duration(value_of("index", point, mine)),
        duration(value_of("index", point, anew)),
        digits(_ratio(point, name)),
        *counts,
        f"{updates['per_second']:,.0f}" if updates else "",
        duration(updates["longest_ns"]) if updates else "",
    )


def mixed(experiment: dict[str, Any]) -> Iterator[Table]:
    """Times of matches, additions and removals in each case; and how long anybody waited."""
    limit = duration(LONGEST)
    for point in experiment["points"]:
        rows: list[tuple[str, ...]] = []
        totals: list[tuple[str, ...]] = []
        for name, figures in point["contenders"].items():
            for operation, one in figures["operations"].items():
                times = map(duration, (one["mean_ns"], one["p50_ns"], one["p99_ns"], one["longest_ns"]))
                rows.append((name, operation, f"{one['count']:,}", *times, str(one["over"])))
            garbage = figures["collections"]
            longest = value_of("pause", point, figures)
            totals.append(
                (
                    name,
                    f"{figures['per_second']:,.0f}",
                    f"{duration(longest)} {'ok' if longest <= LONGEST else 'OVER'}",
                    f"{garbage['count']:,}",
                    duration(garbage["longest_ns"]),
                    f"{figures['bytes_per_rule']:,.1f}",
                    duration(figures["load_s"] * 1e9),
                )
            )
        columns = ("index", "operation", "times", "mean", "p50", "p99", "longest", f"over {limit}")
        yield f"{point['label']}: {point['rules']:,} rules, {point['matches']:,.1f} matches an event", columns, rows
        overall = (
            "index", "operations/s", f"longest ≤ {limit}", "collections", "longest of them", "bytes a rule", "to load",
        )  # fmt: skip
        yield f"{point['label']}: all operations", overall, totals
