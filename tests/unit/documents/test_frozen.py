"""The values of documents without the documents: the same answers as the documents themselves give."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eligo import Documents
from eligo.documents.event_state import EventScreen, join_runs
from eligo.documents.frozen import FrozenDocuments, FrozenIndex, values_of_column
from eligo.documents.index import EQUAL, LARGER, SMALLER, DocumentIndex, Runs
from eligo.documents.joins import Joins
from eligo.documents.values import run_keys
from eligo.engine import Engine
from eligo.language.reference import matches
from eligo.language.text import parse
from eligo.language.tree import Node
from eligo.reading import normal_form
from eligo.segments.joining import needs_of
from eligo.segments.rule_table import JOINED

BIG = 2**53
POOLS: dict[Any, list[Any]] = {
    pa.int64(): [0, 1, 2, BIG, BIG + 1, -BIG - 1, 2**63 - 1, -(2**63)],
    pa.float64(): [0.0, -0.0, 1.0, 1.5, float("nan"), float("inf"), float("-inf"), float(BIG), 1e300],
    pa.decimal128(20, 2): [Decimal("0.10"), Decimal("1.00"), Decimal(BIG + 1), Decimal("-1.50")],
    pa.string(): ["", "a", "ab", "prefix-1", "prefix-12", "prefix-\0", "prefix-", "é"],
    pa.bool_(): [True, False],
    pa.date32(): [date(2020, 1, 1), date(2020, 1, 2)],
    pa.timestamp("us", "UTC"): [datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 12, tzinfo=UTC)],
    pa.struct([("x", pa.int64())]): [{"x": 1}, {"x": None}],
}
VALUES = [one for some in POOLS.values() for one in some if one == one]
WRITTEN = ("1", "1.5", "'ab'", "9007199254740993")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


def columns(rng: random.Random) -> list[pa.Array]:
    """Some tables' columns of one attribute, perhaps of different types, perhaps lists."""
    found = []
    for _ in range(rng.randrange(4)):
        kind = rng.choice(list(POOLS))
        pool = [None, *POOLS[kind]]
        rows = rng.randrange(6)
        if rng.random() < 0.3 and not pa.types.is_struct(kind):
            lists = [rng.choice((None, [rng.choice(pool) for _ in range(rng.randrange(3))])) for _ in range(rows)]
            found.append(pa.array(lists, pa.list_(kind)))
        else:
            found.append(pa.array([rng.choice(pool) for _ in range(rows)], kind))
    return found


def rule(rng: random.Random) -> str:
    event = rng.choice(("", "", "e > 0 and ", "not e = 1 and "))
    literal = rng.choice(
        (
            f"a {rng.choice(OPERATORS)} d.a",
            f"a {rng.choice(OPERATORS)} d.a",
            f"not a {rng.choice(OPERATORS)} d.a",
            f"d.a {rng.choice(('=', '!=', '<', '>='))} {rng.choice(WRITTEN)}",
            "d.a is null",
            "d.a is not null",
            "d.a in (1, 'a', true)",
            "d.a not between 0 and 1",
            "true",
        )
    )
    negated = rng.choice(("", "not "))
    return f"{negated}{rng.choice(('exists', 'forall'))} d ({event}{literal})"


@pytest.mark.parametrize("seed", range(60))
def test_questions_about_one_attribute_are_answered_by_its_values(seed: int) -> None:
    rng = random.Random(seed)
    parts = columns(rng)
    documents = [{"a": one} if one is not None else {} for part in parts for one in part.to_pylist()]
    index = FrozenIndex(len(documents), [("a", [values_of_column(part) for part in parts])])
    joins = Joins(FrozenDocuments(index), Engine("auto", "interval", "fails", (), None, None).rules)
    joins.prefiltering = False
    texts = [rule(rng) for _ in range(40)]
    rules = [(text, *parted(text)) for text in texts]
    for _ in range(20):
        event: dict[str, Any] = {"a": rng.choice(VALUES)} if rng.random() < 0.9 else {}
        if rng.random() < 0.2:
            event["a"] = rng.sample(VALUES, rng.randrange(3))
        event |= {"e": rng.choice((0, 1, 2))} if rng.random() < 0.8 else {}
        screen = EventScreen(joins)
        screen.begin(0, [event])
        for text, relaxed, tag in rules:
            needs = needs_of(tag)
            if needs.searching or (index.uneven[0] and "a" in needs.even):
                continue
            expected = matches(parse(text), event, "fails", ("a",), documents, [])
            found = matches(relaxed, event, "fails", ("a",)) and screen.holds(0, tag)
            assert found == expected, (text, event, documents)


def parted(text: str) -> tuple[Node, str]:
    """What an index knows of a rule, and its residual."""
    relaxed, tags = normal_form(parse(text), frozenset(), "fails")
    (tag,) = (tag for tag in tags if tag.startswith(JOINED))
    return relaxed, tag[1:]


def outcome(index: DocumentIndex, value: Any, exactly: bool) -> int:
    found = np.zeros(1, np.int64)
    index.compared([(0, "a", exactly, value)], found)
    return int(found[0])


@pytest.mark.parametrize("seed", range(60))
def test_values_compare_as_those_of_documents(seed: int) -> None:
    rng = random.Random(1000 + seed)
    parts = [part for part in columns(rng) if not pa.types.is_list(part.type)]
    frozen = FrozenIndex(sum(map(len, parts)), [("a", [values_of_column(part) for part in parts])])
    documents = Documents(keep=None)
    documents.watch({"a"})
    for part in parts:
        documents.add_many(pa.table({"a": part}))
    index = documents.index
    assert (frozen.here, frozen.uneven) == (index.here, index.uneven)
    for value in VALUES:
        if isinstance(value, dict):
            continue
        plain = int(value) if isinstance(value, Decimal) and value == int(value) else value
        plain = float(plain) if isinstance(plain, Decimal) else plain
        exact = outcome(frozen, plain, True)
        assert exact == outcome(index, plain, True), (value, parts)
        between = SMALLER | LARGER  # then whether there is an equal one is told only where equality is asked
        if exact & between == between:
            exact |= EQUAL
        orders = outcome(frozen, plain, False)
        assert (orders | EQUAL if orders & between == between else orders) == exact
        for operator in ("=", "<", "<=", ">", ">="):
            runs = Runs(run_keys(join_runs(operator, plain)))
            assert (frozen.located(0, runs)[0] > 0) == (index.located(0, runs)[0] > 0)


def test_nothing_is_kept_for_numbers_that_are_floats() -> None:
    values = values_of_column(pa.array(np.arange(1000) % 7))
    assert values.key.tolist() == sorted(values.key.tolist())
    assert len(values.key) == 7
    assert len(values.rest) == len(values.data) == 0
