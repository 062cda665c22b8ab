"""Rounds and walks for as long as asked, over every registered index and evaluator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TypeVar

from eligo.errors import OptionError
from eligo.evaluate.registry import EVALUATORS
from eligo.index.registry import INDEXES, choose
from eligo.prove.cases import SEMANTICS, Case, Semantics, Setup
from eligo.prove.draw import THEMES, Theme
from eligo.prove.rounds import Round
from eligo.prove.script import script_of
from eligo.prove.shrink import shrink
from eligo.prove.walks import Walk

T = TypeVar("T")

STEPS = 250  # of a walk
FORMS = ("rounds", "walks")
_SHRINKING = 60.0  # seconds for each difference
_MOST = 5  # differences after which there is no point in going on


@dataclass
class Proof:
    """What was compared, and what differed: a program for each setup that gave a wrong answer."""

    pairs: int = 0  # comparisons of a rule with an event
    steps: int = 0  # of walks, added up over all matchers
    seconds: float = 0.0
    differences: list[tuple[Setup, str]] = field(default_factory=list)


def prove(
    seconds: float | None = None,
    seed: int = 0,
    indexes: Sequence[str] = (),
    evaluators: Sequence[str] = (),
    themes: Sequence[str] = (),
    forms: Sequence[str] = FORMS,
    scale: float = 1.0,
    half: int | None = None,
    said: Callable[[str], None] = lambda line: None,
) -> Proof:
    """Compare every index with every evaluator and the reference.

    One round and one walk of each theme or, with `seconds`, as many as fit, with another seed each time. `scale`: times
    as many rules, events and steps as usual. `half`, 0 or 1: each index and evaluator under one of the two semantics,
    under the other one with the other half.
    """
    chosen = [theme.scaled(scale) for theme in ([_theme(name) for name in themes] or THEMES)]
    names = [choose(name).name for name in indexes] or list(INDEXES.all())
    others = [EVALUATORS.get(name).name for name in evaluators] or list(EVALUATORS.all())
    proof, started = Proof(), time.monotonic()

    def done() -> bool:
        proof.seconds = time.monotonic() - started
        return (seconds is not None and proof.seconds > seconds) or len(proof.differences) >= _MOST

    while not done():
        for theme in chosen:
            for form in forms:
                if form == "rounds":
                    drawn = Round(theme, seed)
                    _round(proof, drawn, _some(drawn.setups(names, others), half), done)
                else:
                    walk = Walk(theme, seed, int(scale * STEPS))
                    _walk(proof, walk, _some(list(product(names, others, SEMANTICS)), half), done)
                said(
                    f"seed {seed}, {form} of {theme.name}: {proof.pairs:,} comparisons, {proof.steps:,} steps, "
                    f"{len(proof.differences)} differences, {proof.seconds:,.0f} s"
                )
                if done():
                    return proof
        seed += 1
        if seconds is None:
            break
    return proof


def _theme(name: str) -> Theme:
    for theme in THEMES:
        if theme.name == name:
            return theme
    raise OptionError(f"unknown theme {name!r} (there are: {', '.join(theme.name for theme in THEMES)})")


def _some(setups: list[T], half: int | None) -> list[T]:
    """All, or one of each two: of the first pair of them one, of the next pair the other one, and so on."""
    if half is None:
        return setups
    return [setup for number, setup in enumerate(setups) if (number // 2 + number + half) % 2 == 0]


def _round(proof: Proof, drawn: Round, setups: Sequence[Setup], done: Callable[[], bool]) -> None:
    for setup in setups:
        pairs, failure = drawn.compare(setup)
        proof.pairs += pairs
        if failure is not None:
            _note(proof, failure.case, failure.longer, f"{failure.found!r} instead of {failure.wanted!r}")
        if done():
            return


def _walk(proof: Proof, walk: Walk, setups: Sequence[tuple[str, str, Semantics]], done: Callable[[], bool]) -> None:
    for index, evaluator, absent in setups:
        case, difference = walk.run(index, evaluator, absent)
        proof.steps += len(case.steps)
        if difference is not None:
            _note(proof, case, case, f"{difference.found!r} instead of {difference.wanted!r}")
        if done():
            return


def _note(proof: Proof, case: Case, longer: Case, seen: str) -> None:
    """Add a difference to the proof as a program: the smallest that shows it."""
    small = shrink(case, _SHRINKING) or shrink(longer, _SHRINKING)
    if small is None:
        text = f"# {seen:.500}\n# It did not differ when it was repeated, so there is no program for it.\n"
    else:
        text = script_of(*small)
    proof.differences.append((case.setup, text))
