"""A tree as text, such that reading the text gives the tree back, with as few parentheses as that allows.

And inside And (or Or inside Or) keeps its parentheses, since the tree keeps its nesting. Shapes that no reader gives
have no text of their own and get one of the same meaning: And or Or of one child is the child, of none `true` or
`false`; a negated `<` is `not x < 5`; a negated quantifier is `not exists …`.
"""

from __future__ import annotations

from datetime import date, datetime

from eligo.language.check import SPELLINGS
from eligo.language.tokens import is_plain, quoted
from eligo.language.tree import And, Constant, Join, Node, Not, Or, Predicate, Quantified, Value, children_of

# How tightly a node binds; an operand that binds less than its place asks for goes in parentheses.
_OR, _AND, _NOT, _LEAF = 1, 2, 3, 4

_BINDING: dict[type[Node], int] = {Or: _OR, And: _AND, Not: _NOT}

# The first spelling of each operator and polarity: `==` comes after `=`, `not contains any` after `contains none`.
SPELLING: dict[tuple[str, bool], str] = {meaning: spelling for spelling, meaning in reversed(SPELLINGS.items())}


def render(root: Node) -> str:
    """The text of a tree."""
    pieces: list[str] = []
    # What is still to be written, last first: a piece of text, or a node, what its place asks for, and the variable.
    stack: list[str | tuple[Node, int, str]] = [(root, 0, "")]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        node, asked, scope = item
        while isinstance(node, (And, Or)) and len(node.children) == 1:
            node = node.children[0]
        if _binding(node) < asked:
            pieces.append("(")
            stack.append(")")
        if isinstance(node, (And, Or)) and node.children:
            word, own = (" and ", _AND) if isinstance(node, And) else (" or ", _OR)
            for child in reversed(node.children):
                stack.append((child, own + 1, scope))
                stack.append(word)
            stack.pop()
        elif isinstance(node, Not):
            pieces.append("not ")
            stack.append((node.child, _NOT, scope))
        elif isinstance(node, Quantified):
            received = " in received" if node.received else ""
            pieces.append(f"{'not ' if node.negated else ''}{node.quantifier} {node.variable}{received} (")
            stack.append(")")
            stack.append((node.body, 0, node.variable))
        else:
            pieces.append(_leaf(node, scope))
    return "".join(pieces)


def _binding(node: Node) -> int:
    return _BINDING.get(type(node), _LEAF) if children_of(node) else _LEAF


def _leaf(node: Node, scope: str) -> str:
    if isinstance(node, Predicate):
        return _predicate(node, scope)
    if isinstance(node, Join):
        prefix, spelling = _spelled(node.operator, node.negated)
        left, right = _name(node.attribute, "", scope), _name(node.other, node.variable, scope)
        return f"{prefix}{left} {spelling} {right}"
    if isinstance(node, Constant):
        return "true" if node.holds else "false"
    if isinstance(node, (And, Or)):
        return "true" if isinstance(node, And) else "false"
    raise TypeError(f"{type(node).__name__} has no text")


def _predicate(node: Predicate, scope: str) -> str:
    name = _name(node.attribute, node.variable, scope)
    prefix, spelling = _spelled(node.operator, node.negated)
    if node.operator == "=" and not node.negated and node.values[0] is True:
        return name
    if node.operator == "is null":
        return f"{name} {spelling}"
    if node.operator == "between":
        low, high = node.values
        return f"{name} {spelling} {render_value(low)} and {render_value(high)}"
    if node.operator == "in" or node.operator.startswith("contains"):
        return f"{name} {spelling} ({', '.join(map(render_value, node.values))})"
    return f"{prefix}{name} {spelling} {render_value(node.values[0])}"


def _spelled(operator: str, negated: bool) -> tuple[str, str]:
    """A prefix and a spelling: only the negations of orderings have no spelling of their own."""
    spelling = SPELLING.get((operator, negated))
    return ("", spelling) if spelling is not None else ("not ", SPELLING[operator, False])


def _name(attribute: str, variable: str, scope: str) -> str:
    if variable:
        whole = f"{variable}.{attribute}"
        return whole if is_plain(whole) else f"{variable}.{quoted(attribute)}"
    hidden = scope != "" and (attribute == scope or attribute.startswith(scope + "."))
    return attribute if is_plain(attribute) and not hidden else quoted(attribute)


def render_value(value: Value) -> str:
    """A value as the language writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"timestamp '{timestamp_text(value)}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    return repr(value)


def timestamp_text(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ") + "Z"
