"""Expressions on their way into an exchange and out of it.

A campaign's own expression gets a predicate on the publisher that it is booked with, in each of its conjunctions:

    (age = 4 and interest = 'NFL') or (age = 5 and interest = 'NBA')

    `@publisher` = 'P' and age = 4 and interest = 'NFL' or `@publisher` = 'P' and age = 5 and interest = 'NBA'

One at the top would say the same. But an index knows conjunctions, not trees: with the predicate in each of them it
need not look at those of other publishers.
"""

from __future__ import annotations

import msgspec

from eligo.errors import LimitError, RuleSyntaxError, RuleTypeError
from eligo.explain import Explanation
from eligo.language import Limits, parse, read, render
from eligo.language.tree import ALWAYS, And, Join, Node, Or, Predicate, Quantified, bottom_up, leaves, push_negation

PUBLISHER = "@publisher"  # the attribute that says where a visit takes place; no expression may name it


def reading(expression: object, limits: Limits, documents: bool) -> tuple[Node, str]:
    """The tree of an expression, however it is written, and its text; `documents`: it may ask about some."""
    if isinstance(expression, str) and expression[:1] == "{":
        expression = _decoded(expression)
    root = parse(expression, limits) if isinstance(expression, str) else read(expression, limits)
    for leaf in leaves(root):
        if isinstance(leaf, Quantified) and not documents:
            raise RuleTypeError(
                f"{leaf.quantifier} {leaf.variable} (…) asks about documents seen before, and this exchange keeps none",
                hint="make it with some: Exchange(documents=eligo.Documents())",
            )
        inner = leaves(leaf.body) if isinstance(leaf, Quantified) else (leaf,)
        if any(isinstance(one, Predicate | Join) and one.attribute == PUBLISHER for one in inner):
            raise RuleTypeError(
                f"the attribute {PUBLISHER!r} is the exchange's own",
                hint="give yours another name",
            )
    return root, expression if isinstance(expression, str) else render(root)


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise RuleSyntaxError(f"the expression begins with {{ but is no JSON: {error}") from None
    except RecursionError:
        raise LimitError("the expression begins with { and is nested too deeply for JSON: split it") from None


def restricted(root: Node, text: str, publisher: str) -> Node | str:
    """The same for visits to one publisher, and false for all others; see the top of this file."""
    here = Predicate(PUBLISHER, "=", (publisher,))
    if isinstance(root, Predicate) or (isinstance(root, And) and all(isinstance(c, Predicate) for c in root.children)):
        return f"{render(here)} and {text}"  # the matcher wants the text of a rule in any case

    def with_publisher(node: Node) -> Node:
        return And((here, *node.children)) if isinstance(node, And) else And((here, node))

    def visit(node: Node) -> Node:
        if not isinstance(node, Or):
            return node
        # An OR in an OR has the predicate in all its children already.
        children = [c for child in node.children for c in (child.children if isinstance(child, Or) else (child,))]
        has = [isinstance(child, And) and child.children[:1] == (here,) for child in children]
        return Or(tuple(c if there else with_publisher(c) for c, there in zip(children, has, strict=True)))

    whole = bottom_up(push_negation(root), visit)
    return whole if isinstance(whole, Or) else with_publisher(whole)


def room_for(limits: Limits) -> Limits:
    """Limits of the matcher: what passes those of the exchange passes them too, with predicates on the publisher."""
    return Limits(
        text=2**62, depth=2 * limits.depth + 8, leaves=2 * limits.leaves + 2, values=limits.values, terms=limits.terms
    )


def composed(parts: list[Node]) -> Node:
    """All parts at once, as one expression; those that are `true` need not be said."""
    said = [part for part in parts if part != ALWAYS]
    return And(tuple(said)) if len(said) > 1 else said[0] if said else ALWAYS


class Eligibility(Explanation):
    """Why a campaign is eligible for a visit, or why not: `print` it.

    `parts` says of its own expression and of each edge whether it holds.
    """

    def __init__(self, campaign: object, parts: dict[str, Explanation]) -> None:
        self.parts = {what: part.matched for what, part in parts.items()}
        lines = []
        for what, part in parts.items():
            lines.append((1, part.matched, what, ""))
            lines.extend((depth + 1, held, said, why) for depth, held, said, why in part.lines)
        super().__init__(campaign, all(self.parts.values()), lines)

    def __str__(self) -> str:
        _, _, body = super().__str__().partition("\n")
        return f"{self.rule} is {'eligible' if self.matched else 'not eligible'}\n{body}"
