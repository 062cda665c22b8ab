"""A case: steps on a matcher, run beside a model that knows nothing but the reference.

    Add, Remove, AddMany, Observe, Reopen    change the rules, or the container that they lie in
    Match, Batch, Top, TopBatch, Rules       ask, and compare with the model

`run` gives the first difference, if there is one. What a matcher raises is a difference as well.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import eligo
from eligo.evaluate.registry import EVALUATORS
from eligo.forking import cached_property
from eligo.index.registry import choose as choose_index
from eligo.language.normalize import normalize
from eligo.language.ranges import Range
from eligo.language.reference import matches, multi_valued
from eligo.language.tree import Node
from eligo.options import Option
from eligo.prove.tables import Column, table_of

Event = Mapping[str, Any]
Ask = Callable[[Node, Event, str, frozenset[str]], bool]


Semantics = Literal["fails", "classical"]
SEMANTICS: tuple[Semantics, ...] = ("fails", "classical")


@dataclass(frozen=True)
class Setup:
    """The matcher that a case runs on."""

    index: str
    evaluator: str
    absent: Semantics = "fails"
    multi: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def matcher(self) -> eligo.Matcher:
        return eligo.Matcher(self.index, self.evaluator, self.absent, self.multi, options=self.options or None)

    def __str__(self) -> str:
        return f"{self.index} × {self.evaluator}, absent={self.absent!r}"


def draw_setup(index: str, evaluator: str, absent: Semantics, multi: tuple[str, ...], seed: str) -> Setup:
    """A setup with options of its own: small capacities make the structures of large rule sets from a few rules."""
    choose = random.Random(f"{seed} {index} {evaluator} {absent}")
    options: dict[str, Any] = {}
    share = choose.choice((0.3, 0.6, 1.0))  # some structures want several options at once
    for name, option in {**choose_index(index).options, **EVALUATORS.get(evaluator).options}.items():
        if choose.random() < share:
            options[name] = _draw_option(option, choose)
    if evaluator == "dnf":
        options["past_terms"] = "interval"  # no rule is refused
    return Setup(index, evaluator, absent, multi, options)


def _draw_option(option: Option, choose: random.Random) -> Any:
    if option.choices:
        return choose.choice(option.choices)
    if isinstance(option.default, bool):
        return choose.random() < 0.5
    if isinstance(option.default, int):
        least = int(option.least or 0)
        most = least + 16 if option.most is None else int(option.most)
        return min(least + choose.choice((0, 1, 1, 2, 4, most)), most)
    return option.default


@dataclass(frozen=True)
class Rule:
    """A rule to add. `expression` is a tree, or a text that cannot be read."""

    id: int
    expression: Node | str
    weight: float = 1.0
    tags: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        return isinstance(self.expression, str)

    @cached_property
    def containing(self) -> frozenset[str]:
        """The attributes that it uses with `contains`."""
        return frozenset() if isinstance(self.expression, str) else multi_valued(self.expression)


@dataclass(frozen=True)
class Add:
    rule: Rule


@dataclass(frozen=True)
class AddMany:
    """Rules added together; those that cannot be read are rejected, the others are added."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Remove:
    rule: int


@dataclass(frozen=True)
class Observe:
    events: tuple[Event, ...]


@dataclass(frozen=True)
class Reopen:
    """Save the matcher and go on with what is opened."""


@dataclass(frozen=True)
class Match:
    event: Event
    tags: tuple[str, ...] | None = None
    limit: int | None = None


@dataclass(frozen=True)
class Batch:
    """Many events at once: as dicts or, with columns, as an Arrow table."""

    events: tuple[Event, ...]
    tags: tuple[str, ...] | None = None
    limit: int | None = None
    columns: tuple[Column, ...] = ()


@dataclass(frozen=True)
class Top:
    event: Event
    k: int
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True)
class TopBatch:
    events: tuple[Event, ...]
    k: int
    tags: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Rules:
    """Which rules are there, in which order."""


Step = Add | AddMany | Remove | Observe | Reopen | Match | Batch | Top | TopBatch | Rules


@dataclass(frozen=True)
class Difference:
    """The step at which matcher and model differ; `found` is a list, or what was raised."""

    step: int
    wanted: Any
    found: Any


@dataclass(frozen=True)
class Case:
    setup: Setup
    steps: tuple[Step, ...]


def ask_reference(rule: Node, event: Event, absent: str, multi: frozenset[str]) -> bool:
    """What the reference says of one rule and one event; of ranges it is asked with the normal form."""
    if _has_range(event):
        rule = normalize(rule, multi=multi, absent=absent)
    return matches(rule, event, absent, multi)


def _has_range(event: Event) -> bool:
    """Whether some value is a range, at any depth."""
    return any(
        isinstance(value, Range) or (isinstance(value, Mapping) and _has_range(value)) for value in event.values()
    )


