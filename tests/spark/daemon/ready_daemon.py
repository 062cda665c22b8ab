"""Spark's daemon of Python workers, ready for work: modules are imported and kernels loaded before it forks.

A worker of Spark's own daemon begins with nothing, and needs some seconds for that. The daemon forks, so there must be
no second thread: those that NumPy and Arrow would start are switched off. What is there before it forks, no worker's
garbage collector looks at: Spark calls it after every task, and that took longer than most tasks.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"

from eligo import warm


def get_ready() -> None:
    for module in ("pyspark.worker", "eligo.spark.changes", "eligo.spark.tasks", "eligo.spark.worker"):
        import_module(module)
    for task in ("auto/interval", "pieces"):
        warm._run(task)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    from pyspark import daemon

    if sys.argv[1:] == ["pyspark.worker"]:  # others plan queries and sources, and need none of this
        get_ready()
    daemon.manager()
