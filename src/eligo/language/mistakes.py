"""What to say about a token that cannot stand where it does.

Each function is asked when one thing was expected at token i, and answers with the Problem to raise: what was
expected, what is there, and the remedy for the mistakes that people make (`&&`, `==`'s cousins, double quotes, `=
null`).
"""

from __future__ import annotations

from eligo.language.check import Problem, closest, short
from eligo.language.tokens import END, WORDS, is_name

_OPERATORS = ("in", "between", "like", "is", "not", "contains", "and", "or")

# Signs from other languages, and what they are called here.
_SIGNS = {
    "&&": "and",
    "&": "and",
    "||": "or",
    "|": "or",
    "!": "not",
    "===": "=",
    "!==": "!=",
    "=>": ">=",
    "=<": "<=",
    "=!": "!=",
    "><": "!=",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "~": "like",
    "^": "not",
    ":": "=",
}


def _show(token: str) -> str:
    return "the end of the rule" if token == END else short(token) if len(token) > 40 else f"{token!r}"


def _problem(reason: str, tokens: list[str], i: int, hint: str = "") -> Problem:
    token = tokens[i]
    if not hint and token in _SIGNS:
        hint = f"write {_SIGNS[token]!r} instead of {token!r}"
    if not hint and token[:1] == '"':
        hint = _double_quotes(token)
    return Problem(f"{reason}, found {_show(token)}", hint, i, syntax=True)


def _double_quotes(token: str) -> str:
    inside = token.strip('"')
    return f"strings take single quotes: {short_text(inside)}; a name with odd characters takes backquotes"


def short_text(text: str) -> str:
    """A string as the language writes it, cut for a message."""
    return "'" + (text if len(text) <= 30 else text[:29] + "…").replace("'", "''") + "'"


def no_operand(tokens: list[str], i: int) -> Problem:
    """A predicate, `not` or `(` was expected."""
    token = tokens[i]
    if i == 0 and token == END:
        return Problem("the rule is empty", "a rule that always holds is written: true", 0, syntax=True)
    if i == 0 and token in ("{", "["):
        return _problem("expected a predicate", tokens, i, "this looks like JSON: decode it and pass the dict")
    if token == "`":
        return Problem("the backquote is never closed", "a name in backquotes ends with another one", i, syntax=True)
    hint = ""
    if token == ")" and i and tokens[i - 1] == "(":
        hint = "parentheses need an expression inside"
    elif i and WORDS.get(tokens[i - 1]) in ("and", "or", "not"):
        hint = f"{tokens[i - 1]!r} needs a predicate after it"
    elif token in ("=", "<", ">", "<=", ">=", "!=", "<>", "=="):
        hint = "a comparison begins with an attribute: age >= 18"
    elif WORDS.get(token) == "null":
        hint = "write: attribute is null"
    elif WORDS.get(token) is not None and token not in ("(", ")", ",", END):
        hint = f"if {token!r} is an attribute's name, put it in backquotes: `{token}`"
    special = token in _SIGNS or token[:1] == '"'
    return _problem("expected a predicate", tokens, i, "" if special else hint)


def no_operator(tokens: list[str], i: int) -> Problem:
    """An operator was expected after an attribute."""
    token = tokens[i]
    if tokens[i - 1].lower() == "not" and WORDS.get(tokens[i - 1]) == "not":
        hint = closest(token, ("in", "between", "like", "contains")) if is_word(token) else ""
        hint = hint or "after an attribute, 'not' goes with in, between, like or contains"
        return _problem("expected in, between, like or contains after 'not'", tokens, i, hint)
    if is_word(token):
        reason = f"unknown word {short(token)} after {short(tokens[i - 1])}"
        hint = closest(token, _OPERATORS) or "an attribute is followed by an operator: age >= 18"
        return Problem(reason, hint, i, syntax=True)
    hint = ""
    if token == "(":
        hint = "there are no functions; a list needs an operator: in (…)"
    elif token not in _SIGNS and token[:1] != '"':
        hint = "an attribute is followed by an operator: age >= 18"
    return _problem(f"expected an operator after {short(tokens[i - 1])}", tokens, i, hint)


