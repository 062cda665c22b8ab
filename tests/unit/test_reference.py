"""The definition of truth, where it is more than a comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest

from eligo.language import parse
from eligo.language.ranges import Above, Between, NoneOf, OneOf, Range
from eligo.language.reference import like, matches


def by_regex(pattern: str, text: str) -> bool:
    wild = {"%": ".*", "_": "."}
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    return re.fullmatch("".join(wild.get(p) or re.escape(p[-1]) for p in pieces), text, re.DOTALL) is not None


def test_every_short_pattern_on_every_short_text() -> None:
    texts = ["".join(t) for n in range(5) for t in product("a%", repeat=n)]
    for pattern in ("".join(p) for n in range(5) for p in product(("a", "%", "_", r"\%", r"\_", r"\\"), repeat=n)):
        for text in texts:
            assert like(pattern, text) == by_regex(pattern, text), (pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"), [("_", "\n"), ("%", "a\nb"), ("_", "\U0001f600"), ("a_", "a%"), ("%", ""), ("\\\\\n", "\\\n")]
)
def test_wildcards_stand_for_any_character(pattern: str, text: str) -> None:
    assert like(pattern, text)


@pytest.mark.parametrize(("pattern", "text"), [("_", ""), ("_", "ab"), ("a.c", "abc"), ("\\%", "a"), ("a%", "ba")])
def test_everything_else_stands_for_itself(pattern: str, text: str) -> None:
    assert not like(pattern, text)


def test_no_pattern_reads_a_character_of_the_text_twice() -> None:
    class Counted(str):
        read = 0

        def __iter__(self) -> Iterator[str]:
            for character in str.__iter__(self):
                Counted.read += 1
                yield character

    assert not like("%a" * 30 + "%b", Counted("a" * 2000))
    assert like("%" + "a" * 500 + "_%", Counted("a" * 2000))
    assert Counted.read == 4000


@pytest.mark.parametrize(
    ("rule", "value", "wanted"),
    [
        (r"x like '1\%%'", Between("1%a", "1%b"), True),
        (r"x like '1\%%'", Above("1&"), False),
        (r"not x like '1\%%'", Between("1%", "1%z"), False),
        (r"not x like '1\%%'", Between("1%", "1&"), True),
        (r"x like '1\_'", OneOf("1x", "1_"), True),
        (r"x like '1\_'", NoneOf("1_"), False),
    ],
)
def test_escaped_patterns_on_ranges(rule: str, value: Range, wanted: bool) -> None:
    assert matches(parse(rule), {"x": value}) is wanted
