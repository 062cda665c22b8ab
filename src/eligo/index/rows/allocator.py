"""Blocks of words in one array, by class of size, with a free list for each class.

    heads    [words used, words in free blocks, first free block of class 0, of class 1, …], -1: none is free
    class    2, 4, 6 … 16 words; then eight sizes for each doubling: 18, 20 … 32, 36, 40 …

All sizes are even, and so are the places of blocks: half a place is enough to name one.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import I64
from eligo.jit import inline, kernel, leading_zeros

USED, FREE, FIRST = 0, 1, 2
CLASSES = 240


def no_blocks() -> I64:
    """The heads of a heap without blocks."""
    heads = np.full(FIRST + CLASSES, -1, np.int64)
    heads[[USED, FREE]] = 0
    return heads


@inline
def heap_class(size):
    """The class of the smallest block that holds so many words."""
    if size <= 16:
        return (np.int64(max(size, 1)) + 1) // 2 - 1
    last = np.uint64(size - 1)
    step = np.int64(60) - np.int64(leading_zeros(last))  # of 16 … 31 it is 1
    return 8 * step + (np.int64(last) >> step) - 8


@inline
def heap_words(k):
    """Words of a block of class k."""
    return 2 * k + 2 if k < 8 else (k % 8 + 9) << (k // 8)


@kernel
def take_block(words, heads, size):
    """A block for so many words; where it begins."""
    k = heap_class(size)
    at = heads[FIRST + k]
    if at >= 0:
        heads[FIRST + k] = words[at]
        heads[FREE] -= heap_words(k)
        return at
    at = heads[USED]
    heads[USED] += heap_words(k)
    return at


@kernel
def give_block(words, heads, at, size):
    """Free the block that was taken for so many words."""
    k = heap_class(size)
    words[at] = heads[FIRST + k]
    heads[FIRST + k] = at
    heads[FREE] += heap_words(k)


@kernel
def move_block(words, heads, at, used, room, size):
    """Moves the first `used` words of a block taken for `room` words to one for `size`. Returns where that begins."""
    other = take_block(words, heads, size)
    for i in range(used):
        words[other + i] = words[at + i]
    give_block(words, heads, at, room)
    return other
