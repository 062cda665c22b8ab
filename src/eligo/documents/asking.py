"""Asking documents: the join table, and what it knows of one event.

A *question* is one distinct quantified expression, whatever rules have it: it is answered at most once for an event
(Index Structures and Algorithms for Efficient Profile Matching, §4.2). A residual (language/quantified.py) is a formula
of questions. How a question is answered, from cheap to dear:

    one term           how many documents satisfy it is a difference of places in the order           O(log n)
    several terms      the rarest leads to documents, one by one; the others are asked of each        O(log n + those)
                       … and if that takes long, bit vectors of all terms are ANDed                   O(n / 64)
    no term leads      bit vectors at once

An event's value makes a set of values of each join (`price < d.price` at 10: all numbers above 10), so that joins and
predicates on documents are asked in the same way.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.compiled import I64
from eligo.compile.events import EventBuffer
from eligo.documents.columns import column_values
from eligo.documents.documents import Document, Documents
from eligo.documents.index import (
    MARKED,
    PRESENT,
    RUNS,
    TERM,
    U64,
    DocumentIndex,
    Runs,
    search_bits,
    search_led,
    search_listed,
)
from eligo.documents.values import plain, run_keys, show
from eligo.engine import Engine
from eligo.language.quantified import (
    Search,
    Term,
    canonical,
    document_attributes,
    event_attributes,
    plan,
    quantifiers,
    read_residual,
    set_of,
    term_of,
    with_truths,
)
from eligo.language.ranges import Range
from eligo.language.reference import ABSENT, Moment, leaf_holds, like, lookup, matches, pair_holds
from eligo.language.render import render
from eligo.language.tree import And, Constant, Join, Node, Or, Predicate, Quantified, predicates_of
from eligo.language.values import TIME, Cut, after, before, end_of, kind_of, union

_LED = 4096  # documents that are looked at one by one before bit vectors are made
_NO_MARKS: U64 = np.zeros((0, 0), np.uint64)
_NO_SLOTS: I64 = np.zeros(0, np.int64)
_SOME = 1024
NEVER_HOLDS = object()


def join_runs(operator: str, value: Any) -> list[tuple[Cut, Cut]]:
    """Returns the values of a document for which `value operator d.attribute` holds."""
    if isinstance(value, Mapping):
        return []
    low: Cut
    high: Cut
    if isinstance(value, Moment):
        kind, low, high = TIME, (TIME, int(value)), (TIME, int(value) + 1)
    else:
        kind, low, high = kind_of(value), before(value), after(value)
    first: Cut = (kind,)
    runs: list[tuple[Cut, Cut]]
    if operator == "=":
        runs = [(low, high)]
    elif operator == "<":
        runs = [(high, end_of(kind))]
    elif operator == "<=":
        runs = [(low, end_of(kind))]
    elif operator == ">":
        runs = [(first, low)]
    else:
        runs = [(first, high)]
    return [(a, b) for a, b in runs if a < b]


class Question:
    """A quantified expression of one owner's documents, or of all, and how often it was asked."""

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


