"""The bits of one block of events: WORDS machine words, which vector instructions take together.

LLVM makes a few vector instructions of each function here, on whatever processor. Written as loops, they would become
such or not, as the code around them has it.

Arrays are given by their addresses (`words.ctypes.data`), and a place in one counts bits of blocks: WORDS words each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

WORDS = 16
EVENTS = 64 * WORDS  # of one block


def _place(builder: Any, address: Any, place: Any) -> Any:
    vectors = builder.inttoptr(address, ir.VectorType(ir.IntType(64), WORDS).as_pointer())
    return builder.gep(vectors, [place])


def _load(builder: Any, address: Any, place: Any) -> Any:
    return builder.load(_place(builder, address, place), align=8)


def _store(builder: Any, vector: Any, address: Any, place: Any) -> Any:
    """Writes the bits; whether there are any."""
    builder.store(vector, _place(builder, address, place), align=8)
    whole = ir.IntType(EVENTS)
    return builder.icmp_unsigned("!=", builder.bitcast(vector, whole), ir.Constant(whole, 0))


def _combining(combine: Callable[[Any, Any, Any], Any]) -> Any:
    """Returns what writes combine(target[to], given[at]) to target[to], and returns whether there is a bit in it."""

    def combined(context: Any, given: Any, at: Any, target: Any, to: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given, at, target, to = arguments
            both = combine(builder, _load(builder, target, to), _load(builder, given, at))
            return _store(builder, both, target, to)

        return types.boolean(types.int64, types.int64, types.int64, types.int64), generate

    return intrinsic(combined)


copy_bits = _combining(lambda builder, old, given: given)
and_bits = _combining(lambda builder, old, given: builder.and_(old, given))
or_bits = _combining(lambda builder, old, given: builder.or_(old, given))
xor_bits = _combining(lambda builder, old, given: builder.xor(old, given))
but_bits = _combining(lambda builder, old, given: builder.and_(old, builder.not_(given)))


@intrinsic
def and_between(context, given, at, planes, one, other, target, to):
    """Writes given[at] & (planes[one] ^ planes[other]) to target[to]; returns whether there is a bit in it."""

    def generate(context, builder, signature, arguments):
        given, at, planes, one, other, target, to = arguments
        between = builder.xor(_load(builder, planes, one), _load(builder, planes, other))
        return _store(builder, builder.and_(_load(builder, given, at), between), target, to)

    whole = types.int64
    return types.boolean(whole, whole, whole, whole, whole, whole, whole), generate


@intrinsic
def and_both(context, given, at, other, there, target, to):
    """Writes given[at] & other[there] to target[to]; returns whether there is a bit in it."""

    def generate(context, builder, signature, arguments):
        given, at, other, there, target, to = arguments
        both = builder.and_(_load(builder, given, at), _load(builder, other, there))
        return _store(builder, both, target, to)

    whole = types.int64
    return types.boolean(whole, whole, whole, whole, whole, whole), generate


@intrinsic
def and_listed(context, given, at, planes, place, slots, first, count, target, to):
    """Writes given[at] & (planes[place[s]] ^ …), for the slots s from slots[first] on, `count` of them, to target[to];
    returns whether there is a bit in it. `place` and `slots` are addresses of arrays of int32.
    """

    def generate(context, builder, signature, arguments):
        given, at, planes, place, slots, first, count, target, to = arguments
        whole, number = ir.IntType(64), ir.IntType(32).as_pointer()
        vector = ir.VectorType(whole, WORDS)
        listed = cgutils.alloca_once_value(builder, ir.Constant(vector, [0] * WORDS))
        builder.store(ir.Constant(vector, [0] * WORDS), listed)
        place, slots = builder.inttoptr(place, number), builder.inttoptr(slots, number)
        with cgutils.for_range(builder, count) as loop:
            slot = builder.sext(builder.load(builder.gep(slots, [builder.add(first, loop.index)])), whole)
            plane = builder.sext(builder.load(builder.gep(place, [slot])), whole)
            builder.store(builder.xor(builder.load(listed), _load(builder, planes, plane)), listed)
        left = builder.and_(_load(builder, given, at), builder.load(listed))
        return _store(builder, left, target, to)

    whole = types.int64
    return types.boolean(whole, whole, whole, whole, whole, whole, whole, whole, whole), generate


@intrinsic
def prefetch(context, address):
    """Has the processor fetch the memory at an address, which need not exist, while other work goes on."""

    def generate(context, builder, signature, arguments):
        pointer, small = ir.IntType(8).as_pointer(), ir.IntType(32)
        fetch = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [pointer, small, small, small]), "llvm.prefetch.p0"
        )
        reading, often, data = (ir.Constant(small, number) for number in (0, 3, 1))
        builder.call(fetch, [builder.inttoptr(arguments[0], pointer), reading, often, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate
