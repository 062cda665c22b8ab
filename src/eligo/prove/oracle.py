"""What the reference says of many rules and many events, asked once for all indexes and evaluators.

    truth[r, e]   whether event e makes rule r true

A predicate is asked of each distinct value once, through `reference.matches`, and rules combine the answers as vectors
over all events: AND and OR as they stand, changed for each other under a NOT, as the language defines it. `verify`
compares some pairs with the reference itself, tree and all. Where values are ranges a conjunction is more than its
predicates, and every pair is asked in full.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.language.normalize import normalize
from eligo.language.reference import ABSENT, lookup, matches
from eligo.language.tree import And, Node, Not, Or, Predicate

Truth = NDArray[np.bool_]
Event = Mapping[str, Any]


class Oracle:
    """The reference's answers for a list of events under one semantics of absence."""

    def __init__(self, events: Sequence[Event], absent: str, multi: frozenset[str], ranges: bool = False) -> None:
        self.events, self.absent, self.multi, self.ranges = events, absent, multi, ranges
        self._values: dict[str, tuple[NDArray[np.intp], list[Any]]] = {}
        self._leaves: dict[tuple[Predicate, tuple[type, ...], bool], Truth] = {}
        self._kept: list[Node] = []  # whose ids are keys of `_trees`
        self._trees: dict[tuple[int, bool], Truth] = {}

    def truth(self, rules: Sequence[Node]) -> NDArray[np.bool_]:
        made = np.zeros((len(rules), len(self.events)), np.bool_)
        for i, rule in enumerate(rules):
            made[i] = self._asked(rule) if self.ranges else self._tree(rule, True)
        return made

    def verify(self, rules: Sequence[Node], truth: NDArray[np.bool_], pairs: int, seed: int) -> None:
        """Compare so many pairs with the reference asked in full."""
        if not len(rules) or not self.events or self.ranges:
            return
        choose = random.Random(seed)
        for _ in range(pairs):
            r, e = choose.randrange(len(rules)), choose.randrange(len(self.events))
            said = matches(rules[r], self.events[e], self.absent, self.multi)
            assert said == truth[r, e], f"the oracle and the reference differ: {rules[r]!r} on {self.events[e]!r}"

    def _asked(self, rule: Node) -> list[bool]:
        normal = normalize(rule, multi=self.multi, absent=self.absent)
        return [matches(normal, event, self.absent, self.multi) for event in self.events]

    def _tree(self, node: Node, positive: bool) -> Truth:
        known = self._trees.get((id(node), positive))
        if known is not None:
            return known
        if isinstance(node, Not):
            made = self._tree(node.child, not positive)
        elif isinstance(node, (And, Or)):
            parts = [self._tree(child, positive) for child in node.children]
            made = np.logical_and.reduce(parts) if isinstance(node, And) == positive else np.logical_or.reduce(parts)
        elif isinstance(node, Predicate):
            made = self._leaf(node, positive)
        else:
            made = np.full(len(self.events), matches(node, {}) == positive)
        self._kept.append(node)
        self._trees[id(node), positive] = made
        return made

    def _leaf(self, node: Predicate, positive: bool) -> Truth:
        # Python finds 1, 1.0 and True equal, and so the predicates that name them.
        key = (node, tuple(map(type, node.values)), positive)
        known = self._leaves.get(key)
        if known is not None:
            return known
        which, values = self._distinct(node.attribute)
        asked: Node = node if positive else Not(node)
        events = ({} if value is ABSENT else {node.attribute: value} for value in values)
        each = np.array([matches(asked, event, self.absent, self.multi) for event in events], np.bool_)
        made: Truth = each[which]
        self._leaves[key] = made
        return made

    def _distinct(self, name: str) -> tuple[NDArray[np.intp], list[Any]]:
        """The different values that the events hold for an attribute, and which of them each event holds."""
        known = self._values.get(name)
        if known is None:
            numbers: dict[tuple[type, str], int] = {}
            values: list[Any] = []
            which = np.zeros(len(self.events), np.intp)
            for e, event in enumerate(self.events):
                value = lookup(event, name)
                number = numbers.setdefault((type(value), repr(value)), len(values))
                if number == len(values):
                    values.append(value)
                which[e] = number
            known = self._values[name] = which, values
        return known
