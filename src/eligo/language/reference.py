"""What a rule means, in plain Python: the definition that every index is tested against.

It imports the language alone and compares values as they are, so that no bug in an encoding can hide from it. Values
of NumPy and pandas are told by their looks, not by importing either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from eligo.errors import EventError
from eligo.language.decimals import number_of
from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf, Range
from eligo.language.tree import (
    And,
    Constant,
    Join,
    Node,
    Not,
    Or,
    Predicate,
    Quantified,
    Value,
    bottom_up,
    predicates_of,
    push_negation,
)

Event = Mapping[str, Any]
ABSENT = object()

_LISTS = (list, tuple, set, frozenset)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(int):
    """A time in microseconds since 1970: there are times before and after those that Python can write."""

    def __repr__(self) -> str:
        return f"Moment({int(self)})"


def matches(
    root: Node,
    event: Event,
    absent: str = "fails",
    multi: Iterable[str] = (),
    documents: Sequence[Event] = (),
    received: Sequence[Event] = (),
) -> bool:
    """Whether the event makes the expression true; quantifiers range over `documents`, or those `received`."""
    several = frozenset(multi) | multi_valued(root)
    # Each step leaves one truth value; And and Or take those of their children. `positive` is false under an odd number
    # of NOTs, where And and Or change places and every predicate is asked for its negation.
    todo: list[tuple[Node | str, bool, int]] = [(root, True, 0)]
    truths: list[bool] = []
    while todo:
        node, positive, count = todo.pop()
        if isinstance(node, str):
            last, truths[-count:] = truths[-count:], []
            truths.append(all(last) if node == "and" else any(last))
        elif isinstance(node, Not):
            todo.append((node.child, not positive, 0))
        elif isinstance(node, (And, Or)):
            if isinstance(node, And) == positive:
                truths.append(one_value_each(node.children, event, positive))
                todo.append(("and", True, 2))
            todo.append(("and" if isinstance(node, And) == positive else "or", True, len(node.children)))
            todo.extend((child, positive, 0) for child in node.children)
        else:
            truths.append(leaf_holds(node, positive, event, absent, several, documents, received))
    return truths[0]


def multi_valued(root: Node) -> frozenset[str]:
    """The attributes that the expression uses with `contains`."""
    return frozenset(p.attribute for p in predicates_of(root) if p.operator.startswith("contains"))


def lookup(event: Event, name: str) -> Any:
    """The value of an attribute: under its flat name, else along its path; ABSENT for none, null, NaN or NaT."""
    found = [value for given in _ways(event, name) if not _is_absent(value := _native(given))]
    if len(found) > 1:
        raise EventError(f"attribute {name!r} is given twice, under its flat name and along its path: drop one")
    return found[0] if found else ABSENT


def _ways(event: Event, name: str) -> Iterator[Any]:
    if name in event:
        yield event[name]
    for dot in (m.start() for m in re.finditer(r"\.", name)):
        inner = event.get(name[:dot])
        if isinstance(inner, Mapping):
            yield from _ways(inner, name[dot + 1 :])


def _is_absent(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NaTType", "NAType")


def _native(value: Any) -> Any:
    """A scalar or an array of NumPy as Python's own value or list, a decimal as a number; anything else as it is."""
    if isinstance(value, Decimal):
        return number_of(value)
    if not (hasattr(value, "dtype") and hasattr(value, "tolist")):
        return value
    kind = getattr(value.dtype, "kind", "")
    if kind == "m":
        if str(value) == "NaT":
            return None
        raise EventError(f"{value!r} is no value (a {type(value).__name__})")
    if kind == "M":
        return _moments(value.astype("datetime64[us]").tolist())
    return value.tolist()


def _moments(value: Any) -> Any:
    """Times as NumPy gives them: a number is one that Python cannot write."""
    if isinstance(value, list):
        return [_moments(one) for one in value]
    return Moment(value) if isinstance(value, int) else value


