"""Events of which an attribute cannot be asked are matched with all other rules, in the order in which they came."""

from __future__ import annotations

import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eligo
from eligo.compile.unusable import UnusableValuesError
from eligo.spark import partial_events, worker
from eligo.spark.partial_events import ROW, found_in
from eligo.spark.worker import Plan
from eligo.spark.worker_cache import Source, manifest_hash

pytest.importorskip("pyspark")

BAD = b"\xff"


def texts(values: list[Any]) -> pa.Array:
    """Strings of which some are no text."""
    return pa.array(values, pa.binary()).view(pa.string())


@pytest.mark.parametrize("index", ["auto", "be-tree"])
@pytest.mark.parametrize("top_k", [None, 2])
@pytest.mark.parametrize("output", ["array", "exploded"])
def test_every_row_has_the_matches_of_what_can_be_asked(
    index: str, top_k: int | None, output: str, tmp_path: Path
) -> None:
    rng = random.Random(f"{index} {top_k} {output}")
    rules = [(f"r{i}", f"{a} = '{v}'") for i, (a, v) in enumerate((a, v) for a in "abc" for v in "xy")]
    rules += [
        ("ab", "a = 'x' or b = 'x'"),
        ("no c", "c is null"),
        ("bc", "b != 'x' and not c = 'y'"),
        ("all", "n >= 0"),
    ]
    weighted = [(rule, text, float(rng.randrange(5)), [rng.choice(("one", "two"))]) for rule, text in rules]
    matcher = eligo.Matcher(index)
    matcher.add_many(weighted)
    matcher.save(tmp_path / "rules")
    source = Source(str(tmp_path / "rules"), manifest_hash(str(tmp_path / "rules")))
    rows = [[rng.choice((None, b"x", b"y", BAD)) for _ in "abc"] for _ in range(500)]
    batch = pa.record_batch(
        {"c0": range(500), **{f"c{i + 1}": texts([row[i] for row in rows]) for i in range(3)}, "c4": [1] * 500}
    )
    tags = ("one",) if index == "auto" else None
    plan = Plan(
        source, ("id",), (("a", 1), ("b", 2), ("c", 3), ("n", 4)), 5, output, False,
        top_k=top_k, tags=tags, counts_partial=True,
    )  # fmt: skip
    found = pa.Table.from_batches(list(worker.run(plan, iter([batch]))))

    expected = []
    for row in rows:
        bad = {name for name, value in zip("abc", row, strict=True) if value == BAD}
        event = {name: value.decode() for name, value in zip("abc", row, strict=True) if value not in (None, BAD)}
        asked = eligo.Matcher(index)
        asked.add_many([rule for rule in weighted if not any(f"{name} " in rule[1] for name in bad)])
        ranked = asked.top({**event, "n": 1}, len(rules) if top_k is None else top_k, tags=tags)
        expected.append(asked.match({**event, "n": 1}, tags=tags) if top_k is None else [rule for rule, _ in ranked])
    partial = sum(BAD in row for row in rows)
    if output == "array":
        assert found["id"].to_pylist() == list(range(500))
        assert found["rules"].to_pylist() == expected
        assert found[worker.PARTIAL].to_pylist() == [int(BAD in row) for row in rows]
    else:
        real = found.filter(pa.compute.equal(found[worker.PARTIAL], 0))
        pairs = [(number, rule) for number, some in enumerate(expected) for rule in some]
        assert list(zip(real["id"].to_pylist(), real["rule"].to_pylist(), strict=True)) == pairs
        assert sum(found[worker.PARTIAL].to_pylist()) == partial
        assert found.num_rows - real.num_rows == 1


def test_only_errors_that_blame_an_attribute_are_taken() -> None:
    events = pa.record_batch({ROW: [0, 1]})

    def refuse(error: Exception) -> Any:
        def search(some: pa.RecordBatch, without: Any) -> Any:
            raise error

        return search

    partial = np.zeros(2, np.bool_)
    for error in (
        eligo.EventError("no row is at fault"),
        UnusableValuesError("no attribute"),
        UnusableValuesError("no row", "a", np.zeros(0, np.int64)),
        UnusableValuesError("again and again", "a"),
    ):
        with pytest.raises(eligo.EventError, match=str(error)):
            list(found_in(events, refuse(error), partial, "/rules"))
    assert not partial.any()


def test_a_task_warns_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    import pyspark

    class Context:
        number = 7

        @classmethod
        def get(cls) -> Any:
            return cls

        @classmethod
        def taskAttemptId(cls) -> int:  # noqa: N802, Spark's name
            return cls.number

    monkeypatch.setattr(pyspark, "TaskContext", Context)
    with caplog.at_level(logging.WARNING, "eligo.spark"):
        for _ in range(3):
            partial_events.warn_once("/rules", "events match nothing", "it is broken")
        Context.number = 8
        partial_events.warn_once("/rules", "events match nothing", "it is broken")
    message = "/rules: events match nothing, of the first one: it is broken"
    assert [record.getMessage() for record in caplog.records] == [message] * 2


def test_what_is_wrong_is_said_without_the_number_in_a_batch(caplog: pytest.LogCaptureFixture) -> None:
    error = UnusableValuesError("event 12: attribute 'v' holds a list", "v", np.array([1]))

    def search(some: pa.RecordBatch, without: Any) -> Any:
        if not without and 1 in some.column(ROW).to_pylist():
            raise error
        return iter(())

    with caplog.at_level(logging.WARNING, "eligo.spark"):
        assert not list(found_in(pa.record_batch({ROW: [0, 1]}), search, np.zeros(2, np.bool_), "/rules"))
    (record,) = caplog.records
    assert record.getMessage().endswith("cannot be asked of them, of the first one: attribute 'v' holds a list")
