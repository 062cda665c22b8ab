"""Reads rows of an Arrow table into event buffers, by kernels (arrow_kernels.py) as a plan says (arrow_plan.py).

Columns that are slow, and those that turn out to be odd in some rows, are read by `arrow.py`, which says what a table
means; the others are not, so that one odd column does not slow them.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa

from eligo.arrow import room
from eligo.compile import arrow_kernels as kernels
from eligo.compile.arrow import Entries, read_columns
from eligo.compile.arrow_events import TableEvents
from eligo.compile.arrow_nodes import FIELDS, gather
from eligo.compile.arrow_plan import Plan, addresses
from eligo.compile.compiled import I64
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer
from eligo.errors import EventError

_SHORT: Final = 256  # rows of a stretch on the average, below which copying them is worth it
_NO_NODES: Final[I64] = np.zeros((0, FIELDS), np.int64)
_NO_INTEGERS: Final[I64] = np.zeros(0, np.int64)
_NO_ENTRIES: Final[Entries] = (_NO_INTEGERS, _NO_INTEGERS, _NO_INTEGERS)

_RELEASE: Final = 8  # the word of the struct, of ten, with the function that frees it
_FREE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Exported:
    """A record batch as Arrow describes it in memory, as long as this object lives.

    `__arrow_c_array__` gives the same, but describes the schema as well, which takes twice as long.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._struct = (ctypes.c_int64 * 10)()
        self.address = ctypes.addressof(self._struct)
        batch._export_to_c(self.address)

    def __del__(self) -> None:
        if self._struct[_RELEASE]:
            _FREE(self._struct[_RELEASE])(self.address)


class Stretches:
    """The rows of a table, in parts that are one array in every column, and the nodes of these (arrow_nodes.py).

    The table has the columns that the plan reads. If its chunks are `short`, there are no stretches: some of its rows
    at a time are `copied` together.
    """

    def __init__(self, table: pa.Table | pa.RecordBatch, plan: Plan, copied: bool = False) -> None:
        self.plan = plan
        found = _batches(table, copied) if plan.read else []
        self.short, batches = found is None, found or []
        self.starts = np.cumsum([0, *map(len, batches)]) if plan.read else np.array([0, len(table)])
        self._exported = [Exported(batch) for batch in batches]
        self.nodes = np.zeros((len(self.starts) - 1, len(plan.paths), FIELDS), np.int64)
        self.known = 0  # values of dictionaries
        for number, one in enumerate(self._exported):
            before = self.nodes[number - 1] if number else _NO_NODES
            self.known = int(gather(one.address, plan.paths, plan.branches, self.nodes[number], before, self.known))

    def between(self, first: int, stop: int) -> tuple[I64, I64]:
        """Nodes and starts of the stretches that have some of these rows."""
        low, high = np.searchsorted(self.starts, first, "right") - 1, np.searchsorted(self.starts, stop)
        return self.nodes[low:high], self.starts[low : high + 1]


def _batches(table: pa.Table | pa.RecordBatch, copied: bool) -> list[pa.RecordBatch] | None:
    """The rows of a table, each of its columns one array in each batch; None if batches are short, unless rows are to
    be `copied` together.
    """
    if isinstance(table, pa.RecordBatch):
        return [table]
    if copied:
        with suppress(pa.ArrowException):  # dictionaries that differ, for some types
            table = table.combine_chunks()
    elif _are_short(table.column(0).num_chunks, table):
        return None
    batches: list[pa.RecordBatch] = table.to_batches()
    return None if not copied and _are_short(len(batches), table) else batches


def _are_short(count: int, table: pa.Table) -> bool:
    return count > 1 and count * _SHORT > len(table)