class Residual:
    """What is left to ask for some rules: a formula of questions."""

    __slots__ = ("attributes", "needed", "questions", "root", "simple")

    def __init__(self, root: Node, questions: tuple[Question, ...], needed: tuple[Needed | None, ...]) -> None:
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

    def __init__(self, documents: Documents, absent: str, multi: Callable[[], frozenset[str]]) -> None:
        self.documents, self.absent, self.multi = documents, absent, multi
        self.prefiltering = True
        self.counts: Counter[str] = Counter()  # how questions were answered
        self._residuals: dict[str, Residual] = {}
        self._questions: dict[tuple[str, str], Question] = {}  # by text and owner
        self._needed: dict[str, Needed] = {}  # by text
        self._waiting: Engine | None = None  # rules that wait for a document that is as a Needed wants it
        self._waiters: dict[int, Needed] = {}
        self._buffer = EventBuffer()
        self._lock = threading.Lock()
        self._patterns: dict[tuple[str, int], NDArray[np.bool_]] = {}
        documents.listen(self._arrived)

    # -- rules

    def prepare(self, tag: str) -> Residual:
        """Returns what a residual asks; documents are indexed for it, so this is no call for within `reading`."""
        known = self._residuals.get(tag)
        if known is None:
            owner, root, needed = read_residual(tag)
            self.documents.watch(
                document_attributes(root) | {name for one in needed if one is not None for name in _names(one)}
            )
            known = self._residual(tag, owner, root, needed)
        return known

    def _residual(self, tag: str, owner: str, root: Node, needed: Iterable[Node | None]) -> Residual:
        questions = tuple(self._question(node, owner) for node in quantifiers(root))
        found = tuple(
            None if one is None or question.owner else self._needed.setdefault(render(one), Needed(one))
            for one, question in zip(needed, questions, strict=True)
        )
        with self._lock:
            known = self._residuals[tag] = Residual(root, questions, found)
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
            self._residuals, self._questions, self._needed = {}, {}, {}
            self._waiting, self._waiters = None, {}

    @property
    def questions(self) -> int:
        return len(self._questions)

    def explained(self, event: Mapping[str, Any], node: Quantified, owner: str) -> tuple[bool, str]:
        """Returns the truth of a quantifier and the document that decides it; documents stand still."""
        question, documents = Question(canonical(node), owner), self.documents
        state = EventState(self, event)
        slot = state.deciding(question)
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

    def residual(self, tag: str) -> Residual:
        known = self._residuals.get(tag)
        return known if known is not None else self._residual(tag, *read_residual(tag))

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
            needed.question = Question(Quantified("exists", "d", _of_document(body)), "")
        state = EventState(self, {})
        found = state.deciding(needed.question)
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

    # -- patterns

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


def _of_document(root: Node) -> Node:
    """A conjunction of predicates as one of the document."""
    factors = root.children if isinstance(root, And) else (root,)
    made = []
    for factor in factors:
        assert isinstance(factor, Predicate)
        made.append(Predicate(factor.attribute, factor.operator, factor.values, factor.negated, "d"))
    return And(tuple(made)) if len(made) > 1 else made[0]


class EventScreen:
    """The screen of one call: what was asked for each event so far. Documents stand still meanwhile."""

    def __init__(self, joins: Joins) -> None:
        self._joins = joins
        self._first = 0
        self._events: Any = ()
        self._columns: dict[str, list[Any]] = {}
        self._states: dict[int, EventState] = {}

    def begin(self, first: int, events: Any) -> None:
        if events is not self._events or first != self._first:
            self._first, self._events = first, events
            self._columns, self._states = {}, {}

    def holds(self, event: int, tag: str) -> bool:
        state = self._states.get(event)
        joins = self._joins
        residual = joins.residual(tag)
        if state is None:
            table = self._events if isinstance(self._events, pa.Table | pa.RecordBatch) else None
            given = self._events[event - self._first] if table is None else _Row(self, event - self._first)
            state = self._states[event] = EventState(joins, given)
        return state.holds(residual)

    def cell(self, row: int, name: str) -> Any:
        """The value of a table's column in a row; None if there is no such column."""
        values = self._columns.get(name)
        if values is None:
            known = name in self._events.schema.names
            values = self._columns[name] = column_values(self._events.column(name)) if known else []
        return values[row] if values else None


