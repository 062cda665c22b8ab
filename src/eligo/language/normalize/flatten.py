"""`a and (b and c)` is `a and b and c`; an AND or OR of one thing is that thing."""

from __future__ import annotations

from eligo.language.tree import And, Node, Or, with_children


def flatten(node: Node, _: object = None) -> Node:
    if not isinstance(node, (And, Or)):
        return node
    kind = type(node)
    children = node.children
    if any(type(child) is kind for child in children):
        flat: list[Node] = []
        for child in children:
            if isinstance(child, (And, Or)) and type(child) is kind:
                flat.extend(child.children)
            else:
                flat.append(child)
        children = tuple(flat)
    if len(children) == 1:
        return children[0]
    return node if children is node.children else with_children(node, children)
