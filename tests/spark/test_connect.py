"""Spark Connect: a client without a SparkContext, whose plans travel to a server."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

STEPS = ["compile", "match", "match_files", "stream", "register", "errors", "update"]


@pytest.fixture(scope="module")
def server(session: Any) -> Iterator[str]:
    """A server in the JVM that is running anyway."""
    jvm, context = session.sparkContext._jvm, session.sparkContext._jsc.sc()
    service = getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
    service = getattr(service, "MODULE$")
    service.start(context)
    yield f"sc://127.0.0.1:{service.localPort()}"
    nothing = jvm.scala.Option.empty()
    service.stop(nothing, nothing)


def test_everything_on_connect(server: str, tmp_path: Path) -> None:
    for module in ("grpc", "grpc_status", "google.rpc", "zstandard"):
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            pytest.skip(f"Spark Connect needs {module}: pip install 'pyspark[connect]'")
    program = Path(__file__).with_name("connect_program.py")
    # Nothing that makes the client start a Java of its own is left to it.
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_", "JAVA_"))}
    ran = subprocess.run(
        [sys.executable, str(program), server, str(tmp_path)],
        env={**kept, "PATH": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.stdout.split() == STEPS, ran.stderr[-4000:]
    assert ran.returncode == 0, ran.stderr[-4000:]
