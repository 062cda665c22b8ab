"""The join table: all that the rules of a matcher ask of documents.

A *question* is one distinct quantified expression, whatever rules have it: it is answered at most once for an event
(Index Structures and Algorithms for Efficient Profile Matching, §4.2). A residual (language/quantified.py) is a formula
of questions. How one is answered for an event is told in event_state.py.

Pre-filtering (§4.3.2): a question that no document can make true is not asked. `Needed` is what an `exists` needs of
some document, whatever the event; it knows one such document or, if there is none, waits for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.events import EventBuffer
from eligo.documents.comparisons import Comparison, Comparisons, DecidedTags, Prefilter, truths_of_join
from eligo.documents.documents import Document, Documents
from eligo.documents.event_state import Asked, EventState
from eligo.documents.index import MARKED, U64, Runs
from eligo.documents.phases import Phases
from eligo.documents.values import run_keys, show
from eligo.engine import Engine
from eligo.errors import EventError
from eligo.forking import INNER, fork_lock
from eligo.language.limits import NO_LIMITS
from eligo.language.quantified import (
    Residual,
    Term,
    canonical,
    document_attributes,
    event_attributes,
    of_document,
    plan,
    quantifiers,
    read_residual,
    set_of,
)
from eligo.language.reference import ABSENT, like, lookup
from eligo.language.render import render
from eligo.language.tree import And, Join, Node, Predicate, Quantified, predicates_of
from eligo.segments.rules import Rules

_SOME = 1024  # formulas, or patterns, that nobody looks for
_REMEMBERED = 64 << 20  # bytes of bit vectors of constant terms


class Question:
    """A quantified expression over one owner's documents, or over all."""

    __slots__ = ("comparison", "conditions", "constants", "node", "owner", "plan", "truths")

    def __init__(self, node: Quantified, owner: str, comparisons: Comparisons) -> None:
        self.node, self.owner, self.plan = node, owner, plan(node)
        self.conditions = _names(node.body)
        searches = self.plan.searches
        self.comparison: Comparison | None = None  # of the join that is all there is
        self.truths: tuple[bool | None, ...] = ()  # by what the comparison comes to
        if searches and len(searches) == 1 and not searches[0].conditions and len(searches[0].terms) == 1:
            term = searches[0].terms[0]
            if isinstance(join := term.literal, Join) and not node.received:
                self.comparison = comparisons.get(join.attribute, join.other, join.operator == "=")
                self.truths = truths_of_join(term, self.plan.none)
        self.constants: dict[str, Runs] = {}

    def runs(self, key: str, predicate: Predicate) -> Runs:
        known = self.constants.get(key)
        if known is None:
            known = self.constants[key] = Runs(run_keys(set_of(predicate)[0]))
        return known


class Formula:
    """What is left to ask for some rules: a formula of questions. `alone` is its question, if that is a single join."""

    __slots__ = ("alone", "attributes", "needed", "questions", "root", "simple")

    def __init__(self, root: Node, questions: tuple[Question, ...], needed: tuple[Needed, ...]) -> None:
        self.root, self.questions, self.needed = root, questions, needed
        factors = root.children if isinstance(root, And) else (root,)
        self.simple = all(isinstance(factor, Quantified) for factor in factors)
        self.attributes = event_attributes(root)
        single = self.simple and len(questions) == 1 and not needed and questions[0].comparison is not None
        self.alone = questions[0] if single else None


class Needed:
    """What some document must be like for an `exists` to be true, and one that is; pre-filtering, §4.3.2.

    While there is none, it is a rule of an inner matcher, which each document that comes is an event for (`_arrived`).
    `place` is its place in `prefilter`.
    """

    __slots__ = ("number", "place", "prefilter", "question", "root", "slot")

    def __init__(self, root: Node, prefilter: Prefilter) -> None:
        self.root, self.prefilter, self.place = root, prefilter, prefilter.new_place()
        self.slot = self.number = -1
        self.question: Question | None = None  # the same as a question to all documents


