"""The protocol of an index: which conjunctions does this event satisfy?

An index is built from `Conjunctions` and never changed (`updates = "rebuild"`): the matcher keeps new rules in small
segments beside the large ones and merges them. An index that can insert and delete by itself says `updates =
"native"`.

Searching writes to a `scratch` that the index makes and one thread at a time uses, so that one index serves all
threads. Every index accepts every conjunction: what its structure cannot hold it verifies each time, and says so in
`notes`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from eligo.compile.compiled import I32, I64, Arrays
from eligo.compile.conjunctions import Conjunctions
from eligo.compile.events import EventBuffer
from eligo.options import Option


class Scratch:
    """Private memory of one search at a time. `counters`: candidates looked at, and predicates evaluated."""

    def __init__(self, conjunctions: int) -> None:
        self.found = np.zeros(conjunctions + max(1024, conjunctions // 4), np.int32)
        self.counters = np.zeros(2, np.int64)


class Index(ABC):
    """One way to find the conjunctions that an event satisfies."""

    name: ClassVar[str]
    summary: ClassVar[str]
    updates: ClassVar[Literal["rebuild", "native"]] = "rebuild"
    options: ClassVar[Mapping[str, Option]] = {}

    def __init__(self, conjunctions: Conjunctions) -> None:
        self.conjunctions = conjunctions

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
        return conjunctions.text_attributes()

    @abstractmethod
    def scratch(self) -> Any:
        """Memory for one search at a time; a `Scratch` or a kind of it."""

    @abstractmethod
    def search(self, events: EventBuffer, event: int, scratch: Any) -> int:
        """Put the conjunctions that an event satisfies into scratch.found; how many, in any order, each once."""

    @abstractmethod
    def search_batch(self, events: EventBuffer, first: int, stop: int, scratch: Any, offsets: I64) -> int:
        """The same for events first, first + 1, … as far as scratch.found has room; the first event not done.

        Conjunctions of event first + i lie in found[offsets[i]:offsets[i+1]].
        """

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