def no_value(tokens: list[str], i: int) -> Problem:
    """A value was expected."""
    token = tokens[i]
    if WORDS.get(token) == "null":
        before = tokens[i - 1]
        if before in ("=", "=="):
            return Problem("null equals nothing, not even null", "write: is null", i, syntax=True)
        if before in ("!=", "<>"):
            return Problem("null equals nothing, not even null", "write: is not null", i, syntax=True)
        hint = "ask for absence on its own: … or attribute is null"
        return Problem("null is not a value to compare with", hint, i, syntax=True)
    if token == "(":
        return _problem("expected one value", tokens, i, "a list goes with in or contains any")
    if token in ("-", "+"):
        return _problem("expected a value", tokens, i, "a sign stands right before its number: -5")
    if token and token not in WORDS and is_name(token):
        hint = f"strings take single quotes: {short_text(token)}; two attributes cannot be compared"
        if token.lower() in ("nan", "inf", "infinity"):
            hint = "NaN is the same as absent, and infinity is no value: use 'is null' or a one-sided comparison"
        return _problem("expected a value", tokens, i, hint)
    return _problem("expected a value", tokens, i)


def no_list(tokens: list[str], i: int) -> Problem:
    return _problem("expected '('", tokens, i, "a list is written in parentheses: country in ('US', 'CA')")


def no_comma(tokens: list[str], i: int) -> Problem:
    return _problem("expected ',' or ')' in the list", tokens, i)


def no_contains(tokens: list[str], i: int) -> Problem:
    hint = closest(tokens[i], ("any", "all", "none")) if is_word(tokens[i]) else ""
    return _problem("expected any, all or none after 'contains'", tokens, i, hint or "write: contains any ('a', 'b')")


def no_null(tokens: list[str], i: int) -> Problem:
    hint = closest(tokens[i], ("null",)) if is_word(tokens[i]) else ""
    if WORDS.get(tokens[i]) in ("true", "false"):
        hint = f"write: = {tokens[i].lower()}"
    return _problem("expected null after 'is'", tokens, i, hint or "write: is null, or is not null")


def no_comparison(tokens: list[str], i: int) -> Problem:
    """A comparison was expected after a value."""
    word = WORDS.get(tokens[i])
    if word in ("and", "or", ")", END):
        return Problem(f"{short(tokens[i - 1])} alone is not a predicate", "compare it: age >= 18", i - 1, syntax=True)
    hint = ""
    if tokens[i] not in _SIGNS and tokens[i][:1] != '"':
        hint = "with a value on the left only = != < <= > >= are possible"
    return _problem(f"expected a comparison after {short(tokens[i - 1])}", tokens, i, hint)


def no_attribute(tokens: list[str], i: int) -> Problem:
    """An attribute was expected after a value and a comparison."""
    hint = "one side of a comparison is an attribute"
    if tokens[i] in WORDS and tokens[i] not in ("(", ")", ",", END):
        hint = f"if {tokens[i]!r} is an attribute's name, put it in backquotes"
    return _problem("expected an attribute", tokens, i, hint)


def no_end(tokens: list[str], i: int, opened: int) -> Problem:
    """After a whole predicate something other than and, or, `)` or the end."""
    token = tokens[i]
    if token == END:
        return Problem("the parenthesis is never closed", "add ')'", opened, syntax=True)
    if token == ")":
        return Problem("')' closes nothing", "remove it, or open a parenthesis before", i, syntax=True)
    if token in ("=", "==", "!=", "<>", "<", "<=", ">", ">="):
        return _problem("expected and, or or the end", tokens, i, "comparisons do not chain: join two with and")
    if token == "'":
        return Problem("the string is never closed", "a quote inside a string is doubled: 'it''s'", i, syntax=True)
    if is_word(token):
        hint = closest(token, ("and", "or")) or "predicates are joined with and or or"
        return _problem("expected and, or or the end", tokens, i, hint)
    return _problem("expected and, or or the end", tokens, i)


def is_word(token: str) -> bool:
    return token not in WORDS and token != "" and is_name(token) and token[0] != "`"
