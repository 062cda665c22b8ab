"""What to say about a token that cannot stand where it does.

Each public function is asked when one thing was expected at token i, and answers with the Problem to raise: what was
expected, what is there, and the remedy. The remedies are for the mistakes of people who know SQL or Python: signs and
words of other languages (`&&`, `ilike`), functions, parameters, arithmetic, names that need backquotes, wrong quotes.
"""

from __future__ import annotations

import re
import unicodedata

from eligo.language.check import COMPARISONS, Problem, closest, short
from eligo.language.tokens import END, WORDS, is_name, is_plain

_OPERATORS = ("in", "between", "like", "is", "not", "contains", "and", "or")

_ARITHMETIC = frozenset("+-*/%")
_DASHES = frozenset("-–—")
_JOINING = frozenset("-–—$@#/:.")  # signs that people have within names
_CURLY_QUOTES = frozenset("‘’‚“”„´«»′″")
_NUMBER = re.compile(r"[+-]?\.?[0-9][\w.]*")

# Remedies.
_NO_REGEX = "there are no regular expressions: like has % for any run of characters and _ for one"
_NO_PARAMETERS = "rules have no parameters: write the value itself, such as 5 or 'US'"
_NO_ARITHMETIC = "there is no arithmetic: work the value out first"
_NO_CAST = "there are no casts: a value is of the kind that it is written as, 5 or '5' or date '2026-01-31'"
_COMMENT = "a comment begins with --"
_MOMENT = "work out the moment and write timestamp '2026-01-31 12:00:00Z'"
_DATE = "a date is written date '2026-01-31', a moment timestamp '2026-01-31 12:00:00Z'"
_NESTED = "a nested attribute is written with a dot: user.city; a name with other signs goes in backquotes"
_BOTH_BOUNDS = "write: price between 10 and 30"
_ALONE = "a rule is the condition alone, what stands after WHERE in SQL"

# Signs from other languages, and what they are called here.
SIGNS_OF_OTHERS = {
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
    "^": "not",
    ":": "=",
    "−": "-",
}

# Words that other languages have for operators, and the remedy.
WORDS_OF_OTHERS = {
    "ilike": "there is no ilike, and like minds upper and lower case: give the event a lower-case copy to ask",
    **dict.fromkeys(("regexp", "rlike", "regex", "matches", "match", "similar", "glob"), _NO_REGEX),
    **dict.fromkeys(("startswith", "starts", "begins"), "write: title like 'Sun%'"),
    **dict.fromkeys(("endswith", "ends"), "write: title like '%day'"),
    **dict.fromkeys(("has", "includes", "include", "any", "all"), "write: interests contains any ('NFL', 'NBA')"),
    **dict.fromkeys(("eq", "equals", "equal"), "write '='"),
    **dict.fromkeys(("ne", "neq"), "write '!='"),
    **dict.fromkeys(("gt", "greater"), "write '>'"),
    **dict.fromkeys(("ge", "gte"), "write '>='"),
    **dict.fromkeys(("lt", "less"), "write '<'"),
    **dict.fromkeys(("le", "lte"), "write '<='"),
    "isnull": "write: is null",
    "notnull": "write: is not null",
    **dict.fromkeys(("xor", "nor", "nand", "unless", "implies"), "there are and, or and not"),
    **dict.fromkeys(("mod", "div"), _NO_ARITHMETIC),
}

_CLAUSES = frozenset(["where", "select", "if", "when", "case", "filter", "having", "from", "distinct"])
_LATER_CLAUSES = frozenset(["limit", "order", "group", "having", "then", "else", "end", "from", "where", "as"])
_NULLS = frozenset(["none", "nil", "undefined", "na"])
_CLOCKS = frozenset(
    ["now", "today", "current_date", "current_time", "current_timestamp", "getdate", "sysdate", "localtime"]
)
_TIMES = frozenset(["date", "timestamp", "datetime", "time", "interval", "to_date", "to_timestamp"])


def _cut(token: str) -> str:
    return token if len(token) <= 40 else token[:39] + "…"


def _show(token: str) -> str:
    return "the end of the rule" if token == END else short(token) if len(token) > 40 else f"{token!r}"


