"""Strings to numbers: one append-only table for all that rules name.

    data     all strings' UTF-8 bytes, one after another
    offsets  int64, string i is data[offsets[i]:offsets[i+1]]
    slots    int32, a power of two of them: string number + 1, or 0 for free; linear probing from the string's hash

Invariants: a string has one number for ever; at most half the slots are taken. Readers need no lock: what they hold
is a `_Table` that never loses entries, and a grown table is published as a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.jit import inline, kernel

_CACHED = 1 << 20  # strings remembered as Python objects, so that a usual event costs a dict look-up each


@inline
def hash_bytes(data, start, stop):  # type: ignore[no-untyped-def]
    """FNV-1a over the bytes, mixed at the end because linear probing uses the low bits."""
    h = np.uint64(14695981039346656037)
    for i in range(start, stop):
        h = (h ^ np.uint64(data[i])) * np.uint64(1099511628211)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    return h


@kernel
def find_bytes(data, offsets, slots, text, start, stop):  # type: ignore[no-untyped-def]
    """The number of the string text[start:stop], or -1."""
    mask = np.uint64(len(slots) - 1)
    at = hash_bytes(text, start, stop) & mask
    length = stop - start
    while slots[at] != 0:
        number = slots[at] - 1
        first = offsets[number]
        if offsets[number + 1] - first == length:
            same = True
            for i in range(length):
                if data[first + i] != text[start + i]:
                    same = False
                    break
            if same:
                return number
        at = (at + np.uint64(1)) & mask
    return np.int32(-1)


@kernel
def fill_slots(data, offsets, slots, first, count):  # type: ignore[no-untyped-def]
    """Enter strings first … count-1, all different, into the slots."""
    mask = np.uint64(len(slots) - 1)
    for number in range(first, count):
        at = hash_bytes(data, offsets[number], offsets[number + 1]) & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = number + 1


def slots_for(count: int) -> NDArray[np.int32]:
    """Free slots for that many entries, at most half full."""
    return np.zeros(max(16, 1 << (2 * count).bit_length()), np.int32)


class _Table:
    """One state of the table, and what was asked for in vain while it was the newest."""

    __slots__ = ("count", "data", "misses", "offsets", "slots")

    def __init__(
        self, data: NDArray[np.uint8], offsets: NDArray[np.int64], slots: NDArray[np.int32], count: int
    ) -> None:
        self.data, self.offsets, self.slots, self.count = data, offsets, slots, count
        self.misses: set[str] = set()


class Strings:
    """Strings to numbers and back."""

    def __init__(self, arrays: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]] | None = None) -> None:
        """Empty, or from what `table` gave, cut to size as `arrays` does."""
        self.hits: dict[str, int] = {}
        data, offsets, slots = arrays or (np.zeros(0, np.uint8), np.zeros(1, np.int64), slots_for(0))
        self._table = _Table(data, offsets, slots, len(offsets) - 1)

    def __len__(self) -> int:
        return self._table.count

    def number(self, text: str) -> int:
        """The string's number, or -1."""
        hit = self.hits.get(text)
        if hit is not None:
            return hit
        table = self._table
        if text in table.misses:
            return -1
        raw = np.frombuffer(text.encode(), np.uint8)
        found = int(find_bytes(table.data, table.offsets, table.slots, raw, 0, len(raw)))
        if found < 0:
            if len(table.misses) < _CACHED:
                table.misses.add(text)
            return -1
        self._remember(text, found)
        return found

    def intern(self, text: str) -> int:
        """The string's number, a new one if it has none. Writers hold the matcher's lock."""
        known = self.number(text)
        if known >= 0:
            return known
        table = self._table
        raw = text.encode()
        end = int(table.offsets[table.count])
        data, offsets, slots = table.data, table.offsets, table.slots
        if end + len(raw) > len(data):
            data = _grown(data, end + len(raw))
        if table.count + 2 > len(offsets):
            offsets = _grown(offsets, table.count + 2)
        data[end : end + len(raw)] = np.frombuffer(raw, np.uint8)
        offsets[table.count + 1] = end + len(raw)
        if 2 * (table.count + 1) > len(slots):
            slots = slots_for(table.count + 1)
            fill_slots(data, offsets, slots, 0, table.count)
        elif offsets is not table.offsets or data is not table.data:
            # Readers of the old table must not meet numbers that its arrays do not have.
            slots = slots.copy()
        fill_slots(data, offsets, slots, table.count, table.count + 1)
        self._table = _Table(data, offsets, slots, table.count + 1)
        self._remember(text, table.count)
        return table.count

    def text(self, number: int) -> str:
        table = self._table
        return bytes(table.data[table.offsets[number] : table.offsets[number + 1]]).decode()

    def table(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]]:
        """Data, offsets and slots, for kernels that look up many strings."""
        table = self._table
        return table.data, table.offsets, table.slots

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Data and offsets, cut to size."""
        table = self._table
        offsets = table.offsets[: table.count + 1]
        return table.data[: int(offsets[-1])], offsets

    def __iter__(self) -> Iterator[str]:
        return (self.text(i) for i in range(len(self)))

    def _remember(self, text: str, number: int) -> None:
        if len(self.hits) >= _CACHED:
            self.hits = {}
        self.hits[text] = number


def _grown(array: NDArray[Any], least: int) -> NDArray[Any]:
    bigger = np.zeros(max(least, 2 * len(array), 64), array.dtype)
    bigger[: len(array)] = array
    return bigger
