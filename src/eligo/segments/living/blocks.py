"""Blocks of 32-bit words in one pool: of certain sizes only, so that one given back fits whoever comes next.

sizes      4, 6, 8, 12, 16, 24, 32, 48 … words; all even, so that a block's number is half of where it begins
free[k]    where the first free block of the k-th size begins, -1: none; its first word has the next one
"""

from __future__ import annotations

from eligo.jit import inline

SIZES = 64
END, FREE = 0, 1  # of the tally: words ever used, words in free blocks


@inline
def size_class(words):
    """The smallest size of at least so many words, by number."""
    k, room = 0, 4
    while room < words:
        k += 1
        room = 4 << (k >> 1) if k & 1 == 0 else 6 << (k >> 1)
    return k


@inline
def class_words(k):
    return 4 << (k >> 1) if k & 1 == 0 else 6 << (k >> 1)


@inline
def new_block(words, free, tally, size):
    """A block of so many words or somewhat more; where it begins."""
    k = size_class(size)
    at = free[k]
    if at >= 0:
        free[k] = words[at]
        tally[FREE] -= class_words(k)
        return at
    at = tally[END]
    tally[END] += class_words(k)
    return at


@inline
def free_block(words, free, tally, at, size):
    k = size_class(size)
    words[at] = free[k]
    free[k] = at
    tally[FREE] += class_words(k)