def _problem(reason: str, tokens: list[str], i: int, hint: str = "") -> Problem:
    return Problem(f"{reason}, found {_show(tokens[i])}", hint or _sign(tokens, i), i, syntax=True)


def _next(tokens: list[str], i: int) -> str:
    return tokens[i + 1] if i + 1 < len(tokens) else END


def _sign(tokens: list[str], i: int) -> str:
    """A hint about a sign that means nothing here, whatever was expected."""
    token, following = tokens[i], _next(tokens, i)
    if token[:1] == '"':
        string = short_text(token.strip('"'))
        return f"strings take single quotes: {string}; a name with odd characters takes backquotes"
    if token in _CURLY_QUOTES:
        return "strings take straight single quotes: 'US'"
    if token in COMPARISONS or (token == "!" and following == "="):
        pair = token + following if token == "!" else tokens[i - 1] + token
        return f"write {pair!r} without a blank" if pair in COMPARISONS else ""
    if token == "~" or (token == "!" and following == "~"):
        return _NO_REGEX
    if token == "#" or (token == "/" and following in ("/", "*")):
        return _COMMENT
    if token == ":" and following == ":":
        return _NO_CAST
    written = SIGNS_OF_OTHERS.get(token) or unicodedata.normalize("NFKC", token)
    return f"write {written!r} instead of {token!r}" if written != token else ""


def short_text(text: str) -> str:
    """A string as the language writes it, cut for a message."""
    return "'" + (text if len(text) <= 30 else text[:29] + "…").replace("'", "''") + "'"


def _odd_name(tokens: list[str], i: int) -> str:
    """The name that begins at token i, if it goes on through signs that only backquotes allow: user-id, $amount."""
    name = ""
    while i < len(tokens) and len(name) < 60:
        token = tokens[i]
        wordy = is_word(token) or _NUMBER.fullmatch(token) is not None
        signed = token[0] in "+-" if token else False
        if name and wordy and not signed and name[-1] not in _JOINING:
            break  # two words: a blank stood between them
        if not wordy and token not in _JOINING:
            break
        name += token
        i += 1
    return name if re.search(r"\w$", name) and not is_plain(name) else ""


def _backquotes(name: str) -> str:
    sign = next(c for c in name if not (c.isalnum() or c in "_."))
    return f"a name with {sign!r} goes in backquotes: `{name}`"


def _function(name: str, before: bool) -> str:
    """A hint about a call; `before` says that it stands where the attribute does."""
    last = name.rpartition(".")[2].lower()
    if last in WORDS_OF_OTHERS:
        return WORDS_OF_OTHERS[last]
    if last in _CLOCKS:
        return f"there are no functions, and rules compare with constants: {_MOMENT}"
    if not before and last in _TIMES:
        return f"there are no functions: {_DATE}"
    if before:
        return "there are no functions: give the event the result as an attribute of its own; a list goes with in (…)"
    return "there are no functions: rules compare with constants, so write the value itself"


def no_operand(tokens: list[str], i: int) -> Problem:
    """A predicate, `not` or `(` was expected."""
    token, following = tokens[i], _next(tokens, i)
    if i == 0 and token == END:
        return Problem("the rule is empty", "a rule that always holds is written: true", 0, syntax=True)
    if i == 0 and (token == "{" or (token == "[" and not is_word(following))):
        return _problem("expected a predicate", tokens, i, "this looks like JSON: decode it and pass the dict")
    if token == "`":
        return Problem("the backquote is never closed", "a name in backquotes ends with another one", i, syntax=True)
    hint = ""
    name = _odd_name(tokens, i)
    if name and token not in _ARITHMETIC and (token != "#" or _is_operator(tokens, i + 2)):
        hint = _backquotes(name) if token != "." else "a name begins with a letter or _; any other goes in backquotes"
    elif token[:1] == '"':
        inside = token.strip('"')
        hint = (
            f"a name with odd characters takes backquotes, `{inside}`; strings take single quotes: {short_text(inside)}"
        )
    elif token == "[":
        hint = "a name with odd characters takes backquotes: `two words`"
    elif token == "?":
        hint = _NO_PARAMETERS
    elif token in _ARITHMETIC and following not in ("/", "*"):
        hint = _NO_ARITHMETIC
    elif token in SIGNS_OF_OTHERS or _sign(tokens, i):
        hint = "" if token not in COMPARISONS else "a comparison begins with an attribute: age >= 18"
    elif token == ")" and i and tokens[i - 1] == "(":
        hint = "parentheses need an expression inside"
    elif token in COMPARISONS and i and WORDS.get(tokens[i - 1]) in ("and", "or"):
        hint = f"{tokens[i - 1]!r} needs a predicate after it, so repeat the attribute: age >= 18 and age < 65"
    elif i and WORDS.get(tokens[i - 1]) in ("and", "or", "not"):
        hint = f"{tokens[i - 1]!r} needs a predicate after it"
    elif token in COMPARISONS:
        hint = "a comparison begins with an attribute: age >= 18"
    elif WORDS.get(token) == "null":
        hint = "write: attribute is null"
    elif WORDS.get(token) is not None and token not in ("(", ")", ",", END):
        hint = f"if {token!r} is an attribute's name, put it in backquotes: `{token}`"
    return _problem("expected a predicate", tokens, i, hint)


