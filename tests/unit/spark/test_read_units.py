"""Units read their rules together or one by one, and leave the same behind."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.property.test_bulk import good
from tests.property.test_rule_text import MULTI, forms

from eligo.language import Limits
from eligo.segments.pieces import restore_piece
from eligo.segments.rule_table import unpacked
from eligo.spark import tasks
from eligo.store.arrays import map_arrays


def batches_drawn(draw: random.Random, integers: bool) -> list[pa.RecordBatch]:
    """Rows as Spark gives them: sorted by id, tags as JSON, text that may be no UTF-8."""
    rows: list[tuple[Any, ...]] = []
    for place, number in enumerate(sorted(draw.randrange(400) for _ in range(400))):
        rule = number if integers else f"rule {number:03}"
        raw = None if draw.random() < 0.02 else good(draw).encode("utf-8", "replace")
        raw = b"a = '\xff'" if draw.random() < 0.01 else raw
        weight = draw.choice((None, 1.0, 2.5, float("inf") if draw.random() < 0.1 else 0.5))
        tags = draw.choice((None, None, '["t"]', '["u","t"]', '[""]' if draw.random() < 0.1 else "[]"))
        rows.append((None if place < 4 else rule, raw, weight, tags, draw.choice((None, None, "me", ""))))
    ids, texts, weights, tags_, owners = zip(*rows, strict=True)
    raw_texts = pa.array(texts, pa.binary())
    expressions = pa.Array.from_buffers(pa.string(), len(raw_texts), raw_texts.buffers())
    names = ["id", "expression", "weight", "tags", "owner"]
    columns = [
        pa.array(ids), expressions, pa.array(weights, pa.float64()), pa.array(tags_, pa.string()),
        pa.array(owners, pa.string()),
    ]  # fmt: skip
    whole = pa.RecordBatch.from_arrays(columns, names)
    return [whole.slice(0, 150), whole.slice(150, 1), whole.slice(151)]


def left_behind(folder: Path, settings: tasks.Settings, id_type: str, batches: list[pa.RecordBatch]) -> tuple[Any, ...]:
    folder.mkdir()
    reader = tasks._UnitReader(settings, folder, 3, id_type)
    for batch in batches:
        reader.read(batch)
    unit = reader.finish()
    piece = restore_piece(map_arrays(folder, unit.piece, verify=True))
    data, offsets = piece.strings
    trees = list(forms(piece.compiled, list(piece.attributes), unpacked(offsets, data)))
    tags = [piece.table.rule(row, "") for row in range(len(piece))]
    order = np.argsort(piece.table.sequence)
    rejects = None if unit.rejects is None else pq.read_table(folder / unit.rejects.file).to_pylist()
    return (
        pq.read_table(folder / unit.texts.file).to_pylist(),
        rejects,
        sorted(unit.attributes),
        unit.buckets,
        unit.examples,
        piece.table.sequence[order].tolist(),
        [(trees[row], tags[row]) for row in order],
        sorted(piece.table.tag_names()),
    )


@pytest.mark.parametrize("evaluator", ["interval", "dnf"])
@pytest.mark.parametrize("id_type", ["int", "str"])
def test_units_are_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, id_type: str, evaluator: str) -> None:
    for seed in range(4):
        draw = random.Random(f"{id_type} {seed}")
        batches = batches_drawn(draw, id_type == "int")
        settings = tasks.Settings("auto", evaluator, draw.choice(("fails", "classical")), MULTI, Limits(terms=6))
        results = []
        for many in (1, 100, 10**9):
            monkeypatch.setattr(tasks, "MANY", many)
            results.append(left_behind(tmp_path / f"{seed} {many}", settings, id_type, batches))
        assert results[0] == results[1] == results[2]


def test_attributes_used_with_contains_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tasks.Settings("auto", "interval", "fails", frozenset(), Limits())
    for seed in range(4):
        batches = [batch.select(["expression"]) for batch in batches_drawn(random.Random(seed), True)]
        found = []
        for many in (1, 10**9):
            monkeypatch.setattr(tasks, "MANY", many)
            found.append(tasks.containing_of(settings, iter(batches)))
        assert found[0] == found[1]
        assert len(found[0]) >= 2
