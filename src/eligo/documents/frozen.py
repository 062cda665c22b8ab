"""The values that documents have of an attribute, without the documents: all that a question about it alone needs.

    a part       the distinct values of one column of a table, all of one kind, ascending (values.py)
      key        int64
      rest       int64; nothing where all are 0, as they are but for integers beyond 2**53
      offsets    of strings: where the bytes of each lie in data, one more than there are values
      data       UTF-8
    an index     for each attribute some parts, one for each table of documents

Parts never change and need not be merged: a question is whether there is a value in some set, or outside of it, so the
answers of the parts are put together by OR. They may be mapped from files, and 100,000,000 documents are as many
values at most: O(log n) for each part, and no memory but the pages that are touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eligo.arrow import numpy_of
from eligo.compile.compiled import I64, U8, Arrays
from eligo.documents import index
from eligo.documents.columns import flat_column, in_one_piece
from eligo.documents.documents import Documents
from eligo.documents.index import DocumentIndex, Runs, prefix_keys
from eligo.documents.values import key_of
from eligo.jit import byte_at, inline, int64_at, kernel
from eligo.language.values import BOOLEAN, OBJECT, STRING

# A row of the table of parts that kernels get. The arrays are given by address, 0 for one that is empty: a kernel goes
# through the parts of an attribute in one call, and they are any number of arrays.
KIND, COUNT, KEY, REST, OFFSETS, DATA = range(6)
SMALLER, EQUAL, LARGER, OTHER = range(4)  # flags of `compare_values`
_OUTCOMES = (index.SMALLER, index.EQUAL, index.LARGER, index.OTHER)  # by flag
_NO_NUMBERS: I64 = np.zeros(0, np.int64)
_NO_BYTES: U8 = np.zeros(0, np.uint8)


@inline
def order_of(part, place, bound, text):
    """The order of the value at a place of a part and of a bound of its kind: negative, 0 or positive."""
    key = int64_at(part[KEY], place)
    if key != bound[1]:
        return np.int64(-1) if key < bound[1] else np.int64(1)
    if part[KIND] == STRING:
        if bound[2] == np.int64(-0x8000000000000000):  # before all strings
            return np.int64(1)
        at, stop = int64_at(part[OFFSETS], place), int64_at(part[OFFSETS], place + 1)
        i, end = bound[3], bound[4]
        while at < stop and i < end:
            byte = byte_at(part[DATA], at)
            if byte != text[i]:
                return np.int64(byte) - np.int64(text[i])
            at, i = at + 1, i + 1
        return np.int64((stop - at) - (end - i))
    rest = int64_at(part[REST], place) if part[REST] != 0 else np.int64(0)
    return np.int64(-1) if rest < bound[2] else np.int64(rest > bound[2])


@inline
def values_before(part, bound, text):
    """How many values of a part come before a bound."""
    if part[KIND] != bound[0]:
        return np.int64(0) if part[KIND] > bound[0] else part[COUNT]
    low, high = np.int64(0), part[COUNT]
    while low < high:
        middle = (low + high) // 2
        if order_of(part, middle, bound, text) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def count_values(parts, bounds, text):
    """How many values of all parts lie in runs, given as bounds: low, high, low, high."""
    total = np.int64(0)
    for p in range(len(parts)):
        for i in range(0, len(bounds), 2):
            low, high = values_before(parts[p], bounds[i], text), values_before(parts[p], bounds[i + 1], text)
            total += max(high - low, np.int64(0))
    return total


@kernel
def compare_values(parts, bound, text, exactly, flags):
    """Sets flags: some part has a value of the bound's kind that is smaller, equal, or larger; or of another kind. Not
    `exactly`: an equal one counts if it is the smallest or the largest of its part, which takes no search.
    """
    for p in range(len(parts)):
        part = parts[p]
        count = part[COUNT]
        if part[KIND] == BOOLEAN:  # objects stand behind true, and are of no kind
            while count > 0 and int64_at(part[KEY], count - 1) >= OBJECT:
                count -= 1
                flags[OTHER] = True
        if part[KIND] != bound[0]:
            flags[OTHER] |= count > 0
            continue
        if count == 0:
            continue
        first, last = order_of(part, np.int64(0), bound, text), order_of(part, count - 1, bound, text)
        flags[SMALLER] |= first < 0
        flags[EQUAL] |= first == 0 or last == 0
        flags[LARGER] |= last > 0
        if exactly and not flags[EQUAL] and first < 0 and last > 0:
            place = values_before(part, bound, text)
            flags[EQUAL] |= order_of(part, place, bound, text) == 0
        if flags[SMALLER] and flags[EQUAL] and flags[LARGER] and flags[OTHER]:
            return


@dataclass(frozen=True)
class Values:
    """A part, drawn above, and what is known of its table."""

    kind: int
    rows: int  # documents
    here: int  # of them have the attribute
    uneven: int  # of these have several values, or none
    key: I64
    rest: I64 = field(default_factory=_NO_NUMBERS.copy)
    offsets: I64 = field(default_factory=_NO_NUMBERS.copy)
    data: U8 = field(default_factory=_NO_BYTES.copy)

    def arrays(self) -> Arrays:
        return {"key": self.key, "rest": self.rest, "offsets": self.offsets, "data": self.data}

    def row(self) -> list[int]:
        """This part as kernels get it; it has to live as long as they do."""
        arrays = (self.key, self.rest, self.offsets, self.data)
        return [self.kind, len(self.key), *(array.ctypes.data if len(array) else 0 for array in arrays)]


def values_of_column(column: pa.ChunkedArray | pa.Array) -> Values:
    """The values of a column of documents, each once. A list is several values; a struct is an object."""
    rows, here, uneven = len(column), len(column) - column.null_count, 0
    several = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if several:
        there = column.drop_null()
        lengths = numpy_of(in_one_piece(pc.list_value_length(there))).astype(np.int64)
        column = pc.list_flatten(there)
        known = numpy_of(in_one_piece(column.is_valid())).astype(np.bool_)
        if pa.types.is_floating(column.type):
            known &= ~numpy_of(in_one_piece(pc.is_nan(column).fill_null(False))).astype(np.bool_)
        ends = np.cumsum(lengths)
        before = np.concatenate(([0], np.cumsum(known)))
        uneven = int((before[ends] - before[ends - lengths] != 1).sum())
    kind = column.type
    if pa.types.is_null(kind):
        return Values(BOOLEAN, rows, here, uneven, _NO_NUMBERS)
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        objects = int(len(column) > column.null_count)
        return Values(BOOLEAN, rows, here, uneven, np.full(objects, OBJECT, np.int64))
    if pa.types.is_string(kind):  # whose bytes in one piece may be more than 32 bits of offsets reach
        column = column.cast(pa.large_string())
    flat = flat_column(column)
    here = here if several else len(flat.rows)  # NaN is absent
    if flat.kind == STRING:
        return Values(STRING, rows, here, uneven, **_sorted_texts(flat.data, flat.offsets))
    if not flat.rest.any():
        return Values(flat.kind, rows, here, uneven, np.unique(flat.key))
    order = np.lexsort((flat.rest, flat.key))
    key, rest = flat.key[order], flat.rest[order]
    first = np.ones(len(key), np.bool_)
    first[1:] = (key[1:] != key[:-1]) | (rest[1:] != rest[:-1])
    return Values(flat.kind, rows, here, uneven, key[first], rest[first])


def _sorted_texts(data: NDArray[np.uint8], offsets: I64) -> dict[str, Any]:
    """Strings, each different, in the order of their bytes."""
    count = len(offsets) - 1
    texts = pa.Array.from_buffers(
        pa.large_string(), count, [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(data)]
    )
    texts = texts.take(pc.sort_indices(texts))
    begin = np.frombuffer(texts.buffers()[1], np.int64)[: count + 1]
    heap = np.frombuffer(texts.buffers()[2] or b"", np.uint8)[: begin[-1]]
    key = np.empty(count, np.int64)
    prefix_keys(heap, begin, begin[1:], np.arange(count), key)
    return {"key": key, "offsets": begin, "data": heap}


class FrozenIndex(DocumentIndex):
    """What questions about one attribute alone ask of a `DocumentIndex`; nothing comes or goes, and there are no slots.

    Where an attribute is `uneven`, questions that need even ones cannot be asked (segments/joining.py).
    """

    def __init__(self, documents: int, attributes: Iterable[tuple[str, Sequence[Values]]]) -> None:
        super().__init__()
        self.documents = documents
        self._parts: list[Sequence[Values]] = []
        self._tables: list[I64] = []
        for name, parts in attributes:
            self.names[name] = len(self.names)
            self.here.append(sum(part.here for part in parts))
            self.uneven.append(sum(part.uneven for part in parts))
            self._parts.append(parts)
            self._tables.append(np.array([part.row() for part in parts], np.int64).reshape(-1, 6))

    def values(self, attribute: int) -> int:
        return sum(len(part.key) for part in self._parts[attribute])

    def located(self, attribute: int, runs: Runs) -> tuple[int, I64]:
        """Returns how many values lie in a set, each counted once for every part that has it; and no places."""
        return int(count_values(self._tables[attribute], runs.bounds, runs.text)), _NO_NUMBERS

    def compared(self, asked: Sequence[tuple[int, str, bool, Any]], outcomes: I64) -> None:
        for number, name, exactly, value in asked:
            attribute = self.names[name]
            kind, key, rest, raw = key_of(value)
            bound = np.array((kind, key, rest, 0, len(raw)), np.int64)
            text = np.frombuffer(raw, np.uint8) if raw else _NO_BYTES
            flags = np.zeros(4, np.bool_)
            compare_values(self._tables[attribute], bound, text, exactly, flags)
            found = sum(outcome for outcome, flag in zip(_OUTCOMES, flags.tolist(), strict=True) if flag)
            outcomes[number] = found | self.lacking(attribute)


class FrozenDocuments(Documents):
    """Documents of which nothing is known but a `FrozenIndex`."""

    def __init__(self, index: FrozenIndex) -> None:
        super().__init__(keep=None)
        self.index = index

    def watch(self, names: Iterable[str]) -> None:
        """All that will be asked is in the index."""
