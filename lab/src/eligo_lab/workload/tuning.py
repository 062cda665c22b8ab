"""How many bases, and which rules, so that rules match events with the probability asked for.

    events   K different bases, each as often as the others
    rules    a share f of them derived from these, spread evenly; the others from bases that no event shows

A rule from an event's base matches that one of K events, and any rule may match others by chance. So

    p  =  f · (1/K + chance within)  +  (1 - f) · chance without

and both chances are measured, on a sample of rules, before f is solved for. The BE-Tree paper §7.1 has chance at
nothing and f at one: 1/p bases. K is that, less where there are fewer events, more where chance adds. When all rules
are made, what chance did to just these is measured, and some rules more or fewer are given to the events' bases.

Where chance alone comes near p (few or popular attributes, wide predicates), rules are *tightened*: one that matches
too large a share of the events by chance is derived again, a few times at most. What this cannot reach is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64
from eligo.errors import OptionError
from eligo_lab.workload.deriving import Shape, joined, kept, repeated
from eligo_lab.workload.draft import Draft
from eligo_lab.workload.events import EventDraft, matches_of

_RULES = 20_000  # sampled to measure chance
_EVENTS = 1_000  # events that chance is measured on
_AGAIN = 16  # times that a rule is derived anew
_TRIES = 24  # sets of bases tried
_NEAR = 0.7  # of the probability asked for: chance above it calls for tightening
_LEAST = 5  # matches in all: with fewer, one more or less is over a tenth
_EXACT = 0.01  # relative error that is left as it is


@dataclass(frozen=True)
class Plan:
    """The bases of the events, the share of rules derived from them, and what share of events chance may match."""

    bases: EventDraft
    match: float | None
    share: float
    limit: float | None


@dataclass(frozen=True)
class Slots:
    """For every rule to be its base, by number among those of the events and then the others, and its size."""

    bases: EventDraft
    base: I64
    size: I64

    def take(self, rules: I64) -> Slots:
        return Slots(self.bases, self.base[rules], self.size[rules])


def planned(shape: Shape, rng: np.random.Generator, rules: int, events: int, match: float | None) -> Plan:
    """Bases for the events, and how to derive rules so that they match with that probability; None: by chance alone."""
    if match is None:
        return Plan(shape.bases(rng, events), None, 0.0, None)
    trial = shape.bases(rng, min(events, _EVENTS))
    limit, chance = _tightened(shape, rng, trial, match)
    wanted = min(events, max(2, int((1 - chance) / (match - chance) * (1 + 1e-9))))
    if match * rules * wanted < _LEAST:
        raise OptionError(
            f"match={match:g} with {rules:,} rules and {wanted:,} different events is "
            f"{match * rules * wanted:.2g} matches in all, too few to be exact within a tenth; give more of either"
        )
    for _ in range(_TRIES):
        bases = shape.bases(rng, wanted)
        within = _chance(shape, rng, bases, True, limit)
        without = _chance(shape, rng, bases, False, limit)
        share = (match - without) / (1 / wanted + within - without)
        if 0 < share <= 1:
            return Plan(bases, match, share, limit)
        if share > 1:
            wanted = max(min(2, events), min(wanted - 1, int(wanted / share)))
        elif limit is not None:
            limit /= 2
    raise _unreachable(match, without)


def derived(shape: Shape, rng: np.random.Generator, plan: Plan, rules: int, start: int = 0) -> Draft:
    """All the rules, as different from each other as the space allows; the events' bases are used from `start` on."""
    own, bases = round(plan.share * rules), len(plan.bases)
    # As many rules for each base outside as for each inside.
    others = max(1, min(rules - own, round((rules - own) * bases / own) if own else rules - own))
    inside = (start + _spread(own, bases)) % bases
    base = np.concatenate((inside, bases + _spread(rules - own, others)))[rng.permutation(rules)]
    slots = Slots(_both(plan.bases, shape.bases(rng, others)), base, shape.rule_sizes(rng, rules))
    draft = _derive(shape, rng, plan, slots)
    for _ in range(_AGAIN):
        before = slots.base.copy()
        if plan.match is None or not _correct(rng, plan, draft, slots, others):
            break
        draft = _redone(shape, rng, plan, draft, slots, slots.base != before)
    return _different(shape, rng, plan, draft, slots)


def _different(shape: Shape, rng: np.random.Generator, plan: Plan, draft: Draft, slots: Slots) -> Draft:
    """The same draft with rules derived again that equal an earlier one, as long as that leaves fewer."""
    again = repeated(draft)
    while again.any():
        draft = _redone(shape, rng, plan, draft, slots, again)
        before, again = again, repeated(draft)
        if again.sum() > 0.8 * before.sum():
            break
    return draft


