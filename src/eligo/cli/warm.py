"""`eligo warm`: fill the kernel cache."""

from __future__ import annotations

import time
from typing import Annotated

import typer


def warm_cache(
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, help="Processes at once; by default one for each processor.")
    ] = None,
) -> None:
    """Compile the kernels of every index and evaluator once, so that later processes only load them.

    Run it when an image is built, and before many processes start at once.
    """
    from eligo.warm import warm

    started = time.perf_counter()
    warm(processes)
    print(f"kernel cache filled in {time.perf_counter() - started:.1f} s")
