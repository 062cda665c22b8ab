"""The language of rules: text, JSON and Python, all read into one tree."""

from __future__ import annotations

from eligo.errors import RuleTypeError
from eligo.language.adopt import adopt
from eligo.language.build import Attribute, Document, attr, exists, forall
from eligo.language.json import from_json, to_json
from eligo.language.limits import DEFAULT_LIMITS, NO_LIMITS, Limits, check_limits
from eligo.language.render import render
from eligo.language.text import parse
from eligo.language.tree import And, Constant, Join, Node, Not, Or, Predicate, Quantified

__all__ = [
    "DEFAULT_LIMITS",
    "NO_LIMITS",
    "And",
    "Attribute",
    "Constant",
    "Document",
    "Join",
    "Limits",
    "Node",
    "Not",
    "Or",
    "Predicate",
    "Quantified",
    "adopt",
    "attr",
    "check_limits",
    "exists",
    "forall",
    "from_json",
    "parse",
    "read",
    "render",
    "to_json",
]


def read(expression: object, limits: Limits = DEFAULT_LIMITS) -> Node:
    """The tree of a rule, however it is written: text, decoded JSON, a node or an attribute."""
    if isinstance(expression, str):
        return parse(expression, limits)
    if isinstance(expression, dict | bool):
        return from_json(expression, limits)
    if isinstance(expression, Node | Attribute):
        return adopt(expression, limits)
    raise RuleTypeError(
        f"a rule is text, a JSON form or a Python expression, not a {type(expression).__name__}",
        hint="bytes are decoded first: text.decode()" if isinstance(expression, bytes) else "",
    )