class Reader:
    """Reads the rows of one table for one encoder; one thread at a time does."""

    def __init__(self, stretches: Stretches, encoder: Encoder) -> None:
        self._stretches, self._plan, self._encoder = stretches, stretches.plan, encoder
        self._seen, self._clock = np.zeros(len(encoder.attributes), np.int64), 0
        self._look_up()

    def _look_up(self) -> None:
        self._known = np.zeros(2 * self._stretches.known, np.int64)
        self._state, self._table = self._encoder.strings.state, self._encoder.strings.table()
        self._strings = np.array([*addresses(self._table), len(self._table[-1])], np.int64)

    def is_for(self, encoder: Encoder) -> bool:
        """Whether it reads what rules name now; it looks up the strings that rules name now then."""
        if encoder is not self._encoder or self._plan.attributes != len(encoder.metas):
            return False
        if self._state is not encoder.strings.state:
            self._look_up()
        return True

    def encode(self, first: int, events: TableEvents, buffer: EventBuffer) -> None:
        """Put rows into an empty buffer, the first of which is the row `first` of the table."""
        if self._stretches.short:
            stretches = Stretches(events.columns(self._plan.read), self._plan, copied=True)
            return Reader(stretches, self._encoder).encode(0, events, buffer)
        slow = self._plan.slow
        try:
            while odd := self._encode(first, events, buffer, slow):
                slow = slow | odd
                buffer.clear()
        except EventError:  # but a column before the one that is wrong may be odd, and wrong
            self._read(events, set(self._plan.numbers.tolist()), buffer)
            raise
        return None

    def _read(self, events: TableEvents, slow: set[int], buffer: EventBuffer) -> list[list[Entries]]:
        """The entries of columns, read the readable way, in the order of the plan."""
        if not slow:
            return []
        numbers = sorted(slow)
        pairs = numbers.index(self._plan.pairs) if self._plan.pairs in slow else -1
        found = read_columns(events.columns(numbers), self._encoder, buffer, pairs)
        if pairs >= 0:
            found.append(found.pop(pairs))
        return found

    def _encode(self, first: int, events: TableEvents, buffer: EventBuffer, slow: set[int]) -> set[int]:
        """Put rows into an empty buffer. Returns the numbers of columns that are odd, so that it was in vain."""
        plan, stop = self._plan, first + len(events)
        columns, numbers = plan.with_parts(slow)
        nodes, starts = self._stretches.between(first, stop)
        part_offsets, part_rows, part_metas, part_keys = _parts(self._read(events, slow, buffer))
        places = np.zeros((len(nodes), len(columns)) if plan.has_maps else (0, 0), np.int64)
        pairs = _NO_INTEGERS
        if plan.has_maps:
            pairs = room(int(kernels.locate_pairs(nodes, starts, columns, first, stop, places)))
        counts, odd = np.zeros(len(events) + 1, np.int64), np.zeros(len(columns), np.uint8)
        last, repeats = np.zeros(len(events), np.int64), np.zeros(len(events), np.uint8)
        if plan.pairs < 0:
            last = _NO_INTEGERS
        elif plan.pairs in slow:
            last[:] = np.bincount(part_rows[part_offsets[-2] :], minlength=len(events))
        texts, size, self._clock = kernels.count(
            nodes, starts, columns, plan.names, first, stop, part_rows, places, pairs, self._seen,
            self._clock, counts, last, repeats, odd,
        )  # fmt: skip
        if not odd.any():
            widest = int(counts.max())
            offsets = np.cumsum(counts)
            total = int(offsets[-1])
            if texts:
                buffer.make_text_room(buffer.texts + texts, buffer.text_end + size)
            buffer.replace(offsets, room(total), room(total), widest)
            buffer.texts, buffer.text_end = kernels.fill(
                nodes, starts, columns, plan.names, self._strings, self._known, first, stop, part_rows, part_metas,
                part_keys, part_offsets, places, pairs, repeats, offsets[:-1].copy(), buffer.handle, buffer.texts,
                buffer.text_end, odd,
            )  # fmt: skip
            if not odd.any():
                return set() if plan.pairs < 0 else self._given_twice(slow, last, buffer)
        return set(numbers[odd != 0].tolist())

    def _given_twice(self, slow: set[int], last: I64, buffer: EventBuffer) -> set[int]:
        """All columns, if an event has an attribute both by a column and by pairs, which come last."""
        every = set(self._plan.numbers.tolist())
        if slow == every:
            return set()
        known = int(buffer.meta.max(initial=0) >> 8) + 1
        if known > len(self._seen):  # an attribute that has come since, read the readable way
            self._seen = np.zeros(known, np.int64)
        twice, self._clock = kernels.are_given_twice(buffer.offsets, buffer.meta, last, self._seen, self._clock)
        return every if twice else set()


def _parts(columns: list[list[Entries]]) -> tuple[I64, I64, I64, I64]:
    """The entries of columns, those of one together and sorted by row: where each column's begin, rows, metas, keys."""
    offsets, sorted_entries = [0], [_NO_ENTRIES]
    for pieces in columns:
        rows, metas, keys = (np.concatenate(arrays) for arrays in zip(_NO_ENTRIES, *pieces, strict=True))
        order = np.argsort(rows, kind="stable")
        sorted_entries.append((rows[order], metas[order], keys[order]))
        offsets.append(offsets[-1] + len(rows))
    rows, metas, keys = (np.concatenate(arrays) for arrays in zip(*sorted_entries, strict=True))
    return np.array(offsets), rows, metas, keys
