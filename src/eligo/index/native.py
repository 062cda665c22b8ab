"""The protocol of an index that changes: conjunctions come and go one by one, and nothing is built anew.

Such an index knows conjunctions as rows (`rows/packed_predicate.py`): words that are whole in themselves, with the
number of the conjunction in the upper half of the first one. Numbers are given by whoever inserts, small and used
again once deleted, because a search gives them back and what belongs to them lies in arrays.

Whoever changes an index, or lets it adjust itself, sees to it that nobody searches meanwhile; many may search at once.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64, Arrays
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.index.base import Index


class NativeIndex(Index):
    """An index that inserts and deletes by itself. Its options are keyword arguments of `empty`, as of `build`."""

    updates: ClassVar[Literal["rebuild", "native"]] = "native"

    @classmethod
    @abstractmethod
    def empty(cls, strings: Strings) -> NativeIndex:
        """Without conjunctions. `strings` is the table of the whole matcher, which grows while the index lives."""

    @classmethod
    @abstractmethod
    def revived(cls, strings: Strings, arrays: Arrays) -> NativeIndex:
        """From what `arrays` gave: nothing is computed or copied until something changes."""

    @abstractmethod
    def insert(self, words: I64, offsets: I64, first: int, stop: int, attributes: int) -> None:
        """Insert rows first … stop-1, which begin at words[offsets[i]]; `attributes`: numbers of them are below."""

    @abstractmethod
    def prepare(self, words: int, rows: int, highest: int, attributes: int) -> None:
        """Make room for a change: rows of so many words in all, numbered below `highest`; others may search meanwhile.

        Insertion and deletion make room as well, if need be, but while nobody may search.
        """

    @abstractmethod
    def delete(self, numbers: I64) -> None:
        """Delete the rows of these conjunctions, as far as they are there."""

    @abstractmethod
    def row(self, number: int) -> I64:
        """A copy of the row of a conjunction; its checks may have changed places."""

    @abstractmethod
    def mark(self, attributes: NDArray[np.bool_], strings: NDArray[np.bool_]) -> None:
        """Set what stands at the numbers of the attributes and strings that some row names."""

    @abstractmethod
    def use_strings(self, strings: Strings) -> None:
        """Take another table, in which all strings that rows name have the numbers that they had."""

    @abstractmethod
    def adjust(self, effort: int) -> bool:
        """Become better for the rules and events seen so far, by work for about so many rows; whether more is left."""

    @abstractmethod
    def observe(self, events: EventBuffer) -> None:
        """Learn from events without searching for them."""
