"""Memory that grows in place: address space is set aside at once, and the system gives pages as they are touched.

Whoever holds such an array goes on seeing it while it fills up; nothing is copied, so nothing has to wait for a copy.
Where the system does not lend address space, or too little of it, arrays are copied into larger ones instead.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
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


def release(array: NDArray[Any], first: int) -> None:
    """Give the memory of the items from `first` on back to the system, where it lent it; they are zeros then."""
    memory = array.base
    if isinstance(memory, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        begin = -(-first * array.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
        if begin < len(memory):
            memory.madvise(mmap.MADV_DONTNEED, begin, len(memory) - begin)


@intrinsic
def prefetch(context, array, index):  # type: ignore[no-untyped-def]
    """Have the cache line of array[index] fetched while other work is done; the index need not be within the array."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.PointerType(ir.IntType(8)))
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, word(0), word(3), word(1)])  # to be read, and again; data
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate
