"""Tables: files named by content, in full row groups, and texts found by locator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eligo
from eligo.store import tables
from eligo.store.tables import REJECTS_SCHEMA, RULES_SCHEMA, TableWriter, Texts, locator_text
from eligo.store.versions import TableFile


def written(folder: Path, rows: int, step: int, prefix: str = "rules") -> TableFile:
    writer = TableWriter(folder, prefix, RULES_SCHEMA("int"))
    for first in range(0, rows, step):
        numbers = np.arange(first, min(first + step, rows))
        columns = {
            "id": numbers,
            "expression": [f"a = {n}" for n in numbers],
            "weight": np.ones(len(numbers)),
            "tags": [["t"]] * len(numbers),
        }
        batch = pa.record_batch(columns, schema=RULES_SCHEMA("int"))
        writer.write(batch if first % 2 else pa.Table.from_batches([batch]))
    return writer.close()


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "GROUP", 64)


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 128, 300])
def test_groups_are_full_whatever_comes(tmp_path: Path, small_groups: None, rows: int) -> None:
    files = {written(tmp_path, rows, step) for step in (1, 7, 64, 1000)}
    assert len(files) == 1  # the same rows are the same file
    (file,) = files
    metadata = pq.ParquetFile(tmp_path / file.file).metadata
    sizes = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(sizes) == file.rows == rows
    assert all(size == 64 for size in sizes[:-1])
    assert [entry.name for entry in tmp_path.iterdir()] == [file.file]
    assert file.size == (tmp_path / file.file).stat().st_size


def test_texts_by_locator(tmp_path: Path, small_groups: None) -> None:
    files = {3: written(tmp_path, 300, 50), 70_000: written(tmp_path, 10, 50)}
    texts = Texts(tmp_path, files)
    offsets, data = locator_text([3, 3, 70_000], [299, 0, 9])
    assert offsets.tolist() == [0, 8, 16, 24]
    assert data.tobytes() == b"".join(n.to_bytes(8, "little") for n in (3 << 40 | 299, 3 << 40, 70_000 << 40 | 9))
    assert [texts.text(n) for n in data.view(np.int64).tolist()] == ["a = 299", "a = 0", "a = 9"]
    rows = np.random.default_rng(5).integers(0, 300, 1000)
    assert texts.many((3 << 40) | rows).to_pylist() == [f"a = {n}" for n in rows]
    assert texts.many(data.view(np.int64)).to_pylist() == ["a = 299", "a = 0", "a = 9"]
    assert texts.many([]).to_pylist() == []
    assert len(texts._groups) <= tables._GROUPS_KEPT
    for beyond in (3 << 40 | 300, 3 << 40 | 400, 70_000 << 40 | 10):
        with pytest.raises(eligo.SnapshotError, match=r"rules-.*\.parquet"):
            texts.text(beyond)
        with pytest.raises(eligo.SnapshotError, match=r"rules-.*\.parquet"):
            texts.many([3 << 40, beyond])
    with pytest.raises(eligo.SnapshotError, match="unit 4"):
        texts.text(4 << 40)
    assert texts.adopt({4: files[3]})
    assert texts.text(4 << 40 | 7) == "a = 7"
    assert not texts.adopt({4: files[70_000]})


def test_an_aborted_file_leaves_nothing(tmp_path: Path) -> None:
    writer = TableWriter(tmp_path, "rejects", REJECTS_SCHEMA)
    writer.write(pa.table({"id": ["1"], "message": ["m"], "position": [-1], "expression": [None]}, REJECTS_SCHEMA))
    assert writer.rows == 1
    writer.abort()
    assert not list(tmp_path.iterdir())
