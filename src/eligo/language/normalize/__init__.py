"""Normalisation: an ordered list of small rewrites, one file each.

NOT goes down to the leaves first. Then the tree is rebuilt from its leaves, each node through the rewrites in this
order; a node's children are already normal when it is visited, so one pass is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eligo.language.normalize.alternate import alternate
from eligo.language.normalize.constants import fold_constants
from eligo.language.normalize.contains import expand_contains
from eligo.language.normalize.context import Context
from eligo.language.normalize.deduplicate import deduplicate
from eligo.language.normalize.flatten import flatten
from eligo.language.normalize.merge import merge
from eligo.language.normalize.negation import push_negation
from eligo.language.tree import And, Node, Predicate, bottom_up

Rewrite = Callable[[Node, Context], Node]

REWRITES: tuple[Rewrite, ...] = (
    expand_contains,
    flatten,
    fold_constants,
    merge,
    fold_constants,  # merging finds contradictions and tautologies
    deduplicate,
    alternate,
)


def normalize(root: Node, *, multi: Iterable[str] = (), absent: str = "fails") -> Node:
    """The same truth in normal form: alternating AND and OR, no NOT, at most one constant (the whole tree)."""
    several = multi if isinstance(multi, frozenset) else frozenset(multi)
    if _is_plain(root, several):
        return root
    context = Context(several, absent == "classical")

    def rewrite(node: Node) -> Node:
        for step in REWRITES:
            node = step(node, context)
        return node

    return bottom_up(push_negation(root), rewrite)


def _is_plain(root: Node, multi: frozenset[str]) -> bool:
    """Whether the tree is one conjunction with nothing to rewrite: most rules are, and need not go the long way."""
    if type(root) is Predicate:
        return _is_simple(root)
    if type(root) is not And or len(root.children) < 2:
        return False
    seen = set()
    for child in root.children:
        if type(child) is not Predicate or not _is_simple(child):
            return False
        seen.add(child.attribute)
    return len(seen) == len(root.children)


def _is_simple(predicate: Predicate) -> bool:
    operator = predicate.operator
    if operator == "between":
        low, high = predicate.values
        return type(low) is type(high) and low <= high  # type: ignore[operator]
    return operator != "contains any" and operator != "contains all"
