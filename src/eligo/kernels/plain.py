"""Kernels as Numba compiles and keeps them by itself: for versions whose inside is not known here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def plainly(function: Callable[..., Any], nogil: bool = True) -> Any:
    try:
        return numba.njit(nogil=nogil, cache=True)(function)
    except (RuntimeError, ImportError):  # no place to write to, or a function of no module
        return numba.njit(nogil=nogil)(function)
