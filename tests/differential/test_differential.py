"""Every index with every evaluator, under both semantics and in every container, against the reference.

`make test` has a small round and a short walk of each theme, 10⁸ comparisons in all: each pair of index and evaluator
under one of the two semantics, which take turns. `make prove` goes on for as long as asked, with rules and events that
nobody has seen yet.
"""

from __future__ import annotations

import os

import pytest

from eligo.prove import prove
from eligo.prove.draw import THEMES

NAMES = [theme.name for theme in THEMES]


@pytest.mark.parametrize("theme", NAMES)
def test_all_answers_are_those_of_the_reference(theme: str) -> None:
    proof = prove(themes=[theme], forms=["rounds"], scale=0.42, half=NAMES.index(theme) % 2)
    assert not proof.differences, "\n".join(program for _, program in proof.differences)
    assert proof.pairs > 0


@pytest.mark.parametrize("theme", NAMES)
def test_all_answers_are_right_after_any_steps(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if NAMES.index(theme) % 2:
        monkeypatch.setattr("eligo.segments.rule_set.SEALED", 8)  # rules added one by one are soon indexed and merged
    proof = prove(themes=[theme], forms=["walks"], scale=0.25, half=(NAMES.index(theme) + 1) % 2)
    assert not proof.differences, "\n".join(program for _, program in proof.differences)
    assert proof.steps > 2_500


@pytest.mark.slow
def test_for_as_long_as_asked() -> None:
    proof = prove(seconds=float(os.environ.get("ELIGO_PROVE_SECONDS", "120")), seed=1000)
    assert not proof.differences, "\n".join(program for _, program in proof.differences)
