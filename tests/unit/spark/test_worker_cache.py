"""What a process has open, what a driver knows of a rule set, and which columns a stream misses."""

from __future__ import annotations

import gc
import json
import re
import time
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import eligo
from eligo.errors import SnapshotError
from eligo.spark import worker_cache
from eligo.spark.worker_cache import Source, facts, opened
from eligo.store import opening, versions
from eligo.store.versions import current_line, hold
from unit.store.making import Maker


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    """A rule set of three versions, each with a delta more."""
    monkeypatch.setattr(worker_cache, "_matchers", OrderedDict())
    maker = Maker(tmp_path / "rules")
    maker.matcher.add_many((f"r{i}", f"x = {i} and city = 'a city called {i}'") for i in range(40))
    maker.publish()
    for name in ("user.age", "labels.team"):
        maker.matcher.add(name, f"{name} > 1 and other = 'never'")
        maker.publish()
    return maker


def test_strings_and_deltas_count(made: Maker) -> None:
    found = facts(str(made.path), None, False)
    content = made.publish()
    data = sum((made.path / "data" / part.segment.file).stat().st_size for part in content.deltas)
    data += (made.path / "data" / content.strings.file).stat().st_size
    assert len(content.deltas) == 2
    assert found.shared_bytes >= data
    assert found.bytes == sum(found.shard_bytes) + found.shared_bytes


def test_a_process_has_one_shard_of_a_pass_open(made: Maker) -> None:
    source = Source(str(made.path), version=1, shards=(0,))
    first = opened(source, 1, False)
    assert opened(source, 1, False) is first
    opened(replace(source, shards=()), 1, False)  # another pass
    assert [key[0].shards for key in worker_cache._matchers] == [()]
    opened(replace(source, shards=None), 1, False)
    assert len(worker_cache._matchers) == 2


def test_no_more_is_kept_open_than_memory_allows(made: Maker) -> None:
    """Versions 2 and 3 have the same strings, and 3 all the segments of 2, so both together are as large as 3 is."""
    path = str(made.path)
    whole = facts(path, 3, False).bytes
    for memory, kept in ((0, [1, 2, 3]), (4 * whole, [1, 2, 3]), (whole, [2, 3]), (whole - 1, [3]), (1, [3])):
        worker_cache._matchers.clear()
        for version in (1, 2, 3):
            opened(Source(path, memory=memory), version, False)
        assert [key[1] for key in worker_cache._matchers] == kept


def test_a_machine_that_sees_an_old_file_waits(made: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of its events is published, only CURRENT is not new here yet."""
    path, slept = made.path, list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            (path / "CURRENT").write_text(current_line(3) + "\n")

    # The module's own name alone: other threads of this process, such as those of a Spark session, sleep as well.
    monkeypatch.setattr(versions, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    (path / "CURRENT").write_text(current_line(2) + "\n")
    assert opened(Source(str(path)), 3, False).engine.rules.count == 42
    assert len(slept) == 3
    with pytest.raises(SnapshotError, match="no version 4, the newest is 3"):
        hold(path, 4)
    assert len(slept) == 3


def test_a_shard_is_gone_before_the_next_is_opened(made: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    mapped: list[int] = []

    def open_held(*arguments: Any, **options: Any) -> Any:
        gc.collect()
        mapped.append(sum(key[0] == str(made.path) for key in opening._segments))
        return opening.open_held(*arguments, **options)

    monkeypatch.setattr(worker_cache, "open_held", open_held)
    source = Source(str(made.path), version=1)
    for shards in ((0,), (), (0,)):
        opened(replace(source, shards=shards), 1, False)
    assert mapped == [0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (
            {"type": "struct", "fields": [{"name": "age", "type": "integer", "nullable": True, "metadata": {}}]},
            "or once",
        ),
        ({"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": True}, "does not help"),
        ("variant", "does not help"),
    ],
    ids=["struct", "map", "variant"],
)
def test_rules_on_an_attribute_that_is_not_sent_are_set_aside_with_the_remedy(
    kind: object, remedy: str, made: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pyspark")
    fields = [{"name": "user", "type": kind, "nullable": True, "metadata": {}}]
    schema = json.dumps({"type": "struct", "fields": fields})
    source = Source(str(made.path), schema=schema, sent=frozenset({"x"}))
    assert opened(source, 1, False).aside.rules == 0
    found = opened(source, 2, False)
    assert re.search(f"1 of .*'user.age' is in the events.*start it again.*{remedy}", caplog.text)
    assert (found.aside.rules, "user.age" in found.asked) == (1, False)
    matcher = eligo.Matcher.of(found.engine)
    assert matcher.match({"user.age": 50, "x": 1}) == matcher.match({"x": 1})
