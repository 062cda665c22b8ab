"""Base expressions, and rules derived from them so that the base satisfies each (the BE-Tree paper §7.1, Table 2).

    base b   pairs offsets[b] … [b+1] of (attribute, value): an event, or an expression of equality predicates alone
    rule     some of its base's pairs; each stays an equality, or becomes a wider predicate that the value satisfies

                 =    v                       in       v and others, 2 … set_size values
                 <    v + 1 … cardinality     not in   1 … set_size values, v not among them
                 <=   v … cardinality - 1     between  around v, range_size of the domain wide on average
                 >    -1 … v - 1              !=       a value that is not v
                 >=   0 … v

Domains are 0 … cardinality - 1. Operands are uniform over the places above.

Sizes have the mean asked for and lie within a quarter of it, or less where the largest rule would otherwise pass the
smallest event: `sizes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from eligo.compile.compiled import I32, I64, U8, first_equal_slice, kept_slices, permuted_slices, sort_within
from eligo.jit import kernel
from eligo_lab.workload.draft import (
    AT_LEAST,
    AT_MOST,
    BETWEEN,
    EQUAL,
    IN,
    LESS,
    MORE,
    NOT_IN,
    UNEQUAL,
    Draft,
    conjunctive,
)
from eligo_lab.workload.events import EventDraft
from eligo_lab.workload.lower import same_predicates

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Table 2(a), without equality: that is a ratio of its own.
WIDER = {
    "min": (),
    "low": (IN,),
    "med": (LESS, AT_MOST, AT_LEAST, MORE, IN, BETWEEN),
    "high": (LESS, AT_MOST, UNEQUAL, AT_LEAST, MORE, IN, NOT_IN, BETWEEN),
}


@dataclass(frozen=True)
class Shape:
    """What bases and rules look like; the parameters are begen's."""

    names: tuple[str, ...]
    popularity: NDArray[np.float64]  # of every attribute, in any unit
    cardinality: int
    rule_size: float
    event_size: float
    equality: float
    operators: str
    range_size: float
    set_size: int

    def bases(self, rng: np.random.Generator, n: int) -> EventDraft:
        """So many base expressions."""
        slack = min(self.event_size / 4, len(self.names) - self.event_size, (self.event_size - self.rule_size) / 2)
        counts = np.minimum(sizes(rng, n, self.event_size, slack), len(self.names))
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
        attribute = draw_attributes(rng, self.popularity, offsets)
        return EventDraft(self.names, offsets, attribute, rng.integers(0, self.cardinality, len(attribute)))

    def rule_sizes(self, rng: np.random.Generator, n: int) -> I64:
        """Sizes of so many rules."""
        slack = min(self.rule_size / 4, self.rule_size - 1, (self.event_size - self.rule_size) / 2)
        return sizes(rng, n, self.rule_size, slack)

    def derive(self, rng: np.random.Generator, bases: EventDraft, base: I64, size: I64) -> Draft:
        """A rule of that size from each of these bases, by number."""
        counts = np.minimum(size, np.diff(bases.offsets)[base])
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
        attribute, operator, operand_offsets, operand = derive_rules(
            rng,
            bases.offsets,
            bases.attribute,
            bases.value,
            base,
            offsets,
            self.equality,
            np.array(WIDER[self.operators] or (EQUAL,), np.uint8),
            self.cardinality,
            self.range_size,
            self.set_size,
        )
        return conjunctive(self.names, attribute, operator, operand_offsets, operand, offsets)


def sizes(rng: np.random.Generator, n: int, mean: float, slack: float) -> I64:
    """Whole numbers, uniform within `slack` around the mean, which is exactly theirs: fractions are settled by lot."""
    even = (rng.permutation(n) + rng.random(n)) / max(1, n)  # one in each n-th part, so that few have the mean too
    wanted = mean + max(0.0, slack) * (2 * even - 1)
    floor = np.floor(wanted)
    whole: I64 = np.maximum(1, floor + (rng.random(n) < wanted - floor)).astype(np.int64)
    return whole


def repeated(draft: Draft) -> NDArray[np.bool_]:
    """Which rules, each one conjunction, equal an earlier one."""
    items: I32 = same_predicates(draft.attribute, draft.operator, draft.operand_offsets, draft.operand)
    sort_within(items, draft.conjunction_offsets)
    first = first_equal_slice(items, draft.conjunction_offsets)
    return np.asarray(first != np.arange(len(first)))


def kept(draft: Draft, rules: NDArray[np.bool_]) -> Draft:
    """Some of the rules, each one conjunction."""
    if rules.all():
        return draft
    predicates = np.repeat(rules, np.diff(draft.conjunction_offsets))
    operand, operand_offsets = kept_slices(draft.operand, draft.operand_offsets, predicates)
    _, offsets = kept_slices(draft.attribute, draft.conjunction_offsets, rules)
    return conjunctive(
        draft.attributes,
        draft.attribute[predicates],
        draft.operator[predicates],
        operand_offsets,
        operand,
        offsets,
        draft.textual,
        draft.strings,
    )


