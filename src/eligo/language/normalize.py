"""Normalisation: an ordered list of small rewrites.

NOT goes down to the leaves first (`tree.push_negation`). Then the tree is rebuilt from its leaves, each node through
the rewrites in this order; a node's children are already normal when it is visited, so one pass is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from eligo.language.patterns import like_prefix
from eligo.language.tree import (
    ALWAYS,
    NEVER,
    And,
    Constant,
    Node,
    Or,
    Predicate,
    Value,
    bottom_up,
    push_negation,
    with_children,
)
from eligo.language.values import (
    BOOLEAN,
    EVERYTHING,
    NOTHING,
    Cut,
    ValueSet,
    after,
    before,
    complement,
    is_residual,
    kind_of,
    positive_set,
    union,
)

Meaning = tuple[ValueSet, bool]  # the values that satisfy, and whether absence does
Bound = tuple[Value, bool]  # a value, and whether the cut lies after it


def normalize(root: Node, *, multi: Iterable[str] = (), absent: str = "fails") -> Node:
    """The same truth in normal form: alternating AND and OR, no NOT, at most one constant (the whole tree)."""
    several = multi if isinstance(multi, frozenset) else frozenset(multi)
    if _is_plain(root):
        return root
    context = Context(several, absent == "classical")

    def rewrite(node: Node) -> Node:
        if isinstance(node, Predicate):
            node = expand_leaf(node)
        for step in REWRITES:
            if not isinstance(node, (And, Or)):
                break
            node = step(node, context)
        return node

    return bottom_up(push_negation(root), rewrite)


def _is_plain(root: Node) -> bool:
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


def expand_leaf(leaf: Predicate) -> Node:
    """`contains` in terms of `=` and `in`; an empty `between` as false.

    On an attribute with several values a positive predicate holds when some value satisfies it, so `contains any` is
    `in`, and `contains all` is one `=` for each of its values. Only `between` can be empty by itself; what then remains
    of its negation is presence, or nothing at all.
    """
    if leaf.operator == "contains any":
        return Predicate(leaf.attribute, "in", leaf.values, leaf.negated)
    if leaf.operator == "contains all":
        each = tuple(Predicate(leaf.attribute, "=", (value,), leaf.negated) for value in leaf.values)
        if len(each) == 1:
            return each[0]
        return Or(each) if leaf.negated else And(each)
    if leaf.operator == "between" and not leaf.negated and not positive_set(leaf):
        return NEVER
    return leaf


def flatten(node: And | Or, _: Context) -> Node:
    """`a and (b and c)` is `a and b and c`; an AND or OR of one thing is that thing."""
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


def fold_constants(node: And | Or, _: Context) -> Node:
    """One `false` makes an AND false, a `true` changes nothing in it; for OR the reverse."""
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


def merge(node: And | Or, context: Context) -> Node:
    """Merge the predicates of one AND or OR on one single-valued attribute.

        a >= 10 and a <= 30        a between 10 and 30
        a = 1 or a in (2, 3)       a in (1, 2, 3)
        a < 5 and a > 7            false
        a < 5 or not a < 5         a is not null; under classical semantics, true

    Each predicate is a set of values and a word on absence; AND intersects, OR unites. Where the outcome is one that
    the language can say in fewer words it is put in, else the predicates stay as they are. Attributes with several
    values are left alone: `a >= 10 and a <= 30` may be met by two values, one for each bound.
    """
    groups: dict[str, list[Predicate]] = {}
    for child in node.children:
        if isinstance(child, Predicate) and child.attribute not in context.multi and not is_residual(child):
            groups.setdefault(child.attribute, []).append(child)
    replaced: dict[str, list[Node]] = {}
    for attribute, group in groups.items():
        if len(group) > 1:
            shorter = _merged(group, isinstance(node, And), context)
            if shorter is not None:
                replaced[attribute] = shorter
    if not replaced:
        return node
    children: list[Node] = []
    for child in node.children:
        if isinstance(child, Predicate) and child.attribute in replaced and not is_residual(child):
            children.extend(replaced[child.attribute])
            replaced[child.attribute] = []  # the whole group stands at the place of its first member
        else:
            children.append(child)
    return children[0] if len(children) == 1 else with_children(node, tuple(children))


def meaning(predicate: Predicate, classical: bool) -> Meaning:
    """What a predicate on a single-valued attribute says: a set of values, and whether absence satisfies it."""
    if predicate.operator == "is null":
        return (EVERYTHING, False) if predicate.negated else (NOTHING, True)
    values = positive_set(predicate)
    return (complement(values), classical) if predicate.negated else (values, False)


def _merged(group: list[Predicate], conjunction: bool, context: Context) -> list[Node] | None:
    sets = [meaning(predicate, context.classical) for predicate in group]
    if conjunction:
        # What all allow is what none forbids: one sorting, however many there are.
        values = complement(union(run for allowed, _ in sets for run in complement(allowed)))
        absent = all(holds for _, holds in sets)
    else:
        values = union(run for allowed, _ in sets for run in allowed)
        absent = any(holds for _, holds in sets)
    attribute = group[0].attribute
    if values == NOTHING:
        return [Predicate(attribute, "is null") if absent else NEVER]
    if values == EVERYTHING:
        return [ALWAYS if absent else Predicate(attribute, "is null", negated=True)]
    said = _say(attribute, values, _bounds(group)) if not absent else None
    if said is None and absent == context.classical:
        said = _say(attribute, complement(values), _bounds(group))
        if said is not None and len(said) > 1:
            said = None  # the negation of two bounds is an OR
        elif said is not None:
            said = [Predicate(attribute, said[0].operator, said[0].values, negated=True)]
    if said is None or len(said) >= len(group) or (len(said) > 1 and not conjunction):
        return None
    return list(said)


def _bounds(group: list[Predicate]) -> dict[Cut, Bound]:
    """How to say each cut in terms of the operands that made it."""
    bounds: dict[Cut, Bound] = {}
    for predicate in group:
        for value in predicate.values:
            if predicate.operator == "like":
                value = like_prefix(str(value))[0]
            bounds.setdefault(before(value), (value, False))
            bounds.setdefault(after(value), (value, True))
    return bounds


def _say(attribute: str, values: ValueSet, bounds: dict[Cut, Bound]) -> list[Predicate] | None:
    """The set as predicates whose AND it is: `=`, `in`, one or two comparisons, `between`; None if there are none."""
    lows = [(bounds[low], high) for low, high in values if low in bounds]
    points = tuple(value for (value, past), high in lows if not past and after(value) == high)
    if len(points) == len(values):
        return [Predicate(attribute, "=" if len(points) == 1 else "in", points)]
    if len(values) > 1:
        return None
    (low, high) = values[0]
    if low[0] == BOOLEAN:
        return None  # Booleans have no order to say it in
    at_start = len(low) == 1 and low not in bounds
    at_end = len(high) == 1 and high not in bounds
    # One run within one kind: from its start, to its end, or between two bounds.
    if at_start and at_end:
        return None
    if at_start:
        if high not in bounds or high[0] != low[0]:
            return None
        value, past = bounds[high]
        return [Predicate(attribute, "<=" if past else "<", (value,))]
    if low not in bounds:
        return None
    least, beyond = bounds[low]
    lower = Predicate(attribute, ">" if beyond else ">=", (least,))
    if at_end:
        return [lower] if high[0] == low[0] + 1 else None
    if high not in bounds:
        return None
    most, past = bounds[high]
    if kind_of(least) != kind_of(most):
        return None  # a run over the border of two kinds
    if not beyond and past:
        return [Predicate(attribute, "between", (least, most))]
    return [lower, Predicate(attribute, "<=" if past else "<", (most,))]


def deduplicate(node: And | Or, context: Context) -> Node:
    """`a and a` is `a`, for whole sub-trees too; and what AND shares with OR absorbs it: `a and (a or b)` is `a`."""
    seen: dict[int, Node] = {}
    for child in node.children:
        seen.setdefault(context.identity(child), child)
    dual = Or if isinstance(node, And) else And
    kept = [
        child
        for child in seen.values()
        if not (isinstance(child, dual) and any(context.identity(part) in seen for part in child.children))
    ]
    if len(kept) == 1:
        return kept[0]
    return node if len(kept) == len(node.children) else with_children(node, tuple(kept))


def alternate(node: And | Or, _: Context) -> Node:
    """Predicates of an AND first, then what is nested: the predicates together are its conjunction, a leaf of the tree.

    After the rewrites before it the tree already alternates: an AND holds predicates and ORs, an OR holds predicates
    and ANDs. So the leaves that the indexes know can be read off: the predicates of an AND, and each lone predicate of
    an OR.
    """
    nested = [isinstance(child, (And, Or)) for child in node.children]
    if nested == sorted(nested):
        return node
    return with_children(node, tuple(sorted(node.children, key=lambda child: isinstance(child, (And, Or)))))


REWRITES: tuple[Callable[[And | Or, Context], Node], ...] = (
    flatten,
    fold_constants,
    merge,
    fold_constants,  # merging finds contradictions and tautologies
    deduplicate,
    alternate,
)
