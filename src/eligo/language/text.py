"""Rules as text: `age >= 18 and country in ('US', 'CA') and not (segment = 'churned' or score < 0.2)`.

    expression    or ── and ── not ── ( expression ), a quantifier, or one leaf
    leaf          a comparison, whose length in tokens its operator tells

Operators are few and their order is fixed, so the parser is one loop that holds the open level in two lists: the
terms of the disjunction that are done, and the factors of the conjunction being read. A parenthesis puts both on a
stack and begins anew. No function calls itself, so nesting costs no Python stack.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from eligo.language import mistakes
from eligo.language.check import (
    COMPARISONS,
    FLIPPED,
    SPELLINGS,
    Problem,
    check_pattern,
    check_text,
    check_variable,
    predicate,
)
from eligo.language.limits import DEFAULT_LIMITS, Limits, check_limits, exceeded
from eligo.language.tokens import WORDS, is_name, literal, positions, tokenize, unquoted
from eligo.language.tree import And, Comparison, Constant, Join, Node, Not, Or, Predicate, Quantified, Value

_NESTING = frozenset(["(", "not", "exists", "forall"])


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> Node:
    """The tree of a rule's text; a RuleSyntaxError or RuleTypeError shows the place and a remedy."""
    if len(text) > limits.text:
        raise exceeded("text", len(text), limits.text)
    try:
        return _expression(tokenize(check_text(text)), limits)
    except Problem as problem:
        raise problem.error(text, _place(text, problem)) from None


def _place(text: str, problem: Problem) -> int:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return positions(text)[problem.at]


def _expression(tokens: list[str], limits: Limits) -> Node:
    word_of = WORDS.get
    # What a parenthesis interrupts: the two lists, the NOTs before it, its place, and its quantifier or "", which ends
    # in " in received" if it is about those documents alone.
    frames: list[tuple[list[Node], list[Node], int, int, str]] = []
    terms: list[Node] = []
    factors: list[Node] = []
    nots = 0
    depth = deepest = 0
    variable = ""
    i = 0
    while True:
        # An operand begins here.
        word = word_of(tokens[i])
        if word is None:
            node, i = _leaf(tokens, i, variable, limits)
        elif word in _NESTING:
            depth += 1
            if depth > limits.depth:
                raise exceeded("depth", depth, limits.depth)
            deepest = max(deepest, depth)
            if word == "not":
                nots += 1
                i += 1
                continue
            quantifier = ""
            if word != "(":
                variable, quantifier, i = _variable(tokens, i, variable)
            frames.append((terms, factors, nots, i, quantifier))
            terms, factors, nots = [], [], 0
            i += 1
            continue
        elif (word == "true" or word == "false") and tokens[i + 1] not in COMPARISONS:
            node, i = Constant(word == "true"), i + 1
        elif word == "true" or word == "false":
            node, i = _flipped(tokens, i, variable)
        else:
            raise mistakes.no_operand(tokens, i)

        # An operand is complete; what follows says how many levels end with it.
        while True:
            if nots:
                depth -= nots
                for _ in range(nots):
                    node = Not(node)
                nots = 0
            factors.append(node)
            word = word_of(tokens[i])
            if word == "and":
                break
            node = And(tuple(factors)) if len(factors) > 1 else factors[0]
            if word == "or":
                terms.append(node)
                factors = []
                break
            if terms:
                terms.append(node)
                node = Or(tuple(terms))
            if word != ")" or not frames:
                if word or word is None or frames:
                    raise mistakes.no_end(tokens, i, frames[-1][3] if frames else -1)
                # The tree may have more levels than the text has parentheses: `(a and b or c) and d` has four.
                if len(tokens) > limits.leaves or 2 * deepest + 4 > limits.depth:
                    check_limits(node, limits)
                return node
            terms, factors, nots, _, quantifier = frames.pop()
            depth -= 1
            i += 1
            if quantifier:
                word, _, received = quantifier.partition(" ")
                node = Quantified(cast(Literal["exists", "forall"], word), variable, node, received=received != "")
                variable = ""
        i += 1