class Model:
    """The rules that a matcher should have, in their order, and what it should answer."""

    def __init__(self, setup: Setup, ask: Ask = ask_reference) -> None:
        self.setup, self.ask = setup, ask
        self.rules: dict[int, Rule] = {}
        self.multi = frozenset(setup.multi)  # what has become multi-valued stays so

    def take(self, rule: Rule) -> None:
        self.rules[rule.id] = rule
        self.multi |= rule.containing

    def matching(self, event: Event, tags: tuple[str, ...] | None, limit: int | None = None) -> list[int]:
        multi = self.multi
        found = [
            rule.id
            for rule in self.rules.values()
            if (tags is None or set(tags) & set(rule.tags))
            and self.ask(rule.expression, event, self.setup.absent, multi)  # type: ignore[arg-type]
        ]
        return found[:limit]

    def best(self, event: Event, k: int, tags: tuple[str, ...] | None) -> list[tuple[int, float]]:
        found = [(rule, self.rules[rule].weight) for rule in self.matching(event, tags)]
        return sorted(found, key=lambda pair: -pair[1])[:k]  # sorting keeps the order of equal ones


def run(case: Case, ask: Ask = ask_reference) -> Difference | None:
    """Run the steps on a new matcher and on the model; the first difference.

    None as well where the reference itself refuses a step: then there is nothing to compare with.
    """
    model = Model(case.setup, ask)
    matcher = case.setup.matcher()
    with tempfile.TemporaryDirectory() as folder:
        for number, step in enumerate(case.steps):
            try:
                wanted = wanted_of(step, model)
            except eligo.EligoError:
                return None
            try:
                matcher, found = take(step, matcher, Path(folder) / str(number))
            except Exception as error:  # a wrong answer, whatever it is
                return Difference(number, wanted, error)
            if wanted != found:
                return Difference(number, wanted, found)
    return None


def take(step: Step, matcher: eligo.Matcher, place: Path) -> tuple[eligo.Matcher, Any]:
    """The matcher after a step, and what it answered; it is saved to that place where the step says so."""
    if isinstance(step, Reopen):
        matcher.save(place)
        matcher = eligo.open(place)
    return matcher, found_of(step, matcher)


def wanted_of(step: Step, model: Model) -> Any:
    """What a matcher should answer to a step, which the model takes as well."""
    if isinstance(step, Add):
        model.take(step.rule)
    elif isinstance(step, AddMany):
        for rule in step.rules:
            if not rule.is_bad:
                model.take(rule)
        return [rule.id for rule in step.rules if rule.is_bad]
    elif isinstance(step, Remove):
        # A shrunken case may remove what was never added.
        return model.rules.pop(step.rule, None) is not None
    elif isinstance(step, Match):
        return model.matching(step.event, step.tags, step.limit)
    elif isinstance(step, Batch):
        found = [model.matching(event, step.tags, step.limit) for event in step.events]
        return [(i, rule) for i, rules in enumerate(found) for rule in rules]
    elif isinstance(step, Top):
        return model.best(step.event, step.k, step.tags)
    elif isinstance(step, TopBatch):
        return [(i, *pair) for i, e in enumerate(step.events) for pair in model.best(e, step.k, step.tags)]
    elif isinstance(step, Rules):
        return list(model.rules)
    return None


def found_of(step: Step, matcher: eligo.Matcher) -> Any:
    """What a matcher answers to a step."""
    if isinstance(step, Add):
        rule = step.rule
        matcher.add(rule.id, rule.expression, rule.weight, rule.tags, replace=True)
    elif isinstance(step, AddMany):
        rules = [(rule.id, rule.expression, rule.weight, rule.tags) for rule in step.rules]
        return [reject.id for reject in matcher.add_many(rules, on_error="collect", replace=True)]
    elif isinstance(step, Remove):
        known = step.rule in matcher
        if known:
            matcher.remove(step.rule)
        return known
    elif isinstance(step, Observe):
        matcher.observe(list(step.events))
    elif isinstance(step, Match):
        return matcher.match(step.event, tags=step.tags, limit=step.limit)
    elif isinstance(step, Batch | TopBatch):
        return list(zip(*(column.to_pylist() for column in batch_of(step, matcher).columns), strict=True))
    elif isinstance(step, Top):
        return matcher.top(step.event, step.k, tags=step.tags)
    elif isinstance(step, Rules):
        return list(matcher)
    return None


def batch_of(step: Batch | TopBatch, matcher: eligo.Matcher) -> pa.Table:
    """The table that a matcher answers to many events with."""
    if isinstance(step, TopBatch):
        return matcher.top_batch(list(step.events), step.k, tags=step.tags)
    events = table_of(step.events, step.columns) if step.columns else list(step.events)
    return matcher.match_batch(events, tags=step.tags, limit=step.limit)
