"""Normalisation by example; that it preserves truth is a property test."""

from __future__ import annotations

from pathlib import Path

import pytest

from eligo.language import And, Not, Or, Predicate, parse, render
from eligo.language.normalize import normalize
from eligo.language.tree import children_of


def fixtures() -> list[tuple[str, str, str, frozenset[str]]]:
    cases = []
    absent, multi = "fails", frozenset[str]()
    for line in Path(__file__).with_name("rewrites.txt").read_text().splitlines():
        if line.startswith("["):
            inside = line.strip("[]")
            absent = "classical" if inside == "classical" else "fails"
            multi = frozenset(inside.removeprefix("multi:").split()) if inside.startswith("multi:") else frozenset()
        elif line and not line.startswith("#"):
            given, wanted = line.split(" => ")
            cases.append((given, wanted, absent, multi))
    return cases


@pytest.mark.parametrize(("given", "wanted", "absent", "multi"), fixtures())
def test_rewrites(given: str, wanted: str, absent: str, multi: frozenset[str]) -> None:
    assert render(normalize(parse(given), multi=multi, absent=absent)) == wanted


def test_the_normal_form_alternates() -> None:
    root = normalize(parse("a = 1 and not (b = 2 and (c = 3 or not (d = 4 or e = 5 and (f = 6 or g = 7))))"))
    todo = [root]
    while todo:
        node = todo.pop()
        assert not isinstance(node, Not)
        for child in children_of(node):
            assert type(child) is not type(node) or isinstance(child, Predicate)
            todo.append(child)


def test_deep_trees_cost_no_stack() -> None:
    node = Predicate("a", "=", (1,))
    for i in range(20_000):
        node = (
            Not(And((node, Predicate("b", "=", (i,))))) if i % 2 else Or((Not(node), Predicate("c", "like", ("%x%",))))
        )
    normalize(node)
