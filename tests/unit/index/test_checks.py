"""A glance at an event agrees with the predicate itself, for every form that a check can take."""

from __future__ import annotations

import random

import numpy as np
import pytest

import eligo
from eligo.index import checks
from eligo.index.checks import FAILS, HOLDS, build_checks, glance
from eligo.language import parse
from eligo.language.reference import matches


@pytest.mark.parametrize("values", [1, 8, 29, 30, 31, 60, 64, 126, 127, 128, 500, 2047, 2048, 40_000])
@pytest.mark.parametrize("absent", ["fails", "classical"])
def test_glance(values: int, absent: str) -> None:
    """`values` different numbers make about twice as many spaces: up to 63 are bits, then fields of 7, 8, … bits."""
    rng = random.Random(values)
    some = [0, values - 1, *(rng.randrange(values) for _ in range(4))]
    texts = [f"x = {v}" for v in range(0, values, max(1, values // 2000))]
    texts += [f"x between {v} and {v + 1}" for v in some]
    for size in (2, 3, 4, 5, 6, 8, 9, 12):
        chosen = ", ".join(str(rng.randrange(values)) for _ in range(size))
        texts += [f"x in ({chosen})", f"x not in ({chosen})", f"not (x in ({chosen}))"]
    texts += [f"x {op} {v}" for v in some for op in ("<", ">", "!=")]
    texts += [f"not (x between {v} and {v + 3})" for v in some]
    m = eligo.Matcher(index="scan", absent=absent)  # type: ignore[arg-type]
    m.add_many(enumerate(texts))
    segment = m.engine.rules.view.segments[0]
    made = build_checks(segment.conjunctions)
    spaces = segment.conjunctions.spaces
    small = int(spaces.space_count[0]) <= checks.SMALL
    assert (set((made.code & 7).tolist()) == {checks.SOME}) == small
    # Every rule is one predicate: its conjunction has one item.
    predicate = {row: int(segment.conjunctions.items[segment.compiled.tree[row]]) for row in range(len(texts))
                 if len(segment.conjunctions) == len(segment.conjunctions.items)}  # fmt: skip
    trees = [parse(text) for text in texts]
    for value in (*some, -1, values + 5, 0.5, None):
        event = {} if value is None else {"x": value}
        wanted = {row for row, tree in enumerate(trees) if matches(tree, event, absent)}  # type: ignore[arg-type]
        assert m.match(event) == sorted(wanted)
        if value is None or not float(value).is_integer():
            continue
        space = int(np.searchsorted(spaces.number_int[: spaces.number_ints[0]], int(value), side="right"))
        at = 1 << space if small else space
        for row, p in predicate.items():
            answer = glance(made.code[p], made.word[p], np.int64(at))
            if made.code[p] & 7 != checks.SLOW:
                assert answer == (HOLDS if row in wanted else FAILS), (texts[row], value)


def test_a_list_that_repeats_its_first_space_has_no_other() -> None:
    for width in range(1, 33):
        fields = 64 // width
        word = 0
        for i in range(fields):
            word |= 1 << width * i  # the space 1 in every field
        code = np.int64(width << 4 | checks.LIST)
        signed = np.int64(word - (1 << 64) if word >= 1 << 63 else word)
        assert glance(code, signed, np.int64(1)) == HOLDS
        for value in {0, 2, 3, (1 << width) - 1} - {1}:
            if value < 1 << width:
                assert glance(code, signed, np.int64(value)) == FAILS, (width, value)
