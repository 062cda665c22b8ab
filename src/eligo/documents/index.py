"""The values of documents, attribute by attribute, in order.

    slot         where a document lies; free ones are used again
    cell         one value of one document: kind, key, rest (values.py), the slot, the next cell of the same attribute
    first[a, s]  the first cell of attribute a at slot s; VALUELESS: present without a value; NO_CELL: not there
    order        of attribute a the blocks directory[a, 0], directory[a, 1], …; a block is up to 512 cells, ascending by
                 value and then by number, so that every cell has one place

        directory[a] │ 7 │ 2 │ 9 │                    a place in the order is 512 * (number in the directory) + offset
                       │   │   └─ block 9: cells of the largest values
                       │   └───── block 2
                       └───────── block 7: cells of the smallest values

Looking for a value is a binary search over the first cells of blocks and then within one: O(log n). Inserting and
deleting moves at most a block. A set of values is a list of runs; it is asked in three ways: how many cells lie in it
(places are subtracted), which documents have one (a bit each, see `mark`), and whether this document has one (`has`).

present[a] has a bit for every slot that has the attribute, and `alive` for every slot that is taken: the document bit
vectors of Index Structures and Algorithms for Efficient Profile Matching, §4.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64
from eligo.compile.strings import Strings
from eligo.documents.columns import Column
from eligo.documents.values import LEAST, Key, key_of
from eligo.jit import handle, inline, kernel, trailing_zeros
from eligo.language.values import BOOLEAN, OBJECT, STRING, TIME

BLOCK = 512
NO_CELL, VALUELESS = -1, -2
NOBODY = 255  # the kind of a free cell
_SOME = 1024  # strings that nobody looks for
U64 = NDArray[np.uint64]

# Sets of documents that a condition may ask for, and what a term of it says.
RUNS, PRESENT, MARKED = 0, 1, 2
# What documents have beside a value: the sum of smaller, equal and larger values of its kind, values of another kind,
# documents without the attribute, and documents with several values of it, or none.
SMALLER, EQUAL, LARGER, OTHER, MISSING, UNEVEN = 1, 2, 4, 8, 16, 32
TERM = 6  # numbers of a term: attribute, what it asks, negated, wanted, its first run, behind its last run

_FIELDS = ("kind", "key", "rest", "slot", "following", "first", "blocks", "count", "directory", "sizes", "present",
           "data", "begin", "end")  # fmt: skip
make_index_handle = handle("DocumentIndexHandle", _FIELDS)


@inline
def compare_text(h, cell, text, begin, end):
    """The order of a cell's string and of a text with the same first bytes: negative, 0 or positive."""
    number = h.rest[cell]
    at, stop, i = h.begin[number], h.end[number], begin
    while at < stop and i < end:
        if h.data[at] != text[i]:
            return np.int64(h.data[at]) - np.int64(text[i])
        at, i = at + 1, i + 1
    return (stop - at) - (end - i)


@inline
def compare(h, cell, bound, text):
    """The order of a cell and of a bound: kind, key, rest, and where its bytes lie in `text`."""
    if h.kind[cell] != bound[0]:
        return np.int64(h.kind[cell]) - bound[0]
    if h.key[cell] != bound[1]:
        return np.int64(-1) if h.key[cell] < bound[1] else np.int64(1)
    if bound[0] == STRING:
        if bound[2] == np.int64(-0x8000000000000000):  # before all strings
            return np.int64(1)
        return np.int64(compare_text(h, cell, text, bound[3], bound[4]))
    return np.int64(-1) if h.rest[cell] < bound[2] else np.int64(h.rest[cell] > bound[2])


@inline
def place_of(h, attribute, bound, text, cell):
    """Where a value belongs in the order: behind all that are smaller and, if `cell` is given, behind equal ones with
    a smaller number.
    """
    size = h.blocks.shape[1]
    directory, blocks = h.directory[attribute], h.blocks
    low, high = 0, h.sizes[attribute]  # the first block whose first cell does not come before
    while low < high:
        middle = (low + high) // 2
        there = blocks[directory[middle], 0]
        order = compare(h, there, bound, text)
        if order < 0 or (order == 0 and there < cell):
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return np.int64(0)
    at = low - 1
    block = directory[at]
    low, high = 1, np.int64(h.count[block])
    while low < high:
        middle = (low + high) // 2
        there = blocks[block, middle]
        order = compare(h, there, bound, text)
        if order < 0 or (order == 0 and there < cell):
            low = middle + 1
        else:
            high = middle
    return np.int64(at * size + low)


