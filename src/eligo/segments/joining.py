"""How many rules ask about documents, and what they need of them: known for a rule set without reading its tags.

    exists d (price < d.price)                     event: price     compared: price
    forall d (price < d.price)                     event: price     compared: price     even: price
    exists d (price < d.price and d.kind = 'a')    event: price     searched: price, kind

A question about one attribute alone is answered by the values that documents have of it, whichever documents these are.
Where some documents have several values, or none, that is not enough for questions that are `even`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from eligo.language.quantified import (
    counted_attributes,
    document_attributes,
    event_attributes,
    plan,
    quantifiers,
    read_residual,
)
from eligo.segments.rule_table import RuleTable

Counts = Mapping[str, int]


class Joining(msgspec.Struct, frozen=True):
    """Numbers of living rules with quantifiers. The counts by attribute count a rule once for each attribute."""

    rules: int = 0
    searching: int = 0  # rules with a question that is not about one attribute alone
    event: Counts = {}  # attributes of the event, beside those that the index knows
    compared: Counts = {}  # attributes of documents whose values are all that is needed
    even: Counts = {}  # … if no document has several of them, or none
    searched: Counts = {}  # attributes of documents that `searching` rules look at

    def plus(self, other: Joining, sign: int = 1) -> Joining:
        """Returns the sum or, with sign -1, the difference. Counts of 0 are left out."""

        def added(one: Counts, two: Counts) -> Counts:
            total = Counter(one)
            for name, count in two.items():
                total[name] += sign * count
            return dict(sorted((+total).items()))

        return Joining(
            self.rules + sign * other.rules,
            self.searching + sign * other.searching,
            added(self.event, other.event),
            added(self.compared, other.compared),
            added(self.even, other.even),
            added(self.searched, other.searched),
        )


NO_JOINS = Joining()


class Needs(msgspec.Struct, frozen=True):
    """The attributes that one residual needs, and whether documents must be searched for it."""

    event: frozenset[str]
    compared: frozenset[str]
    even: frozenset[str]
    searched: frozenset[str]
    searching: bool


def needs_of(tag: str) -> Needs:
    """Returns what the rules with a residual need, which is given as the text of their hidden tag."""
    root = read_residual(tag).root
    compared: set[str] = set()
    even: set[str] = set()
    for one in quantifiers(root):
        found = counted_attributes(plan(one))
        if found is None:
            names = frozenset(document_attributes(root))
            return Needs(frozenset(event_attributes(root)), frozenset(), frozenset(), names, True)
        compared |= found[0]
        even |= found[1]
    return Needs(frozenset(event_attributes(root)), frozenset(compared), frozenset(even), frozenset(), False)


def joining_of(table: RuleTable, rows: NDArray[np.bool_] | None = None) -> Joining:
    """Counts what the rules of a table need of documents, or those of the rows marked in `rows`."""
    joins = table.joins
    if joins is None:
        return NO_JOINS
    chosen = joins[0] if rows is None else joins[0][rows]
    numbers, counts = np.unique(chosen[chosen >= 0], return_counts=True)
    totals: dict[str, Counter[str]] = {name: Counter() for name in ("event", "compared", "even", "searched")}
    searching = 0
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        needs = needs_of(joins[1][number])
        for name, total in totals.items():
            total.update(dict.fromkeys(getattr(needs, name), count))
        searching += count * needs.searching
    return Joining(int(counts.sum()), searching, **{name: dict(sorted(t.items())) for name, t in totals.items()})


def rows_asking(table: RuleTable, wanted: Callable[[Needs], bool]) -> NDArray[np.bool_]:
    """Returns for every row of a table whether its rule has a residual whose needs `wanted` accepts."""
    joins = table.joins
    if joins is None:
        return np.zeros(len(table), np.bool_)
    numbers, names = joins
    chosen = np.zeros(len(names) + 1, np.bool_)  # the last is that of rules without quantifiers, whose number is -1
    for number in np.unique(numbers[numbers >= 0]).tolist():
        chosen[number] = wanted(needs_of(names[number]))
    found: NDArray[np.bool_] = chosen[numbers]
    return found
