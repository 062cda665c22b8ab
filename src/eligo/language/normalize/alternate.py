"""Predicates of an AND first, then what is nested: the predicates together are its conjunction, one leaf of the tree.

After the rewrites before it the tree already alternates: an AND holds predicates and ORs, an OR holds predicates and
ANDs. So the leaves that the indexes know can be read off: the predicates of an AND, and each lone predicate of an OR.
"""

from __future__ import annotations

from eligo.language.tree import And, Node, Or, with_children


def alternate(node: Node, _: object = None) -> Node:
    if not isinstance(node, (And, Or)):
        return node
    nested = [isinstance(child, (And, Or)) for child in node.children]
    if nested == sorted(nested):
        return node
    return with_children(node, tuple(sorted(node.children, key=lambda child: isinstance(child, (And, Or)))))
