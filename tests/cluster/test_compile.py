"""A compilation loses a worker, while rules are read or while shards are built; the version is the same, file by file."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

import eligo
from cluster.cluster import Cluster
from cluster.flight import described, disturb
from cluster.work import events, local_answer, write_rules
from eligo.store.gc import sweep
from eligo.store.versions import Content, read_version

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

# Numbers of tasks that no other stage of a compilation has: they tell its stages apart.
UNITS, SHARDS = 9, 21


@pytest.fixture(scope="module")
def calm(standing: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a compilation that nobody disturbed: the table of rules, and `calm`."""
    folder = tmp_path_factory.mktemp("calm")
    table = write_rules(folder / "rules", files=3, rows=9000)
    standing.mend()
    standing.driver().run("compile", folder, target="calm", units=UNITS, shards=SHARDS)
    matcher = eligo.Matcher()
    refused = matcher.add_many(sorted(table, key=lambda row: (row[0] or "", row[1] or "")), on_error="collect")
    assert len(refused) == len(rejects(folder / "calm")) > 80
    some = events(0, 200)
    assert local_answer(eligo.open(folder / "calm"), some) == local_answer(matcher, some)
    return folder


@pytest.mark.parametrize(
    "tasks", [pytest.param(UNITS, id="reading"), pytest.param(SHARDS, id="shards", marks=pytest.mark.slow)]
)
def test_a_worker_dies_in_the_middle_of_a_compilation(cluster: Cluster, calm: Path, tmp_path: Path, tasks: int) -> None:
    (tmp_path / "rules").symlink_to(calm / "rules")
    where = described("compile disturbed", tasks=tasks)
    target = disturb(cluster, "compile", tmp_path, where, units=UNITS, shards=SHARDS)
    assert what_counts(target) == what_counts(calm / "calm")
    assert rejects(target) == rejects(calm / "calm")

    sweep(target, grace=0)
    assert {file.name for file in (target / "data").iterdir()} == set(content(target).files())
    assert not list((target / "staging").iterdir())


def content(rule_set: Path) -> Content:
    return read_version(rule_set, 1)


def what_counts(rule_set: Path) -> Content:
    """A manifest without the names and times of the run that made it: hashes of all files, counts, attributes."""
    return msgspec.structs.replace(content(rule_set), made="", job="", lineage="")


def rejects(target: Path) -> list[tuple[str, ...]]:
    table = pq.read_table(f"{target}-rejects.parquet")
    return sorted(tuple(map(str, row.values())) for row in table.to_pylist())
