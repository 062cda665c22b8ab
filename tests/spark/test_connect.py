"""Spark Connect: a client without a SparkContext, whose plans travel to a server."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eligo.spark import find_java

pytestmark = pytest.mark.spark

STEPS = ["compile", "match", "match_files", "stream", "register", "errors", "update"]


def test_everything_on_connect(tmp_path: Path) -> None:
    java = find_java()
    if java is None:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    for module in ("pyspark", "grpc", "grpc_status", "google.rpc", "zstandard"):
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            pytest.skip(f"Spark Connect needs {module}: pip install 'pyspark[connect]'")
    environment = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_TESTING": "1",  # a free port, instead of one that another server may have
    }
    program = Path(__file__).with_name("connect_program.py")
    ran = subprocess.run(
        [sys.executable, str(program), str(tmp_path)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.stdout.split() == STEPS, ran.stderr[-4000:]
    assert ran.returncode == 0, ran.stderr[-4000:]
