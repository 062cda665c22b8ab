"""Processes that a test starts, with all that they start themselves, to be stopped for a moment or killed as one.

    start("worker-2", …)            environment: ELIGO_TEST_PROCESS = <token>-worker-2
      └── worker JVM
            └── executor JVM        inherits the mark
                  └── pyspark.daemon ── Python workers        each inherits it too

A family is all processes that carry its mark. Parents would tell the same until one dies: its children then belong to
nobody, while the mark stays. The token is drawn for each family, so no process of anybody else is ever signalled.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_MARK = "ELIGO_TEST_PROCESS"


class Family:
    """One started process and its descendants, with a log of what it prints."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.log = folder / f"{name}.log"
        self._mark = f"{_MARK}={uuid.uuid4().hex}-{name}"
        mark, _, value = self._mark.partition("=")
        # Where the test's own process dies without a word, the kernel ends what it started.
        tied = [setpriv, "--pdeathsig", "KILL", "--"] if (setpriv := shutil.which("setpriv")) else []
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*tied, *command],
                cwd=folder,
                env={**os.environ, **environment, mark: value},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def members(self) -> list[int]:
        """The ids of all living processes of the family."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._alive(pid)]

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """All of them stand still, until they go on or were killed meanwhile."""
        stopped: set[int] = set()
        try:
            while new := set(self.members()) - stopped:  # a stopped process starts no other, so this ends
                self._signal(new, signal.SIGSTOP)
                stopped |= new
            yield
        finally:
            self._signal(self.members(), signal.SIGCONT)

    def kill(self) -> None:
        """End all of them, at once and without a chance to clean up; return when they are gone."""

        def gone() -> bool:
            left = self.members()
            self._signal(left, signal.SIGKILL)
            self.process.poll()  # or it would stay as a zombie
            return not left

        wait_for(gone, 30, f"the end of {self.name}", every=0.02)
        self.process.wait(30)
        if self.process.stdin is not None:
            self.process.stdin.close()

    def tail(self, characters: int = 4000) -> str:
        return f"\n--- the end of {self.log}\n{self.log.read_text(errors='replace')[-characters:]}"

    def _alive(self, pid: int) -> bool:
        try:
            if self._mark.encode() not in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                return False
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # ended meanwhile, or another user's
            return False
        return state not in "ZX"

    def _signal(self, pids: Iterable[int], number: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def wait_for(look: Callable[[], T | None], seconds: float, what: str, *, every: float = 0.1) -> T:
    """Look again and again until there is something; an error that says what was missing when time is over."""
    end = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(every)
    return found
