"""A walk: random steps on a small set of rules, the same ones for every matcher.

Rounds ask many rules many events; walks go through the states that a matcher can be in: rules that come, go and are
replaced in any order, small and large loads with rejects, observed events, saving and opening, and questions between.
The reference is asked once for a pair of rule and event, whatever matcher wants to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eligo.language.tree import Node
from eligo.prove.cases import (
    Add,
    AddMany,
    Batch,
    Case,
    Difference,
    Event,
    Match,
    Model,
    Observe,
    Remove,
    Reopen,
    Rule,
    Rules,
    Semantics,
    Setup,
    Step,
    Top,
    TopBatch,
    ask_reference,
    draw_setup,
    run,
    wanted_of,
)
from eligo.prove.draw import TAGS, WEIGHTS, Drawer, Theme

_IDS = 80
_EVENTS = 24
_BAD = ("a ===", "b in ()", "c between 1 and", "")
_FORMS: Mapping[str, float] = {
    "add": 30, "remove": 14, "many": 5, "match": 32, "batch": 6, "top": 4, "top batch": 1, "rules": 2, "observe": 1.5,
    "reopen": 1.5,
}  # fmt: skip


class Walk:
    """The steps of one walk."""

    def __init__(self, theme: Theme, seed: int, steps: int) -> None:
        self.theme = theme
        self._seed = f"{theme.name} {seed}"
        self._drawer = Drawer(theme, seed)
        choose = self._drawer.random
        self.declared = tuple(name for name in theme.several if choose.random() < 0.4)
        self._events: list[Event] = [self._drawer.event() for _ in range(_EVENTS)]
        self._known: dict[tuple[int, int, str], bool] = {}
        # Which events may be asked depends on the rules that are there: lists need a rule with `contains`.
        self._model = Model(Setup("scan", "interval", "fails", self.declared), lambda *_: False)
        self.steps: list[Step] = []
        for _ in range(steps):
            step = self._step(choose.choices(list(_FORMS), list(_FORMS.values()))[0])
            wanted_of(step, self._model)
            self.steps.append(step)

    def run(self, index: str, evaluator: str, absent: Semantics) -> tuple[Case, Difference | None]:
        case = Case(draw_setup(index, evaluator, absent, self.declared, self._seed), tuple(self.steps))
        return case, run(case, self._ask)

    def _ask(self, rule: Node, event: Event, absent: str, multi: frozenset[str]) -> bool:
        key = id(rule), id(event), absent
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = ask_reference(rule, event, absent, multi)
        return known

    def _step(self, form: str) -> Step:
        choose = self._drawer.random
        tags = tuple(choose.sample(TAGS, 2)) if choose.random() < 0.15 else None
        if form == "add":
            return Add(self._rule())
        if form == "remove" and self._model.rules:
            return Remove(choose.choice(list(self._model.rules)))
        if form == "many":
            rules = {rule.id: rule for rule in (self._rule(0.05) for _ in range(choose.choice((2, 10, 40, 120))))}
            return AddMany(tuple(rules.values()))
        if form == "observe":
            return Observe(self._some_events())
        if form == "reopen":
            return Reopen()
        if form == "rules":
            return Rules()
        some = self._some_events()
        limit = choose.choice((0, 1, 3)) if choose.random() < 0.1 else None
        if form == "batch" or not some:
            return Batch(some, tags, limit)
        if form == "top":
            return Top(some[0], choose.choice((0, 1, 3, 100)), tags)
        if form == "top batch":
            return TopBatch(some, choose.choice((1, 3)), tags)
        return Match(some[0], tags, limit)

    def _rule(self, bad: float = 0.0) -> Rule:
        choose = self._drawer.random
        expression: Any = choose.choice(_BAD) if choose.random() < bad else self._drawer.rule()
        # Large loads go beyond the ids that single steps use.
        number = choose.randrange(_IDS if choose.random() < 0.8 else 5 * _IDS)
        return Rule(number, expression, choose.choice(WEIGHTS), tuple(choose.sample(TAGS, choose.choice((0, 0, 1, 2)))))

    def _some_events(self) -> tuple[Event, ...]:
        """Some of the events that may be asked now, in any order."""
        multi = self._model.multi
        legal = [event for event in self._events if all(name in multi for name in _lists(event))]
        return tuple(self._drawer.random.sample(legal, min(len(legal), self._drawer.random.choice((1, 3, 12)))))


def _lists(event: Event) -> list[str]:
    return [name for name, value in event.items() if isinstance(value, list | tuple)]
