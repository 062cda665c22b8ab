"""Single joins, which are most of what rules ask: an event's value beside the least and the largest of documents.

    comparison    an attribute of events and one of documents. What it comes to for an event, its *outcome*, decides
                  every question that is a join of both, whatever its operator and quantifier
    truths        of such a question: for every outcome whether it is true

The questions of all rules that an index leaves are decided together: truths[row of the rule's tag, outcome]. So is
what is pre-filtered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, U8
from eligo.documents.index import EQUAL, LARGER, MISSING, OTHER, SMALLER, UNEVEN
from eligo.jit import kernel
from eligo.language.quantified import Term
from eligo.language.tree import Join
from eligo.segments.screen import ASK

if TYPE_CHECKING:
    from eligo.documents.joins import Formula

# An outcome is a sum of SMALLER, EQUAL, LARGER, OTHER, MISSING and UNEVEN (index.py), or one of these.
ABSENT_FROM_EVENT, NOTHING_TO_JOIN, UNDECIDED, OUTCOMES = 64, 65, 66, 67
_NOTHING: U8 = np.zeros(0, np.uint8)
UNKNOWN, WANTED = -1, -2  # not compared yet, and somebody needs it

_TABLES = 64  # of rules; beyond that those that are gone are forgotten with the others
_ALWAYS, _OTHERWISE = 0, 1  # rows of truths: of a rule that asks nothing, and of one that is more than a single join


def truths_of_join(term: Term, none: bool) -> tuple[bool | None, ...]:
    """Returns for each outcome of a comparison whether some document, or `none`, is as a term wants it; None where
    comparing does not tell.
    """
    join, wanted = term.literal, term.wanted
    assert isinstance(join, Join)
    truths: list[bool | None] = []
    for outcome in range(OUTCOMES):
        found: bool | None
        if outcome >= UNDECIDED or (outcome < ABSENT_FROM_EVENT and outcome & UNEVEN and join.negated == wanted):
            found = None
        elif outcome >= ABSENT_FROM_EVENT:
            found = outcome == ABSENT_FROM_EVENT and not wanted
        else:
            fitting = {"=": EQUAL, "<": LARGER, "<=": LARGER | EQUAL, ">": SMALLER, ">=": SMALLER | EQUAL}
            there = outcome & (SMALLER | EQUAL | LARGER)
            holds = bool(there & fitting[join.operator])
            fails = bool(there & ~fitting[join.operator]) or bool(outcome & OTHER)
            if join.negated:
                holds, fails = fails, holds
            found = holds if wanted else fails or bool(outcome & MISSING)
        truths.append(None if found is None else found != none)
    return tuple(truths)


class Comparison:
    """An attribute of events beside one of documents. Not `exactly`: only orders are asked."""

    __slots__ = ("attribute", "exactly", "number", "other")

    def __init__(self, attribute: str, other: str, exactly: bool, number: int) -> None:
        self.attribute, self.other, self.exactly, self.number = attribute, other, exactly, number


class Comparisons:
    """All comparisons of one matcher, by number, and the tables of truths. `lock` gives the lock of the join table."""

    def __init__(self, lock: Callable[[], AbstractContextManager[object]]) -> None:
        self._lock = lock
        self._known: dict[tuple[str, str, bool], Comparison] = {}
        self.all: list[Comparison] = []
        self.truths: NDArray[np.int8] = np.array([[1] * OUTCOMES, [ASK] * OUTCOMES], np.int8)
        self._rows: dict[tuple[bool | None, ...], int] = {}
        self.tables: dict[int, DecidedTags] = {}  # by the id of the list of tags

    def get(self, attribute: str, other: str, exactly: bool) -> Comparison:
        """Returns the comparison of two attributes."""
        key = (attribute, other, exactly)
        with self._lock():
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = Comparison(*key, len(self.all))
                self.all.append(known)
        return known

    def row(self, truths: tuple[bool | None, ...]) -> int:
        """Returns the row of a question's truths; ASK where comparing does not tell."""
        with self._lock():
            known = self._rows.get(truths)
            if known is None:
                known = self._rows[truths] = len(self.truths)
                more = np.array([[ASK if truth is None else truth for truth in truths]], np.int8)
                self.truths = np.concatenate((self.truths, more))
        return known

    def decided(self, tags: list[str], formula: Callable[[str], Formula], prefilter: Prefilter) -> DecidedTags:
        """Returns how the tags of one table of rules are decided."""
        known = self.tables.get(id(tags))
        if known is None:
            with self._lock():
                if len(self.tables) >= _TABLES:
                    self.tables = {}
                known = self.tables[id(tags)] = DecidedTags(self, tags, formula, prefilter)  # keeps the list and its id
        return known


