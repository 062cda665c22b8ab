"""The kernel that reads rules in bulk agrees with the readable parser, on good, odd and broken text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.rule_texts import drawn, mutated

from eligo.compile.attributes import Attributes
from eligo.compile.builder import Builder
from eligo.compile.codes import STRING_CUT
from eligo.compile.compiled import Compiled
from eligo.compile.rule_text import reader
from eligo.compile.strings import Strings
from eligo.errors import EligoError
from eligo.language import Limits, parse
from eligo.language.limits import DEFAULT_LIMITS
from eligo.reading import normal_form
from eligo.segments.rule_table import MENTION, packed

MULTI = frozenset({"m", "n.o"})


def forms(compiled: Compiled, names: list[str], strings: list[str]) -> Iterator[Any]:
    """Every rule's tree, its conjunctions in full: predicates by name, strings as they are."""

    def cut(kind: int, key: int, key2: int) -> tuple[Any, ...]:
        return (kind, strings[key >> 1], key & 1) if kind == STRING_CUT else (kind, key, key2)

    low = list(zip(compiled.low_kind.tolist(), compiled.low_key.tolist(), compiled.low_key2.tolist(), strict=True))
    high = list(zip(compiled.high_kind.tolist(), compiled.high_key.tolist(), compiled.high_key2.tolist(), strict=True))
    predicates = []
    for p in range(compiled.predicates):
        runs = range(compiled.run_offsets[p], compiled.run_offsets[p + 1])
        pattern = int(compiled.pattern[p])
        name, flags = names[compiled.attribute[p]], int(compiled.flags[p])
        text = strings[pattern] if pattern >= 0 else ""
        predicates.append((name, flags, text, tuple((cut(*low[r]), cut(*high[r])) for r in runs)))
    for n in range(compiled.rules):
        tree = []
        for token in compiled.tree[compiled.tree_offsets[n] : compiled.tree_offsets[n + 1]].tolist():
            if token < 0:
                tree.append(token)
                continue
            items = compiled.conjunction[compiled.conjunction_offsets[token] : compiled.conjunction_offsets[token + 1]]
            tree.append(sorted(predicates[p] for p in items.tolist()))
        yield tree


def expected(text: str, limits: Limits, absent: str, multi: frozenset[str]) -> Any:
    """What the readable way makes of a rule; an error if it is none."""
    attributes, strings = Attributes(), Strings()
    builder = Builder(attributes, strings, absent=absent, multi=multi)
    try:
        normal, hidden = normal_form(parse(text, limits), multi, absent)
        builder.add(normal)
    except EligoError as error:
        return error
    return next(forms(builder.finish(), attributes.names, list(strings))), hidden


def compare(texts: list[str], limits: Limits = DEFAULT_LIMITS, absent: str = "fails") -> int:
    """Read texts both ways; how many were read in bulk."""
    offsets, data = packed(texts)
    data.flags.writeable = False
    texts_read = reader.TextReader(limits, absent, MULTI)
    chunks = [(first, texts_read.read(data, offsets[first : stop + 1])) for first, stop in texts_read.chunks(offsets)]
    done = 0
    for first, found in chunks:
        attributes, strings = Attributes(["zz", "a"]), Strings()
        strings.intern("y")
        got = list(forms(found.numbered(attributes, strings), attributes.names, list(strings)))
        for place in np.flatnonzero(found.read).tolist():
            text = texts[first + place]
            right = expected(text, limits, absent, MULTI)
            assert not isinstance(right, EligoError), (text, right)
            hidden = tuple(MENTION + name for name in found.mentions.get(place, ()))
            assert (got[place], hidden) == right, text
            done += 1
        assert all(not tree for tree, read in zip(got, found.read.tolist(), strict=True) if not read)
    return done


@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_drawn_rules_are_read_as_the_readable_parser_reads_them(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    draw = random.Random(7)
    texts = [drawn(draw) for _ in range(4000)]
    assert compare(texts, absent=absent) > 1000
    monkeypatch.setattr(reader, "CHUNK", 500)
    compare(texts[:500], absent=absent)


@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_mutated_rules_are_read_alike_or_not_at_all(absent: str) -> None:
    draw = random.Random(8)
    compare([mutated(draw, drawn(draw, draw.choice((0, 3, 4)))) for _ in range(6000)], absent=absent)


def test_rules_that_take_much_memory_for_their_length() -> None:
    lists = [",".join(["1", "2.5", "''", "true"] * n) for n in (1, 5, 40)]
    names = [f"a{n}" for n in range(300)]
    texts = [
        *names,
        " or ".join(names),
        " and ".join(f"{name}!=1" for name in names),
        *(f"a not in({some})" for some in lists),
        *(f"{no}m contains all({some})" for some in (*lists, "1,2,3,4,5,6,7,8,9") for no in ("", "not ")),
        "(" * 120 + "a" + ")" * 120,
        "(" * 300 + "a" + ")" * 300,
        "not " * 100 + "a=1",
        "(a or " * 100 + "b" + ")" * 100,
        "(b and (a or " * 60 + "c" + "))" * 60,
        " or ".join(f"`{n}`like'{n}%'" for n in range(100)),
        " and ".join(f"a!={n}" for n in range(40)),
        " and ".join(f"a<{n}" for n in range(100)),
        "".join(f"(a!={n} and " for n in range(50)) + "b" + ")" * 50,
        "a in (" + ",".join(str(n * 7919 % 5003) for n in range(5000)) + ")",
        "a = '" + "é" * 40_000 + "'",
        *(
            "",
            " ",
            "(",
            ")",
            "'",
            "`",
            "a",
            "a=",
            "a in",
            "a in (",
            "a in (1",
            "not",
            "a like '",
            "date '",
            "1",
            "-",
            ".",
        ),
        *(
            "a = date '2",
            "a = timestamp '2026-01-01 1",
            "a = timestamp '2026-01-01 10:00:0",
            "a = 1e",
            "a between 1 an",
        ),
    ]
    for few in (1, len(texts)):  # at the end of memory, and amid it
        for first in range(0, len(texts), few):
            compare(texts[first : first + few])
    assert compare(texts) > 300


def test_limits_are_those_of_the_readable_parser() -> None:
    texts = ["a = 1 and b = 2 or c = 3", "((((a = 1))))", "a in (1, 2, 3)", "a = 1", "a or b", "not a"]
    for limits in (Limits(text=10), Limits(depth=4), Limits(depth=9), Limits(values=2), Limits(leaves=4), Limits()):
        compare(texts, limits)
    assert compare(texts) == len(texts)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_a_million_mutated_rules_are_read_alike_or_not_at_all(seed: int) -> None:
    draw = random.Random(1000 + seed)
    texts = [mutated(draw, drawn(draw, draw.choice((1, 3, 4, 5)))) for _ in range(10_000)]
    compare(texts, absent=draw.choice(("fails", "classical")))