def _leaf(tokens: list[str], i: int, variable: str, limits: Limits) -> tuple[Node, int]:
    """The leaf that begins at token i, and where it ends."""
    name = tokens[i]
    if not is_name(name):
        return _flipped(tokens, i, variable)
    of = ""
    if variable or name[-1] == "`":
        name, of = _attribute(tokens, i, variable)
    spelling = tokens[i + 1]
    if spelling in COMPARISONS:
        first = i + 2
        if variable and tokens[first] not in WORDS and is_name(tokens[first]):
            return _join(name, of, spelling, tokens, first, variable), i + 3
        values: tuple[Value, ...] = (_value(tokens, first),)
        end = i + 3
    else:
        word = WORDS.get(spelling)
        negation = ""
        if word == "not":
            negation = "not "
            i += 1
            word = WORDS.get(tokens[i + 1])
        first = i + 2
        if word == "in":
            spelling = negation + "in"
            values, end = _list(tokens, first)
            first += 1
        elif word == "between":
            spelling = negation + "between"
            values, end = _bounds(tokens, first)
        elif word == "like":
            spelling = negation + "like"
            values, end = _pattern(tokens, first)
        elif word == "contains":
            spelling = f"{negation}contains {tokens[first].lower()}"
            if spelling not in SPELLINGS:
                raise mistakes.no_contains(tokens, first)
            values, end = _list(tokens, first + 1)
            first += 2
        elif word == "is" and not negation:
            spelling, end = _null(tokens, first)
            values = ()
        elif word in ("and", "or", ")", "") and not negation:
            return Predicate(name, "=", (True,), False, of), i + 1
        else:
            raise mistakes.no_operator(tokens, i + 1)
    try:
        return predicate(name, spelling, values, of, limits), end
    except Problem as problem:
        problem.at = first + 2 * problem.at
        raise


def _value(tokens: list[str], i: int, mistake: Callable[[list[str], int], Problem] = mistakes.no_value) -> Value:
    try:
        value = literal(tokens[i])
    except Problem as problem:
        problem.at = i
        raise
    if value is None:
        raise mistake(tokens, i)
    return value


def _list(tokens: list[str], i: int) -> tuple[tuple[Value, ...], int]:
    """Values in parentheses: every second token, with a comma between two."""
    if tokens[i] != "(":
        raise mistakes.no_list(tokens, i)
    if tokens[i + 1] == ")":
        return (), i + 2
    values = []
    while True:
        values.append(_value(tokens, i + 1))
        i += 2
        if tokens[i] == ")":
            return tuple(values), i + 1
        if tokens[i] != ",":
            raise mistakes.no_comma(tokens, i)


def _bounds(tokens: list[str], i: int) -> tuple[tuple[Value, ...], int]:
    low = _value(tokens, i)
    if WORDS.get(tokens[i + 1]) != "and":
        raise Problem("'between' needs two values", "write: price between 10 and 30", i + 1, syntax=True)
    return (low, _value(tokens, i + 2)), i + 3


def _pattern(tokens: list[str], i: int) -> tuple[tuple[Value, ...], int]:
    """A pattern, perhaps with `escape` and a character after it: the tree holds it with a backslash in its place."""
    pattern = _value(tokens, i)
    if tokens[i + 1].lower() != "escape" or not isinstance(pattern, str):
        return (pattern,), i + 1
    escape = _value(tokens, i + 2)
    try:
        return (check_pattern(pattern, escape),), i + 3
    except Problem as problem:
        problem.at = i + 2 * problem.at
        raise


