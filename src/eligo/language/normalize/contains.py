"""`contains` in terms of `=` and `in`.

On an attribute with several values a positive predicate holds when some value satisfies it, so `contains any` is
`in`, and `contains all` is one `=` for each of its values.
"""

from __future__ import annotations

from eligo.language.tree import And, Node, Or, Predicate


def expand_contains(node: Node, _: object = None) -> Node:
    if not isinstance(node, Predicate):
        return node
    if node.operator == "contains any":
        return Predicate(node.attribute, "in", node.values, node.negated)
    if node.operator == "contains all":
        each = tuple(Predicate(node.attribute, "=", (value,), node.negated) for value in node.values)
        if len(each) == 1:
            return each[0]
        return Or(each) if node.negated else And(each)
    return node
