"""A rule set that moves on under a stream, and what the stream's rows tell of it.

    version n    the same rules, and the rule "v<n>", which every event satisfies; "v<n-1>" is gone

So each event says twice which version it met: by `rules_version`, and by the one rule v<n> among its matches. The two
differ where a version was read in parts.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

import eligo
from cluster.work import rules
from unit.store.making import Maker

EVERY = 0.5  # seconds


@contextmanager
def moving(path: Path, count: int) -> Iterator[None]:
    """Publish a version of `count` rules, and another one again and again until the end."""
    maker = Maker(path, eligo.Matcher("propagation"))
    maker.matcher.add_many(rules(count))
    end = threading.Event()

    def step(version: int) -> None:
        if version > 1:
            maker.matcher.remove(f"v{version - 1}")
        maker.matcher.add(f"v{version}", "x >= 0")
        assert maker.publish().version == version

    def move() -> None:
        version = 2
        while not end.wait(EVERY):
            step(version)
            version += 1

    step(1)
    with ThreadPoolExecutor(1) as thread:
        published = thread.submit(move)
        try:
            yield
        finally:
            end.set()
        published.result()  # fails here if publishing did


def versions_by_batch(target: Path) -> list[int]:
    """The version of each micro-batch; fails where an event met two, or a batch did, or one went back."""
    table = pq.read_table(f"{target}.parquet", columns=["id", "rule", "rules_version"])
    batch_of = _batches(Path(f"{target}-checkpoint"))
    told: dict[int, list[int]] = defaultdict(list)
    found: dict[int, set[int]] = defaultdict(set)
    for event, rule, version in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found[batch_of[event]].add(version)
        if rule.startswith("v"):
            told[event].append(int(rule[1:]))
            assert told[event] == [version], f"event {event} of version {version} met v{told[event]}"
    assert told.keys() == batch_of.keys()
    assert all(len(met) == 1 for met in found.values()), f"batches that met two versions: {found}"
    versions = [found[batch].pop() for batch in sorted(found)]
    assert versions == sorted(versions)
    return versions


def _batches(checkpoint: Path) -> dict[int, int]:
    """Event → micro-batch, by the source's own record of the files that it gave."""
    batch_of = {}
    for log in (checkpoint / "sources" / "0").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            given = json.loads(line)
            for event in pq.read_table(given["path"].removeprefix("file://"), columns=["id"])["id"].to_pylist():
                batch_of[event] = given["batchId"]
    return batch_of