def leaf_holds(
    node: Node,
    positive: bool,
    event: Event,
    absent: str,
    several: frozenset[str],
    documents: Sequence[Event] = (),
    received: Sequence[Event] = (),
) -> bool:
    """Whether the event makes a leaf true or, not `positive`, its negation."""
    if isinstance(node, Constant):
        return node.holds == positive
    if isinstance(node, Quantified):
        among = received if node.received else documents
        pairs = (pair_holds(node.body, event, document, absent, several) for document in among)
        return (any(pairs) if node.quantifier == "exists" else all(pairs)) == (positive != node.negated)
    assert isinstance(node, Predicate)
    return _holds(node, positive != node.negated, lookup(event, node.attribute), absent, several)


def _holds(node: Predicate, positive: bool, value: Any, absent: str, several: frozenset[str]) -> bool:
    if node.operator == "is null":
        return (value is ABSENT) == positive
    if value is ABSENT:
        return absent == "classical" and not positive
    if isinstance(value, Range):
        return _some_value(value, [(node, positive)])
    if isinstance(value, _LISTS) and not node.variable and node.attribute not in several:
        raise EventError(f"attribute {node.attribute!r} holds a list but is single-valued: declare it with multi=")
    values = _values(value)
    if node.operator == "contains all":
        return all(any(_equal(one, wanted) for one in values) for wanted in node.values) == positive
    return any(satisfies(node, one) for one in values) == positive


def _values(value: Any) -> list[Any]:
    """The values of an attribute: those of a list, or the one that it is; of a range none, for none is known."""
    if isinstance(value, _LISTS):
        return [one for given in value if not _is_absent(one := _native(given))]
    return [] if isinstance(value, Range) else [value]


def satisfies(node: Predicate, value: Any) -> bool:
    """Whether one value satisfies the predicate's positive form."""
    operands = node.values
    match node.operator:
        case "=":
            return _equal(value, operands[0])
        case "in" | "contains any":
            return any(_equal(value, operand) for operand in operands)
        case "<" | "<=" | ">" | ">=":
            return _ordered(value, node.operator, operands[0])
        case "between":
            return _ordered(value, ">=", operands[0]) and _ordered(value, "<=", operands[1])
        case "like":
            return isinstance(value, str) and like(str(operands[0]), value)
    return False


def like(pattern: str, text: str) -> bool:
    r"""Whether the whole text fits: `%` is any run of characters, `_` any character, `\%`, `\_` and `\\` themselves.

    Bit n of the state says that the pattern's first n characters fit the text so far. A character of the text moves
    every bit that it fits by one, and lets those stay that stand at a `%`. So the time is that of reading the text, for
    any pattern.
    """
    wanted, anything, staying, length = _like_masks(pattern)
    state = 1
    for character in text:
        state = (state & (wanted.get(character, 0) | anything)) << 1 | state & staying
    return state >> length == 1


@lru_cache(maxsize=1024)
def _like_masks(pattern: str) -> tuple[dict[str, int], int, int, int]:
    """Where each character of the text fits, where any does, where a `%` stands, and how many characters it has."""
    wanted: dict[str, int] = {}
    anything = staying = length = 0
    for piece in re.findall(r"\\?.", pattern, re.DOTALL):
        if piece == "%":
            staying |= 1 << length
            continue
        if piece == "_":
            anything |= 1 << length
        else:
            wanted[piece[-1]] = wanted.get(piece[-1], 0) | 1 << length
        length += 1
    return wanted, anything, staying, length


def _plain(value: Any) -> tuple[str, Any]:
    """Kind and something that Python compares exactly."""
    if isinstance(value, Moment):
        return "time", int(value)
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, int | float):
        return "number", value
    if isinstance(value, str):
        return "string", str.__str__(value)  # an Enum of strings has its own idea of str()
    if isinstance(value, date):
        return "time", _microseconds(value)
    if isinstance(value, Mapping):
        return "object", None  # of another kind than whatever a rule names
    raise EventError(f"{value!r} is no value (a {type(value).__name__})")


