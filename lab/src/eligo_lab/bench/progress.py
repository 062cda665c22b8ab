"""What a person sees while measuring: a bar on a terminal, a line for each stage elsewhere; all of it on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any


class Progress:
    """Stages with steps. `stage` names what begins and how many steps it has; `step` says that one is done."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._started = time.perf_counter()

    def __enter__(self) -> Progress:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def say(self, line: str) -> None:
        """A line that stays."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
        else:
            print(f"[{time.perf_counter() - self._started:7.1f} s] {line}", file=sys.stderr, flush=True)

    def stage(self, what: str, steps: int = 1) -> None:
        """What is done from now on, and in how many steps."""
        if self._bar is None:
            self.say(what)
            return
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(what, total=steps)

    def step(self, done: int = 1) -> None:
        """So many more steps are done."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, done)
