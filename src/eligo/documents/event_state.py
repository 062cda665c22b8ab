"""What is asked of documents for one event, and how.

An event's value makes a set of values of each join (`price < d.price` at 10: all numbers above 10), so that joins and
predicates on documents are asked in the same way: a *term* is an attribute and a set of its values. From cheap to dear:

    one join           `<`: the least and the largest value of documents tell                         O(1)
                       `=`: is there an equal one?                                                    O(log n)
    one term           how many documents satisfy it is a difference of places in the order           O(log n + n / 400)
    several terms      the rarest leads to documents, one by one; the others are asked of each        O(log n + those)
                       … and if these are many, bit vectors of all terms are ANDed, until a bit is left    O(n / 64)

A bit vector of a term is made once for an event, and that of a constant term once for a state of the documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64
from eligo.compile.unusable import UnusableValuesError
from eligo.documents.columns import column_values
from eligo.documents.comparisons import ABSENT_FROM_EVENT, NOTHING_TO_JOIN, UNDECIDED, UNKNOWN, WANTED
from eligo.documents.index import MARKED, PRESENT, RUNS, TERM, U64, Runs, search_common, search_led, search_listed
from eligo.documents.values import plain, run_keys
from eligo.language.quantified import Search, Term, set_of, spread, term_of, with_truths
from eligo.language.ranges import Range
from eligo.language.reference import ABSENT, Moment, leaf_holds, lookup, matches, pair_holds
from eligo.language.tree import And, Constant, Join, Node, Or, Predicate
from eligo.language.values import TIME, Cut, after, before, end_of, kind_of, union

if TYPE_CHECKING:
    from eligo.documents.joins import Formula, Joins, Question

_LED = 256  # documents that are looked at one by one before bit vectors are made
_NO_MARKS: U64 = np.zeros((0, 0), np.uint64)
_NO_BOUNDS: I64 = np.zeros((0, 5), np.int64)
_NO_BYTES: NDArray[np.uint8] = np.zeros(0, np.uint8)


def join_runs(operator: str, value: Any) -> list[tuple[Cut, Cut]]:
    """Returns the values of a document for which `value operator d.attribute` holds."""
    if isinstance(value, Mapping) or (isinstance(value, bool) and operator != "="):
        return []  # an object equals nothing, and Booleans have no order
    low: Cut
    high: Cut
    if isinstance(value, Moment):
        kind, low, high = TIME, (TIME, int(value)), (TIME, int(value) + 1)
    else:
        kind, low, high = kind_of(value), before(value), after(value)
    first: Cut = (kind,)
    run: tuple[Cut, Cut]
    if operator == "=":
        run = (low, high)
    elif operator == "<":
        run = (high, end_of(kind))
    elif operator == "<=":
        run = (low, end_of(kind))
    elif operator == ">":
        run = (first, low)
    else:
        run = (first, high)
    return [run] if run[0] < run[1] else []


class EventScreen:
    """The screen of one call: what was asked for each event so far. Documents stand still meanwhile."""

    def __init__(self, joins: Joins) -> None:
        self._joins = joins
        self._first = 0
        self._events: Any = None
        self._columns: dict[str, list[Any]] = {}
        self._states: dict[int, EventState] = {}

    def begin(self, first: int, events: Any) -> None:
        known = self._events
        same = len(known) == 1 == len(events) and known[0] is events[0] if isinstance(known, list) else known is events
        if not same or first != self._first:
            self._first, self._events = first, events
            self._columns, self._states = {}, {}

    def state(self, event: Mapping[str, Any]) -> EventState:
        """What is asked for one event, before a view begins with it."""
        self.begin(0, [event])
        state = self._states[0] = EventState(self._joins, event)
        return state

    def holds(self, event: int, tag: str) -> bool:
        return self._state(event).holds(self._joins.formula(tag))

    def compared(self, event: int, tags: list[str], which: I32) -> tuple[I64, bool]:
        joins, state = self._joins, self._state(event)
        # A range satisfies predicates on the event, but compares with nothing: what follows from both does not hold.
        prefiltering = joins.prefiltering and not _holds_range(state.event)
        found = joins.decided(tags).truths(which, prefiltering, state.compared)
        filtered, asked = found[-2:].tolist()
        if filtered:
            joins.counts["pre-filtered"] += filtered
        return found[:-2], asked > 0

    def _state(self, event: int) -> EventState:
        state = self._states.get(event)
        if state is None:
            table = isinstance(self._events, pa.Table | pa.RecordBatch)
            row = event - self._first
            state = EventState(self._joins, _Row(self, row) if table else self._events[row])
            self._states[event] = state
        return state

    def names(self) -> list[str]:
        return self._events.schema.names  # type: ignore[no-any-return]

    def cell(self, row: int, name: str) -> Any:
        """The value of a table's column in a row; None if there is no such column."""
        values = self._columns.get(name)
        if values is None:
            values = self._columns[name] = _readable_values(self._events, name)
        return values[row] if values else None


