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
_SOME_NAMES, _SOME_BYTES = 1024, 1 << 18  # so few unused ones are not looked for
Place = tuple[int, int]  # segment and row of a rule, valid until the next change


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
    """How much the rules named when unused names and strings were last looked for."""

    attributes: int = 0
    strings: int = 0
    bytes: int = 0
    rules: int = 0

    def looking(self, attributes: int, strings: int, size: int, rules: int) -> bool:
        """Tests whether about half of what there is now may be unused, so that it is worth looking for."""
        return (
            attributes > 2 * self.attributes + _SOME_NAMES
            or strings > 2 * self.strings + _SOME_NAMES
            or size > 2 * self.bytes + _SOME_BYTES
            or 2 * rules < self.rules - _SOME_NAMES
        )


class Rules(ABC):
    """The rules of one matcher. Methods that change something must be called with `lock` held."""

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
        self.forgets = True  # False if numbers of strings and attributes are also known elsewhere
        self._worth = _Worth()
        here = weakref.ref(self)
        self.recipe.count = lambda: rules.count if (rules := here()) is not None else 0
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Begins without rules, with the tables of the recipe."""

    def new_pending(self, multi: frozenset[str] | None = None) -> Pending:
        """Returns an empty place to compile rules in. `multi` replaces the current multi-valued attributes."""
        chosen = self.multi if multi is None else multi
        return Pending(Builder(self.recipe.attributes, self.recipe.strings, absent=self.absent, multi=chosen))

    def wanted(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Returns for every attribute, by number, whether it is one of these names."""
        metas = self.recipe.attributes.metas
        marked = np.zeros(len(self.recipe.attributes), np.bool_)
        marked[[metas[name] >> 8 for name in names if name in metas]] = True
        return marked

    def adopt(self, attributes: Attributes, strings: Strings) -> None:
        """Uses these tables from now on. There must be no rules yet."""
        self.recipe.attributes, self.recipe.strings = attributes, strings
        self._worth = _Worth(attributes.taken, strings.taken, strings.size)
        self.begin()

    def forget_unused(self) -> None:
        """Frees the strings and attributes that no rule names any more, if these may be more than all others.

        Numbers stay what they are, and free ones are given out again, so nothing has to be compiled anew. Looking for
        them takes as long as reading all predicates, so it is done when there is twice as much as the last time.
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
        """Tests whether numbers of attributes and strings are nowhere but in the tables and in rules of segments."""

    def used_numbers(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Returns for every attribute and for every string, by number, whether a rule of the segments names it."""
        attributes = np.zeros(len(self.recipe.attributes), np.bool_)
        strings = np.zeros(len(self.recipe.strings), np.bool_)
        for segment in self.segments:
            segment.mark(attributes, strings)
        return attributes, strings

    @abstractmethod
    def use_tables(self, attributes: Attributes, strings: Strings) -> None:
        """Replaces the tables. All attributes and strings that rules name must have kept their numbers."""

    # -- reading

    @property
    @abstractmethod
    def view(self) -> View: ...

    @abstractmethod
    def find(self, rule: RuleId) -> Place | None:
        """Returns the place of a rule, or None if it is not there. Changes that readers do not see yet are included."""

    def known(self, ids: Sequence[RuleId]) -> NDArray[np.bool_]:
        """Returns for each of many ids, all of one type, whether `find` finds such a rule."""
        return np.array([self.find(rule) is not None for rule in ids], np.bool_)

    def table(self, number: int) -> RuleTable | LiveTable | PooledTable:
        """Returns the table of a segment, given by its number in places."""
        return self.segments[number].table

    def sequence_at(self, place: Place) -> int:
        return int(self.table(place[0]).sequence[place[1]])

    def rule_at(self, place: Place) -> Rule:
        return self.table(place[0]).rule(place[1])

    def rules_at(self, places: Sequence[Place]) -> list[Rule]:
        """Returns the rules at some places. Texts are read a table at a time, which is faster than one by one."""
        texts = self.texts_at(places)
        return [self.table(number).rule(row, text) for (number, row), text in zip(places, texts, strict=True)]

    def texts_at(self, places: Sequence[Place]) -> list[str]:
        """Returns the texts of the rules at some places."""
        texts: dict[Place, str] = {}
        for number in {number for number, _ in places}:
            rows = [row for other, row in places if other == number]
            found = self.table(number).texts_of(np.array(rows, np.int64))
            texts.update(zip([(number, row) for row in rows], found, strict=True))
        return [texts[place] for place in places]

    @abstractmethod
    def rules_naming(self, names: Iterable[str], *, mentioned: bool) -> list[Place]:
        """Returns the places of the rules that look at one of the attributes and, if `mentioned`, of those that only
        name one in their text.
        """

    @abstractmethod
    def figures(self) -> Figures: ...

    # -- writing

    @abstractmethod
    def put(
        self, place: Place | None, rule: RuleId, root: Node, text: str, weight: float, tags: tuple[str, ...]
    ) -> None:
        """Appends a rule that is not there, or replaces the one at `place` and takes its sequence number."""

    @abstractmethod
    def remove(self, place: Place) -> None:
        """Removes the rule at a place that `find` returned."""

    @abstractmethod
    def quietly(self) -> AbstractContextManager[None]:
        """Returns a context whose changes readers see together at its end; until then they see the rules of before."""

    @abstractmethod
    def made(self, table: RuleTable, compiled: Compiled) -> Any:
        """Returns many rules in the form that `extend` takes. This is the part of a load that takes long."""

    @abstractmethod
    def extend(self, made: Iterable[Any]) -> None:
        """Appends many rules at once, in the form that `made` returns."""

    @abstractmethod
    def remove_many(self, places: Sequence[Place]) -> None: ...

    @abstractmethod
    def observe(self, events: Any) -> None:
        """Learns from events how often predicates hold."""

    def seal(self) -> None:  # noqa: B027, not every kind has something open
        """Seals rules that were compiled with another set of multi-valued attributes. Does nothing by default."""

    def wait(self, seconds: float | None = None) -> None:  # noqa: B027, not every kind works beside
        """Waits until no background work is under way, at most so many seconds."""
