"""An alert service for books, to measure joins with: rules, the documents seen before, and events.

    category = 'c17' and price between 1200 and 3200 and forall d (isbn != d.isbn)
    └──────────── on the event alone ──────────────┘     └──── the question ─────┘

A rule has a category and a fifth of all prices, which one event in 500 satisfies, and one question to the documents:

    one    a single join: an order between numbers, an author known or not, an ISBN that is new
    two    some document, or none, with an author or a year, and a number, that relate to the event's, in a category
    newer  a document of a later year than the event's, the same for all rules; seven events in eight are the latest

Of the questions of `two` a share can be made impossible: half of these ask for a category that no document has, and
half for a price that no document of that category has, though documents of other categories do.

Values are drawn uniformly. Those of an attribute are known as codes (integers), of which texts are made for rules and
tables, so that `try_all` can compare them without eligo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.compiled import I64
from eligo.jit import inline, kernel

ATTRIBUTES = ("category", "author", "isbn", "price", "list", "pages", "year")
CATEGORY, AUTHOR, ISBN, PRICE, LIST, PAGES, YEAR = range(7)
CATEGORIES = 100
MOST = {PRICE: 10_000, LIST: 10_000, PAGES: 2_000, YEAR: 2_026}
WIDTH = 2_000  # of a rule's prices
CHEAP, DEAR = CATEGORIES // 2, 5_000  # where rules are to be impossible, no book of so many categories costs more

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
PAIRS = ((PRICE, PRICE), (PRICE, LIST), (LIST, PRICE), (LIST, LIST), (PAGES, PAGES), (YEAR, YEAR))  # of event, document
EXISTS, NOT_EXISTS, FORALL = range(3)
QUANTIFIERS = ("exists", "not exists", "forall")

# Numbers of a rule: what it wants of the event, its quantifier, one or two joins, the document's category and the price
# that it must be above, or -1.
R_CATEGORY, R_LOW, R_QUANTIFIER, R_JOINS = 0, 1, 2, 3
R_OF, R_ABOVE, R_SIZE = 9, 10, 11


@dataclass(frozen=True)
class Alerts:
    """Rules as rows of numbers, documents and events as rows of codes."""

    rules: I64
    documents: I64
    events: I64

    def texts(self) -> list[str]:
        """The rules."""
        return [f"{of_event(rule)} and {question(rule)}" for rule in self.rules.tolist()]

    def plain_texts(self) -> list[str]:
        """What rules say of the event alone."""
        return [of_event(rule) for rule in self.rules.tolist()]

    def questions(self) -> list[str]:
        """What rules ask of documents."""
        return [question(rule) for rule in self.rules.tolist()]

    def table(self) -> pa.Table:
        """The documents."""
        return pa.table(
            {
                name: pa.array(self.documents[:, a])
                if a > ISBN
                else pa.array(np.char.add(_LETTER[a], self.documents[:, a].astype(np.str_)))
                for a, name in enumerate(ATTRIBUTES)
            }
        )

    def event(self, number: int) -> dict[str, Any]:
        """An event as a dict."""
        return as_dict(self.events[number].tolist())


_LETTER = {CATEGORY: "c", AUTHOR: "author ", ISBN: "978-"}


def as_dict(codes: list[int]) -> dict[str, Any]:
    """A document or event."""
    return {
        name: f"{_LETTER[a]}{code}" if a in _LETTER else code
        for a, (name, code) in enumerate(zip(ATTRIBUTES, codes, strict=True))
    }


def of_event(rule: list[int]) -> str:
    """What a rule says of the event alone."""
    low = rule[R_LOW]
    return f"category = 'c{rule[R_CATEGORY]}' and price between {low} and {low + WIDTH}"


def question(rule: list[int]) -> str:
    """What a rule asks of documents."""
    parts = []
    for at in (R_JOINS, R_JOINS + 3):
        own, operator, other = rule[at : at + 3]
        if own >= 0:
            parts.append(f"{ATTRIBUTES[own]} {OPERATORS[operator]} d.{ATTRIBUTES[other]}")
    if rule[R_OF] >= 0:
        parts.append(f"d.category = 'c{rule[R_OF]}'")
    if rule[R_ABOVE] >= 0:
        parts.append(f"d.price > {rule[R_ABOVE]}")
    return f"{QUANTIFIERS[rule[R_QUANTIFIER]]} d ({' and '.join(parts)})"


def draw(rules: int, documents: int, events: int, seed: int, form: str = "one", impossible: float = 0.0) -> Alerts:
    """Rules of a form, and books: `documents` that were seen, and `events` to come."""
    rng = np.random.default_rng(seed)
    made = np.full((rules, R_SIZE), -1, np.int64)
    made[:, R_CATEGORY] = rng.integers(0, CATEGORIES, rules)
    made[:, R_LOW] = rng.integers(1, MOST[PRICE] - WIDTH, rules)
    {"one": _one_join, "two": _two_joins, "newer": _newer}[form](rng, made)
    if impossible:
        chosen = rng.random(rules) < impossible
        other = rng.random(rules) < 0.5
        made[chosen, R_QUANTIFIER] = EXISTS
        made[chosen & other, R_OF] += CATEGORIES
        made[chosen & ~other, R_OF] %= CHEAP
        made[chosen & ~other, R_ABOVE] = DEAR
    seen, coming = _books(rng, documents, documents), _books(rng, events, documents)
    if form == "newer":
        coming[rng.random(events) < 7 / 8, YEAR] = MOST[YEAR]
    if impossible:
        for books in (seen, coming):
            cheap = books[:, CATEGORY] < CHEAP
            books[cheap, PRICE] = np.minimum(books[cheap, PRICE], DEAR)
    return Alerts(made, seen, coming)


def _one_join(rng: np.random.Generator, made: I64) -> None:
    """Two in five rules compare numbers; the others ask for an author known, an author not known, an ISBN not known."""
    count = len(made)
    pairs = np.array(PAIRS)[rng.integers(0, len(PAIRS), count)]
    made[:, R_QUANTIFIER] = rng.choice((EXISTS, FORALL), count)
    made[:, R_JOINS], made[:, R_JOINS + 1], made[:, R_JOINS + 2] = pairs[:, 0], rng.integers(2, 6, count), pairs[:, 1]
    kind = rng.integers(0, 5, count)
    for which, (quantifier, attribute, operator) in enumerate(
        ((EXISTS, AUTHOR, "="), (NOT_EXISTS, AUTHOR, "="), (FORALL, ISBN, "!="))
    ):
        mine = kind == which
        made[mine, R_QUANTIFIER] = quantifier
        made[mine, R_JOINS : R_JOINS + 3] = attribute, OPERATORS.index(operator), attribute


def _two_joins(rng: np.random.Generator, made: I64) -> None:
    """An author or a year, a number, and the document's category."""
    count = len(made)
    made[:, R_QUANTIFIER] = rng.choice((EXISTS, NOT_EXISTS), count)
    by_author = rng.random(count) < 0.5
    first = np.where(by_author, AUTHOR, YEAR)
    made[:, R_JOINS], made[:, R_JOINS + 2] = first, first
    made[:, R_JOINS + 1] = np.where(by_author, 0, rng.integers(2, 6, count))
    pairs = np.array(PAIRS[:-1])[rng.integers(0, len(PAIRS) - 1, count)]
    made[:, R_JOINS + 3], made[:, R_JOINS + 4], made[:, R_JOINS + 5] = (
        pairs[:, 0],
        rng.integers(2, 6, count),
        pairs[:, 1],
    )
    made[:, R_OF] = rng.integers(0, CATEGORIES, count)


