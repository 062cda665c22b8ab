"""What a kernel means: a digest that changes with what it computes and with nothing else.

It covers the bytecode and the constants of a kernel, the values of the globals that it names, and the same of every
kernel that it calls. It does not cover comments, docstrings, names of files, numbers of lines or times.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.types import Type

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...))
_known: dict[FunctionType, bytes] = {}


def meaning(function: FunctionType) -> bytes:
    """Returns a digest of what a function computes."""
    found = _known.get(function)
    if found is None:
        digest = hashlib.blake2b(digest_size=16)
        for part in _parts(function):
            digest.update(part)
            digest.update(b"\0")
        found = _known[function] = digest.digest()
    return found


def _parts(function: FunctionType) -> Iterator[bytes]:
    """Yields a function's code, what its globals, closure and defaults stand for, and the same of all that it calls."""
    waiting, seen = [function], {function}

    def called(other: FunctionType) -> bytes:
        if other not in seen:
            seen.add(other)
            waiting.append(other)
        return f"function {other.__module__}.{other.__qualname__}".encode()

    while waiting:
        one = waiting.pop()
        yield called(one)
        yield from _code(one.__code__)
        names = sorted(_names(one.__code__))
        for name in names:
            if name in one.__globals__:
                yield name.encode()
                yield _value(one.__globals__[name], names, called)
        for cell in one.__closure__ or ():
            yield _value(cell.cell_contents, names, called)
        for default in one.__defaults__ or ():
            yield _value(default, names, called)


def _code(code: CodeType) -> Iterator[bytes]:
    yield code.co_code
    yield repr((code.co_argcount, code.co_flags, code.co_names, code.co_varnames, code.co_freevars)).encode()
    yield getattr(code, "co_exceptiontable", b"")
    for number, constant in enumerate(code.co_consts):
        if isinstance(constant, CodeType):
            yield from _code(constant)
        elif isinstance(constant, frozenset):  # in another order in each process
            yield f"frozenset {sorted(map(repr, constant))}".encode()
        elif number or not isinstance(constant, str):  # a first string is the docstring
            yield f"{type(constant).__name__} {constant!r}".encode()


def _names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _goes_by_name(module: str) -> bool:
    """Tests whether the name of a module is enough: Python's, NumPy's and Numba's versions are part of a key."""
    top = module.partition(".")[0]
    return top in sys.stdlib_module_names or top in ("numpy", "numba", "llvmlite")


def _value(value: Any, names: list[str], called: Callable[[FunctionType], bytes]) -> bytes:
    """Returns what a global stands for. Of a module that is whatever `names` has of it, unless the module goes by its
    name. Raises a TypeError for anything that has no known meaning.
    """
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}".encode()
    if isinstance(value, tuple):
        return b"(" + b",".join(_value(one, names, called) for one in value) + b")"
    if isinstance(value, np.generic | np.ndarray):
        return f"{value.dtype.str} {value.shape}".encode() + value.tobytes()
    if isinstance(value, ModuleType):
        if _goes_by_name(value.__name__):
            return value.__name__.encode()
        inner = [name for name in names if name in vars(value)]
        return b"{" + b",".join(name.encode() + b"=" + _value(vars(value)[name], [], called) for name in inner) + b"}"
    function = getattr(value, "py_func", None) or getattr(value, "_defn", None)  # a kernel, an intrinsic
    if isinstance(function, FunctionType):
        return called(function)
    if isinstance(value, FunctionType) and not _goes_by_name(value.__module__):
        return called(value)
    if isinstance(value, type) and hasattr(value, "kernel_fields"):
        # Machine code that makes one looks for the class by its name.
        return f"handle {value.__module__}.{value.__qualname__} {value.kernel_fields}".encode()
    if isinstance(value, Type):
        return str(value).encode()
    if isinstance(value, type | FunctionType | BuiltinFunctionType | np.ufunc):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}".encode()
    if type(value).__module__.startswith("numpy"):  # a function of NumPy's that is no Python function
        return f"{type(value).__name__} {getattr(value, '__name__', '')}".encode()
    raise TypeError(f"a kernel names {value!r}, a {type(value).__name__}, of which nobody knows what it means")
