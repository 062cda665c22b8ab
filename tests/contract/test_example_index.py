"""The index of examples/index, a package outside of eligo: found by its entry point, and right."""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.index.registry import INDEXES
from eligo.prove import prove

FOLDER = Path(__file__).parents[2] / "examples" / "index"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class that the entry point names, known to eligo as if the package were installed."""
    monkeypatch.syspath_prepend(str(FOLDER))
    points = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["entry-points"]["eligo.indexes"]
    ((name, place),) = points.items()
    module, _, attribute = place.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    assert found.name == name
    INDEXES.all()
    monkeypatch.setitem(INDEXES._known, name, found)
    yield found
    sys.modules.pop(module, None)


def test_it_gives_the_answers_of_the_reference(index: Any) -> None:
    proof = prove(indexes=[index.name], evaluators=["interval", "shared"], scale=0.12, half=0)
    assert not proof.differences, "\n".join(program for _, program in proof.differences)
    assert proof.pairs > 500_000


def test_it_is_saved_and_opened(index: Any, tmp_path: Path) -> None:
    m = eligo.Matcher(index.name)
    m.add_many((i, f"a{i % 7} = {i} or b is null and c != {i}") for i in range(500))
    m.save(tmp_path / "saved")
    opened = eligo.open(tmp_path / "saved")
    for event in ({"a3": 3}, {"a3": 10, "b": 1}, {"c": 4}, {}):
        assert opened.match(event) == m.match(event)
    assert opened.stats().index == index.name
