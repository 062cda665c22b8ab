"""What the tests of versions share."""

from __future__ import annotations

from pathlib import Path

import pytest

from eligo.store import opening


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rules.eligo"


@pytest.fixture
def forget() -> object:
    """Make this process forget what it has open, as a new one would not know it."""

    def clear() -> None:
        for cache in (opening._segments, opening._latest, opening._texts, opening._verified):
            cache.clear()

    clear()
    return clear
