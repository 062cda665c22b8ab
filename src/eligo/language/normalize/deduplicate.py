"""`a and a` is `a`, for whole sub-trees too; and what AND shares with OR absorbs it: `a and (a or b)` is `a`."""

from __future__ import annotations

from eligo.language.normalize.context import Context
from eligo.language.tree import And, Node, Or, with_children


def deduplicate(node: Node, context: Context) -> Node:
    if not isinstance(node, (And, Or)):
        return node
    seen: dict[int, Node] = {}
    for child in node.children:
        seen.setdefault(context.identity(child), child)
    dual = Or if isinstance(node, And) else And
    kept = [
        child
        for number, child in seen.items()
        if not (
            isinstance(child, (And, Or))
            and type(child) is dual
            and any(context.identity(part) in seen for part in child.children)
        )
    ]
    if len(kept) == 1:
        return kept[0]
    return node if len(kept) == len(node.children) else with_children(node, tuple(kept))
