"""Rules of every operator over few attributes, and events that satisfy many of them: to compare one index with another.

Unlike the contract's random trees these are conjunctions, as many as an index needs to grow its structure.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np

import eligo
from eligo.compile.conjunctions import Conjunctions, build_conjunctions
from eligo.compile.encode import Encoder
from eligo.compile.events import EventBuffer

NUMBERS, TEXTS, DAYS, SEVERAL = [f"n{i}" for i in range(6)], ["s0", "s1"], ["t0"], ["m0", "m1"]
_WORDS = ["", "a", "ab", "abc", "b", "ba", "c", "zz"]


def texts(count: int, seed: int, most: int = 5) -> list[str]:
    """Conjunctions of one to `most` predicates."""
    rng = random.Random(seed)
    return [" and ".join(predicate(rng) for _ in range(rng.randint(1, most))) for _ in range(count)]


def predicate(rng: random.Random) -> str:
    name = rng.choice(NUMBERS + NUMBERS + TEXTS + DAYS + SEVERAL)
    if name in TEXTS:
        value: Callable[[], Any] = lambda: f"'{rng.choice(_WORDS)}'"  # noqa: E731
    elif name in DAYS:
        value = lambda: f"date '{date(2026, 1, 1) + timedelta(rng.randrange(6))}'"  # noqa: E731
    else:
        value = lambda: rng.randrange(8)  # noqa: E731
    some = ", ".join(str(value()) for _ in range(rng.randint(1, 3)))
    low, high = sorted((value(), value()))
    forms = [f"{name} = {value()}"] * 3
    forms += [f"{name} {op} {value()}" for op in ("!=", "<", "<=", ">", ">=")]
    forms += [f"{name} in ({some})", f"{name} not in ({some})", f"{name} between {low} and {high}"]
    forms += [f"not ({name} < {value()})", f"{name} is null", f"{name} is not null"]
    if name in TEXTS:
        forms += [f"{name} like '{rng.choice(('a%', '%b', '_', 'a_%'))}'", f"{name} not like '%a%'"]
    if name in SEVERAL:
        forms += [f"{name} contains {how} ({some})" for how in ("any", "all", "none")]
    return rng.choice(forms)


def events(count: int, seed: int) -> list[dict[str, Any]]:
    """Attributes absent, of another kind, of several values, or ranges."""
    rng = random.Random(seed)
    return [event(rng) for _ in range(count)]


def event(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in NUMBERS + TEXTS + DAYS + SEVERAL:
        form = rng.random()
        if form < 0.25:
            continue
        if name in TEXTS:
            made[name] = rng.choice(_WORDS)
        elif name in DAYS:
            made[name] = date(2026, 1, 1) + timedelta(rng.randrange(6))
        elif name in SEVERAL:
            made[name] = [rng.randrange(8) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        else:
            made[name] = rng.randrange(8)
            if form > 0.9:
                made[name] = rng.choice(("a", True, 2.5, eligo.Between(2, 4), eligo.OneOf(1, 5, 6), eligo.Below(3)))
    return made


def compiled(rules: Sequence[str], absent: str = "fails") -> tuple[Conjunctions, Encoder]:
    """The conjunctions of rules, and what encodes events for them."""
    # An index of rows: its events bring more strings with their bytes than others need.
    m = eligo.Matcher(index="be-tree-batch", absent=absent, multi=SEVERAL)  # type: ignore[arg-type]
    m.add_many(enumerate(rules))
    rules_of_it = m.engine.rules
    (segment,) = rules_of_it.segments  # type: ignore[attr-defined]
    recipe = rules_of_it.recipe
    conjunctions = build_conjunctions(segment.whole(), recipe.strings, len(recipe.attributes))[1]
    return conjunctions, rules_of_it.view.encoder  # type: ignore[attr-defined]


def answers(index: Any, encoder: Encoder, some: Sequence[dict[str, Any]]) -> list[list[int]]:
    """The conjunctions that each event satisfies, ascending."""
    buffer = EventBuffer()
    for one in some:
        encoder.encode(one, buffer)
    scratch = index.scratch()
    return [np.sort(scratch.found[: index.search(buffer, i, scratch)]).tolist() for i in range(len(some))]
