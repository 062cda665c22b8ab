"""Memory of the processes of a Spark, watched while it works.

    this process ─ JVM ─ pyspark daemon ─ workers       the JVM and all below it are what a cluster calls an executor

Of pages that several processes have, each counts its share (PSS), so that the sum is what the machine holds for them:
rules that two workers map count once. What one process has for itself is what it has written (Private_Dirty): pages of
a file that only it has mapped now are not its own, as the system may drop them and another process may map them too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Peak:
    """The most that was seen."""

    def __init__(self) -> None:
        self.whole = 0  # bytes of all processes together
        self.private = 0  # bytes that one worker had for itself

    def look(self) -> None:
        whole = 0
        for process in descendants(os.getpid()):
            with suppress(OSError):
                found = rollup(process)
                whole += found["Pss"]
                if is_worker(process):
                    self.private = max(self.private, found["Private_Dirty"])
        self.whole = max(self.whole, whole)


@contextmanager
def watched(every: float = 0.25) -> Iterator[Peak]:
    """Look every so many seconds while the block runs."""
    peak, done = Peak(), threading.Event()

    def watch() -> None:
        while not done.wait(every):
            peak.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
        peak.look()


def rollup(process: int | str) -> dict[str, int]:
    """Bytes of a process by kind, as Linux counts them."""
    with open(f"/proc/{process}/smaps_rollup") as file:
        lines = [line.split() for line in file][1:]
    return {line[0].rstrip(":"): int(line[1]) * 1024 for line in lines}


def descendants(root: int) -> list[int]:
    """The processes below one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found, waiting = list[int](), [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def is_worker(process: int) -> bool:
    """Whether it is a Python worker of Spark, or the daemon that they are forked from."""
    with open(f"/proc/{process}/cmdline", "rb") as file:
        return b"pyspark.daemon" in file.read()


def library_bytes() -> int:
    """What importing NumPy, PyArrow and Numba costs a process of its own."""
    code = (
        "import numpy, pyarrow, pyarrow.compute, numba\n"
        "print(*(int(l.split()[1]) * 1024 for l in open('/proc/self/smaps_rollup') if l.startswith('Private_Dirty:')))"
    )
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
