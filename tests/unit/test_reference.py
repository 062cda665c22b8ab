"""The definition of truth, where it is more than a comparison."""

from __future__ import annotations

import re
from itertools import product
from time import perf_counter

import pytest

from eligo.language.reference import like


def by_regex(pattern: str, text: str) -> bool:
    wild = {"%": ".*", "_": "."}
    return re.fullmatch("".join(wild.get(c, re.escape(c)) for c in pattern), text, re.DOTALL) is not None


def test_every_short_pattern_on_every_short_text() -> None:
    texts = ["".join(t) for n in range(5) for t in product("ab", repeat=n)]
    for pattern in ("".join(p) for n in range(6) for p in product("ab%_", repeat=n)):
        for text in texts:
            assert like(pattern, text) == by_regex(pattern, text), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"), [("_", "\n"), ("%", "a\nb"), ("_", "\U0001f600"), ("a_", "a%"), ("%", "")]
)
def test_wildcards_stand_for_any_character(pattern: str, text: str) -> None:
    assert like(pattern, text)


@pytest.mark.parametrize(("pattern", "text"), [("_", ""), ("_", "ab"), ("a.c", "abc"), ("\\%", "a"), ("a%", "ba")])
def test_everything_else_stands_for_itself(pattern: str, text: str) -> None:
    assert not like(pattern, text)


def test_many_wildcards_do_not_take_for_ever() -> None:
    start = perf_counter()
    assert not like("%a" * 30 + "%b", "a" * 2000)
    assert like("%a" * 30 + "%", "a" * 2000)
    assert perf_counter() - start < 2