def no_operator(tokens: list[str], i: int) -> Problem:
    """An operator was expected after an attribute."""
    token, following, name = tokens[i], _next(tokens, i), tokens[i - 1]
    if WORDS.get(name) == "not":
        return _no_operator_after_not(tokens, i)
    if i == 1 and name.lower() in _CLAUSES:
        return _problem(f"expected an operator after {name!r}", tokens, i, f"leave {name!r} out: {_ALONE}")
    if is_word(token):
        hint = WORDS_OF_OTHERS.get(token.lower()) or closest(token, _OPERATORS)
        if not hint and _is_operator(tokens, i + 1) and is_word(name):
            hint = f"a name with a blank goes in backquotes: `{name} {token}`"
        hint = hint or "an attribute is followed by an operator: age >= 18"
        return Problem(f"unknown word {short(token)} after {short(name)}", hint, i, syntax=True)
    hint = ""
    whole = _odd_name(tokens, i - 1) if is_word(name) else ""
    nested = token == "[" or (token in ("-", "=") and following[:1] == ">") or token == "."
    if token == "(":
        hint = _function(name, True)
    elif nested:
        hint = _NESTED
    elif token == ":" and (following in (":", "=") or not _is_operator(tokens, i + 2)):
        hint = _NO_CAST if following == ":" else "write '=' instead of ':='" if following == "=" else ""
    elif whole:
        arithmetic = token[0] in _ARITHMETIC or token in _DASHES
        hint = _backquotes(whole) + ("; there is no arithmetic" if arithmetic else "")
    elif token[:1] in _ARITHMETIC:
        hint = _NO_ARITHMETIC
    elif not _sign(tokens, i):
        hint = "an attribute is followed by an operator: age >= 18"
    return _problem(f"expected an operator after {short(name)}", tokens, i, hint)


def _no_operator_after_not(tokens: list[str], i: int) -> Problem:
    token = tokens[i]
    hint = "after an attribute, 'not' goes with in, between, like or contains"
    if token in COMPARISONS:
        hint = f"write !=, or put not before the attribute: not {_cut(tokens[i - 2])} {token} …"
    elif WORDS.get(token) == "null":
        hint = "write: is not null"
    elif is_word(token):
        hint = WORDS_OF_OTHERS.get(token.lower()) or closest(token, ("in", "between", "like", "contains")) or hint
    return _problem("expected in, between, like or contains after 'not'", tokens, i, hint)


