"""Fold `true` and `false`: one `false` makes an AND false, a `true` changes nothing in it; for OR the reverse."""

from __future__ import annotations

from eligo.language.tree import ALWAYS, NEVER, And, Constant, Node, Or, Predicate, with_children
from eligo.language.values import positive_set


def fold_constants(node: Node, _: object = None) -> Node:
    if isinstance(node, Predicate):
        # Only `between` can be empty by itself; what then remains of its negation is presence, or nothing at all.
        if node.operator == "between" and not node.negated and not positive_set(node):
            return NEVER
        return node
    if not isinstance(node, (And, Or)):
        return node
    if not any(isinstance(child, Constant) for child in node.children):
        return node
    decisive = isinstance(node, Or)
    kept: list[Node] = []
    for child in node.children:
        if not isinstance(child, Constant):
            kept.append(child)
        elif child.holds == decisive:
            return ALWAYS if decisive else NEVER
    if not kept:
        return NEVER if decisive else ALWAYS
    return kept[0] if len(kept) == 1 else with_children(node, tuple(kept))
