"""Lets every test import `strategies`, whichever directory it lies in, and says which tests go to one process.

    "spark"     the tests with the marker, one after another, on the session below
    "cluster"   those that start JVMs of their own: tests/cluster, and what names the group itself
    the others  those of a file together, or those of one index, or one theme, where a file has them for all: what is made
                once for a file is then made once, and a process loads the kernels of some indexes, not of all

The first of these take the longest, and so are first.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = str(Path(__file__).parent / "tests")
if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    first = {"spark": 0, "cluster": 1}
    ranks = {}
    for item in items:
        marker = item.get_closest_marker("xdist_group")
        group = marker.args[0] if marker else _group(item)
        if not marker:
            item.add_marker(pytest.mark.xdist_group(group))
        ranks[item] = first.get(group, len(first))
    items.sort(key=ranks.__getitem__)


def _group(item: pytest.Item) -> str:
    if item.get_closest_marker("spark"):
        return "spark"
    given = getattr(item, "callspec", None) and item.callspec.params  # type: ignore[attr-defined]
    part = (given or {}).get("index", (given or {}).get("theme"))
    return f"{item.path.parent.name}/{item.path.stem}" + (f"/{part}" if isinstance(part, str) else "")


def pytest_collection_finish() -> None:
    """Leaves all that is there before the first test out of garbage collection: modules, and thousands of tests."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """One session for the whole run: starting it takes longer than all the tests of a file that use it."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'eligo[spark]'")
    from eligo.spark import find_java, local_session

    if find_java() is None:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    settings = {
        "spark.driver.memory": "1g",
        # Plans that adapt while they run cost more than they save here; tests of clusters and spark-submit have them.
        "spark.sql.adaptive.enabled": "false",
        # Spark's own daemon, with all that its workers would else import and load one by one: each test that makes a
        # task fail ends a worker. Clusters, spark-submit and everybody else have the one of Spark.
        "spark.python.daemon.module": "ready_daemon",
        # For the server that test_connect.py starts in this JVM: a port that is free.
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    path = [str(Path(HERE) / "spark" / "daemon"), *filter(None, [os.environ.get("PYTHONPATH")])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path))  # for the JVM, which starts the daemon
        spark = local_session("eligo tests", cores=2, **settings)
    yield spark
    spark.stop()
