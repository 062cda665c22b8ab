"""What a predicate may say, in one place for text, JSON and Python.

A form reads its own notation, then asks here: `clean` makes a plain value of whatever Python or JSON gave, and
`predicate` builds a predicate whose operator takes its values. What is wrong is raised as a `Problem`, which knows
the operand but not the place; each form turns it into an error with the place it knows (a position, a JSON path,
nothing).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np

from eligo.arguments import shown
from eligo.errors import RuleSyntaxError, RuleTypeError
from eligo.language.decimals import number_of
from eligo.language.limits import DEFAULT_LIMITS, Limits, exceeded
from eligo.language.patterns import ESCAPE, in_backslash_form
from eligo.language.tree import Comparison, Operator, Predicate, Value
from eligo.language.values import INT_MAX, INT_MIN

KINDS: dict[type, str] = {
    bool: "Boolean",
    int: "number",
    float: "number",
    str: "string",
    date: "time",
    datetime: "time",
}

# Every way to spell an operator, and what the tree holds for it: the positive operator and its polarity.
SPELLINGS: dict[str, tuple[Operator, bool]] = {
    "=": ("=", False),
    "==": ("=", False),
    "!=": ("=", True),
    "<>": ("=", True),
    "<": ("<", False),
    "<=": ("<=", False),
    ">": (">", False),
    ">=": (">=", False),
    "in": ("in", False),
    "not in": ("in", True),
    "between": ("between", False),
    "not between": ("between", True),
    "like": ("like", False),
    "not like": ("like", True),
    "is null": ("is null", False),
    "is not null": ("is null", True),
    "contains any": ("contains any", False),
    "contains all": ("contains all", False),
    "contains none": ("contains any", True),
    "not contains any": ("contains any", True),
    "not contains all": ("contains all", True),
    "not contains none": ("contains any", False),
}

COMPARISONS = dict.fromkeys(("=", "==", "!=", "<>", "<", "<=", ">", ">="))  # a dict: in this order, and found at once

# The same comparison seen from its other side: `18 <= age` is `age >= 18`.
FLIPPED: dict[Operator, Comparison] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

# Words that name nothing unless they stand in backquotes.
KEYWORDS = (
    "and", "or", "not", "in", "between", "like", "is", "null", "contains", "exists", "forall", "true", "false",
)  # fmt: skip

_VARIABLE = re.compile(r"[^\W\d]\w*")


class Problem(Exception):  # noqa: N818 - it never leaves the package
    """A mistake in a rule before its place is known; `at` counts operands, or tokens once text has placed it."""

    def __init__(self, reason: str, hint: str = "", at: int = 0, syntax: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.at = at
        self.syntax = syntax
        self.path = ""  # the place within one JSON object, such as ".value[1]"

    def error(self, text: str = "", position: int = -1, where: str = "") -> RuleSyntaxError:
        kind = RuleSyntaxError if self.syntax else RuleTypeError
        return kind(where + self.reason, text=text, position=position, hint=self.hint)


def predicate(
    attribute: str, spelling: str, values: tuple[Value, ...], variable: str = "", limits: Limits = DEFAULT_LIMITS
) -> Predicate:
    """A checked predicate from clean values; the spelling is a key of SPELLINGS."""
    operator, negated = SPELLINGS[spelling]
    if operator != "=":
        check_operands(operator, values, limits)
    return Predicate(attribute, operator, values, negated, variable)


def check_operands(operator: str, values: Sequence[Value], limits: Limits = DEFAULT_LIMITS) -> None:
    """Refuse operands that the operator does not take: the kinds, and how many in a list."""
    if operator == "in" or operator.startswith("contains"):
        if not values:
            raise Problem(
                f"the list after {operator!r} is empty", "give one value or more, or write false", syntax=True
            )
        if len(values) > limits.values:
            raise exceeded("values", len(values), limits.values)
        return
    if operator == "is null":
        return
    kind = KINDS[type(values[0])]
    if operator == "like":
        if kind != "string":
            raise Problem(f"'like' takes a string, not a {kind}", "a pattern is a string such as 'Sun%'")
        check_pattern(str(values[0]))
        return
    if operator == "between":
        other = KINDS[type(values[1])]
        if kind != other:
            raise Problem(f"'between' over two kinds: a {kind} and a {other}", "give two values of one kind", at=1)
    if kind == "Boolean" and operator != "=":
        raise Problem(f"{operator!r} needs an order, and Booleans have none", "compare Booleans with = or !=")


def check_pattern(pattern: str, escape: object = ESCAPE) -> str:
    """A pattern of `like` with a backslash as its escape character, whichever one it was written with."""
    if not isinstance(escape, str) or len(escape) != 1:
        hint = "name one character: like '10!%' escape '!'"
        raise Problem(f"'escape' takes one character, not {short(escape)}", hint, at=1)
    written, wrong = in_backslash_form(pattern, escape)
    if wrong >= 0:
        what = f"stands before {pattern[wrong + 1]!r}" if wrong + 1 < len(pattern) else "is the last character"
        sign = "the backslash" if escape == ESCAPE else f"the escape character {escape}"
        hint = f"it takes %, _ and itself literally, nothing else; for the character itself write {escape}{escape}"
        raise Problem(f"{sign} in the pattern {what}", hint)
    return written


def clean(value: object) -> Value:
    """A plain value of exactly one of the types in KINDS, or a Problem."""
    kind = type(value)
    if kind is str:
        return check_text(value)  # type: ignore[arg-type]
    if kind is bool:
        return value  # type: ignore[return-value]
    if kind is int:
        return _integer(value)  # type: ignore[arg-type]
    if kind is float:
        return _float(value)  # type: ignore[arg-type]
    return _unusual(value)


def clean_all(values: Iterable[object]) -> tuple[Value, ...]:
    """Every value clean; the Problem knows which one was not."""
    done: list[Value] = []
    for value in values:
        try:
            done.append(clean(value))
        except Problem as problem:
            problem.at = len(done)
            raise
    return tuple(done)


def _unusual(value: object) -> Value:
    """Subclasses, NumPy's scalars, times; and what is no value at all."""
    if value is None:
        raise Problem("null is not a value to compare with", "write 'is null' or 'is not null'")
    if isinstance(value, np.datetime64):
        return _numpy_time(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, str):
        return check_text(str.__str__(value))
    if isinstance(value, int | np.integer):
        return _integer(int(value))
    if isinstance(value, float | np.floating):
        return _float(float(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime):
        return to_utc(value)
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    hint = "use a number, string, Boolean, date or datetime"
    if isinstance(value, list | tuple | set | frozenset):
        hint = "a list goes with in, between or contains"
    raise Problem(f"{short(value)} is not a value (a {kind_name(value)})", hint)


def to_utc(moment: datetime) -> datetime:
    """The same moment in UTC; a naive one already is."""
    if moment != moment:  # pandas' NaT calls itself a datetime
        raise Problem("NaT is not a time", "absence is written 'is null'")
    try:
        if moment.utcoffset() is not None:
            moment = moment.astimezone(UTC)
    except OverflowError:
        raise Problem(f"{moment.isoformat()} lies outside the years 1 to 9999 in UTC") from None
    day = (moment.year, moment.month, moment.day)
    return datetime(*day, moment.hour, moment.minute, moment.second, moment.microsecond, tzinfo=UTC)


def _numpy_time(value: np.datetime64) -> Value:
    if np.isnat(value):
        raise Problem("NaT is not a time", "absence is written 'is null'")
    exact = value if np.datetime_data(value.dtype)[0] == "D" else value.astype("datetime64[us]")
    moment = exact.item()
    if exact != value or not isinstance(moment, date):  # finer than a microsecond, or past the year 9999
        raise Problem(f"{value} is not a whole number of microseconds in the years 1 to 9999")
    return to_utc(moment) if isinstance(moment, datetime) else moment


def _integer(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise Problem("the integer does not fit in 64 bits", f"the range is {INT_MIN} to {INT_MAX}; or use a float")
    return value


def _float(value: float) -> float:
    if math.isfinite(value):
        return value
    if value != value:
        raise Problem("NaN equals nothing, so no rule can ask for it", "absence is written 'is null'")
    raise Problem("infinity is not a value", "use a one-sided comparison, or 'is not null' for any value at all")


def _decimal(value: Decimal) -> int | float:
    number = number_of(value)
    if value.is_finite() and not math.isfinite(number):
        raise Problem(
            "the number is too large for a float", "use a one-sided comparison, or 'is not null' for any value"
        )
    return _float(number) if isinstance(number, float) else number


def check_text(text: str) -> str:
    """A string that UTF-8 can hold."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Problem(f"a lone surrogate, {text[error.start]!a}, is not text") from None
    return text


def check_name(name: object) -> str:
    """An attribute's name: any text but the empty one."""
    if not isinstance(name, str):
        raise Problem(f"an attribute's name is a string, not a {kind_name(name)}")
    if not name:
        raise Problem("an attribute needs a name", syntax=True)
    return check_text(str.__str__(name))


def check_variable(name: object) -> str:
    """A document variable: a plain word that is not a keyword, since `d.price` must be readable."""
    name = check_name(name)
    if not _VARIABLE.fullmatch(name) or not (name[0].isalpha() or name[0] == "_") or name.lower() in KEYWORDS:
        hint = "use letters, digits and _, such as d"
        raise Problem(f"{short(name)} cannot name the documents", hint, syntax=True)
    return name


def closest(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or nothing."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else ""


def kind_name(value: object) -> str:
    return type(value).__name__


def short(value: object, width: int = 40) -> str:
    """A value's repr, cut so that a message stays readable."""
    return shown(value, width)
