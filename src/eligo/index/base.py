"""The protocol of an index: which conjunctions does this event satisfy?

An index is built from `Conjunctions` and never changed (`updates = "rebuild"`): the matcher keeps new rules in small
segments beside the large ones and merges them. An index that can insert and delete by itself says `updates =
"native"`.

Searching writes to a `scratch` that the index makes and one thread at a time uses, so that one index serves all
threads. Every index accepts every conjunction: what its structure cannot hold it verifies each time, and says so in
`notes`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from eligo.compile.compiled import I32, I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer
from eligo.index.rows.event_view import no_event_view
from eligo.index.rows.row_encoder import text_attributes_of
from eligo.jit import entry, named_kernel
from eligo.options import Option

_FEW_ATTRIBUTES, _FEW_ENTRIES = 1024, 64  # for which all searches of a thread share one view
_shared = threading.local()


class Scratch:
    """Private memory of one search at a time. `counters`: candidates looked at, and predicates evaluated.

    The view of an event (rows/event_view.py) is large however small the index is, so a thread has one
    for all small indexes.
    """

    event_view: object
    handle: Any  # what else a search writes to

    def __init__(self, conjunctions: int) -> None:
        self.found = np.zeros(conjunctions + max(1024, conjunctions // 4), np.int32)
        self.counters = np.zeros(2, np.int64)
        self.offsets = np.zeros(2, np.int64)  # of one event's conjunctions in `found`
        self.places = memoryview(self.offsets)  # type: ignore[arg-type]
        self.enter: Any = None  # the machine code of searches with this scratch, of events whose handle is of
        self.event_type: Any = None  # this type
        self.most: Any = None  # conjunctions that it may find for an event
        self.attributes = self.entries = -1  # for which there is room in the view
        self._own = False

    def bind(self, kernel: Any, args: tuple[Any, ...]) -> Any:
        """The machine code of a search with arguments like these: the second are the events, the last is `most`."""
        self.event_type, self.most = None, args[-1]  # in this order: Ctrl-C may come between any two steps
        self.enter = entry(kernel, *args)
        self.event_type = args[1]._type
        return self.enter

    def fit_event_view(self, attributes: int, entries: int) -> bool:
        """Makes room for events with numbers of attributes below `attributes` and so many entries. Returns whether
        there was less before.
        """
        fresh = attributes > self.attributes or entries > self.entries
        if fresh:
            attributes, entries = max(self.attributes, attributes), max(self.entries, 2 * entries, 16)
            own = attributes > _FEW_ATTRIBUTES or entries > _FEW_ENTRIES
            if own:
                self.event_view = no_event_view(attributes, entries)
            self._own = own  # in this order: Ctrl-C may come between any two steps
            self.attributes, self.entries = attributes, entries
        if not self.shares():
            self.event_view = _shared.event_view = no_event_view(_FEW_ATTRIBUTES, _FEW_ENTRIES)
        return fresh

    def shares(self) -> bool:
        """Takes the view that this thread has, or an own one. Returns False if there is none yet."""
        if not self._own:
            try:
                self.event_view = _shared.event_view
            except AttributeError:
                return False
        return True


class Index(ABC):
    """One way to find the conjunctions that an event satisfies."""

    name: ClassVar[str]
    summary: ClassVar[str]
    updates: ClassVar[Literal["rebuild", "native"]] = "rebuild"
    # The kernel that `search_batch` calls: what `searching` made. Indexes that change in place have a `search_batch` of
    # their own (rows/pooled_index.py) and need none.
    search_events: ClassVar[Any]
    handle: Any  # its first argument
    options: ClassVar[Mapping[str, Option]] = {}
    # Whether many events are matched a block at a time (batch/): never, always, or where it pays.
    blocks: ClassVar[Literal["never", "always", "where it pays"]] = "never"
    # Whether it leads to each conjunction by its least likely predicate, so that gates (evaluate/gating.py) spare work.
    by_least_likely: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = False  # it has all that its conjunctions say: they are not kept beside it

    def __init__(self, conjunctions: Conjunctions) -> None:
        self.conjunctions = conjunctions
        self.strings = conjunctions.strings

    @classmethod
    @abstractmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None) -> Index:
        """Build from scratch. `selectivity`, where known, ranks predicates: a lower number holds less often.

        An index with options takes each of them as a keyword argument (options.py).
        """

    @classmethod
    @abstractmethod
    def restore(cls, conjunctions: Conjunctions, arrays: Arrays) -> Index:
        """From what `arrays` gave: nothing is computed, so that opening a snapshot costs nothing."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The index's own arrays, to be saved and counted."""

    def text_attributes(self, conjunctions: Conjunctions) -> I32:
        """The attributes whose strings this index, built from these conjunctions, needs with their bytes.

        An event brings other strings as a number alone, which tells equal from different and nothing else.
        """
        text = text_attributes_of(conjunctions.compiled, conjunctions.attributes)
        text[conjunctions.text_attributes()] = True
        return np.nonzero(text)[0].astype(np.int32)

    def predicates(self, conjunctions: int) -> Arrays:
        """Returns so many conjunctions and their predicates as `Compiled` has them, if it `keeps_rows`."""
        raise NotImplementedError

    @abstractmethod
    def scratch(self) -> Any:
        """Memory for one search at a time; a `Scratch` or a kind of it."""

    def search(self, events: EventBuffer, event: int, scratch: Any) -> int:
        """Put the conjunctions that an event satisfies into scratch.found; how many, in any order, each once."""
        given = events.handle
        s = scratch
        if given._type is s.event_type and s.entries >= events.widest and s.shares():
            s.enter(self.handle, given, event, event + 1, s.event_view, s.handle, s.offsets, s.most)
        else:
            self.search_batch(events, event, event + 1, scratch, scratch.offsets)
        return scratch.places[1]  # type: ignore[no-any-return]

    def search_batch(self, events: EventBuffer, first: int, stop: int, scratch: Any, offsets: I64) -> int:
        """The same for events first, first + 1, … as far as scratch.found has room; the first event not done.

        Conjunctions of event first + i lie in found[offsets[i]:offsets[i+1]].
        """
        given = events.handle
        scratch.fit_event_view(self.conjunctions.attributes, events.widest)
        args = self.handle, given, first, stop, scratch.event_view, scratch.handle, offsets, len(self.conjunctions)
        known = given._type is scratch.event_type
        return (scratch.enter if known else scratch.bind(self.search_events, args))(*args)  # type: ignore[no-any-return]

    def notes(self) -> dict[str, object]:
        """What `stats` should say about this index, beside its size; whole numbers of several segments are added up."""
        return {}

    def draw(self, names: Sequence[str], depth: int = 3, width: int = 8) -> list[str]:
        """The top of the structure as lines of text: so many levels, so many parts of each; attribute a is names[a]."""
        return [f"{self.name} has nothing to draw"]

    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays().values())


class ArrayIndex(Index):
    """An index that is nothing but arrays by name: saved, restored and counted as they are."""

    def __init__(self, conjunctions: Conjunctions, arrays: Arrays) -> None:
        super().__init__(conjunctions)
        self._arrays = arrays

    @classmethod
    def restore(cls, conjunctions: Conjunctions, arrays: Arrays) -> Index:
        return cls(conjunctions, arrays)

    def arrays(self) -> Arrays:
        return self._arrays


def searching(one: Any) -> Any:
    """Returns the kernel that searches for many events, given one that searches for one.

    one(index, e, event, event_view, scratch, start) writes the conjunctions that it satisfies into scratch.found,
    from `start` on, and returns where they end. At first the view is that of the event before (`view_event`).
    """

    def search_events(index, e, first, stop, event_view, scratch, offsets, most):
        k = 0
        offsets[0] = 0
        event = first
        while event < stop and len(scratch.found) - k >= most:
            k = one(index, e, event, event_view, scratch, k)
            event += 1
            offsets[event - first] = k
        return event

    return named_kernel(search_events, one, f"{one.__name__}s")
