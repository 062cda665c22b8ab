"""What users see while kernels are compiled: one line on a terminal, and the log."""

from __future__ import annotations

import atexit
import logging
import sys
import time
from collections.abc import Callable

log = logging.getLogger("eligo")

_WAIT = 0.5  # seconds of compiling before the line is shown


class Progress:
    """The kernels that this process compiles, and how long that takes."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.seconds = 0.0
        self.told: Callable[[str, float], None] = self._tell
        self._shown = 0
        self._began = 0.0

    def begin(self) -> None:
        self._began = time.perf_counter()

    def end(self, kernel: str) -> None:
        taken = time.perf_counter() - self._began
        self.names.append(kernel)
        self.seconds += taken
        log.info("compiled %s for this machine, once, in %.1f s", kernel, taken)
        self.told(kernel, taken)

    def _tell(self, kernel: str, seconds: float) -> None:
        """Writes a line over the last one, if standard error is a terminal. It has the number and the total time."""
        if self.seconds < _WAIT or sys.stderr is None or not sys.stderr.isatty():
            return
        line = f"eligo: compiling for this machine, once: {len(self.names)} kernels in {self.seconds:.0f} s"
        print(f"\r{line:<{self._shown}}", end="", file=sys.stderr, flush=True)
        if not self._shown:
            atexit.register(print, file=sys.stderr)
        self._shown = len(line)
