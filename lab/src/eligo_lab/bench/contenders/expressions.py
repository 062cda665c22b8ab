"""Rules in the languages of others.

A tree goes over predicate by predicate, NOT first pushed down to the leaves. Every predicate says what an absent
attribute means, because no two of these languages agree on it:

    positive                        present and test
    negated, absent="fails"         present and not test
    negated, absent="classical"     absent or not test

A value of another kind than the operand satisfies nothing. No language here is trusted with that: the kinds of the
events' columns are known, so such a test is written as plain false.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import ClassVar

import pyarrow as pa

from eligo.language.patterns import pieces
from eligo.language.tree import And, Constant, Node, Or, Predicate, Value, push_negation
from eligo_lab.bench.contenders.base import UnfitError

KINDS = ("number", "float", "string", "boolean", "time")


def kinds_of(schema: pa.Schema) -> dict[str, str]:
    """What each attribute holds in the events: one of `KINDS`, or the Arrow type that no other language takes."""
    tests = (
        ("number", pa.types.is_integer),
        ("float", pa.types.is_floating),
        ("string", pa.types.is_string),
        ("string", pa.types.is_large_string),
        ("boolean", pa.types.is_boolean),
        ("time", lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None),
    )
    return {field.name: next((kind for kind, test in tests if test(field.type)), str(field.type)) for field in schema}


def kind_of(value: Value) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "time"


@dataclass
class Dialect:
    """How one language writes things. `number` gives each attribute its name there: any word may be a keyword."""

    kinds: dict[str, str]
    absent: str
    numbers: dict[str, int]
    constants: dict[str, datetime] = field(default_factory=dict)  # what has no literal

    conjunction: ClassVar[str] = " and "
    disjunction: ClassVar[str] = " or "
    negation: ClassVar[str] = "not "
    true: ClassVar[str] = "true"
    false: ClassVar[str] = "false"

    def name(self, attribute: str) -> str:
        return f"x{self.numbers.setdefault(attribute, len(self.numbers))}"

    def value(self, attribute: str) -> str:
        return self.name(attribute)

    def present(self, attribute: str) -> str:
        return f"{self.name(attribute)} != null"

    def missing(self, attribute: str) -> str:
        return f"{self.name(attribute)} == null"

    def literal(self, value: Value) -> str:
        if isinstance(value, date):
            raise UnfitError(f"dates and times are not translated ({value})")
        return json.dumps(value)

    def equal(self, subject: str, value: Value) -> str:
        return f"{subject} == {self.literal(value)}"

    def within(self, subject: str, values: Sequence[Value]) -> str:
        return f"{subject} in [{', '.join(map(self.literal, values))}]"

    def like(self, subject: str, pattern: str) -> str:
        raise UnfitError(f"`like` has no counterpart here ({pattern!r})")

    def check(self, predicate: Predicate) -> None:
        """Refuse what this language gets wrong."""

    def translate(self, root: Node) -> str:
        """A whole rule."""
        return self._node(push_negation(root))

    def _node(self, node: Node) -> str:
        if isinstance(node, Constant):
            return self.true if node.holds else self.false
        if isinstance(node, And | Or):
            word = self.conjunction if isinstance(node, And) else self.disjunction
            # An AND needs no parentheses around the ANDs that predicates become.
            flat = isinstance(node, And)
            parts = [self._node(c) if flat and not isinstance(c, Or) else f"({self._node(c)})" for c in node.children]
            return word.join(parts)
        if not isinstance(node, Predicate):
            raise UnfitError("joins over documents have no counterpart here")
        if node.negated and self.absent == "classical":
            return f"({self.predicate(node)})"
        return self.predicate(node)

    def predicate(self, p: Predicate) -> str:
        """One predicate with its word on absence."""
        if p.operator == "is null":
            return self.present(p.attribute) if p.negated else self.missing(p.attribute)
        test = self.test(p)
        if not p.negated:
            return f"{self.present(p.attribute)}{self.conjunction}{test}"
        if self.absent == "classical":
            return f"{self.missing(p.attribute)}{self.disjunction}{self.negation}({test})"
        return f"{self.present(p.attribute)}{self.conjunction}{self.negation}({test})"

    def test(self, p: Predicate, subject: str = "") -> str:
        """Whether a value that is there satisfies the predicate's positive form."""
        if p.operator.startswith("contains"):
            raise UnfitError(f"attributes with several values have no counterpart here ({p.attribute!r})")
        self.check(p)
        kind = self.kinds.get(p.attribute)
        if kind is not None and kind not in KINDS:
            raise UnfitError(f"values of Arrow type {kind} are not translated ({p.attribute!r})")
        wanted = "number" if kind == "float" else kind
        values = [v for v in p.values if kind_of(v) == wanted or wanted is None]
        if not values or (p.operator == "between" and len(values) < 2):
            return self.false
        subject = subject or self.value(p.attribute)
        if p.operator == "=":
            return self.equal(subject, values[0])
        if p.operator == "in":
            return self.within(subject, values)
        if p.operator == "like":
            return self.like(subject, str(values[0]))
        if p.operator == "between":
            low, high = map(self.literal, values)
            return f"{subject} >= {low}{self.conjunction}{subject} <= {high}"
        return f"{subject} {p.operator} {self.literal(values[0])}"