def _microseconds(value: date) -> int:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    return ((value if value.tzinfo is not None else value.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _equal(left: Any, right: Any) -> bool:
    return _ordered(left, "=", right)


def _ordered(left: Any, operator: str, right: Any) -> bool:
    (kind, a), (other, b) = _plain(left), _plain(right)
    if kind != other or kind == "object":
        return False
    return bool({"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "=": a == b}[operator])


def pair_holds(body: Node, event: Event, document: Event, absent: str, several: frozenset[str]) -> bool:
    """One event with one document: the body as a rule of its own, with the document's answers put in.

    An attribute that either side lacks fails the pair in both polarities, so NOT goes down to the leaves first. Where
    either side has several values, one value of each has to compare so or, negated, no two may.
    """

    def ask(node: Node) -> Node:
        if isinstance(node, Join):
            left, right = lookup(event, node.attribute), lookup(document, node.other)
            missing = left is ABSENT or right is ABSENT
            if missing:
                return Constant(False)
            held = any(_joined(a, node.operator, b) for a in _values(left) for b in _values(right))
            return Constant(held != node.negated)
        if isinstance(node, Predicate) and node.variable:
            return Constant(_holds(node, not node.negated, lookup(document, node.attribute), "fails", several))
        return node

    return matches(bottom_up(push_negation(body), ask), event, absent, several)


def _joined(left: Any, operator: str, right: Any) -> bool:
    """Whether two values compare so; Booleans have no order."""
    return _ordered(left, operator, right) and (operator == "=" or not isinstance(left, bool))


# Ranges: the event's value is some unknown one of a set, and a conjunction needs one value for all its predicates.


def one_value_each(children: Sequence[Node], event: Event, positive: bool) -> bool:
    """For every attribute whose value is a range: does one allowed value satisfy all the predicates there?"""
    groups: dict[str, list[tuple[Predicate, bool]]] = {}
    for child in children:
        if isinstance(child, Predicate) and child.operator != "is null":
            groups.setdefault(child.attribute, []).append((child, positive != child.negated))
    for attribute, group in groups.items():
        value = lookup(event, attribute)
        if isinstance(value, Range) and not _some_value(value, group):
            return False
    return True


def _some_value(value: Range, group: list[tuple[Predicate, bool]]) -> bool:
    operands = [operand for predicate, _ in group for operand in operand_edges(predicate)]
    return any(
        allowed(value, sample) and all(satisfies(predicate, sample) == positive for predicate, positive in group)
        for sample in samples([*operands, *_ends(value)])
    )


def operand_edges(predicate: Predicate) -> Sequence[Value]:
    """Values at which the truth of a predicate may change: of a pattern its prefix, and what is above all with it."""
    if predicate.operator != "like":
        return predicate.values
    (start,) = re.findall(r"^(?:[^%_\\]|\\.)*", str(predicate.values[0]), re.DOTALL)
    prefix = re.sub(r"\\(.)", r"\1", start, flags=re.DOTALL)
    shorter = prefix.rstrip(chr(0x10FFFF))
    if not shorter:
        return (prefix,)
    point = ord(shorter[-1])
    return prefix, shorter[:-1] + chr(0xE000 if point == 0xD7FF else point + 1)  # what lies between is no text


def allowed(value: Range, one: Value) -> bool:
    match value:
        case Between():
            return _ordered(one, ">=", value.low) and _ordered(one, "<=", value.high)
        case Below():
            return _ordered(one, "<=" if value.inclusive else "<", value.value)
        case Above():
            return _ordered(one, ">=" if value.inclusive else ">", value.value)
        case OneOf():
            return any(_equal(one, other) for other in value.values)
        case NoneOf():
            same_kind = _plain(one)[0] == _plain(value.values[0])[0]
            return same_kind and not any(_equal(one, other) for other in value.values)
    raise AssertionError(value)


def _ends(value: Range) -> tuple[Value, ...]:
    if isinstance(value, Between):
        return (value.low, value.high)
    if isinstance(value, Below | Above):
        return (value.value,)
    assert isinstance(value, OneOf | NoneOf)
    return value.values


def samples(values: Iterable[Value]) -> Iterator[Value]:
    """The values, their neighbours on both sides, and some of every kind: one in each range that they cut out."""
    yield from (False, True, -math.inf, math.inf, "", Moment(0))
    for value in values:
        yield value
        kind, plain = _plain(value)
        if kind == "number":
            yield from (float(plain), math.nextafter(plain, -math.inf), math.nextafter(plain, math.inf))
            if math.isfinite(plain):
                whole = math.floor(plain)
                yield from (n for n in (whole - 1, whole, whole + 1) if -(2**63) <= n < 2**63)
        elif kind == "string":
            yield plain + "\0"
        elif kind == "time":
            yield from (Moment(plain - 1), Moment(plain + 1))
