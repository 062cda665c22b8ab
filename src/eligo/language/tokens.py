"""The lexis of the text form: what the words are, and the values that literals stand for.

A rule's text becomes a list of token texts, in one call of the regex engine. Places are not kept: they are needed
only when something is wrong, and then `positions` finds them by reading the text again.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from itertools import product

from eligo.language.check import KEYWORDS, Problem, to_utc
from eligo.language.tree import Value
from eligo.language.values import INT_MAX, INT_MIN

END = ""

# Alternatives by their first character, so that order matters only where noted. Quantifiers are possessive (`*+`): a
# text without its closing quote fails at once instead of trying every shorter reading.
TOKEN = re.compile(
    r"""\s*+(
      [dD][aA][tT][eE]\s*+'[^']*+'                                     # before names: date '…', while `date` is a name
    | [tT][iI][mM][eE][sS][tT][aA][mM][pP]\s*+'[^']*+'
    | [^\W\d]\w*+(?:\.\w++)*+(?:\.`[^`]*+(?:``[^`]*+)*+`)?             # name, keyword, d.`odd name`
    | [+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?(?![\w.])
    | '[^']*+(?:''[^']*+)*+'
    | [<>=!&|]++                                                       # a whole run, so that === is one mistake
    | `[^`]*+(?:``[^`]*+)*+`
    | --[^\n]*+
    | "[^"]*+"?                                                        # never right: the rest is for good messages
    | [0-9][\w.]*+
    | \S
    | \Z                                                               # END: without it, blanks at the end cost n²
    )""",
    re.VERBOSE,
)

# Tokens that are not names or literals, in every mixture of cases: "And", "AND" and "and" are all "and".
WORDS: dict[str, str] = {
    "".join(letters): word for word in KEYWORDS for letters in product(*zip(word, word.upper(), strict=True))
} | {mark: mark for mark in ("(", ")", ",", END)}

_PLAIN = re.compile(r"[^\W\d]\w*+(?:\.\w++)*+")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_DAY = re.compile(_DATE)
_MOMENT = re.compile(
    _DATE + r"[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?\s*(?:([zZ])|([+-])([0-9]{2}):?([0-9]{2}))?"
)


def tokenize(text: str) -> list[str]:
    """The tokens of a text without its comments; END is the last, once or twice."""
    tokens: list[str] = TOKEN.findall(text)
    if "--" in text:
        tokens = [token for token in tokens if not token.startswith("--")]
    return tokens


def positions(text: str) -> list[int]:
    """Where each token of `tokenize` begins; END stands right after the last one."""
    places: list[int] = []
    end = 0
    for match in TOKEN.finditer(text):
        if not match[1].startswith("--"):
            places.append(match.start(1) if match[1] else end)
            end = match.end() if match[1] else end
    return places


def is_name(token: str) -> bool:
    """Whether a token that is no keyword names an attribute."""
    head = token[:1]
    return (head.isalpha() or head == "_" or head == "`") and token[-1] != "'"


def is_plain(name: str) -> bool:
    """Whether a name can be written without backquotes."""
    return _PLAIN.fullmatch(name) is not None and (name[0].isalpha() or name[0] == "_") and name not in WORDS


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def unquoted(token: str) -> str:
    """The name within backquotes."""
    if len(token) < 2:
        raise Problem("the backquote is never closed", "a name in backquotes ends with another one", syntax=True)
    if len(token) == 2:
        raise Problem("an attribute needs a name", syntax=True)
    return token[1:-1].replace("``", "`")


def literal(token: str) -> Value | None:
    """The value that a token stands for, or None if it stands for none."""
    head = token[:1]
    if head == "'":
        if len(token) == 1:
            raise Problem("the string is never closed", "a quote inside a string is doubled: 'it''s'", syntax=True)
        return token[1:-1].replace("''", "'")
    if token.isdecimal() and token.isascii() and len(token) < 19:
        return int(token)
    if head in "dDtT" and token[-1:] == "'":
        word, _, inside = token[:-1].partition("'")
        return read_date(inside) if word.strip().lower() == "date" else read_timestamp(inside)
    if head in "0123456789+-." and len(token) > 1:
        return _number(token)
    word = WORDS.get(token, "")
    return True if word == "true" else False if word == "false" else None


def _number(token: str) -> int | float:
    if _INTEGER.fullmatch(token):
        digits = token.lstrip("+-").lstrip("0") or "0"
        number = int(digits) if len(digits) < 20 else INT_MAX + 2
        number = -number if token[0] == "-" else number
        if not INT_MIN <= number <= INT_MAX:
            raise Problem(
                "the integer does not fit in 64 bits", f"the range is {INT_MIN} to {INT_MAX}; or write {token}.0"
            )
        return number
    if not _FLOAT.fullmatch(token):
        hint = (
            "a number is digits, then perhaps a fraction and an exponent: 1.5e3; a string takes single quotes, a name "
        )
        hint += "that begins with a digit backquotes"
        glued = re.search("(and|or)$", token.lower())
        raise Problem(
            f"{token!r} is not a number", f"leave a blank before {glued[1]!r}" if glued else hint, syntax=True
        )
    value = float(token)
    if math.isinf(value):
        raise Problem(
            "the number is too large for a float", "use a one-sided comparison, or 'is not null' for any value"
        )
    return value


def read_date(text: str) -> date:
    parts = _DAY.fullmatch(text.strip())
    if parts is None:
        raise Problem(f"{text!r} is not a date", "write it as date '2026-01-31'")
    try:
        return date(*map(int, parts.groups()))
    except ValueError as error:
        raise Problem(f"{text!r} is not a date: {error}") from None


def read_timestamp(text: str) -> datetime:
    """A moment in UTC from `2026-01-31 12:00:00.25+02:00` or less of it; without an offset it is UTC."""
    parts = _MOMENT.fullmatch(text.strip())
    if parts is None:
        hint = "write it as timestamp '2026-01-31 12:00:00Z'; fractions of a second have at most six digits"
        raise Problem(f"{text!r} is not a timestamp", hint)
    year, month, day, hour, minute, second, fraction, _, sign, hours, minutes = parts.groups()
    try:
        micros = int((fraction or "").ljust(6, "0"))
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), micros, UTC)
        if sign:
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            if offset >= timedelta(days=1) or int(minutes) > 59:
                raise ValueError("the offset must be less than a day")
            moment = moment - offset if sign == "+" else moment + offset
    except (ValueError, OverflowError) as error:
        raise Problem(f"{text!r} is not a timestamp: {error}") from None
    return to_utc(moment)
