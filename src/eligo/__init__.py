"""eligo: find, out of millions of stored Boolean expressions, every one that a record makes true."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eligo.errors import (
    DuplicateRuleError,
    EligoError,
    EventError,
    JournalError,
    LimitError,
    OptionError,
    RuleSyntaxError,
    RuleTypeError,
    SnapshotError,
    UnknownRuleError,
)

if TYPE_CHECKING:
    from eligo import exchange
    from eligo.documents import Documents
    from eligo.explain import Explanation
    from eligo.language import Limits, attr, exists, forall
    from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf
    from eligo.matcher import Matcher
    from eligo.matcher import open_rules as open
    from eligo.rule import Reject, Rule, RuleId
    from eligo.stats import Stats

__version__: str

# Where to find what is not imported yet. Numba alone takes half a second, which `eligo --help` need not wait for.
_LATER = {
    **dict.fromkeys(("Limits", "attr", "exists", "forall"), "eligo.language"),
    **dict.fromkeys(("Above", "Below", "Between", "NoneOf", "OneOf"), "eligo.language.ranges"),
    "Matcher": "eligo.matcher",
    **dict.fromkeys(("Reject", "Rule", "RuleId"), "eligo.rule"),
    "Documents": "eligo.documents",
    "Explanation": "eligo.explain",
    "Stats": "eligo.stats",
    "open": "eligo.matcher",
}
_MODULES = ("exchange",)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"eligo.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("eligo")
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'eligo' has no attribute {name!r}")
    value = getattr(import_module(module), "open_rules" if name == "open" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Above",
    "Below",
    "Between",
    "Documents",
    "DuplicateRuleError",
    "EligoError",
    "EventError",
    "Explanation",
    "JournalError",
    "LimitError",
    "Limits",
    "Matcher",
    "NoneOf",
    "OneOf",
    "OptionError",
    "Reject",
    "Rule",
    "RuleId",
    "RuleSyntaxError",
    "RuleTypeError",
    "SnapshotError",
    "Stats",
    "UnknownRuleError",
    "attr",
    "exchange",
    "exists",
    "forall",
    "open",
]