class Python(Dialect):
    """Python itself, over a dict `e`; operands are written with repr, and nothing of a rule's text is executed."""

    true, false = "True", "False"

    def name(self, attribute: str) -> str:
        return repr(attribute)

    def value(self, attribute: str) -> str:
        return "v"

    def present(self, attribute: str) -> str:
        return f"(v := e.get({attribute!r})) is not None"

    def missing(self, attribute: str) -> str:
        return f"(v := e.get({attribute!r})) is None"

    def literal(self, value: Value) -> str:
        if not isinstance(value, date):
            return repr(value)
        # A date is its midnight, and what has no zone is UTC, as in a rule.
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        name = f"t{len(self.constants)}"
        self.constants[name] = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return name

    def within(self, subject: str, values: Sequence[Value]) -> str:
        return f"{subject} in {{{', '.join(map(self.literal, values))}}}"  # which Python makes a constant set

    def like(self, subject: str, pattern: str) -> str:
        wildcards = {"%": ".*", "_": "."}
        expression = "".join(wildcards[c] if wild else re.escape(c) for c, wild in pieces(pattern))
        return f"fits({expression!r}, {subject}, 16) is not None"

    def predicate(self, p: Predicate) -> str:
        # None equals no operand, so the commonest two tests need no word on absence.
        if p.operator in ("=", "in") and not p.negated:
            return self.test(p, f"e.get({p.attribute!r})")
        return super().predicate(p)


class Rules(Dialect):
    """rule-engine: absent is null, and null compares with nothing in an order, so every test is guarded."""


class Zen(Dialect):
    """zen-engine: no order on strings, no escapes in them, and floats as decimals of 28 digits."""

    def check(self, predicate: Predicate) -> None:
        if self.kinds.get(predicate.attribute) == "float" or any(isinstance(v, float) for v in predicate.values):
            raise UnfitError(f"zen-engine compares floats as decimals, not as they are ({predicate.attribute!r})")
        if predicate.operator not in ("=", "in", "like") and any(isinstance(v, str) for v in predicate.values):
            raise UnfitError(f"zen-engine has no order on strings ({predicate.attribute!r})")

    def literal(self, value: Value) -> str:
        if isinstance(value, str):
            if '"' in value or "\\" in value or not value.isprintable():
                raise UnfitError(f"zen-engine cannot write the string {value!r}")
            return f'"{value}"'
        return super().literal(value)


class Cel(Dialect):
    """CEL: the event is a map `e`; `has` asks for presence, and an order between two kinds is an error."""

    conjunction, disjunction, negation = " && ", " || ", "!"

    def value(self, attribute: str) -> str:
        return f"e.{self.name(attribute)}"

    def present(self, attribute: str) -> str:
        return f"has(e.{self.name(attribute)})"

    def missing(self, attribute: str) -> str:
        return f"!has(e.{self.name(attribute)})"
