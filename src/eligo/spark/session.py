"""A local Spark session for demos and tests. On a cluster, use the session that is there."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from eligo.errors import EligoError
from eligo.spark.java import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_session(app_name: str = "eligo", cores: int | None = None, **conf: str) -> SparkSession:
    """A session in this process on `cores` cores (all of them by default); `conf` overrides any setting below."""
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise EligoError("Spark is not installed: pip install 'eligo[spark]'") from error
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
    builder = SparkSession.builder.master(f"local[{cores}]").appName(app_name)
    for key, value in (settings | conf).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