def no_value(tokens: list[str], i: int) -> Problem:
    """A value was expected."""
    token, following, before = tokens[i], _next(tokens, i), tokens[i - 1]
    if WORDS.get(token) == "null":
        if before in ("=", "=="):
            return Problem("null equals nothing, not even null", "write: is null", i, syntax=True)
        if before in ("!=", "<>"):
            return Problem("null equals nothing, not even null", "write: is not null", i, syntax=True)
        hint = "ask for absence on its own: … or attribute is null"
        return Problem("null is not a value to compare with", hint, i, syntax=True)
    if token == "(":
        hint = _BOTH_BOUNDS if WORDS.get(before) == "between" else "a list goes with in or contains any"
        return _problem("expected one value", tokens, i, hint)
    hint = ""
    if is_word(token):
        hint = _word_as_value(tokens, i)
    elif token in ("-", "+"):
        hint = "a sign stands right before its number: -5"
    elif token in ("?", "{") or (token in (":", "@", "$", "%", "#") and is_name(following)):
        hint = _NO_PARAMETERS
    elif token == "$" or unicodedata.category(token[0] if token else " ") == "Sc":
        hint = (
            "a number is written without a unit: 50"
            if following[:1].isdigit() and len(following) > 1
            else _NO_PARAMETERS
        )
    elif token == "[":
        hint = "a list goes with in, in parentheses: in (1, 2)"
    elif token == ")" and before == ",":
        hint = "leave the last comma out"
    elif token == END and before in COMPARISONS:
        hint = "a comparison needs a value: age >= 18"
    elif token == "\\":
        hint = "strings take plain single quotes, and a quote inside is doubled: 'it''s'"
    return _problem("expected a value", tokens, i, hint)


def _word_as_value(tokens: list[str], i: int) -> str:
    """A hint about a word where a value was expected."""
    token, following = tokens[i], _next(tokens, i)
    word = token.lower()
    string = short_text(_odd_name(tokens, i) or token)
    if word in ("nan", "inf", "infinity"):
        return "NaN is the same as absent, and infinity is no value: use 'is null' or a one-sided comparison"
    if word in _NULLS:
        remedy = "is not null" if tokens[i - 1] in ("!=", "<>") else "is null"
        return f"absence is asked for with: {remedy}; the string is {string}"
    if following == "(" and word in ("any", "all", "some"):
        listed = {"=": "write: in (…)", "!=": "write: not in (…)", "<>": "write: not in (…)"}
        return listed.get(tokens[i - 1], "compare with one value")
    if following == "(":
        return _function(token, False)
    if word in _CLOCKS:
        return f"rules compare with constants: {_MOMENT}; the string is {string}"
    if word in _TIMES and (following[:1] in ("'", '"') or following[:1].isdigit()):
        return _DATE
    if following[:1] == "'" and len(following) > 1 and len(token) < 3:
        return f"a string has no letter before its quote: {_cut(following)}"
    if word == "select":
        return "there are no subqueries: list the values"
    if word in ("yes", "no", "on", "off"):
        return f"Booleans are true and false; strings take single quotes: {string}"
    return f"strings take single quotes: {string}; two attributes cannot be compared"


def no_list(tokens: list[str], i: int) -> Problem:
    return _problem("expected '('", tokens, i, "a list is written in parentheses: country in ('US', 'CA')")


def no_comma(tokens: list[str], i: int) -> Problem:
    hint = "add ')'" if tokens[i] == END else "values are separated by commas: ('US', 'CA')"
    return _problem("expected ',' or ')' in the list", tokens, i, hint)


def no_contains(tokens: list[str], i: int) -> Problem:
    hint = closest(tokens[i], ("any", "all", "none")) if is_word(tokens[i]) else ""
    return _problem("expected any, all or none after 'contains'", tokens, i, hint or "write: contains any ('a', 'b')")


def no_null(tokens: list[str], i: int) -> Problem:
    token = tokens[i]
    negated = WORDS.get(tokens[i - 1]) == "not"
    word = WORDS.get(token) or token.lower()
    hint = "write: is not null" if negated else "write: is null, or is not null"
    if word in ("true", "false") or _NUMBER.fullmatch(token) or token[:1] == "'":
        hint = f"write: {'!=' if negated else '='} {word if word in ('true', 'false') else _cut(token)}"
        hint += ", which fails where the attribute is absent" if negated else ""
    elif word in ("in", "between", "like", "contains"):
        hint = f"write without 'is': {'not ' if negated else ''}{word} …"
    elif word == "empty":
        hint = (
            "for the empty string write: != ''" if negated else "write: = '' for the empty string, is null for absence"
        )
    elif word == "distinct":
        hint = "write: = 5" if negated else "write: age != 5 or age is null"
    elif word in _NULLS:
        hint = f"write: is {'not ' if negated else ''}null"
    elif is_word(token) and closest(token, ("null",)):
        hint = closest(token, ("null",))
    elif is_word(token):
        hint += f"; a string is compared with {'!=' if negated else '='}"
    return _problem("expected null after 'is'", tokens, i, hint)


