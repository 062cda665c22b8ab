"""Indexes and evaluators by name: ours, those of other packages, and names that nobody knows."""

from __future__ import annotations

import importlib.metadata
import logging
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from eligo.errors import OptionError
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.registry import Registry


@pytest.mark.parametrize("registry", [INDEXES, EVALUATORS])
def test_every_class_has_the_name_that_it_is_known_by(registry: Registry[object]) -> None:
    for name, kind in registry.all().items():
        assert kind.name == name  # type: ignore[attr-defined]


def test_only_what_is_asked_for_is_imported() -> None:
    program = """
import sys
import eligo
eligo.Matcher()
print(*sorted(name for name in sys.modules if name.startswith(("eligo.index.", "eligo_lab.bench", "eligo.spark"))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "eligo.index.propagation" in done.stdout
    assert "tree" not in done.stdout
    assert "eligo_lab.bench" not in done.stdout
    assert "eligo.spark" not in done.stdout


class Foreign:
    name = "foreign"


def test_entry_points_of_other_packages(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    points = EntryPoints(
        [
            EntryPoint("foreign", f"{__name__}:Foreign", "things"),
            EntryPoint("broken", "nowhere.at_all:Thing", "things"),
            EntryPoint("own", "nowhere.at_all:Thing", "things"),
        ]
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points.select(group=group))
    registry: Registry[object] = Registry("things", "thing", {"own": "eligo.index.scan:Scan"})
    with caplog.at_level(logging.WARNING, "eligo"):
        assert registry.get("foreign") is Foreign
    assert "the thing 'broken' of nowhere.at_all:Thing cannot be used: No module named 'nowhere'" in caplog.text
    assert list(registry.all()) == ["foreign", "own"]
    assert registry.get("own").__name__ == "Scan"
    with pytest.raises(
        OptionError, match=r"unknown thing 'foregin'; did you mean 'foreign'\? \(there are: foreign, own\)"
    ):
        registry.get("foregin")
