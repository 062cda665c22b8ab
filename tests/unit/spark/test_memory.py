"""What a worker has taken goes back to the system."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np, pyarrow as pa
from eligo_lab.bench.memory import rollup
from eligo.spark.memory import give_back, keep_little

def own():
    return rollup("self")["Private_Dirty"] >> 20

keep_little()
before = own()
for size in (1, 2, 4, 8, 16, 30) * 3:  # in glibc's own way the last ones would stay
    some = np.ones(size << 17)
del some
kept = [b"x" * (100_000 + n) for n in range(600)]
last = bytes(100_000)  # at the end of the heap, so that nothing before it goes by itself
del kept
assert own() - before > 50
table = pa.nulls(1 << 20, pa.float64())
del table
give_back()
assert own() - before < 5, (before, own())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="asks Linux")
def test_buffers_go_back() -> None:
    from eligo.spark.memory import _library

    if _library() is None:
        pytest.skip("this C library has nothing to set")
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
