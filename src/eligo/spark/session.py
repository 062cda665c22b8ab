"""Spark on this machine: the Java that it runs on, or what to install, and a session for demos and tests.

On a cluster, use the session that is there.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from eligo.errors import EligoError
from eligo.spark.arguments import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINIMUM: Final = 17  # Spark 4 starts on nothing older

# Where installers put a Java without adding it to PATH (Homebrew's are "keg-only", Debian keeps several side by side).
_USUAL_PLACES: Final = (
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/usr/lib/jvm/*",
)

_ADVICE: Final = """\
  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
  Fedora, RHEL     sudo dnf install java-17-openjdk-headless
  macOS            brew install openjdk@17
  Windows          winget install EclipseAdoptium.Temurin.17.JRE
  anywhere         set JAVA_HOME to a Java that is installed elsewhere"""


class Java(NamedTuple):
    """An installed Java: its home folder and its major version."""

    home: Path
    version: int


def find_java(minimum: int = MINIMUM) -> Java | None:
    """The first Java of at least version `minimum`: JAVA_HOME, then PATH, then the usual places."""
    return next((java for java in _installed() if java.version >= minimum), None)


def require_java(minimum: int = MINIMUM) -> Java:
    """The same, or an error that says what to install."""
    java = find_java(minimum)
    if java is not None:
        return java
    older = next(_installed(), None)
    found = f"found only Java {older.version} in {older.home}" if older else "found none on this machine"
    raise EligoError(f"Spark needs Java {minimum} or newer; {found}. Install one:\n{_ADVICE}")


def _installed() -> Iterator[Java]:
    java = shutil.which("java")
    # /usr/bin/java is a chain of links into the real installation, <home>/bin/java.
    homes = [os.environ.get("JAVA_HOME"), str(Path(java).resolve().parent.parent) if java else None]
    homes += (place for pattern in _USUAL_PLACES for place in sorted(glob.glob(pattern)))
    for home in homes:
        version = _version(Path(home)) if home else None
        if home and version:
            yield Java(Path(home), version)


def _version(home: Path) -> int | None:
    """The major version, or None where no Java runs (macOS has a stub that only asks to install one)."""
    java = home / "bin" / ("java.exe" if os.name == "nt" else "java")
    try:
        run = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)  # up to Java 8 the name was 1.8
    return int(found[1]) if found else None


def local_session(app_name: str = "eligo", cores: int | None = None, **conf: str) -> SparkSession:
    """A session in this process on `cores` cores (all of them by default); `conf` overrides any setting below."""
    builder = require_spark().SparkSession.builder
    java = require_java()
    # Spark starts $JAVA_HOME/bin/java whatever is on PATH, so a wrong or missing JAVA_HOME is set right.
    os.environ["JAVA_HOME"] = str(java.home)
    # Workers otherwise run PATH's python3, where neither eligo nor this Python version need exist.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Stay on this machine; a laptop's own host name often resolves to nothing, or to a network that is gone.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

    cores = cores or os.cpu_count() or 1
    settings = {
        # One process plays driver and executor: this is all the JVM memory there is.
        "spark.driver.memory": "2g",
        # A run of a minute ends before the optimising compiler has paid for itself: about a quarter less start-up.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        # No web server and no progress bar written over the program's own output.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "WARN",
        # 200 tasks for a small shuffle cost more than the shuffle.
        "spark.sql.shuffle.partitions": str(cores),
        # Timestamps print, and are read from text, the same on every machine.
        "spark.sql.session.timeZone": "UTC",
        # toPandas and createDataFrame by Arrow instead of pickled rows.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # By default Spark measures a batch after each of its rows, and for a column of arrays, many of them null, that
        # takes as many steps as there are rows so far. Batches are bounded by their 10,000 rows anyway.
        "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647b",
        # Spark takes the columns that Python gives back by position: check names and types of every batch.
        "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    }
    builder = builder.master(f"local[{cores}]").appName(app_name)
    for key, value in (settings | conf).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()  # type: ignore[no-any-return]
