"""Rules with quantifiers: what an index can know of them, and what only documents can tell.

    author = 'Smith' and (price < 10 or year > 2000) and exists d (price < d.price)
    └─────────────── relaxed ─────────────────────┘     └────── residual ────────┘

The *relaxed* rule has `true` in the place of every quantifier; it is indexed like any other, and an event that does not
satisfy it does not satisfy the rule. (NOT stands at the leaves by then, so putting in `true` can only help.) The
*residual* is what is left to ask where the relaxed rule holds: those factors of the rule that have a quantifier. It
travels with the rule as a hidden tag, so that snapshots, merges and tasks on Spark need not know of it.

A quantifier is turned into searches for one document (`Search`), each a conjunction of terms:

    exists d (A and (B or C))   ─▶   A and B   or   A and C              some search succeeds
    forall d (A or B)           ─▶   not A and not B                     no search succeeds

and *pre-filtered* (Index Structures and Algorithms for Efficient Profile Matching, §4.3.2): what the rule says of
documents alone, and what follows for them from what it says of the event (Table 2), has to hold for some document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from eligo.errors import RuleTypeError
from eligo.language.limits import NO_LIMITS
from eligo.language.render import render
from eligo.language.text import parse
from eligo.language.tree import (
    ALWAYS,
    And,
    Constant,
    Join,
    Node,
    Or,
    Predicate,
    Quantified,
    bottom_up,
    leaves,
    predicates_of,
    push_negation,
)
from eligo.language.values import ValueSet, is_residual, positive_set

_SEARCHES = 64  # of one quantifier; one that needs more is asked of bit vectors as it stands
VARIABLE = "d"


def has_quantifier(root: Node) -> bool:
    return any(isinstance(leaf, Quantified) for leaf in leaves(root))


def split(root: Node, multi: frozenset[str], owner: str | None) -> tuple[Node, Residual]:
    """Returns the relaxed rule and the residual."""
    factors = list(_factors(_hoisted(_canonical(root))))
    facts = [factor for factor in factors if isinstance(factor, Predicate) and factor.attribute not in multi]
    relaxed: list[Node] = []
    joined: list[Node] = []
    needed: list[Node | None] = []
    for factor in factors:
        if isinstance(factor, Quantified):
            joined.append(factor)
            # A single join, or predicate, is asked as fast as what follows from it.
            worth = factor.quantifier == "exists" and not factor.negated and isinstance(factor.body, And)
            following = implied(factor, facts) if worth else ()
            needed.append(_all_of(following) if following else None)
        elif isinstance(factor, Predicate) or not has_quantifier(factor):
            relaxed.append(factor)
        else:
            joined.append(factor)
            needed += [None for _ in quantifiers(factor)]
            relaxed.append(bottom_up(factor, lambda node: ALWAYS if isinstance(node, Quantified) else node))
    return _all_of(relaxed), Residual(owner or "", _all_of(joined), tuple(needed))


def _all_of(factors: Sequence[Node]) -> Node:
    """The AND of factors; of one the factor itself, of none `true`."""
    return And(tuple(factors)) if len(factors) > 1 else factors[0] if factors else ALWAYS


def quantifiers(root: Node) -> Iterator[Quantified]:
    return (leaf for leaf in leaves(root) if isinstance(leaf, Quantified))


class Residual(NamedTuple):
    """Whose rule it is, what is left to ask, and what some document must be like for each quantifier, where that is
    known.
    """

    owner: str
    root: Node
    needed: tuple[Node | None, ...]


def write_residual(residual: Residual) -> str:
    """Returns a residual as text."""
    parts = [residual.owner, render(residual.root), *("" if one is None else render(one) for one in residual.needed)]
    return msgspec.json.encode(parts).decode()


def read_residual(text: str) -> Residual:
    """Returns what `write_residual` wrote."""
    owner, root, *needed = msgspec.json.decode(text, type=list[str])
    return Residual(
        owner,
        _canonical(parse(root, NO_LIMITS)),
        tuple(push_negation(parse(one, NO_LIMITS)) if one else None for one in needed),
    )


def _canonical(root: Node) -> Node:
    """The same with NOT at the leaves, those of quantifiers as well."""
    return bottom_up(push_negation(root), lambda node: canonical(node) if isinstance(node, Quantified) else node)


def canonical(node: Quantified) -> Quantified:
    """The same with one name for all variables and NOT at the leaves, so that equal ones are known as equal."""

    def rename(inner: Node) -> Node:
        if isinstance(inner, Join):
            return Join(inner.attribute, inner.operator, VARIABLE, inner.other, inner.negated)
        if isinstance(inner, Predicate) and inner.variable:
            return Predicate(inner.attribute, inner.operator, inner.values, inner.negated, VARIABLE)
        return inner

    body = bottom_up(push_negation(node.body), rename)
    return Quantified(node.quantifier, VARIABLE, body, node.negated, node.received)


def _factors(root: Node) -> Iterator[Node]:
    """The factors of nested ANDs."""
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, And):
            todo.extend(reversed(node.children))
        else:
            yield node


def _hoisted(root: Node) -> Node:
    """Takes factors of an `exists` that say nothing of the document out of it: an index can use them there.

    Only such whose attributes the rule names nowhere else: with an event whose value is a range, predicates of one
    conjunction need one value, and those inside of a quantifier are a conjunction of their own.
    """
    inside = [name for one in quantifiers(root) for name in {p.attribute for p in predicates_of(one.body)}]
    if not inside:
        return root
    outside = {leaf.attribute for leaf in leaves(root) if isinstance(leaf, Predicate)}
    alone = {name for name in inside if inside.count(name) == 1} - outside

    def hoist(node: Node) -> Node:
        if not isinstance(node, Quantified) or node.quantifier != "exists" or node.negated:
            return node
        free: list[Node] = []
        bound: list[Node] = []
        for factor in _factors(node.body):
            own = not any(isinstance(leaf, Join) or _is_of_document(leaf) for leaf in leaves(factor))
            (free if own and {p.attribute for p in predicates_of(factor)} <= alone else bound).append(factor)
        if not free:
            return node
        return And((*free, Quantified("exists", VARIABLE, _all_of(bound), received=node.received)))

    return bottom_up(root, hoist)


def of_document(root: Node) -> Node:
    """An expression about an event as one about the document."""

    def rename(node: Node) -> Node:
        if isinstance(node, Quantified):
            raise RuleTypeError(
                f"{node.quantifier} {node.variable} (…) cannot be asked of a document", hint="leave the quantifier out"
            )
        if isinstance(node, Predicate):
            return Predicate(node.attribute, node.operator, node.values, node.negated, VARIABLE)
        return node

    return bottom_up(root, rename)


def _is_of_document(leaf: Node) -> bool:
    return isinstance(leaf, Predicate) and leaf.variable != ""


# -- what follows for documents


def implied(node: Quantified, facts: Iterable[Predicate]) -> tuple[Predicate, ...]:
    """Returns what some document must satisfy if an event that satisfies `facts` is to make an `exists` true.

    These are the factors on the document alone, that it has the attributes it is joined by, and the cells of Table 2.
    """
    found: list[Predicate] = []
    known = list(facts)
    for factor in _factors(node.body):
        if isinstance(factor, Predicate) and factor.variable:
            # The same predicate, asked of the document as if it were an event.
            found.append(Predicate(factor.attribute, factor.operator, factor.values, factor.negated))
        elif isinstance(factor, Join):
            found.append(Predicate(factor.other, "is null", (), True))
            for fact in known:
                if fact.attribute == factor.attribute:
                    found.extend(_follows(factor, fact))
    return tuple({render(one): one for one in found}.values())


def _follows(join: Join, fact: Predicate) -> Iterator[Predicate]:
    """Table 2, transposed: what `a OP2 c` and `a OP1 d.b` say of d.b. A join has the event's attribute on its left."""
    equal = join.operator == "="
    if fact.negated:  # which a document with several values need not satisfy
        return
    if equal and not join.negated:
        if fact.operator != "is null":
            yield Predicate(join.other, fact.operator, fact.values)
        return
    if equal:  # a != d.b
        if fact.operator == "=":
            yield Predicate(join.other, "=", fact.values, True)
        return
    if join.negated:
        return
    if any(isinstance(value, bool) for value in fact.values):  # which have no order
        return
    low = {"=": 0, ">": 0, ">=": 0, "between": 0}.get(fact.operator)
    high = {"=": 0, "<": 0, "<=": 0, "between": 1}.get(fact.operator)
    if join.operator in ("<", "<=") and low is not None:
        reached = join.operator == "<=" and fact.operator != ">"
        yield Predicate(join.other, ">=" if reached else ">", (fact.values[low],))
    if join.operator in (">", ">=") and high is not None:
        reached = join.operator == ">=" and fact.operator != "<"
        yield Predicate(join.other, "<=" if reached else "<", (fact.values[high],))


