"""How kernels come to machine code, and where it is kept.

meaning.py    what a kernel means: a digest of its bytecode and constants and of all that it calls
native.py     Numba's inside: from a kernel to an object file, and from an object file to a callable
archive.py    many kernels in one file, as a wheel brings them along
store.py      where kernels are kept: the archive of the package, and the cache of the user
finding.py    from a call to its machine code: found, or compiled
progress.py   what users see while kernels are compiled
plain.py      for a Numba whose inside is not known here: its own compiler and cache
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numba

SEEN = (0, 60), (0, 69)  # versions of Numba whose inside is known, the last one excluded


def compiled(function: Callable[..., Any], nogil: bool = True) -> Any:
    """Returns a function that is compiled at its first call, for each combination of argument types. With `nogil`, a
    call of it from Python lets other threads run.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    if is_seen(numba.__version__):
        from eligo.kernels.finding import entry_point
        from eligo.kernels.native import Kernel

        return Kernel(function, entry_point, nogil)
    from eligo.kernels.plain import plainly

    _warn(numba.__version__)
    return plainly(function, nogil)


def is_seen(version: str) -> bool:
    numbers = version.split(".")[:2]
    return all(map(str.isdigit, numbers)) and SEEN[0] <= tuple(map(int, numbers)) < SEEN[1]


@cache
def _warn(version: str) -> None:
    warnings.warn(
        f"eligo does not know Numba {version}: kernels are compiled by Numba alone, which takes minutes, once; "
        f"Numba {'.'.join(map(str, SEEN[0]))} to below {'.'.join(map(str, SEEN[1]))} starts at once",
        stacklevel=2,
    )
