"""Rules on disk, and streams that are run to their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import eligo

Rules = Iterable[tuple[Any, ...]]


@pytest.fixture
def snapshot(tmp_path: Path) -> Callable[..., tuple[Any, str]]:
    """Compile rules into a snapshot: (matcher, path)."""

    def make(rules: Rules, name: str = "rules.eligo", **options: Any) -> tuple[Any, str]:
        matcher = eligo.Matcher(**options)
        matcher.add_many(rules)
        path = str(tmp_path / name)
        matcher.save(path)
        return matcher, path

    return make


@pytest.fixture
def drained(tmp_path: Path) -> Callable[..., list[list[Any]]]:
    """Run a stream until nothing is left: the rows of each micro-batch. Run again, it goes on where it was."""

    def run(frame: Any, checkpoint: str = "checkpoint") -> list[list[Any]]:
        batches: list[list[Any]] = []
        writer = frame.writeStream.foreachBatch(lambda batch, _: batches.append(batch.collect()))
        writer = writer.option("checkpointLocation", str(tmp_path / checkpoint)).trigger(availableNow=True)
        assert writer.start().awaitTermination(300)
        return batches

    return run