# -- searches


class Term(NamedTuple):
    """What a search wants of a document: that a literal holds or, not `wanted`, that it does not.

    `key` is its text: trees that differ may be equal in Python, where 1 is True.
    """

    key: str
    wanted: bool
    literal: Join | Predicate


def term_of(literal: Join | Predicate, wanted: bool) -> Term:
    return Term(render(literal), wanted, literal)


@dataclass(frozen=True)
class Search:
    """A document is looked for that is as all terms want it, if the event is as all conditions want it."""

    conditions: tuple[Term, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Plan:
    """How the truth of a quantifier is found: it is whether some search succeeds or, `none`, whether none does.

    `searches` is None where they would be too many; then `body` is asked as it stands.
    """

    none: bool
    searches: tuple[Search, ...] | None
    body: Node
    quantifier: Quantified


def plan(node: Quantified) -> Plan:
    """Returns the searches that answer a quantifier, whose body has NOT at the leaves."""
    exists = node.quantifier == "exists"
    found = _conjunctions(bottom_up(node.body, spread), exists)
    searches = None
    if found is not None:
        made = []
        for terms in found:
            conditions = tuple(t for t in terms if isinstance(t.literal, Predicate) and not t.literal.variable)
            others = tuple(t for t in terms if isinstance(t.literal, Join) or t.literal.variable)
            made.append(Search(conditions, others))
        searches = tuple(made)
    return Plan(exists == node.negated, searches, node.body, node)


def spread(node: Node) -> Node:
    """`contains all` of a document as one `contains any` for each value."""
    if not isinstance(node, Predicate) or node.operator != "contains all" or not node.variable:
        return node
    single = tuple(
        Predicate(node.attribute, "contains any", (value,), node.negated, node.variable) for value in node.values
    )
    return Or(single) if node.negated else And(single)


def _conjunctions(root: Node, wanted: bool) -> list[tuple[Term, ...]] | None:
    """The disjunctive form of a body or, not `wanted`, of its complement; None if it is too large."""
    done: dict[int, list[tuple[Term, ...]]] = {}

    def visit(node: Node) -> Node:
        if isinstance(node, Constant):
            result: list[tuple[Term, ...]] = [()] if node.holds == wanted else []
        elif isinstance(node, Join | Predicate):
            result = [(term_of(node, wanted),)]
        else:
            assert isinstance(node, (And, Or))
            parts = [done[id(child)] for child in node.children]
            if isinstance(node, Or) == wanted:
                result = [conjunction for part in parts for conjunction in part]
            else:
                result = [()]
                for part in parts:
                    result = [(*left, *right) for left in result for right in part]
                    if len(result) > _SEARCHES:
                        raise OverflowError
        if len(result) > _SEARCHES:
            raise OverflowError
        done[id(node)] = result
        kept.append(node)
        return node

    kept: list[Node] = []  # so that ids stay theirs
    try:
        bottom_up(root, visit)
    except OverflowError:
        return None
    return [tuple({term[:2]: term for term in terms}.values()) for terms in done[id(root)]]


def counted_attributes(found: Plan) -> tuple[set[str], set[str]] | None:
    """Returns the attributes of documents whose values alone answer a quantifier, and those of which this is so only if
    every document that has the attribute has one value; None if documents themselves must be looked at.
    """
    if found.searches is None or found.quantifier.received:
        return None
    names: set[str] = set()
    even: set[str] = set()
    for search in found.searches:
        if len(search.terms) > 1:
            return None
        for term in search.terms:
            literal = term.literal
            names.add(literal.other if isinstance(literal, Join) else literal.attribute)
            if isinstance(literal, Predicate) and literal.operator == "is null":
                continue
            if isinstance(literal, Predicate) and is_residual(literal):
                return None
            if literal.negated == term.wanted:
                even.add(literal.other if isinstance(literal, Join) else literal.attribute)
    return names, even


def event_attributes(root: Node) -> set[str]:
    """The attributes of the event that a residual looks at."""
    found = {predicate.attribute for predicate in predicates_of(root)}
    for one in quantifiers(root):
        found |= {leaf.attribute for leaf in leaves(one.body) if isinstance(leaf, Join)}
    return found


def document_attributes(root: Node) -> set[str]:
    """The attributes of documents that a residual looks at."""
    found = set()
    for one in quantifiers(root):
        for leaf in leaves(one.body):
            if isinstance(leaf, Join):
                found.add(leaf.other)
            elif _is_of_document(leaf):
                assert isinstance(leaf, Predicate)
                found.add(leaf.attribute)
    return found


def set_of(predicate: Predicate) -> tuple[ValueSet, bool]:
    """Returns the values that satisfy a predicate's positive form, and whether some of these do not (a pattern)."""
    return positive_set(predicate), is_residual(predicate)


def with_truths(root: Node, truths: Iterable[bool]) -> Node:
    """The same tree with `true` or `false` in the place of each quantifier, from left to right."""
    given = iter(truths)
    return bottom_up(root, lambda node: Constant(next(given)) if isinstance(node, Quantified) else node)
