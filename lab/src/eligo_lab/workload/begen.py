"""`begen`: the synthetic workload of the BE-Tree paper §7.1, with the parameters of its Table 3 and of the PS-Tree
paper, Table 1.

Base expressions model events; rules are derived from them (`deriving.py`), so that they match at a probability one
chooses (`tuning.py`) although the space is large.

Dimension selectivity (the BE-Tree paper, Figure 9) runs from 0.5 to 0.9 where Table 3 has cardinalities 2 to 10: it is
1 - 1/cardinality, the share of events with the attribute that an equality predicate on it turns away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from eligo.errors import OptionError
from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload
from eligo_lab.workload.deriving import WIDER, Shape, repeated
from eligo_lab.workload.draft import Draft
from eligo_lab.workload.events import EventDraft, match_probability
from eligo_lab.workload.tuning import Plan, derived, planned


@dataclass(frozen=True)
class _World:
    """The shape and the plan. Where rules match by chance alone there is none: each block has events of its own."""

    shape: Shape
    plan: Plan

    @property
    def chosen(self) -> dict[str, object]:
        return _chosen(self.shape)

    def rules(self, rng: np.random.Generator, first: int, n: int) -> Draft:
        return derived(self.shape, rng, self.plan, n, int(rng.integers(len(self.plan.bases))))

    def events(self, rng: np.random.Generator, first: int, n: int) -> EventDraft:
        if self.plan.match is None:
            return self.shape.bases(rng, n)
        return self.plan.bases.take(rng.permutation((first + np.arange(n)) % len(self.plan.bases)))


def _world(rng: np.random.Generator, rules: int, events: int, match: float | None, **asked: Any) -> _World:
    shape = _shape(rng, match=match, **asked)
    return _World(shape, planned(shape, rng, rules, 1 if match is None else events, match))


@workload(
    "base expressions as events, rules derived from them: any size, skew and match probability (BEGen)", blocks=_world
)
def begen(
    rules: Rules = 100_000,
    events: Events = 1_000,
    dimensions: Annotated[int, "attributes that there are"] = 400,
    cardinality: Annotated[int, "values of an attribute, 0 to cardinality - 1"] = 48,
    rule_size: Annotated[float, "predicates of a rule, on average"] = 7.0,
    event_size: Annotated[float, "attributes of an event, on average"] = 15.0,
    equality: Annotated[float | None, "share of equality predicates; 0.3, with operators=min 1"] = None,
    operators: Annotated[str, "min (=), low (and in), med (and < <= >= > between), high (and != not in)"] = "med",
    match: Annotated[float | None, "probability that an event matches a rule; none: as chance has it"] = 0.01,
    zipf: Annotated[float, "how far a few attributes are preferred: the r-th has weight r^-zipf; 0 to 5"] = 0.0,
    range_size: Annotated[float, "share of the domain that a between covers, on average"] = 0.12,
    set_size: Annotated[int, "most values of in and not in"] = 6,
    dimension_selectivity: Annotated[float | None, "1 - 1/cardinality, if given instead of cardinality"] = None,
    seed: Seed = 1,
) -> Workload:
    """See the top of this file."""
    asked = dict(locals())
    rng = np.random.default_rng(seed)
    shape = _shape(rng, **asked)
    plan = planned(shape, rng, rules, events, match)
    draft = derived(shape, rng, plan, rules)
    shown = plan.bases.take(rng.permutation(np.arange(events) % len(plan.bases)))
    return Workload(
        "begen",
        asked | _chosen(shape),
        draft,
        shown.table(),
        {
            "match": match_probability(draft, plan.bases),
            "bases": len(plan.bases),
            "rule_size": draft.predicates / rules,
            "event_size": len(shown.attribute) / events,
            "equality": float((draft.operator == 0).mean()),
            "repeated": float(repeated(draft).mean()),
        },
    )


def _shape(
    rng: np.random.Generator,
    dimensions: int,
    cardinality: int,
    rule_size: float,
    event_size: float,
    equality: float | None,
    operators: str,
    match: float | None,
    zipf: float,
    range_size: float,
    set_size: int,
    dimension_selectivity: float | None,
    **_: object,
) -> Shape:
    """What bases and rules look like; parameters that make no sense are refused."""
    if dimension_selectivity is not None:
        if not 0 <= dimension_selectivity < 1:
            _refuse(f"dimension_selectivity={dimension_selectivity:g} is not in 0 … 1 (1 itself excluded)")
        cardinality = round(1 / (1 - dimension_selectivity))
    if operators not in WIDER:
        _refuse(f"operators={operators!r} is none of {', '.join(WIDER)}")
    if equality is None:
        equality = 1.0 if operators == "min" else 0.3
    _check(dimensions, cardinality, rule_size, event_size, equality, operators, match, zipf, range_size, set_size)
    popularity = np.arange(1, dimensions + 1, dtype=np.float64) ** -zipf
    # Popular attributes get names anywhere, lest an index gain by the order of names.
    popularity = popularity[rng.permutation(dimensions)]
    names = tuple(f"a{number}" for number in range(dimensions))
    return Shape(names, popularity, cardinality, rule_size, event_size, equality, operators, range_size, set_size)


def _chosen(shape: Shape) -> dict[str, object]:
    """The parameters that may follow from others."""
    return {"cardinality": shape.cardinality, "equality": shape.equality}


def _check(
    dimensions: int,
    cardinality: int,
    rule_size: float,
    event_size: float,
    equality: float,
    operators: str,
    match: float | None,
    zipf: float,
    range_size: float,
    set_size: int,
) -> None:
    """Refuse what cannot be made."""
    if rule_size < 1:
        _refuse(f"rule_size={rule_size:g}: a rule has one predicate or more")
    if rule_size > event_size:
        _refuse(
            f"rule_size={rule_size:g} is over event_size={event_size:g}: a rule's predicates are some of an event's "
            f"attributes; give larger events or smaller rules"
        )
    if event_size > dimensions:
        _refuse(f"event_size={event_size:g} is over dimensions={dimensions}: an event has an attribute once")
    if not 0 <= equality <= 1:
        _refuse(f"equality={equality:g} is no share: give 0 … 1")
    if operators == "min" and equality < 1:
        _refuse(f"operators=min has no other operator than =, so equality={equality:g} cannot be; give 1")
    if cardinality < 1:
        _refuse(f"cardinality={cardinality}: an attribute has one value or more")
    if cardinality == 1 and equality < 1:
        _refuse("cardinality=1 leaves no room for ranges, sets or !=: give 2 or more, or equality=1")
    if match is not None and not 0 < match <= 0.5:
        _refuse(f"match={match:g} is not in 0 … 0.5 (0 excluded): events are two different ones at least")
    if not 0 <= zipf <= 5:
        _refuse(f"zipf={zipf:g} is not in 0 … 5")
    if not 0 < range_size <= 1:
        _refuse(f"range_size={range_size:g} is no share of the domain: give above 0, up to 1")
    if set_size < 2:
        _refuse(f"set_size={set_size}: in and not in have up to 2 values or more")


def _refuse(reason: str) -> None:
    raise OptionError(f"begen: {reason}")
