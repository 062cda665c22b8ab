"""One cluster for all tests of this folder; each test finds two living workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.cluster import Cluster
from eligo.spark import find_java


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'eligo[spark]'")
    if not Path("/proc/self/environ").exists():
        pytest.skip("the processes of a cluster are found by /proc, and there is none")
    java = find_java()
    if java is None:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), java.home)
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(standing: Cluster) -> Cluster:
    standing.mend()
    return standing
