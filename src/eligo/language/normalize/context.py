"""What the rewrites need to know beside the tree."""

from __future__ import annotations

import msgspec

from eligo.language.tree import And, Node, Or, Predicate


class Context:
    """Attributes with several values, the semantics of absence, and an identity for every node seen.

    Identity is by content and by type: Python holds `1 == True`, rules do not. It is built from the identities of the
    children, so that comparing two trees never walks them.
    """

    def __init__(self, multi: frozenset[str] = frozenset(), classical: bool = False) -> None:
        self.multi = multi
        self.classical = classical
        self._numbers: dict[object, int] = {}
        self._known: dict[int, tuple[Node, int]] = {}  # the node is kept, so that its address stays its own

    def identity(self, node: Node) -> int:
        known = self._known.get(id(node))
        if known is not None:
            return known[1]
        if isinstance(node, (And, Or)):
            content: object = (type(node), tuple(self.identity(child) for child in node.children))
        elif isinstance(node, Predicate):
            content = (node, tuple(map(type, node.values)))
        else:
            content = (type(node), msgspec.structs.astuple(node), repr(node))
        number = self._numbers.setdefault(content, len(self._numbers))
        self._known[id(node)] = (node, number)
        return number
