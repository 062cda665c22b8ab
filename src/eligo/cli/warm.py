"""`eligo warm`: fill the kernel cache."""

from __future__ import annotations

import time


def warm_cache() -> None:
    """Compile the kernels of every index and evaluator once, so that later processes only load them.

    Run it when an image is built, and before many processes start at once.
    """
    from eligo.warm import warm

    started = time.perf_counter()
    warm()
    print(f"kernel cache filled in {time.perf_counter() - started:.1f} s")
