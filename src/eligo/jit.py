"""The one way this project compiles a kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.experimental import structref
from numba.extending import intrinsic

from eligo.interrupts import uninterrupted
from eligo.kernels import compiled


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles `function` at its first call.

    nogil   a match must not stop the other threads of the process
    kept    a second process starts in a fraction of a second instead of seconds (kernels/)
    No explicit signatures: they compile at import and refuse arrays that an mmap or Arrow made read-only.
    No `parallel`: together with `cache` it has crashed when the thread count changed.
    No `fastmath`: NaN and infinities are values here.
    """
    return compiled(function)


def holding(function: Callable[..., Any]) -> Any:
    """Compiles a kernel that asks Python about values (compile/python_values.py): other threads wait for it."""
    return compiled(function, False)


def inline(function: Callable[..., Any]) -> Any:
    """Compiles a helper of kernels that LLVM is free to inline; scalars or one whole object in, scalars out."""
    return compiled(function)


def named_kernel(function: Callable[..., Any], within: Any, name: str = "") -> Any:
    """Compiles a kernel that was written for any function, and calls `within`. It is of the module of that one, and is
    known by that one's name and its own or, if given, by `name`.
    """
    named = getattr(within, "py_func", within)  # without Numba's compiler a kernel is a plain function
    function.__module__, function.__qualname__ = named.__module__, name or f"{named.__name__}_{function.__name__}"
    function.__name__ = function.__qualname__
    return kernel(function)


def entry(kernel: Any, *args: Any) -> Any:
    """Returns the machine code that a call of a kernel with these arguments comes to, to be called in its place.

    Finding it takes longer than a short kernel: 0.4 µs for each handle among the arguments. It takes arguments of
    exactly these types and does not check them: a value of another type would be read as if it were of these.
    """
    types_of = getattr(kernel, "typeof_pyval", None)
    if types_of is None:
        return kernel  # without Numba's compiler a kernel is a plain function
    with uninterrupted():
        return kernel.compile(tuple(map(types_of, args)))


def handle(name: str, fields: Iterable[str]) -> Callable[..., Any]:
    """Declares many arrays, or other handles, that go to kernels as one argument. Returns what makes such an argument:
    a function of all fields, in this order. Kernels read a field as `handle.field`.

    Dispatching thirty arrays costs 2.6 µs a call as arguments and 0.8 behind a handle. Handles are made in a kernel
    that is kept: the class called from Python would be compiled anew in every process.
    """
    fields, space = tuple(fields), sys._getframe(1).f_globals
    module = space["__name__"]
    kind = structref.register(type(f"{name}Type", (types.StructRef,), {"__module__": module}))  # type: ignore[no-untyped-call]
    # Numba asks a handle for its type at each call of a kernel. A Python function would be slower, and Ctrl-C might be
    # raised in it, in the middle of a call that does not expect an error.
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
    """Returns the float with these bits; NumPy's way of asking allocates an array."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic
def bits_of(context, value):
    """Returns the bits of a float."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def trailing_zeros(context, word):
    """Returns the position of the lowest bit that is set; the word must not be 0."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint64(types.uint64), generate


@intrinsic
def count_ones(context, word):
    """Returns how many bits of a word are set."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@intrinsic
def leading_zeros(context, word):
    """Returns how many bits stand before the highest one that is set; the word must not be 0."""

    def generate(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], cgutils.true_bit)

    return types.uint64(types.uint64), generate


@intrinsic
def high_product(context, one, other):
    """Returns the high 64 bits of a product of 128."""

    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(factor, wide) for factor in arguments))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def address_of(context, array):
    """Returns where the items of an array, or the bytes of a bytes object, begin. It is for helpers that are called
    often: an array that is passed on has its references counted, which takes longer than a short loop.
    """

    def generate(context, builder, signature, arguments):
        items = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(items, context.get_value_type(types.int64))

    return types.int64(array), generate