def _null(tokens: list[str], i: int) -> tuple[str, int]:
    word = WORDS.get(tokens[i])
    if word == "null":
        return "is null", i + 1
    if word == "not" and WORDS.get(tokens[i + 1]) == "null":
        return "is not null", i + 2
    raise mistakes.no_null(tokens, i + 1 if word == "not" else i)


def _flipped(tokens: list[str], i: int, variable: str) -> tuple[Node, int]:
    """A comparison with its value on the left: `18 <= age`."""
    value = _value(tokens, i, mistakes.no_operand)
    spelling = tokens[i + 1]
    if spelling not in COMPARISONS:
        raise mistakes.no_comparison(tokens, i + 1)
    if tokens[i + 2] in WORDS or not is_name(tokens[i + 2]):
        raise mistakes.no_attribute(tokens, i + 2)
    if tokens[i + 3] in COMPARISONS:
        raise Problem("comparisons do not chain", "join two with and: 18 <= age and age < 65", i + 3, syntax=True)
    name, of = _attribute(tokens, i + 2, variable)
    operator, negated = SPELLINGS[spelling]
    try:
        return predicate(name, "!=" if negated else FLIPPED[operator], (value,), of), i + 3
    except Problem as problem:
        problem.at = i
        raise


def _attribute(tokens: list[str], i: int, variable: str) -> tuple[str, str]:
    """An attribute's name and the variable that it belongs to; "" is the event."""
    token = tokens[i]
    try:
        if token[0] == "`":
            return unquoted(token), ""
        if token[-1] == "`":
            owner, _, rest = token.partition(".`")
            if owner != variable or not variable:
                reason = f"{owner!r} is not the variable of a quantifier around this"
                raise Problem(reason, f"put the whole name in backquotes: `{owner}.{rest}", syntax=True)
            return unquoted("`" + rest), variable
    except Problem as problem:
        problem.at = i
        raise
    if variable:
        if token.startswith(variable + "."):
            return token[len(variable) + 1 :], variable
        if token == variable:
            hint = f"name one of its attributes, {variable}.price; the event's own attribute is `{variable}`"
            raise Problem(f"{variable!r} stands for a whole document here", hint, i, syntax=True)
    return token, ""


def _join(name: str, of: str, spelling: str, tokens: list[str], i: int, variable: str) -> Join:
    """Two attributes compared: one of the event, one of the document."""
    other, other_of = _attribute(tokens, i, variable)
    operator, negated = SPELLINGS[spelling]
    if of and other_of:
        hint = f"compare one of the event's attributes with one of {variable}'s"
        raise Problem("two attributes of the document cannot be compared", hint, i, syntax=True)
    if not of and not other_of:
        raise mistakes.no_value(tokens, i)
    if of:
        return Join(other, FLIPPED[operator], variable, name, negated)
    return Join(name, cast(Comparison, operator), variable, other, negated)


def _variable(tokens: list[str], i: int, outer: str) -> tuple[str, str, int]:
    """The variable after `exists` or `forall`, the quantifier with what it ranges over, and where its body begins."""
    word = tokens[i].lower()
    if outer:
        raise Problem("a quantifier inside another", "join two quantifiers with and or or", i, syntax=True)
    try:
        variable = check_variable(tokens[i + 1] or " ")
    except Problem as problem:
        raise Problem(
            f"{word!r} needs a variable", f"write: {word} d (price < d.price)", i + 1, syntax=True
        ) from problem
    at, written = i + 2, f"{word} {variable}"
    if WORDS.get(tokens[at]) == "in":
        if tokens[at + 1].lower() != "received":
            hint = f"write: {written} in received (…), or leave 'in' out to ask about all documents"
            raise Problem("a quantifier ranges over all documents or over those received", hint, at + 1, syntax=True)
        at, word, written = at + 2, f"{word} in received", f"{written} in received"
    if tokens[at] != "(":
        hint = f"write: {written} (price < {variable}.price)"
        raise Problem(f"expected '(' after '{written}'", hint, at, syntax=True)
    return variable, word, at
