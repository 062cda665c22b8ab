"""eligo: find, out of millions of stored Boolean expressions, every one that a record makes true."""

from __future__ import annotations

import logging
from importlib.metadata import version

from eligo.errors import (
    DuplicateRuleError,
    EligoError,
    EventError,
    LimitError,
    RuleSyntaxError,
    RuleTypeError,
    SnapshotError,
    UnknownRuleError,
)
from eligo.language import Limits, attr, exists, forall
from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf
from eligo.matcher import Matcher
from eligo.rule import Reject, Rule
from eligo.store.snapshot import open_snapshot as open

__version__ = version("eligo")

logging.getLogger("eligo").addHandler(logging.NullHandler())

__all__ = [
    "Above",
    "Below",
    "Between",
    "DuplicateRuleError",
    "EligoError",
    "EventError",
    "LimitError",
    "Limits",
    "Matcher",
    "NoneOf",
    "OneOf",
    "Reject",
    "Rule",
    "RuleSyntaxError",
    "RuleTypeError",
    "SnapshotError",
    "UnknownRuleError",
    "attr",
    "exists",
    "forall",
    "open",
]
