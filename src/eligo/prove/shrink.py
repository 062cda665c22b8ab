"""The smallest case that still differs: fewer steps, rules and events first, then smaller ones.

A candidate counts if matcher and model still differ in the same manner: in their answers, or by an error of the same
type. Each pass goes on for as long as it finds something to leave out; all passes are repeated until none does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eligo.language.tree import And, Node, Not, Or, Predicate, children_of, with_children
from eligo.prove.cases import (
    Add,
    AddMany,
    Batch,
    Case,
    Difference,
    Event,
    Match,
    Observe,
    Rule,
    Step,
    Top,
    TopBatch,
    run,
)

_SIMPLE: tuple[Any, ...] = (0, 1, "a", "")


def shrink(case: Case, seconds: float = 60.0) -> tuple[Case, Difference] | None:
    """The smallest case found in that time, and its difference; None where the case does not differ at all."""
    difference = run(case)
    if difference is None:
        return None
    smallest = _Smallest(case, difference, time.monotonic() + seconds)
    better = True
    while better:
        better = False
        for candidates in (_fewer_steps, _fewer_parts, _smaller_parts):
            better |= smallest.try_all(candidates)
    return smallest.case, smallest.difference


class _Smallest:
    def __init__(self, case: Case, difference: Difference, until: float) -> None:
        self.difference, self._until = difference, until
        self._manner = _manner(difference)
        self.case = replace(case, steps=case.steps[: difference.step + 1])

    def try_all(self, candidates: Callable[[tuple[Step, ...]], Iterator[tuple[Step, ...]]]) -> bool:
        """Take each candidate that still differs, and go on from there; whether there was one."""
        found = False
        while True:
            for steps in candidates(self.case.steps):
                if time.monotonic() > self._until:
                    return False
                difference = run(replace(self.case, steps=steps))
                if difference is not None and _manner(difference) == self._manner:
                    self.case = replace(self.case, steps=steps[: difference.step + 1])
                    self.difference = difference
                    found = True
                    break
            else:
                return found


def _manner(difference: Difference) -> type | None:
    return type(difference.found) if isinstance(difference.found, Exception) else None


def _without_some(things: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The things without half of them, a quarter, … one of them."""
    size = len(things) // 2
    while size:
        for start in range(0, len(things), size):
            yield (*things[:start], *things[start + size :])
        size //= 2


def _fewer_steps(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for fewer in _without_some(steps[:-1]):
        yield (*fewer, steps[-1])


def _fewer_parts(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Fewer rules in a load, fewer events in a batch, no tags, no limit; a load as single rules."""
    for number, step in enumerate(steps):
        if isinstance(step, AddMany):
            for rules in _without_some(step.rules):
                yield _with(steps, number, replace(step, rules=rules))
            if len(step.rules) <= 3:
                yield (*steps[:number], *(Add(rule) for rule in step.rules), *steps[number + 1 :])
        elif isinstance(step, Batch | TopBatch | Observe):
            for events in _without_some(step.events):
                yield _with(steps, number, replace(step, events=events))
            if isinstance(step, Batch) and step.columns:
                yield _with(steps, number, replace(step, columns=()))
                for columns in _without_some(step.columns):
                    kept = {column.name for column in columns}
                    events = tuple({k: v for k, v in event.items() if k in kept} for event in step.events)
                    yield _with(steps, number, replace(step, columns=columns, events=events))
            elif isinstance(step, Batch) and len(step.events) == 1:
                yield _with(steps, number, Match(step.events[0], step.tags, step.limit))
            elif isinstance(step, TopBatch) and len(step.events) == 1:
                yield _with(steps, number, Top(step.events[0], step.k, step.tags))
        if isinstance(step, Match | Batch | Top | TopBatch) and step.tags is not None:
            yield _with(steps, number, replace(step, tags=None))
        if isinstance(step, Match | Batch) and step.limit is not None:
            yield _with(steps, number, replace(step, limit=None))


def _smaller_parts(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    """Each rule and each event smaller."""
    for number, step in enumerate(steps):
        if isinstance(step, Add):
            for rule in _smaller_rules(step.rule):
                yield _with(steps, number, Add(rule))
        elif isinstance(step, AddMany):
            for i, old in enumerate(step.rules):
                for rule in _smaller_rules(old):
                    yield _with(steps, number, AddMany((*step.rules[:i], rule, *step.rules[i + 1 :])))
        elif isinstance(step, Match | Top):
            for event in _smaller_events(step.event):
                yield _with(steps, number, replace(step, event=event))
        elif isinstance(step, Batch | TopBatch | Observe) and not (isinstance(step, Batch) and step.columns):
            for i, old_event in enumerate(step.events):
                for event in _smaller_events(old_event):
                    yield _with(steps, number, replace(step, events=(*step.events[:i], event, *step.events[i + 1 :])))


def _with(steps: tuple[Step, ...], number: int, step: Step) -> tuple[Step, ...]:
    return (*steps[:number], step, *steps[number + 1 :])


def _smaller_rules(rule: Rule) -> Iterator[Rule]:
    if rule.tags:
        yield replace(rule, tags=())
    if rule.weight != 1.0:
        yield replace(rule, weight=1.0)
    if isinstance(rule.expression, Node):
        for tree in _smaller_trees(rule.expression):
            yield replace(rule, expression=tree)


def _smaller_trees(node: Node) -> Iterator[Node]:
    below = children_of(node)
    yield from below
    if isinstance(node, And | Or) and len(below) > 2:
        for fewer in _without_some(below):
            if len(fewer) >= 2:
                yield with_children(node, fewer)
    for i, child in enumerate(below):
        for smaller in _smaller_trees(child):
            yield with_children(node, (*below[:i], smaller, *below[i + 1 :]))
    if isinstance(node, Predicate):
        yield from _smaller_predicates(node)


def _smaller_predicates(node: Predicate) -> Iterator[Node]:
    def with_values(*values: Any) -> Predicate:
        return Predicate(node.attribute, node.operator, values, node.negated)

    if node.negated:
        yield Not(Predicate(node.attribute, node.operator, node.values))
        yield Predicate(node.attribute, node.operator, node.values)
    if node.operator in ("in", "contains any", "contains all"):
        for fewer in _without_some(node.values):
            if fewer:
                yield with_values(*fewer)
        if len(node.values) == 1 and node.operator == "in":
            yield Predicate(node.attribute, "=", node.values, node.negated)
    for i, value in enumerate(node.values):
        if isinstance(value, str) and len(value) > 1 and node.operator != "like":
            for shorter in (value[: len(value) // 2], value[1:], value[:-1]):
                yield with_values(*node.values[:i], shorter, *node.values[i + 1 :])


def _smaller_events(event: Event) -> Iterator[Mapping[str, Any]]:
    for fewer in _without_some(list(event.items())):
        yield dict(fewer)
    for name, value in event.items():
        if isinstance(value, Mapping):
            for inner in _smaller_events(value):
                yield {**event, name: inner}
        elif isinstance(value, list | tuple):
            for some in _without_some(value):
                yield {**event, name: list(some)}
            if len(value) == 1:
                yield {**event, name: value[0]}
        elif not any(value is simple for simple in _SIMPLE):
            for simple in _SIMPLE:
                yield {**event, name: simple}
