"""Rules as decoded JSON: dicts, lists and plain values.

    {"and": [{"attr": "age", "op": ">=", "value": 18}, {"not": {"attr": "email", "op": "is null"}}]}
    {"exists": "d", "where": {"attr": "price", "op": "<", "of": "d", "other": "price"}}

The operators are those of the text. `true` and `false` are rules that always and never hold; {"attr": "active"} is a
bare Boolean; times are {"date": "2026-01-31"} and {"timestamp": "2026-01-31 12:00:00Z"}. A node of the tree may stand
anywhere in place of its JSON form.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal, cast

from eligo.errors import RuleSyntaxError, RuleTypeError
from eligo.language.adopt import adopt
from eligo.language.build import Attribute
from eligo.language.check import (
    COMPARISONS,
    SPELLINGS,
    Problem,
    check_name,
    check_variable,
    clean,
    closest,
    kind_name,
    predicate,
    short,
)
from eligo.language.limits import DEFAULT_LIMITS, Limits, check_limits, exceeded
from eligo.language.mistakes import SIGNS_OF_OTHERS, WORDS_OF_OTHERS
from eligo.language.render import SPELLING, timestamp_text
from eligo.language.tokens import read_date, read_timestamp
from eligo.language.tree import And, Comparison, Constant, Join, Node, Not, Or, Predicate, Quantified, Value

_INNER = ("and", "or", "not", "exists", "forall")
_LEAF = ("attr", "op", "value", "of", "other")
_KEYS = (*_INNER, *_LEAF, "where")

Frame = tuple[str, list[Any], list[Node], str]  # the key, the forms below it, the nodes made of them, the path


def from_json(form: object, limits: Limits = DEFAULT_LIMITS) -> Node:
    """The tree of a decoded JSON form; errors name the JSON path."""
    frames: list[Frame] = []
    try:
        return _expression(form, frames, limits)
    except Problem as problem:
        path = "$" + "".join(path + (f"[{len(done)}]" if key in ("and", "or") else "") for key, _, done, path in frames)
        raise problem.error(where=f"at {path}{problem.path}: ") from None


def _expression(form: object, frames: list[Frame], limits: Limits) -> Node:
    variable = ""
    leaves = 0
    foreign = False
    while True:
        # A form begins here.
        if len(frames) >= limits.depth:
            raise exceeded("depth", len(frames) + 1, limits.depth)
        if isinstance(form, dict):
            if "attr" not in form:
                key, below = _inner(form)
                if key in ("exists", "forall"):
                    variable = _variable(form, key, variable)
                    frames.append((key + " in received" * _received(form), below, [], ".where"))
                else:
                    frames.append((key, below, [], "." + key))
                form = below[0]
                continue
            leaves += 1
            if leaves > limits.leaves:
                raise exceeded("leaves", leaves, limits.leaves)
            node = _leaf(form, variable, limits)
        elif isinstance(form, bool):
            node = Constant(form)
        elif isinstance(form, Node | Attribute):
            node = _adopted(form, limits, variable)
            foreign = True
        else:
            hint = "text is read on its own, not inside JSON" if isinstance(form, str) else ""
            raise Problem(f"expected an object, true or false, got {short(form)}", hint, syntax=True)

        # A form is complete; so is what is above it, if this was the last one there.
        while frames:
            key, below, done, _ = frames[-1]
            done.append(node)
            if len(done) < len(below):
                form = below[len(done)]
                break
            frames.pop()
            node = _made(key, done, variable)
            if key not in ("and", "or", "not"):
                variable = ""
        else:
            if foreign:
                check_limits(node, limits)
            return node


def _adopted(thing: object, limits: Limits, variable: str) -> Node:
    try:
        return adopt(thing, limits, variable)
    except RuleSyntaxError as error:
        raise Problem(error.reason, error.hint, syntax=not isinstance(error, RuleTypeError)) from None


def _made(key: str, done: list[Node], variable: str) -> Node:
    if key == "not":
        return Not(done[0])
    if key not in ("and", "or"):
        quantifier, _, received = key.partition(" ")
        return Quantified(cast(Literal["exists", "forall"], quantifier), variable, done[0], received=received != "")
    if len(done) == 1:
        return done[0]
    return And(tuple(done)) if key == "and" else Or(tuple(done))


def _inner(form: dict[Any, Any]) -> tuple[str, list[Any]]:
    """The key of an object that is no predicate, and the forms below it."""
    found = [key for key in _INNER if key in form]
    if not found:
        keys = [str(key) for key in form]
        hint = next(filter(None, (closest(key, (*_INNER, "attr")) for key in keys)), "")
        reason = f"unknown keys {', '.join(map(repr, keys))}" if keys else "an empty object"
        raise Problem(reason, hint or 'an object has "attr", "and", "or", "not", "exists" or "forall"', syntax=True)
    key = found[0]
    quantifier = key in ("exists", "forall")
    for other in form:
        if other != key and not (quantifier and other in ("where", "in")):
            hint = closest(str(other), ("where", "in")) if quantifier else ""
            raise Problem(f"{short(other)} cannot stand beside {key!r} in one object", hint, syntax=True)
    if quantifier:
        if "where" not in form:
            hint = f'write {{"{key}": "d", "where": …}}'
            raise Problem(f'"{key}" needs "where", the condition on the document', hint, syntax=True)
        return key, [form["where"]]
    if key == "not":
        return key, [form[key]]
    below = form[key]
    if not isinstance(below, list | tuple):
        raise _at("." + key, Problem(f"expected a list, got {short(below)}", syntax=True))
    if not below:
        remedy = "true" if key == "and" else "false"
        raise _at(
            "." + key, Problem("the list is empty", f"give one expression or more, or write {remedy}", syntax=True)
        )
    return key, list(below)


def _received(form: dict[Any, Any]) -> bool:
    """Whether a quantifier ranges over the documents received alone."""
    if form.get("in", "received") != "received":
        reason = f'"in" is "received", not {short(form["in"])}'
        raise _at(".in", Problem(reason, 'leave "in" out to ask about all documents', syntax=True))
    return "in" in form


def _variable(form: dict[Any, Any], key: str, outer: str) -> str:
    if outer:
        hint = 'join two quantifiers with "and" or "or"'
        raise Problem("a quantifier inside another", hint, syntax=True)
    try:
        return check_variable(form[key])
    except Problem as problem:
        raise _at("." + key, problem) from None


def _leaf(form: dict[Any, Any], variable: str, limits: Limits) -> Node:
    attribute = form["attr"]
    if type(attribute) is not str or not attribute or not attribute.isascii():
        try:
            attribute = check_name(attribute)
        except Problem as problem:
            raise _at(".attr", problem) from None
    if len(form) == 3 and "op" in form and "value" in form:
        of = ""
    else:
        of = _keys(form, variable)
        if len(form) == 1 + ("of" in form):
            return Predicate(attribute, "=", (True,), False, of)
        if "other" in form:
            return _join(attribute, form)
    spelling = form["op"]
    if type(spelling) is not str or spelling not in SPELLINGS:
        spelling = _operator(spelling, SPELLINGS)
    value = form.get("value", _leaf)  # which is nobody's value, so it means that there is none
    if spelling in COMPARISONS or spelling.endswith("like"):
        operands: Any = (value,)
    elif spelling.endswith("null"):
        if value is not None and value is not _leaf:
            raise _at(".value", Problem(f"{spelling!r} takes no value", syntax=True))
        return predicate(attribute, spelling, (), of, limits)
    else:
        operands = value
    if value is _leaf:
        raise Problem(f'{spelling!r} needs a "value"', syntax=True)
    several = operands is value
    if several:
        _check_list(spelling, value)
    done: list[Value] = []
    try:
        for operand in operands:
            done.append(_time(operand) if type(operand) is dict else clean(operand))
    except Problem as problem:
        raise _at(f".value[{len(done)}]" if several else ".value", problem) from None
    try:
        return predicate(attribute, spelling, tuple(done), of, limits)
    except Problem as problem:
        raise _at(f".value[{problem.at}]" if several and done else ".value", problem) from None


def _keys(form: dict[Any, Any], variable: str) -> str:
    """Refuse keys that a predicate does not have; the variable that it speaks of, or ""."""
    for key in form:
        if key not in _LEAF:
            hint = closest(str(key), _LEAF) or 'a predicate has "attr", "op" and "value"'
            reason = f'{key!r} cannot stand beside "attr"' if key in _KEYS else f"unknown key {short(key)}"
            raise Problem(reason, hint, syntax=True)
    if "op" not in form and len(form) > 1 + ("of" in form):
        raise Problem('the predicate needs an "op"', 'such as "=" or "in"', syntax=True)
    if "of" not in form:
        if "other" in form:
            raise Problem('"other" needs "of", the variable of a quantifier', syntax=True)
        return ""
    if not variable or form["of"] != variable:
        reason = f"{short(form['of'])} is not the variable of a quantifier around this"
        hint = f'write "of": "{variable}"' if variable else 'put it inside {"exists": "d", "where": …}'
        raise _at(".of", Problem(reason, hint, syntax=True))
    return variable


def _join(attribute: str, form: dict[Any, Any]) -> Join:
    if "value" in form:
        raise Problem('"value" and "other" exclude each other', syntax=True)
    operator, negated = SPELLINGS[_operator(form["op"], COMPARISONS)]
    try:
        other = check_name(form["other"])
    except Problem as problem:
        raise _at(".other", problem) from None
    return Join(attribute, cast(Comparison, operator), str(form["of"]), other, negated)


def _operator(op: object, known: Any) -> str:
    """An operator in any case and spacing."""
    if not isinstance(op, str):
        raise _at(".op", Problem(f"an operator is a string, got {short(op)}", syntax=True))
    spelling = " ".join(op.lower().split())
    if spelling not in known:
        if spelling in SPELLINGS:
            raise _at(
                ".op", Problem(f"{op!r} does not compare two attributes", f"use one of {' '.join(known)}", syntax=True)
            )
        sign = f"write {SIGNS_OF_OTHERS[spelling]!r}" if SIGNS_OF_OTHERS.get(spelling) in known else ""
        hint = sign or WORDS_OF_OTHERS.get(spelling) or closest(spelling, known)
        raise _at(".op", Problem(f"unknown operator {short(op)}", hint, syntax=True))
    return spelling


def _check_list(spelling: str, value: object) -> None:
    if not isinstance(value, list | tuple):
        raise _at(
            ".value", Problem(f"{spelling!r} takes a list, got {short(value)}", "put the value in a list", syntax=True)
        )
    if spelling.endswith("between") and len(value) != 2:
        raise _at(".value", Problem(f"{spelling!r} takes two values, got {len(value)}", "[low, high]", syntax=True))


def _time(form: dict[Any, Any]) -> Value:
    """{"date": …} or {"timestamp": …}."""
    if len(form) == 1:
        ((key, text),) = form.items()
        if key in ("date", "timestamp"):
            if not isinstance(text, str):
                raise Problem(f"a {key} is written as a string, got a {kind_name(text)}")
            return read_date(text) if key == "date" else read_timestamp(text)
    hint = closest(str(next(iter(form), "")), ("date", "timestamp"))
    raise Problem(f"{short(form)} is not a value", hint or 'times are written {"date": "2026-01-31"}', syntax=True)


def _at(path: str, problem: Problem) -> Problem:
    problem.path = path
    return problem


def to_json(root: Node) -> object:
    """The JSON form of a tree: dicts, lists and plain values, ready for any encoder."""
    top: list[object] = [None]
    stack: list[tuple[Node, Any, Any]] = [(root, top, 0)]  # a node, and where its form goes
    while stack:
        node, place, key = stack.pop()
        if isinstance(node, (And, Or)) and node.children:
            forms: list[object] = [None] * len(node.children)
            place[key] = {"and" if isinstance(node, And) else "or": forms}
            stack.extend((child, forms, index) for index, child in enumerate(node.children))
        elif isinstance(node, (And, Or)):
            place[key] = isinstance(node, And)
        elif isinstance(node, Not):
            place[key] = {"not": None}
            stack.append((node.child, place[key], "not"))
        elif isinstance(node, Quantified):
            form: dict[str, object] = {node.quantifier: node.variable}
            form |= {"in": "received", "where": None} if node.received else {"where": None}
            place[key] = {"not": form} if node.negated else form
            stack.append((node.body, form, "where"))
        else:
            place[key] = _leaf_form(node)
    return top[0]


def _leaf_form(node: Node) -> object:
    if isinstance(node, Constant):
        return node.holds
    if not isinstance(node, Predicate | Join):
        raise TypeError(f"{type(node).__name__} has no JSON form")
    spelling = SPELLING.get((node.operator, node.negated))
    negated = spelling is None  # only the negations of orderings have no spelling of their own
    form: dict[str, object] = {"attr": node.attribute, "op": spelling or node.operator}
    if isinstance(node, Join):
        form |= {"of": node.variable, "other": node.other}
    else:
        if node.variable:
            form["of"] = node.variable
        if node.operator in ("in", "between", "contains any", "contains all"):
            form["value"] = [_value_form(value) for value in node.values]
        elif node.operator != "is null":
            form["value"] = _value_form(node.values[0])
    return {"not": form} if negated else form


def _value_form(value: Value) -> object:
    if isinstance(value, datetime):
        return {"timestamp": timestamp_text(value)}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    return value