def joined(parts: list[Draft], places: list[I64]) -> Draft:
    """All rules, each one conjunction, put at their places."""
    order = np.argsort(np.concatenate(places), kind="stable")
    first = parts[0]
    rule_offsets, operand_offsets = (
        np.concatenate((np.zeros(1, np.int64), np.cumsum(np.concatenate(sizes))))
        for sizes in (
            [np.diff(part.conjunction_offsets) for part in parts],
            [np.diff(part.operand_offsets) for part in parts],
        )
    )
    rows, offsets = permuted_slices(np.arange(len(operand_offsets) - 1), rule_offsets, order)
    operand, operand_offsets = permuted_slices(np.concatenate([part.operand for part in parts]), operand_offsets, rows)
    attribute: I32 = np.concatenate([part.attribute for part in parts])[rows]
    operator: U8 = np.concatenate([part.operator for part in parts])[rows]
    return conjunctive(
        first.attributes, attribute, operator, operand_offsets, operand, offsets, first.textual, first.strings
    )


@kernel
def draw_attributes(rng, popularity, offsets):
    """For every base that many different attributes, each draw by popularity among those that are left.

    A tree of partial sums (Fenwick's) finds the drawn one and takes its weight out in log n steps, so that a few
    dominant attributes cost nothing more. Afterwards what was touched is put back as it was.
    """
    n = len(popularity)
    size = 1
    while size < n:
        size *= 2
    whole = np.zeros(size + 1)
    total = 0.0
    for a in range(n):
        total += popularity[a]
        whole[a + 1] = popularity[a]
    for i in range(1, size + 1):
        above = i + (i & -i)
        if above <= size:
            whole[above] += whole[i]
    sums = whole.copy()
    drawn = np.empty(offsets[-1], np.int32)
    taken = np.zeros(n, np.bool_)
    for b in range(len(offsets) - 1):
        rest = total
        for i in range(offsets[b], offsets[b + 1]):
            point = rng.random() * rest
            place, step = 0, size
            while step > 0:
                if place + step <= size and sums[place + step] <= point:
                    place += step
                    point -= sums[place]
                step //= 2
            # Rounding may end at one that is gone, or past the last: take the next that is left.
            place = min(place, n - 1)
            while taken[place]:
                place = (place + 1) % n
            drawn[i] = place
            taken[place] = True
            rest -= popularity[place]
            node = place + 1
            while node <= size:
                sums[node] -= popularity[place]
                node += node & -node
        for i in range(offsets[b], offsets[b + 1]):
            taken[drawn[i]] = False
            node = drawn[i] + 1
            while node <= size:
                sums[node] = whole[node]
                node += node & -node
    return drawn


@kernel
def derive_rules(
    rng, base_offsets, base_attribute, base_value, base, offsets, equality, wider, cardinality, range_size, set_size
):
    """Attribute, operator, operand offsets and operands of rules derived as drawn at the top of this file."""
    predicates = offsets[-1]
    attribute, operator = np.empty(predicates, np.int32), np.empty(predicates, np.uint8)
    operand_offsets = np.zeros(predicates + 1, np.int64)
    operand = np.empty(predicates * max(2, set_size), np.int64)
    widest = 1
    for b in range(len(base_offsets) - 1):
        widest = max(widest, base_offsets[b + 1] - base_offsets[b])
    pairs = np.empty(widest, np.int64)
    spread = min(0.5, (1 - range_size) / range_size)
    at = 0
    for n in range(len(base)):
        start, size = base_offsets[base[n]], base_offsets[base[n] + 1] - base_offsets[base[n]]
        for i in range(size):
            pairs[i] = start + i
        for i in range(offsets[n + 1] - offsets[n]):
            other = i + int(rng.random() * (size - i))
            pairs[i], pairs[other] = pairs[other], pairs[i]
            p = offsets[n] + i
            attribute[p], value = base_attribute[pairs[i]], base_value[pairs[i]]
            kind = EQUAL if rng.random() < equality else wider[int(rng.random() * len(wider))]
            operator[p] = kind
            operand[at] = value
            if kind == LESS:
                operand[at] = value + 1 + int(rng.random() * (cardinality - value))
            elif kind == AT_MOST:
                operand[at] = value + int(rng.random() * (cardinality - value))
            elif kind == MORE:
                operand[at] = value - 1 - int(rng.random() * (value + 1))
            elif kind == AT_LEAST:
                operand[at] = value - int(rng.random() * (value + 1))
            elif kind == UNEQUAL:
                operand[at] = (value + 1 + int(rng.random() * (cardinality - 1))) % cardinality
            elif kind == BETWEEN:
                wanted = range_size * cardinality * (1 + spread * (2 * rng.random() - 1)) + rng.random()
                width = min(cardinality, max(2, int(wanted)))
                low, high = max(0, value - width + 1), min(value, cardinality - width)
                operand[at] = low + int(rng.random() * (high - low + 1))
                operand[at + 1] = operand[at] + width - 1
                at += 1
            elif kind in (IN, NOT_IN):
                if kind == IN:
                    more = 1 + int(rng.random() * (min(set_size, cardinality) - 1))
                    count = 1
                else:
                    more = 1 + int(rng.random() * min(set_size, cardinality - 1))
                    count = 0
                while more > 0:
                    new = int(rng.random() * cardinality)
                    place = at + count
                    while place > at and operand[place - 1] > new:
                        place -= 1
                    if new != value and (place == at or operand[place - 1] != new):
                        for k in range(at + count, place, -1):
                            operand[k] = operand[k - 1]
                        operand[place] = new
                        count += 1
                        more -= 1
                at += count - 1
            at += 1
            operand_offsets[p + 1] = at
    return attribute, operator, operand_offsets, operand[:at].copy()
