"""The program under spark-submit, which starts a JVM of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import EVENTS, EXPECTED, Run

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("cluster")]


def test_under_spark_submit(run: Run, rules: str, events: str) -> None:
    pytest.importorskip("pyspark")
    from eligo.spark import find_java

    java = find_java()
    if java is None:
        pytest.skip("Spark needs Java 17 or newer, and there is none")
    submit = Path(sys.executable).parent / "spark-submit"
    if not submit.exists():
        pytest.skip("PySpark has no spark-submit here")
    program = run("submit-path").text.strip()
    run("compile", rules, "-o", "r.eligo")
    settings = ["spark.ui.enabled=false", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"]
    conf = [word for setting in settings for word in ("--conf", setting)]
    command = [submit, "--master", "local[1]", *conf, program, "match", "r.eligo", events, "--engine", "spark"]
    done = subprocess.run(
        [*command, "-o", "out.ndjson"],
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "JAVA_HOME": str(java.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in Path("out.ndjson").read_text().splitlines()]
    assert [(row["event"], row["rule"]) for row in found] == EXPECTED
    assert len(EVENTS) == 4
