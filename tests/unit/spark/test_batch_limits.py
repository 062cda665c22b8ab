"""Batches stay small, whatever an event matches and however wide its columns are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eligo.errors import EventError
from eligo.segments import pace
from eligo.segments.pace import Pace
from eligo.spark import batch_limits, worker
from eligo.spark.batch_limits import by_event, bytes_by_row, cuts
from eligo.spark.partial_events import Searcher
from eligo.spark.set_aside import SetAside
from eligo.spark.worker import Plan
from eligo.spark.worker_cache import Open, Source


def rules_of(counts: dict[int, int]) -> Any:
    """A view with events that match so many rules, by the value of their one attribute."""

    class View:
        def __init__(self) -> None:
            self.asked: list[int] = []

        def batch(self, events: pa.RecordBatch, tags: Any, limit: Any) -> Iterator[Any]:
            self.asked.append(events.num_rows)
            numbers = np.repeat(np.arange(events.num_rows), [counts[x] for x in events.column(0).to_pylist()])
            yield numbers, pa.array(np.arange(len(numbers)).astype(str))

        def ranked(self, events: pa.RecordBatch, tags: Any, k: Any) -> Iterator[Any]:
            for numbers, rules in self.batch(events, tags, None):
                yield numbers, rules, np.ones(len(numbers)), np.arange(len(numbers))

    return View()


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(view: Any, output: str, columns: dict[str, Any], kept: int = 1) -> list[pa.RecordBatch]:
        engine: Any = type("Engine", (), {"rules": type("Rules", (), {"view": view})})
        found = Open(engine, Searcher(engine, frozenset({"x"})), frozenset({"x"}), SetAside(), None, {})
        monkeypatch.setattr(worker, "opened", lambda *_: found)
        batch = pa.record_batch(columns)
        names = tuple(batch.schema.names[:kept])
        plan = Plan(Source("unused"), names, (("x", kept),), batch.num_columns, output, False)
        return list(worker.run(plan, iter([batch])))

    return run


def test_a_wide_column_is_not_repeated_into_one_batch(answered: Any) -> None:
    """One event of a megabyte among narrow ones: its matches alone are cut small."""
    view = rules_of({0: 100, 1: 300})
    words = ["w"] * 50 + ["wide" * (1 << 18)] + ["w"] * 50
    batches = answered(view, "exploded", {"c0": words, "c1": [0] * 50 + [1] + [0] * 50})
    assert sum(batch.num_rows for batch in batches) == 300 + 100 * 100
    assert max(batch.nbytes for batch in batches) < 2 * batch_limits.BYTES
    assert 5 <= len(batches) < 15


@pytest.mark.parametrize("output", ["array", worker.RANKED])
def test_one_row_an_event_in_several_batches(output: str, answered: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (batch_limits, pace):
        monkeypatch.setattr(module, "MATCHES", 1_000)
    counts = {0: 0, 1: 400, 2: 7}
    values = [0, 1, 1, 2, 0, 1, 1, 1, 0] * 20
    batches = answered(rules_of(counts), output, {"c0": range(len(values)), "c1": values})
    found = pa.Table.from_batches(batches)
    assert found.column(0).to_pylist() == list(range(len(values)))
    assert [len(row) for row in found.column(1).to_pylist()] == [counts[x] for x in values]
    assert all(sum(map(len, batch.column(1).to_pylist())) <= 16 * 400 for batch in batches)
    assert len(batches) > 3


@pytest.mark.parametrize("output", ["array", worker.RANKED])
def test_matches_that_came_together_are_cut_between_events(
    output: str, answered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knew that so many would come."""
    for module in (batch_limits, pace):
        monkeypatch.setattr(module, "MATCHES", 100)
    monkeypatch.setattr(pace, "_FIRST", 1_000)
    counts = {0: 0, 1: 30, 2: 250}
    values = [1, 1, 1, 0, 1, 2, 1, 2, 2, 0, 0, 1]
    batches = answered(rules_of(counts), output, {"c0": range(len(values)), "c1": values})
    found = pa.Table.from_batches(batches)
    assert found.column(0).to_pylist() == list(range(len(values)))
    assert [len(row) for row in found.column(1).to_pylist()] == [counts[x] for x in values]
    assert [sum(map(len, batch.column(1).to_pylist())) for batch in batches][:3] == [120, 250, 280]


