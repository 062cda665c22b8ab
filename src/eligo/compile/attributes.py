"""Attribute names to numbers: an append-only table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Attributes:
    """A name has one number for ever. Readers need no lock: a name is in `names` before its number is given out.

    `metas` has the number where an event's entry wants it, `paths` every name up to each of its dots.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names: list[str] = []
        self.metas: dict[str, int] = {}
        self.paths: set[str] = set()
        for name in names:
            self.intern(name)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def intern(self, name: str) -> int:
        """The name's number, a new one if it has none. Writers hold the matcher's lock."""
        meta = self.metas.get(name)
        if meta is not None:
            return meta >> 8
        number = len(self.names)
        self.names.append(name)
        if "." in name:
            self.paths.update(name[:dot] for dot, character in enumerate(name) if character == ".")
        self.metas[name] = number << 8
        return number
