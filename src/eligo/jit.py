"""The one way this project compiles a kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from numba import types
from numba.core import cgutils
from numba.experimental import structref
from numba.extending import intrinsic

from eligo.interrupts import uninterrupted
from eligo.kernels import compiled


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` at its first call.

    nogil   a match must not stop the other threads of the process
    kept    a second process starts in a fraction of a second instead of seconds (kernels/)
    No explicit signatures: they compile at import and refuse arrays that an mmap or Arrow made read-only.
    No `parallel`: together with `cache` it has crashed when the thread count changed.
    No `fastmath`: NaN and infinities are values here.
    """
    return compiled(function)


def inline(function: Callable[..., Any]) -> Any:
    """A helper of kernels that LLVM is free to inline; scalars or one whole object in, scalars out."""
    return compiled(function)


def handle(name: str, fields: Iterable[str]) -> Callable[..., Any]:
    """Declares many arrays, or other handles, that go to kernels as one argument. Returns what makes such an argument:
    a function of all fields, in this order. Kernels read a field as `handle.field`.

    Dispatching thirty arrays costs 2.6 µs a call as arguments and 0.8 behind a handle. Handles are made in a kernel
    that is kept: the class called from Python would be compiled anew in every process.
    """
    fields, space = tuple(fields), sys._getframe(1).f_globals
    module = space["__name__"]
    kind = structref.register(type(f"{name}Type", (types.StructRef,), {"__module__": module}))  # type: ignore[no-untyped-call]
    # Numba asks a handle for its type at each call of a kernel. Asked in Python, it would be a moment for Ctrl-C, in
    # the middle of a call that does not expect one; and slower.
    its_type = property(attrgetter("_type"))
    described = {"__module__": module, "kernel_fields": fields, "_numba_type_": its_type}
    proxy = type(name, (structref.StructRefProxy,), described)
    structref.define_proxy(proxy, kind, list(fields))  # type: ignore[no-untyped-call]
    space[f"{name}Type"], space[name] = kind, proxy  # by these names machine code finds them in another process
    program: dict[str, Any] = {"__name__": module, "proxy": proxy}
    exec(f"def make_{name}({', '.join(fields)}): return proxy({', '.join(fields)})", program)
    made = compiled(program[f"make_{name}"])

    def make(*args: Any) -> Any:
        with uninterrupted():  # Numba and LLVM free things twice if Ctrl-C comes while they make an object
            return made(*args)

    return make


@intrinsic
def float_of(context, bits):
    """The float with these bits; NumPy's way of asking allocates an array."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic
def trailing_zeros(context, word):
    """The position of the lowest bit that is set; the word must not be 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint64(types.uint64), generate


@intrinsic
def int64_at(context, address, place):
    """The integer at a place of an array, given by its address: for kernels that get any number of arrays."""

    def generate(context, builder, signature, arguments):
        begin = builder.inttoptr(arguments[0], context.get_value_type(types.int64).as_pointer())
        return builder.load(builder.gep(begin, [arguments[1]]))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def byte_at(context, address, place):
    """The same of an array of bytes."""

    def generate(context, builder, signature, arguments):
        begin = builder.inttoptr(arguments[0], context.get_value_type(types.uint8).as_pointer())
        return builder.load(builder.gep(begin, [arguments[1]]))

    return types.uint8(types.int64, types.int64), generate
