"""What a matcher needs of its rules, whether they lie in segments (`rule_set.py`) or in one structure that changes in
place (`living/`).

    Loader  ──▶  Rules   find, put, remove; quietly: made, remove_many, extend     one writer at a time, by `lock`
    Matcher ──▶  View    ids, top, batch, rule                                     any number of readers, without it
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.compiled import F64, I32, I64, Compiled
from eligo.compile.dict_events import encode_event
from eligo.compile.encode import Encode
from eligo.compile.events import EventBuffer
from eligo.compile.strings import Strings
from eligo.compile.unusable import UnusableValuesError
from eligo.errors import EventError
from eligo.evaluate.base import Evaluator
from eligo.forking import RULES, fork_lock
from eligo.index.base import Index
from eligo.language.limits import DEFAULT_LIMITS, Limits
from eligo.language.tree import Node
from eligo.options import Value
from eligo.rule import Rule, RuleId
from eligo.segments.pending import Pending
from eligo.segments.rule_table import JOINED, RuleTable
from eligo.segments.segment import Recipe

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


class Screen(Protocol):
    """Asks documents what rules with quantifiers leave to be asked of them. The documents stand still meanwhile."""

    def begin(self, first: int, events: Any) -> None:
        """From now on event number `first` is the first of these: a list of dicts, or a table."""

    def holds(self, event: int, tag: str) -> bool:
        """Whether what a tag says, behind JOINED (rule_table.py), is true of an event."""

    def compared(self, event: int, tags: list[str], which: I32) -> tuple[I64, bool]:
        """The same for some of a table's tags, given by number, -1 being true, as 0 and 1, as far as it is found by
        comparing values alone; ASK where `holds` must tell, and whether there is such. A list of tags never changes.
        """


ASK = 2  # in place of a truth
_TOGETHER = 4  # rules of an event that are worth being decided together


def screened_together(screen: Screen, which: I32, tags: list[str], event: int) -> NDArray[np.bool_]:
    """Returns which rules an event still satisfies when documents are asked; `which` are numbers of `tags`, or -1."""
    if len(which) < _TOGETHER:
        return screened(screen, which, tags.__getitem__, event)
    truths, some_left = screen.compared(event, tags, which)
    if some_left:
        left = np.flatnonzero(truths == ASK)
        truths[left] = screened(screen, which[left], tags.__getitem__, event)
    return truths.astype(np.bool_)


def screened(screen: Screen, which: I32, name: Callable[[int], str], events: I64 | int) -> NDArray[np.bool_]:
    """Returns which rules an event, or the event beside each of them, still satisfies when documents are asked.

    `which`: of each rule the number of its tag, -1 if there is nothing to ask; name(number) is the tag, its mark apart.
    """
    if isinstance(events, int):
        known = {-1: True}
        for number in (numbers := which.tolist()):
            if number not in known:
                known[number] = screen.holds(events, name(number))
        return np.array([known[number] for number in numbers], np.bool_)
    pairs, places = np.unique(np.stack((events, which)), axis=1, return_inverse=True)
    truths = []
    for event, number in pairs.T.tolist():
        try:
            truths.append(number < 0 or screen.holds(event, name(number)))
        except UnusableValuesError:  # names its events itself
            raise
        except EventError as error:
            raise EventError(f"event {event}: {error}") from None
    kept: NDArray[np.bool_] = np.array(truths, np.bool_)[places.ravel()]
    return kept


class View(ABC):
    """What readers ask. Each answer to one event is that of one moment."""

    @abstractmethod
    def asking(self, screen: Screen) -> View:
        """The same view for rules with quantifiers: what they leave to be asked of documents is asked of `screen`."""

    @abstractmethod
    def ids(
        self,
        event: Any,
        buffer: EventBuffer,
        tags: Iterable[str] | None,
        limit: int | None,
        encode: Encode = encode_event,
    ) -> list[RuleId]:
        """The ids of the rules that an event matches, in the order in which they were added. `encode` is what reads the
        event; where rules ask about documents, an event is a mapping.
        """

    @abstractmethod
    def top(self, event: Any, buffer: EventBuffer, tags: Iterable[str] | None, k: int) -> list[tuple[RuleId, float]]:
        """Ids and weights of the k matches with the highest weights; ties in the order of adding."""

    @abstractmethod
    def weighted(self, event: Any, buffer: EventBuffer) -> tuple[I64, F64]:
        """Ids, which are integers, and weights of all matches."""

    @abstractmethod
    def batch(
        self,
        events: Any,
        tags: Iterable[str] | None,
        limit: int | None,
        inspect: Callable[[EventBuffer], None] | None = None,
        moved_on: Callable[[], None] | None = None,
    ) -> Iterator[tuple[I64, pa.Array]]:
        """Slices of the answer: event numbers, and rule ids beside them.

        `inspect` sees the events once encoded. `moved_on` is called before events are matched whose moment is not that
        of the view's making; nothing changes until they are matched.
        """

    @abstractmethod
    def best(self, events: Any, tags: Iterable[str] | None, k: int) -> Iterator[tuple[I64, pa.Array, F64]]:
        """Slices of the answer: event numbers, and the ids and weights of their best k matches as `top` gives them."""

    @abstractmethod
    def rule(self, rule: object) -> Rule | None:
        """The rule with that id; None if there is none, or if no rule's id could be that."""

    @abstractmethod
    def has(self, rule: object) -> bool:
        """Whether there is a rule with that id."""

    @abstractmethod
    def everyone(self) -> Iterator[RuleId]:
        """The ids of all rules, in the order in which they were added."""

    @abstractmethod
    def attributes(self) -> list[str]:
        """The attributes that rules look at."""

    @abstractmethod
    def hidden_tags(self, mark: str) -> set[str]:
        """The tags that begin with a mark (rule_table.py), without it, and perhaps those of rules that are gone."""

    def joins(self) -> set[str]:
        """What rules have to ask of documents."""
        return self.hidden_tags(JOINED)

    def all_joins(self, most: int) -> set[str] | None:
        """The same, if every rule has something to ask, and at most so much is asked; else None."""
        return None

    def check(self, event: Any, buffer: EventBuffer) -> None:  # noqa: B027, who gives `all_joins` has it
        """Refuse an event that cannot be matched."""


class Rules(ABC):
    """The rules of one matcher. Methods that change something are called with `lock` held."""

    kind: ClassVar[Literal["segments", "living"]]

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

    @abstractmethod
    def used_numbers(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """For every number of an attribute, and of a string, whether some rule that is there names it."""

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

    @abstractmethod
    def sequence_at(self, place: Place) -> int: ...

    @abstractmethod
    def rule_at(self, place: Place) -> Rule: ...

    def rules_at(self, places: Sequence[Place]) -> list[Rule]:
        return [self.rule_at(place) for place in places]

    def texts_at(self, places: Sequence[Place]) -> list[str]:
        """The texts of the rules at some places."""
        return [self.rule_at(place).expression for place in places]

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