def no_comparison(tokens: list[str], i: int) -> Problem:
    """A comparison was expected after a value."""
    value = tokens[i - 1]
    word = WORDS.get(tokens[i])
    if word in ("and", "or", ")", END):
        hint = "compare it: age >= 18"
        if i >= 2 and WORDS.get(tokens[i - 2]) in ("and", "or"):
            hint = "repeat the attribute, a = 1 or a = 2, or write a list: a in (1, 2)"
        return Problem(f"{short(value)} alone is not a predicate", hint, i - 1, syntax=True)
    hint = "with a value on the left only = != < <= > >= are possible"
    negated = word == "not" and WORDS.get(_next(tokens, i)) == "in"
    attribute = _next(tokens, i + 1 if negated else i)
    if (word == "in" or negated) and is_word(attribute):
        hint = f"write: {attribute} contains {'none' if negated else 'any'} ({_cut(value)})"
    elif tokens[i][:1] in _ARITHMETIC:
        hint = _NO_ARITHMETIC
    elif _sign(tokens, i):
        hint = ""
    return _problem(f"expected a comparison after {short(value)}", tokens, i, hint)


def no_attribute(tokens: list[str], i: int) -> Problem:
    """An attribute was expected after a value and a comparison."""
    token = tokens[i]
    hint = "one side of a comparison is an attribute"
    if token in WORDS and token not in ("(", ")", ",", END):
        hint = f"if {token!r} is an attribute's name, put it in backquotes"
    elif token in _JOINING and _odd_name(tokens, i):
        hint = _backquotes(_odd_name(tokens, i))
    elif token[:1] == '"':
        hint = ""
    return _problem("expected an attribute", tokens, i, hint)


def no_end(tokens: list[str], i: int, opened: int) -> Problem:
    """After a whole predicate something other than and, or, `)` or the end."""
    token, following, before = tokens[i], _next(tokens, i), tokens[i - 1]
    if token == END:
        return Problem("the parenthesis is never closed", "add ')'", opened, syntax=True)
    if token == ")":
        return Problem("')' closes nothing", "remove it, or open a parenthesis before", i, syntax=True)
    if token == "'":
        return Problem("the string is never closed", "a quote inside a string is doubled: 'it''s'", i, syntax=True)
    number = _NUMBER.fullmatch(before) is not None
    whole = _odd_name(tokens, i - 1) if is_word(before) else ""
    hint = ""
    if token in COMPARISONS:
        hint = "comparisons do not chain: join two with and"
    elif token == ";":
        hint = "leave ';' out: a rule is one expression"
    elif token.lower() in _LATER_CLAUSES:
        hint = f"leave {token!r} and what follows out: {_ALONE}"
    elif is_word(token):
        hint = closest(token, ("and", "or"))
        if not hint and before[:1] == "'":
            hint = "predicates are joined with and or or; a quote inside a string is doubled: 'it''s'"
        hint = hint or "predicates are joined with and or or"
    elif token == ",":
        hint = "predicates are joined with and or or"
        hint = "a number is written without a comma: 1000, 0.5" if number and following[:1].isdigit() else hint
    elif whole:
        hint = _backquotes(whole)
    elif number and ((token == ":" and following[:1].isdigit()) or re.fullmatch(r"-[0-9]{2}", token)):
        hint = _DATE
    elif number and (token == "%" or unicodedata.category(token[0]) == "Sc") and following in WORDS:
        hint = "a number is written without a unit: 50"
    elif token == "||" and before[:1] == "'" and following[:1] == "'":
        hint = "strings are not joined: write the whole string"
    elif token == ":" and following == ":":
        hint = _NO_CAST
    elif token[:1] in _ARITHMETIC and following not in ("/", "*"):
        hint = _NO_ARITHMETIC
    elif not _sign(tokens, i) or token == ":":
        hint = "predicates are joined with and or or"
    return _problem("expected and, or or the end", tokens, i, hint)


def _is_operator(tokens: list[str], i: int) -> bool:
    """Whether token i can follow an attribute."""
    token = tokens[i] if i < len(tokens) else END
    return token in COMPARISONS or WORDS.get(token) in _OPERATORS


def is_word(token: str) -> bool:
    return token not in WORDS and token != "" and is_name(token) and token[0] != "`"
