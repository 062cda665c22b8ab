"""Attribute names to numbers: an append-only table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Attributes:
    """A name has one number for ever. Readers need no lock: a name is in `names` before its number is given out."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = list(names)
        self.numbers: dict[str, int] = {name: number for number, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def number(self, name: str) -> int:
        """The name's number, or -1."""
        return self.numbers.get(name, -1)

    def intern(self, name: str) -> int:
        """The name's number, a new one if it has none. Writers hold the matcher's lock."""
        number = self.numbers.get(name)
        if number is None:
            number = len(self.names)
            self.names.append(name)
            self.numbers[name] = number
        return number
