"""A batch match loses a worker and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.cluster import Cluster
from cluster.flight import described, disturb
from cluster.work import answer, local_answer, save_rules, write_events

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("cluster")]


def test_a_worker_dies_in_the_middle_of_a_match(cluster: Cluster, tmp_path: Path) -> None:
    matcher = save_rules(tmp_path / "rules.eligo", 500)
    events = write_events(tmp_path / "events", files=10, rows=1000)
    cluster.driver().run("match", tmp_path, target="calm", pause=0)
    calm = answer(tmp_path / "calm")
    assert len(calm) > 5_000
    assert calm == local_answer(matcher, events)

    disturbed = disturb(cluster, "match", tmp_path, described("match disturbed"), pause=4)
    assert answer(disturbed) == calm
