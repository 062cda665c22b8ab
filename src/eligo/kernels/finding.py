"""From a call of a kernel to its machine code: found in the package or in the cache, or compiled."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from types import FunctionType
from typing import Any, cast

import numpy as np
from numba.core.types import StructRef

from eligo.interrupts import uninterrupted
from eligo.kernels import native, store
from eligo.kernels.meaning import meaning
from eligo.kernels.progress import Progress

_FORMAT = 3  # of what is kept
progress = Progress()
used: set[str] = set()  # the keys of what this process has called


@cache
def _versions() -> str:
    return repr((_FORMAT, sys.implementation.cache_tag, np.__version__.partition(".")[0], native.versions()))


@cache
def archive_name() -> str:
    """Returns the name of the package's archive for this Python and this processor, which may not exist."""
    return f"{sys.implementation.cache_tag}-{native.target().kind}"


def key_of(kernel: native.Kernel, args: tuple[Any, ...]) -> str:
    """Returns the key under which the machine code of a kernel, for arguments of these types, is kept."""
    digest = hashlib.blake2b(meaning(cast(FunctionType, kernel.py_func)), digest_size=16)
    homes = list(_homes(args))
    digest.update(f"{args} {homes} {_versions()}{'' if kernel.nogil else ' holding'}".encode())
    return digest.hexdigest()


def _homes(kinds: Iterable[Any]) -> Iterator[str]:
    """Yields the modules of the handles among some types, and within these: machine code that returns a handle looks
    for its class there.
    """
    for kind in kinds:
        if isinstance(kind, StructRef):
            yield type(kind).__module__
            yield from _homes(kind.field_dict.values())


def entry_point(kernel: native.Kernel, args: tuple[Any, ...]) -> Any:
    """Returns what Python calls for arguments of these types, found or else compiled."""
    with uninterrupted():  # Numba and LLVM free things twice if Ctrl-C comes while they make an object
        key = key_of(kernel, args)
        used.add(key)
        entry = store.find(key, archive_name())
        if entry is not None:
            return native.load_entry(entry, kernel.py_func)
        with store.compiling(key):
            entry = store.find(key, archive_name())  # perhaps another process has compiled it meanwhile
            if entry is None:
                progress.begin()
                entry = native.make_entry(kernel, args, f"eligo.{key}")
                progress.end(kernel.py_func.__qualname__)
                store.keep(key, entry)
        return native.load_entry(entry, kernel.py_func)
