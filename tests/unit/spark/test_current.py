"""A stream never goes back to an older version, whatever a machine sees of the file CURRENT."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eligo.errors import SnapshotError
from eligo.spark import current
from eligo.store import versions
from eligo.store.versions import current_line


class Machine:
    """One that shows versions of CURRENT as a cache would, and the task that runs on it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.task, self.slept = str(folder), ("query", 0), 0.0
        self.shown: list[int] = []
        monkeypatch.setattr(current, "_seen", OrderedDict())
        monkeypatch.setattr(current, "_micro_batch", lambda: self.task)
        # The module's own name alone: other threads of this process sleep as well, and look at the clock.
        clock = SimpleNamespace(sleep=self._sleep, monotonic=lambda: self.slept)
        monkeypatch.setattr(versions, "time", clock)

    def show(self, *versions: int) -> None:
        self.shown = list(versions)
        self._next()

    def read(self, batch: int, *, least: int = 0, query: str = "query") -> int:
        self.task = (query, batch)
        return current.read(self.folder, least, current.PATIENCE)

    def admit(self, batch: int, version: int, *, least: int = 0) -> None:
        self.task = ("query", batch)
        current.admit(self.folder, version, least)

    def _next(self) -> None:
        if self.shown:
            (Path(self.folder) / "CURRENT").write_text(current_line(self.shown.pop(0)) + "\n")

    def _sleep(self, seconds: float) -> None:
        self.slept += seconds
        self._next()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_an_old_file_is_waited_out(machine: Machine) -> None:
    machine.show(7)
    assert machine.read(0) == 7
    machine.show(6, 6, 7)
    assert machine.read(1) == 7
    assert machine.slept
    machine.show(6)
    with pytest.raises(SnapshotError, match=r"version 6 .* used version 7"):
        machine.read(2)
    assert machine.slept < 2 * current.PATIENCE + 1
    assert machine.read(2, query="another") == 6


def test_no_older_version_than_the_driver_saw(machine: Machine) -> None:
    machine.show(3, 4)
    assert machine.read(0, least=4) == 4
    with pytest.raises(SnapshotError, match="version 3"):
        machine.admit(0, 3, least=4)


def test_events_with_an_older_version_are_refused(machine: Machine) -> None:
    machine.admit(0, 7)
    machine.admit(1, 8)
    with pytest.raises(SnapshotError, match=r"version 7 .* used version 8"):
        machine.admit(2, 7)
    machine.admit(2, 8)


def test_within_a_micro_batch_two_matches_may_read_two_versions(machine: Machine) -> None:
    machine.admit(4, 8)
    machine.admit(4, 7)  # another match of the same query, or the batch repeated: nothing of the attempt is visible
    with pytest.raises(SnapshotError):
        machine.admit(5, 7)


def test_outside_of_a_stream_nothing_is_remembered(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "_micro_batch", lambda: None)
    for version in (7, 6):
        current.admit(machine.folder, version, 0)
    assert not current._seen


def test_a_process_remembers_so_many_queries(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(current, "_QUERIES", 2)
    machine.show(5)
    found: list[Any] = [machine.read(0, query=name) for name in "abc"]
    assert found == [5, 5, 5]
    assert [query for query, _ in current._seen] == ["b", "c"]
