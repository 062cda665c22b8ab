"""`eligo warm`: compile every kernel once."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer


def warm_cache(
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, help="Processes at once; by default one for each processor.")
    ] = None,
) -> None:
    """Compile all kernels once; later processes only load them.

    Run it when an image is built, and before many processes start at once. Kernels that came with the package, or are
    in the cache, are not compiled again.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from eligo.cli.files import InputError
    from eligo.cli.terminal import plural
    from eligo.kernels.store import cache_folder
    from eligo.warm import Step, tasks, warm

    started = time.perf_counter()
    compiled = 0
    columns = TextColumn("compiling kernels"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.description}"), transient=True) as bar:
        shown = bar.add_task("", total=len(tasks()))

        def said(step: Step) -> None:
            nonlocal compiled
            if step.kernel:
                compiled += 1
                bar.update(shown, description=f"{compiled} compiled, {step.task.split()[0]}: {step.kernel}")
            else:
                bar.advance(shown)

        needed = warm(processes, said)
    folder = cache_folder()
    if compiled and not (folder is not None and os.path.isdir(folder) and os.access(folder, os.W_OK)):
        raise InputError(
            f"{plural(compiled, 'kernel')} compiled, but not kept in {folder or 'a home, for there is none'}: let "
            "NUMBA_CACHE_DIR name a folder that can be written to"
        )
    print(f"{len(needed)} kernels at hand, {compiled} of them compiled in {time.perf_counter() - started:.1f} s")
