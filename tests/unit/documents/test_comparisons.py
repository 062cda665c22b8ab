"""Rules of an event that are decided together: by comparing, and by what no document is like."""

from __future__ import annotations

import random
from datetime import date
from typing import Any

import pytest

from eligo import Documents, Matcher
from eligo.documents.joins import Joins
from eligo.language.reference import matches
from eligo.language.text import parse
from eligo.segments import screen as screening

VALUES: list[Any] = [0, 1, 1.5, 2**53 + 1, True, False, "", "a", "prefix-1", "prefix-2", date(2020, 1, 1), {"x": 1}]
TEXTS = [
    f"{quantifier} d ({'not ' if negated else ''}{own} {operator} d.{other})"
    for quantifier in ("exists", "not exists", "forall")
    for own, other in (("a", "a"), ("a", "b"), ("b", "a"))
    for operator in ("=", "!=", "<", "<=", ">", ">=")
    for negated in (False, True)
]


def some(rng: random.Random, several: bool) -> dict[str, Any]:
    made: dict[str, Any] = {name: rng.choice(VALUES) for name in ("a", "b") if rng.random() < 0.8}
    if several and rng.random() < 0.3:
        made["a"] = [rng.choice(VALUES[:-1]) for _ in range(rng.randrange(3))]
    return made


@pytest.mark.parametrize("several", [False, True])
def test_together_is_the_same_as_one_by_one(several: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(5)
    documents = Documents(keep=6)
    together = Matcher(documents=documents, multi=["a"])
    together.add_many(enumerate(TEXTS))
    roots = [parse(text) for text in TEXTS]
    for _ in range(60):
        event = some(rng, several)
        expected = [i for i, root in enumerate(roots) if matches(root, event, multi={"a"}, documents=list(documents))]
        assert together.match(event) == expected
        with monkeypatch.context() as patch:
            patch.setattr(screening, "_TOGETHER", 10**9)
            assert together.match(event) == expected
        documents.add(some(rng, several))


def waiting() -> tuple[Matcher, Documents]:
    """Rules that wait for a category that no document has."""
    documents = Documents()
    matcher = Matcher(documents=documents)
    matcher.add_many((i, f"exists d (a = d.a and d.category = {i})") for i in range(100))
    documents.add({"a": 1, "category": -1})
    return matcher, documents


def test_rule_that_waited_matches_when_its_document_comes() -> None:
    matcher, documents = waiting()
    for _ in range(2):
        assert matcher.match({"a": 1}) == []
    number = documents.add({"a": 1, "category": 7})
    assert matcher.match({"a": 1}) == [7]
    documents.remove(number)
    assert matcher.match({"a": 1}) == []
    documents.add_many([{"a": 1, "category": i} for i in range(100)])
    assert matcher.match({"a": 1}) == list(range(100))


def test_forgotten_questions_are_looked_for_again() -> None:
    matcher, documents = waiting()
    assert matcher.match({"a": 1}) == []
    assert isinstance(matcher.engine.joins, Joins)
    matcher.engine.joins.forget()
    documents.add({"a": 1, "category": 3})
    assert matcher.match({"a": 1}) == [3]
    documents.add({"a": 1, "category": 4})
    assert matcher.match({"a": 1}) == [3, 4]


def test_prefiltering_is_counted_and_can_be_left_out() -> None:
    matcher, _ = waiting()
    matcher.match({"a": 1})
    before = matcher.stats().notes["questions pre-filtered"]
    assert isinstance(before, int)
    matcher.match({"a": 1})
    assert matcher.stats().notes["questions pre-filtered"] == before + 100
    assert matcher.engine.joins is not None
    matcher.engine.joins.prefiltering = False
    assert matcher.match({"a": 1}) == []
    assert matcher.stats().notes["questions pre-filtered"] == before + 100
