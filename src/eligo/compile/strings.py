"""Strings to numbers: one table for all that rules name.

    data        strings' UTF-8 bytes
    begin, end  int64, string i is data[begin[i]:end[i]]
    slots       int32, a power of two of them: string number + 1, or 0 for free; linear probing from the string's hash

Invariants: as long as a table lives a string has one number; at most half the slots are taken. Readers need no lock:
what they hold is a `_Table` that never loses entries, and a grown table is published as a new one.

What rules no longer name stays in the table. `without` makes another one that lacks it: all other strings keep their
numbers, and the free ones are given out again. Whoever encodes events for older rules goes on with the older table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.jit import address_of, byte_at, inline, int32_at, int64_at, kernel

StringArrays = tuple[NDArray[np.uint8], NDArray[np.int64]]  # data and offsets
_BYTES = 4 << 20  # of strings remembered as Python objects, so that a usual event costs a dict look-up each
_LONGEST = 4096  # bytes of a string that is remembered
_ENTRY = 80  # bytes that remembering a string takes beside it


@inline
def hash_at(data, start, stop):
    """FNV-1a over bytes, given by an address, mixed at the end because linear probing uses the low bits."""
    h = np.uint64(14695981039346656037)
    for i in range(start, stop):
        h = (h ^ np.uint64(byte_at(data, i))) * np.uint64(1099511628211)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(29)
    return h


@inline
def hash_bytes(data, start, stop):
    """The same of an array of bytes."""
    return hash_at(address_of(data), start, stop)


@inline
def find_at(data, begin, end, slots, count, text, start, stop):
    """The number of the string text[start:stop], or -1; all arrays by their addresses, the slots with their count."""
    mask = np.uint64(count - 1)
    at = hash_at(text, start, stop) & mask
    length = stop - start
    number = int32_at(slots, np.int64(at)) - 1
    while number >= 0:
        first = int64_at(begin, number)
        if int64_at(end, number) - first == length:
            i = np.int64(0)
            while i < length and byte_at(data, first + i) == byte_at(text, start + i):
                i += 1
            if i == length:
                break
        at = (at + np.uint64(1)) & mask
        number = int32_at(slots, np.int64(at)) - 1
    return np.int32(number)


@kernel
def find_bytes(data, begin, end, slots, text, start, stop):
    """The same, of arrays."""
    return find_at(
        address_of(data),
        address_of(begin),
        address_of(end),
        address_of(slots),
        len(slots),
        address_of(text),
        start,
        stop,
    )


@inline
def enter_string(data, start, stop, slots, number):
    """Enters the string data[start:stop], which is new, into the slots under a number. Returns its slot."""
    mask = np.uint64(len(slots) - 1)
    at = hash_bytes(data, start, stop) & mask
    while slots[at] != 0:
        at = (at + np.uint64(1)) & mask
    slots[at] = number + 1
    return at


@kernel
def fill_slots(data, begin, end, slots, first, count):
    """Enter strings first … count-1, all different, into the slots."""
    for number in range(first, count):
        enter_string(data, begin[number], end[number], slots, number)


@kernel
def add_strings(data, offsets, own, begin, end, slots, free, count, size, numbers):
    """Writes the numbers of strings; those that are new take free numbers from the end, then those from `count` on.
    Returns how many free ones were taken, one more than the highest number, and where the bytes end.
    """
    used = 0
    for i in range(len(offsets) - 1):
        number = find_bytes(own, begin, end, slots, data, offsets[i], offsets[i + 1])
        if number < 0:
            if used < len(free):
                used += 1
                number = free[len(free) - used]
            else:
                number = np.int32(count)
                count += 1
            begin[number] = size
            for k in range(offsets[i], offsets[i + 1]):
                own[size] = data[k]
                size += 1
            end[number] = size
            enter_string(own, begin[number], size, slots, number)
        numbers[i] = number
    return used, count, size


@kernel
def keep_strings(data, begin, end, used, slots):
    """The strings that are used, one after another, and entered into the slots: their bytes, and offsets for every
    number; strings that are not used have no bytes.
    """
    offsets = np.zeros(len(used) + 1, np.int64)
    for i in range(len(used)):
        offsets[i + 1] = offsets[i] + (end[i] - begin[i] if used[i] else 0)
    kept = np.empty(offsets[-1], np.uint8)
    for i in range(len(used)):
        if used[i]:
            for k in range(end[i] - begin[i]):
                kept[offsets[i] + k] = data[begin[i] + k]
            enter_string(data, begin[i], end[i], slots, i)
    return kept, offsets


def slots_for(count: int) -> NDArray[np.int32]:
    """Free slots for that many entries, at most half full."""
    return np.zeros(max(16, 1 << (2 * count).bit_length()), np.int32)


class _Table:
    """One state of the table, and what was asked for in vain while it was the newest.

    `size`: bytes of data in use; `ordered`: strings lie in the order of their numbers, without gaps.
    """

    __slots__ = ("begin", "count", "data", "end", "missed", "misses", "ordered", "size", "slots")

    def __init__(
        self,
        data: NDArray[np.uint8],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
        slots: NDArray[np.int32],
        count: int,
        size: int,
        ordered: bool,
    ) -> None:
        self.data, self.begin, self.end, self.slots = data, begin, end, slots
        self.count, self.size, self.ordered = count, size, ordered
        self.misses: set[str] = set()
        self.missed = 0  # bytes


class Strings:
    """Strings to numbers and back."""

    def __init__(self, arrays: tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]] | None = None) -> None:
        """Empty, or from data and offsets, as `arrays` gives them, and slots."""
        self.hits: dict[str, int] = {}
        self._hit = 0  # bytes
        self._free: list[int] = []  # numbers to give out again, the lowest last
        data, offsets, slots = arrays or (np.zeros(0, np.uint8), np.zeros(1, np.int64), slots_for(0))
        count = len(offsets) - 1
        # Another object whenever there is another string.
        self.state = _Table(data, offsets[:-1], offsets[1:], slots, count, int(offsets[-1]), True)

    def __len__(self) -> int:
        """One more than the highest number."""
        return self.state.count

    @property
    def taken(self) -> int:
        """How many strings there are: one more with each that is new."""
        return self.state.count - len(self._free)

    @property
    def size(self) -> int:
        """Bytes of all strings."""
        return self.state.size

    def number(self, text: str) -> int:
        """The string's number, or -1."""
        hit = self.hits.get(text)
        if hit is not None:
            return hit
        table = self.state
        if text in table.misses:
            return -1
        raw = np.frombuffer(text.encode(), np.uint8)
        found = int(find_bytes(table.data, table.begin, table.end, table.slots, raw, 0, len(raw)))
        if found >= 0:
            self._remember(text, found)
        elif (size := sys.getsizeof(text)) <= _LONGEST:
            if table.missed > _BYTES:
                table.misses, table.missed = set(), 0
            table.misses.add(text)
            table.missed += size + _ENTRY
        return found

    def intern(self, text: str) -> int:
        """The string's number, a new one if it has none. Writers hold the matcher's lock."""
        known = self.number(text)
        if known >= 0:
            return known
        table = self.state
        raw = text.encode()
        number = self._free[-1] if self._free else table.count
        count, size = max(table.count, number + 1), table.size + len(raw)
        data, begin, end, slots = table.data, table.begin, table.end, table.slots
        if size > len(data):
            data = _grown(data, size)
        if count > len(begin):
            begin, end = _grown(begin, count), _grown(end, count)
        elif number < table.count and table.ordered:
            begin, end = begin.copy(), end.copy()  # they may be one array
        data[table.size : size] = np.frombuffer(raw, np.uint8)
        begin[number], end[number] = table.size, size
        if 2 * (self.taken + 1) > len(slots):
            slots = _entered(slots_for(self.taken + 1), table)
        elif begin is not table.begin or data is not table.data:
            # Readers of the old table must not meet numbers that its arrays do not have.
            slots = slots.copy()
        # First the table, then its slots: whoever is interrupted in between has lost a number and nothing else.
        self.state = _Table(data, begin, end, slots, count, size, table.ordered and number == table.count)
        if self._free:
            self._free.pop()
        fill_slots(data, begin, end, slots, number, number + 1)
        self._remember(text, number)
        return number

    def intern_many(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
        """The numbers of many strings, data[offsets[i]:offsets[i+1]], new ones for those that have none."""
        table, count = self.state, len(offsets) - 1
        size = table.size + int(offsets[-1] - offsets[0])
        grown = _grown(table.data, size) if size > len(table.data) else table.data
        begin, end = table.begin, table.end
        if table.count + count > len(begin):
            begin, end = _grown(begin, table.count + count), _grown(end, table.count + count)
        else:
            begin, end = begin.copy(), end.copy()
        room = 2 * (self.taken + count) > len(table.slots)
        slots = _entered(slots_for(self.taken + count), table) if room else table.slots.copy()
        numbers = np.empty(count, np.int32)
        free = np.array(self._free, np.int32)
        used, taken, size = add_strings(data, offsets, grown, begin, end, slots, free, table.count, table.size, numbers)
        self.state = _Table(grown, begin, end, slots, int(taken), int(size), table.ordered and not len(free))
        del self._free[len(self._free) - int(used) :]
        return numbers

    def holes(self) -> list[int]:
        """The numbers below the highest that no string has."""
        return list(self._free)

    def without(self, unused: NDArray[np.bool_]) -> Strings:
        """Another table that lacks the strings of these numbers; all others keep theirs."""
        used = ~unused
        count = int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0
        used, table = used[:count], self.state
        slots = slots_for(int(used.sum()))
        made = Strings((*keep_strings(table.data, table.begin, table.end, used, slots), slots))
        made._free = np.flatnonzero(~used)[::-1].tolist()
        return made

    def text(self, number: int) -> str:
        table = self.state
        return bytes(table.data[table.begin[number] : table.end[number]]).decode()

    def table(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
        """Data, begin, end and slots, for kernels that look up many strings; there may be room behind the last one."""
        table = self.state
        return table.data, table.begin, table.end, table.slots

    @property
    def slots(self) -> NDArray[np.int32]:
        return self.state.slots

    def frozen(self) -> Strings:
        """The table as it is now, whatever comes."""
        same = Strings()
        same.state = self.state
        return same

    def spans(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Data, begin and end, for kernels that know the numbers of strings."""
        return self.table()[:3]

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Data and offsets, cut to size: string i is data[offsets[i]:offsets[i+1]]."""
        table = self.state
        if not table.ordered:
            table = self.without(np.zeros(table.count, np.bool_)).state
        return table.data[: table.size], np.append(table.begin[: table.count], table.size)

    def __iter__(self) -> Iterator[str]:
        """All strings, those without use among them as empty ones."""
        return (self.text(i) for i in range(len(self)))

    def _remember(self, text: str, number: int) -> None:
        size = sys.getsizeof(text)
        if size > _LONGEST:
            return
        if self._hit > _BYTES:
            self.hits, self._hit = {}, 0
        self.hits[text] = number
        self._hit += size + _ENTRY


def _entered(slots: NDArray[np.int32], table: _Table) -> NDArray[np.int32]:
    """The strings that the slots of a table have, in other slots."""
    there = table.slots[table.slots != 0] - 1
    move_slots(table.data, table.begin, table.end, there, slots)
    return slots


@kernel
def move_slots(data, begin, end, numbers, slots):
    """Enter some strings into the slots."""
    for number in numbers:
        enter_string(data, begin[number], end[number], slots, number)


def merge_strings(
    tables: Sequence[StringArrays],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32], list[NDArray[np.int32]]]:
    """Data, offsets and slots of all strings of some tables, numbered in the order in which they come, so that those of
    the first table keep their numbers; and for each table the numbers that its strings have then.
    """
    data = np.empty(sum(int(offsets[-1]) for _, offsets in tables), np.uint8)
    offsets = np.zeros(1 + sum(len(offsets) - 1 for _, offsets in tables), np.int64)
    slots = slots_for(len(offsets) - 1)
    count, numbers = 0, []
    for table in tables:
        mine = np.empty(len(table[1]) - 1, np.int32)
        count = int(enter_strings(data, offsets, slots, count, *table, mine))
        numbers.append(mine)
    data, offsets = data[: offsets[count]].copy(), offsets[: count + 1].copy()
    fitting = slots_for(count)
    if len(fitting) != len(slots):
        fill_slots(data, offsets, offsets[1:], fitting, 0, count)
        slots = fitting
    return data, offsets, slots, numbers


@kernel
def enter_strings(data, offsets, slots, count, more, more_offsets, numbers):
    """Writes the numbers of the strings of a table, which are entered if they are new. Returns how many there are in
    all then.
    """
    for s in range(len(more_offsets) - 1):
        start, stop = more_offsets[s], more_offsets[s + 1]
        known = find_bytes(data, offsets, offsets[1:], slots, more, start, stop)
        if known < 0:
            end = offsets[count]
            for i in range(stop - start):
                data[end + i] = more[start + i]
            offsets[count + 1] = end + stop - start
            enter_string(more, start, stop, slots, count)
            known = np.int32(count)
            count += 1
        numbers[s] = known
    return count


def _grown(array: NDArray[Any], least: int) -> NDArray[Any]:
    bigger = np.zeros(max(least, 2 * len(array), 64), array.dtype)
    bigger[: len(array)] = array
    return bigger
