"""Trees that were put together in Python, by `attr` or by hand: checked for what text and JSON check as they read."""

from __future__ import annotations

from eligo.errors import RuleTypeError
from eligo.language.check import (
    FLIPPED,
    SPELLINGS,
    Problem,
    check_name,
    check_operands,
    check_variable,
    clean_all,
    kind_name,
    short,
)
from eligo.language.limits import DEFAULT_LIMITS, NO_LIMITS, Limits, check_limits
from eligo.language.tree import And, Constant, Join, Node, Not, Or, Predicate, Quantified, as_node, bottom_up

_OPERATORS = frozenset(operator for operator, _ in SPELLINGS.values())
_ARITY = {"is null": 0, "between": 2, "=": 1, "<": 1, "<=": 1, ">": 1, ">=": 1, "like": 1}


def adopt(thing: object, limits: Limits = DEFAULT_LIMITS, variable: str = "") -> Node:
    """A tree from Python, checked; And and Or of one child become the child."""
    root = expression(thing)
    check_limits(root, limits)
    try:
        return bottom_up(root, lambda node: _checked(node, variable))
    except Problem as problem:
        raise problem.error() from None


def expression(thing: object) -> Node:
    """A node, or what stands for one."""
    if isinstance(thing, Node) or hasattr(thing, "as_node"):
        return as_node(thing)
    hint = 'comparisons joined with & or | need parentheses: (attr("age") >= 18) & attr("active")'
    raise RuleTypeError(f"expected an expression, got {short(thing)}", hint=hint)


def _checked(node: Node, variable: str) -> Node:
    """One node of a foreign tree, its children being checked already."""
    if isinstance(node, Predicate):
        return _checked_predicate(node, variable)
    if isinstance(node, (And, Or)):
        if not node.children:
            raise Problem(f"{kind_name(node)} of nothing", "write Constant(True) or Constant(False)", syntax=True)
        return node.children[0] if len(node.children) == 1 else node
    if isinstance(node, Join):
        if node.operator not in FLIPPED:
            raise Problem(f"{short(node.operator)} does not compare two attributes", syntax=True)
        _check_scope(node.variable, variable)
        check_name(node.attribute)
        check_name(node.other)
        _check_flag("negated", node.negated)
        return node
    if isinstance(node, Quantified):
        if variable:
            raise Problem("a quantifier inside another", "join two quantifiers with & or |", syntax=True)
        if node.quantifier not in ("exists", "forall"):
            raise Problem(f"unknown quantifier {short(node.quantifier)}", "use 'exists' or 'forall'", syntax=True)
        _check_flag("negated", node.negated)
        _check_flag("received", node.received)
        own = check_variable(node.variable)
        body = bottom_up(node.body, lambda inner: _checked(inner, own))
        return node if body is node.body else Quantified(node.quantifier, own, body, node.negated, node.received)
    if isinstance(node, Constant):
        _check_flag("holds", node.holds)
        return node
    if isinstance(node, Not):
        return node
    raise Problem(f"unknown node {short(node)}", syntax=True)


def _checked_predicate(node: Predicate, variable: str) -> Predicate:
    if node.variable:
        _check_scope(node.variable, variable)
    check_name(node.attribute)
    if node.operator not in _OPERATORS:
        raise Problem(f"unknown operator {short(node.operator)}", "a negated operator is written with negated=True")
    if len(node.values) != _ARITY.get(node.operator, len(node.values)):
        reason = f"{node.operator!r} takes {_ARITY[node.operator]} values, not {len(node.values)}"
        raise Problem(reason, syntax=True)
    _check_flag("negated", node.negated)
    values = clean_all(node.values)
    check_operands(node.operator, values, NO_LIMITS)
    if type(node.values) is tuple and all(new is old for new, old in zip(values, node.values, strict=True)):
        return node
    return Predicate(node.attribute, node.operator, values, node.negated, node.variable)


def _check_flag(name: str, value: object) -> None:
    if type(value) is not bool:
        raise Problem(f"{name} is True or False, not {short(value)}", syntax=True)


def _check_scope(name: str, variable: str) -> None:
    if name != variable:
        hint = 'write it inside exists("d", lambda d: …) or forall'
        raise Problem(f"{short(name)} is not the variable of a quantifier around this", hint, syntax=True)
