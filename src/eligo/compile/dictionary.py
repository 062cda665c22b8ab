"""Many tables of strings made one: which number has each string of a piece in the whole?

    whole    data, offsets, slots as in strings.py, with room for all that may come
    piece    its own data and offsets; numbers[i] is what its string i is in the whole

Strings are numbered in the order in which they come, so a table that starts with another one keeps all its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eligo.compile.compiled import I32, I64, U8
from eligo.compile.strings import fill_slots, find_bytes, hash_bytes, slots_for
from eligo.jit import kernel

StringArrays = tuple[U8, I64]
NO_STRINGS: StringArrays = np.zeros(0, np.uint8), np.zeros(1, np.int64)


def merge_strings(first: StringArrays, pieces: Sequence[StringArrays]) -> tuple[U8, I64, I32, list[I32]]:
    """Data, offsets and slots of all the strings, those of `first` with the numbers they have, and each piece's
    numbers.
    """
    every = [first, *pieces]
    data = np.empty(sum(int(offsets[-1]) for _, offsets in every), np.uint8)
    offsets = np.zeros(sum(len(offsets) for _, offsets in every), np.int64)
    slots = slots_for(sum(len(offsets) - 1 for _, offsets in every))
    known = len(first[1]) - 1
    data[: first[1][-1]] = first[0][: first[1][-1]]
    offsets[: known + 1] = first[1]
    fill_slots(data, offsets, offsets[1:], slots, 0, known)
    count, numbers = known, []
    for piece_data, piece_offsets in pieces:
        mine = np.empty(len(piece_offsets) - 1, np.int32)
        count = int(enter_strings(data, offsets, slots, count, piece_data, piece_offsets, mine))
        numbers.append(mine)
    data, offsets = data[: offsets[count]].copy(), offsets[: count + 1].copy()
    fitting = slots_for(count)
    if len(fitting) != len(slots):
        fill_slots(data, offsets, offsets[1:], fitting, 0, count)
        slots = fitting
    return data, offsets, slots, numbers


@kernel
def enter_strings(data, offsets, slots, count, piece_data, piece_offsets, numbers):
    """Number the strings of a piece, entering those that are new; how many there are in the whole then."""
    mask = np.uint64(len(slots) - 1)
    for s in range(len(piece_offsets) - 1):
        start, stop = piece_offsets[s], piece_offsets[s + 1]
        known = find_bytes(data, offsets, offsets[1:], slots, piece_data, start, stop)
        if known < 0:
            end = offsets[count]
            for i in range(stop - start):
                data[end + i] = piece_data[start + i]
            offsets[count + 1] = end + stop - start
            at = hash_bytes(piece_data, start, stop) & mask
            while slots[at] != 0:
                at = (at + np.uint64(1)) & mask
            slots[at] = count + 1
            known = np.int32(count)
            count += 1
        numbers[s] = known
    return count
