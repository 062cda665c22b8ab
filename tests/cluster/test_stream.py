"""A stream loses workers and its driver while its rules move on: every match is in the sink, and once."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.cluster import Cluster
from cluster.flight import described, disturb, kill_driver, kill_driver_after_writing
from cluster.moving import moving, versions_by_batch
from cluster.work import local_answer, read_batches, save_rules, stream_answer, write_events

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]

RULES = 500
LAST = 3  # the number of the last batch
PAUSE = 20  # milliseconds every tenth row: 0.8 s a file


@pytest.fixture(scope="module")
def calm(standing: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stream that nobody disturbed, and whose rules stay as they are."""
    folder = tmp_path_factory.mktemp("calm")
    matcher = save_rules(folder / "rules.eligo", RULES)
    events = write_events(folder / "events", files=14, rows=400)  # batches of 4, 4, 4 and 2 files
    standing.mend()
    standing.driver().run("stream", folder, target="calm", sink="files", pause=0)
    assert read_batches(folder / "calm") == list(range(LAST + 1))
    assert stream_answer(folder / "calm") == local_answer(matcher, events)
    return folder


def test_a_worker_dies_in_the_middle_of_a_batch(cluster: Cluster, calm: Path, tmp_path: Path) -> None:
    (tmp_path / "events").symlink_to(calm / "events")
    with moving(tmp_path / "rules.eligo", RULES):
        where = described("stream disturbed", "batch = ")
        target = disturb(cluster, "stream", tmp_path, where, sink="files", pause=PAUSE)
    assert read_batches(target) == list(range(LAST + 1))
    assert stream_answer(target) == stream_answer(calm / "calm")
    assert len(set(versions_by_batch(target))) > 1


@pytest.mark.parametrize(
    ("sink", "kills"),
    [
        pytest.param("writer", [1, "written"], marks=pytest.mark.slow),
        pytest.param("files", [0, 1, 1], marks=pytest.mark.slow),
    ],
    ids=["writer", "files"],
)
def test_the_driver_dies_in_the_middle_of_a_batch(
    cluster: Cluster, calm: Path, tmp_path: Path, sink: str, kills: list[int | str]
) -> None:
    """`kills`: when each of the drivers dies, one after another on one checkpoint.

    A number: in the middle of this batch or of a later one. "written": when the last batch is in its place, and Spark
    has not been told. The next driver runs that batch again.
    """
    (tmp_path / "events").symlink_to(calm / "events")
    target, checkpoint = tmp_path / "disturbed", tmp_path / "disturbed-checkpoint"
    with moving(tmp_path / "rules.eligo", RULES):
        for number, kill in enumerate(kills):
            record = tmp_path / f"disturbed-{number}.json"
            driver = cluster.driver()
            driver.begin("stream", tmp_path, target=target.name, sink=sink, pause=PAUSE, linger=LAST)
            if isinstance(kill, int):
                again = range(kill_driver(driver, checkpoint, kill, record), LAST + 1)
            else:
                kill_driver_after_writing(driver, checkpoint, target / f"batch={LAST}", record)
                again = range(0)
            cluster.end_driver()
        cluster.driver().run("stream", tmp_path, target=target.name, sink=sink, pause=0)
    assert read_batches(target) == list(again)  # what was killed is matched again, and nothing else
    assert stream_answer(target) == stream_answer(calm / "calm")
    assert len(set(versions_by_batch(target))) > 1