@inline
def bound_of(h, cell, bound):
    """Writes a cell's value as a bound, whose bytes are those of the strings."""
    bound[0], bound[1], bound[2] = h.kind[cell], h.key[cell], h.rest[cell]
    if h.kind[cell] == STRING:
        bound[2], bound[3], bound[4] = 0, h.begin[h.rest[cell]], h.end[h.rest[cell]]


@inline
def insert_cell(h, attribute, cell, free_block, bound):
    """Puts a cell into the order; returns whether `free_block` was taken. `bound` is scratch."""
    size = h.blocks.shape[1]
    bound_of(h, cell, bound)
    directory, blocks = h.directory[attribute], h.blocks
    if h.sizes[attribute] == 0:
        directory[0], h.sizes[attribute] = free_block, 1
        blocks[free_block, 0], h.count[free_block] = cell, 1
        return True
    place = place_of(h, attribute, bound, h.data, cell)
    at, offset = place // size, place % size
    block, took = directory[at], False
    if offset == 0 and place > 0:  # behind the last cell of a full block
        at, block, offset = at - 1, directory[at - 1], size
    if h.count[block] == size:
        half = size // 2
        for i in range(h.sizes[attribute], at + 1, -1):
            directory[i] = directory[i - 1]
        directory[at + 1] = free_block
        h.sizes[attribute] += 1
        for i in range(size - half):
            blocks[free_block, i] = blocks[block, half + i]
        h.count[block], h.count[free_block], took = half, size - half, True
        if offset > half:
            block, offset = free_block, offset - half
    for i in range(h.count[block], offset, -1):
        blocks[block, i] = blocks[block, i - 1]
    blocks[block, offset] = cell
    h.count[block] += 1
    return took


@inline
def delete_cell(h, attribute, cell, bound):
    """Takes a cell out of the order; returns the block that is free now, or -1. `bound` is scratch."""
    size = h.blocks.shape[1]
    bound_of(h, cell, bound)
    directory, blocks = h.directory[attribute], h.blocks
    place = place_of(h, attribute, bound, h.data, cell)
    at, offset = place // size, place % size
    if at == h.sizes[attribute] or offset == h.count[directory[at]]:
        at, offset = at + 1, np.int64(0)
    block = directory[at]
    for i in range(offset, h.count[block] - 1):
        blocks[block, i] = blocks[block, i + 1]
    h.count[block] -= 1
    if h.count[block] > 0:
        return np.int64(-1)
    h.sizes[attribute] -= 1
    for i in range(at, h.sizes[attribute]):
        directory[i] = directory[i + 1]
    return np.int64(block)


