"""Rules in Python: `(attr("age") >= 18) & attr("country").is_in(["US", "CA"])`.

Comparisons with an attribute give predicates; `&`, `|` and `~` join them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NoReturn, cast

from eligo.errors import RuleTypeError
from eligo.language.adopt import adopt, expression
from eligo.language.check import (
    FLIPPED,
    SPELLINGS,
    Problem,
    check_name,
    check_pattern,
    check_variable,
    clean_all,
    kind_name,
    predicate,
    short,
)
from eligo.language.limits import NO_LIMITS
from eligo.language.patterns import ESCAPE
from eligo.language.tree import And, Comparison, Join, Node, Not, Or, Predicate, Quantified


def attr(name: str) -> Attribute:
    """The event's attribute of that name, to compare: `attr("age") >= 18`."""
    return Attribute(name)


def exists(variable: str, body: Callable[[Document], object], *, received: bool = False) -> Quantified:
    """True when some document seen before makes the body true: `exists("d", lambda d: attr("price") < d.price)`.

    `received`: some document that was delivered to the rule's owner.
    """
    return _quantified("exists", variable, body, received)


def forall(variable: str, body: Callable[[Document], object], *, received: bool = False) -> Quantified:
    """True when every document seen before makes the body true; `received`: every one that the rule's owner got."""
    return _quantified("forall", variable, body, received)


class Attribute:
    """An attribute, of the event or of a document. Bare in `&`, `|` and `~` it stands for `attribute = true`."""

    __slots__ = ("_name", "_variable")
    __hash__ = None  # type: ignore[assignment]  # == builds a predicate
    __array_ufunc__ = None  # so that `numpy.int64(18) <= attr("age")` is asked of the attribute

    def __init__(self, name: str, variable: str = "") -> None:
        try:
            self._name = check_name(name)
        except Problem as problem:
            raise problem.error() from None
        self._variable = variable

    def as_node(self) -> Predicate:
        return Predicate(self._name, "=", (True,), False, self._variable)

    def __eq__(self, other: object) -> Node:  # type: ignore[override]
        return self._compare("=", other)

    def __ne__(self, other: object) -> Node:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Node:
        return self._compare("<", other)

    def __le__(self, other: object) -> Node:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Node:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Node:
        return self._compare(">=", other)

    def is_in(self, values: Iterable[object]) -> Node:
        return self._predicate("in", _listed(values))

    def not_in(self, values: Iterable[object]) -> Node:
        return self._predicate("not in", _listed(values))

    def between(self, low: object, high: object) -> Node:
        return self._predicate("between", (low, high))

    def not_between(self, low: object, high: object) -> Node:
        return self._predicate("not between", (low, high))

    def like(self, pattern: str, escape: str = ESCAPE) -> Node:
        return self._like("like", pattern, escape)

    def not_like(self, pattern: str, escape: str = ESCAPE) -> Node:
        return self._like("not like", pattern, escape)

    def is_null(self) -> Node:
        return self._predicate("is null", ())

    def is_not_null(self) -> Node:
        return self._predicate("is not null", ())

    def contains_any(self, values: Iterable[object]) -> Node:
        return self._predicate("contains any", _listed(values))

    def contains_all(self, values: Iterable[object]) -> Node:
        return self._predicate("contains all", _listed(values))

    def contains_none(self, values: Iterable[object]) -> Node:
        return self._predicate("contains none", _listed(values))

    def __and__(self, other: object) -> And:
        return self.as_node() & expression(other)

    def __rand__(self, other: object) -> And:
        return expression(other) & self

    def __or__(self, other: object) -> Or:
        return self.as_node() | expression(other)

    def __ror__(self, other: object) -> Or:
        return expression(other) | self

    def __invert__(self) -> Not:
        return ~self.as_node()

    def __bool__(self) -> NoReturn:
        self.as_node().__bool__()

    def __contains__(self, item: object) -> NoReturn:
        raise RuleTypeError("'in' cannot be asked of an attribute", hint='write attr("x").contains_any([…])')

    def __iter__(self) -> NoReturn:
        raise RuleTypeError("an attribute cannot be looped over")

    def __repr__(self) -> str:
        return f"{self._variable}[{self._name!r}]" if self._variable else f"attr({self._name!r})"

    def _compare(self, spelling: str, other: object) -> Node:
        if isinstance(other, Attribute):
            return self._join(spelling, other)
        if other is None:
            remedy = ".is_not_null()" if spelling == "!=" else ".is_null()"
            raise RuleTypeError("None is not a value to compare with", hint=f"write {self!r}{remedy}")
        return self._predicate(spelling, (other,))

    def _join(self, spelling: str, other: Attribute) -> Join:
        if bool(self._variable) == bool(other._variable):
            what = "two attributes of the document" if self._variable else "two attributes of the event"
            hint = 'compare an attribute with a value, or with a document\'s: exists("d", lambda d: attr("a") < d.a)'
            raise RuleTypeError(f"{what} cannot be compared: {self!r} and {other!r}", hint=hint)
        operator, negated = SPELLINGS[spelling]
        if self._variable:
            return Join(other._name, FLIPPED[operator], self._variable, self._name, negated)
        return Join(self._name, cast(Comparison, operator), other._variable, other._name, negated)

    def _like(self, spelling: str, pattern: str, escape: str) -> Predicate:
        if escape != ESCAPE and isinstance(pattern, str):
            try:
                pattern = check_pattern(pattern, escape)
            except Problem as problem:
                raise problem.error(where=f"{self!r}: ") from None
        return self._predicate(spelling, (pattern,))

    def _predicate(self, spelling: str, values: tuple[object, ...]) -> Predicate:
        try:
            return predicate(self._name, spelling, clean_all(values), self._variable, NO_LIMITS)
        except Problem as problem:
            raise problem.error(where=f"{self!r}: ") from None


class Document:
    """The variable of a quantifier: `d.price` or `d["any name"]` is an attribute of the document."""

    __slots__ = ("_variable",)

    def __init__(self, variable: str) -> None:
        self._variable = variable

    def __getattr__(self, name: str) -> Attribute:
        if name.startswith("__"):  # Python's own questions, such as copy's and pickle's
            raise AttributeError(name)
        return Attribute(name, self._variable)

    def __getitem__(self, name: str) -> Attribute:
        return Attribute(name, self._variable)

    def __repr__(self) -> str:
        return f"Document({self._variable!r})"


def _quantified(
    quantifier: Literal["exists", "forall"], variable: str, body: Callable[[Document], object], received: bool
) -> Quantified:
    try:
        variable = check_variable(variable)
    except Problem as problem:
        raise problem.error() from None
    if not callable(body):
        hint = f'write {quantifier}("{variable}", lambda {variable}: attr("price") < {variable}.price)'
        raise RuleTypeError(
            f"the body of {quantifier} is a function of the document, not a {kind_name(body)}", hint=hint
        )
    return Quantified(
        quantifier, variable, adopt(body(Document(variable)), NO_LIMITS, variable), received=bool(received)
    )


def _listed(values: Iterable[object]) -> tuple[object, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise RuleTypeError(f"expected a list of values, got {short(values)}", hint="put one value in a list: ['US']")
    if isinstance(values, set | frozenset):  # whose order may differ in the next process
        return tuple(sorted(values, key=lambda value: (kind_name(value), repr(value))))
    return tuple(values)
