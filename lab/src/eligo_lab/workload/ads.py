"""`ads`: advertisements and the sessions of a shop's visitors, shaped as the PS-Tree paper §7.4.

The dataset itself is not public. Its figures are: 122 dimensions; 3,000,000 rules of 1 to 56 predicates, 8 on average;
events of 20 pairs; and what an advertisement asks for (§7.1): channel, region, position, the visitor's profile.

    setting   12 attributes of a visit, most events have them: strings, or small numbers with an order (age, hour)
    target    10 attributes that say what the advertisement is about: category, brand, product, …; many values
    profile   all others: tag_0, tag_1, …, what is known about some visitors

Attributes are skewed (the r-th most popular has weight r^-zipf in rules and, as far as an event has room, in events),
and so are values (v = ⌊n · u^power⌋ for uniform u). Every rule has a target. How many values targets have is chosen,
so that an event matches no more than `matches` rules on average. `market.py` draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from eligo.errors import OptionError
from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload
from eligo_lab.workload.draft import Draft
from eligo_lab.workload.events import EventDraft, match_probability
from eligo_lab.workload.market import KNOWN, Market, market_of

_FEWEST, _DOUBLINGS = 32, 18  # values of a target: 32 · 2^k, k up to 18
_RULES, _EVENTS = 50_000, 1_000  # sampled to choose k
_SURE = 0.9  # of the matches asked for: what a sample may show, lest all rules show more


@dataclass(frozen=True)
class _World:
    """The market, and how many values targets have."""

    market: Market
    values: int

    @property
    def chosen(self) -> dict[str, object]:
        return {}

    def rules(self, rng: np.random.Generator, first: int, n: int) -> Draft:
        return self.market.rules(rng, n, self.values)

    def events(self, rng: np.random.Generator, first: int, n: int) -> EventDraft:
        return self.market.events(rng, n, self.values)


def _world(
    rng: np.random.Generator,
    rules: int,
    dimensions: int,
    rule_size: float,
    largest: int,
    event_size: float,
    zipf: float,
    matches: float,
    **_: object,
) -> _World:
    """What all rules and events have in common; parameters that make no sense are refused."""
    if dimensions <= len(KNOWN):
        raise OptionError(f"ads: dimensions={dimensions}: {len(KNOWN)} attributes are fixed; give more than that")
    if not 1 < rule_size < largest / 2:
        raise OptionError(f"ads: rule_size={rule_size:g} is not between 1 and half of largest={largest}")
    if largest > dimensions:
        raise OptionError(f"ads: largest={largest} is over dimensions={dimensions}: a rule has an attribute once")
    if not 1 <= event_size <= 0.8 * dimensions:
        raise OptionError(f"ads: event_size={event_size:g} is not in 1 … {0.8 * dimensions:g}, 0.8 of the dimensions")
    if not 0 <= zipf <= 5:
        raise OptionError(f"ads: zipf={zipf:g} is not in 0 … 5")
    if matches <= 0:
        raise OptionError(f"ads: matches={matches:g}: give more than 0")
    market = market_of(dimensions, rule_size, largest, event_size, zipf)
    return _World(market, _values_for(market, rng, rules, matches))


@workload(
    "advertisements and visits: 122 dimensions, rules of 1 to 56 predicates, skewed attributes and values",
    blocks=_world,
)
def ads(
    rules: Rules = 100_000,
    events: Events = 1_000,
    dimensions: Annotated[int, "attributes that there are"] = 122,
    rule_size: Annotated[float, "predicates of a rule, on average"] = 8.0,
    largest: Annotated[int, "most predicates of a rule"] = 56,
    event_size: Annotated[float, "attributes of an event, on average"] = 20.0,
    zipf: Annotated[float, "how far a few attributes are preferred: the r-th has weight r^-zipf"] = 1.0,
    matches: Annotated[float, "most rules that an event matches, on average"] = 100.0,
    seed: Seed = 1,
) -> Workload:
    """See the top of this file."""
    asked = dict(locals())
    rng = np.random.default_rng(seed)
    world = _world(rng, **asked)
    draft, visits = world.rules(rng, 0, rules), world.events(rng, 0, events)
    match = match_probability(draft, visits)
    sizes = np.diff(draft.conjunction_offsets)
    return Workload(
        "ads",
        asked,
        draft,
        visits.table(),
        {
            "match": match,
            "matches": match * rules,
            "rule_size": float(sizes.mean()),
            "smallest": float(sizes.min()),
            "largest": float(sizes.max()),
            "event_size": len(visits.attribute) / events,
            "target_values": world.values,
        },
    )


def _values_for(market: Market, rng: np.random.Generator, rules: int, matches: float) -> int:
    """The fewest values of targets, in doublings, with which an event matches no more rules than that."""

    def found(doublings: int) -> float:
        values = _FEWEST << doublings
        some = min(rules, _RULES)
        return rules * match_probability(market.rules(rng, some, values), market.events(rng, _EVENTS, values))

    if found(_DOUBLINGS) > _SURE * matches:
        raise OptionError(
            f"ads: matches={matches:g} is less than these parameters reach: {rules:,} rules give about "
            f"{found(_DOUBLINGS) / _SURE:.2g} matches an event; ask for more, or give larger rules or less zipf"
        )
    least, most = 0, _DOUBLINGS
    while least < most:
        middle = (least + most) // 2
        if found(middle) > _SURE * matches:
            least = middle + 1
        else:
            most = middle
    return _FEWEST << least
