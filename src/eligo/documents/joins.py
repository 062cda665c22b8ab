"""The join table: all that the rules of a matcher ask of documents.

A *question* is one distinct quantified expression, whatever rules have it: it is answered at most once for an event
(Index Structures and Algorithms for Efficient Profile Matching, §4.2). A residual (language/quantified.py) is a formula
of questions. How one is answered for an event is told in event_state.py.

Pre-filtering (§4.3.2): a question that no document can make true is not asked. `Needed` is what an `exists` needs of
some document, whatever the event; it knows one such document or, if there is none, waits for it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.events import EventBuffer
from eligo.documents.documents import Document, Documents
from eligo.documents.event_state import Asked, EventState
from eligo.documents.index import MARKED, U64, Runs
from eligo.documents.phases import Phases
from eligo.documents.values import run_keys, show
from eligo.engine import Engine
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

    __slots__ = ("conditions", "constants", "node", "owner", "plan", "single")

    def __init__(self, node: Quantified, owner: str) -> None:
        self.node, self.owner, self.plan = node, owner, plan(node)
        self.conditions = _names(node.body)
        searches = self.plan.searches
        self.single: Term | None = None  # a join that is all there is
        if searches and len(searches) == 1 and not searches[0].conditions and len(searches[0].terms) == 1:
            term = searches[0].terms[0]
            self.single = term if isinstance(term.literal, Join) and not node.received else None
        self.constants: dict[str, Runs] = {}

    def runs(self, key: str, predicate: Predicate) -> Runs:
        known = self.constants.get(key)
        if known is None:
            known = self.constants[key] = Runs(run_keys(set_of(predicate)[0]))
        return known


class Formula:
    """What is left to ask for some rules: a formula of questions."""

    __slots__ = ("attributes", "needed", "questions", "root", "simple")

    def __init__(self, root: Node, questions: tuple[Question, ...], needed: tuple[Needed, ...]) -> None:
        self.root, self.questions, self.needed = root, questions, needed
        factors = root.children if isinstance(root, And) else (root,)
        self.simple = all(isinstance(factor, Quantified) for factor in factors)
        self.attributes = event_attributes(root)


class Needed:
    """What some document must be like for an `exists` to be true, and one that is; pre-filtering, §4.3.2.

    While there is none, the documents that come are asked whether they are the one: `Joins.waiting` does.
    """

    __slots__ = ("number", "question", "root", "slot")

    def __init__(self, root: Node) -> None:
        self.root = root
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
        self._needed: dict[str, Needed] = {}  # by text
        self._waiting: Engine | None = None  # rules that wait for a document that is as a Needed wants it
        self._waiters: dict[int, Needed] = {}
        self._buffer = EventBuffer()
        self._lock = threading.RLock()
        self._patterns: dict[tuple[str, int], NDArray[np.bool_]] = {}
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
                self._needed.setdefault(render(one), Needed(one))
                for one, question in zip(residual.needed, questions, strict=True)
                if one is not None and not question.node.received
            )
            known = self._formulas[text] = Formula(residual.root, questions, needed)
        return known

    def _question(self, node: Quantified, owner: str) -> Question:
        whose = owner if node.received else ""
        key = (render(node), whose)
        with self._lock:
            known = self._questions.get(key)
            if known is None:
                known = self._questions[key] = Question(node, whose)
        return known

    def forget(self) -> None:
        """Start over with no question known: those that rules still have come back when they are asked."""
        with self._lock:
            self._formulas, self._questions, self._needed = {}, {}, {}
            self._waiting, self._waiters = None, {}

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
        question, documents = Question(canonical(node), owner), self.documents
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
        if needed.question is None:
            body = needed.root
            needed.question = Question(Quantified("exists", "d", of_document(body)), "")
        found = EventState(self, {}).deciding(needed.question)
        needed.slot, needed.number = found, self.documents.number(found) if found >= 0 else -1
        if found < 0:
            if self._waiting is None:
                self._waiting = Engine("auto", "interval", "fails", (), None, None)
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

    def _arrived(self, slot: int, document: Document) -> None:
        """A document has come: those who waited for one like it have found it."""
        if not self._waiters:
            return
        with self._lock:
            if slot < 0:  # many came: whoever needs one looks for it again
                for needed in self._waiters.values():
                    needed.question = None
                self._waiting, self._waiters = None, {}
                return
            assert self._waiting is not None
            for number in self._waiting.rules.view.ids(document, self._buffer, None, None):
                assert isinstance(number, int)
                needed = self._waiters.pop(number)
                needed.slot, needed.number = slot, self.documents.number(slot)
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
        key = (pattern, index.forgotten)
        known = self._patterns.get(key)
        count = len(index.strings)
        if known is None or len(known) < count:
            done = 0 if known is None else len(known)
            more = [like(pattern, index.strings.text(number)) for number in range(done, count)]
            known = np.concatenate((np.zeros(0, np.bool_) if known is None else known, np.array(more, np.bool_)))
            if len(self._patterns) > _SOME:
                self._patterns.clear()
            self._patterns[key] = known
        return known


def _names(root: Node) -> set[str]:
    return {predicate.attribute for predicate in predicates_of(root)}
