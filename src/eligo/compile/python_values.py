"""What a kernel asks of Python values, given by their addresses: C functions of Python.

A kernel that calls them holds the GIL (`holding` in jit.py), so nothing changes meanwhile. They are asked about values
of exactly the types that `types_here` lists, so none of them runs code of a user, and what they return is borrowed.
"""

from __future__ import annotations

import sys
import sysconfig
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from eligo.compile.compiled import I64
from eligo.jit import inline, int64_at

# Without the GIL others could change what a kernel reads.
READABLE: Final = sys.maxsize > 2**32 and not sysconfig.get_config_var("Py_GIL_DISABLED")
TYPE_AT: Final = object.__basicsize__ // 8 - 1  # the word of every value that says of what type it is
# Types of values, and where `types_here` has their addresses; behind them, that of True.
IS_STR, IS_INT, IS_FLOAT, IS_BOOL, IS_NONE, IS_DICT, IS_LIST, IS_TUPLE, IS_OTHER = range(9)
TRUE: Final = IS_OTHER
# What the functions below write to: the place in a dict, a key and a value; the size of a text; an overflow.
PLACE, KEY, VALUE, SIZE, OVERFLOW, CELLS = range(6)


def types_here() -> I64:
    """The addresses of the types, and of True, in this process."""
    values: tuple[Any, ...] = str, int, float, bool, type(None), dict, list, tuple, True
    return np.array([id(value) for value in values], np.int64)


def _calling(name: str, result: str, arguments: str) -> Any:
    """What an intrinsic returns that calls a C function. Letters stand for types; pointers (p) are addresses here."""

    def numba_type(letter: str) -> Any:
        return {"i": types.int32, "d": types.float64, "v": types.void}.get(letter, types.int64)

    def c_type(letter: str, context: Any) -> Any:
        if letter == "v":
            return ir.VoidType()
        return ir.IntType(8).as_pointer() if letter == "p" else context.get_value_type(numba_type(letter))

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = [c_type(letter, context) for letter in arguments]
        kind = ir.FunctionType(c_type(result, context), given)
        function = cgutils.get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        cast = [
            builder.inttoptr(value, one) if letter == "p" else value
            for value, one, letter in zip(values, given, arguments, strict=True)
        ]
        found = builder.call(function, cast)
        if result == "v":
            return context.get_dummy_value()
        return builder.ptrtoint(found, ir.IntType(64)) if result == "p" else found

    return numba_type(result)(*map(numba_type, arguments)), generate


@intrinsic
def dict_next(context, items, place, key, value):
    """Writes the key and the value at a place of a dict, and the next place. Returns 0 if there is none."""
    return _calling("PyDict_Next", "i", "pppp")


@intrinsic
def utf8_of(context, text, size):
    """Where the UTF-8 of a text begins, and writes its size; 0, and an exception, if it has none."""
    return _calling("PyUnicode_AsUTF8AndSize", "p", "pp")


@intrinsic
def whole_of(context, number, overflow):
    """A whole number; writes to the 32 bits of `overflow` whether it does not fit."""
    return _calling("PyLong_AsLongLongAndOverflow", "q", "pp")


@intrinsic
def real_of(context, number):
    """A float."""
    return _calling("PyFloat_AsDouble", "d", "p")


@intrinsic
def list_size(context, values):
    """How many values a list has."""
    return _calling("PyList_Size", "q", "p")


@intrinsic
def list_item(context, values, place):
    """A value of a list."""
    return _calling("PyList_GetItem", "p", "pq")


@intrinsic
def list_append(context, values, value):
    """Appends a value to a list; returns 0 if that was done, else there is an exception."""
    return _calling("PyList_Append", "i", "pp")


@intrinsic
def tuple_size(context, values):
    """How many values a tuple has."""
    return _calling("PyTuple_Size", "q", "p")


@intrinsic
def tuple_item(context, values, place):
    """A value of a tuple."""
    return _calling("PyTuple_GetItem", "p", "pq")


@intrinsic
def forget_exception(context):
    """Undoes the exception that one of the others made."""
    return _calling("PyErr_Clear", "v", "")


@intrinsic
def copy_bytes(context, source, target, place, count):
    """Writes bytes into an array of them; both are given by their addresses."""

    def generate(context, builder, signature, arguments):
        pointer = ir.IntType(8).as_pointer()
        begin, end, at, size = arguments
        to = builder.gep(builder.inttoptr(end, pointer), [at])
        cgutils.raw_memcpy(builder, to, builder.inttoptr(begin, pointer), size, 1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate


@inline
def kind_of(value, types):
    """Which of the types a value has exactly, or IS_OTHER; `types` is the address of `types_here`."""
    found = int64_at(value, TYPE_AT)
    for kind in range(IS_OTHER):
        if int64_at(types, kind) == found:
            return kind
    return IS_OTHER
