"""One rule as it is given, checked: expression, id, weight, tags. Knows no rule set; what it says about a bad rule is
the same for a matcher, a bulk load and a task on Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from numbers import Real
from typing import Any

import msgspec
import numpy as np

from eligo.arguments import is_unicode, shown, tag_names
from eligo.errors import DuplicateRuleError, EligoError, LimitError, OptionError, RuleSyntaxError, RuleTypeError
from eligo.language import Limits, Node, Predicate, Quantified, parse, read, render
from eligo.language.normalize import normalize
from eligo.language.quantified import Residual, has_quantifier, split, write_residual
from eligo.language.reference import multi_valued
from eligo.language.tree import leaves
from eligo.rule import RuleId
from eligo.segments.rule_table import JOINED, MENTION, OWNER, is_id

NOTHING: frozenset[str] = frozenset()
KINDS = {str: "a string", int: "an integer"}
Refusal = Callable[[Quantified], EligoError | None]


def no_documents(leaf: Quantified) -> EligoError:
    """Returns the error for a join where there are no documents."""
    return RuleTypeError(
        f"{leaf.quantifier} {leaf.variable} (…) asks about documents seen before, and this matcher keeps none",
        hint="make it with some: Matcher(documents=eligo.Documents())",
    )


def read_rule(
    expression: object, limits: Limits, refused: Refusal | None = no_documents
) -> tuple[Node, str, frozenset[str]]:
    """Returns tree and text of a rule, and the attributes that it uses with `contains`. `refused` returns what is wrong
    with a quantifier here, or None.
    """
    if isinstance(expression, str):
        if expression[:1] == "{":  # no rule text begins so: it is the JSON form, still encoded
            return read_rule(_decoded(expression), limits, refused)
        root = parse(expression, limits)
        words = expression.lower()
        if refused and ("exists" in words or "forall" in words):
            for leaf in leaves(root):
                if isinstance(leaf, Quantified) and (error := refused(leaf)) is not None:
                    raise error
        return root, expression, multi_valued(root) if "contains" in words else NOTHING
    root = read(expression, limits)
    containing = set()
    for leaf in leaves(root):
        if isinstance(leaf, Predicate):
            if leaf.operator[:8] == "contains":
                containing.add(leaf.attribute)
        elif isinstance(leaf, Quantified):
            if refused and (error := refused(leaf)) is not None:
                raise error
            containing |= multi_valued(leaf.body)
    return root, render(root), frozenset(containing)


def normal_form(
    root: Node,
    multi: frozenset[str],
    absent: str,
    owner: str | None = None,
    prepare: Callable[[str, Residual], object] | None = None,
) -> tuple[Node, tuple[str, ...]]:
    """Returns the normal form of a rule, with `true` for what only documents can tell, and its hidden tags.

    `prepare` is called with what documents are to be asked, as text and as a `Residual`.
    """
    tags: tuple[str, ...] = () if owner is None else (OWNER + owner,)
    asked = root
    if type(root) is not Predicate and has_quantifier(root):
        asked, residual = split(root, multi, owner)
        text = write_residual(residual)
        tags = (*tags, JOINED + text)
        if prepare is not None:
            prepare(text, residual)
    normal = normalize(asked, multi=multi, absent=absent)
    return normal, (*tags, *mentions(root, normal, multi))


def owner_of(owner: object) -> str | None:
    """Returns the owner of a rule, a text that is not empty, or None if there is none."""
    if owner is None:
        return None
    if not isinstance(owner, str) or not owner:
        raise RuleTypeError(f"an owner is a text that is not empty, not {shown(owner)}")
    if not is_unicode(owner):
        raise RuleTypeError(f"an owner is valid Unicode text, not {shown(owner)} (a lone surrogate)")
    return str.__str__(owner)


def mentions(root: Node, normal: Node, multi: frozenset[str]) -> tuple[str, ...]:
    """Returns a mention (rule_table.py) for each attribute that a rule names and its normal form does not, unless it is
    multi-valued.
    """
    if normal is root:
        return ()
    left = {leaf.attribute for leaf in leaves(normal) if isinstance(leaf, Predicate)}
    named = {leaf.attribute for leaf in leaves(root) if isinstance(leaf, Predicate)}
    return tuple(MENTION + name for name in sorted(named - left - multi)) if named != left else ()


def check_id(rule: object, kind: type | None) -> None:
    """Raises a `RuleTypeError` for what is no id, or is not of the kind of the others."""
    if type(rule) is not str and type(rule) is not int:
        raise RuleTypeError(
            f"a rule's id is a string or an integer, not {shown(rule)} ({type(rule).__name__})"
            if rule is not None
            else "the rule has no id (null)"
        )
    if kind is not None and type(rule) is not kind:
        raise RuleTypeError(f"rule {shown(rule)}: ids are of one kind, and the first rule's id is {KINDS[kind]}")
    if not is_id(rule):
        if isinstance(rule, int):
            raise RuleTypeError(f"rule {shown(rule)}: an integer id has at most 64 bits; use a string")
        raise RuleTypeError(f"rule {shown(rule)}: the id is no valid Unicode text (a lone surrogate)")


def weight_of(weight: Any) -> float:
    """Returns the weight as a number, which may be written as text; 1 if there is none, or an empty text."""
    if weight is None or (isinstance(weight, str) and not weight.strip()):
        return 1.0
    try:
        number = float(weight) if isinstance(weight, Real | Decimal | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(weight, bool | np.bool_) or not math.isfinite(number):
        raise RuleTypeError(f"a weight is a finite number that fits a float, not {shown(weight)}")
    return number


def tags_of(tags: Any) -> tuple[str, ...]:
    """Returns the tags of a rule, given as several strings, or as one that separates them by `;`, or as None."""
    if tags is None or (type(tags) is tuple and not tags):
        return ()
    try:
        return tag_names("tags", tags)
    except OptionError as error:
        raise RuleTypeError(str(error)) from None


def duplicate(rule: RuleId) -> DuplicateRuleError:
    return DuplicateRuleError(f"there is a rule {shown(rule)} already: replace=True puts the new one in its place")


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise RuleSyntaxError(f"the rule begins with {{ but is no JSON: {error}") from None
    except UnicodeEncodeError as error:
        found = f"a lone surrogate, {text[error.start]!a}, is not text"
        raise RuleSyntaxError(f"the rule begins with {{ but is no JSON: {found}") from None
    except RecursionError:
        raise LimitError("the rule begins with { and is nested too deeply for JSON: split it") from None
