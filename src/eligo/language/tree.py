"""The one tree that every way of writing a rule becomes.

    And ── Predicate(age >= 18)
        └─ Not ── Or ── Predicate(segment = 'churned')
                     └─ Predicate(score < 0.2)

Nodes are immutable and compare by content. A negated operator is a positive one with `negated` set: `x != 1` is
`Predicate("x", "=", (1,), negated=True)`. Polarity is kept apart from the operator because `not (x < 5)` is not
`x >= 5`: they differ on absent attributes and on values of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Literal, NoReturn

import msgspec

Value = bool | int | float | str | date | datetime

Operator = Literal["=", "<", "<=", ">", ">=", "in", "between", "like", "is null", "contains any", "contains all"]
Comparison = Literal["=", "<", "<=", ">", ">="]


class Node(msgspec.Struct, frozen=True, cache_hash=True):
    """Base of all nodes. `&`, `|` and `~` build And, Or and Not."""

    def __and__(self, other: object) -> And:
        right = as_node(other)
        left = self.children if isinstance(self, And) else (self,)
        return And((*left, right))

    def __rand__(self, other: object) -> And:
        return as_node(other) & self

    def __or__(self, other: object) -> Or:
        right = as_node(other)
        left = self.children if isinstance(self, Or) else (self,)
        return Or((*left, right))

    def __ror__(self, other: object) -> Or:
        return as_node(other) | self

    def __invert__(self) -> Not:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an expression has no truth value of its own: combine expressions with &, | and ~ "
            "(in parentheses), not with and, or and not"
        )


class Constant(Node, frozen=True, cache_hash=True):
    """`true` or `false`: always, or never."""

    holds: bool


class Predicate(Node, frozen=True, cache_hash=True):
    """attribute, operator, operands. `variable` is "" for the event's attribute, else the document variable."""

    attribute: str
    operator: Operator
    values: tuple[Value, ...] = ()
    negated: bool = False
    variable: str = ""


class Join(Node, frozen=True, cache_hash=True):
    """`attribute operator variable.other`: the event's attribute against a document's."""

    attribute: str
    operator: Comparison
    variable: str
    other: str
    negated: bool = False


class Quantified(Node, frozen=True, cache_hash=True):
    """`exists d (…)` or `forall d (…)` over the documents seen before; true or false, so NOT is its complement.

    With `received` it ranges over the documents that were delivered to the rule's owner: `exists d in received (…)`.
    """

    quantifier: Literal["exists", "forall"]
    variable: str
    body: Node
    negated: bool = False
    received: bool = False


class Not(Node, frozen=True, cache_hash=True):
    child: Node


class And(Node, frozen=True, cache_hash=True):
    children: tuple[Node, ...]


class Or(Node, frozen=True, cache_hash=True):
    children: tuple[Node, ...]


ALWAYS = Constant(True)
NEVER = Constant(False)


def as_node(thing: object) -> Node:
    """A node, or whatever can become one (an attribute reference stands for `attribute = true`)."""
    if isinstance(thing, Node):
        return thing
    convert = getattr(thing, "as_node", None)
    if convert is not None:
        node = convert()
        assert isinstance(node, Node)
        return node
    raise TypeError(f"expected an expression, got {type(thing).__name__}: {thing!r}")


def children_of(node: Node) -> tuple[Node, ...]:
    if isinstance(node, (And, Or)):
        return node.children
    if isinstance(node, Not):
        return (node.child,)
    return ()


def with_children(node: Node, children: tuple[Node, ...]) -> Node:
    if isinstance(node, And):
        return And(children)
    if isinstance(node, Or):
        return Or(children)
    if isinstance(node, Not):
        return Not(children[0])
    return node


def bottom_up(root: Node, visit: Callable[[Node], Node]) -> Node:
    """Rebuild the tree from its leaves, each node through `visit`; a loop, so that depth costs no stack.

    A quantifier counts as a leaf: its body speaks of another world.
    """
    if not isinstance(root, (And, Or, Not)):
        return visit(root)
    # A frame is a node, its children still to come (a reversed list), and those done.
    stack: list[tuple[Node, list[Node], list[Node]]] = [(root, list(children_of(root))[::-1], [])]
    while True:
        node, waiting, done = stack[-1]
        if waiting:
            child = waiting.pop()
            if isinstance(child, (And, Or, Not)):
                stack.append((child, list(children_of(child))[::-1], []))
            else:
                done.append(visit(child))
            continue
        stack.pop()
        before = children_of(node)
        same = len(before) == len(done) and all(a is b for a, b in zip(before, done, strict=True))
        result = visit(node if same else with_children(node, tuple(done)))
        if not stack:
            return result
        stack[-1][2].append(result)


def leaves(root: Node) -> Iterator[Node]:
    """Every leaf from left to right; a quantifier counts as one."""
    stack = [root]
    while stack:
        node = stack.pop()
        below = children_of(node)
        if below:
            stack.extend(reversed(below))
        elif not isinstance(node, (And, Or)):
            yield node


def predicates_of(root: Node) -> Iterator[Predicate]:
    """Every predicate on the event itself, those inside quantifiers included."""
    for leaf in leaves(root):
        if isinstance(leaf, Predicate):
            if not leaf.variable:
                yield leaf
        elif isinstance(leaf, Quantified):
            yield from predicates_of(leaf.body)


def push_negation(root: Node) -> Node:
    """Push NOT down to the leaves as a polarity.

    De Morgan's laws turn NOT into AND and OR of negated leaves. The operator is never flipped: `not (x < 5)` stays the
    negation of `x < 5`, because it also holds for a string and, classically, for an absent x, where `x >= 5` does not.
    """
    if not isinstance(root, (And, Or, Not)):
        return root
    # Descend with the polarity, then build on the way back; (node, positive) frames as in bottom_up.
    stack: list[tuple[Node, bool, list[Node]]] = []
    node: Node = root
    positive = True
    while True:
        while isinstance(node, Not):
            node, positive = node.child, not positive
        if isinstance(node, (And, Or)):
            stack.append((node, positive, []))
        else:
            result = node if positive else _negated(node)
            while stack:
                parent, sign, done = stack[-1]
                assert isinstance(parent, (And, Or))
                done.append(result)
                if len(done) < len(parent.children):
                    break
                stack.pop()
                kind = And if isinstance(parent, And) == sign else Or
                result = kind(tuple(done))
            else:
                return result
        parent, positive, done = stack[-1]
        assert isinstance(parent, (And, Or))
        node = parent.children[len(done)]


def _negated(leaf: Node) -> Node:
    if isinstance(leaf, Constant):
        return Constant(not leaf.holds)
    if isinstance(leaf, Predicate):
        return Predicate(leaf.attribute, leaf.operator, leaf.values, not leaf.negated, leaf.variable)
    if isinstance(leaf, Join):
        return Join(leaf.attribute, leaf.operator, leaf.variable, leaf.other, not leaf.negated)
    assert isinstance(leaf, Quantified)
    return Quantified(leaf.quantifier, leaf.variable, leaf.body, not leaf.negated, leaf.received)