class _Row(Mapping[str, Any]):
    """A row of a table as an event."""

    def __init__(self, screen: EventScreen, row: int) -> None:
        self._screen, self._row = screen, row

    def __getitem__(self, name: str) -> Any:
        value = self._screen.cell(self._row, name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Any:
        return iter(self._screen._events.schema.names)

    def __len__(self) -> int:
        return len(self._screen._events.schema.names)


class EventState:
    """What is known of one event."""

    def __init__(self, joins: Joins, event: Mapping[str, Any]) -> None:
        self.joins, self.event = joins, event
        self.index: DocumentIndex = joins.documents.index
        self._values: dict[str, list[Any] | None] = {}
        self._truths: dict[Question, bool] = {}
        self._compared: dict[tuple[str, int], tuple[int, int, int]] = {}
        self._places: dict[tuple[Any, ...], tuple[int, I64, Runs]] = {}
        self._bits: dict[tuple[Any, ...], U64] = {}

    # -- residuals

    def holds(self, residual: Residual) -> bool:
        joins = self.joins
        if joins.prefiltering:
            for needed in residual.needed:
                if needed is not None and not joins.possible(needed):
                    joins.counts["pre-filtered"] += 1
                    return False
        if residual.simple:
            return all(self.truth(question) for question in residual.questions)
        whole = with_truths(residual.root, map(self.truth, residual.questions))
        return matches(whole, self.event, joins.absent, joins.multi())

    def truth(self, question: Question) -> bool:
        known = self._truths.get(question)
        if known is None:
            known = self._truths[question] = self._answer(question)
        return known

    def _answer(self, question: Question) -> bool:
        plan = question.plan
        self.joins.counts["answered"] += 1
        if question.single is not None:
            count = self._count_joined(question.single)
            if count is not None:
                return (count > 0) != plan.none
        if self._has_range(question):
            return (self._slowly(question) >= 0) != plan.none
        if plan.searches is None:
            return bool(self._among(question, self.body_bits(question)).any()) != plan.none
        for search in plan.searches:
            if self._finds(question, search):
                return not plan.none
        return plan.none

    def _has_range(self, question: Question) -> bool:
        """Whether the event has a range where a quantifier says something of the event alone."""
        return bool(question.conditions) and any(
            isinstance(lookup(self.event, name), Range) for name in question.conditions
        )

    def _slowly(self, question: Question) -> int:
        """Returns the slot of the document that decides a question, or -1, looking at one after another: for an event
        with a range in what a quantifier says of the event.
        """
        node, joins = question.node, self.joins
        documents, exists = joins.documents, node.quantifier == "exists"
        slots = documents.received(question.owner) if node.received else documents.alive()
        for slot in slots.tolist():
            if pair_holds(node.body, self.event, documents.document(slot), joins.absent, joins.multi()) == exists:
                return int(slot)
        return -1

    # -- searches

    def deciding(self, question: Question) -> int:
        """Returns the slot of a document that makes an `exists` true, or a `forall` false, or -1."""
        if self._has_range(question):
            return self._slowly(question)
        if question.plan.searches is None:
            found = np.flatnonzero(_unpacked(self._among(question, self.body_bits(question))))
            return int(found[0]) if len(found) else -1
        for search in question.plan.searches:
            slot = self._witness(question, search)
            if slot >= 0:
                return slot
        return -1

    def _finds(self, question: Question, search: Search) -> bool:
        """Whether a document is as the search wants it."""
        if len(search.terms) == 1 and not question.node.received and self._meets(search):
            count = self._count(question, search.terms[0])
            if count is not None:
                self.joins.counts["counted"] += 1
                return count > 0
        return self._witness(question, search) >= 0

    def _meets(self, search: Search) -> bool:
        """Whether the event is as a search wants it."""
        joins = self.joins
        return all(
            leaf_holds(term.literal, True, self.event, joins.absent, joins.multi()) == term.wanted
            for term in search.conditions
        )

    def _count_joined(self, term: Term) -> int | None:
        """Returns how many documents are as a join wants them; None if comparing values does not tell."""
        join, wanted = term.literal, term.wanted
        assert isinstance(join, Join)
        index = self.index
        attribute = index.names[join.other]
        if index.uneven[attribute] and (join.negated or not wanted):
            return None
        held = 0
        values = self.values(join.attribute)
        if values is not None:
            if len(values) != 1 or isinstance(values[0], Mapping):
                return None
            known = self._compared.get((join.attribute, attribute))
            if known is None:
                known = self._compared[join.attribute, attribute] = index.compared(attribute, values[0])
            smaller, equal, larger = known
            operator = join.operator
            if operator == "=":
                held = equal
            elif operator == "<":
                held = larger
            elif operator == "<=":
                held = larger + equal
            elif operator == ">":
                held = smaller
            else:
                held = smaller + equal
            if join.negated:
                held = index.here[attribute] - held
        self.joins.counts["compared"] += 1
        return held if wanted else index.documents - held

    def _count(self, question: Question, term: Term) -> int | None:
        """Returns how many documents are as a term wants them; None if counting values does not tell."""
        index = self.index
        attribute, mode, negated, wanted, key, runs = self._term(question, term)
        total = index.documents
        if mode == PRESENT:
            return index.here[attribute] if wanted else total - index.here[attribute]
        if mode == MARKED:
            return None
        if runs is None:  # the literal fails for every document
            return 0 if wanted else total
        hits, _, _ = self._located(attribute, key, runs)
        if index.uneven[attribute] and not (wanted and not negated):
            return None
        held = index.here[attribute] - hits if negated else hits
        return held if wanted else total - held

    def _term(self, question: Question, term: Term) -> tuple[int, int, bool, bool, Any, Runs | None]:
        """Returns attribute, what is asked, negated, wanted, what the set is known by, and the set, of a term for this
        event; without a set the literal fails for every document.
        """
        literal = term.literal
        if isinstance(literal, Join):
            attribute = self.index.names[literal.other]
            values = self.values(literal.attribute)
            if values is None:
                return attribute, RUNS, False, term.wanted, None, None
            key = (literal.attribute, literal.operator)
            known = self._places.get((attribute, key))
            if known is not None:
                return attribute, RUNS, literal.negated, term.wanted, key, known[2]
            runs = [run for value in values for run in join_runs(literal.operator, value)]
            return attribute, RUNS, literal.negated, term.wanted, key, Runs(run_keys(_disjoint(runs)))
        attribute = self.index.names[literal.attribute]
        if literal.operator == "is null":
            return attribute, PRESENT, False, term.wanted == literal.negated, None, None
        if set_of(literal)[1]:
            return attribute, MARKED, literal.negated, term.wanted, literal, question.runs(term.key, literal)
        return attribute, RUNS, literal.negated, term.wanted, term.key, question.runs(term.key, literal)

    def _located(self, attribute: int, key: Any, runs: Runs) -> tuple[int, I64, Runs]:
        known = self._places.get((attribute, key))
        if known is None:
            known = self._places[attribute, key] = (*self.index.located(attribute, runs), runs)
        return known

    def _witness(self, question: Question, search: Search) -> int:
        """Returns the slot of a document that is as a search wants it, or -1."""
        index, joins = self.index, self.joins
        if not self._meets(search):
            return -1
        received = question.node.received
        marks: list[U64] = []
        terms, led, fewest = [], -1, 0
        bounds, texts, at, run = [], [], 0, 0
        for term in search.terms:
            attribute, mode, negated, wanted, key, runs = self._term(question, term)
            if mode == RUNS and runs is None:
                if wanted:
                    return -1
                continue  # true of every document
            if mode == MARKED:
                assert runs is not None
                terms.append((len(marks), MARKED, 0, wanted, 0, 0))
                marks.append(self._literal_bits(attribute, mode, negated, key, runs))
                continue
            if mode == PRESENT:
                terms.append((attribute, PRESENT, 0, wanted, 0, 0))
                continue
            assert runs is not None
            if wanted and not negated and not received:
                hits = self._located(attribute, key, runs)[0]
                if hits == 0:
                    return -1
                if led < 0 or hits < fewest:
                    led, fewest = len(terms), hits
                    led_places = self._places[attribute, key][1]
            terms.append((attribute, RUNS, negated, wanted, run, run + len(runs.bounds) // 2))
            moved = runs.bounds.copy()
            moved[:, 3:] += at
            bounds.append(moved)
            texts.append(runs.text)
            at, run = at + len(runs.text), run + len(runs.bounds) // 2
        table = np.array(terms, np.int64).reshape(-1, TERM)
        limits = np.concatenate(bounds) if bounds else np.zeros((0, 5), np.int64)
        text = np.concatenate(texts) if texts else np.zeros(0, np.uint8)
        marked = np.array(marks, np.uint64) if marks else _NO_MARKS
        if received:
            slots = joins.documents.received(question.owner)
            joins.counts["one by one"] += 1
            return int(search_listed(index.handle, table, limits, text, slots, marked))
        if led >= 0:
            joins.counts["led"] += 1
            found = int(search_led(index.handle, table, led, limits, text, led_places, marked, _LED))
            if found != -2:
                return found
        joins.counts["bit vectors"] += 1
        words = index.alive.copy()
        for term in search.terms:
            words &= self._term_bits(question, term)
            if not words.any():
                return -1
        return int(search_bits(index.handle, table[:0], limits, text, words, marked))

    # -- bit vectors

    def _term_bits(self, question: Question, term: Term) -> U64:
        attribute, mode, negated, wanted, key, runs = self._term(question, term)
        if mode == PRESENT:
            held = self.index.present(attribute)
        elif runs is None:
            held = np.zeros(len(self.index.alive), np.uint64)
        else:
            held = self._literal_bits(attribute, mode, negated, key, runs)
        return held if wanted else self.index.alive & ~held

    def _literal_bits(self, attribute: int, mode: int, negated: bool, key: Any, runs: Runs) -> U64:
        """Returns a bit for every slot: whether a literal holds for its document."""
        known = self._bits.get((attribute, key))
        if known is None:
            if mode == MARKED:
                known = self.index.bits_fitting(attribute, runs, self.joins.fitting(key))
            else:
                known = self.index.bits(attribute, self._located(attribute, key, runs)[1])
            self._bits[attribute, key] = known
        return self.index.present(attribute) & ~known if negated else known

    def body_bits(self, question: Question) -> U64:
        """Returns a bit for every slot: whether its document makes the body of a quantifier true or, of a `forall`,
        not true.
        """
        exists = question.node.quantifier == "exists"
        words = self._node_bits(question, question.plan.body)
        return words if exists else self.index.alive & ~words

    def _node_bits(self, question: Question, node: Node) -> U64:
        if isinstance(node, (And, Or)):
            parts = [self._node_bits(question, child) for child in node.children]
            words = parts[0].copy()
            for part in parts[1:]:
                words = words & part if isinstance(node, And) else words | part
            return words
        if isinstance(node, Constant):
            return self.index.alive if node.holds else np.zeros_like(self.index.alive)
        if isinstance(node, Predicate) and not node.variable:
            held = leaf_holds(node, True, self.event, self.joins.absent, self.joins.multi())
            return self.index.alive if held else np.zeros_like(self.index.alive)
        assert isinstance(node, Join | Predicate)
        if isinstance(node, Predicate) and node.operator == "contains all":
            single = [Predicate(node.attribute, "contains any", (v,), node.negated, node.variable) for v in node.values]
            return self._node_bits(question, Or(tuple(single)) if node.negated else And(tuple(single)))
        return self._term_bits(question, term_of(node, True)) & self.index.alive

    def _among(self, question: Question, words: U64) -> U64:
        """Of some documents those that a question is about."""
        if not question.node.received:
            return words
        mine = np.zeros_like(words)
        slots = self.joins.documents.received(question.owner)
        np.bitwise_or.at(mine, slots >> 6, np.uint64(1) << (slots & 63).astype(np.uint64))
        return words & mine

    # -- the event

    def values(self, name: str) -> list[Any] | None:
        """The values of an attribute of the event; None if it is absent."""
        if name in self._values:
            return self._values[name]
        event = self.event
        value = event.get(name) if type(event) is dict and "." not in name else lookup(event, name)
        kind = type(value)
        if value is None or value is ABSENT:
            found = None
        elif kind is str or kind is int or kind is bool:
            found = [plain(name, value)]
        elif isinstance(value, Range):
            found = []
        else:
            given = plain(name, value)
            if isinstance(given, list):
                found = [one for one in given if one is not None and one == one]
            else:
                found = None if given is None or given != given else [given]
        self._values[name] = found
        return found


def _disjoint(runs: list[tuple[Cut, Cut]]) -> Iterable[tuple[Cut, Cut]]:
    return runs if len(runs) < 2 else union(runs)


def _unpacked(words: U64) -> NDArray[np.uint8]:
    return np.unpackbits(words.view(np.uint8), bitorder="little")
