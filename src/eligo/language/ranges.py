"""Values of an event that are known only as one of a set: `{"price": Between(10, 20)}`.

Together with plain values these are the nine operators of an event as an expression (the BE-Tree paper §3): `=` is the
value itself, `≠` and `∉` are NoneOf, `∈` is OneOf, `<` and `≤` are Below, `>` and `≥` are Above, and Between has both
ends. Each stands for values of one kind: `Below(5)` is a number, `NoneOf("a")` is a string.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from eligo.errors import EventError
from eligo.language.decimals import number_of
from eligo.language.tree import Value


class Range:
    """Base of the five. Compares by content."""

    __slots__: tuple[str, ...] = ()

    def _content(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Range) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._content()))

    def __repr__(self) -> str:
        """What makes it again."""
        if isinstance(self, OneOf | NoneOf):
            return f"{type(self).__name__}({', '.join(map(repr, self.values))})"
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


class Between(Range):
    """Some value from `low` to `high`, both included."""

    __slots__ = ("high", "low")

    def __init__(self, low: Value | Decimal, high: Value | Decimal) -> None:
        low, high = _checked(self, low, high)
        if _kind(low) != _kind(high):
            raise EventError(f"Between({low!r:.60}, {high!r:.60}): the two ends are of different kinds")
        self.low, self.high = low, high

    def __repr__(self) -> str:
        return f"Between({self.low!r}, {self.high!r})"


class Below(Range):
    """Some value below `value`, or at it when `inclusive`."""

    __slots__ = ("inclusive", "value")

    def __init__(self, value: Value | Decimal, inclusive: bool = False) -> None:
        if not isinstance(inclusive, bool):
            raise EventError(f"{type(self).__name__}: inclusive is True or False, not {inclusive!r:.60}")
        (self.value,), self.inclusive = _checked(self, value), inclusive


class Above(Range):
    """Some value above `value`, or at it when `inclusive`."""

    __slots__ = ("inclusive", "value")

    def __init__(self, value: Value | Decimal, inclusive: bool = False) -> None:
        if not isinstance(inclusive, bool):
            raise EventError(f"{type(self).__name__}: inclusive is True or False, not {inclusive!r:.60}")
        (self.value,), self.inclusive = _checked(self, value), inclusive


class OneOf(Range):
    """One of these values."""

    __slots__ = ("values",)

    def __init__(self, *values: Value | Decimal) -> None:
        if not values:
            raise EventError("OneOf(): no values; leave the attribute out instead")
        self.values = _checked(self, *values)


class NoneOf(Range):
    """Some value of the same kind that is none of these."""

    __slots__ = ("values",)

    def __init__(self, *values: Value | Decimal) -> None:
        if not values:
            raise EventError("NoneOf(): no values to exclude; it needs one to tell the kind")
        values = _checked(self, *values)
        if len({_kind(value) for value in values}) > 1:
            raise EventError(f"NoneOf{values!r}: values of several kinds; the unknown value has one kind")
        self.values = values


def _kind(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, date | datetime):
        return "time"
    return "string"


def _checked(where: Range, *values: Value | Decimal) -> tuple[Value, ...]:
    """The values, decimals as numbers; what is no value is refused."""
    found: list[Value] = []
    for given in values:
        value, name = number_of(given) if isinstance(given, Decimal) else given, type(where).__name__
        if not isinstance(value, bool | int | float | str | date):
            raise EventError(
                f"{name}: {value!r:.60} is no value (a {type(value).__name__}); use a number, string, Boolean, "
                "date or datetime"
            )
        if isinstance(value, float) and value != value:
            raise EventError(f"{name}: NaN has no place in an order; leave the attribute out instead")
        found.append(value)
    return tuple(found)
