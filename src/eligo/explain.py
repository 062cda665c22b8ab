"""Why a rule did or did not match: its tree with what held and what did not.

The one rule is read again and asked through the reference evaluator, node by node, so that an explanation cannot
drift from the definition of truth. Of an event with ranges it shows the normal form, because there the answer is made
for each conjunction: one value has to do for all its predicates on an attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eligo.errors import EventError
from eligo.language.normalize import normalize
from eligo.language.ranges import Range
from eligo.language.reference import ABSENT, lookup, matches
from eligo.language.render import render
from eligo.language.tree import And, Constant, Node, Not, Or, Predicate, predicates_of

_SHOWN = 60


class Explanation:
    """`print` it; `matched` is the answer, `lines` the tree as (depth, held, what, why)."""

    def __init__(self, rule: object, matched: bool, lines: list[tuple[int, bool, str, str]]) -> None:
        self.rule = rule
        self.matched = matched
        self.lines = lines

    def __bool__(self) -> bool:
        return self.matched

    def __str__(self) -> str:
        head = f"{self.rule} {'matches' if self.matched else 'does not match'}"
        body = [
            f"{'  ' * depth}{'✓' if held else '✗'} {what}{f'   ({why})' if why else ''}"
            for depth, held, what, why in self.lines
        ]
        return "\n".join([head, *body])

    def __repr__(self) -> str:
        return f"Explanation({self.rule!r}, matched={self.matched})"


def explain(rule: object, root: Node, event: Mapping[str, Any], absent: str, multi: Iterable[str]) -> Explanation:
    """The tree of a rule, each node with its own truth. Under NOT a node shows the truth of what stands there."""
    if not isinstance(event, Mapping):
        raise EventError(f"an event is a mapping from attribute to value, not {type(event).__name__}: {_show(event)}")
    several = frozenset(multi)
    if any(isinstance(lookup(event, predicate.attribute), Range) for predicate in predicates_of(root)):
        root = normalize(root, multi=several, absent=absent)
    lines: list[tuple[int, bool, str, str]] = []
    todo: list[tuple[Node, int, bool]] = [(root, 1, True)]
    while todo:
        node, depth, positive = todo.pop()
        held = matches(node if positive else Not(node), event, absent, several)
        if isinstance(node, Not):
            lines.append((depth, held, "not", ""))
            todo.append((node.child, depth + 1, not positive))
            continue
        # Below NOT a line speaks of the negation, which is what has to hold there.
        if isinstance(node, (And, Or)):
            all_of = isinstance(node, And) == positive
            count = sum(matches(c if positive else Not(c), event, absent, several) for c in node.children)
            lines.append((depth, held, "all of" if all_of else "any of", f"{count} of {len(node.children)} hold"))
            todo.extend((child, depth + 1, positive) for child in reversed(node.children))
        else:
            shown = render(node) if positive else f"not {render(node)}"
            lines.append((depth, held, shown, _why(node, event)))
    return Explanation(rule, matches(root, event, absent, several), lines)


def _why(node: Node, event: Mapping[str, Any]) -> str:
    if isinstance(node, Constant):
        return ""
    if not isinstance(node, Predicate):
        return "over the documents seen before"
    value = lookup(event, node.attribute)
    if value is ABSENT:
        return f"{node.attribute} is absent"
    return f"{node.attribute} is {_show(value)}"


def _show(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
