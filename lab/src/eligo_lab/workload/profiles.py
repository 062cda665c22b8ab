"""`profiles`: user profiles as closed intervals, the report on profile matching §4.1.6.

A profile is a `between` on every attribute; a document has a value for every attribute, uniform over all values that
an interval can hold. Profiles lie around an origin: "skew determined how dispersed the profiles would be", by a Zipf
distribution of the distance, in either direction.

    0 ──────────[─────]────────── origin ─────────────────── domain ─────]
              low     low + interval_size                    low = origin ± d,  P(d) ∝ (d + 1)^-skew

Low ends lie below `domain`, and high ends as far above as intervals are long: none is cut off at an edge, however much
they overlap.

Overlap is the share of pairs of profiles whose intervals on an attribute have a value in common. The paper varies it
by the size of the intervals; here it can be asked for, and the size is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64
from eligo.errors import OptionError
from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload
from eligo_lab.workload.draft import BETWEEN, Draft, conjunctive
from eligo_lab.workload.events import EventDraft, match_probability

_PAIRS = 200_000  # of profiles, to measure overlap on
_SAMPLE = 100_000  # profiles that an asked overlap is reached with, where they are made in blocks


@dataclass(frozen=True)
class _World:
    """Where profiles lie, and how long their intervals are."""

    attributes: int
    domain: int
    interval_size: int
    skew: float

    @property
    def chosen(self) -> dict[str, object]:
        return {"interval_size": self.interval_size}

    def rules(self, rng: np.random.Generator, first: int, n: int) -> Draft:
        return _profiles(_lows(rng, (n, self.attributes), self.domain, self.skew), self.interval_size)

    def events(self, rng: np.random.Generator, first: int, n: int) -> EventDraft:
        return _documents(rng, n, self.attributes, self.domain + self.interval_size)


def _world(
    rng: np.random.Generator,
    rules: int,
    attributes: int,
    domain: int,
    interval_size: int,
    overlap: float | None,
    skew: float,
    **_: object,
) -> _World:
    _check(attributes, domain, interval_size, skew)
    if overlap is not None:
        some = min(rules, _SAMPLE)
        low = _lows(rng, (some, attributes), domain, skew)
        interval_size = _size_for(overlap, _apart(low, _pairs(rng, some)), domain)
    return _World(attributes, domain, interval_size, skew)


@workload("profiles as closed intervals around an origin, by size or overlap; documents anywhere", blocks=_world)
def profiles(
    rules: Rules = 1_000,
    events: Events = 50,
    attributes: Annotated[int, "attributes, all of them in every profile and document"] = 2,
    domain: Annotated[int, "low ends of intervals, 0 to domain - 1; values go on by interval_size"] = 10_000,
    interval_size: Annotated[int, "length of an interval: high - low"] = 10,
    overlap: Annotated[float | None, "share of overlapping pairs, if given instead of interval_size"] = None,
    skew: Annotated[float, "how near to the origin profiles are: 0 anywhere, to 5 nearly all"] = 0.8,
    seed: Seed = 1,
) -> Workload:
    """See the top of this file."""
    asked = dict(locals())
    _check(attributes, domain, interval_size, skew)
    rng = np.random.default_rng(seed)
    low = _lows(rng, (rules, attributes), domain, skew)
    apart = _apart(low, _pairs(rng, rules))
    if overlap is not None:
        interval_size = _size_for(overlap, apart, domain)
    draft, documents = _profiles(low, interval_size), _documents(rng, events, attributes, domain + interval_size)
    return Workload(
        "profiles",
        asked | {"interval_size": interval_size},
        draft,
        documents.table(),
        {
            "overlap": _mean(apart <= interval_size),
            "overlap_everywhere": _mean((apart <= interval_size).all(axis=1)),
            "match": match_probability(draft, documents),
        },
    )


def _check(attributes: int, domain: int, interval_size: int, skew: float) -> None:
    """Refuse what cannot be made."""
    if attributes < 1:
        raise OptionError(f"profiles: attributes={attributes}: give 1 or more")
    if domain < 2:
        raise OptionError(f"profiles: domain={domain} leaves no room for intervals; give 2 or more")
    if not 0 <= interval_size < domain:
        raise OptionError(f"profiles: interval_size={interval_size} is not in 0 … domain - 1 = {domain - 1}")
    if not 0 <= skew <= 5:
        raise OptionError(f"profiles: skew={skew:g} is not in 0 … 5")


def _profiles(low: I64, interval_size: int) -> Draft:
    """Rules from their low ends, a row for each."""
    rules, attributes = low.shape
    return conjunctive(
        _names(attributes),
        np.tile(np.arange(attributes, dtype=np.int32), rules),
        np.full(rules * attributes, BETWEEN, np.uint8),
        2 * np.arange(rules * attributes + 1),
        np.stack((low, low + interval_size), axis=2).reshape(-1),
        attributes * np.arange(rules + 1),
    )


def _documents(rng: np.random.Generator, events: int, attributes: int, values: int) -> EventDraft:
    return EventDraft(
        _names(attributes),
        attributes * np.arange(events + 1),
        np.tile(np.arange(attributes, dtype=np.int32), events),
        rng.integers(0, values, events * attributes),
    )


def _pairs(rng: np.random.Generator, rules: int) -> I64:
    """Some pairs of different profiles."""
    pairs = rng.integers(0, rules, (2, _PAIRS))
    return pairs[:, pairs[0] != pairs[1]]


def _names(attributes: int) -> tuple[str, ...]:
    return tuple(f"a{number}" for number in range(attributes))


def _apart(low: I64, pairs: I64) -> I64:
    """How far apart the low ends of each pair are: intervals as long as that overlap."""
    apart: I64 = np.abs(low[pairs[0]] - low[pairs[1]])
    return apart


def _lows(rng: np.random.Generator, shape: tuple[int, int], domain: int, skew: float) -> I64:
    """Where intervals begin: the origin, the middle of the domain, and a distance from it, to either side."""
    origin = domain // 2
    sums = np.cumsum(np.arange(1, origin + 1, dtype=np.float64) ** -skew)
    distance = np.searchsorted(sums[:-1], rng.random(shape) * sums[-1], side="right")
    low: I64 = origin + np.where(rng.random(shape) < 0.5, -distance, distance)
    return low


def _size_for(wanted: float, apart: I64, domain: int) -> int:
    """The interval size whose overlap is nearest to the one asked for; overlap grows with size."""
    if not 0 < wanted <= 1:
        raise OptionError(f"profiles: overlap={wanted:g} is no share: give above 0, up to 1")

    def overlap(size: int) -> float:
        return _mean(apart <= size)

    if overlap(0) > 1.1 * wanted:
        raise OptionError(
            f"profiles: overlap={wanted:g} is less than these parameters reach: intervals of one value overlap with "
            f"{overlap(0):.2g}; ask for more, or give a larger domain or less skew"
        )
    least, most = 0, domain - 1
    while least < most:
        middle = (least + most) // 2
        if overlap(middle) < wanted:
            least = middle + 1
        else:
            most = middle
    return max(0, least - 1) if wanted - overlap(max(0, least - 1)) < overlap(least) - wanted else least


def _mean(holds: NDArray[np.bool_] | np.bool_) -> float:
    return float(holds.mean()) if holds.size else 0.0
