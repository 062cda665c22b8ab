"""Memory that grows in place: address space is set aside at once, and the system gives pages as they are touched.

Whoever holds such an array goes on seeing it while it fills up; nothing is copied, so nothing has to wait for a copy.
Where the system does not lend address space, or too little of it, arrays are copied into larger ones instead.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

_AHEAD = 1 << 30  # items that an array has room for, at least
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


def reserved(dtype: Any, least: int) -> NDArray[Any]:
    """An array of zeros with room for many more items than the least number."""
    kind = np.dtype(dtype)
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        memory = mmap.mmap(-1, max(_AHEAD, 2 * least) * kind.itemsize, flags=flags)
    except (OSError, ValueError, AttributeError):
        return np.zeros(max(2 * least, 1024), kind)
    return np.frombuffer(memory, kind)


def with_room(array: NDArray[Any], least: int) -> NDArray[Any]:
    """The same array, or a larger copy where it cannot hold so many items."""
    if least <= len(array):
        return array
    larger = reserved(array.dtype, least)
    larger[: len(array)] = array
    return larger
