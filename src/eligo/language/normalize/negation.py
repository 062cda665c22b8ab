"""Push NOT down to the leaves as a polarity.

De Morgan's laws turn NOT into AND and OR of negated leaves. The operator is never flipped: `not (x < 5)` stays the
negation of `x < 5`, because it also holds for a string and, classically, for an absent x, where `x >= 5` does not.
"""

from __future__ import annotations

from eligo.language.tree import And, Constant, Join, Node, Not, Or, Predicate, Quantified


def push_negation(root: Node) -> Node:
    if not isinstance(root, (And, Or, Not)):
        return root
    # Descend with the polarity, then build on the way back; (node, positive) frames as in tree.bottom_up.
    stack: list[tuple[Node, bool, list[Node]]] = []
    node: Node = root
    positive = True
    while True:
        while isinstance(node, Not):
            node, positive = node.child, not positive
        if isinstance(node, (And, Or)):
            stack.append((node, positive, []))
        else:
            result = node if positive else negate(node)
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


def negate(leaf: Node) -> Node:
    if isinstance(leaf, Constant):
        return Constant(not leaf.holds)
    if isinstance(leaf, Predicate):
        return Predicate(leaf.attribute, leaf.operator, leaf.values, not leaf.negated, leaf.variable)
    if isinstance(leaf, Join):
        return Join(leaf.attribute, leaf.operator, leaf.variable, leaf.other, not leaf.negated)
    assert isinstance(leaf, Quantified)
    return Quantified(leaf.quantifier, leaf.variable, leaf.body, not leaf.negated, leaf.received)
