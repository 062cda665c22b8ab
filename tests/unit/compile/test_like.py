"""The compiled LIKE and that of the reference say what dynamic programming says, of any pattern and any text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import eligo
from eligo.compile.like import like, like_automaton
from eligo.language.reference import like as reference_like
from eligo.language.render import render_value
from strategies import tried


def table_like(pattern: str, text: str) -> bool:
    """One row of truths for each piece of the pattern: whether the pieces so far fit the first n characters."""
    fits = [True] + [False] * len(text)
    for piece in re.findall(r"\\.|.", pattern, re.DOTALL):
        if piece == "%":
            fits = [any(fits[: n + 1]) for n in range(len(fits))]
        else:
            fits = [False, *(fits[n] and piece in ("_", c, "\\" + c) for n, c in enumerate(text))]
    return fits[-1]


def asked(kernel: Any, pattern: str, text: str) -> bool:
    """What a kernel says, pattern and text being the inner part of longer arrays of bytes."""
    data, read = (np.frombuffer(f"%_{part}_%".encode(), np.uint8) for part in (pattern, text))
    return bool(kernel(data, 2, len(data) - 2, read, 2, len(read) - 2))


def check(pattern: str, text: str) -> None:
    wanted = table_like(pattern, text)
    assert asked(like, pattern, text) == wanted
    assert asked(like_automaton, pattern, text) == wanted
    assert reference_like(pattern, text) == wanted


LETTERS = ("a", "b", "é", "è", "名", "\U0001f600", "%", "_", "\\")
_letters = st.sampled_from(LETTERS)
_literals = st.lists(_letters, max_size=4).map("".join)


def escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)


_pieces = st.one_of(_literals.map(escaped), st.sampled_from(("%", "_", "%%", "_%", "%_")))
patterns = st.lists(_pieces, max_size=8).map("".join)


@tried(2000)
@given(pattern=patterns, text=st.lists(_letters, max_size=12).map("".join))
def test_patterns_over_few_characters(pattern: str, text: str) -> None:
    check(pattern, text)


@st.composite
def long_pairs(draw: Any) -> tuple[str, str]:
    """A text that repeats itself, and a pattern made of long pieces of it, now and then with another character."""
    unit = draw(st.lists(_letters, min_size=1, max_size=3).map("".join))
    text = unit * draw(st.integers(1, 300)) + draw(_literals)
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        part = list(text[start : start + draw(st.sampled_from((3, 60, 63, 64, 65, 127, 128, 129, 200)))])
        parts.append("".join(escaped(c) if draw(st.integers(0, 9)) else "_" for c in part))
        parts.append(draw(st.sampled_from(("%", "", "%" + draw(_letters.map(escaped)), "_", "%_"))))
    begin = draw(st.sampled_from(("%", "", "%%")))
    return begin + "".join(parts), text


@tried(300)
@given(long_pairs())
@example(("%" + "a" * 63 + "_%", "a" * 200))
@example(("%" + "é" * 64 + "b%", "é" * 64 + "é" * 300 + "b"))
@example(("%" + "_" * 128 + "b", "名" * 300 + "b"))
@example(("%" + "ab" * 40 + "%" + "ba" * 40 + "c", "ab" * 200 + "c"))
def test_patterns_longer_than_a_word_of_the_automaton(pair: tuple[str, str]) -> None:
    check(*pair)


@pytest.mark.parametrize("index", ["propagation", "be-tree"])
def test_every_index_reads_escapes_and_long_patterns(index: str) -> None:
    texts = ["10%", "10x", "10%!", "a_b", "axb", "\\", "a\\b", "a" * 3000 + "b", "a" * 3000, "é_%\\" * 50]
    rules = ["10\\%", "10\\%%", "%\\%", "%\\_%", "a\\_b", "\\\\", "%\\\\%", "%" + "a" * 200 + "b%", "%" + "a" * 200 + "b_%",
             "%" + "é\\_\\%\\\\" * 20 + "%_", "_" * 3 + "%\\%\\\\"]  # fmt: skip
    for absent in ("fails", "classical"):
        m = eligo.Matcher(index, absent=absent)  # type: ignore[arg-type]
        for number, pattern in enumerate(rules):
            m.add(2 * number, f"s like {render_value(pattern)}")
            m.add(2 * number + 1, f"s not like {render_value(pattern)}")
        for text in texts:
            wanted = [2 * n if table_like(pattern, text) else 2 * n + 1 for n, pattern in enumerate(rules)]
            assert m.match({"s": text}) == wanted
            assert m.match_batch([{"s": text}])["rule"].to_pylist() == wanted
