"""The one way this project compiles a kernel."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core import cgutils, config
from numba.experimental import structref
from numba.extending import intrinsic


def cache_folder() -> Path:
    """Where compiled kernels are kept: a folder for just this source, beside those of other versions.

    Numba looks at the file of a kernel alone to see whether its cached code is still good, and helpers from other files
    are compiled into it. So the folder is named by the content of all files; and by bounds checking, which changes the
    code too. NUMBA_CACHE_DIR is honoured.
    """
    digest = hashlib.blake2b(os.environ.get("NUMBA_BOUNDSCHECK", "").encode(), digest_size=8)
    root = Path(__file__).parent
    for room in ("jit.py", "compile", "index", "evaluate", "segments"):
        place = root / room
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            digest.update(file.read_bytes())
    given = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eligo"
    return base / f"kernels-{digest.hexdigest()}"


@cache
def _cache_folder() -> str:
    try:
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)
    except (OSError, RuntimeError):
        return ""  # no home, or none that can be written to: Numba finds a place, or compiles anew in each process


def _compiled(function: Callable[..., Any]) -> Any:
    settings: Any = config  # of the whole process, so it is put back
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _cache_folder() or before
    try:
        return numba.njit(nogil=True, cache=True)(function)
    finally:
        settings.CACHE_DIR = before


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` at its first call.

    nogil   a match must not stop the other threads of the process
    cache   a second process starts in a fraction of a second instead of seconds
    No explicit signatures: they compile at import and refuse arrays that an mmap or Arrow made read-only.
    No `parallel`: together with `cache` it has crashed when the thread count changed.
    No `fastmath`: NaN and infinities are values here.
    """
    return _compiled(function)


def inline(function: Callable[..., Any]) -> Any:
    """A helper of kernels that LLVM is free to inline; scalars or one whole object in, scalars out."""
    return _compiled(function)


def define_handle(handle: type, kind: type, fields: Iterable[str]) -> None:
    """Tie a handle class to its Numba type: many arrays that go to a kernel as one argument.

    Dispatching thirty arrays costs 2.6 µs a call as arguments and 0.8 behind a handle. Make handles in a cached kernel
    that calls the class: the class called from Python would be compiled anew in every process.
    """
    structref.define_proxy(handle, kind, list(fields))  # type: ignore[no-untyped-call]


@intrinsic
def float_of(context, bits):  # type: ignore[no-untyped-def]
    """The float with these bits; NumPy's way of asking allocates an array."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic
def trailing_zeros(context, word):  # type: ignore[no-untyped-def]
    """The position of the lowest bit that is set; the word must not be 0."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint64(types.uint64), generate