@kernel
def insert_document(h, values, slot, free):
    """Enters the values of a document: attribute, cell, kind, key and rest of each, those of an attribute together.
    `free` are as many free blocks; returns how many of them were taken.
    """
    bound = np.zeros(5, np.int64)
    took = 0
    for i in range(len(values)):
        attribute, cell = values[i, 0], values[i, 1]
        h.kind[cell], h.key[cell], h.rest[cell], h.slot[cell] = values[i, 2], values[i, 3], values[i, 4], slot
        h.following[cell] = values[i + 1, 1] if i + 1 < len(values) and values[i + 1, 0] == attribute else NO_CELL
        if i == 0 or values[i - 1, 0] != attribute:
            h.first[attribute, slot] = cell
            h.present[attribute, slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
        took += insert_cell(h, attribute, cell, free[took], bound)
    return took


@kernel
def insert_cells(h, attribute, cells, free):
    """Puts cells into the order of an attribute; `free` are as many free blocks. Returns how many were taken."""
    bound = np.zeros(5, np.int64)
    took = 0
    for cell in cells:
        took += insert_cell(h, attribute, cell, free[took], bound)
    return took


@kernel
def delete_document(h, slot, counts):
    """Takes all values of a document out. Writes how many it had of each attribute, or NO_CELL. Returns for each value
    its cell, the block that is free now or -1, and its kind.
    """
    total = 0
    for attribute in range(len(counts)):
        cell = h.first[attribute, slot]
        counts[attribute] = NO_CELL if cell == NO_CELL else 0
        while cell >= 0:
            counts[attribute] += 1
            cell = h.following[cell]
        total += max(counts[attribute], 0)
    bound = np.zeros(5, np.int64)
    gone = np.empty((total, 3), np.int64)
    n = 0
    for attribute in range(len(counts)):
        cell = h.first[attribute, slot]
        while cell >= 0:
            gone[n, 0], gone[n, 1], gone[n, 2] = cell, delete_cell(h, attribute, cell, bound), h.kind[cell]
            h.kind[cell] = NOBODY
            cell = h.following[cell]
            n += 1
        h.first[attribute, slot] = NO_CELL
        h.present[attribute, slot >> 6] &= ~(np.uint64(1) << np.uint64(slot & 63))
    return gone


@kernel
def fill_blocks(h, attribute, ordered, free):
    """Makes the order of an attribute that has none of cells in their order, blocks two thirds full."""
    size = 2 * h.blocks.shape[1] // 3
    done = 0
    while done < len(ordered):
        block = free[done // size]
        h.directory[attribute, done // size] = block
        h.count[block] = min(size, len(ordered) - done)
        for i in range(h.count[block]):
            h.blocks[block, i] = ordered[done + i]
        done += h.count[block]
    h.sizes[attribute] = (len(ordered) + size - 1) // size


@inline
def cells_between(h, attribute, low, high):
    """How many cells lie between two places."""
    size = h.blocks.shape[1]
    if high <= low:
        return np.int64(0)
    at, last = low // size, high // size
    if at == last:
        return high - low
    total = h.count[h.directory[attribute, at]] - low % size + high % size
    for i in range(at + 1, last):
        total += h.count[h.directory[attribute, i]]
    return np.int64(total)


@inline
def cell_at(h, attribute, place):
    """The cell at a place, or -1 behind the last one."""
    size = h.blocks.shape[1]
    at, offset = place // size, place % size
    if at < h.sizes[attribute] and offset == h.count[h.directory[attribute, at]]:
        at, offset = at + 1, 0
    return np.int64(h.blocks[h.directory[attribute, at], offset]) if at < h.sizes[attribute] else np.int64(-1)


@inline
def compare_one(h, attribute, bound, text, limit, exactly):
    """Whether an attribute has values of the kind of a bound that are SMALLER, EQUAL, LARGER, and some of an OTHER
    kind; the sum of these. Not `exactly`: equal ones count if they are the smallest or the largest. `limit` is scratch.
    """
    blocks, kind = h.sizes[attribute], bound[0]
    if blocks == 0:
        return 0
    last = h.directory[attribute, blocks - 1]
    low = np.int64(h.blocks[h.directory[attribute, 0], 0])
    high = np.int64(h.blocks[last, h.count[last] - 1])
    found = 0
    if h.kind[low] != kind or h.kind[high] != kind or (kind == BOOLEAN and h.key[high] == OBJECT):
        found = OTHER
        limit[0], limit[1], limit[2] = kind, -0x8000000000000000, -0x8000000000000000
        place = place_of(h, attribute, limit, text, np.int64(-1))
        low = cell_at(h, attribute, place)
        limit[0] = kind + 1
        if kind == BOOLEAN:  # objects stand behind true
            limit[0], limit[1], limit[2] = kind, OBJECT, 0
        end = place_of(h, attribute, limit, text, np.int64(-1))
        if place == end:
            return found
        high = cell_at(h, attribute, end - 1)
    least, most = compare(h, low, bound, text), compare(h, high, bound, text)
    if least < 0:
        found |= SMALLER
    if most > 0:
        found |= LARGER
    if least == 0 or most == 0:
        found |= EQUAL
    elif exactly and least < 0 and most > 0:
        cell = cell_at(h, attribute, place_of(h, attribute, bound, text, np.int64(-1)))
        if compare(h, cell, bound, text) == 0:
            found |= EQUAL
    return found


@kernel
def compare_each(h, asked, text, outcomes):
    """Compares values with all of an attribute. A row of `asked` is where the outcome goes, the attribute, whether
    equality is asked, what is added to the outcome, and the value as a bound.
    """
    limit = np.zeros(5, np.int64)
    for i in range(len(asked)):
        row = asked[i]
        outcomes[row[0]] = row[3] + compare_one(h, row[1], row[4:], text, limit, row[2] != 0)


@kernel
def locate(h, attribute, bounds, text, places):
    """Writes the places of bounds, which are runs: low, high, low, high. Returns how many cells lie in the runs."""
    total = np.int64(0)
    for i in range(len(bounds)):
        places[i] = place_of(h, attribute, bounds[i], text, np.int64(-1))
        if i % 2:
            total += cells_between(h, attribute, places[i - 1], places[i])
    return total


@inline
def stretch(h, attribute, low, high, at):
    """Which block stands at `at` in the directory, and where in it what lies between two places begins and ends."""
    size = h.blocks.shape[1]
    block = h.directory[attribute, at]
    begin = low % size if at == low // size else np.int64(0)
    end = np.int64(h.count[block])
    return block, begin, min(end, high % size) if at == high // size else end


@kernel
def mark(h, attribute, places, words):
    """Sets the bit of every document with a value between the places, which are runs."""
    size = h.blocks.shape[1]
    for i in range(0, len(places), 2):
        low, high = places[i], places[i + 1]
        at = low // size
        while at * size < high and at < h.sizes[attribute]:
            block, begin, end = stretch(h, attribute, low, high, at)
            for j in range(begin, end):
                slot = h.slot[h.blocks[block, j]]
                words[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
            at += 1


@kernel
def listed(h, attribute, places, slots):
    """Writes the slots of all cells between the places, which are runs."""
    size = h.blocks.shape[1]
    n = 0
    for i in range(0, len(places), 2):
        low, high = places[i], places[i + 1]
        at = low // size
        while at * size < high and at < h.sizes[attribute]:
            block, begin, end = stretch(h, attribute, low, high, at)
            for j in range(begin, end):
                slots[n] = h.slot[h.blocks[block, j]]
                n += 1
            at += 1


@kernel
def ordered_cells(h, attribute, cells):
    """Writes all cells of an attribute, in their order."""
    n = 0
    for at in range(h.sizes[attribute]):
        block = h.directory[attribute, at]
        for j in range(h.count[block]):
            cells[n] = h.blocks[block, j]
            n += 1


@kernel
def prefix_keys(data, begin, end, numbers, keys):
    """Writes the keys of strings: their first 8 bytes, as ordered integers."""
    for i in range(len(numbers)):
        key = np.uint64(0)
        for k in range(8):
            at = begin[numbers[i]] + k
            key = key << np.uint64(8) | np.uint64(data[at] if at < end[numbers[i]] else 0)
        keys[i] = np.int64(key ^ np.uint64(0x8000000000000000))


@kernel
def mark_slots(slots, words):
    for slot in slots:
        words[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)


@kernel
def keep_fitting(h, attribute, slots, fits, words):
    """Sets the bit of every document among some slots that has a string which fits."""
    for slot in slots:
        cell = h.first[attribute, slot]
        while cell >= 0:
            if h.kind[cell] == STRING and fits[h.rest[cell]]:
                words[slot >> 6] |= np.uint64(1) << np.uint64(slot & 63)
            cell = h.following[cell]


@inline
def has(h, terms, t, bounds, text, slot, marks):
    """Whether the document at a slot is as term t wants it."""
    attribute = terms[t, 0]
    if terms[t, 1] == MARKED:
        held = (marks[attribute, slot >> 6] >> np.uint64(slot & 63)) & np.uint64(1) != 0
        if terms[t, 2] != 0:  # negated, it needs the attribute
            held = not held and h.first[terms[t, 4], slot] != NO_CELL
        return held == (terms[t, 3] != 0)
    cell = h.first[attribute, slot]
    held = cell != NO_CELL
    if terms[t, 1] == RUNS and held:
        held = False
        while cell >= 0 and not held:
            for i in range(terms[t, 4], terms[t, 5]):
                if compare(h, cell, bounds[2 * i], text) >= 0 and compare(h, cell, bounds[2 * i + 1], text) < 0:
                    held = True
                    break
            cell = h.following[cell]
        held = held != (terms[t, 2] != 0)
    elif terms[t, 1] == PRESENT:
        held = held != (terms[t, 2] != 0)
    return held == (terms[t, 3] != 0)


@inline
def has_all(h, terms, but, bounds, text, slot, marks):
    for t in range(len(terms)):  # noqa: SIM110, Numba has no all()
        if t != but and not has(h, terms, t, bounds, text, slot, marks):
            return False
    return True


@kernel
def search_led(h, terms, led, bounds, text, places, marks, most):
    """Looks for a document that is as all terms want it, among those in the runs of term `led`, whose places are given.
    Returns its slot, -1 if there is none, or -2 if `most` were looked at and more are left.
    """
    size = h.blocks.shape[1]
    attribute, looked = terms[led, 0], 0
    for i in range(0, len(places), 2):
        low, high = places[i], places[i + 1]
        at = low // size
        while at * size < high and at < h.sizes[attribute]:
            block, begin, end = stretch(h, attribute, low, high, at)
            for j in range(begin, end):
                slot = h.slot[h.blocks[block, j]]
                if looked == most:
                    return np.int64(-2)
                looked += 1
                if has_all(h, terms, led, bounds, text, slot, marks):
                    return np.int64(slot)
            at += 1
    return np.int64(-1)


@kernel
def search_listed(h, terms, bounds, text, slots, marks):
    """The same among the documents at some slots; returns the slot, or -1."""
    for slot in slots:
        if has_all(h, terms, -1, bounds, text, slot, marks):
            return np.int64(slot)
    return np.int64(-1)


@kernel
def search_common(h, terms, marks, alive):
    """The same among all documents, 64 at a time; terms are attribute, what is asked, negated, wanted, row of marks."""
    for i in range(len(alive)):
        word = alive[i]
        for t in range(len(terms)):
            if word == 0:
                break
            here = h.present[terms[t, 0], i]
            bits = here if terms[t, 1] == PRESENT else marks[terms[t, 4], i]
            if terms[t, 2] != 0:
                bits = ~bits if terms[t, 1] == PRESENT else here & ~bits
            word &= bits if terms[t, 3] != 0 else ~bits
        if word != 0:
            return np.int64(64 * i) + np.int64(trailing_zeros(word))
    return np.int64(-1)


_NO_BOUNDS: I64 = np.zeros((0, 5), np.int64)
_NO_BYTES: NDArray[np.uint8] = np.zeros(0, np.uint8)


class Runs:
    """A set of values, ready for kernels."""

    __slots__ = ("bounds", "text")

    def __init__(self, keys: Sequence[tuple[Key, Key]]) -> None:
        flat = [key for pair in keys for key in pair]
        self.text = _NO_BYTES
        if any(key[3] for key in flat):
            self.text = np.frombuffer(bytearray(b"".join(key[3] for key in flat)), np.uint8)
        self.bounds = _NO_BOUNDS
        if flat:
            rows, at = [], 0
            for kind, key, rest, raw in flat:
                rows.append((kind, key, rest, at, at + len(raw)))
                at += len(raw)
            self.bounds = np.array(rows, np.int64)


class DocumentIndex:
    """The structure drawn above, for the attributes that rules ask of documents."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.strings = Strings()
        self.documents = 0
        self.alive: U64 = np.zeros(1, np.uint64)
        self.here: list[int] = []  # of each attribute, how many documents have it
        self.uneven: list[int] = []  # and how many of these have no value, or several
        self._cells = self._blocks = 0  # taken so far
        self._free_cells: list[int] = []
        self._free_blocks: list[int] = []
        cells, blocks = 64, 4
        self._arrays: dict[str, NDArray[Any]] = {
            "kind": np.zeros(cells, np.uint8), "key": np.zeros(cells, np.int64), "rest": np.zeros(cells, np.int64),
            "slot": np.zeros(cells, np.int32), "following": np.zeros(cells, np.int32),
            "first": np.full((1, 64), NO_CELL, np.int32), "blocks": np.zeros((blocks, BLOCK), np.int32),
            "count": np.zeros(blocks, np.int32), "directory": np.zeros((1, 4), np.int32),
            "sizes": np.zeros(1, np.int64), "present": np.zeros((1, 1), np.uint64),
        }  # fmt: skip
        self.forgotten = 0  # how often numbers of strings lost their meaning
        self.reused: list[int] = []  # numbers that have got another one since
        self._texts = 0  # cells with a string
        self._handle: Any = None
        self._table = self.strings.state  # of strings, as the handle has it

    @property
    def handle(self) -> Any:
        if self._handle is None or self.strings.state is not self._table:
            self._handle = make_index_handle(*self._arrays.values(), *self.strings.spans())
            self._table = self.strings.state
        return self._handle

    @property
    def size(self) -> int:
        return sum(array.nbytes for array in self._arrays.values()) + self.strings.size + 20 * len(self.strings)

    @property
    def slots(self) -> int:
        """How many slots there is room for."""
        return int(self._arrays["first"].shape[1])

    def present(self, attribute: int) -> U64:
        row: U64 = self._arrays["present"][attribute]
        return row

    def reserve(self, slots: int) -> None:
        """Make room for slots below that number."""
        have = self.slots
        if slots > have:
            more = max(2 * have, slots + 63 & ~63)
            self._grow("first", (len(self._arrays["first"]), more), NO_CELL)
            self._grow("present", (len(self._arrays["present"]), more // 64))
            alive = np.zeros(more // 64, np.uint64)
            alive[: len(self.alive)] = self.alive
            self.alive = alive

    def add_attribute(self, name: str) -> int:
        """Returns the number of an attribute, which no document has yet if it is new."""
        number = self.names.get(name)
        if number is None:
            number = self.names[name] = len(self.names)
            self.here.append(0)
            self.uneven.append(0)
            have = len(self._arrays["sizes"])
            if number >= have:
                self._grow("first", (2 * have, self.slots), NO_CELL)
                self._grow("present", (2 * have, self.slots // 64))
                self._grow("directory", (2 * have, self._arrays["directory"].shape[1]))
                self._grow("sizes", (2 * have,))
        return number

    def vacate(self, slot: int) -> None:
        """Take a document's values out, and forget it."""
        counts = np.empty(len(self.names), np.int64)
        for cell, block, kind in delete_document(self.handle, slot, counts).tolist():
            self._free_cells.append(cell)
            if block >= 0:
                self._free_blocks.append(block)
            self._texts -= kind == STRING
        for attribute, count in enumerate(counts.tolist()):
            if count != NO_CELL:
                self.here[attribute] -= 1
                self.uneven[attribute] -= count != 1
        self.alive[slot >> 6] &= np.uint64(~(1 << (slot & 63)) & (2**64 - 1))
        self.documents -= 1
        if self.strings.taken > 2 * self._texts + _SOME:
            self._forget_strings()

    def _forget_strings(self) -> None:
        """Leave out the strings that no document has any more."""
        used = np.zeros(len(self.strings), np.bool_)
        used[self._arrays["rest"][: self._cells][self._arrays["kind"][: self._cells] == STRING]] = True
        self.strings = self.strings.without(~used)
        self.forgotten += 1
        self.reused = []

    def located(self, attribute: int, runs: Runs) -> tuple[int, I64]:
        """Returns how many values of an attribute lie in a set, and the places where its runs begin and end."""
        places = np.empty(len(runs.bounds), np.int64)
        return int(locate(self.handle, attribute, runs.bounds, runs.text, places)), places

    def values(self, attribute: int) -> int:
        """Returns how many values of an attribute there are, if no document has several, or none."""
        return self.here[attribute]

    def lacking(self, attribute: int) -> int:
        """Returns the sum of MISSING and UNEVEN, where some documents are so."""
        missing = MISSING if self.here[attribute] < self.documents else 0
        return missing | UNEVEN if self.uneven[attribute] else missing

    def compared(self, asked: Sequence[tuple[int, str, bool, Any]], outcomes: I64) -> None:
        """Writes outcomes (comparisons.py): for each number, attribute, whether equality is asked, and value, what
        values of that attribute documents have. Unless equality is asked, which takes a search, an equal one counts
        only if it is the smallest or the largest of all.
        """
        rows, texts, at = [], [], 0
        for number, name, exactly, value in asked:
            attribute = self.names[name]
            kind, key, rest, raw = key_of(value)
            rows.append((number, attribute, exactly, self.lacking(attribute), kind, key, rest, at, at + len(raw)))
            if raw:
                texts.append(raw)
                at += len(raw)
        text = np.frombuffer(bytearray(b"".join(texts)), np.uint8) if texts else _NO_BYTES
        compare_each(self.handle, np.array(rows, np.int64), text, outcomes)

    def slots_in(self, attribute: int, runs: Runs) -> I64:
        """Returns the slots of the documents with a value in a set, one for each such value, by value."""
        count, places = self.located(attribute, runs)
        slots = np.empty(count, np.int64)
        listed(self.handle, attribute, places, slots)
        return slots

    def slots_before(self, attribute: int, time: int) -> list[int]:
        """Returns the slots of the documents whose time lies before a moment, in microseconds."""
        if not self._arrays["sizes"][attribute]:
            return []
        runs = Runs([((TIME, LEAST, LEAST, b""), (TIME, max(time, LEAST + 1), 0, b""))])
        return self.slots_in(attribute, runs).tolist()  # type: ignore[no-any-return]

    def bits(self, attribute: int, hits: int, places: I64) -> U64:
        """Returns a bit for every slot: whether its document has a value between places, as `hits` values do."""
        words = np.zeros(len(self.alive), np.uint64)
        if 2 * hits > self.here[attribute] and not self.uneven[attribute]:  # those that have not are fewer
            end = self._arrays["sizes"][attribute] * BLOCK
            mark(self.handle, attribute, np.concatenate(([0], places, [end])), words)
            return words ^ self.present(attribute)
        mark(self.handle, attribute, places, words)
        return words

    def bits_fitting(self, attribute: int, runs: Runs, fits: NDArray[np.bool_]) -> U64:
        """Returns a bit for every slot: whether its document has a string in the set whose number `fits`."""
        words = np.zeros(len(self.alive), np.uint64)
        keep_fitting(self.handle, attribute, self.slots_in(attribute, runs), fits, words)
        return words

    def put_document(self, slot: int, values: Iterable[tuple[int, list[Any] | None]]) -> None:
        """Enter the values that the document at a slot has of some attributes."""
        rows = []
        for attribute, some in values:
            if some is None:
                continue
            if not some:
                self._chain(attribute, slot, [])
                continue
            self.here[attribute] += 1
            self.uneven[attribute] += len(some) != 1
            for value in some:
                rows.append((attribute, self._new_cell(), *self._stored(value)))
        if rows:
            free = self._reserve_blocks(len(rows))  # before the handle: arrays may grow
            took = insert_document(self.handle, np.array(rows, np.int64), slot, free)
            del self._free_blocks[len(self._free_blocks) - took :]

    def _reserve_blocks(self, count: int) -> I64:
        """Returns so many free blocks, which are the last of `_free_blocks` from behind, and has room for them in the
        directory of any attribute.
        """
        if len(self._free_blocks) < count:
            self._make_blocks(count)
        directory = self._arrays["directory"]
        needed = max(self._arrays["sizes"].tolist()) + count
        if directory.shape[1] <= needed:
            self._grow("directory", (len(directory), 2 * needed))
        return np.array(self._free_blocks[: -count - 1 : -1], np.int64)

    def put_many(self, attribute: int, slots: Sequence[int], values: Sequence[list[Any] | None]) -> None:
        """The same of one attribute for many documents."""
        self._make_cells(sum(len(some) for some in values if some is not None))
        cells = []
        for slot, some in zip(slots, values, strict=True):
            if some is not None:
                mine = [self._cell(slot, value) for value in some]
                self._chain(attribute, slot, mine)
                cells += mine
        self._enter(attribute, np.array(cells, np.int32))

    def put_column(self, attribute: int, slots: I64, column: Column) -> None:
        """The same for many documents with one value each, given as arrays; none for those that the column lacks."""
        count = len(column.rows)
        again = min(count, len(self._free_cells))
        self._make_cells(count - again)
        arrays = self._arrays
        free = np.array(self._free_cells[len(self._free_cells) - again :], np.int32)
        cells = np.concatenate((free, np.arange(self._cells, self._cells + count - again, dtype=np.int32)))
        del self._free_cells[len(self._free_cells) - again :]
        self._cells += count - again
        chosen = slots[column.rows]
        arrays["kind"][cells], arrays["key"][cells], arrays["slot"][cells] = column.kind, column.key, chosen
        arrays["rest"][cells], arrays["following"][cells] = column.rest, NO_CELL
        if column.kind == STRING:
            holes = self.strings.holes()
            numbers = self.strings.intern_many(column.data, column.offsets)
            self.reused += np.intersect1d(numbers, holes).tolist()
            keys = np.empty(len(numbers), np.int64)
            prefix_keys(*self.strings.spans(), numbers, keys)
            arrays["key"][cells], arrays["rest"][cells] = keys[column.rest], numbers[column.rest]
            self._texts += count
        arrays["first"][attribute, chosen] = cells
        mark_slots(chosen, arrays["present"][attribute])
        self.here[attribute] += count
        self._enter(attribute, cells)

    def occupy(self, slots: I64) -> None:
        """Count documents at slots that were free."""
        mark_slots(slots, self.alive)
        self.documents += len(slots)

    def _enter(self, attribute: int, cells: I32) -> None:
        """Put cells into the order of an attribute: one by one, or by sorting all anew."""
        there = self.here[attribute] - len(cells)
        if 16 * len(cells) < there:
            free = self._reserve_blocks(len(cells))  # before the handle: arrays may grow
            took = insert_cells(self.handle, attribute, cells, free)
            del self._free_blocks[len(self._free_blocks) - took :]
            return
        sizes, counts = self._arrays["sizes"], self._arrays["count"]
        blocks = self._arrays["directory"][attribute, : sizes[attribute]]
        old = np.empty(int(counts[blocks].sum()), np.int32)
        ordered_cells(self.handle, attribute, old)
        self._free_blocks += blocks.tolist()
        sizes[attribute] = 0
        if len(cells) + len(old):
            self._sort(attribute, np.concatenate((old, cells)))

    def _sort(self, attribute: int, cells: I32) -> None:
        kind, key, rest = (self._arrays[name][cells] for name in ("kind", "key", "rest"))
        texts = kind == STRING
        if texts.any():
            # Strings in their order get the place of their text as rest, to sort by.
            numbers = np.unique(rest[texts])
            words = pa.array([self.strings.text(number) for number in numbers.tolist()], pa.large_string())
            ranks = np.zeros(len(self.strings), np.int64)
            ranks[numbers[pc.sort_indices(words).to_numpy()]] = np.arange(len(numbers))  # by bytes
            rest[texts] = ranks[rest[texts]]
        ordered = cells[np.lexsort((cells, rest, key, kind))]
        free = self._reserve_blocks(len(ordered) // (2 * BLOCK // 3) + 1)
        fill_blocks(self.handle, attribute, ordered, free)
        used = int(self._arrays["sizes"][attribute])
        del self._free_blocks[len(self._free_blocks) - used :]

    def _chain(self, attribute: int, slot: int, cells: list[int]) -> None:
        first, following = self._arrays["first"], self._arrays["following"]
        first[attribute, slot] = cells[0] if cells else VALUELESS
        for cell, after in zip(cells, [*cells[1:], NO_CELL][: len(cells)], strict=True):
            following[cell] = after
        self._arrays["present"][attribute, slot >> 6] |= np.uint64(1 << (slot & 63))
        self.here[attribute] += 1
        self.uneven[attribute] += len(cells) != 1

    def _new_cell(self) -> int:
        if self._free_cells:
            return self._free_cells.pop()
        if self._cells == len(self._arrays["kind"]):
            self._make_cells(1)
        self._cells += 1
        return self._cells - 1

    def _stored(self, value: Any) -> tuple[int, int, int]:
        """Returns kind, key and rest of a value that one more cell has."""
        kind, key, rest, _ = key_of(value)
        if kind == STRING:
            length, taken = len(self.strings), self.strings.taken
            rest = self.strings.intern(value)
            if rest < length and self.strings.taken > taken:
                self.reused.append(rest)
            self._texts += 1
        return kind, key, rest

    def _cell(self, slot: int, value: Any) -> int:
        cell, arrays = self._new_cell(), self._arrays
        arrays["kind"][cell], arrays["key"][cell], arrays["rest"][cell] = self._stored(value)
        arrays["slot"][cell] = slot
        return cell

    def _make_cells(self, more: int) -> None:
        have = len(self._arrays["kind"])
        if self._cells + more > have:
            for name in ("kind", "key", "rest", "slot", "following"):
                self._grow(name, (max(have + have // 2, self._cells + more),))

    def _make_blocks(self, more: int) -> None:
        have = len(self._arrays["count"])
        if self._blocks + more > have:
            room = max(have + have // 2, self._blocks + more)
            self._grow("blocks", (room, BLOCK))
            self._grow("count", (room,))
        self._free_blocks += range(self._blocks + more - 1, self._blocks - 1, -1)
        self._blocks += more

    def _grow(self, name: str, shape: tuple[int, ...], fill: int = 0) -> None:
        old = self._arrays[name]
        grown = np.full(shape, fill, old.dtype)
        grown[tuple(map(slice, old.shape))] = old
        self._arrays[name] = grown
        self._handle = None
