"""How large a rule may be. A rule past a limit is refused with a `LimitError` that names the limit and the size."""

from __future__ import annotations

import sys

import msgspec

from eligo.errors import LimitError
from eligo.language.tree import And, Join, Node, Not, Or, Predicate, Quantified, children_of


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How large a rule may be.

    `text` in characters, `depth` in levels (parentheses count), `leaves` in predicates, `values` in one list, `terms`
    in disjunctive normal form.
    """

    text: int = 1_000_000
    depth: int = 256
    leaves: int = 65_536
    values: int = 65_536
    terms: int = 4_096


DEFAULT_LIMITS = Limits()

# While a rule is built, for its limits are the matcher's to know; and where one that was accepted is read again.
NO_LIMITS = Limits(text=sys.maxsize, depth=sys.maxsize, leaves=sys.maxsize, values=sys.maxsize, terms=sys.maxsize)


def exceeded(name: str, size: int, limit: int) -> LimitError:
    what = {
        "text": "characters of text",
        "depth": "levels of nesting",
        "leaves": "predicates",
        "values": "values in one list",
        "terms": "terms in disjunctive normal form",
    }[name]
    return LimitError(
        f"rule too large: {size:,} {what}, the limit is {limit:,} "
        f"(raise it with Matcher(limits=Limits({name}=…)) or split the rule)"
    )


def check_limits(root: Node, limits: Limits = DEFAULT_LIMITS) -> None:
    """Refuse a tree past its limits; for trees that were not read from text, which checks as it reads."""
    leaves = 0
    stack = [(root, 1)]
    while stack:
        node, level = stack.pop()
        if level > limits.depth:
            raise exceeded("depth", level, limits.depth)
        if isinstance(node, (And, Or, Not)):
            stack.extend((child, level + 1) for child in children_of(node))
        elif isinstance(node, Quantified):
            stack.append((node.body, level + 1))
        elif isinstance(node, Predicate | Join):
            leaves += 1
            if leaves > limits.leaves:
                raise exceeded("leaves", leaves, limits.leaves)
            if isinstance(node, Predicate) and len(node.values) > limits.values:
                raise exceeded("values", len(node.values), limits.values)