def _readable_values(events: pa.Table | pa.RecordBatch, name: str) -> list[Any]:
    """The values of an attribute, which may have several columns, each row in one of them; nothing if it has none."""
    found: list[Any] = []
    for number in events.schema.get_all_field_indices(name):
        column = events.column(number)
        try:
            values = column_values(column)
        except (ValueError, OverflowError):  # bytes that are no text, days that Python does not know
            raise UnusableValuesError(
                f"attribute {name!r} is compared with documents, and holds something of type {column.type} that is no "
                "value: leave it out",
                name,
                _unreadable_rows(column),
            ) from None
        found = values if not found else [b if a is None else a for a, b in zip(found, values, strict=True)]
    return found


def _unreadable_rows(column: pa.ChunkedArray | pa.Array) -> I64:
    rows = []
    for row in range(len(column)):
        try:
            column_values(column.slice(row, 1))
        except (ValueError, OverflowError):
            rows.append(row)
    return np.array(rows, np.int64)


def _holds_range(event: Mapping[str, Any]) -> bool:
    """Whether some value of an event, perhaps within others, is a range; rows of tables have none."""
    if isinstance(event, _Row):
        return False
    return any(
        isinstance(value, Range) or (isinstance(value, Mapping) and _holds_range(value)) for value in event.values()
    )


class _Row(Mapping[str, Any]):
    """A row of a table as an event."""

    def __init__(self, screen: EventScreen, row: int) -> None:
        self._screen, self._row = screen, row

    def __getitem__(self, name: str) -> Any:
        value = self._screen.cell(self._row, name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._screen.names())

    def __len__(self) -> int:
        return len(self._screen.names())


class Asked(NamedTuple):
    """A literal as it stands for one event: an attribute's values in some runs, that it is there (PRESENT), or that its
    string fits a pattern (MARKED). `hits` cells lie in the runs, between `places`.
    """

    attribute: int
    mode: int
    negated: bool
    runs: Runs
    hits: int
    places: I64


_NO_RUNS = Runs([])
_NO_PLACES: I64 = np.zeros(0, np.int64)


