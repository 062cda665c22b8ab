"""Rules and events that collide on purpose: few attributes, few values, and the values that break code.

A *theme* says what a round draws from. Values of an attribute are mostly of its home kind, so that predicates hold
often enough, and sometimes of any kind, so that kinds meet. Sub-trees are drawn again now and then, whole.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal

import numpy as np

from eligo.language.ranges import Above, Below, Between, NoneOf, OneOf, Range
from eligo.language.tree import And, Constant, Node, Not, Or, Predicate, Value, predicates_of
from eligo.language.values import range_set

Kind = Literal["number", "string", "time", "boolean"]
KINDS: tuple[Kind, ...] = ("number", "string", "time", "boolean")

SMALL = (0, 1, 2, 3)
NUMBERS: tuple[Value, ...] = (
    *SMALL, *SMALL, -1, 0.5, 1.0, 2.5, -0.0, 0.1, 0.3, 0.1 + 0.2, math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0),
    2**53 - 1, 2**53, 2**53 + 1, float(2**53), -(2**53) - 1, -float(2**53), 2**63 - 1, -(2**63), 2.0**63, -(2.0**63),
    math.nextafter(2.0**63, 0.0), 1e300, -1e300, 5e-324, -5e-324, 10**17 + 1, 1e17,
)  # fmt: skip
_LONG = "abcdefghijklmnopqrstuvwxyz" * 3  # no two of its slices of seven bytes are the same
STRINGS: tuple[Value, ...] = (
    "", "a", "b", "ab", "B", "a%", "a_", "%", "_", "\\", "\0", "a\0", "true", "1", "é", "e", "aé", "\ud7ff", "\ue000",
    "😀", "abcdefg", "abcdefgh", "abcdefghi", "abcdefgi",
    *("p" * n + end for n in (7, 8, 63, 64, 65, 120) for end in ("", "a", "b")),
    *(_LONG[:n] + end for n in (7, 14, 15, 70) for end in ("", "a", "b")), "p" * 65 + "a" + "p" * 66 + "b",
)  # fmt: skip
TIMES: tuple[Value, ...] = (
    date(2026, 1, 31), datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31, 0, 0, 0, 1, tzinfo=UTC),
    datetime(2026, 1, 30, 23, 59, 59, 999999, tzinfo=UTC), date(2026, 2, 1), date(1970, 1, 1), date(1969, 12, 31),
    datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
)  # fmt: skip
FAR_TIMES: tuple[Value, ...] = (date(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
BOOLEANS: tuple[Value, ...] = (True, False)
# What events hold beside the values that rules can name.
ODD_NUMBERS = (
    math.inf, -math.inf, math.nan, Decimal("2.50"), Decimal("0.1"), Decimal(2**63 - 1), Decimal("-1e30"),
    Decimal("NaN"), np.int8(2), np.float32(0.5), np.float64(0.1), np.uint64(3),
)  # fmt: skip
ODD_TIMES = (
    datetime(2026, 1, 31), datetime(2026, 1, 31, 1, tzinfo=timezone(timedelta(hours=1))), np.datetime64("2026-01-31"),
    np.datetime64("2026-01-31T00:00:00.000001999", "ns"), np.datetime64("NaT"),
)  # fmt: skip

_DEEPEST = 130  # levels of a rule; the oracle goes down by calls
WEIGHTS = (1.0, 1.0, 2.0, 2.0, 0.5, 0.0, -1.0)
TAGS = ("red", "green", "blue", "tenant-7")


@dataclass(frozen=True)
class Theme:
    """What a round is about: how many rules and events of what shape, over which attributes and values."""

    name: str
    rules: int = 200
    events: int = 100
    singles: Mapping[str, Kind] = field(
        default_factory=lambda: {
            "a": "number",
            "b": "string",
            "c": "time",
            "d": "boolean",
            "n": "number",
            "n.x": "number",
        }
    )
    several: Mapping[str, Kind] = field(default_factory=lambda: {"m": "number", "w": "string"})
    numbers: tuple[Value, ...] = NUMBERS
    strings: tuple[Value, ...] = STRINGS
    times: tuple[Value, ...] = TIMES + FAR_TIMES
    values: tuple[int, ...] = (4, 8, 40)  # of each kind in a round
    stray: float = 0.25  # how often a value is of any kind instead of its attribute's
    leaves: tuple[int, ...] = (1, 1, 1, 2, 2, 3, 3, 4, 6, 9)
    conjunctive: float = 0.6  # how often an inner node is an AND
    reuse: float = 0.12  # how often an inner node is one that was drawn before, with all that is below it
    list_lengths: tuple[int, ...] = (1, 2, 2, 3, 3, 4, 6)
    negations: float = 0.2  # how often a node stands under a NOT
    negated: float = 0.3  # how often a predicate is
    nulls: float = 0.8  # how often it asks for presence, compared with 3 for a value
    patterns: float = 1.0
    density: tuple[float, ...] = (0.4, 0.75, 1.0)  # of the attributes an event has so many
    planted: bool = False  # whether an event has what some rule names, so that rules hold where little else does
    ranges: bool = False  # events whose values are ranges: there are no lists then, and no inner wildcards

    @property
    def attributes(self) -> tuple[str, ...]:
        return (*self.singles, *self.several)

    def scaled(self, scale: float) -> Theme:
        """The same theme with more or fewer rules and events."""
        return replace(self, rules=max(5, int(scale * self.rules)), events=max(1, int(scale * self.events)))


_WIDE = tuple(range(400)) + tuple(x + 0.5 for x in range(0, 400, 7))
_CROWD: dict[str, Kind] = {"s0": "string", "s1": "string", "t": "time", **{f"k{i}": "number" for i in range(6)}}
_SPARSE: dict[str, Kind] = {**{f"k{i}": "number" for i in range(60)}, **{f"s{i}": "string" for i in range(20)}}
THEMES: tuple[Theme, ...] = (
    Theme("kinds"),
    Theme("sparse", rules=120, events=32, singles=_SPARSE, several={"m": "number"}, stray=0.03,
          numbers=(*range(6), 0.5),
          strings=("", "x", "y", "xy"), leaves=(1, 2, 3, 3, 4, 6, 9), conjunctive=0.5, negations=0.02, patterns=0.3,
          density=(0.0, 0.02, 0.05, 0.15, 0.4), planted=True, negated=0.02, nulls=0.02),
    Theme("reuse", rules=120, events=40, singles={f"k{i}": "number" for i in range(12)}, several={}, stray=0.02,
          numbers=tuple(range(9)), leaves=(2, 3, 4, 6, 9, 12), reuse=0.6, conjunctive=0.5, negations=0.03, patterns=0.0,
          negated=0.05, nulls=0.05, density=(0.05, 0.2, 0.5, 1.0), planted=True),
    Theme("crowd", rules=900, events=64, singles=_CROWD, several={"m": "number"}, stray=0.05, numbers=(*range(8), 2.5),
          strings=("", *(f"w{i}" for i in range(8))), leaves=(1, 2, 2, 3, 3, 4, 5, 6), conjunctive=0.93, negations=0.05,
          patterns=0.3),
    Theme("wide", singles={"a": "number", "b": "number", "s": "string"}, several={"m": "number"},
          numbers=_WIDE, strings=tuple(f"v{i:03}" for i in range(150)), stray=0.08,
          values=(500,), list_lengths=(1, 2, 3, 5, 20, 70, 120)),
    Theme("texts", singles={"a": "string", "b": "string", "n.x": "string"}, several={"w": "string"}, stray=0.1,
          patterns=6.0),
    Theme("shapes", rules=40, events=60, leaves=(1, 2, 3, 5, 12, 12, 30, 63, 64, 65, 129), conjunctive=0.5, stray=0.15),
    Theme("several", singles={"a": "number"}, several={"m": "number", "w": "string", "f": "boolean", "t": "time"}),
    Theme("ranges", rules=100, events=48, several={}, times=TIMES, ranges=True),
)  # fmt: skip


class Drawer:
    """Draws the rules and events of one round; the same ones for the same theme and seed."""

    def __init__(self, theme: Theme, seed: int) -> None:
        self.theme = theme
        self.random = random.Random(f"{theme.name} {seed}")
        # Few values of each kind, others with each seed: rules and events have to meet.
        few = self.random.choice(theme.values)
        self._pools: dict[Kind, Sequence[Value]] = {
            "number": self._some(theme.numbers, few), "string": self._some(theme.strings, few),
            "time": self._some(theme.times, few), "boolean": BOOLEANS,
        }  # fmt: skip
        self._homes = {**theme.singles, **theme.several}
        self._known: list[Node] = []  # sub-trees to draw again

    def _some(self, pool: tuple[Value, ...], few: int) -> list[Value]:
        return self.random.sample(pool, min(few, len(pool)))

    # -- rules

    def rule(self, leaves: int | None = None) -> Node:
        choose = self.random
        if leaves is None and choose.random() < 0.01:
            return Constant(choose.random() < 0.5)
        size = choose.choice(self.theme.leaves) if leaves is None else leaves
        if size > 12:
            return self.chain(min(size, _DEEPEST)) if choose.random() < 0.25 else self.tree(size)
        made = self.tree(size, choose.random() < 0.8)
        if len(self._known) < 40:
            self._known.append(made)
        elif choose.random() < 0.1:
            self._known[choose.randrange(40)] = made
        return made

    def tree(self, leaves: int, fresh: bool = False) -> Node:
        """A tree of about so many leaves; `fresh`: not one that was drawn before, though what is below may be."""
        choose = self.random
        if leaves <= 1:
            node: Node = self.predicate()
        elif not fresh and leaves <= 12 and self._known and choose.random() < self.theme.reuse:
            node = choose.choice(self._known)
        else:
            # A wide node now and then, and else a few children of different sizes.
            width = leaves if choose.random() < 0.25 else min(leaves, choose.choice((2, 2, 3, 4)))
            sizes = [1] * width
            for _ in range(leaves - width):
                sizes[choose.randrange(width)] += 1
            children = tuple(self.tree(size) for size in sizes)
            node = And(children) if choose.random() < self.theme.conjunctive else Or(children)
        return Not(node) if choose.random() < self.theme.negations else node

    def chain(self, leaves: int) -> Node:
        """A tree about as deep as it has leaves: ANDs and ORs take turns, each with a predicate on one side."""
        node: Node = self.predicate()
        for level in range(1, leaves):
            children = (self.predicate(), node) if self.random.random() < 0.5 else (node, self.predicate())
            node = And(children) if level % 2 else Or(children)
        return node

    def predicate(self) -> Predicate:
        choose, theme = self.random, self.theme
        name = choose.choice(theme.attributes)
        negated = choose.random() < theme.negated
        weights = (3.0, 3.0, 3.0, 2.0, theme.patterns, theme.nulls, 4.0 if name in theme.several else 0.0)
        form = choose.choices(("=", "in", "order", "between", "like", "is null", "contains"), weights)[0]
        if form == "=":
            return Predicate(name, "=", (self.value(name),), negated)
        if form == "in":
            return Predicate(name, "in", self._list(name), negated)
        if form == "contains":
            how: Any = choose.choice(("contains any", "contains all"))
            return Predicate(name, how, self._list(name), negated)
        if form == "like":
            return Predicate(name, "like", (self.pattern(),), negated)
        if form == "is null":
            return Predicate(name, "is null", (), negated)
        kind = self._kind(name)
        if kind == "boolean":
            return Predicate(name, "=", (choose.random() < 0.5,), negated)
        pool = self._pools[kind]
        if form == "order":
            operator: Any = choose.choice(("<", "<=", ">", ">="))
            return Predicate(name, operator, (choose.choice(pool),))
        low, high = choose.choice(pool), choose.choice(pool)
        return Predicate(name, "between", (low, high), negated)

    def pattern(self) -> str:
        """A pattern over few letters; where events are ranges, one that is a prefix or a whole string."""
        choose = self.random
        if choose.random() < 0.4:
            start = str(choose.choice(self.theme.strings))
            head = "".join("\\" + c if c in "%_\\" else c for c in start)
            return head + ("%" if choose.random() < 0.8 else "")
        if self.theme.ranges:
            return choose.choice(("", "a", "a%", "ab%", "%"))
        if choose.random() < 0.2:
            n = choose.choice((7, 8, 64, 120))
            return choose.choice((f"%{'p' * n}a", f"{'p' * n}_%", f"{'p' * n}%a", f"%p{'p' * n}%b"))
        return "".join(
            choose.choice(("a", "b", "p", "%", "_", "é", "1", "w", "\\%", "\\_")) for _ in range(choose.randint(0, 5))
        )

    def value(self, name: str) -> Value:
        return self.random.choice(self._pools[self._kind(name)])

    def _kind(self, name: str) -> Kind:
        return self.random.choice(KINDS) if self.random.random() < self.theme.stray else self._homes[name]

    def _list(self, name: str) -> tuple[Value, ...]:
        return tuple(self.value(name) for _ in range(self.random.choice(self.theme.list_lengths)))

    # -- events

    def event(self) -> dict[str, Any]:
        """An event of any shape: attributes absent, null or of any kind; nested or under flat names."""
        choose, made = self.random, dict[str, Any]()
        density = choose.choice(self.theme.density)
        for name in choose.sample(self.theme.attributes, len(self.theme.attributes)):
            if choose.random() >= density:
                continue
            value = self._event_value(name)
            outer, _, inner = name.partition(".")
            if inner and isinstance(made.get(outer, {}), dict) and choose.random() < 0.6:
                made.setdefault(outer, {})[inner] = value
            elif not isinstance(made.get(name), dict):
                made[name] = value
        if self.theme.planted and self._known:
            for leaf in predicates_of(choose.choice(self._known)):
                if leaf.values and choose.random() < 0.85:
                    made[leaf.attribute] = choose.choice(leaf.values)
        return made

    def _event_value(self, name: str) -> Any:
        choose = self.random
        if name in self.theme.several and choose.random() < 0.8:
            some = [self._one_value(name) for _ in range(choose.choice((0, 1, 1, 2, 2, 3, 5)))]
            return choose.choice((list, list, tuple))(some + some[:1] if choose.random() < 0.1 else some)
        if self.theme.ranges and choose.random() < 0.5:
            return self._range(name)
        return self._one_value(name)

    def _one_value(self, name: str) -> Any:
        odd = self.random.random()
        return None if odd < 0.04 else {"zz": 1} if odd < 0.06 else self.any_value(self._kind(name))

    def any_value(self, kind: Kind) -> Any:
        """A value of a kind as an event may hold it: also infinite, NaN, or a time without a zone."""
        choose = self.random
        if choose.random() < 0.1 and kind in ("number", "time"):
            return choose.choice(ODD_NUMBERS if kind == "number" else ODD_TIMES)
        return choose.choice(self._pools[kind])

    def _range(self, name: str) -> Any:
        """A range that allows some value: one that allows none is refused."""
        while True:
            made = self._any_range(name)
            if range_set(made):
                return made

    def _any_range(self, name: str) -> Range:
        choose = self.random
        kind = self._kind(name)
        pool = self._pools[kind]
        some = [choose.choice(pool) for _ in range(choose.choice((1, 2, 3)))]
        form = choose.randrange(5)
        if kind == "boolean" or form == 0:
            return OneOf(*some) if choose.random() < 0.5 or len(set(some)) > 1 else NoneOf(*some)
        if form == 1:
            return Below(some[0], choose.random() < 0.5)
        if form == 2:
            return Above(some[0], choose.random() < 0.5)
        if form == 3:
            return NoneOf(*some)
        try:
            low, high = sorted((some[0], choose.choice(pool)), key=_order)
        except TypeError:
            return OneOf(*some)
        return Between(low, high)


def _order(value: Any) -> Any:
    """Something to sort values of one kind by: a date is its midnight."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value