def test_an_event_that_is_refused_has_its_number_in_the_batch() -> None:
    def look(some: pa.RecordBatch) -> Iterator[Any]:
        bad = [number for number, x in enumerate(some.column(0).to_pylist()) if x]
        if bad:
            raise EventError(f"event {bad[0]}: is bad")
        yield np.zeros(0, np.int64), pa.array([], pa.string())

    with pytest.raises(EventError, match="event 300: is bad"):
        list(Pace().through(pa.record_batch({"x": [0] * 300 + [1]}), look))


def test_ids_far_behind_in_a_large_array() -> None:
    """Arrow refuses to cast part of an array whose characters end beyond what a string column can hold."""
    data = np.empty(2**31 + 2, np.uint8)  # never touched but for its end, so that it takes no memory
    data[-2:] = (ord("i"), ord("d"))
    offsets = np.array([0, 2**31, 2**31 + 2])
    plan = Plan(Source("unused"), (), (), 0, "exploded", False)
    rules = pa.Array.from_buffers(pa.large_string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    with pytest.raises(pa.ArrowInvalid):
        rules[1:].cast(pa.string())
    assert worker._ids(plan, rules[1:]).to_pylist() == ["id"]
    assert worker._ids(plan, rules[1:]).type == pa.string()


def test_fewer_events_at_a_time_where_they_match_more() -> None:
    view = rules_of({0: 0, 1: 100_000})
    pace = Pace()

    def run(values: list[int]) -> list[int]:
        view.asked.clear()
        events = pa.record_batch({"x": values})
        numbers = [part[0] for part in pace.through(events, lambda some: view.batch(some, None, None))]
        assert np.unique(np.concatenate(numbers)).tolist() == np.flatnonzero(values).tolist()
        return list(view.asked)

    assert run([0] * 9_000 + [1]) == [16, 128, 1024, 4096, 3737]
    assert run([1] * 40) == [40]
    assert run([1] * 40) == [10, 10, 10, 10]
    assert run([0] * 1_000)[:3] == [10, 80, 640]


def test_cuts_by_rows_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_limits, "ROWS", 4)
    monkeypatch.setattr(batch_limits, "BYTES", 100)
    sizes = np.array([10, 30, 500, 10])
    assert list(cuts(sizes, np.array([0] * 6))) == [(0, 4), (4, 8)]
    assert list(cuts(sizes, np.array([0, 0, 1, 1, 1, 2, 2, 3, 3]))) == [(0, 4), (4, 5), (5, 6), (6, 7), (7, 9)]
    assert list(cuts(sizes, np.zeros(0, np.int64))) == []


def test_bytes_of_every_kind_of_column() -> None:
    nested = [{"a": ["xx", None], "b": {"k": "vvv"}}, None, {"a": [], "b": None}, {"a": ["y" * 100], "b": {}}]
    kind = pa.struct({"a": pa.list_(pa.string()), "b": pa.map_(pa.string(), pa.string())})
    column = pa.array(nested, kind)
    sizes = bytes_by_row(column)
    assert sizes.argmax() == 3
    assert sizes[3] > 100
    assert sizes[0] > 6
    assert bytes_by_row(column.slice(2)).tolist() == sizes[2:].tolist()
    assert bytes_by_row(pa.array([1, None], pa.int32())).tolist() == [4, 4]
    assert bytes_by_row(pa.array([True, None])).tolist() == [1, 1]
    assert bytes_by_row(pa.nulls(2)).tolist() == [0, 0]
    assert bytes_by_row(pa.array(["abc", None])).tolist() == [7, 4]
    assert len(bytes_by_row(pa.array([b"ab"], pa.binary(2)))) == 1
    assert bytes_by_row(pa.array([b"a", None, b"a" * 300], pa.large_binary())).tolist() == [5, 4, 304]
    assert bytes_by_row(pa.array([[1, 2], None], pa.large_list(pa.int32()))).tolist() == [12, 4]


def test_lists_without_offsets_inside() -> None:
    """So some versions of Arrow's Java send a column of lists of lists where all are empty."""
    inner = pa.Array.from_buffers(
        pa.list_(pa.int32()), 0, [None, pa.py_buffer(b"")], children=[pa.nulls(0, pa.int32())]
    )
    offsets = pa.py_buffer(np.zeros(3, np.int32))
    column = pa.Array.from_buffers(pa.list_(inner.type), 2, [None, offsets], children=[inner])
    assert bytes_by_row(column).tolist() == [4, 4]


def test_no_events_are_no_batches_of_matches() -> None:
    batch = pa.record_batch({"x": pa.array([], pa.int64())})
    assert list(by_event(batch, iter([]))) == []