class EventState:
    """What is known of one event."""

    def __init__(self, joins: Joins, event: Mapping[str, Any]) -> None:
        self.joins, self.event = joins, event
        self.index = joins.documents.index
        self._values: dict[str, list[Any] | None] = {}
        self._truths: dict[Question, bool] = {}
        self._outcomes: I64 = np.full(len(joins.comparisons.all), UNKNOWN, np.int64)  # by number of a comparison
        self._terms: dict[str, Asked | None] = {}  # by the text of the literal
        self._rows: dict[str, int] = {}  # of literals in `marks`
        self._marks = _NO_MARKS  # bit vectors

    # -- residuals

    def holds(self, formula: Formula) -> bool:
        """Whether what a residual asks is true."""
        joins = self.joins
        if formula.needed and joins.prefiltering and not _holds_range(self.event):
            for needed in formula.needed:
                if not joins.possible(needed):
                    joins.counts["pre-filtered"] += 1
                    return False
        if formula.simple:
            for question in formula.questions:
                known = self._truths.get(question)
                if known is None:
                    known = self._truths[question] = self._answer(question)
                if not known:
                    return False
            return True
        whole = with_truths(formula.root, map(self.truth, formula.questions))
        return matches(whole, self.event, joins.absent, joins.multi)

    def truth(self, question: Question) -> bool:
        known = self._truths.get(question)
        if known is None:
            known = self._truths[question] = self._answer(question)
        return known

    def _answer(self, question: Question) -> bool:
        comparison = question.comparison
        if comparison is not None:
            outcomes = self.compared(False)
            if outcomes[comparison.number] < 0:
                self._compare((comparison.number,))
            known = question.truths[int(outcomes[comparison.number])]
            if known is not None:
                return known
        return (self.deciding(question, any_slot=True) >= 0) != question.plan.none

    def deciding(self, question: Question, any_slot: bool = False) -> int:
        """Returns the slot of a document that makes an `exists` true, or a `forall` false, or -1; `any_slot`: it may be
        another slot, if there is such a document.
        """
        if any(isinstance(lookup(self.event, name), Range) for name in question.conditions):
            return self._slowly(question)
        if question.plan.searches is None:
            self.joins.counts["bit vectors"] += 1
            found = np.flatnonzero(np.unpackbits(self._body_bits(question).view(np.uint8), bitorder="little"))
            return int(found[0]) if len(found) else -1
        for search in question.plan.searches:
            if self._meets(search):
                slot = self._search(question, search, any_slot)
                if slot >= 0:
                    return slot
        return -1

    def _slowly(self, question: Question) -> int:
        """Looks at one document after another: for an event with a range in what a quantifier says of the event."""
        node, joins = question.node, self.joins
        documents, exists = joins.documents, node.quantifier == "exists"
        slots = documents.received(question.owner) if node.received else documents.alive()
        for slot in slots.tolist():
            if pair_holds(node.body, self.event, documents.document(slot), joins.absent, joins.multi) == exists:
                return int(slot)
        return -1

    # -- one join

    def compared(self, wanted: bool) -> I64:
        """Returns what comparisons come to for this event, by number; `wanted`: those that are WANTED are made."""
        count = len(self.joins.comparisons.all)
        if count > len(self._outcomes):  # of rules that came meanwhile
            more = np.full(count - len(self._outcomes), UNKNOWN, np.int64)
            self._outcomes = np.concatenate((self._outcomes, more))
        if wanted:
            self._compare([i for i, outcome in enumerate(self._outcomes.tolist()) if outcome == WANTED])
        return self._outcomes

    def _compare(self, numbers: Sequence[int]) -> None:
        """Makes comparisons."""
        joins, index, outcomes = self.joins, self.index, self._outcomes
        joins.counts["compared"] += len(numbers)
        asked = []
        for number in numbers:
            one = joins.comparisons.all[number]
            values = self.values(one.attribute)
            if values is None:  # the join fails with every document
                outcomes[number] = ABSENT_FROM_EVENT if index.documents else NOTHING_TO_JOIN
            elif len(values) != 1 or isinstance(values[0], dict | bool):
                outcomes[number] = UNDECIDED
            else:
                asked.append((number, one.other, one.exactly, values[0]))
        if asked:
            index.compared(asked, outcomes)

    # -- searches

    def _meets(self, search: Search) -> bool:
        """Whether the event is as a search wants it."""
        joins = self.joins
        return all(
            leaf_holds(term.literal, True, self.event, joins.absent, joins.multi) == term.wanted
            for term in search.conditions
        )

    def _asked(self, question: Question, term: Term) -> Asked | None:
        """Returns a term's literal as it stands for this event; None if it fails for every document."""
        if term.key in self._terms:
            return self._terms[term.key]
        literal, index, mode = term.literal, self.index, RUNS
        found: Asked | None = None
        if isinstance(literal, Join):
            attribute = index.names[literal.other]
            values = self.values(literal.attribute)
            if values is not None:
                spans = [span for value in values for span in join_runs(literal.operator, value)]
                runs = Runs(run_keys(spans if len(spans) < 2 else union(spans)))
                found = Asked(attribute, RUNS, literal.negated, runs, *index.located(attribute, runs))
        else:
            attribute = index.names[literal.attribute]
            if literal.operator == "is null":
                found = Asked(attribute, PRESENT, not literal.negated, _NO_RUNS, 0, _NO_PLACES)
            else:
                mode = MARKED if set_of(literal)[1] else RUNS
                runs = question.runs(term.key, literal)
                found = Asked(attribute, mode, literal.negated, runs, *index.located(attribute, runs))
        self._terms[term.key] = found
        return found

    def _search(self, question: Question, search: Search, any_slot: bool) -> int:
        """Returns the slot of a document that is as all terms want it, or -1."""
        index, counts = self.index, self.joins.counts
        received = question.node.received
        chosen: list[tuple[Term, Asked]] = []
        leading: Asked | None = None
        led = -1
        for term in search.terms:
            asked = self._asked(question, term)
            if asked is None:
                if term.wanted:
                    return -1
                continue  # true of every document
            if asked.mode == RUNS and term.wanted and not asked.negated:
                if asked.hits == 0:
                    return -1
                if leading is None or asked.hits < leading.hits:
                    leading, led = asked, len(chosen)
            chosen.append((term, asked))
        if received:
            counts["one by one"] += 1
            table = self._table(question, chosen)
            return int(search_listed(index.handle, *table, self.joins.documents.received(question.owner), self._marks))
        if not chosen and any_slot:
            return 0 if index.documents else -1
        if len(chosen) == 1 and any_slot:
            found = self._counted(*chosen[0])
            if found is not None:
                counts["counted"] += 1
                return 0 if found else -1
        if leading is not None:
            counts["led"] += 1
            table = self._table(question, chosen)
            slot = int(search_led(index.handle, table[0], led, *table[1:], leading.places, self._marks, _LED))
            if slot != -2:
                return slot
        counts["bit vectors"] += 1
        rows = np.empty((len(chosen), 5), np.int64)
        for i, (term, asked) in enumerate(chosen):
            row = 0 if asked.mode == PRESENT else self._row(question, term, asked)
            rows[i] = asked.attribute, asked.mode, asked.negated, term.wanted, row
        return int(search_common(index.handle, rows, self._marks, index.alive))

    def _counted(self, term: Term, asked: Asked) -> bool | None:
        """Returns whether some document is as one term wants it; None if counting values does not tell."""
        index = self.index
        missing = index.here[asked.attribute] < index.documents
        if asked.mode == MARKED:
            return None
        if asked.mode == PRESENT:
            return missing if asked.negated == term.wanted else index.here[asked.attribute] > 0
        if asked.negated != term.wanted:  # a value in the runs is looked for
            found = asked.hits > 0
        elif index.uneven[asked.attribute]:
            return None
        else:
            found = asked.hits < index.values(asked.attribute)
        return found or (missing and not term.wanted)

    def _table(self, question: Question, chosen: Iterable[tuple[Term, Asked]]) -> tuple[I64, I64, NDArray[np.uint8]]:
        """Returns terms as kernels ask them of one document, the bounds of their runs, and the bytes of these."""
        terms, bounds, texts, at, run = [], [], [], 0, 0
        for term, asked in chosen:
            if asked.mode == MARKED:
                terms.append((self._row(question, term, asked), MARKED, asked.negated, term.wanted, asked.attribute, 0))
                continue
            count = len(asked.runs.bounds) // 2
            terms.append((asked.attribute, asked.mode, asked.negated, term.wanted, run, run + count))
            if count:
                moved = asked.runs.bounds
                if at:
                    moved = moved.copy()
                    moved[:, 3:] += at
                bounds.append(moved)
                texts.append(asked.runs.text)
                at, run = at + len(asked.runs.text), run + count
        return (
            np.array(terms, np.int64).reshape(-1, TERM),
            np.concatenate(bounds) if bounds else _NO_BOUNDS,
            np.concatenate(texts) if texts else _NO_BYTES,
        )

    # -- bit vectors

    def _row(self, question: Question, term: Term, asked: Asked) -> int:
        """Returns the row of `marks` with a bit for every document that has a value in the runs of a term, or a string
        that fits.
        """
        row = self._rows.get(term.key)
        if row is None:
            row = self._rows[term.key] = len(self._rows)
            words = len(self.index.alive)
            if row >= len(self._marks):
                grown = np.zeros((max(4, 2 * row), words), np.uint64)
                if row:
                    grown[:row] = self._marks
                self._marks = grown
            self._marks[row] = self.joins.bits(term, asked)
        return row

    def _body_bits(self, question: Question) -> U64:
        """Returns a bit for every document that decides a question whose searches are too many."""
        words = self._node_bits(question, question.plan.body)
        if question.node.quantifier == "forall":
            words = self.index.alive & ~words
        if question.node.received:
            mine = np.zeros_like(words)
            slots = self.joins.documents.received(question.owner)
            np.bitwise_or.at(mine, slots >> 6, np.uint64(1) << (slots & 63).astype(np.uint64))
            words &= mine
        return words

    def _node_bits(self, question: Question, node: Node) -> U64:
        """Returns a bit for every document that makes a part of a body true."""
        alive = self.index.alive
        node = spread(node)
        if isinstance(node, (And, Or)):
            words = self._node_bits(question, node.children[0])
            for child in node.children[1:]:
                part = self._node_bits(question, child)
                words = words & part if isinstance(node, And) else words | part
            return words
        if isinstance(node, Constant):
            return alive.copy() if node.holds else np.zeros_like(alive)
        if isinstance(node, Predicate) and not node.variable:
            held = leaf_holds(node, True, self.event, self.joins.absent, self.joins.multi)
            return alive.copy() if held else np.zeros_like(alive)
        assert isinstance(node, Join | Predicate)
        term = term_of(node, True)
        asked = self._asked(question, term)
        if asked is None:
            return np.zeros_like(alive)
        here = self.index.present(asked.attribute)
        if asked.mode == PRESENT:
            return alive & ~here if asked.negated else here.copy()
        row = self._row(question, term, asked)  # which may have the matrix grow
        held_bits: U64 = self._marks[row]
        return here & ~held_bits if asked.negated else held_bits.copy()

    # -- the event

    def values(self, name: str) -> list[Any] | None:
        """The values of an attribute of the event; None if it is absent."""
        if name in self._values:
            return self._values[name]
        event = self.event
        value = event.get(name) if type(event) in (dict, _Row) and "." not in name else lookup(event, name)
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
