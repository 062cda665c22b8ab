"""Rows of Parquet files are dealt out to tasks, each row to one, and read as they were dealt out."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eligo import EventError
from eligo.spark import row_groups
from eligo.spark.row_groups import File, Files, Span, cut


def spread_over(tasks: Any) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for span in (span for task in tasks for span in task):
        found.setdefault(span.file, []).extend(range(span.first, span.first + span.rows))
    return found


def test_every_row_is_in_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_FEW_ROWS", 10)
    monkeypatch.setattr(row_groups, "_ROWS", 40)
    rng = random.Random(4)
    for _ in range(100):
        files = [File("f", tuple(rng.choice((0, 1, 3, 50, 200)) for _ in range(rng.randrange(4)))) for _ in range(5)]
        tasks = cut(files)
        everything = {n: list(range(sum(file.rows))) for n, file in enumerate(files) if sum(file.rows)}
        assert spread_over(tasks) == everything
        assert all(sum(span.rows for span in task) <= 50 for task in tasks)


def test_many_rows_make_larger_tasks_and_not_too_many() -> None:
    sizes = [sum(span.rows for span in task) for task in cut([File("f", (5_000_000,))])]
    assert sizes == [250_000] * 20
    assert len(cut([File("f", (1 << 40,))])) <= 10_000
    assert len(cut([File("f", (100,))] * 50)) == 1
    assert len(cut([File("f", (30_000, 30_000))] * 5)) == 4
    assert cut([File("f", ())]) == ()


def test_rows_are_read_as_they_were_dealt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_groups, "_BATCH", 7)
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"x": range(100), "unread": ["text"] * 100}), path, row_group_size=30)
    spans = (Span(0, 0, 10), Span(0, 10, 75), Span(0, 85, 15))
    wanted = ((("x",), pa.int64()), (("day",), pa.int32()))
    files = Files((File(path, (30, 30, 30, 10), (5,)),), (spans[:1], spans[1:]), ("x",), wanted, ("day",))
    for tasks, expected in (([0], range(10)), ([1], range(10, 100)), ([1, 0], [*range(10, 100), *range(10)])):
        batches = list(files.read(iter([pa.record_batch({"id": tasks})])))
        assert [x for batch in batches for x in batch["c0"].to_pylist()] == list(expected)
        assert {x for batch in batches for x in batch["c1"].to_pylist()} == {5}
        assert max(batch.num_rows for batch in batches) <= 7


def test_a_file_that_was_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "x.parquet")
    pq.write_table(pa.table({"x": range(100)}), path)
    files = Files((File(path, (90,)),), ((Span(0, 0, 90),),), ("x",), ((("x",), pa.int64()),))
    with pytest.raises(EventError, match=r"x\.parquet was replaced"):
        list(files.read(iter([pa.record_batch({"id": [0]})])))
