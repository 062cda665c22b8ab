"""Options: what a user may set about an index or an evaluator beyond its name.

    class BeTree(Index):
        options = {"max_cap": Option(20, "conjunctions that a leaf holds before it is split", least=1)}

        @classmethod
        def build(cls, conjunctions, selectivity=None, *, max_cap=20): ...

A class declares its options in one place: default, what is allowed, a line of text. `Matcher(options=…)`, `--option`
and snapshots hold one mapping for index and evaluator together; `validated` makes it complete, and `own` gives each
class its part, as keyword arguments of the methods that take options. A class without options has no such arguments.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

from eligo.errors import OptionError

Value = bool | int | float | str


@dataclass(frozen=True)
class Option:
    """One option: its kind is that of the default; `choices`, or `least` and `most`, say what else is allowed."""

    default: Value
    about: str
    choices: tuple[Value, ...] = ()
    least: float | None = None
    most: float | None = None

    def checked(self, name: str, value: object) -> Value:
        """Returns the value as the class gets it. Raises an `OptionError` if it is not allowed."""
        made = self._of_kind(value)
        if made is not None and self._is_allowed(made):
            return made
        raise OptionError(f"option {name!r} is {self.allowed()}, not {value!r:.60}")

    def read(self, name: str, text: str) -> Value:
        """Returns the value that a text stands for. Raises an `OptionError` if it is not allowed."""
        made: object = text
        if isinstance(self.default, bool):
            made = {"true": True, "false": False}.get(text.lower(), text)
        elif isinstance(self.default, int | float):
            with suppress(ValueError):  # the text itself is refused then, and shown
                made = type(self.default)(text)
        return self.checked(name, made)

    def allowed(self) -> str:
        """Returns what a value may be, for messages and lists."""
        if self.choices:
            return " or ".join(repr(choice) for choice in self.choices)
        if isinstance(self.default, bool):
            return "True or False"
        if isinstance(self.default, str):
            return "a text"
        what = "a whole number" if isinstance(self.default, int) else "a number"
        if self.least is not None and self.most is not None:
            return f"{what} from {self.least:,} to {self.most:,}"
        if self.least is not None:
            return f"{what} of {self.least:,} or more"
        return what if self.most is None else f"{what} of {self.most:,} or less"

    def _of_kind(self, value: object) -> Value | None:
        if isinstance(self.default, bool) or isinstance(value, bool):
            return value if isinstance(self.default, bool) and isinstance(value, bool) else None
        if isinstance(self.default, int):
            return int(value) if isinstance(value, Integral) else None
        if isinstance(self.default, float):
            with suppress(OverflowError):  # an integer that no float can hold
                return float(value) if isinstance(value, Real) and math.isfinite(value) else None
            return None
        return value if isinstance(value, str) else None

    def _is_allowed(self, value: Value) -> bool:
        if self.choices:
            return value in self.choices
        if isinstance(value, str):
            return True
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


class Configurable(Protocol):
    """A class that declares options: an index or an evaluator."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, Option]: ...


def declared(kinds: Iterable[Configurable]) -> dict[str, Option]:
    """Returns the options of all of them, by name."""
    return {name: option for kind in kinds for name, option in kind.options.items()}


def validated(given: object, kinds: Iterable[Configurable], others: Iterable[Configurable] = ()) -> dict[str, Value]:
    """Returns complete values for everything that these classes declare. Raises an `OptionError` for what none
    declares.

    `others` are classes that were not chosen: a name that one of them has gets a better message.
    """
    chosen = tuple(kinds)
    if given is not None and not isinstance(given, Mapping):
        raise OptionError(f"options is a mapping from names to values, not {given!r:.60}")
    known, wanted = declared(chosen), dict(given or {})
    for name in wanted:
        if name not in known:
            raise _unknown(name, known, chosen, others)
    return {name: o.checked(name, wanted[name]) if name in wanted else o.default for name, o in known.items()}


def from_texts(
    given: Iterable[str], kinds: Iterable[Configurable], others: Iterable[Configurable] = ()
) -> dict[str, Value]:
    """Returns the values of texts `name=value`, such as a command line has; those not given are left out."""
    chosen = tuple(kinds)
    known = declared(chosen)
    values: dict[str, Value] = {}
    for one in given:
        name, sign, text = (part.strip() for part in one.partition("="))
        if not (name and sign and text):
            raise OptionError(f"an option is written name=value, not {one!r:.60}")
        if name not in known:
            raise _unknown(name, known, chosen, others)
        values[name] = known[name].read(name, text)
    return values


def own(kind: Configurable, values: Mapping[str, Value]) -> dict[str, Any]:
    """Returns the part of the values that a class declares: keyword arguments for it."""
    return {name: values[name] for name in kind.options if name in values}


def differing(values: Mapping[str, Value], kinds: Iterable[Configurable]) -> dict[str, Value]:
    """Returns the values that are not the default."""
    known = declared(kinds)
    return {name: value for name, value in values.items() if name not in known or value != known[name].default}


def _unknown(
    name: object, known: Mapping[str, Option], chosen: tuple[Configurable, ...], others: Iterable[Configurable]
) -> OptionError:
    here = " with ".join(kind.name for kind in chosen) if len(chosen) < 3 else "those chosen"
    elsewhere = sorted({kind.name for kind in others if name in kind.options})
    if elsewhere:
        return OptionError(f"{name!r} is an option of {' and '.join(elsewhere)}, not of {here}")
    near = difflib.get_close_matches(str(name), known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    there_are = f"there are: {', '.join(known)}" if known else "there are none"
    return OptionError(f"unknown option {name!r:.60} of {here}{hint} ({there_are})")
