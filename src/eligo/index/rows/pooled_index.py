"""What indexes of rows have in common: pools that grow, strings that come later, searches that write to a scratch."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from eligo.compile.compiled import I32, I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.index.base import Scratch
from eligo.index.native import NativeIndex
from eligo.index.rows.row_decoder import predicates_of
from eligo.index.rows.row_encoder import rows_of, text_attributes_of
from eligo.index.rows.slow_path import make_string_handle
from eligo.index.rows.verify import EVENTS_SEARCHED
from eligo.jit import entry


class PooledScratch(Scratch):
    """What searches write to: an event in coordinates, and what else the index needs; it follows the index."""

    work: Any = None  # what else a search writes to

    def __init__(self) -> None:
        super().__init__(0)
        self.found = np.zeros(0, np.int32)
        self.counters = np.zeros(EVENTS_SEARCHED + 1, np.int64)
        self._kinds: tuple[Any, ...] | None = None

    def entered(self, kernel: Any, args: tuple[Any, ...]) -> Any:
        """The machine code of a search with these arguments, of which the first are rules, the second events, the sixth
        strings: handles of these may be of other types than at the last search.
        """
        kinds = args[0]._type, args[1]._type, args[5]._type
        if kinds != self._kinds:
            self._kinds = None  # Ctrl-C may come between any two steps
            self.enter = entry(kernel, *args)
            self._kinds = kinds
        return self.enter

    def fit_event(self, attributes: int, entries: int, highest: int) -> bool:
        """Room for events of so many entries, and for all conjunctions; whether that of events is new."""
        if highest > len(self.found):
            self.found = np.zeros(5 * highest // 4 + 64, np.int32)
        return self.fit_event_view(attributes, entries)

    @abstractmethod
    def fit(self, state: I64, entries: int) -> None:
        """Room for an index in this state, and an event of so many entries."""


class PooledIndex(NativeIndex):
    """An index whose arrays are those of its pools."""

    keeps_rows = True
    by_least_likely = True
    copy_rows: ClassVar[Any]  # what `copying` made (content.py)
    search_many: ClassVar[Any]  # what `searching_rows` made
    pools_type: ClassVar[Any]
    highest: ClassVar[int]  # where the pools' state has the highest number of a conjunction, plus 1
    scratch_type: ClassVar[type[PooledScratch]]

    def __init__(self, pools: Any, strings: Strings) -> None:
        self.pools = pools
        self.strings = strings
        self._known_strings = -1
        self._follow_strings()

    @classmethod
    def revived(cls, strings: Strings, arrays: Arrays) -> Self:
        return cls(cls.pools_type.restored(arrays), strings)

    @classmethod
    def restore(cls, conjunctions: Conjunctions, arrays: Arrays) -> Self:
        return cls.revived(conjunctions.strings, arrays)

    @classmethod
    def build(cls, conjunctions: Conjunctions, selectivity: I64 | None = None, **options: Any) -> Self:
        index: Any = cls.empty(conjunctions.strings, **options)
        words, offsets = rows_of(conjunctions.compiled, conjunctions.strings)
        index.fill(words, offsets, len(conjunctions), conjunctions.attributes)
        # It will not grow any more, so it needs no room for that.
        return cls.revived(conjunctions.strings, {name: array.copy() for name, array in index.arrays().items()})

    @abstractmethod
    def fill(self, words: I64, offsets: I64, rows: int, attributes: int) -> None:
        """Insert all rows into an empty index."""

    def arrays(self) -> Arrays:
        return self.pools.arrays()  # type: ignore[no-any-return]

    def text_attributes(self, conjunctions: Conjunctions) -> I32:
        return np.nonzero(text_attributes_of(conjunctions.compiled, conjunctions.attributes))[0].astype(np.int32)

    def row(self, number: int) -> I64:
        words: I64 = self.copy_rows(self.pools.handle, number, number + 1)[0]
        return words

    def predicates(self, conjunctions: int) -> Arrays:
        words, offsets = self.copy_rows(self.pools.handle, 0, conjunctions)
        return predicates_of(words, offsets, self.strings)

    def search_batch(self, events: EventBuffer, first: int, stop: int, scratch: Any, offsets: I64) -> int:
        handle, s = events.handle, scratch
        s.fit(self.pools.state, events.widest)
        args = (
            self.pools.handle, handle, first, stop, s.event_view, self._strings, s.work, s.found, s.counters,
            self.pools.state[self.highest], offsets,
        )  # fmt: skip
        return s.entered(self.search_many, args)(*args)  # type: ignore[no-any-return]

    def scratch(self) -> Any:
        made = self.scratch_type()
        made.fit(self.pools.state, 0)
        return made

    def use_strings(self, strings: Strings) -> None:
        self.strings, self._known_strings = strings, -1
        self._follow_strings()

    def _follow_strings(self) -> None:
        """A check may ask for a string that came after the handle was made."""
        if self.strings.taken != self._known_strings:
            self._known_strings = self.strings.taken
            self._strings = make_string_handle(*self.strings.spans())


def largest_and_highest(words: I64, offsets: I64, first: int, stop: int) -> tuple[int, int]:
    """Words of the largest of rows first … stop-1, and the highest number of a conjunction, plus 1."""
    if stop - first == 1:
        return int(offsets[stop] - offsets[first]), (int(words[offsets[first]]) >> 32) + 1
    largest = int(np.diff(offsets[first : stop + 1]).max(initial=0))
    return largest, int((words[offsets[first:stop]] >> 32).max(initial=-1)) + 1
