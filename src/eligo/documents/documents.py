"""The documents that rules with quantifiers ask about: the events seen before.

    records    every document, all of its attributes, as bytes by slot (records.py)
    index      the attributes that some rule names, in order (index.py)
    sequence   of every slot the number of its document, ascending in the order of adding; -1 for a free slot
    received   of every owner the documents that were delivered to him, by number and slot

A document without a place in the index costs its bytes. An attribute comes into the index when the first rule names it,
and all documents are read for it then.

Writers hold `lock`. Readers enter `gate`, many at once, and what they see stands still meanwhile.
"""

from __future__ import annotations

import logging
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from os import PathLike
from pathlib import Path
from threading import get_ident
from typing import Any
from uuid import uuid4
from weakref import WeakMethod

import numpy as np
import pyarrow as pa

from eligo.arguments import directory_path, shown
from eligo.compile.compiled import I64
from eligo.documents import durable
from eligo.documents.columns import flat_column, is_flat, rows_of
from eligo.documents.durable import NAME, Added, Folded, Log, read
from eligo.documents.index import DocumentIndex
from eligo.documents.records import Records
from eligo.documents.values import packed, plain_document, show, time_of, unpacked, values_of
from eligo.errors import EventError, OptionError
from eligo.forking import RULES, fork_lock
from eligo.interrupts import uninterrupted
from eligo.language.quantified import of_document
from eligo.language.reference import pair_holds
from eligo.language.text import parse
from eligo.rule import Reject
from eligo.segments.encoding import as_events
from eligo.segments.living.gate import Gate
from eligo.store.journal import Record, SyncPolicy

_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LOST = (
    "a thread was adding documents when this process was forked, so here they can be read but not changed: "
    "fork when no thread changes them"
)
_MICROSECOND = timedelta(microseconds=1)
_MANY = 64  # documents that listeners are not told of one by one
UNSAID: Any = object()
log = logging.getLogger("eligo")
Document = dict[str, Any]


@dataclass(frozen=True)
class Keep:
    """How many documents are kept, or how long: `age` in microseconds by the attribute `at`."""

    count: int | None = None
    age: int | None = None
    at: str | None = None


