"""Values of events that are hard to take."""

from __future__ import annotations


class Rude:
    """Everything that one may ask of a value raises."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise RuntimeError("do not ask")

    def __repr__(self) -> str:
        raise RuntimeError("do not look")
