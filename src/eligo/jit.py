"""The one way this project compiles a kernel."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial, wraps
from operator import attrgetter
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core import cgutils, config
from numba.experimental import structref
from numba.extending import intrinsic

from eligo.kernel_cache import KernelCache

_ROOT = Path(__file__).parent
_IMPORT = re.compile(r"^(?:from eligo\.?([\w.]*) import (\([^)]*\)|.*)|import eligo\.?([\w.]*))", re.MULTILINE)


def cache_folder(file: Path) -> Path:
    """Where the compiled kernels of a source file are kept: a folder for just this content, beside those of others.

    Numba looks at the file of a kernel alone to see whether its cached code is still good, and helpers from other files
    are compiled into it. So the folder is named by the content of the file and of all that it imports from here; and
    by bounds checking, which changes the code too. NUMBA_CACHE_DIR is honoured.
    """
    digest = hashlib.blake2b(os.environ.get("NUMBA_BOUNDSCHECK", "").encode(), digest_size=8)
    for part in sorted(_with_imports(file)):
        digest.update(_content(part))
    given = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eligo"
    return base / f"kernels-{digest.hexdigest()}"


def _with_imports(file: Path) -> set[Path]:
    """A source file, and what it imports from this package, directly or not."""
    found, waiting = {file}, [file]
    while waiting:
        for part in _imports(waiting.pop()):
            if part not in found:
                found.add(part)
                waiting.append(part)
    return found


@cache
def _content(file: Path) -> bytes:
    return file.read_bytes()


@cache
def _imports(file: Path) -> list[Path]:
    found = []
    for package, names, whole in _IMPORT.findall(_content(file).decode()):
        place = _ROOT.joinpath(*(package or whole).split(".")) if package or whole else _ROOT
        found += [place.with_suffix(".py"), place / "__init__.py"]
        found += [place / f"{name}.py" for name in re.findall(r"\w+", names)]
    return [part for part in found if part.is_file() and part != _ROOT / "__init__.py"]


@cache
def _cache_folder(file: Path) -> str:
    try:
        folder = cache_folder(file)
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)
    except (OSError, RuntimeError):
        return ""  # no home, or none that can be written to: Numba finds a place, or compiles anew in each process


def _compiled(function: Callable[..., Any]) -> Any:
    settings: Any = config  # of the whole process, so it is put back
    before = settings.CACHE_DIR
    folder = _cache_folder(Path(function.__code__.co_filename))
    settings.CACHE_DIR = folder or before
    try:
        compiled: Any = numba.njit(nogil=True)(function)
        compiled.get_call_template = partial(_call_plainly, compiled.get_call_template)
        compiled.compile = _uninterrupted(compiled.compile)  # or loads what was compiled
        with suppress(RuntimeError):  # no place to write to
            compiled._cache = KernelCache(function, folder)
        return compiled
    finally:
        settings.CACHE_DIR = before


def _call_plainly(choose: Callable[..., Any], args: Iterable[Any], kws: dict[str, Any]) -> Any:
    """Which version of a kernel another calls with these types: one for all whole numbers.

    Numba would compile one for each literal, and one more for a variable that begins as a literal: a quarter more work.
    """
    plain: Callable[[Any], Any] = types.unliteral
    return choose(tuple(map(plain, args)), {name: plain(kind) for name, kind in kws.items()})


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` at its first call.

    nogil   a match must not stop the other threads of the process
    cache   a second process starts in a fraction of a second instead of seconds (kernel_cache.py)
    No explicit signatures: they compile at import and refuse arrays that an mmap or Arrow made read-only.
    No `parallel`: together with `cache` it has crashed when the thread count changed.
    No `fastmath`: NaN and infinities are values here.
    """
    return _compiled(function)


def maker(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that makes a handle for Python."""
    return wraps(function)(_uninterrupted(_compiled(function)))


def _uninterrupted(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call with Ctrl-C put off: Numba and LLVM free things twice if it comes while they make an object."""
    # Not among the imports above: these are part of what every compiled kernel depends on.
    from eligo.interrupts import uninterrupted

    def called(*args: Any) -> Any:
        with uninterrupted():
            return call(*args)

    return called


def inline(function: Callable[..., Any]) -> Any:
    """A helper of kernels that LLVM is free to inline; scalars or one whole object in, scalars out."""
    return _compiled(function)


def define_handle(handle: type, kind: type, fields: Iterable[str]) -> None:
    """Tie a handle class to its Numba type: many arrays that go to a kernel as one argument.

    Dispatching thirty arrays costs 2.6 µs a call as arguments and 0.8 behind a handle. Make handles in a cached kernel
    that calls the class: the class called from Python would be compiled anew in every process.
    """
    structref.define_proxy(handle, kind, list(fields))  # type: ignore[no-untyped-call]
    # Numba asks a handle for its type at each call of a kernel. Asked in Python, it would be a moment for Ctrl-C, in
    # the middle of a call that does not expect one; and slower.
    handle._numba_type_ = property(attrgetter("_type"))  # type: ignore[attr-defined]


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
