"""Arrays that grow: a pool begins small, and one that is full is copied into a larger one.

A copy leaves the old array as it was, so whoever reads it goes on undisturbed. A large array is a mapping of its own:
the system gives its pages as they are touched, so room to grow costs address space alone, and takes pages back at the
end of it. A small one comes from the heap: of these a process may have many thousands, and mappings are few.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from eligo.compile.compiled import Arrays

EARLY = 32  # a pool that is full but for this part of it grows before a change, while others may search
_LARGE = 1 << 20  # bytes of an array that is a mapping of its own
_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)


def zeros(dtype: Any, items: int) -> NDArray[Any]:
    """An array of zeros, of which only what is touched takes memory if it is large."""
    kind = np.dtype(dtype)
    if items * kind.itemsize < _LARGE:
        return np.zeros(items, kind)
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
        memory = mmap.mmap(-1, items * kind.itemsize, flags=flags)
    except (OSError, ValueError, AttributeError):
        return np.zeros(items, kind)  # which says how much memory there was none of
    return np.frombuffer(memory, kind)


def with_room(array: NDArray[Any], least: int, used: int) -> NDArray[Any]:
    """The same array, or a copy with room for half as many items again where it cannot hold so many.

    The first `used` items are copied; the others are taken for zeros.
    """
    if least <= len(array):
        return array
    larger = zeros(array.dtype, least + least // 2)
    larger[:used] = array[:used]
    return larger


class GrowingPools(ABC):
    """Arrays that grow, each an attribute, and the handle that kernels take."""

    kept: ClassVar[tuple[str, ...]]  # names of those that a file has
    handle: Any

    @classmethod
    def restored(cls, arrays: Arrays) -> Self:
        """What `arrays` gave, or a copy of that: nothing is computed."""
        pools = cls.__new__(cls)
        for name in cls.kept:
            setattr(pools, name, arrays[name])
        pools.refresh()
        return pools

    def arrays(self) -> Arrays:
        """All that has to be saved, without the room to grow."""
        used = self.used()
        return {name: getattr(self, name)[: used.get(name)] for name in self.kept}

    @abstractmethod
    def used(self) -> dict[str, int]:
        """How many items of the arrays that have room to grow are in use."""

    @abstractmethod
    def refresh(self) -> None:
        """Make the handle of the arrays that there are now."""

    def grow(self, sizes: Iterable[tuple[str, int]], early: int = 0) -> bool:
        """Let arrays have these sizes at least; whether one has grown. What would grow soon grows now, `early` being
        the part of its size that tells how soon.
        """
        grown = False
        for name, size in sizes:
            more = size // early if early else 0
            if size + more > len(array := getattr(self, name)):
                setattr(self, name, with_room(array, size + more, self.used()[name]))
                grown = True
        return grown

    def widen(self, name: str, size: int, fill: float = 0) -> None:
        """Let an array have this size, with `fill` in the items that are new."""
        old = getattr(self, name)
        setattr(self, name, np.concatenate((old, np.full(size - len(old), fill, old.dtype))))


def release(array: NDArray[Any], first: int) -> None:
    """Give the memory of the items from `first` on back to the system, if the array is large; they are zeros then."""
    memory = array.base
    if isinstance(memory, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        begin = -(-first * array.itemsize // mmap.PAGESIZE) * mmap.PAGESIZE
        if begin < len(memory):
            memory.madvise(mmap.MADV_DONTNEED, begin, len(memory) - begin)


@intrinsic
def prefetch(context, array, index):
    """Have the cache line of array[index] fetched while other work is done; the index need not be within the array."""

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = ir.IntType(32)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.PointerType(ir.IntType(8)))
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, word(0), word(3), word(1)])  # to be read, and again; data
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate
