"""What one task does not take."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import eligo
from eligo.spark import changes
from unit.store.making import Maker


@pytest.fixture
def path(tmp_path: Path) -> Path:
    maker = Maker(tmp_path / "rules")
    maker.matcher.add_many([("a", "x = 1"), ("b", "x = 2")])
    maker.publish()
    return maker.path


def test_too_many_changes(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_CHANGES", 1)
    row = pa.record_batch({"id": ["c"], "e": ["x = 1"], "w": [1.0], "t": pa.nulls(1, pa.string()), "c": ["put"]})
    with pytest.raises(eligo.LimitError, match="more than 1 changes in one update"):
        changes.apply_changes(str(path), 1, str(tmp_path), iter([row, row]))


def test_an_update_may_make_an_attribute_multi_valued(path: Path, tmp_path: Path) -> None:
    several = [("c", "x contains any (1, 2)", 1.0, (), "add")]
    changed = changes.apply_rows(str(path), 1, str(tmp_path), several)
    assert (changed.rules, changed.multi) == (3, ("x",))
