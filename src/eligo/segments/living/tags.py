"""Tags by number. A number whose tag no rule has any more is used again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from eligo.compile.compiled import I32, I64, U8, Arrays
from eligo.segments.rule_table import JOINED, packed, unpacked

_FEW = 64  # names that are kept whether or not a rule has them


class Tags:
    """Names to numbers and back; `tag_uses` of the pools says how many rules have each."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._joined: U8 = np.zeros(0, np.uint8)  # until a number gets another name

    def __len__(self) -> int:
        """One more than the highest number."""
        return len(self._names)

    def numbers(self, names: Sequence[str], uses: I64) -> I32:
        """The numbers of some tags, new ones where they have none."""
        if len(self._names) > _FEW and not self._free and not all(name in self._numbers for name in names):
            self.forget_unused(uses)
        found = []
        for name in names:
            number = self._numbers.get(name)
            if number is None:
                number = self._free.pop() if self._free else len(self._names)
                self._names[number : number + 1] = [name]
                self._joined = self._joined[:0]
                self._numbers[name] = number
            found.append(number)
        return np.array(found, np.int32)

    @property
    def joined(self) -> U8:
        """A byte for each tag and one more: 1 for those that say what to ask of documents."""
        if len(self._joined) != len(self._names) + 1:
            self._joined = np.array([*(name.startswith(JOINED) for name in self._names), False], np.uint8)
        return self._joined

    def wanted(self, names: Iterable[str]) -> U8:
        """A byte for each tag and one more: 1 for those named."""
        chosen = np.zeros(len(self._names) + 1, np.uint8)
        for name in names:
            number = self._numbers.get(name)
            if number is not None:
                chosen[number] = 1
        return chosen

    def name(self, number: int) -> str:
        return self._names[number]

    def arrays(self) -> Arrays:
        used = np.zeros(len(self._names), np.uint8)
        used[list(self._numbers.values())] = 1
        offsets, data = packed(self._names)
        return {"offsets": offsets, "data": data, "used": used}

    @classmethod
    def restored(cls, arrays: Arrays) -> Tags:
        tags = cls()
        tags._names = unpacked(arrays["offsets"], arrays["data"])
        used = arrays["used"].tolist()
        tags._numbers = {name: n for n, name in enumerate(tags._names) if used[n]}
        tags._free = [n for n in range(len(tags._names)) if not used[n]]
        return tags

    def forget_unused(self, uses: I64) -> None:
        """Free the numbers that no rule uses."""
        for number in np.nonzero(uses[: len(self._names)] == 0)[0].tolist():
            if self._numbers.get(self._names[number]) == number:
                del self._numbers[self._names[number]]
                self._names[number] = ""
                self._free.append(number)
