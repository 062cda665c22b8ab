"""What a matcher needs of its rules, whether they lie in segments (`rule_set.py`) or in one structure that changes in
place (`living/`).

    Loader  ──▶  Rules   find, put, remove; quietly: made, remove_many, extend     one writer at a time, by `lock`
    Matcher ──▶  View    ids, top, batch, rule                                     any number of readers, without it
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.compiled import Compiled
from eligo.compile.strings import Strings
from eligo.evaluate.base import Evaluator
from eligo.forking import RULES, fork_lock
from eligo.index.base import Index
from eligo.language.limits import DEFAULT_LIMITS, Limits
from eligo.language.tree import Node
from eligo.options import Value
from eligo.rule import Rule, RuleId
from eligo.segments.base import IndexedSegment
from eligo.segments.pending import Pending
from eligo.segments.rule_table import RuleTable
from eligo.segments.segment import Recipe
from eligo.segments.view import View

if TYPE_CHECKING:
    from eligo.segments.live import LiveTable
    from eligo.segments.living.table import PooledTable

_LOST = (
    "a thread was adding or removing rules when this process was forked, so here they can be matched but not changed: "
    "open them from a snapshot in this process, or fork when no thread changes them"
)
_SOME_NAMES, _SOME_BYTES = 1024, 1 << 18  # that nobody looks for
Place = tuple[int, int]  # where a rule lies, until the next change


@dataclass
class Figures:
    """What `stats` says about the structure that holds the rules."""

    conjunctions: int
    predicates: int
    segments: int
    candidates: int
    evaluations: int
    bytes: dict[str, int]
    notes: dict[str, Any]
    false_candidates: int | None = None
    plans: tuple[Mapping[str, Any], ...] = ()  # of `auto`, for each segment


@dataclass(frozen=True)
class _Worth:
    """How much rules named when somebody last looked for what is unused."""

    attributes: int = 0
    strings: int = 0
    bytes: int = 0
    rules: int = 0

    def looking(self, attributes: int, strings: int, size: int, rules: int) -> bool:
        """Whether half of what there is now may be unused, and is worth the search."""
        return (
            attributes > 2 * self.attributes + _SOME_NAMES
            or strings > 2 * self.strings + _SOME_NAMES
            or size > 2 * self.bytes + _SOME_BYTES
            or 2 * rules < self.rules - _SOME_NAMES
        )


class Rules(ABC):
    """The rules of one matcher. Methods that change something are called with `lock` held."""

    kind: ClassVar[Literal["segments", "living"]]
    segments: Sequence[IndexedSegment]  # sealed, or changing in place

    def __init__(
        self,
        index: type[Index],
        evaluator: type[Evaluator],
        absent: str,
        multi: Iterable[str],
        limits: Limits = DEFAULT_LIMITS,
        options: Mapping[str, Value] | None = None,
    ) -> None:
        self.lock = fork_lock(self, "lock", RULES, _LOST)
        self.absent = absent
        self.recipe = Recipe(index, evaluator, Attributes(), Strings(), limits=limits, options=options or {})
        self.multi = frozenset(multi)  # attributes that may hold several values; they become more, never fewer
        self.loading = 0  # loads under way, whose rules name attributes and strings and are not here yet
        self.next_sequence = 0
        self.count = 0
        self.forgets = True  # False: others know strings and attributes by the numbers that they have here
        self._worth = _Worth()
        here = weakref.ref(self)
        self.recipe.count = lambda: rules.count if (rules := here()) is not None else 0
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Be without rules, with the tables of the recipe."""

    def new_pending(self, multi: frozenset[str] | None = None) -> Pending:
        """A place for rules to be compiled with what is multi-valued now, or with other attributes that are."""
        chosen = self.multi if multi is None else multi
        return Pending(Builder(self.recipe.attributes, self.recipe.strings, absent=self.absent, multi=chosen))

    def wanted(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """For every number of an attribute, whether it is one of these."""
        metas = self.recipe.attributes.metas
        marked = np.zeros(len(self.recipe.attributes), np.bool_)
        marked[[metas[name] >> 8 for name in names if name in metas]] = True
        return marked

    def adopt(self, attributes: Attributes, strings: Strings) -> None:
        """Use these tables from now on; there are no rules yet."""
        self.recipe.attributes, self.recipe.strings = attributes, strings
        self._worth = _Worth(attributes.taken, strings.taken, strings.size)
        self.begin()

    def forget_unused(self) -> None:
        """Free the strings and attributes that no rule names any more, if these may be more than all others.

        Numbers stay what they are, and free ones are given out again, so that nothing has to be compiled anew. Looking
        for them takes as long as reading all predicates: it is done when there is twice as much as at the last time.
        """
        attributes, strings = self.recipe.attributes, self.recipe.strings
        worth = self._worth.looking(attributes.taken, strings.taken, strings.size, self.count)
        if not (worth and self.forgets and not self.loading and self.may_forget()):
            return
        names, texts = self.used_numbers()
        _, begin, end = strings.spans()
        size = int((end[: len(texts)] - begin[: len(texts)])[texts].sum())
        self._worth = left = _Worth(int(names.sum()), int(texts.sum()), size, self.count)
        if attributes.taken > 2 * left.attributes or strings.taken > 2 * left.strings or strings.size > 2 * size:
            fewer = attributes.without(~names), strings.without(~texts)
            if self.recipe.sample is not None:
                self.recipe.sample.follow(*fewer, ~texts)
            self.use_tables(*fewer)

    @abstractmethod
    def may_forget(self) -> bool:
        """Whether numbers of attributes and strings are nowhere but in the tables and in rules that are there."""

    def used_numbers(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For every number of an attribute, and of a string, whether some rule that is there names it."""
        attributes = np.zeros(len(self.recipe.attributes), np.bool_)
        strings = np.zeros(len(self.recipe.strings), np.bool_)
        for segment in self.segments:
            segment.mark(attributes, strings)
        return attributes, strings

    @abstractmethod
    def use_tables(self, attributes: Attributes, strings: Strings) -> None:
        """Use these tables from now on, in which all that rules name has the number that it had."""

    # -- reading

    @property
    @abstractmethod
    def view(self) -> View: ...

    @abstractmethod
    def find(self, rule: RuleId) -> Place | None:
        """Where a rule is, as far as the writer is."""

    def known(self, ids: Sequence[RuleId]) -> NDArray[np.bool_]:
        """Of each of many ids, all of one type, whether there is such a rule, as far as the writer is."""
        return np.array([self.find(rule) is not None for rule in ids], np.bool_)

    def table(self, number: int) -> RuleTable | LiveTable | PooledTable:
        """The table of a segment, by its number in places."""
        return self.segments[number].table

    def sequence_at(self, place: Place) -> int:
        return int(self.table(place[0]).sequence[place[1]])

    def rule_at(self, place: Place) -> Rule:
        return self.table(place[0]).rule(place[1])

    def rules_at(self, places: Sequence[Place]) -> list[Rule]:
        """The same of many: texts are read a table at a time."""
        texts = self.texts_at(places)
        return [self.table(number).rule(row, text) for (number, row), text in zip(places, texts, strict=True)]

    def texts_at(self, places: Sequence[Place]) -> list[str]:
        """The texts of the rules at some places."""
        texts: dict[Place, str] = {}
        for number in {number for number, _ in places}:
            rows = [row for other, row in places if other == number]
            found = self.table(number).texts_of(np.array(rows, np.int64))
            texts.update(zip([(number, row) for row in rows], found, strict=True))
        return [texts[place] for place in places]

    @abstractmethod
    def rules_naming(self, names: Iterable[str], *, mentioned: bool) -> list[Place]:
        """Places of the rules that look at one of the attributes; `mentioned`: or name it in their text alone."""

    @abstractmethod
    def figures(self) -> Figures: ...

    # -- writing

    @abstractmethod
    def put(
        self, place: Place | None, rule: RuleId, root: Node, text: str, weight: float, tags: tuple[str, ...]
    ) -> None:
        """Append a rule that is not there, or put it in the place of the one at `place`, whose number it takes."""

    @abstractmethod
    def remove(self, place: Place) -> None:
        """Remove the rule at a place that `find` gave."""

    @abstractmethod
    def quietly(self) -> AbstractContextManager[None]:
        """Changes that are seen together: meanwhile readers see what was there before."""

    @abstractmethod
    def made(self, table: RuleTable, compiled: Compiled) -> Any:
        """Many rules in the form that `extend` takes; all that takes long."""

    @abstractmethod
    def extend(self, made: Iterable[Any]) -> None:
        """Take many rules at once."""

    @abstractmethod
    def remove_many(self, places: Sequence[Place]) -> None: ...

    @abstractmethod
    def observe(self, events: Any) -> None:
        """Learn from events how often predicates hold."""

    def seal(self) -> None:  # noqa: B027, not every kind has something open
        """End what was begun with another set of multi-valued attributes."""

    def wait(self, seconds: float | None = None) -> None:  # noqa: B027, not every kind works beside
        """Until no work beside is under way, or so long."""
