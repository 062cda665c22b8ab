"""The bits of one block of events: WORDS machine words, which vector instructions take together.

LLVM makes a few vector instructions of each function here, on whatever processor. Written as loops, they would become
such or not, as the code around them has it.

Arrays are given by their addresses (`words.ctypes.data`), and a place in one counts bits of blocks: WORDS words each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from eligo.jit import count_ones, inline, int64_at, put_short, short_at, trailing_zeros

WORDS = 16
EVENTS = 64 * WORDS  # of one block
FEW = 4  # words of a window of a block


def _place(builder: Any, address: Any, place: Any, words: int, apart: int = 0) -> Any:
    """Returns a pointer to so many words at a place. Places are `apart` words apart or, if that is 0, adjacent."""
    if apart:
        number = ir.IntType(64).as_pointer()
        first = builder.gep(builder.inttoptr(address, number), [builder.mul(place, ir.Constant(ir.IntType(64), apart))])
        return builder.bitcast(first, ir.VectorType(ir.IntType(64), words).as_pointer())
    vectors = builder.inttoptr(address, ir.VectorType(ir.IntType(64), words).as_pointer())
    return builder.gep(vectors, [place])


def _load(builder: Any, address: Any, place: Any, words: int, apart: int = 0) -> Any:
    return builder.load(_place(builder, address, place, words, apart), align=8)


def _store(builder: Any, vector: Any, address: Any, place: Any, words: int) -> Any:
    """Writes the bits. Returns whether any is set."""
    builder.store(vector, _place(builder, address, place, words), align=8)
    whole = ir.IntType(64 * words)
    return builder.icmp_unsigned("!=", builder.bitcast(vector, whole), ir.Constant(whole, 0))


def _combining(combine: Callable[[Any, Any, Any], Any], words: int = WORDS) -> Any:
    """Returns a function that writes combine(target[to], given[at]) to target[to], and returns whether a bit is set."""

    def combined(context: Any, given: Any, at: Any, target: Any, to: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given, at, target, to = arguments
            both = combine(builder, _load(builder, target, to, words), _load(builder, given, at, words))
            return _store(builder, both, target, to, words)

        return types.boolean(types.int64, types.int64, types.int64, types.int64), generate

    return intrinsic(combined)


copy_bits = _combining(lambda builder, old, given: given)
copy_few = _combining(lambda builder, old, given: given, FEW)
and_bits = _combining(lambda builder, old, given: builder.and_(old, given))
or_bits = _combining(lambda builder, old, given: builder.or_(old, given))
xor_bits = _combining(lambda builder, old, given: builder.xor(old, given))
but_bits = _combining(lambda builder, old, given: builder.and_(old, builder.not_(given)))


def _anding_between(words: int) -> Any:
    def anding(context: Any, given: Any, at: Any, planes: Any, one: Any, other: Any, target: Any, to: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given, at, planes, one, other, target, to = arguments
            between = builder.xor(*(_load(builder, planes, plane, words, WORDS) for plane in (one, other)))
            return _store(builder, builder.and_(_load(builder, given, at, words), between), target, to, words)

        whole = types.int64
        return types.boolean(whole, whole, whole, whole, whole, whole, whole), generate

    return intrinsic(anding)


# These write given[at] & (planes[one] ^ planes[other]) to target[to] and return whether a bit is set. For a window of a
# block the address of the planes is that of its first word in plane 0.
and_between, and_few_between = _anding_between(WORDS), _anding_between(FEW)


@intrinsic
def and_both(context, given, at, other, there, target, to):
    """Writes given[at] & other[there] to target[to]. Returns whether a bit is set in it."""

    def generate(context, builder, signature, arguments):
        given, at, other, there, target, to = arguments
        both = builder.and_(_load(builder, given, at, WORDS), _load(builder, other, there, WORDS))
        return _store(builder, both, target, to, WORDS)

    whole = types.int64
    return types.boolean(whole, whole, whole, whole, whole, whole), generate


def _anding_listed(words: int) -> Any:
    def anding(
        context: Any, given: Any, at: Any, planes: Any, place: Any, slots: Any, first: Any, count: Any, target: Any,
        to: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given, at, planes, place, slots, first, count, target, to = arguments
            whole, number = ir.IntType(64), ir.IntType(32).as_pointer()
            vector = ir.VectorType(whole, words)
            listed = cgutils.alloca_once_value(builder, ir.Constant(vector, [0] * words))  # type: ignore[no-untyped-call]
            builder.store(ir.Constant(vector, [0] * words), listed)
            place, slots = builder.inttoptr(place, number), builder.inttoptr(slots, number)
            with cgutils.for_range(builder, count) as loop:
                slot = builder.sext(builder.load(builder.gep(slots, [builder.add(first, loop.index)])), whole)
                plane = builder.sext(builder.load(builder.gep(place, [slot])), whole)
                builder.store(builder.xor(builder.load(listed), _load(builder, planes, plane, words, WORDS)), listed)
            left = builder.and_(_load(builder, given, at, words), builder.load(listed))
            return _store(builder, left, target, to, words)

        whole = types.int64
        return types.boolean(whole, whole, whole, whole, whole, whole, whole, whole, whole), generate

    return intrinsic(anding)


# These write given[at] & (planes[place[s]] ^ …), for `count` slots s from slots[first] on, to target[to] and return
# whether a bit is set in it. `place` and `slots` are addresses of arrays of int32.
and_listed, and_few_listed = _anding_listed(WORDS), _anding_listed(FEW)


@inline
def count_bits(bits, at, count):
    """Returns how many bits are set in bits[at : at + count]; `bits` is an address."""
    found = np.int64(0)
    for word in range(at, at + count):
        found += np.int64(count_ones(np.uint64(int64_at(bits, word))))
    return found


@inline
def list_members(bits, at, count, members, begin, listed, end):
    """Writes the members whose bits are set in bits[at : at + count], of which the first is that of member 64 * begin,
    to listed[end] and on. Returns where they end. Arrays are given by their addresses; up to 3 items more are written.
    """
    one, highest = np.uint64(1), np.uint64(1 << 63)
    for word in range(count):
        left = np.uint64(int64_at(bits, at + word))
        base = 64 * (begin + word)
        while left:  # four at a time, some of which may not be there: a branch for each would be mispredicted
            for _ in range(4):
                put_short(listed, end, short_at(members, base + np.int64(trailing_zeros(left | highest))))
                end += np.int64(left != 0)
                left &= left - one
    return end


@intrinsic
def prefetch(context, address):
    """Makes the processor fetch the memory at an address, which need not exist, while other work goes on."""

    def generate(context, builder, signature, arguments):
        pointer, small = ir.IntType(8).as_pointer(), ir.IntType(32)
        fetch = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [pointer, small, small, small]), "llvm.prefetch.p0"
        )
        reading, often, data = (ir.Constant(small, number) for number in (0, 3, 1))
        builder.call(fetch, [builder.inttoptr(arguments[0], pointer), reading, often, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate
