"""Rules that ask about documents, against a reference that loops over all documents, while documents come and go."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from datetime import UTC, date, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eligo
from eligo import Documents, Matcher
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES
from eligo.language.normalize import normalize
from eligo.language.ranges import Between, NoneOf, OneOf, Range
from eligo.language.reference import matches
from eligo.language.text import parse

pytestmark = pytest.mark.xdist_group("property/test_documents")  # what the model answered is known in one process

NAMES = ("a", "b", "c")
VALUES: list[Any] = [
    0, 1, 2, 1.5, -0.0, 2**53, 2**53 + 1, float(2**53), -(2**63), 2**63 - 1, 1e300, float("inf"), float("-inf"),
    True, False, "", "a", "ab", "prefix-1", "prefix-2", "prefix-12345", "prefix-\0", "é", date(2020, 1, 1),
    datetime(2020, 1, 1, 12), datetime(2020, 1, 1, tzinfo=UTC),
]  # fmt: skip
WRITTEN = ["0", "1", "2", "1.5", "9007199254740993", "true", "'a'", "'ab'", "'prefix-1'", "date '2020-01-01'"]
LISTS = ["(0, 1)", "('a', 'ab', 'prefix-2')", "(1, 'a', true)"]


def value(rng: random.Random) -> Any:
    roll = rng.random()
    if roll < 0.1:
        return [rng.choice(VALUES) for _ in range(rng.randrange(4))]
    if roll < 0.13:
        return {"x": rng.choice(VALUES)}
    if roll < 0.16:
        return rng.choice([None, float("nan"), np.int64(1), np.float32(1.5), np.datetime64("2020-01-01")])
    few = [*VALUES[:3], "a", "ab"] if rng.random() < 0.6 else VALUES
    return rng.choice(few)


def record(rng: random.Random, several: bool = True) -> dict[str, Any]:
    """A document or, with attributes of one value each, an event, whose values may be ranges."""
    made = {name: value(rng) for name in NAMES if rng.random() < 0.75}
    if not several:
        made = {name: one for name, one in made.items() if not isinstance(one, list)}
        if rng.random() < 0.1:
            made[rng.choice(NAMES)] = rng.choice((OneOf(1, 2), OneOf("a"), Between(0, 1), NoneOf(1)))
    if rng.random() < 0.2:
        made["n"] = {"x": value(rng)}
    return made


def flat_table(rng: random.Random) -> pa.Table:
    """Some rows, each column of one type."""
    rows = rng.choice((0, 1, 5, 70))
    columns: dict[str, pa.Array] = {}
    for name in rng.sample(NAMES, 2):
        kind = rng.choice((int, float, str, bool, datetime))
        pool = [None, *(one for one in VALUES if type(one) is kind)]
        if kind is datetime:
            pool = [None, datetime(2020, 1, 1), datetime(2020, 1, 1, 12)]
        column = pa.array([rng.choice(pool) for _ in range(rows)], pa.timestamp("us") if kind is datetime else None)
        columns[name] = column.dictionary_encode() if kind is str and rng.random() < 0.5 else column
    table = pa.table({name: column for name, column in columns.items() if not pa.types.is_null(column.type)})
    return table if table.num_columns else pa.table({"a": [1]})


def literal(rng: random.Random, variable: str) -> str:
    """A predicate on the document, if there is a variable, or on the event."""
    name = (f"{variable}." if variable else "") + rng.choice((*NAMES, "n.x") if variable else NAMES)
    roll = rng.randrange(8)
    if roll < 3:
        written = rng.choice(WRITTEN)
        operator = rng.choice(("=", "!=") if written == "true" else ("=", "!=", "<", "<=", ">", ">="))
        return f"{name} {operator} {written}"
    if roll == 3:
        return f"{name} is {rng.choice(('', 'not '))}null"
    if roll == 4:
        return f"{name} {rng.choice(('', 'not '))}in {rng.choice(LISTS)}"
    if roll == 5:
        return f"{name} {rng.choice(('', 'not '))}between 0 and 1"
    if roll == 6:
        patterns = ("a%", "%b", "prefix-_", "p%2%") if variable else ("a%", "prefix%")  # a range answers no others
        return f"{name} {rng.choice(('', 'not '))}like '{rng.choice(patterns)}'"
    kind = rng.choice(("any", "all", "none"))
    return f"{name} contains {kind} {rng.choice(LISTS)}" if variable else f"{name} = 1"


def body(rng: random.Random, depth: int) -> str:
    roll = rng.random()
    if depth and roll < 0.45:
        joined = f" {rng.choice(('and', 'and', 'or'))} ".join(body(rng, depth - 1) for _ in range(rng.randrange(2, 4)))
        return f"({joined})" if rng.random() < 0.8 else f"not ({joined})"
    if roll < 0.7:
        sides = [rng.choice(NAMES), "d." + rng.choice((*NAMES, "n.x"))]
        rng.shuffle(sides)
        return f"{sides[0]} {rng.choice(('=', '!=', '<', '<=', '>', '>='))} {sides[1]}"
    return literal(rng, "d" if roll < 0.93 else "")


def rule(rng: random.Random, depth: int = 2) -> str:
    roll = rng.random()
    if depth and roll < 0.5:
        joined = f" {rng.choice(('and', 'and', 'or'))} "
        return f"({joined.join(rule(rng, depth - 1) for _ in range(2))})"
    if roll < 0.6:
        return f"not ({rule(rng, max(depth - 1, 0))})"
    if roll < 0.85:
        among = " in received" if rng.random() < 0.25 else ""
        return f"{rng.choice(('exists', 'forall'))} d{among} ({body(rng, 2)})"
    return literal(rng, "")


class Model:
    """Documents as a list, rules as trees.

    `answers` are those that it gave on the same walk before: every index goes the same way, and it is asked once.
    """

    def __init__(self, absent: str, keep: int | None, multi: tuple[str, ...], answers: list[list[int]]) -> None:
        self.absent, self.keep, self.multi = absent, keep, multi
        self.answers, self.asked = answers, 0
        self.rules: dict[int, tuple[Any, str | None]] = {}
        self.documents: dict[int, tuple[dict[str, Any], frozenset[str]]] = {}
        self.next = 0

    def match(self, event: dict[str, Any]) -> list[int]:
        self.asked += 1
        if self.asked > len(self.answers):
            self.answers.append(self._match(event))
        return self.answers[self.asked - 1]

    def _match(self, event: dict[str, Any]) -> list[int]:
        every = [document for document, _ in self.documents.values()]
        found = []
        ranged = any(isinstance(one, Range) for one in event.values())
        for number, (root, owner) in self.rules.items():
            got = [document for document, owners in self.documents.values() if owner in owners]
            if ranged:  # what one value has to do for is a matter of conjunctions, and so of the normal form
                root = normalize(root, multi=self.multi, absent=self.absent)
            if matches(root, event, self.absent, self.multi, every, got):
                found.append(number)
        return found

    def publish(self, event: dict[str, Any]) -> list[int]:
        found = self.match(event)
        owners = frozenset(owner for number in found if (owner := self.rules[number][1]) is not None)
        self.add(event, owners)
        return found

    def add(self, event: dict[str, Any], owners: frozenset[str] = frozenset()) -> None:
        self.documents[self.next] = (event, owners)
        self.next += 1
        while self.keep is not None and len(self.documents) > self.keep:
            del self.documents[next(iter(self.documents))]


def crashed(directory: Path, rng: random.Random) -> Path:
    """A copy of a directory of documents as a process leaves it that is killed, perhaps while it writes."""
    copy = directory.with_name(f"{directory.name}+")
    shutil.copytree(directory, copy)
    if rng.random() < 0.7:
        with (copy / "documents.log").open("ab") as file:
            file.write(rng.randbytes(rng.randrange(1, 60)))
    return copy


known: defaultdict[tuple[int, str, int], list[list[int]]] = defaultdict(list)  # answers of the model


def walk(seed: int, index: str, evaluator: str, absent: str, steps: int, folder: Path) -> None:
    rng = random.Random(seed)
    keep = rng.choice((None, 3, 10))
    place = folder / f"documents-{seed}" if rng.random() < 0.5 else None
    documents = Documents(keep=keep, path=place, sync="never")
    multi = NAMES if rng.random() < 0.5 else ()
    several = bool(multi)
    m = Matcher(index=index, evaluator=evaluator, absent=absent, multi=multi, documents=documents)  # type: ignore[arg-type]
    model = Model(absent, keep, multi, known[seed, absent, steps])
    for step in range(steps):
        if rng.random() < 0.04:
            saved = folder / f"rules-{seed}-{step}"
            m.save(saved)
            if place is None:
                m = eligo.open(saved, writable=True, sync="never")
                assert m.documents is not None
                documents = m.documents
            else:
                place = crashed(place, rng)
                documents.close()
                documents = Documents(path=place, sync="never")
                m = eligo.open(saved, documents=documents)
        roll = rng.random()
        where = f"seed {seed}, step {step}"
        if roll < 0.25 or not model.rules:
            text, owner = rule(rng), rng.choice((None, "ann", "bob"))
            number = rng.randrange(40)
            m.add(number, text, owner=owner, replace=True)
            model.rules[number] = (parse(text), owner)
        elif roll < 0.3:
            number = rng.choice(list(model.rules))
            m.remove(number)
            del model.rules[number]
        elif roll < 0.45:
            event = record(rng, several)
            if any(isinstance(one, Range) for one in event.values()):
                with pytest.raises(eligo.EventError, match="a document has values"):
                    m.publish(event)
            else:
                assert m.publish(event) == model.publish(event), f"{where}: publish {event}"
        elif roll < 0.55:
            some = [record(rng) for _ in range(rng.randrange(6))]
            if rng.random() < 0.3:
                table = flat_table(rng)
                some = [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
                assert documents.add_many(table) == []
            elif rng.random() < 0.5:
                assert documents.add_many(some) == []
            else:
                for one in some:
                    documents.add(one)
            for one in some:
                model.add(one)
        elif roll < 0.6 and model.documents:
            gone = rng.sample(list(model.documents), rng.randrange(1, len(model.documents) + 1))
            documents.remove(gone if rng.random() < 0.7 or len(gone) > 1 else gone[0])
            for one in gone:
                del model.documents[one]
        elif roll < 0.9:
            event = record(rng, several)
            expected = model.match(event)
            assert m.match(event) == expected, f"{where}: {event} over {list(model.documents.values())}"
            assert m.match(event, limit=2) == expected[:2], where
            assert [one for one, _ in m.top(event, 3)] == expected[:3], where
        else:
            some = [record(rng, several) for _ in range(5)]
            found = m.match_batch(some)
            expected = [(i, one) for i, event in enumerate(some) for one in model.match(event)]
            assert list(zip(found["event"].to_pylist(), found["rule"].to_pylist(), strict=True)) == expected, where
            for number in model.rules:
                why = m.explain(some[0], number)
                assert why.matched == ((0, number) in expected), f"{where}: {why}"
        assert len(documents) == len(model.documents), where
    m.engine.rules.wait()


PAIRS = [
    ("propagation", "interval"),
    ("pst-hash", "interval"),
    ("be-tree", "shared"),
    ("scan", "dewey"),
    ("propagation", "dnf"),
]


@pytest.mark.parametrize("absent", ["fails", "classical"])
@pytest.mark.parametrize(("index", "evaluator"), PAIRS)
def test_documents_against_the_reference(
    index: str, evaluator: str, absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if absent == "classical":
        monkeypatch.setattr("eligo.documents.index.BLOCK", 5)  # blocks are split and emptied all the time
    for seed in range(6):
        walk(seed, index, evaluator, absent, 100, tmp_path)


@pytest.mark.parametrize("index", INDEXES.all())
def test_documents_with_every_index_and_evaluator(index: str, tmp_path: Path) -> None:
    for seed, (evaluator, absent) in enumerate(product(EVALUATORS.all(), ("fails", "classical"))):
        walk(1000 + seed, index, evaluator, absent, 50, tmp_path)


def test_eligo_has_documents() -> None:
    assert eligo.Documents is Documents
