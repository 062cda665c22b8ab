r"""Sets of values, exact over every kind.

All values stand in one order: numbers, then Booleans, then times, then strings. A *cut* is a place between two
values, written as what stands right above it:

    (NUMBER,)        before the first number          (BOOLEAN,)  before the first Boolean, so after the last number
    (NUMBER, 5)      right before 5                   (NUMBER, 5.000000000000001)   right after 5
    (STRING, "ab")   right before "ab"                (STRING, "ab\0")               right after "ab"

Invariant: one place has one cut. "After v" is "before the least value above v", where numbers are the union of all
64-bit integers and all floats, and what lies before the first value of a kind is the kind's own start. So `x > 5` and
`x >= 5.000000000000001` are the same set, and two different cuts always have a value between them.

A set is a tuple of runs (low cut, high cut), low < high, ascending, not touching. Python's tuples compare cuts
rightly: `(0,) < (0, -7) < (0, 2.5) < (1,)`.

An event may hold an object: a mapping, of which rules name fields but never the whole. It stands behind true, as a
third Boolean that no rule names and no range allows; Booleans have no order that a rule could ask for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from eligo.language.patterns import like_prefix
from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf, Range
from eligo.language.tree import Predicate, Value

NUMBER, BOOLEAN, TIME, STRING, END = range(5)
OBJECT = 2  # an object among the Booleans: (BOOLEAN, OBJECT) is the cut right after true
KIND_NAMES = ("number", "Boolean", "time", "string")

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

Cut = tuple[int] | tuple[int, int | float | str]
Run = tuple[Cut, Cut]
ValueSet = tuple[Run, ...]

NOTHING: ValueSet = ()
EVERYTHING: ValueSet = (((NUMBER,), (END,)),)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def kind_of(value: Value) -> int:
    """NUMBER, BOOLEAN, TIME or STRING."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    if isinstance(value, str):
        return STRING
    return TIME


def microseconds(value: date) -> int:
    """Microseconds since 1970 in UTC; a date is its midnight, a naive timestamp is UTC."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    else:
        moment = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def before(value: Value) -> Cut:
    """The cut right below a value."""
    if isinstance(value, bool):
        return (BOOLEAN, 1) if value else (BOOLEAN,)
    if isinstance(value, int | float):
        return (NUMBER,) if value == -math.inf else (NUMBER, value)
    if isinstance(value, str):
        return (STRING, value) if value else (STRING,)
    return (TIME, microseconds(value))


def after(value: Value) -> Cut:
    """The cut right above a value."""
    if isinstance(value, bool):
        return (BOOLEAN, OBJECT) if value else (BOOLEAN, 1)
    if isinstance(value, int | float):
        above = next_number(value)
        return (BOOLEAN,) if above is None else (NUMBER, above)
    if isinstance(value, str):
        return (STRING, value + "\0")
    return (TIME, microseconds(value) + 1)


def end_of(kind: int) -> Cut:
    """The cut right above all values of a kind that rules can name."""
    return (BOOLEAN, OBJECT) if kind == BOOLEAN else (kind + 1,)


def next_number(value: int | float) -> int | float | None:
    """The least 64-bit integer or float above a number; None above infinity."""
    if value == math.inf:
        return None
    near = float(value)
    above = near if near > value else math.nextafter(near, math.inf)
    if value == -math.inf:
        return above
    whole = math.floor(value) + 1
    return whole if INT_MIN <= whole <= INT_MAX and whole < above else above


def after_prefix(prefix: str) -> Cut:
    """The cut above all strings that begin with `prefix`."""
    for length in range(len(prefix), 0, -1):
        point = ord(prefix[length - 1])
        if point < 0x10FFFF:
            following = 0xE000 if point == 0xD7FF else point + 1  # between them lie the surrogates, which are no text
            return (STRING, prefix[: length - 1] + chr(following))
    return (END,)


def complement(runs: ValueSet) -> ValueSet:
    edges: list[Cut] = [(NUMBER,)]
    for low, high in runs:
        edges += (low, high)
    edges.append((END,))
    return tuple((low, high) for low, high in zip(edges[::2], edges[1::2], strict=True) if low != high)


def intersect(left: ValueSet, right: ValueSet) -> ValueSet:
    result: list[Run] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low = max(left[i][0], right[j][0])
        high = min(left[i][1], right[j][1])
        if low < high:
            result.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


def union(runs: Iterable[Run]) -> ValueSet:
    """Any runs, in any order, overlapping or not, as one set."""
    result: list[Run] = []
    for low, high in sorted(runs):
        if result and low <= result[-1][1]:
            if high > result[-1][1]:
                result[-1] = (result[-1][0], high)
        else:
            result.append((low, high))
    return tuple(result)


def is_residual(predicate: Predicate) -> bool:
    """Whether the predicate is a pattern that no set of values describes."""
    if predicate.operator != "like":
        return False
    return like_prefix(str(predicate.values[0]))[1].strip("%") != ""


def positive_set(predicate: Predicate) -> ValueSet:
    """The values that satisfy the positive form; for a residual pattern, a superset: those with its prefix."""
    operator, values = predicate.operator, predicate.values
    if operator == "=":
        return ((before(values[0]), after(values[0])),)
    if operator in ("in", "contains any"):
        return union((before(value), after(value)) for value in values)
    if operator == "<":
        return _run((kind_of(values[0]),), before(values[0]))
    if operator == "<=":
        return _run((kind_of(values[0]),), after(values[0]))
    if operator == ">":
        return _run(after(values[0]), end_of(kind_of(values[0])))
    if operator == ">=":
        return _run(before(values[0]), end_of(kind_of(values[0])))
    if operator == "between":
        return _run(before(values[0]), after(values[1]))
    if operator == "like":
        prefix, rest = like_prefix(str(values[0]))
        return ((before(prefix), after_prefix(prefix) if rest else after(prefix)),)
    if operator == "is null":
        return NOTHING
    raise AssertionError(f"{operator!r} is rewritten before its values are asked for")


def range_set(value: Range) -> ValueSet:
    """The values that an event's range stands for."""
    if isinstance(value, Between):
        return _run(before(value.low), after(value.high))
    if isinstance(value, Below):
        return _run((kind_of(value.value),), after(value.value) if value.inclusive else before(value.value))
    if isinstance(value, Above):
        return _run(before(value.value) if value.inclusive else after(value.value), end_of(kind_of(value.value)))
    if isinstance(value, OneOf):
        return union((before(one), after(one)) for one in value.values)
    assert isinstance(value, NoneOf)
    kind = kind_of(value.values[0])
    excluded = union((before(one), after(one)) for one in value.values)
    return intersect(complement(excluded), (((kind,), end_of(kind)),))


def _run(low: Cut, high: Cut) -> ValueSet:
    return ((low, high),) if low < high else NOTHING
