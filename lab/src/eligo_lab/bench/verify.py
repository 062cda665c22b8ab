"""Before anything is timed: do all contenders say the same, and does the reference agree?

Each event's rows are compared as digests, one by one and in a batch; the first difference is taken apart and told. A
sample of events and rules, half of them matches, is put to the reference evaluator, which shares no code with any
index.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from eligo.compile.compiled import I32
from eligo.errors import EligoError
from eligo.language import parse
from eligo.language.reference import matches
from eligo_lab.bench.contenders.base import Contender
from eligo_lab.bench.prepare import Prepared

_EVENTS = 1000  # compared; of more, so many evenly spaced ones
_REFERENCE_EVENTS = 20
_MANY_EVENTS, _MANY_RULES = 5, 1_000  # of these, events that are asked about so many more rules
_REFERENCE_RULES = 20  # of those that match and of all, for each of these events


class DisagreementError(EligoError):
    """Contenders, or a contender and the reference, that differ on an event and a rule."""


@dataclass(frozen=True)
class Verified:
    """What was compared."""

    events: int
    pairs: int  # of an event and a rule, put to the reference
    matches: float  # rules that one of these events matches, on average


def verify(
    prepared: Prepared,
    contenders: Sequence[Contender],
    seed: int,
    step: Callable[[], None] = lambda: None,
    most: int = _EVENTS,
) -> Verified:
    """Compare all contenders with the first, and that with the reference; `DisagreementError` says what differs."""
    chosen = _spread(len(prepared.places), most)
    first = contenders[0]
    digests, total = [], 0
    for event in chosen:
        rows = first.rows(event)
        digests.append(_digest(rows))
        total += len(rows)
    for contender in contenders:
        if contender is not first:
            for event, digest in zip(chosen, digests, strict=True):
                if _digest(contender.rows(event)) != digest:
                    raise _disagreement(prepared, contenders, event, first.rows(event), contender.rows(event))
        _verify_batch(prepared, contenders, contender, dict(zip(chosen, digests, strict=True)))
        step()
    pairs = _verify_reference(prepared, contenders, chosen, random.Random(seed))
    return Verified(len(chosen), pairs, total / max(len(chosen), 1))


def _spread(count: int, most: int) -> list[int]:
    """Evenly spaced numbers below count, at most so many."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64)).tolist() if count else []


def _digest(rows: I32) -> bytes:
    return blake2b(np.ascontiguousarray(rows, np.int32).tobytes(), digest_size=16).digest()


def _verify_batch(
    prepared: Prepared, contenders: Sequence[Contender], contender: Contender, expected: dict[int, bytes]
) -> None:
    missing = set(expected)
    for start, ends, rows in contender.batches():
        for i in range(len(ends) - 1):
            digest = expected.get(start + i)
            missing.discard(start + i)
            if digest is not None and _digest(rows[ends[i] : ends[i + 1]]) != digest:
                batch = rows[ends[i] : ends[i + 1]].copy()
                one = contenders[0].rows(start + i)
                raise _disagreement(prepared, contenders, start + i, one, batch, f"{contender.name} in a batch")
    for event in sorted(missing):
        one, none = contenders[0].rows(event), np.zeros(0, np.int32)
        if contender.has_batch and len(one):
            raise _disagreement(prepared, contenders, event, one, none, f"{contender.name} in a batch")


def _verify_reference(
    prepared: Prepared, contenders: Sequence[Contender], chosen: list[int], rng: random.Random
) -> int:
    asked: list[tuple[int, int, bool]] = []
    for event in rng.sample(chosen, min(_REFERENCE_EVENTS, len(chosen))):
        found = set(contenders[0].rows(event).tolist())
        some = set(rng.sample(sorted(found), min(_REFERENCE_RULES, len(found))))
        some.update(rng.randrange(prepared.rules) for _ in range(min(_REFERENCE_RULES, prepared.rules)))
        if len(asked) < _MANY_RULES * _MANY_EVENTS:  # few events about many rules, lest all miss the same matches
            some.update(rng.randrange(prepared.rules) for _ in range(min(_MANY_RULES, prepared.rules)))
        asked.extend((event, row, row in found) for row in sorted(some))
    roots = [parse(text) for text in prepared.texts([row for _, row, _ in asked])]
    for (event, row, said), root in zip(asked, roots, strict=True):
        if matches(root, prepared.dicts[event], prepared.absent, prepared.multi) != said:
            raise DisagreementError(_picture(prepared, event, row, _opinions(contenders, event, row)))
    return len(asked)


def _disagreement(
    prepared: Prepared, contenders: Sequence[Contender], event: int, left: I32, right: I32, other: str = ""
) -> DisagreementError:
    row = int(np.setxor1d(left, right)[0]) if len(np.setxor1d(left, right)) else -1
    if row < 0:
        name = other or "a contender"
        return DisagreementError(f"event {event}: {name} gives the right rules, but in another order, or some twice")
    opinions = _opinions(contenders, event, row)
    if other:
        opinions[other] = row in right
    return DisagreementError(_picture(prepared, event, row, opinions))


def _opinions(contenders: Sequence[Contender], event: int, row: int) -> dict[str, bool]:
    return {contender.name: bool(np.isin(row, contender.rows(event))) for contender in contenders}


def _picture(prepared: Prepared, event: int, row: int, opinions: dict[str, bool]) -> str:
    text = prepared.texts([row])[0]
    given: dict[str, Any] = prepared.dicts[event]
    truth = matches(parse(text), given, prepared.absent, prepared.multi)
    said = [
        f"  {name:<24}{'matches' if says else 'does not match'}{'' if says == truth else '   <- wrong'}"
        for name, says in (*opinions.items(), ("the reference", truth))
    ]
    return "\n".join(
        (
            "the contenders disagree, so nothing was measured; the first difference:",
            f"  event {event}: {given!r}",
            f"  rule {row}: {text}",
            *said,
        )
    )
