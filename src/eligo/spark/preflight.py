"""Before the first real job: do the workers have eligo, the same one, and do they see the folder of the rules?

What is wrong there would otherwise come back as a stack trace out of the middle of a job. The function that runs in
the workers is sent by value and imports nothing but the standard library at first, so that it also runs where eligo
is missing. It is one task a slot, which also tells how many slots there are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from eligo.arguments import local_path
from eligo.errors import EligoError, SnapshotError
from eligo.spark.jobs import REPORT_DDL, reports
from eligo.store.publish import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_workers(session: SparkSession, path: str, *, writing: Path | None = None) -> int:
    """Refuse workers that could not do the work; how many tasks Spark runs at a time, as far as it says.

    path     the folder of the rules, which every worker must see
    writing  a folder in which workers must be able to make files that the driver sees
    """
    from eligo import __version__

    nonce = uuid4().hex
    if writing is not None:
        (writing / f"driver-{nonce}").write_text(nonce)
    probe = _probe(path, str(writing) if writing is not None else "", nonce)
    try:
        found = reports(session.range(0, 4096).mapInArrow(probe, REPORT_DDL), dict[str, Any])
    except Exception as error:  # Spark's own, or that of py4j where not even a worker was there
        raise _unusable(error) from error
    for worker in found:
        _refuse(worker, path, __version__, writing, nonce)
    if writing is not None:
        for name in [f"driver-{nonce}", *(f"worker-{nonce}-{worker['task']}" for worker in found)]:
            (writing / name).unlink(missing_ok=True)
    return max(1, len(found))


def _unusable(error: Exception) -> Exception:
    """What is wrong with workers that could not even run the probe."""
    found = re.search(r"^.*(No module named|NOT_INSTALLED|VERSION_MISMATCH|Cannot run program).*$", str(error), re.M)
    if found is None:
        return error
    return EligoError(
        f"the Python of the workers cannot be used ({found[0].strip()[:300]}): it needs eligo, PySpark and PyArrow in "
        "the driver's versions; install them there, ship an environment archive, or point PYSPARK_PYTHON at a Python "
        "that has them; see docs/spark.md, Deploying"
    )


def _refuse(worker: dict[str, Any], path: str, version: str, writing: Path | None, nonce: str) -> None:
    where = f"the Python {worker['version']} of the workers ({worker['python']} on {worker['host']})"
    if worker["error"]:
        raise EligoError(
            f"{where} cannot import eligo ({worker['error']}): install it there, ship an environment archive with it, "
            "or point PYSPARK_PYTHON at a Python that has it; see docs/spark.md, Deploying"
        )
    if worker["eligo"] != version:
        raise EligoError(
            f"{where} has eligo {worker['eligo']}, the driver {version}: give both the same; see docs/spark.md, "
            "Deploying"
        )
    if not worker["sees"]:
        raise SnapshotError(
            f"{worker['host']} does not see {path!r}: a rule set needs one path that the driver and every worker "
            "reach, on a shared mount or the same machine"
        )
    if writing is not None and (worker["written"] or not (writing / f"worker-{nonce}-{worker['task']}").exists()):
        why = worker["written"] or "the driver does not see what it wrote there"
        raise SnapshotError(
            f"{worker['host']} cannot write to {path!r} ({why}): compiling needs a folder that every worker can write "
            "to and the driver can read, under one path"
        )


def _probe(path: str, writing: str, nonce: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function for the workers. It stands inside another one so that it is sent by value."""

    def probe(batches: Iterator[Any]) -> Iterator[Any]:
        import json
        import os
        import platform
        import socket
        import struct
        import sys

        import pyarrow as pa
        from pyspark import TaskContext

        rows = sum(batch.num_rows for batch in batches)
        context = TaskContext.get()
        found: dict[str, Any] = {
            "task": context.partitionId() if context is not None else 0,
            "host": socket.gethostname(),
            "python": sys.executable,
            "version": platform.python_version(),
            "eligo": "",
            "error": "",
            "written": "",
        }
        try:
            import eligo

            found["eligo"] = eligo.__version__
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
        found["sees"] = os.path.isdir(path)
        if writing:
            found["sees"] = os.path.exists(os.path.join(writing, f"driver-{nonce}"))
            try:
                with open(os.path.join(writing, f"worker-{nonce}-{found['task']}"), "w") as file:
                    file.write(nonce)
            except OSError as error:
                found["written"] = str(error)
        if rows or found["task"] == 0:
            schema = pa.schema([pa.field("report", pa.string(), nullable=False)])
            # What eligo.arrow does, which need not be there: pa.array would import pandas.
            text = json.dumps(found).encode()
            buffers = [None, pa.py_buffer(struct.pack("=2i", 0, len(text))), pa.py_buffer(text)]
            column = pa.Array.from_buffers(pa.string(), 1, buffers)
            yield pa.RecordBatch.from_arrays([column], schema=schema)

    return probe


def folder_of(path: str | os.PathLike[str]) -> str:
    """An absolute path, because a worker runs in a folder of its own; URLs other than file: are refused."""
    return os.path.abspath(local_path(path))


_checked: set[tuple[str, str, bool]] = set()


def check_once(session: SparkSession, path: str, *, writing: bool = False) -> None:
    """`check_workers`, once for an application and a path; with `writing`, whether they can write there."""
    key = (session.conf.get("spark.app.id", None) or str(id(session)), path, writing)
    if key in _checked:
        return
    if writing:
        with Staging.begin(path) as staging:
            check_workers(session, path, writing=staging.folder)
    else:
        check_workers(session, path)
    _checked.add(key)


def local_url(path: str | os.PathLike[str]) -> str:
    """A local file for Spark: its own file system may be another, and letters of patterns stand for themselves."""
    return "file://" + "".join(f"\\{letter}" if letter in "[]{}*?\\" else letter for letter in os.fspath(path))
