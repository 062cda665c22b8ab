"""Rules and events of the cluster's tests, and how answers are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eligo

COLOURS = ("red", "green", "blue")


def rules(count: int) -> list[tuple[str, str]]:
    rng = np.random.default_rng(7)
    low, width, colour = rng.integers(0, 10_000, count), rng.integers(1, 200, count), rng.integers(0, 3, count)
    return [
        (
            f"r{i:05}",
            f"x between {low[i]} and {low[i] + width[i]} and (colour = '{COLOURS[colour[i]]}' or y > {low[i]})",
        )
        for i in range(count)
    ]


def events(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "x": rng.integers(0, 10_000, count),
            "y": rng.integers(0, 10_000, count),
            "colour": np.array(COLOURS)[rng.integers(0, 3, count)],
        }
    )


def write_events(folder: Path, files: int, rows: int) -> pa.Table:
    """`files` files of `rows` events each, for Spark; all of them, for the comparison."""
    folder.mkdir()
    parts = [events(i * rows, rows) for i in range(files)]
    for i, part in enumerate(parts):
        pq.write_table(part, folder / f"part-{i:05}.parquet")
    return pa.concat_tables(parts)


def write_rules(folder: Path, files: int, rows: int) -> list[tuple[str | None, str | None]]:
    """A table of rules in several files, a few of them bad, in no order."""
    table: list[tuple[str | None, str | None]] = [*rules(files * rows)]
    for i in range(0, len(table), 1000):
        table[i] = (table[i][0], "x >")
        table[i + 1] = table[i + 2]  # the same id twice
        table[i + 3] = (table[i + 3][0], None)
    table[4] = (None, "x > 1")
    folder.mkdir()
    order = np.random.default_rng(1).permutation(len(table))
    for i, part in enumerate(np.array_split(order, files)):
        columns = zip(*(table[k] for k in part), strict=True)
        pq.write_table(pa.table(dict(zip(("id", "expression"), columns, strict=True))), folder / f"part-{i}.parquet")
    return table


def save_rules(path: Path, count: int) -> eligo.Matcher:
    matcher = eligo.Matcher()
    matcher.add_many(rules(count))
    matcher.save(path)
    return matcher


def local_answer(matcher: eligo.Matcher, table: pa.Table) -> list[tuple[Any, ...]]:
    """What one process finds: the rows that Spark must give, sorted."""
    found = matcher.match_batch(table)
    return _sorted(table.take(found["event"]).append_column("rule", found["rule"].cast(pa.string())))


def answer(target: Path) -> list[tuple[Any, ...]]:
    """The rows of a finished batch, sorted: equal lists are equal multisets."""
    assert (target / "_SUCCESS").exists()
    return _sorted(pq.read_table(target))


def stream_answer(target: Path) -> list[tuple[Any, ...]]:
    """The rows that Spark reads from a stream's sink, sorted, without the rules that tell versions apart (moving.py).

    The folder of a sink alone has what was never committed, too.
    """
    return [row for row in _sorted(pq.read_table(f"{target}.parquet")) if not row[-1].startswith("v")]


def read_batches(target: Path) -> list[int]:
    """The numbers of the batches whose events a stream's last driver read."""
    batches: list[int] = json.loads(Path(f"{target}-batches.json").read_text())
    return batches


def _sorted(table: pa.Table) -> list[tuple[Any, ...]]:
    names = ["id", "x", "y", "colour", "rule"]
    return sorted(zip(*(table[name].to_pylist() for name in names), strict=True))