def _item(context: Any, builder: Any, kind: Any, arguments: Any) -> Any:
    """Returns a pointer to an item of an array; the first arguments are the array's address and the item's place."""
    begin = builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())
    return builder.gep(begin, [arguments[1]])


def _reading(kind: str) -> Any:
    def reading(context: Any, address: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.load(_item(context, builder, signature.return_type, arguments))

        return getattr(types, kind)(types.int64, types.int64), generate

    return intrinsic(reading)


def _writing(kind: str) -> Any:
    def writing(context: Any, address: Any, place: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            builder.store(arguments[2], _item(context, builder, signature.args[2], arguments))
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, getattr(types, kind)), generate

    return intrinsic(writing)


# These return the number at a place of an array that is given by its address, or write it: for kernels that get any
# number of arrays. A short is an unsigned number of 16 bits.
int64_at, int32_at, short_at, byte_at = map(_reading, ("int64", "int32", "uint16", "uint8"))
put_int64, put_short, put_byte = map(_writing, ("int64", "uint16", "uint8"))


@intrinsic
def float32_at(context, address, place):
    """Returns the 32-bit float at a place of an array that is given by its address, as one of 64 bits."""

    def generate(context, builder, signature, arguments):
        item = builder.load(_item(context, builder, types.float32, arguments))
        return builder.fpext(item, context.get_value_type(types.float64))

    return types.float64(types.int64, types.int64), generate


@intrinsic
def word_at(context, address, place):
    """Returns 8 bytes of an array of bytes, from a place on, as one number. All of them must exist."""

    def generate(context, builder, signature, arguments):
        bytes_ = builder.inttoptr(arguments[0], context.get_value_type(types.uint8).as_pointer())
        begin = builder.gep(bytes_, [arguments[1]])
        return builder.load(builder.bitcast(begin, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.int64, types.int64), generate


def _vector() -> Any:
    """Returns the type of 32 bytes that are looked at together."""
    return ir.VectorType(ir.IntType(8), 32)


def _vector_at(context: Any, builder: Any, address: Any, place: Any) -> Any:
    begin = builder.gep(builder.inttoptr(address, context.get_value_type(types.uint8).as_pointer()), [place])
    return builder.load(builder.bitcast(begin, _vector().as_pointer()), align=1)


def _bits(builder: Any, truths: Any) -> Any:
    """Returns 32 truths as the low bits of a number."""
    return builder.zext(builder.bitcast(truths, ir.IntType(32)), ir.IntType(64))


@intrinsic
def string_stops(context, address, place):
    """Returns a bit for each of 32 bytes, from a place on: whether it is a quote, a backslash, a control character, or
    no ASCII, so that a string of JSON is not plain there. All of them must exist.
    """

    def generate(context, builder, signature, arguments):
        def repeated(byte: int) -> Any:
            return ir.Constant(_vector(), [byte] * 32)

        found = _vector_at(context, builder, *arguments)
        stops = builder.icmp_signed("<", found, repeated(32))  # what is no ASCII is negative
        stops = builder.or_(stops, builder.icmp_unsigned("==", found, repeated(ord('"'))))
        stops = builder.or_(stops, builder.icmp_unsigned("==", found, repeated(ord("\\"))))
        return _bits(builder, stops)

    return types.uint64(types.int64, types.int64), generate


@intrinsic
def equal_bytes(context, address, place, byte):
    """Returns a bit for each of 32 bytes, from a place on: whether it is this one. All of them must exist."""

    def generate(context, builder, signature, arguments):
        found = _vector_at(context, builder, *arguments[:2])
        one = builder.insert_element(ir.Constant(_vector(), ir.Undefined), arguments[2], ir.IntType(32)(0))
        every = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), 32), [0] * 32))
        return _bits(builder, builder.icmp_unsigned("==", found, every))

    return types.uint64(types.int64, types.int64, types.uint8), generate
