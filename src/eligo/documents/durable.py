"""Documents on disk: one journal (store/journal.py), which is replayed when it is opened.

    STATE     what is kept, the number of the next document, the latest time; where it changes, and at the start
    ADD       documents: number, owners that it was delivered to, bytes
    TABLE     documents: numbers, and an Arrow stream with a row for each
    REMOVE    numbers, and the latest time so far, which may have been that of one of them

What a count or an age lets go is not written down: it follows from what came. Replaying is folding: documents that came
and went cost nothing, and the rest is put in place at once. When a journal is much longer than what it comes to, it is
written anew, beside, and takes the other's place by one rename.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from eligo.compile.compiled import I64
from eligo.errors import JournalError
from eligo.store.files import sync_directory
from eligo.store.journal import Journal, Record, SyncPolicy, read_journal

if TYPE_CHECKING:
    from eligo.documents.documents import Documents, Keep

STATE: Final = 1
ADD: Final = 2
TABLE: Final = 3
REMOVE: Final = 4

NAME: Final = "documents.log"
_BELONGS: Final = "documents"
_PIECE: Final = 1000  # documents of one record, where many are written
_WORTH: Final = 64 << 20  # bytes that nobody writes anew for

Added = tuple[int, tuple[str, ...], bytes]  # number, owners, bytes
_encode = msgspec.msgpack.Encoder().encode
_added = msgspec.msgpack.Decoder(list[Added]).decode
_removed = msgspec.msgpack.Decoder(tuple[list[int], int]).decode
_table = msgspec.msgpack.Decoder(tuple[bytes, bytes]).decode


class State(msgspec.Struct, frozen=True, array_like=True):
    """The payload of STATE."""

    count: int | None
    age: int | None
    at: str | None
    next: int
    newest: int


def state_payload(keep: Keep, following: int, newest: int) -> bytes:
    return _encode(State(keep.count, keep.age, keep.at, following, newest))


def add_payload(added: Sequence[Added]) -> bytes:
    return _encode(added)


def table_payload(numbers: I64, table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return _encode((np.ascontiguousarray(numbers, np.int64).tobytes(), sink.getvalue().to_pybytes()))


def remove_payload(numbers: Sequence[int], newest: int) -> bytes:
    return _encode((numbers, newest))


def write(documents: Documents, path: Path) -> None:
    """Write documents as a journal of their own, whole or not at all; with their lock held."""
    temporary = path.with_suffix(".new")
    with suppress(FileNotFoundError):
        temporary.unlink()
    try:
        with Journal.open(temporary, _BELONGS, "never") as journal:
            for kind, payload in documents.dumped():
                journal.append(kind, payload)
            journal.sync()
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(path.parent)


def read(path: Path) -> Folded:
    """What a journal comes to, without changing or locking it."""
    return Folded(read_journal(path, _BELONGS), path)


def pieces(added: Iterator[Added]) -> Iterator[Record]:
    """Documents as records of some length."""
    some: list[Added] = []
    for one in added:
        some.append(one)
        if len(some) == _PIECE:
            yield ADD, add_payload(some)
            some = []
    if some:
        yield ADD, add_payload(some)


class Folded:
    """What records come to: the documents that are there in the end, in the order of their numbers."""

    def __init__(self, records: Iterable[Record], source: Path) -> None:
        self.state: State | None = None
        self.single: dict[int, Added] = {}
        self.tables: list[tuple[I64, pa.Table, Any]] = []  # numbers, rows, which of them are there
        self.next, self.newest = 0, -(2**63)
        self._left = 0
        try:
            for kind, payload in records:
                self._take(kind, payload, source)
            self._expire()
        except (msgspec.MsgspecError, pa.ArrowException, KeyError) as error:
            raise JournalError(
                f"{source}: has a record that cannot be read: {error}; it was written by another version of eligo, or "
                "is no journal of documents"
            ) from error

    def _take(self, kind: int, payload: bytes, source: Path) -> None:
        if kind == STATE:
            self._expire()
            self.state = msgspec.msgpack.decode(payload, type=State)
            self.next, self.newest = max(self.next, self.state.next), max(self.newest, self.state.newest)
        elif kind == ADD:
            for one in _added(payload):
                self.single[one[0]] = one
                self.next = max(self.next, one[0] + 1)
                self._left += 1
        elif kind == TABLE:
            raw, stream = _table(payload)
            given = np.frombuffer(raw, np.int64)
            self.tables.append((given, pa.ipc.open_stream(stream).read_all(), np.ones(len(given), np.bool_)))
            self.next = max(self.next, int(given[-1]) + 1)
            self._left += len(given)
        elif kind == REMOVE:
            self._expire()
            numbers, newest = _removed(payload)
            self.newest = max(self.newest, newest)
            for number in numbers:
                self._remove(number)
        else:
            raise JournalError(f"{source}: has a change of kind {kind}, written by a newer eligo; upgrade this one")

    def _remove(self, number: int) -> None:
        if self.single.pop(number, None) is not None:
            self._left -= 1
            return
        for numbers, _, alive in self.tables:
            row = int(np.searchsorted(numbers, number))
            if row < len(numbers) and numbers[row] == number and alive[row]:
                alive[row] = False
                self._left -= 1

    def _expire(self) -> None:
        """Let go what a count lets go; what an age does is seen in the end, because the latest time only grows."""
        if self.state is None or self.state.count is None:
            return
        while self._left > self.state.count:
            oldest = next(iter(self.single), None)
            first = next(((n, alive) for n, _, alive in self.tables if alive.any()), None)
            if first is not None:
                row = int(np.argmax(first[1]))
                if oldest is None or first[0][row] < oldest:
                    # Many at once: all of the table that come before the oldest single one.
                    most = self._left - self.state.count
                    rows = np.flatnonzero(first[1])
                    rows = rows[:most] if oldest is None else rows[first[0][rows] < oldest][:most]
                    first[1][rows] = False
                    self._left -= len(rows)
                    continue
            assert oldest is not None
            del self.single[oldest]
            self._left -= 1

    def living_tables(self) -> Iterator[tuple[I64, pa.Table]]:
        """Numbers and rows of what is left of tables, and forget it."""
        found, self.tables = sorted(self.tables, key=lambda part: int(part[0][0])), []
        for numbers, table, alive in found:
            if alive.any():
                yield numbers[alive], table.filter(pa.array(alive))


class Log(Folded):
    """The journal of some documents, open for writing, and what it comes to."""

    def __init__(self, path: Path, sync: SyncPolicy) -> None:
        self._sync = sync
        self.journal = Journal.open(path, _BELONGS, sync)
        try:
            super().__init__(self.journal.replayed, path)
        except BaseException:
            self.journal.close()
            raise
        self._long = 2 * self.journal.size + _WORTH

    @property
    def is_long(self) -> bool:
        """Whether it has become twice as long as when it was last written anew, or opened."""
        return self.journal.size > self._long

    def rewrite(self, documents: Documents) -> None:
        """Write the documents anew, in place of all that led to them; with their lock held."""
        path = self.journal.path
        write(documents, path)
        # The old file has lost its name. Nobody writes to it, because the caller has the lock.
        self.journal.close()
        self.journal = Journal.open(path, _BELONGS, self._sync)
        self.journal.replayed  # noqa: B018, what it has is here already
        self._long = 2 * self.journal.size + _WORTH