def _newer(_: np.random.Generator, made: I64) -> None:
    made[:, R_QUANTIFIER] = EXISTS
    made[:, R_JOINS : R_JOINS + 3] = YEAR, OPERATORS.index("<"), YEAR


def _books(rng: np.random.Generator, count: int, known: int) -> I64:
    """Books by one of `known` / 100 authors; two in five have an ISBN that is among `known` books."""
    made = np.empty((count, len(ATTRIBUTES)), np.int64)
    made[:, CATEGORY] = rng.integers(0, CATEGORIES, count)
    made[:, AUTHOR] = rng.integers(0, max(known // 100, 10), count)
    made[:, ISBN] = rng.integers(0, 2 * max(known, 1), count)
    for attribute, most in MOST.items():
        made[:, attribute] = rng.integers(1_950 if attribute == YEAR else 1, most, count)
    return made


@inline
def compares(operator, left, right):
    if operator == 0:
        return left == right
    if operator == 1:
        return left != right
    if operator == 2:
        return left < right
    if operator == 3:
        return left <= right
    return left > right if operator == 4 else left >= right


@inline
def pair_holds(rule, event, document):
    """Whether the body of a rule's question holds for an event and a document."""
    held = compares(rule[R_JOINS + 1], event[rule[R_JOINS]], document[rule[R_JOINS + 2]])
    if rule[R_JOINS + 3] >= 0:
        held = held and compares(rule[R_JOINS + 4], event[rule[R_JOINS + 3]], document[rule[R_JOINS + 5]])
    if rule[R_OF] >= 0:
        held = held and document[CATEGORY] == rule[R_OF]
    if rule[R_ABOVE] >= 0:
        held = held and document[PRICE] > rule[R_ABOVE]
    return held


@kernel
def try_all(rules, documents, event, stopping, truths):
    """Tries every rule on every document: the naive way of the report on profile matching, §4.3.1. `stopping`: what
    the rule says of the event is asked once and first, and the first document that decides is the last one.
    """
    for r in range(len(rules)):
        rule = rules[r]
        forall = rule[R_QUANTIFIER] == FORALL
        found = False
        wanted = event[CATEGORY] == rule[R_CATEGORY] and rule[R_LOW] <= event[PRICE] <= rule[R_LOW] + WIDTH
        if wanted or not stopping:
            for d in range(len(documents)):
                if pair_holds(rule, event, documents[d]) != forall:
                    found = True
                    if stopping:
                        break
        truths[r] = wanted and (found == (rule[R_QUANTIFIER] == EXISTS))


def truths_of(alerts: Alerts, rules: I64, event: int, stopping: bool = True) -> NDArray[np.bool_]:
    """Which of some rules an event makes true, by trying them all."""
    truths = np.zeros(len(rules), np.bool_)
    try_all(rules, alerts.documents, alerts.events[event], stopping, truths)
    return truths
