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

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from threading import get_ident
from typing import Any

import numpy as np
import pyarrow as pa

from eligo.arguments import shown
from eligo.compile.compiled import I64
from eligo.documents.columns import flat_column, is_flat, rows_of
from eligo.documents.index import DocumentIndex
from eligo.documents.records import Records
from eligo.documents.values import packed, plain_document, show, values_of
from eligo.errors import EventError, OptionError
from eligo.forking import RULES, fork_lock
from eligo.interrupts import uninterrupted
from eligo.language.reference import Moment
from eligo.language.values import microseconds
from eligo.rule import Reject
from eligo.segments.encoding import as_events
from eligo.segments.living.gate import Gate

_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LOST = (
    "a thread was adding documents when this process was forked, so here they can be read but not changed: "
    "fork when no thread changes them"
)
_MICROSECOND = timedelta(microseconds=1)
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

    keep   how many documents are kept, the newest; or for how long, '7d', '12h', '30m', '45s' or a timedelta, by the
           time that the attribute `at` holds: what is older than that before the newest is gone. None keeps all.

        docs = Documents(keep=100_000)
        m = Matcher(documents=docs)
        m.add("cheaper", "exists d (author = d.author and price < d.price)")
        m.publish({"author": "Smith", "price": 20})    # []
        m.publish({"author": "Smith", "price": 15})    # ['cheaper']
    """

    def __init__(self, keep: int | str | timedelta | None = 1_000_000, *, at: str | None = None) -> None:
        self.keep = keep_of(keep, at)
        self.lock = fork_lock(self, "lock", RULES, _LOST)
        self.gate = Gate()
        self.index = DocumentIndex()
        self.changes = 0  # so far
        self._records = Records()
        self._sequence: I64 = np.full(64, -1, np.int64)
        self._next = 0  # number of the next document
        self._free: list[int] = []
        self._slots = 0  # used so far
        self._queue = array("q")  # numbers and slots of documents, the oldest first, for those that are kept by number
        self._head = 0
        self._newest = -(2**63)  # the latest time of a document so far
        self._received: dict[str, array[int]] = {}  # numbers and slots
        self._listeners: list[Callable[[int, Document], None]] = []
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
            with self.gate, uninterrupted():
                for slot in slots:
                    self._drop(slot)
            return len(slots)

    def clear(self) -> None:
        """Remove all documents."""
        with self.lock, self.gate, uninterrupted():
            for slot in self.alive().tolist():
                self._drop(slot)

    def checked(self, document: Mapping[str, Any]) -> Document:
        """Returns a document as it is kept; refuses what cannot be."""
        found = plain_document(document)
        self._timely(found, self._newest)
        return found

    def put(self, document: Document, owners: Iterable[str] = ()) -> int:
        """Keep a checked document, delivered to some owners; with `lock` held. Returns its number."""
        raw = packed(document)
        with self.gate, uninterrupted():
            number = self._take(document, raw)
            slot = self._last_slot
            for owner in owners:
                self._received.setdefault(owner, array("q")).extend((number, slot))
            for listener in self._listeners:
                listener(slot, document)
            self._expire()
        return number

    def put_many(self, documents: list[Document]) -> None:
        """Keep checked documents; with `lock` held."""
        if self.keep.count is not None and len(documents) > self.keep.count:
            self._next += len(documents) - self.keep.count  # they would be gone at once
            documents = documents[-self.keep.count :]
        raws = list(map(packed, documents))
        with self.gate, uninterrupted():
            slots = []
            for raw, document in zip(raws, documents, strict=True):
                self._take(document, raw, indexed=False)
                slots.append(self._last_slot)
            for name, attribute in self.index.names.items():
                self.index.put_many(attribute, slots, [values_of(document, name) for document in documents])
            if self._listeners:
                for slot, document in zip(slots, documents, strict=True):
                    for listener in self._listeners:
                        listener(slot, document)
            self._expire()

    def _put_table(self, table: pa.Table) -> None:
        """Keep the rows of a table whose columns are flat; with `lock` held."""
        if self.keep.count is not None and table.num_rows > self.keep.count:
            self._next += table.num_rows - self.keep.count  # they would be gone at once
            table = table.slice(table.num_rows - self.keep.count)
        if not table.num_rows:
            return
        columns = {name: flat_column(table.column(name)) for name in self.index.names if name in table.schema.names}
        with self.gate, uninterrupted():
            count, index = table.num_rows, self.index
            slots = np.arange(self._slots, self._slots + count)
            self._slots += count
            if self._slots > len(self._sequence):
                more = np.full(max(self._slots, 2 * len(self._sequence)) - len(self._sequence), -1, np.int64)
                self._sequence = np.concatenate((self._sequence, more))
            index.reserve(self._slots)
            self._records.put_table(slots, table)
            index.occupy_many(slots)
            for name, column in columns.items():
                index.put_column(index.names[name], slots, column)
            numbers = np.arange(self._next, self._next + count)
            self._sequence[slots] = numbers
            self._next += count
            if self.keep.count is not None:
                self._queue.extend(np.ravel(np.stack((numbers, slots), axis=1)).tolist())
            self.changes += count
            for listener in self._listeners:
                listener(-1, {})
            self._expire()

    def watch(self, names: Iterable[str]) -> None:
        """Have attributes in the index from now on."""
        new = [name for name in names if name not in self.index.names]
        if not new:
            return
        with self.lock, self.gate, uninterrupted():
            new = [name for name in new if name not in self.index.names]
            slots = self.alive()
            documents = self._records.get_many(slots)
            for name in new:
                attribute = self.index.add_attribute(name)
                self.index.put_many(attribute, slots.tolist(), [values_of(document, name) for document in documents])

    def listen(self, listener: Callable[[int, Document], None]) -> None:
        """Have a function called with slot and document of each that comes, before anybody can see it; with slot -1 if
        many came at once.
        """
        self._listeners.append(listener)

    def _take(self, document: Document, raw: bytes, indexed: bool = True) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._slots = self._slots, self._slots + 1
            if slot >= len(self._sequence):
                self._sequence = np.concatenate((self._sequence, np.full(len(self._sequence), -1, np.int64)))
        index = self.index
        index.reserve(slot + 1)
        self._records.put(slot, raw)
        index.occupy(slot)
        if indexed:
            for name, attribute in index.names.items():
                values = values_of(document, name)
                if values is not None:
                    index.put(attribute, slot, values)
        number, self._next = self._next, self._next + 1
        self._sequence[slot] = number
        if self.keep.count is not None:
            self._queue.extend((number, slot))
        if self.keep.age is not None:
            self._newest = max(self._newest, self._time_of(document))
        self._last_slot = slot
        self.changes += 1
        return number

    def _drop(self, slot: int) -> None:
        self.index.vacate(slot)
        self._records.drop(slot)
        self._sequence[slot] = -1
        self._free.append(slot)
        self.changes += 1

    def _expire(self) -> None:
        """Let go what is beyond what is to be kept."""
        keep = self.keep
        if keep.count is not None:
            queue, head = self._queue, self._head
            while len(self) > keep.count:
                number, slot = queue[head], queue[head + 1]
                head += 2
                if self._sequence[slot] == number:
                    self._drop(slot)
            while head < len(queue) and self._sequence[queue[head + 1]] != queue[head]:
                head += 2
            if head > 4096 and 2 * head > len(queue):
                del queue[:head]
                head = 0
            self._head = head
        if keep.age is not None and keep.at is not None:
            for slot in self.index.slots_before(self.index.names[keep.at], self._newest - keep.age):
                self._drop(slot)
        self._forget_received()

    def _forget_received(self) -> None:
        """Leave out what was delivered and is gone, owner by owner, some at a time."""
        self._swept = getattr(self, "_swept", 0) + 1
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
        time = self._time_of(document)
        if time < newest - self.keep.age:
            raise EventError(
                f"{self.keep.at!r} is {show(document.get(self.keep.at or ''))}, longer ago than documents are kept "
                "before the newest: it would be gone at once; match it without keeping it"
            )
        return time

    def _time_of(self, document: Document) -> int:
        values = values_of(document, self.keep.at or "")
        if values is None or len(values) != 1 or not isinstance(values[0], date | Moment):
            given = "nothing" if values is None else show(values[0] if len(values) == 1 else values)
            raise EventError(
                f"documents are kept by age, by the time in {self.keep.at!r}, and this one has {given} there: "
                "give a date or a datetime"
            )
        time = values[0]
        return int(time) if isinstance(time, Moment) else microseconds(time)

    def _slots_of(self, which: Any) -> list[int]:
        if isinstance(which, str):
            from eligo.language.reference import matches, multi_valued
            from eligo.language.text import parse

            root = parse(which)
            found = []
            for slot in self.alive().tolist():
                document = self.document(slot)
                lists = {name for name, value in document.items() if isinstance(value, list)}
                if matches(root, document, multi=lists | multi_valued(root)):
                    found.append(slot)
            return found
        numbers = [which] if isinstance(which, int) and not isinstance(which, bool) else which
        if not isinstance(numbers, Iterable):
            raise OptionError(f"documents are removed by number, numbers or expression, not {shown(which)}")
        places = {int(number): int(slot) for slot, number in enumerate(self._sequence) if number >= 0}
        slots = []
        for number in dict.fromkeys(numbers):
            if isinstance(number, bool) or not isinstance(number, int) or number not in places:
                raise OptionError(f"there is no document {shown(number)}: `items()` has the numbers of all")
            slots.append(places[number])
        return slots

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
            for slot in np.flatnonzero(self._sequence == number).tolist() if isinstance(number, int) else ():
                if number >= 0:
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
