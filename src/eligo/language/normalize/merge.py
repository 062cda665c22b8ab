"""Merge the predicates of one AND or OR on one single-valued attribute.

    a >= 10 and a <= 30        a between 10 and 30
    a = 1 or a in (2, 3)       a in (1, 2, 3)
    a < 5 and a > 7            false
    a < 5 or not a < 5         a is not null; under classical semantics, true

Each predicate is a set of values and a word on absence; AND intersects, OR unites. Where the outcome is one that the
language can say in fewer words it is put in, else the predicates stay as they are. Attributes with several values are
left alone: `a >= 10 and a <= 30` may be met by two values, one for each bound.
"""

from __future__ import annotations

from eligo.language.normalize.context import Context
from eligo.language.patterns import like_prefix
from eligo.language.tree import ALWAYS, NEVER, And, Node, Or, Predicate, Value, with_children
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


def merge(node: Node, context: Context) -> Node:
    if not isinstance(node, (And, Or)):
        return node
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


Bound = tuple[Value, bool]  # a value, and whether the cut lies after it


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
    points = [bounds.get(low) for low, high in values if _is_point(low, high, bounds)]
    if len(points) == len(values):
        found = tuple(point[0] for point in points if point is not None)
        return [Predicate(attribute, "=" if len(found) == 1 else "in", found)]
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


def _is_point(low: Cut, high: Cut, bounds: dict[Cut, Bound]) -> bool:
    return low in bounds and not bounds[low][1] and after(bounds[low][0]) == high
