"""`nested`: deep advertising expressions whose parts recur, shaped as the dataset that the A-Tree was measured with.

Its authors (SIGMOD 2021) had 1,390,000 expressions of depth 9 or less over 122 attributes, and gained by storing once
what many of them have in common. The expressions are not public. Here parts recur by a Zipf law, at every level:

    conjunctions   1 to 3 predicates: =, in, ranges, few exclusions; attributes and values skewed
    inner nodes    AND and OR in turn; children come from the pools of lower levels, or are fresh: `shared_trees.py`
    rules          a root of their own over such children, or a whole node of a pool
    events         each attribute is there or not, apart from the others; values by the same law as in the rules

Depth counts the edges from the root to a conjunction, as in `trees`. In normal form an AND has one conjunction at most,
beside ORs, so that the deepest conjunctions lie below an OR: rules of even depth are ANDs, those of odd depth ORs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import F64, I32, I64, first_equal_slice, kept_slices, sort_within
from eligo.errors import OptionError
from eligo.jit import kernel
from eligo_lab.workload.audience import added_up
from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload
from eligo_lab.workload.deriving import draw_attributes
from eligo_lab.workload.draft import AT_LEAST, AT_MOST, BETWEEN, EQUAL, IN, NOT_IN, UNEQUAL, Draft
from eligo_lab.workload.events import EventDraft, match_probability
from eligo_lab.workload.lower import same_predicates
from eligo_lab.workload.shared_trees import Thicket, filled, shaped
from eligo_lab.workload.tree_kernels import drawn

_SIZES = np.array([0.0, 0.25, 0.7, 1.0])  # conjunctions of at most that many predicates
_OPERATORS = np.array([0.5, 0.8, 0.95])  # =, in, ranges, and the rest exclusions, added up
_LONGEST = 6  # list of in and not in
_WIDEST = 0.3  # of the domain that a range covers
_FEWEST = 4  # values of an attribute
_SURELY = 0.95  # how often an event has the most popular attributes
_MEASURED = 20_000  # rules that the selectivity is measured on
_DEEPEST = 64
_MOST_TOKENS = 2**30  # nodes and conjunctions of all rules: past this, memory is the matter


@workload("AND/OR trees up to depth 9 whose sub-expressions recur by a Zipf law (shaped as the A-Tree's dataset)")
def nested(
    rules: Rules = 100_000,
    events: Events = 1_000,
    max_depth: Annotated[int, "no conjunction lies further from the root; 0 makes single conjunctions"] = 9,
    attributes: Annotated[int, "attributes that there are"] = 122,
    cardinality: Annotated[int, "most values of an attribute; the fewest are 4"] = 1_000,
    event_size: Annotated[float, "attributes of an event, on average"] = 32.0,
    conjunctions: Annotated[int, "conjunctions in the pool"] = 20_000,
    pool: Annotated[int, "nodes in the pool of each level above"] = 5_000,
    zipf: Annotated[float, "how unevenly often those of a pool are used: the r-th with weight r^-zipf"] = 1.0,
    fresh: Annotated[float, "share of children that are made for one place, not drawn from a pool"] = 0.2,
    repeated: Annotated[float, "share of rules that are a node of a pool as a whole"] = 0.1,
    alternatives: Annotated[float, "share of rules that are ORs at their root"] = 0.05,
    seed: Seed = 1,
) -> Workload:
    """See the top of this file."""
    parameters = dict(locals())
    _check(rules, max_depth, attributes, cardinality, event_size, conjunctions, pool, zipf)
    for name, share in (("fresh", fresh), ("repeated", repeated), ("alternatives", alternatives)):
        if not 0 <= share <= 1:
            raise OptionError(f"nested: {name}={share:g} is no share: give 0 … 1")
    rng = np.random.default_rng(seed)
    names = tuple(f"a{number}" for number in range(attributes))
    # Popular attributes get names anywhere, lest an index gain by the order of names.
    weight = (1.0 / np.arange(1, attributes + 1))[rng.permutation(attributes)]
    values = _values(rng, attributes, cardinality)
    shape = shaped(
        rng,
        _depths(rng, rules, max_depth, alternatives),
        np.array([conjunctions] + [pool] * max_depth, np.int64),
        fresh,
        repeated,
    )
    leaves = _leaves(rng, names, int(shape.starts[1]), weight, values)
    same = same_predicates(leaves.attribute, leaves.operator, leaves.operand_offsets, leaves.operand)
    sort_within(same, leaves.conjunction_offsets)
    popularity = [added_up(np.arange(1.0, size + 1) ** -zipf) for size in [conjunctions] + [pool] * max_depth]
    thicket = filled(
        rng,
        shape,
        popularity,
        first_equal_slice(same, leaves.conjunction_offsets),
        leaves.conjunction_offsets,
        (leaves.attribute[same].astype(np.int64) << 32) + same,
    )
    if thicket is None:
        raise OptionError(
            f"nested: no different children were found for a node, with conjunctions={conjunctions}, pool={pool}, "
            f"zipf={zipf:g}, attributes={attributes}: give more of them, or less zipf"
        )
    used = thicket.used()
    draft = _draft(thicket, leaves, used)
    visits = _events(rng, names, events, _presence(weight, event_size), values)
    inner, distinct = int(np.count_nonzero(draft.tree < 0)), int(np.count_nonzero(used[thicket.starts[1] :]))
    sizes = np.diff(draft.conjunction_offsets)
    measured = {
        "selectivity": match_probability(draft.slice(_MEASURED), visits),
        "leaves": (len(draft.tree) - inner) / rules,
        "rule_size": float(sizes[draft.tree[draft.tree >= 0]].sum()) / rules,
        "depth": float(thicket.level()[thicket.roots].mean()),
        "conjunctions": float(len(sizes)),
        "inner_nodes": inner / rules,
        "distinct_inner_nodes": float(distinct),
        "sharing": inner / max(1, distinct),
        "distinct_rules": float(np.count_nonzero(np.bincount(thicket.roots))) / rules,
        "event_size": len(visits.attribute) / events,
    }
    return Workload("nested", parameters, draft, visits.table(), measured)


def _depths(rng: np.random.Generator, rules: int, max_depth: int, alternatives: float) -> I64:
    """Of every rule: even ones alike, and odd ones for those that are ORs."""
    if max_depth < 2:
        return np.full(rules, max_depth, np.int64)
    even = 2 * rng.integers(1, max_depth // 2 + 1, rules)
    odd = 2 * rng.integers(0, (max_depth + 1) // 2, rules) + 1
    return np.where(rng.random(rules) < alternatives, odd, even)


def _values(rng: np.random.Generator, attributes: int, cardinality: int) -> tuple[I64, F64]:
    """Cumulative shares of all attributes' values, and where each attribute's begin.

    An attribute has from 4 to `cardinality` values, their logarithms spread evenly. The r-th most frequent value has
    weight 1/r; which one that is, is drawn, so that frequent values lie anywhere in a range.
    """
    even = (rng.permutation(attributes) + 0.5) / attributes
    counts = np.rint(_FEWEST * (cardinality / _FEWEST) ** even).astype(np.int64)
    shares = [added_up(1.0 / (1 + rng.permutation(count))) for count in counts]
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))), np.concatenate(shares)


def _leaves(
    rng: np.random.Generator, names: tuple[str, ...], count: int, weight: F64, values: tuple[I64, F64]
) -> Draft:
    """Conjunctions, as a draft without rules."""
    sizes = np.minimum(np.searchsorted(_SIZES, rng.random(count), side="right"), len(names))
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
    attribute: I32 = draw_attributes(rng, weight, offsets)
    operator, operand_offsets, operand = draw_predicates(rng, attribute, np.repeat(sizes > 1, sizes), *values)
    return Draft(
        names,
        (),
        np.zeros(len(names), np.bool_),
        attribute,
        operator,
        operand_offsets,
        operand,
        offsets,
        np.zeros(1, np.int64),
        np.zeros(0, np.int32),
    )


def _draft(thicket: Thicket, leaves: Draft, used: NDArray[np.bool_]) -> Draft:
    """The rules, with the conjunctions that they use."""
    tree, tree_offsets = thicket.trees()
    named = used[: thicket.starts[1]]
    number = np.cumsum(named, dtype=np.int32) - np.int32(1)
    rows, offsets = kept_slices(np.arange(leaves.predicates), leaves.conjunction_offsets, named)
    kept = np.zeros(leaves.predicates, np.bool_)
    kept[rows] = True
    operand, operand_offsets = kept_slices(leaves.operand, leaves.operand_offsets, kept)
    return replace(
        leaves,
        attribute=leaves.attribute[kept],
        operator=leaves.operator[kept],
        operand_offsets=operand_offsets,
        operand=operand,
        conjunction_offsets=offsets,
        tree_offsets=tree_offsets,
        tree=np.where(tree >= 0, number[np.maximum(tree, 0)], tree),
    )


def _presence(weight: F64, size: float) -> F64:
    """How often an event has each attribute: in proportion to the weights up to a bound, and `size` in all."""
    full = np.zeros(len(weight), np.bool_)
    while True:
        rest = size - _SURELY * np.count_nonzero(full)
        share = np.where(full, _SURELY, weight * rest / max(weight[~full].sum(), 1e-300))
        if not (share > _SURELY * (1 + 1e-9)).any():
            return share
        full |= share > _SURELY


def _events(
    rng: np.random.Generator, names: tuple[str, ...], events: int, presence: F64, values: tuple[I64, F64]
) -> EventDraft:
    has = rng.random((events, len(names))) < presence
    attribute = np.nonzero(has)[1].astype(np.int32)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(has.sum(axis=1))))
    return EventDraft(names, offsets, attribute, draw_values(rng, attribute, *values))


def _check(
    rules: int,
    max_depth: int,
    attributes: int,
    cardinality: int,
    event_size: float,
    conjunctions: int,
    pool: int,
    zipf: float,
) -> None:
    """Refuse what cannot be made."""
    if not 0 <= max_depth <= _DEEPEST:
        raise OptionError(f"nested: max_depth={max_depth} is not in 0 … {_DEEPEST}")
    if attributes < 8:
        raise OptionError(f"nested: attributes={attributes}: give 8 or more, so that an OR's predicates can differ")
    if not 8 <= cardinality <= 1_000_000:
        raise OptionError(f"nested: cardinality={cardinality} is not in 8 … 1,000,000")
    if not 1 <= event_size <= 0.9 * attributes:
        raise OptionError(
            f"nested: event_size={event_size:g} is not in 1 … {0.9 * attributes:g}, 0.9 of the attributes"
        )
    if conjunctions < 16 or pool < 16:
        raise OptionError(f"nested: conjunctions={conjunctions}, pool={pool}: a pool has 16 or more")
    if not 0 <= zipf <= 5:
        raise OptionError(f"nested: zipf={zipf:g} is not in 0 … 5")
    tokens = (rules + pool * max_depth + conjunctions) * (1 + 4 * max_depth)
    if tokens > _MOST_TOKENS:
        raise OptionError(
            f"nested: {rules:,} rules of depth {max_depth} have about {tokens:,} nodes and conjunctions in all; at "
            f"most {_MOST_TOKENS:,} are made"
        )


@kernel
def draw_values(rng, attribute, value_offsets, cumulative):
    """A value of each of the attributes, by its frequency."""
    value = np.empty(len(attribute), np.int64)
    for i in range(len(attribute)):
        low = value_offsets[attribute[i]]
        value[i] = drawn(cumulative, low, value_offsets[attribute[i] + 1], rng.random()) - low
    return value


@kernel
def draw_predicates(rng, attribute, may_exclude, value_offsets, cumulative):
    """Operator, operand offsets and operands of a predicate on each of the attributes."""
    operator = np.empty(len(attribute), np.uint8)
    offsets = np.zeros(len(attribute) + 1, np.int64)
    operand = np.empty(len(attribute) * _LONGEST, np.int64)
    at = 0
    for p in range(len(attribute)):
        low, high = value_offsets[attribute[p]], value_offsets[attribute[p] + 1]
        n = high - low
        lot = rng.random()
        wanted = 1
        if _OPERATORS[1] <= lot < _OPERATORS[2] and n >= 8:
            width = max(1, int(_WIDEST * rng.random() * n))
            operand[at] = int(rng.random() * (n - width + 1))
            if rng.random() < 0.5 and width > 1:
                operator[p] = BETWEEN
                operand[at + 1] = operand[at] + width - 1
                at += 1
            elif rng.random() < 0.5:
                operator[p] = AT_MOST
                operand[at] = width - 1
            else:
                operator[p] = AT_LEAST
                operand[at] = n - width
            wanted = 0
            at += 1
        elif lot < _OPERATORS[0] or n < 8 or (lot >= _OPERATORS[2] and not may_exclude[p]):
            operator[p] = EQUAL
        elif lot < _OPERATORS[1]:
            operator[p] = IN
            wanted = 2 + int(rng.random() * (min(_LONGEST, n // 2) - 1))
        elif rng.random() < 0.5:
            operator[p] = UNEQUAL
        else:
            operator[p] = NOT_IN
            wanted = 2 + int(rng.random() * (min(_LONGEST, n // 2) - 1))
        first = at
        while at - first < wanted:
            new = drawn(cumulative, low, high, rng.random()) - low
            place = at
            while place > first and operand[place - 1] > new:
                place -= 1
            if place > first and operand[place - 1] == new:
                continue
            for k in range(at, place, -1):
                operand[k] = operand[k - 1]
            operand[place] = new
            at += 1
        offsets[p + 1] = at
    return operator, offsets, operand[:at].copy()