def keep_of(keep: object, at: object) -> Keep:
    """Returns what `keep` and `at` ask for, checked."""
    if at is not None and not (isinstance(at, str) and at):
        raise OptionError(f"at is the name of an attribute that holds a time, not {shown(at)}")
    if keep is None or (isinstance(keep, int) and not isinstance(keep, bool)):
        if at is not None:
            raise OptionError(f"at={at!r} is for documents that are kept by age: keep='7d'")
        if keep is not None and keep < 1:
            raise OptionError(f"keep is how many documents are kept, 1 or more, not {shown(keep)}")
        return Keep(count=keep)
    span = keep
    if isinstance(keep, str):
        found = re.fullmatch(r"\s*(\d{1,9})\s*([smhdw])\s*", keep, re.ASCII)
        with suppress(OverflowError):
            span = timedelta(seconds=int(found[1]) * _SPANS[found[2]]) if found else None
    if not isinstance(span, timedelta) or span <= timedelta(0):
        raise OptionError(
            f"keep is a number of documents, an age such as '7d', '12h', '30m' or '45s', or None for all, "
            f"not {shown(keep)}"
        )
    if at is None:
        raise OptionError(f"keep={keep!r} is an age: name the attribute with the time of a document, at='published'")
    return Keep(age=span // _MICROSECOND, at=at)


class Documents:
    """Events that were seen before, for rules with `exists d (…)` and `forall d (…)`. Threads may read and add at once.

    keep   how many documents are kept, the newest, 1,000,000 if nothing is said; or for how long, '7d', '12h', '30m',
           '45s' or a timedelta, by the time that the attribute `at` holds: what is older than that before the newest is
           gone. None keeps all.
    path   a directory: what comes and goes is written down there before the call that does it returns, and is there
           again when it is next opened, whatever ended the process; `keep` is as it was, if nothing is said.
    sync   what a power failure may take: with "always" nothing, with "second", or a number of seconds, what came in so
           long, with "never" what the operating system has not written yet.

        docs = Documents(keep=100_000)
        m = Matcher(documents=docs)
        m.add("cheaper", "exists d (author = d.author and price < d.price)")
        m.publish({"author": "Smith", "price": 20})    # []
        m.publish({"author": "Smith", "price": 15})    # ['cheaper']
    """

    _log: Log | None
    _next: int  # number of the next document

    def __init__(
        self,
        keep: int | str | timedelta | None = UNSAID,
        *,
        at: str | None = None,
        path: str | PathLike[str] | None = None,
        sync: SyncPolicy = "always",
    ) -> None:
        wanted = None if keep is UNSAID and at is None else keep_of(1_000_000 if keep is UNSAID else keep, at)
        if path is None:
            self._begin(wanted or Keep(1_000_000))
            return
        directory = Path(directory_path("path", path))
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise OptionError(f"{directory}: is a file; documents are kept in a directory") from None
        self._restore(Log(directory / NAME, sync), wanted)

    @classmethod
    def read(cls, path: Path) -> Documents:
        """Returns the documents that a file has; what becomes of them is not written down."""
        made = cls.__new__(cls)
        made._restore(read(path), None)
        return made

    @classmethod
    def open(cls, path: Path, sync: SyncPolicy) -> Documents:
        """Returns the documents that a file has; what becomes of them is written down there."""
        made = cls.__new__(cls)
        made._restore(Log(path, sync), None)
        return made

    def _restore(self, found: Folded, keep: Keep | None) -> None:
        """Have the documents that were written down, and keep as many, or for as long, as is said now or was then."""
        state = found.state
        before = Keep(1_000_000) if state is None else Keep(state.count, state.age, state.at)
        self._begin(before if keep is None else keep)
        with self.lock, self.gate:
            self._newest = found.newest
            # Numbers ascend: what came alone between two tables is put in place between them.
            tables = list(found.living_tables())
            if self.keep.age is not None:  # each has to have a time
                for numbers, table in tables:
                    rows = zip(numbers.tolist(), map(plain_document, rows_of(table)), strict=True)
                    found.single |= {number: (number, (), packed(row)) for number, row in rows}
                tables = []
            singles, done = sorted(found.single), 0
            for numbers, table in tables:
                end = bisect_left(singles, int(numbers[0]))
                self._place_added([found.single[number] for number in singles[done:end]])
                self._place_table(table, numbers)
                done = end
            self._place_added([found.single[number] for number in singles[done:]])
            found.single = {}
            self._next = max(self._next, found.next)
            self._expire()
        if isinstance(found, Log):
            if state is None or self.keep != before:
                found.journal.append(durable.STATE, durable.state_payload(self.keep, self._next, self._newest))
            self._log = found

    def _begin(self, keep: Keep) -> None:
        self.keep = keep
        self.lock = fork_lock(self, "lock", RULES, _LOST)
        self.gate = Gate()
        self.index = DocumentIndex()
        self.changes = 0  # so far
        self._records = Records()
        self._sequence: I64 = np.full(64, -1, np.int64)
        self._next = 0
        self._free: list[int] = []
        self._slots = 0  # used so far
        self._queue = array("q")  # numbers and slots of documents, by number, and of some that are gone
        self._head = 0  # where the oldest document stands there, or one before it
        self._newest = -(2**63)  # the latest time of a document so far
        self._received: dict[str, array[int]] = {}  # numbers and slots
        self._listeners: list[WeakMethod[Callable[[int, Document], None]]] = []
        self._log = None
        self._swept = 0  # changes since what is gone was last left out of `received`
        if self.keep.at is not None:
            self.watch({self.keep.at})

    # -- changing

    def add(self, document: Mapping[str, Any]) -> int:
        """Keep a document; returns its number, which is one more than that of the document before."""
        with self.lock:
            return self.put(self.checked(document))

    def add_many(self, documents: Any, *, on_error: str = "raise") -> list[Reject]:
        """Keep many documents: an Arrow, pandas or Polars table, or an iterable of dicts.

        With on_error="raise" the first that cannot be kept raises, and none is; with "collect" the others are kept and
        the rejects are returned.
        """
        if on_error not in ("raise", "collect"):
            raise OptionError(f"on_error is 'raise' or 'collect', not {shown(on_error)}")
        given = as_events(documents)
        if isinstance(given, pa.RecordBatch):
            given = pa.Table.from_batches([given])
        if isinstance(given, pa.Table) and is_flat(given) and self.keep.age is None:
            with self.lock:
                self._put_table(given)
            return []
        rejects: list[Reject] = []
        good: list[Document] = []
        newest = self._newest
        for row, one in enumerate(rows_of(given)):
            try:
                document = plain_document(one)
                newest = max(newest, self._timely(document, newest))
                good.append(document)
            except EventError as error:
                if on_error == "raise":
                    raise EventError(f"document {row}: {error}") from None
                rejects.append(Reject(row, None, str(error)))
        with self.lock:
            self.put_many(good)
        return rejects

    def remove(self, which: int | Iterable[int] | str) -> int:
        """Remove a document by its number, several by theirs, or all that an expression holds for: "author = 'Smith'".

        Returns how many. A number that is not there is refused, and then nothing is removed.
        """
        with self.lock:
            slots = self._slots_of(which)
            self._remove(slots)
            return len(slots)

    def clear(self) -> None:
        """Remove all documents."""
        with self.lock:
            self._remove(self.alive().tolist())

    def _remove(self, slots: list[int]) -> None:
        if slots:
            numbers = self._sequence[slots].tolist()
            payload = partial(durable.remove_payload, numbers, self._newest)
            with self._written(durable.REMOVE, payload), self.gate, uninterrupted():
                for slot in slots:
                    self._drop(slot)
            self._shorten()

    def checked(self, document: Mapping[str, Any]) -> Document:
        """Returns a document as it is kept; refuses what cannot be."""
        found = plain_document(document)
        self._timely(found, self._newest)
        return found

    def put(self, document: Document, owners: Sequence[str] = ()) -> int:
        """Keep a checked document, delivered to some owners; with `lock` held. Returns its number."""
        number = self._next
        self._put([(number, tuple(owners), packed(document))], [document])
        return number

    def put_many(self, documents: list[Document]) -> None:
        """Keep checked documents; with `lock` held."""
        first = self._next
        if self.keep.count is not None and len(documents) > self.keep.count:
            first += len(documents) - self.keep.count  # those before would be gone at once
            documents = documents[-self.keep.count :]
        if documents:
            self._put([(first + i, (), packed(document)) for i, document in enumerate(documents)], documents)

    def _put(self, added: list[Added], documents: list[Document]) -> None:
        with self._written(durable.ADD, lambda: durable.add_payload(added)), self.gate, uninterrupted():
            self._place_added(added, documents)
            self._expire()
        self._shorten()

    def _put_table(self, table: pa.Table) -> None:
        """Keep the rows of a table whose columns are flat; with `lock` held."""
        first = self._next
        if self.keep.count is not None and table.num_rows > self.keep.count:
            first += table.num_rows - self.keep.count  # those before would be gone at once
            table = table.slice(table.num_rows - self.keep.count)
        if not table.num_rows:
            return
        numbers = np.arange(first, first + table.num_rows)
        with self._written(durable.TABLE, lambda: durable.table_payload(numbers, table)), self.gate, uninterrupted():
            self._place_table(table, numbers)
            self._expire()
        self._shorten()

    def close(self) -> None:
        """End writing to `path`: the documents can be read, and another may open them; changes are refused."""
        with self.lock:
            if self._log is not None:
                self._log.journal.close()

    def __enter__(self) -> Documents:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _written(self, kind: int, payload: Callable[[], bytes]) -> AbstractContextManager[None]:
        """Around a change: it is written down before, where documents are kept on disk."""
        return nullcontext() if self._log is None else self._log.journal.entry(kind, payload())

    def _shorten(self) -> None:
        """Write a journal anew that has grown long; if that fails, the old one goes on."""
        if self._log is not None and self._log.is_long:
            try:
                self._log.rewrite(self)
            except OSError:
                log.exception("%s could not be written anew", self._log.journal.path)

    def write(self, directory: Path) -> str:
        """Write all documents to a directory, unless they are kept there already; returns the name of the file."""
        with self.lock:
            if self._log is not None and self._log.journal.is_open_in(directory):
                return self._log.journal.path.name
            name = f"documents-{uuid4().hex}.log"
            durable.write(self, directory / name)
            return name

    def dumped(self) -> Iterator[Record]:
        """The records that come to these documents; with `lock` held."""
        yield durable.STATE, durable.state_payload(self.keep, self._next, self._newest)
        owners: dict[int, list[str]] = {}
        for owner, pairs in self._received.items():
            for number in self._living(pairs)[:, 0].tolist():
                owners.setdefault(number, []).append(owner)
        for slots, table in self._records.tables():
            yield durable.TABLE, durable.table_payload(self._sequence[slots], table)
        alone = self.alive()
        alone = alone[self._records.is_single(alone)]
        numbers = self._sequence[alone].tolist()
        yield from durable.pieces(
            (number, tuple(owners.get(number, ())), self._records.raw(slot))
            for number, slot in zip(numbers, alone.tolist(), strict=True)
        )

    def _place_added(self, added: Sequence[Added], documents: Sequence[Document] | None = None) -> None:
        """Put documents in place, behind all others; inside the gate."""
        if not added:
            return
        known = [unpacked(raw) for _, _, raw in added] if documents is None else documents
        values = {name: [values_of(document, name) for document in known] for name in self.index.names}
        slots = self._new_slots(len(added))
        for slot, (number, owners, raw) in zip(slots.tolist(), added, strict=True):
            self._records.put(slot, raw)
            for owner in owners:
                self._received.setdefault(owner, array("q")).extend((number, slot))
        self._enter(slots, np.array([number for number, _, _ in added], np.int64))
        names = self.index.names
        if len(added) < _MANY:
            for i, slot in enumerate(slots.tolist()):
                self.index.put_document(slot, [(names[name], some[i]) for name, some in values.items()])
        else:
            for name, some in values.items():
                self.index.put_many(names[name], slots.tolist(), some)
        if self.keep.age is not None:
            self._newest = max(self._newest, *(time_of(document, self.keep.at or "") for document in known))
        if len(added) < _MANY:
            for slot, document in zip(slots.tolist(), known, strict=True):
                self._tell(slot, document)
        else:
            self._tell(-1, {})

    def _place_table(self, table: pa.Table, numbers: I64) -> None:
        """Put the rows of a table in place, behind all others; inside the gate."""
        names = self.index.names
        columns = {name: flat_column(table.column(name)) for name in names if name in table.schema.names}
        slots = self._new_slots(len(numbers))
        self._records.put_table(slots, table)
        self._enter(slots, numbers)
        for name, column in columns.items():
            self.index.put_column(names[name], slots, column)
        self._tell(-1, {})

    def _new_slots(self, count: int) -> I64:
        """Returns free slots, and makes room for them."""
        if count == 1 and self._free:
            return np.array((self._free.pop(),), np.int64)
        again = min(count, len(self._free))
        slots = np.concatenate(
            (
                np.array(self._free[len(self._free) - again :], np.int64),
                np.arange(self._slots, self._slots + count - again),
            )
        )
        del self._free[len(self._free) - again :]
        self._slots += count - again
        if self._slots > len(self._sequence):
            more = np.full(max(self._slots, 2 * len(self._sequence)) - len(self._sequence), -1, np.int64)
            self._sequence = np.concatenate((self._sequence, more))
        self.index.reserve(self._slots)
        return slots

    def _enter(self, slots: I64, numbers: I64) -> None:
        """Count documents with these numbers at these slots."""
        self.index.occupy(slots)
        self._sequence[slots] = numbers
        self._next = int(numbers[-1]) + 1
        if len(slots) == 1:
            self._queue.extend((int(numbers[0]), int(slots[0])))
        else:
            self._queue.frombytes(np.stack((numbers, slots), axis=1).tobytes())
        self.changes += len(slots)

    def _tell(self, slot: int, document: Document) -> None:
        for reference in self._listeners:
            listener = reference()
            if listener is None:
                self._listeners = [one for one in self._listeners if one() is not None]
            else:
                listener(slot, document)

    def watch(self, names: Iterable[str]) -> None:
        """Have attributes in the index from now on."""
        new = [name for name in names if name not in self.index.names]
        if not new:
            return
        with self.lock, self.gate, uninterrupted():
            new = [name for name in new if name not in self.index.names]
            columns = [
                (name, slots, flat_column(table.column(name)))
                for slots, table in self._records.tables(new)
                for name in table.schema.names
            ]
            single = self.alive()
            single = single[self._records.is_single(single)]
            documents = self._records.get_many(single)
            values = {name: [values_of(document, name) for document in documents] for name in new}
            # What can fail is done.
            numbers = {name: self.index.add_attribute(name) for name in new}
            for name, slots, column in columns:
                self.index.put_column(numbers[name], slots, column)
            for name, some in values.items():
                self.index.put_many(numbers[name], single.tolist(), some)

    def listen(self, listener: Callable[[int, Document], None]) -> None:
        """Have a method called with slot and document of each that comes, before anybody can see it, as long as its
        object is there; with slot -1 if many came at once.
        """
        self._listeners.append(WeakMethod(listener))

    def _drop(self, slot: int) -> None:
        self.index.vacate(slot)
        self._records.drop(slot)
        self._sequence[slot] = -1
        self._free.append(slot)
        self.changes += 1

    def _expire(self) -> None:
        """Let go what is beyond what is to be kept."""
        keep, queue = self.keep, self._queue
        while keep.count is not None and len(self) > keep.count:
            number, slot = queue[self._head], queue[self._head + 1]
            self._head += 2
            if self._sequence[slot] == number:
                self._drop(slot)
        if keep.age is not None and keep.at is not None:
            for slot in self.index.slots_before(self.index.names[keep.at], self._newest - keep.age):
                self._drop(slot)
        if len(queue) > 4 * len(self) + 4096:  # more than half of it is gone
            slots = self.alive()
            self._queue, self._head = array("q"), 0
            self._queue.frombytes(np.stack((self._sequence[slots], slots), axis=1).tobytes())
        self._forget_received()

    def _slot_of(self, number: object) -> int:
        """The slot of a document, or -1."""
        if isinstance(number, bool) or not isinstance(number, int | np.integer):
            return -1
        queue = self._queue
        place = bisect_left(range(len(queue) // 2), number, key=lambda i: queue[2 * i])
        found = 2 * place < len(queue) and queue[2 * place] == number
        slot = queue[2 * place + 1] if found else -1
        return slot if found and self._sequence[slot] == number else -1

    def _forget_received(self) -> None:
        """Leave out what was delivered and is gone, owner by owner, some at a time."""
        self._swept += 1
        if self._swept < 4 * max(64, len(self)):
            return
        self._swept = 0
        for owner in list(self._received):
            kept = self._living(self._received[owner])
            if len(kept):
                self._received[owner] = array("q", np.ravel(kept).tolist())
            else:
                del self._received[owner]

    def _living(self, pairs: array[int]) -> I64:
        """Of numbers and slots those whose document is still there, a row each."""
        found: I64 = np.frombuffer(pairs, np.int64).reshape(-1, 2) if len(pairs) else np.zeros((0, 2), np.int64)
        living: I64 = found[self._sequence[found[:, 1]] == found[:, 0]]
        return living

    def _timely(self, document: Document, newest: int) -> int:
        """Returns the time of a document, if documents are kept by age; one without, or too old, is refused."""
        if self.keep.age is None:
            return newest
        time = time_of(document, self.keep.at or "")
        if time < newest - self.keep.age:
            raise EventError(
                f"{self.keep.at!r} is {show(document.get(self.keep.at or ''))}, longer ago than documents are kept "
                "before the newest: it would be gone at once; match it without keeping it"
            )
        return time

    def _slots_of(self, which: Any) -> list[int]:
        if isinstance(which, str):
            body, slots = of_document(parse(which)), self.alive()
            documents = zip(slots.tolist(), self._records.get_many(slots), strict=True)
            return [slot for slot, document in documents if pair_holds(body, {}, document, "fails", frozenset())]
        numbers = [which] if isinstance(which, int) and not isinstance(which, bool) else which
        if not isinstance(numbers, Iterable):
            raise OptionError(f"documents are removed by number, numbers or expression, not {shown(which)}")
        found: dict[int, None] = {}
        for number in numbers:
            slot = self._slot_of(number)
            if slot < 0:
                raise OptionError(f"there is no document {shown(number)}: `items()` has the numbers of all")
            found[slot] = None
        return list(found)

    # -- reading

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Documents stand still within."""
        gate, me = self.gate, get_ident()
        outside = gate.is_outside(me)
        try:
            if outside:
                gate.enter(me)
            yield
        finally:
            if outside:
                gate.inside.discard(me)
                gate.left()

    def __len__(self) -> int:
        return self.index.documents

    def __iter__(self) -> Iterator[Document]:
        """The documents, the oldest first."""
        for _, document in self.items():
            yield document

    def items(self) -> Iterator[tuple[int, Document]]:
        """Number and document of all, the oldest first. What comes or goes meanwhile is left out."""
        with self.reading():
            slots = self.alive()
            order = [(int(self._sequence[slot]), int(slot)) for slot in slots]
        for number, slot in sorted(order):
            with self.reading():
                found = self.document(slot) if self._sequence[slot] == number else None
            if found is not None:
                yield number, found

    def __getitem__(self, number: int) -> Document:
        with self.reading():
            slot = self._slot_of(number)
            if slot >= 0:
                return self.document(slot)
        raise OptionError(f"there is no document {shown(number)}: `items()` has the numbers of all")

    def document(self, slot: int) -> Document:
        """The document at a slot."""
        return self._records.get(slot)

    def number(self, slot: int) -> int:
        """The number of the document at a slot, or -1."""
        return int(self._sequence[slot])

    def alive(self) -> I64:
        """The slots of all documents, the oldest first."""
        slots = np.flatnonzero(self._sequence[: self._slots] >= 0)
        return slots[np.argsort(self._sequence[slots])]

    def received(self, owner: str) -> I64:
        """The slots of the documents that were delivered to an owner and are still there."""
        pairs = self._received.get(owner)
        if pairs is None:
            return np.zeros(0, np.int64)
        return np.ascontiguousarray(self._living(pairs)[:, 1])

    def stats(self) -> dict[str, Any]:
        """How many documents there are, the attributes in the index, and bytes."""
        return {
            "documents": len(self),
            "attributes": {name: self.index.here[number] for name, number in self.index.names.items()},
            "owners": len(self._received),
            "record_bytes": self._records.size,
            "index_bytes": self.index.size,
        }

    def __repr__(self) -> str:
        return f"<eligo.Documents: {len(self):,} document{'s' * (len(self) != 1)}>"

    def __reduce__(self) -> Any:
        raise TypeError("Documents cannot be pickled: save the matcher that has them")