class Prefilter:
    """The pre-filter bit vector of Index Structures and Algorithms for Efficient Profile Matching, §4.3.2, a byte for
    each thing that some document must be like: 1 if it is known that none is. Changed with a lock held.
    """

    def __init__(self) -> None:
        self.impossible: U8 = np.zeros(64, np.uint8)
        self._places = 0

    def new_place(self) -> int:
        """Returns a place of `impossible` that nobody has."""
        if self._places == len(self.impossible):
            self.impossible = np.concatenate((self.impossible, np.zeros_like(self.impossible)))
        self._places += 1
        return self._places - 1


@kernel
def decide(which, row, comparison, needed, impossible, outcomes, truths, decided):
    """Writes the truths of tags that are given by number. Returns how many could not be told because their outcome is
    WANTED, which is marked, or -1 if a tag has no row yet. Behind the last truth come how many were pre-filtered, and
    how many are ASK.
    """
    missing = filtered = asked = 0
    for i in range(len(which)):
        tag = which[i] if which[i] >= 0 else len(row) - 1
        if row[tag] < 0 or comparison[tag] >= len(outcomes):
            return -1
        if 0 <= needed[tag] < len(impossible) and impossible[needed[tag]] != 0:
            decided[i] = 0
            filtered += 1
            continue
        outcome = 0
        if comparison[tag] >= 0:
            outcome = outcomes[comparison[tag]]
            if outcome < 0:
                outcomes[comparison[tag]] = WANTED
                missing += 1
                continue
        decided[i] = truths[row[tag], outcome]
        asked += decided[i] == ASK
    decided[len(which)], decided[len(which) + 1] = filtered, asked
    return missing


class DecidedTags:
    """Of the tags of one table of rules: the number of the comparison, and the row of truths, that decide each."""

    def __init__(
        self, comparisons: Comparisons, tags: list[str], formula: Callable[[str], Formula], prefilter: Prefilter
    ) -> None:
        self._comparisons, self._tags, self._formula, self._prefilter = comparisons, tags, formula, prefilter
        # One more than there are tags: that of a rule that asks nothing.
        self._row: I32 = np.full(len(tags) + 1, -1, np.int32)
        self._comparison: I32 = np.full(len(tags) + 1, -1, np.int32)
        self._needed: I32 = np.full(len(tags) + 1, -1, np.int32)  # number of what some document must be like
        self._row[-1] = _ALWAYS

    def truths(self, which: I32, prefiltering: bool, compared: Callable[[bool], I64]) -> I64:
        """Returns for each of some tags, given by number, whether it holds, or ASK; and then how many do not because no
        document is as they need it, and how many are ASK. `compared` gives the outcomes of an event and, if asked to,
        compares what is WANTED.
        """
        impossible = self._prefilter.impossible if prefiltering else _NOTHING
        decided = np.empty(len(which) + 2, np.int64)
        outcomes, tags = compared(False), (self._row, self._comparison, self._needed)
        while missing := decide(which, *tags, impossible, outcomes, self._comparisons.truths, decided):
            if missing < 0:
                self._learn(set(which[self._row[which] < 0].tolist()))
            outcomes = compared(True)
        return decided

    def _learn(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            formula = self._formula(self._tags[number])
            alone = formula.alone
            if formula.needed and formula.needed[0].prefilter is self._prefilter:
                self._needed[number] = formula.needed[0].place
            if alone is not None and alone.comparison is not None:
                self._comparison[number] = alone.comparison.number
                self._row[number] = self._comparisons.row(alone.truths)
            else:
                self._row[number] = _OTHERWISE
