"""A worker's memory goes back to the system when it is not needed.

A Python worker of Spark waits for its next task for as long as the application lives, one for each core. What it has
taken once, Arrow and the C library would keep for the next time: buffers of batches, and what loading kernels took.

    keep_little    large buffers are taken from the system each time, whatever was freed before (glibc raises the size
                   from which it does so to that of the largest buffer, up to 32 MiB, and then keeps them)
    give_back      what is kept and free is given back; some milliseconds, so once a task
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

import pyarrow as pa

_MMAP_THRESHOLD: Final = -3  # M_MMAP_THRESHOLD of malloc.h
_LARGE: Final = 1 << 20


@cache
def _library() -> Any:
    """The C library, where it is glibc; others have nothing to set."""
    try:
        found = ctypes.CDLL(None)
        return found if hasattr(found, "malloc_trim") and hasattr(found, "mallopt") else None
    except (OSError, TypeError):
        return None


@cache
def keep_little() -> None:
    """Once in a process."""
    library = _library()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, _LARGE)


def give_back() -> None:
    """What is free in this process."""
    pa.default_memory_pool().release_unused()
    library = _library()
    if library is not None:
        library.malloc_trim(0)