class Joins:
    """The join table of one matcher: all questions that its rules ask of documents."""

    def __init__(self, documents: Documents, rules: Rules) -> None:
        self.documents, self.absent, self._rules = documents, rules.absent, rules
        self.prefiltering = True
        self.counts: Counter[str] = Counter()  # how questions were answered
        self._formulas: dict[str, Formula] = {}  # by the text of a residual
        self._questions: dict[tuple[str, str], Question] = {}  # by text and owner
        self.comparisons = Comparisons(lambda: self._lock)
        self._needed: dict[str, Needed] = {}  # by text
        self._prefilter = Prefilter()
        self._waiting: Engine | None = None  # rules that wait for a document that is as a Needed wants it
        self._waiters: dict[int, Needed] = {}
        self._buffer = EventBuffer()
        self._lock = fork_lock(self, "_lock", INNER)
        # By pattern: for every string whether it fits; and how many were forgotten, and reused, by then.
        self._patterns: dict[str, tuple[NDArray[np.bool_], int, int]] = {}
        self._bits: dict[str, U64] = {}  # of constant terms, by text
        self._bits_of = -1  # state of the documents
        self.phases = Phases(self)
        documents.listen(self._arrived)

    # -- rules

    def prepare(self, text: str, residual: Residual | None = None) -> None:
        """Have documents indexed for a residual; no call for within `reading`. `residual` is what the text says."""
        if text in self._formulas:
            return
        if len(self._formulas) > 2 * self._rules.count + _SOME:
            self.forget()
        residual = residual or read_residual(text)
        names = {name for one in residual.needed if one is not None for name in _names(one)}
        self.documents.watch(document_attributes(residual.root) | names)
        self._formula(text, residual)

    def formula(self, text: str) -> Formula:
        """Returns what a residual asks."""
        known = self._formulas.get(text)
        return known if known is not None else self._formula(text, read_residual(text))

    def _formula(self, text: str, residual: Residual) -> Formula:
        questions = tuple(self._question(node, residual.owner) for node in quantifiers(residual.root))
        with self._lock:
            needed = tuple(
                self._need(one)
                for one, question in zip(residual.needed, questions, strict=True)
                if one is not None and not question.node.received
            )
            known = self._formulas[text] = Formula(residual.root, questions, needed)
        return known

    def _need(self, root: Node) -> Needed:
        text = render(root)
        known = self._needed.get(text)
        if known is None:
            known = self._needed[text] = Needed(root, self._prefilter)
        return known

    def _question(self, node: Quantified, owner: str) -> Question:
        whose = owner if node.received else ""
        key = (render(node), whose)
        with self._lock:
            known = self._questions.get(key)
            if known is None:
                known = self._questions[key] = Question(node, whose, self.comparisons)
        return known

    def forget(self) -> None:
        """Start over with no question known: those that rules still have come back when they are asked."""
        with self._lock:
            self._formulas, self._questions, self._needed = {}, {}, {}
            for needed in self._waiters.values():  # whoever still has one looks again
                needed.question = None
            self.phases.forget()
            self._waiting, self._waiters = None, {}
            self._prefilter.impossible[:] = 0
            self._prefilter = Prefilter()
            self.comparisons.tables = {}

    def decided(self, tags: list[str]) -> DecidedTags:
        """Returns how the tags of one table of rules are decided; a list of tags never changes."""
        return self.comparisons.decided(tags, self.formula, self._prefilter)

    @property
    def questions(self) -> int:
        """How many there are."""
        return len(self._questions)

    @property
    def multi(self) -> frozenset[str]:
        """The attributes of events that may hold several values."""
        return self._rules.multi

    def explained(self, event: Mapping[str, Any], node: Quantified, owner: str) -> tuple[bool, str]:
        """Returns the truth of a quantifier and the document that decides it; documents stand still."""
        question, documents = Question(canonical(node), owner, self.comparisons), self.documents
        slot = EventState(self, event).deciding(question)
        total = len(documents.received(owner)) if node.received else len(documents)
        every = f"{total:,} document{'s' * (total != 1)}" + (" received" if node.received else "")
        if slot < 0:
            exists = node.quantifier == "exists"
            why = f"none of {every} does" if exists else f"all of {every} do"
            return exists == node.negated, why if total else "there are no documents"
        document = documents.document(slot)
        names = sorted(document_attributes(question.node))
        parts = [f"{name} is {show(v) if (v := lookup(document, name)) is not ABSENT else 'absent'}" for name in names]
        does = "does" if node.quantifier == "exists" else "does not"
        described = f"document {documents.number(slot):,} {does}" + (f": {', '.join(parts)}" if parts else "")
        return (node.quantifier == "exists") != node.negated, described

    def notes(self) -> dict[str, object]:
        """What `stats` should say."""
        phases = self.phases
        return {
            "documents": len(self.documents),
            "questions": self.questions,
            "phase first": f"{phases.fixed or phases.first}: {'fixed' if phases.fixed else phases.reason}",
            "waiting for a document": len(self._waiters),
            **{f"questions {how}": count for how, count in sorted(self.counts.items())},
        }

    # -- pre-filtering

    def possible(self, needed: Needed) -> bool:
        """Whether some document is as an `exists` needs it; documents stand still."""
        documents = self.documents
        if needed.slot >= 0 and documents.number(needed.slot) == needed.number:
            return True
        with self._lock:
            if needed.slot >= 0 or needed.question is None:  # not yet looked for, or the one that was found has gone
                self._look_for(needed)
        return needed.slot >= 0

    def _look_for(self, needed: Needed) -> None:
        question = needed.question or Question(
            Quantified("exists", "d", of_document(needed.root)), "", self.comparisons
        )
        found = EventState(self, {}).deciding(question)
        needed.slot, needed.number = found, self.documents.number(found) if found >= 0 else -1
        if found < 0:
            if self._waiting is None:
                self._waiting = Engine("auto", "auto", "fails", (), NO_LIMITS, None)  # these were accepted
            number = len(self._waiters)
            while number in self._waiters:
                number += 1
            names = _names(needed.root)
            rules = self._waiting.rules
            if not rules.multi >= names:  # documents may have several values anywhere
                with rules.lock:
                    rules.multi = rules.multi | names
                    rules.seal()
            self._waiting.loader.add(number, needed.root, 1.0, (), False)
            self._waiters[number] = needed
        needed.question = question
        needed.prefilter.impossible[needed.place] = found < 0

    def _arrived(self, slot: int, document: Document) -> None:
        """A document has come: those who waited for one like it have found it."""
        if not self._waiters:
            return
        with self._lock:
            assert self._waiting is not None
            found = None
            if slot >= 0:
                with suppress(EventError):
                    found = self._waiting.rules.view.ids(document, self._buffer, None, None)
            if found is None:  # many came: whoever needs one looks for it again
                for needed in self._waiters.values():
                    needed.question = None
                    needed.prefilter.impossible[needed.place] = 0  # as far as is known
                self._waiting, self._waiters = None, {}
                return
            for number in found:
                assert isinstance(number, int)
                needed = self._waiters.pop(number)
                needed.slot, needed.number = slot, self.documents.number(slot)
                needed.prefilter.impossible[needed.place] = 0
                self._waiting.loader.remove(number)

    # -- bit vectors

    def bits(self, term: Term, asked: Asked) -> U64:
        """Returns a bit for every document that has a value in the runs of a term, or a string that fits."""
        index, documents, literal = self.documents.index, self.documents, term.literal
        if isinstance(literal, Join):
            return index.bits(asked.attribute, asked.hits, asked.places)
        with self._lock:
            if self._bits_of != documents.changes or len(self._bits) * 8 * len(index.alive) > _REMEMBERED:
                self._bits, self._bits_of = {}, documents.changes
            known = self._bits.get(term.key)
            if known is None:
                if asked.mode == MARKED:
                    known = index.bits_fitting(asked.attribute, asked.runs, self.fitting(literal))
                else:
                    known = index.bits(asked.attribute, asked.hits, asked.places)
                self._bits[term.key] = known
        return known

    def fitting(self, predicate: Predicate) -> NDArray[np.bool_]:
        """For every string of documents, whether it fits a pattern."""
        index = self.documents.index
        pattern = str(predicate.values[0])
        found, epoch, seen = self._patterns.get(pattern, (np.zeros(0, np.bool_), -1, 0))
        if epoch != index.forgotten:
            found, seen = np.zeros(0, np.bool_), 0
        count = len(index.strings)
        # Strings are new behind the last one, and where others were before.
        new = [*(number for number in index.reused[seen:] if number < len(found)), *range(len(found), count)]
        if new:
            found = np.concatenate((found, np.zeros(count - len(found), np.bool_)))
            found[new] = [like(pattern, index.strings.text(number)) for number in new]
        if len(self._patterns) > _SOME:
            self._patterns.clear()
        self._patterns[pattern] = found, index.forgotten, len(index.reused)
        return found


def _names(root: Node) -> set[str]:
    return {predicate.attribute for predicate in predicates_of(root)}
