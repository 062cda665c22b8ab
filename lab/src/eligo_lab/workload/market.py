"""The attributes of `ads`, and how rules and events draw from them.

    kind       value                         predicates of rules
    setting    a word, skewed                =, in, not in
    ordered    a small number, uniform       between, >=, <=
    target     a number, skewed              =, in
    tag        a small number, skewed        =, in, not in

The value is v = ⌊n · u^power⌋ for uniform u: with power 1 all values are alike, with more the low ones come oftener.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64
from eligo.jit import kernel
from eligo_lab.workload.deriving import draw_attributes
from eligo_lab.workload.draft import AT_LEAST, AT_MOST, BETWEEN, EQUAL, IN, NOT_IN, Draft, conjunctive
from eligo_lab.workload.events import EventDraft

SETTING, ORDERED, TARGET, TAG = range(4)


class _Kind(NamedTuple):
    power: float
    first: float  # share of the first operator,
    second: float  # of the first two; the third has the rest
    operators: tuple[int, int, int]


_KINDS = (
    _Kind(3.0, 0.5, 0.9, (EQUAL, IN, NOT_IN)),
    _Kind(1.0, 0.6, 0.8, (BETWEEN, AT_LEAST, AT_MOST)),
    _Kind(2.0, 0.6, 1.0, (EQUAL, IN, IN)),
    _Kind(2.5, 0.6, 0.9, (EQUAL, IN, NOT_IN)),
)
_LONGEST = 6  # list of in and not in
_SPREAD = 0.75  # of the logarithm of a rule's size
_SURELY = 0.98  # how often an event has the most popular attributes

# The popular attributes, most popular first: name, kind, number of values (0: that of all targets).
KNOWN = (
    ("channel", SETTING, 3), ("region", SETTING, 60), ("category", TARGET, 0), ("position", SETTING, 20),
    ("gender", SETTING, 2), ("age", ORDERED, 100), ("brand", TARGET, 0), ("hour", ORDERED, 24), ("os", SETTING, 6),
    ("product", TARGET, 0), ("language", SETTING, 25), ("weekday", ORDERED, 7), ("keyword", TARGET, 0),
    ("browser", SETTING, 8), ("shop", TARGET, 0), ("member_level", ORDERED, 6), ("segment", TARGET, 0),
    ("logged_in", SETTING, 2), ("interest", TARGET, 0), ("city", TARGET, 0), ("campaign", TARGET, 0),
    ("last_product", TARGET, 0),
)  # fmt: skip
_WORDS = {
    "channel": ("mobile", "pc", "tablet"),
    "gender": ("female", "male"),
    "logged_in": ("yes", "no"),
    "os": ("android", "ios", "windows", "macos", "linux", "other"),
}


@dataclass(frozen=True)
class Market:
    """Attributes, most popular first."""

    names: tuple[str, ...]
    kind: I64
    values: I64  # how many; 0 for targets
    start: I64  # where a setting's words begin in `strings`
    strings: tuple[str, ...]
    weight: NDArray[np.float64]  # in rules
    presence: NDArray[np.float64]  # in events
    middle: float  # of a rule's size, in logarithms
    largest: int

    @property
    def textual(self) -> NDArray[np.bool_]:
        return np.asarray(self.kind == SETTING)

    def rules(self, rng: np.random.Generator, n: int, target_values: int) -> Draft:
        """So many rules, each with a target."""
        sizes = rule_sizes(rng.normal(0, _SPREAD, n), self.middle, self.largest)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        attribute = draw_attributes(rng, self.weight, offsets)
        has_target = np.add.reduceat(self.kind[attribute] == TARGET, offsets[:-1]) > 0
        targets = np.nonzero(self.kind == TARGET)[0]
        sums = np.cumsum(self.weight[targets])
        chosen = targets[np.searchsorted(sums, rng.random(n) * sums[-1], side="right")]
        attribute[offsets[:-1][~has_target]] = chosen[~has_target]
        operator, operand_offsets, operand = draw_predicates(
            rng,
            attribute,
            self.kind,
            self._counts(target_values),
            self.start,
            np.array([(kind.power, kind.first, kind.second) for kind in _KINDS]),
            np.array([kind.operators for kind in _KINDS], np.uint8),
        )
        return conjunctive(
            self.names, attribute, operator, operand_offsets, operand, offsets, self.textual, self.strings
        )

    def events(self, rng: np.random.Generator, n: int, target_values: int) -> EventDraft:
        """So many events; each has an attribute or not, apart from the others."""
        has = rng.random((n, len(self.names))) < self.presence
        attribute = np.nonzero(has)[1].astype(np.int32)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(has.sum(axis=1))))
        power = np.array([kind.power for kind in _KINDS])[self.kind[attribute]]
        value = (self._counts(target_values)[attribute] * rng.random(len(attribute)) ** power).astype(np.int64)
        return EventDraft(self.names, offsets, attribute, self.start[attribute] + value, self.textual, self.strings)

    def _counts(self, target_values: int) -> I64:
        return np.where(self.kind == TARGET, target_values, self.values)


def market_of(dimensions: int, rule_size: float, largest: int, event_size: float, zipf: float) -> Market:
    """The attributes for these parameters of `ads`."""
    tags = [(f"tag_{number}", TAG, 2 + number % 30) for number in range(dimensions - len(KNOWN))]
    known = (*KNOWN, *tags)
    strings: list[str] = []
    start = []
    for name, kind, values in known:
        start.append(len(strings) if kind == SETTING else 0)
        if kind == SETTING:
            strings += _WORDS.get(name, tuple(f"{name}-{number}" for number in range(values)))
    weight = np.arange(1, dimensions + 1, dtype=np.float64) ** -zipf
    # How large a share of its weight an attribute may have, so that all shares together make an event's size.
    factor = _solved(lambda x: float(np.minimum(_SURELY, x * weight).sum()), event_size, 0.0, event_size / weight[-1])
    normal = np.random.default_rng(0).normal(0, _SPREAD, 100_000)
    middle = _solved(lambda x: float(rule_sizes(normal, x, largest).mean()), rule_size, -5.0, np.log(largest) + 1)
    return Market(
        tuple(name for name, _, _ in known),
        np.array([kind for _, kind, _ in known]),
        np.array([values for _, _, values in known]),
        np.array(start),
        tuple(strings),
        weight,
        np.minimum(_SURELY, factor * weight),
        middle,
        largest,
    )


def rule_sizes(normal: NDArray[np.float64], middle: float, largest: int) -> I64:
    """Sizes whose logarithm is normal, from 1 to the largest."""
    return np.clip(np.rint(np.exp(middle + normal)), 1, largest).astype(np.int64)


def _solved(function: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where a growing function has the value wanted."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < wanted else (low, middle)
    return (low + high) / 2


@kernel
def draw_predicates(rng, attribute, kinds, counts, start, shares, operators):
    """Operator, operand offsets and operands of a predicate on each of the attributes; `shares` begins with power."""
    operator = np.empty(len(attribute), np.uint8)
    offsets = np.zeros(len(attribute) + 1, np.int64)
    operand = np.empty(len(attribute) * _LONGEST, np.int64)
    at = 0
    for p in range(len(attribute)):
        kind, n = kinds[attribute[p]], counts[attribute[p]]
        lot = rng.random()
        o = operators[kind, 0 if lot < shares[kind, 1] else 1 if lot < shares[kind, 2] else 2]
        if n == 2 and o in (IN, NOT_IN):
            o = EQUAL
        operator[p] = o
        count, wanted = 0, 1
        if o in (IN, NOT_IN):
            wanted = 2 + int(rng.random() * (min(_LONGEST, n - 1) - 1))
        elif o == BETWEEN:
            wanted = 2
        while count < wanted:
            new = start[attribute[p]] + int(n * rng.random() ** shares[kind, 0])
            place = at + count
            while place > at and operand[place - 1] > new:
                place -= 1
            if place > at and operand[place - 1] == new:
                continue
            for k in range(at + count, place, -1):
                operand[k] = operand[k - 1]
            operand[place] = new
            count += 1
        at += count
        offsets[p + 1] = at
    return operator, offsets, operand[:at].copy()
