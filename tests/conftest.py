"""Lets every test import `strategies`, whichever directory it lies in, and keeps the tests of Spark in two processes.

Group "spark": the tests with the marker, one after another, on the session below. Group "cluster": those that start JVMs
of their own, which are tests/cluster and what names the group itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A Spark session is slow to start: of the processes that run tests, one has it."""
    for item in items:
        if item.get_closest_marker("spark") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    """One session for the whole run: starting it takes longer than all the tests of a file that use it."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'eligo[spark]'")
    from eligo.spark import find_java, local_session

    if find_java() is None:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    settings = {
        "spark.driver.memory": "1g",
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
