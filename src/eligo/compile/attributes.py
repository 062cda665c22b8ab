"""Attribute names to numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Attributes:
    """As long as a table lives a name has one number. Readers need no lock: a name is in `names` before its number is
    given out. `without` makes another table that lacks what no rule names any more; all other names keep their numbers,
    and the free ones, whose name is empty, are given out again.

    `metas` has the number where an event's entry wants it, `paths` every name up to each of its dots.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        """With these names, numbered in turn; an empty one stands for a number that is free."""
        self.names: list[str] = list(names)
        self.metas: dict[str, int] = {}
        self.paths: set[str] = set()
        self._free: list[int] = []  # the lowest last
        self.branches: Any = None  # the names as kernels follow them in JSON (json_events.py)
        for number, name in reversed([*enumerate(self.names)]):
            if name:
                self._enter(name, number)
            else:
                self._free.append(number)

    def __len__(self) -> int:
        """One more than the highest number."""
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.names if name)

    @property
    def taken(self) -> int:
        """How many names there are: one more with each that is new."""
        return len(self.names) - len(self._free)

    def intern(self, name: str) -> int:
        """The name's number, a new one if it has none. Writers hold the matcher's lock."""
        meta = self.metas.get(name)
        if meta is not None:
            return meta >> 8
        number = self._free.pop() if self._free else len(self.names)
        self.names[number : number + 1] = [name]
        self._enter(name, number)
        return number

    def without(self, unused: NDArray[np.bool_]) -> Attributes:
        """Another table that lacks the names of these numbers."""
        names = ["" if gone else name for name, gone in zip(self.names, unused.tolist(), strict=True)]
        while names and not names[-1]:
            names.pop()
        return Attributes(names)

    def _enter(self, name: str, number: int) -> None:
        if "." in name:
            self.paths.update(name[:dot] for dot, character in enumerate(name) if character == ".")
        self.metas[name] = number << 8