def _correct(rng: np.random.Generator, plan: Plan, draft: Draft, slots: Slots, others: int) -> bool:
    """Give some rules another base, in place, if they match too rarely or too often; whether any."""
    assert plan.match is not None
    bases = len(plan.bases)
    own = slots.base < bases
    matching = own.sum() / bases / len(draft) + _chance_of(draft, plan.bases, slots.base)
    if abs(matching - plan.match) <= _EXACT * plan.match:
        return False
    more = round((plan.match - matching) * bases * len(draft))
    candidates = np.nonzero(~own if more > 0 else own)[0]
    moved = rng.choice(candidates, min(abs(more), len(candidates)), replace=False)
    slots.base[moved] = rng.integers(0, bases, len(moved)) if more > 0 else bases + rng.integers(0, others, len(moved))
    return bool(len(moved))


def _derive(shape: Shape, rng: np.random.Generator, plan: Plan, slots: Slots) -> Draft:
    """A rule for each slot, derived again while it matches too many events by chance."""
    draft = shape.derive(rng, slots.bases, slots.base, slots.size)
    if plan.limit is None:
        return draft
    parts, places = [], []
    todo = np.arange(len(draft))
    for turn in range(_AGAIN):
        counts, events = _chance_matches(draft, plan.bases, slots.base[todo])
        good = (counts <= plan.limit * events) | (turn == _AGAIN - 1)
        parts.append(kept(draft, good))
        places.append(todo[good])
        todo = todo[~good]
        if not len(todo):
            break
        some = slots.take(todo)
        draft = shape.derive(rng, some.bases, some.base, some.size)
    return joined(parts, places)


def _redone(
    shape: Shape, rng: np.random.Generator, plan: Plan, draft: Draft, slots: Slots, which: NDArray[np.bool_]
) -> Draft:
    """The same draft with some rules derived again."""
    places = np.nonzero(which)[0]
    new = _derive(shape, rng, plan, slots.take(places))
    return joined([kept(draft, ~which), new], [np.nonzero(~which)[0], places])


def _spread(rules: int, bases: int) -> I64:
    """For every rule a base, all of them as often, or evenly spaced ones where there are fewer rules."""
    return np.arange(rules) * bases // rules if rules < bases else np.arange(rules) % bases


def _both(first: EventDraft, second: EventDraft) -> EventDraft:
    return EventDraft(
        first.attributes,
        np.concatenate((first.offsets, first.offsets[-1] + second.offsets[1:])),
        np.concatenate((first.attribute, second.attribute)),
        np.concatenate((first.value, second.value)),
    )


def _chance_matches(draft: Draft, events: EventDraft, base: I64) -> tuple[I64, int]:
    """For every rule how many of some events it matches beside its own, and how many these are."""
    rows = events.sampled(_EVENTS)
    own = np.full(max(len(events), int(base.max(initial=0)) + 1), -1)
    own[rows] = np.arange(len(rows))
    return matches_of(draft, events.take(rows), own[base]), len(rows)


def _chance_of(draft: Draft, events: EventDraft, base: I64) -> float:
    counts, some = _chance_matches(draft, events, base)
    return float(counts.mean()) / some


def _chance(shape: Shape, rng: np.random.Generator, events: EventDraft, within: bool, limit: float | None) -> float:
    """How often rules from the events' bases, or from any others, match events that they do not come from."""
    others = shape.bases(rng, _RULES // 4)
    base = _spread(_RULES, len(events)) if within else len(events) + _spread(_RULES, len(others))
    slots = Slots(_both(events, others), base, shape.rule_sizes(rng, _RULES))
    return _chance_of(_derive(shape, rng, Plan(events, None, 0.0, limit), slots), events, base)


def _tightened(shape: Shape, rng: np.random.Generator, events: EventDraft, match: float) -> tuple[float | None, float]:
    """The highest limit that keeps chance well below the probability, None if none is needed; and chance then."""
    chance = _chance(shape, rng, events, False, None)
    if chance <= _NEAR * match:
        return None, chance
    for factor in (8.0, 4.0, 2.0, 1.0, 0.5, 0.0):
        chance = _chance(shape, rng, events, False, factor * match)
        if chance <= _NEAR * match:
            return factor * match, chance
    raise _unreachable(match, chance)


def _unreachable(match: float, chance: float) -> OptionError:
    return OptionError(
        f"match={match:g} is less than these parameters reach: rules match by chance with {chance:.2g}; ask for "
        f"{chance / _NEAR:.2g} or more, or give more predicates (rule_size), values (cardinality) or equality"
    )
