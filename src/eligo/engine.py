"""The engine of a matcher: its rules, the way they come in, and what both were made with.

`Matcher` is what people use. The store, Spark and the exchange work with its engine, and with nothing else behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from eligo.arguments import attribute_names, one_of, shown, text, whole_number
from eligo.errors import OptionError
from eligo.evaluate.base import Evaluator
from eligo.evaluate.registry import EVALUATORS
from eligo.evaluate.registry import choose as choose_evaluator
from eligo.index.base import Index
from eligo.index.registry import choose as choose_index
from eligo.index.registry import every_index
from eligo.language import Limits
from eligo.language.quantified import Residual
from eligo.loading import Loader
from eligo.options import Configurable, Value, validated
from eligo.rule_changes import ChangeJournal
from eligo.segments.choice import rules_for
from eligo.segments.rules import Rules

Absent = Literal["fails", "classical"]


class JoinTable(Protocol):
    """What rules ask of documents (documents/joins.py)."""

    prefiltering: bool  # rules that no document can satisfy are passed over; turned off only to measure what it saves
    phases: Any  # which phase comes first (documents/phases.py)

    def prepare(self, text: str, residual: Residual | None = None) -> None:
        """Prepares documents for what a rule asks, before the rule is there."""


class Engine:
    """A set of rules and how it is searched. All arguments are checked here, whatever makes one."""

    rules: Rules
    loader: Loader
    journal: ChangeJournal | None = None  # where changes are kept before they are made
    joins: JoinTable | None = None  # None: rules with quantifiers are refused

    def __init__(
        self,
        index: str,
        evaluator: str,
        absent: Absent,
        multi: Iterable[str],
        limits: Limits | Mapping[str, int] | None,
        options: Mapping[str, Value] | None,
    ) -> None:
        self.index = text("index", index, "the name of an index")
        self.absent: Absent = one_of("absent", absent, ("fails", "classical"))
        declared = attribute_names("multi", multi)
        self.limits = _limits(limits)
        chosen = choose(index, text("evaluator", evaluator, "the name of an evaluator"))
        self.evaluator = chosen[1].name
        self.options: Mapping[str, Value] = MappingProxyType(validated(options, chosen, everyone() if options else ()))
        self.take(rules_for(*chosen, absent, declared, self.limits, self.options))

    def take(self, rules: Rules) -> None:
        """Uses these rules from now on."""
        self.rules = rules
        self.loader = Loader(rules, self.limits)

    def allow_joins(self, joins: JoinTable) -> None:
        """Takes rules with quantifiers from now on."""
        self.joins = joins
        self.loader.refused, self.loader.prepare = None, joins.prepare

    def keep_changes(self, journal: ChangeJournal) -> None:
        """Keeps every change in a journal, before it is made, from now on."""
        self.journal = self.loader.journal = journal


def choose(index: str, evaluator: str) -> tuple[type[Index], type[Evaluator]]:
    """Returns the classes of these names. Raises an `OptionError` if one is unknown."""
    kind = choose_index(index)
    return kind, choose_evaluator(evaluator, in_place=kind.updates == "native")


def everyone() -> list[Configurable]:
    """Returns all indexes and evaluators, for messages about options."""
    return [*every_index().values(), *EVALUATORS.all().values()]


def _limits(given: Limits | Mapping[str, int] | None) -> Limits:
    """Returns limits that are positive whole numbers; those that are not given have their default."""
    known = Limits.__struct_fields__
    wanted = msgspec.structs.asdict(given) if isinstance(given, Limits) else {} if given is None else given
    if not isinstance(wanted, Mapping) or not all(name in known for name in wanted):
        raise OptionError(f"limits is a mapping from {', '.join(known)} to whole numbers, not {shown(given)}")
    return Limits(**{name: whole_number(f"limits: {name}", value, least=1) for name, value in wanted.items()})
