"""Numbers by hash, with deletion: open addressing, linear probing, no tombstones.

    slots      int32, a power of two of them, at most half taken: number + 1, or 0
    hashes     uint32 of each number: its first place is the hash modulo the slots

Invariant: no slot between a number's first place and its own slot is free. A deletion moves back numbers that would
break this. Different things may have equal hashes, so a lookup compares them and continues until one is equal.
"""

from __future__ import annotations

import numpy as np

from eligo.jit import inline, kernel

LEAST = 64


@inline
def put_number(slots, hashes, number):
    mask = np.int64(len(slots) - 1)
    at = np.int64(hashes[number]) & mask
    while slots[at] != 0:
        at = (at + 1) & mask
    slots[at] = number + 1


@inline
def drop_number(slots, hashes, number):
    mask = np.int64(len(slots) - 1)
    hole = np.int64(hashes[number]) & mask
    while slots[hole] != number + 1:
        hole = (hole + 1) & mask
    at = (hole + 1) & mask
    while slots[at] != 0:
        home = np.int64(hashes[slots[at] - 1]) & mask
        if (at - home) & mask >= (at - hole) & mask:
            slots[hole] = slots[at]
            hole = at
        at = (at + 1) & mask
    slots[hole] = 0


@kernel
def with_slots(slots, hashes, least):
    """Returns new slots with room for at least `least` numbers, into which the old numbers are copied."""
    size = LEAST
    while size < 2 * least:
        size *= 2
    larger = np.zeros(size, np.int32)
    for taken in slots:
        if taken != 0:
            put_number(larger, hashes, taken - 1)
    return larger
