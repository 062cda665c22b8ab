"""Rows are read back as the predicates that they were made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eligo
from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.compiled import Compiled, unique
from eligo.compile.strings import Strings
from eligo.index.rows.row_decoder import predicates_of
from eligo.index.rows.row_encoder import rows_of
from eligo.language import parse
from eligo.language.normalize import normalize
from eligo.prove.draw import THEMES, Drawer

MULTI = frozenset({"m"})
TEXTS = [
    "a = 5", "a = 5.5", "a < 0", "a <= 0", "a > -1", "a > 0 and a < 1", "a between -3 and 7", "a in (1, 2, 3)", "a = 1e300",
    "a > 9007199254740993", "a < -9007199254740993", "a >= 9223372036854775807", "a > 1e19", "a < -1e19", "a != 5",
    "a not in (1, 2, 3, 70)", "a = true", "a = false", "a in (true, false)", "a != true", "a is null", "a is not null",
    "a = 'x'", "a != 'x'", "a in ('z', 'x', 'y')", "a not in ('z', 'x', 'y')", "a = ''", "a > 'm'", "a between 'b' and 'd'",
    "a like 'ab%'", "a like '%b%'", "a not like '%b%'", "a in (1, 'x', true)", "a not in (1, 'x')", "m contains all (1, 'x')",
    "not m contains any (1, 2)", "m > 3 and m < 5", "a > timestamp '2020-01-01T00:00:00Z'", "a != date '2021-05-06'",
    "a in (" + ", ".join(f"'s{i}'" for i in range(500)) + ")", "a in (" + ", ".join(map(str, range(0, 3000, 7))) + ")",
    "a > 1 and a < 2 or a = 70 or a > 1000000", "true", "a = 1 and b = 2 and c > 3",
]  # fmt: skip


def compiled(rules: list[Any], absent: str) -> tuple[Compiled, Strings]:
    strings = Strings()
    builder = Builder(Attributes(), strings, absent=absent, multi=MULTI)
    for rule in rules:
        root = parse(rule) if isinstance(rule, str) else rule
        builder.add(normalize(root, multi=MULTI, absent=absent))
    return unique(builder.finish()), strings


def told(rules: Compiled) -> list[list[tuple[Any, ...]]]:
    """What each conjunction says: its predicates with all their cuts, in some order."""
    said = []
    for p in range(rules.predicates):
        runs = slice(rules.run_offsets[p], rules.run_offsets[p + 1])
        cuts = zip(rules.low_kind[runs], rules.low_key[runs], rules.low_key2[runs], rules.high_kind[runs],
                   rules.high_key[runs], rules.high_key2[runs], strict=True)  # fmt: skip
        head = int(rules.attribute[p]), int(rules.flags[p]), int(rules.pattern[p])
        said.append((*head, tuple(tuple(map(int, run)) for run in cuts)))
    conjunctions = np.split(rules.conjunction, rules.conjunction_offsets[1:-1])
    return [sorted(said[p] for p in some) for some in conjunctions[: rules.conjunctions]]


def check(rules: list[Any], absent: str) -> None:
    whole, strings = compiled(rules, absent)
    again = Compiled(**predicates_of(*rows_of(whole, strings), strings), **whole.trees())
    assert told(again) == told(whole)
    assert again.predicates == whole.predicates


@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_every_shape(absent: str) -> None:
    for text in TEXTS:
        check([text], absent)
    check(TEXTS, absent)


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_random_rules(theme: Any, absent: str) -> None:
    drawer = Drawer(theme, 7)
    check([drawer.rule() for _ in range(300)], absent)


@pytest.mark.parametrize("index", ["be-tree", "pst-hash", "pst-bloom"])
def test_an_index_of_rows_gives_its_predicates_back(index: str) -> None:
    m = eligo.Matcher(index, "dewey", multi=MULTI)
    m.add_many(enumerate(TEXTS))
    (segment,) = m.engine.rules.segments  # type: ignore[attr-defined]
    assert segment.conjunctions is None
    plain = eligo.Matcher(multi=MULTI)
    plain.add_many(enumerate(TEXTS))
    (other,) = plain.engine.rules.segments  # type: ignore[attr-defined]
    assert sorted(map(str, told(segment.whole()))) == sorted(map(str, told(other.whole())))
