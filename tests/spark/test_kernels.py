"""Kernels that came with the package: workers compile nothing, and need no place to write to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import eligo
from eligo.kernels import store
from eligo.kernels.archive import write_archive
from eligo.kernels.finding import archive_name
from eligo.warm import warm

pytestmark = pytest.mark.xdist_group("cluster")  # it starts a JVM of its own

PROGRAM = """
import sys
from eligo import spark

session = spark.local_session("kernels", cores=1)
frame = session.createDataFrame([(1, 3), (1, 1), (2, 3)], "a long, b long")
found = spark.match(frame, sys.argv[1], keep=["a"]).collect()

def compiled(batches):
    import pyarrow as pa
    import eligo
    from eligo.kernels.finding import progress, used
    for _ in batches:
        pass
    matcher = eligo.open(sys.argv[1])
    assert matcher.match({"a": 1, "b": 3}) == ["first"]
    yield pa.RecordBatch.from_pydict({"compiled": [" ".join(progress.names)], "used": [len(used)], "from": [eligo.__file__]})

row = session.range(1).mapInArrow(compiled, "compiled string, used long, `from` string").collect()[0]
print(sorted(map(tuple, found)), [row.compiled], row.used > 0, row["from"])
session.stop()
"""


def test_workers_with_an_empty_home_compile_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'eligo[spark]'")
    package = Path(shutil.copytree(Path(eligo.__file__).parent, tmp_path / "installed" / "eligo"))
    kernels = {}
    for key in warm(1, only=["propagation/interval"]):
        entry = store.find(key, archive_name())
        assert entry is not None
        kernels[key] = store.packed(entry)
    write_archive(package / "kernels" / f"{archive_name()}.kernels", kernels)
    rules = tmp_path / "rules.eligo"
    matcher = eligo.Matcher()
    matcher.add("first", "a = 1 and b > 2")
    matcher.save(rules)
    home = tmp_path / "home"
    home.write_text("no folder, so nothing can be written here")
    given = {name: value for name, value in os.environ.items() if name not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
    program = PROGRAM.replace("sys.argv[1]", repr(str(rules)))
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**given, "HOME": str(home), "PYTHONPATH": str(package.parent), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == [f"[(1, 'first')] [''] True {package / '__init__.py'}"], done.stderr[-3000:]
