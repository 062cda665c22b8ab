"""Every index with every evaluator, under both semantics and in every container, against the reference.

`make test` has a small round and a short walk of each theme, 10⁸ comparisons in all: each pair of index and evaluator
under one of the two semantics, which take turns. So do the stabbing indexes, two in each round and walk, because they
have one search kernel, and the indexes of the lab. `make prove` goes on for as long as asked, with rules and events that nobody has seen yet.
"""

from __future__ import annotations

import os
import random

import pytest

from eligo.index.registry import INDEXES
from eligo.index.stabbing.index import Stabbing
from eligo.prove import prove
from eligo.prove.draw import THEMES
from eligo.segments import blocks, planning, segment

NAMES = [theme.name for theme in THEMES]
STABBING = [name for name, kind in INDEXES.all().items() if issubclass(kind, Stabbing)]
OTHERS = [name for name, kind in INDEXES.all().items() if not kind.__module__.startswith("eligo.")]


def taking_turns(turn: int) -> list[str]:
    """All indexes but those of which two take turns and it is the turn of others."""
    chosen = {names[(2 * turn + i) % len(names)] for names in (STABBING, OTHERS) for i in range(2)}
    return [name for name in INDEXES.all() if name not in (*STABBING, *OTHERS) or name in chosen]


def test_every_index_has_its_turn_under_both_semantics() -> None:
    for name in INDEXES.all():
        turns = [(turn + form, turn % 2) for form in range(2) for turn in range(len(NAMES))]
        assert {half for turn, half in turns if name in taking_turns(turn)} == {0, 1}


@pytest.mark.parametrize("theme", NAMES)
def test_all_answers_are_those_of_the_reference(theme: str) -> None:
    turn = NAMES.index(theme)
    proof = prove(themes=[theme], forms=["rounds"], scale=0.36, half=turn % 2, indexes=taking_turns(turn))
    assert not proof.differences, "\n".join(program for _, program in proof.differences)
    assert proof.pairs > 0


@pytest.mark.parametrize("theme", NAMES)
def test_all_answers_are_right_after_any_steps(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = NAMES.index(theme) + 1
    if NAMES.index(theme) % 2:
        monkeypatch.setattr("eligo.segments.rule_set.SEALED", 8)  # rules added one by one are soon indexed and merged
    proof = prove(themes=[theme], forms=["walks"], scale=0.25, half=turn % 2, indexes=taking_turns(turn))
    assert not proof.differences, "\n".join(program for _, program in proof.differences)
    assert proof.steps > 2_500


@pytest.mark.parametrize("theme", ["kinds", "several", "texts"])
def test_whatever_auto_plans_is_right(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(theme)
    for module in (planning, segment):
        monkeypatch.setattr(module, "LEAST", 2)
    monkeypatch.setattr(blocks, "WORTH", 1)
    monkeypatch.setattr(planning, "_fastest", lambda tried, room: draw.randrange(len(tried)))
    proof = prove(themes=[theme], scale=0.3, indexes=["auto"], evaluators=["shared", "interval"])
    assert not proof.differences, "\n".join(program for _, program in proof.differences)
    assert proof.steps > 100


@pytest.mark.slow
def test_for_as_long_as_asked() -> None:
    proof = prove(seconds=float(os.environ.get("ELIGO_PROVE_SECONDS", "120")), seed=1000)
    assert not proof.differences, "\n".join(program for _, program in proof.differences)
