"""A round: one set of rules and events, drawn once, asked of the reference once, and of every matcher in every way.

    phase      rules added together ─▶ changed one by one and together ─▶ saved and opened ─▶ changed again
    way        one event; a batch of dicts; a batch of Arrow; with tags; with a limit; the k best, one and many

What the reference says of a phase is worked out once for all matchers of one semantics: lists of ids by event. So a
matcher's answer is compared in one step, and most of the time goes into matching.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import eligo
from eligo.language.tree import Or
from eligo.prove.cases import (
    SEMANTICS,
    Add,
    AddMany,
    Batch,
    Case,
    Event,
    Match,
    Remove,
    Reopen,
    Rule,
    Setup,
    Step,
    Top,
    TopBatch,
    batch_of,
    draw_setup,
    found_of,
    take,
)
from eligo.prove.draw import TAGS, WEIGHTS, Drawer, Theme
from eligo.prove.oracle import Oracle
from eligo.prove.tables import Column, draw_table, table_of

_VERIFIED = 300  # pairs a round and semantics in which the reference is asked in full
_TABLES = 3
_SINGLE = 12  # rules that are replaced, and rules that are added, one by one
_TABLE_EVENTS = 40


@dataclass(frozen=True)
class Failure:
    """A difference that a round met: the rules and the question that showed it, and the same with all questions before.

    The second is for what depends on the events that came first.
    """

    case: Case
    longer: Case
    wanted: Any
    found: Any


class Round:
    """Rules, changes and events of one round, and what the reference says of them."""

    def __init__(self, theme: Theme, seed: int) -> None:
        self.theme, self.seed = theme, seed
        drawer = Drawer(theme, seed)
        choose = drawer.random
        self.declared = tuple(name for name in theme.several if choose.random() < 0.5)
        self.first = [self._rule(drawer, i) for i in range(theme.rules)]
        self.events: list[Event] = [drawer.event() for _ in range(theme.events)]
        self.tables: list[tuple[int, tuple[Column, ...], pa.Table]] = []
        for _ in range(0 if theme.ranges else _TABLES):
            some, columns = draw_table(drawer, _TABLE_EVENTS)
            self.tables.append((len(self.events), columns, table_of(some, columns)))
            self.events.extend(some)
        self.changes = self._changes(drawer, theme.rules)
        self.later = self._changes(drawer, 2 * theme.rules)
        self.tags = tuple(choose.sample(TAGS, 2))
        self.limit, self.k = choose.choice((1, 2, 5)), choose.choice((1, 3, 10))
        self.phases = {absent: self._phases(absent) for absent in SEMANTICS}

    def _rule(self, drawer: Drawer, number: int) -> Rule:
        choose = drawer.random
        tags = tuple(choose.sample(TAGS, choose.choice((0, 0, 1, 2))))
        tree = drawer.rule()
        if number == 0 and not self.theme.ranges:
            # Whatever is removed, every attribute of several values stays one: this rule is never changed.
            names = [name for name in self.theme.several if name not in self.declared]
            parts = [eligo.attr(name).contains_any([0, "a"]) for name in names]
            tree = parts[0] if len(parts) == 1 else Or(tuple(parts)) if parts else tree
        elif number == 1 and self.theme.name == "shapes":
            tree = drawer.rule(2000)
        return Rule(number, tree, choose.choice(WEIGHTS), tags)

    def _changes(self, drawer: Drawer, start: int) -> list[Step]:
        """Some rules removed, some replaced, some new: most together, some one by one."""
        choose, count = drawer.random, self.theme.rules
        steps: list[Step] = [Remove(i) for i in choose.sample(range(1, count), count // 5)]
        replaced = [self._rule(drawer, i) for i in choose.sample(range(1, count), count // 5)]
        added = [self._rule(drawer, start + i) for i in range(count // 5)]
        steps.append(AddMany(tuple(replaced[_SINGLE:] + added[_SINGLE:])))
        single = [Add(rule) for rule in (*replaced[:_SINGLE], *added[:_SINGLE])]
        choose.shuffle(single)
        return [*steps, *single]

    def _phases(self, absent: str) -> list[Phase]:
        rules: dict[int, Rule] = {rule.id: rule for rule in self.first}
        oracle = Oracle(self.events, absent, self.multi, self.theme.ranges)
        made = [Phase(self, rules, oracle)]
        for steps in (self.changes, self.later):
            rules = dict(rules)
            for step in steps:
                if isinstance(step, Remove):
                    rules.pop(step.rule, None)
                elif isinstance(step, Add):
                    rules[step.rule.id] = step.rule
                elif isinstance(step, AddMany):
                    rules.update({rule.id: rule for rule in step.rules})
            made.append(Phase(self, rules, oracle))
        return made

    @property
    def multi(self) -> frozenset[str]:
        return frozenset(self.declared).union(*(rule.containing for rule in self.first))

    def setups(self, indexes: Sequence[str], evaluators: Sequence[str]) -> list[Setup]:
        drawn = f"{self.theme.name} {self.seed}"
        return [draw_setup(*setup, self.declared, drawn) for setup in product(indexes, evaluators, SEMANTICS)]

    def compare(self, setup: Setup) -> tuple[int, Failure | None]:
        """Compare one matcher in all phases and ways: how many pairs of rule and event, and the first difference."""
        return Comparison(self, setup).run()


class Phase:
    """The rules of one phase, and what the reference says of them."""

    def __init__(self, round: Round, rules: dict[int, Rule], oracle: Oracle) -> None:
        self.rules = rules
        trees: list[Any] = [rule.expression for rule in rules.values()]
        truth = oracle.truth(trees)
        oracle.verify(trees, truth, _VERIFIED, round.seed)
        ids = np.array(list(rules), np.int64)
        weights = np.array([rule.weight for rule in rules.values()])
        tagged = np.array([bool(set(rule.tags) & set(round.tags)) for rule in rules.values()], np.bool_)
        self.all = _Answers.of(ids, truth)
        self.tagged = _Answers.of(ids, truth & tagged[:, None])
        self.limited = self.all.first(round.limit)
        # The best first, those of equal weight in the order of adding.
        order = np.argsort(-weights, kind="stable")
        self.best = _Answers.of(ids[order], truth[order]).first(round.k)
        self.weight = {rule.id: rule.weight for rule in rules.values()}


class _Answers:
    """Ids by event: one after the other with their ends, and as lists."""

    def __init__(self, events: NDArray[np.intp], rules: NDArray[np.int64], count: int) -> None:
        self.events, self.rules = events, rules
        self.ends = np.searchsorted(events, np.arange(count + 1))
        self.lists = [rules[self.ends[e] : self.ends[e + 1]].tolist() for e in range(count)]

    @classmethod
    def of(cls, ids: NDArray[np.int64], truth: NDArray[np.bool_]) -> _Answers:
        """The answers of rules with these ids, given which event makes which of them true."""
        events, rows = np.nonzero(truth.T)
        return cls(events, ids[rows], truth.shape[1])

    def first(self, most: int) -> _Answers:
        """At most so many for each event."""
        kept = np.arange(len(self.events)) - self.ends[self.events] < most
        return _Answers(self.events[kept], self.rules[kept], len(self.ends) - 1)

    def same(self, table: pa.Table, start: int, count: int) -> bool:
        """Whether a batch of events start … start + count gave these answers."""
        low, high = self.ends[start], self.ends[start + count]
        return np.array_equal(table["event"].to_numpy() + start, self.events[low:high]) and np.array_equal(
            table["rule"].to_numpy(), self.rules[low:high]
        )


class Comparison:
    """One matcher going through the phases of a round."""

    def __init__(self, round: Round, setup: Setup) -> None:
        self.round, self.setup = round, setup
        self.steps: list[Step] = []  # so far, without those that only ask
        self.asked: list[Step] = []  # so far, all of them
        self.pairs = 0

    def run(self) -> tuple[int, Failure | None]:
        failure, count = None, len(self.round.events)
        first, second, third = self.round.phases[self.setup.absent]
        parts: tuple[tuple[Sequence[Step], Phase], ...] = (
            ([AddMany(tuple(self.round.first))], first),
            (self.round.changes, second),
            ([Reopen()], second),
            (self.round.later, third),
        )
        try:
            matcher = self.setup.matcher()
            with tempfile.TemporaryDirectory() as folder:
                for number, (steps, phase) in enumerate(parts):
                    for step in steps:
                        self.steps.append(step)
                        self.asked.append(step)
                        matcher, _ = take(step, matcher, Path(folder) / "rules")
                    singles = range(number - 1, count, 3) if number else range(count)
                    failure = self.ask(matcher, phase, singles, with_tags=number == 0)
                    if failure is not None:
                        break
        except Exception as error:  # whatever a matcher raises here is a wrong answer
            case = Case(self.setup, tuple(self.steps))
            failure = Failure(case, Case(self.setup, tuple(self.asked)), "no error", error)
        return self.pairs, failure

    def ask(self, matcher: eligo.Matcher, phase: Phase, singles: range, with_tags: bool = False) -> Failure | None:
        round, events = self.round, self.round.events
        every = tuple(events)
        for e in singles:
            failure = self._one(matcher, Match(events[e]), phase.all.lists[e], len(phase.rules))
            if failure is not None:
                return failure
        failure = self._many(matcher, Batch(every), phase.all, 0, phase)
        for start, columns, table in round.tables:
            some = Batch(every[start : start + table.num_rows], columns=columns)
            failure = failure or self._many(matcher, some, phase.all, start, phase)
        if not with_tags or failure is not None:
            return failure
        for e in singles[::4]:
            best = [(rule, phase.weight[rule]) for rule in phase.best.lists[e]]
            for step, wanted in (
                (Match(events[e], round.tags), phase.tagged.lists[e]),
                (Match(events[e], None, round.limit), phase.limited.lists[e]),
                (Top(events[e], round.k), best),
            ):
                failure = failure or self._one(matcher, step, wanted, len(phase.rules))
        for many, answers in (
            (Batch(every, round.tags), phase.tagged),
            (Batch(every, None, round.limit), phase.limited),
            (TopBatch(every, round.k), phase.best),
        ):
            failure = failure or self._many(matcher, many, answers, 0, phase)
        return failure

    def _one(self, matcher: eligo.Matcher, step: Match | Top, wanted: Any, rules: int) -> Failure | None:
        self.pairs += rules
        self.asked.append(step)
        found = found_of(step, matcher)
        return None if found == wanted else self._failed(wanted, found)

    def _many(
        self, matcher: eligo.Matcher, step: Batch | TopBatch, answers: _Answers, start: int, phase: Phase
    ) -> Failure | None:
        self.pairs += len(phase.rules) * len(step.events)
        self.asked.append(step)
        found = batch_of(step, matcher)
        return (
            None if answers.same(found, start, len(step.events)) else self._failed("the reference's", "other matches")
        )

    def _failed(self, wanted: Any, found: Any) -> Failure:
        case = Case(self.setup, (*self.steps, self.asked[-1]))
        return Failure(case, Case(self.setup, tuple(self.asked)), wanted, found)
