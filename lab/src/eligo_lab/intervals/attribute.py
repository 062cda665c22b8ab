r"""PS-Tree for one attribute, whose values are of any kind (the PS-Tree paper §4): the structure in its plain form.

The paper writes a value as elements and gives each a level of the tree. Here an element is a whole word of 64 bits, and
the levels within one are the inner nodes' (nodes.py); a value has a second element only where one word cannot tell it
from its neighbours. What lies behind an element is a layer (string_trie.py).

    kind       first      then
    number     NUMBER     the float at or below it, as 64 bits in its order (sign, exponent and mantissa of the paper)
                          how far above it: of integers beyond 2^53, which lie between two floats
    Boolean    BOOLEAN    0, 1; an object, which no predicate names: 2
    time       TIME       microseconds since 1970
    string     STRING     seven bytes of UTF-8 and how many there are, and more follow; the next seven …

    x >= 5, 'Sun' <= x < 'Suo'         NUMBER ┬─────────────┐  BOOLEAN, TIME   STRING ┬───────────┐
                                              │ < 5 │ 5 … ∞ │                         │ … │Sun│ … │

A predicate is a set of values between cuts (language/values.py). Each cut becomes a border, and the predicate covers
the spaces from each low cut to the high one. A border goes with the last predicate that has a cut there: the spaces on
both its sides then have the same predicates. A layer goes once it is one space, and with it the borders around it.

Invariant: `_covering[s]` has the predicates that hold for each value in space s; s counts them; without predicates all
values are one space. Absent values satisfy nothing. Lists here are Python's: pst-bloom and pst-hash have their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import numpy as np

from eligo.compile.codes import ordered_bits
from eligo.errors import DuplicateRuleError, EventError, RuleTypeError, UnknownRuleError
from eligo.index.ps_tree.nodes import SEEN
from eligo.index.ps_tree.pools import Pools
from eligo.index.ps_tree.spaces import (
    before_space,
    count_predicate,
    cut,
    hold_border,
    is_layer,
    is_void,
    join,
    next_space,
    open_line,
    predicates_of,
    space_at,
)
from eligo.index.ps_tree.string_trie import close_layers, isolate, slice_at
from eligo.language.render import render
from eligo.language.tree import Predicate, Value
from eligo.language.values import (
    BOOLEAN,
    END,
    INT_MAX,
    INT_MIN,
    NUMBER,
    OBJECT,
    STRING,
    TIME,
    Cut,
    ValueSet,
    complement,
    is_residual,
    microseconds,
    positive_set,
)

LINE = 0
OPERATORS = ("=", "<", "<=", ">", ">=", "in", "between", "like")
_HALF = 1 << 63  # turns the order of signed words into that of unsigned ones
_ROOM = 64  # layers made between two looks at the room for them
Path = tuple[int, ...]


class AttributeTree:
    """Predicates on one attribute by the spaces that they cover; see the top of this file."""

    def __init__(self) -> None:
        self._pools = Pools(1)
        self._make_room()
        open_line(self._pools.handle, LINE)
        self._covering: dict[int, set[int]] = {int(self._pools.root[LINE]): set()}
        self._sets: dict[int, ValueSet] = {}

    def insert(self, number: int, predicate: Predicate) -> None:
        """InsertPredicate (the PS-Tree paper Algorithm 1)."""
        if number in self._sets:
            raise DuplicateRuleError(f"predicate {number} is already there: delete it first")
        if predicate.operator not in OPERATORS or predicate.variable or is_residual(predicate):
            raise RuleTypeError(
                f"{render(predicate)}: no set of an attribute's values; a PS-Tree takes {', '.join(OPERATORS)}, of "
                "patterns those that are a prefix and %, and their negations"
            )
        runs = positive_set(predicate)
        if predicate.negated:
            runs = complement(runs)
        self._sets[number] = runs
        for path in self._borders(runs):
            self._hold(path)
        for s in self._spaces(runs):
            self._covering[s].add(number)
            count_predicate(self._pools.handle, s, 1)

    def delete(self, number: int) -> None:
        """DeletePredicate (the PS-Tree paper §4.4)."""
        if number not in self._sets:
            raise UnknownRuleError(f"predicate {number} is not there")
        runs = self._sets.pop(number)
        for s in list(self._spaces(runs)):
            self._covering[s].remove(number)
            count_predicate(self._pools.handle, s, -1)
        for path in self._borders(runs):
            self._release(path)

    def space_of(self, value: Value) -> int:
        """MatchPair (the PS-Tree paper Algorithm 3): the space that a value lies in."""
        t, cell = self._pools.handle, LINE
        for element in elements(value):
            s = space_at(t, cell, np.uint64(element))
            if not is_layer(t, s):
                return int(s)
            cell = ~s
        return self._first_in(~cell)

    def matching(self, value: Value | None) -> list[int]:
        """The numbers of the predicates that hold for a value, ascending; none does where there is no value."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return []
        return sorted(self._covering[self.space_of(value)])

    def count(self, value: Value) -> int:
        """How many predicates hold for a value: the counter of its space."""
        return int(predicates_of(self._pools.handle, self.space_of(value)))

    def observe(self, value: Value) -> None:
        """Count an event with this value."""
        self._pools.space[4 * self.space_of(value) + SEEN] += 1

    def events(self, value: Value) -> int:
        """How many observed events came to the space of a value; a space that was cut had those of both its parts."""
        return int(self._pools.space[4 * self.space_of(value) + SEEN])

    @property
    def spaces(self) -> int:
        """How many spaces there are."""
        return int(self._pools.spaces[LINE])

    def __len__(self) -> int:
        return len(self._sets)

    def _make_room(self) -> None:
        self._pools.make_room(1, 4 * _ROOM, 0)

    def _first_in(self, s: int) -> int:
        """The first space of a layer, or a space itself."""
        t = self._pools.handle
        while is_layer(t, s):
            s = space_at(t, ~s, np.uint64(0))
        return int(s)

    def _borders(self, runs: ValueSet) -> Iterator[Path]:
        """Where a set of values begins and ends, but for the ends of all values."""
        for run in runs:
            for path in map(path_of, run):
                if path not in ((NUMBER,), (END,)):
                    yield path

    def _spaces(self, runs: ValueSet) -> Iterator[int]:
        """The spaces of a set whose borders are there."""
        for low, high in runs:
            s = self._first_in(self._find(path_of(low)))
            stop = self._first_in(self._find(path_of(high))) if high != (END,) else -1
            while s != stop:
                following = int(next_space(self._pools.handle, s))
                yield s
                s = following

    def _find(self, path: Path) -> int:
        """The space, or layer, that begins at a border."""
        t, cell = self._pools.handle, LINE
        for element in path[:-1]:
            cell = ~int(space_at(t, cell, np.uint64(element)))
        return int(space_at(t, cell, np.uint64(path[-1])))

    def _hold(self, path: Path) -> None:
        """Partition (the PS-Tree paper Algorithm 2): let there be a border, which one predicate more needs."""
        cell = LINE
        for depth, element in enumerate(path[:-1]):
            if depth % _ROOM == 0:
                self._make_room()
            s = int(space_at(self._pools.handle, cell, np.uint64(element)))
            if not is_layer(self._pools.handle, s):
                self._cut(cell, element)
                self._cut(cell, element + 1)
                s = int(isolate(self._pools.handle, LINE, cell, np.uint64(element)))
            cell = ~s
        hold_border(self._pools.handle, self._cut(cell, path[-1]), 1)

    def _cut(self, cell: int, x: int) -> int:
        """Let a space begin at a position of a layer; which. The new one has what the one before has."""
        t = self._pools.handle
        before = int(space_at(t, cell, np.uint64(x)))
        s = int(cut(t, LINE, cell, np.uint64(x)))
        if s != before:
            self._covering[s] = set(self._covering[before])
        return s

    def _release(self, path: Path) -> None:
        """One predicate less needs a border; what nothing tells apart any more becomes one."""
        self._make_room()
        t, s = self._pools.handle, self._find(path)
        hold_border(t, s, -1)
        waiting = [s]
        while waiting:
            s = waiting.pop()
            if is_layer(t, s):
                continue
            if is_void(t, s):
                before = int(before_space(t, s))
                join(t, LINE, s)
                del self._covering[s]
                s = before
            behind = int(close_layers(t, LINE, s))
            if behind >= 0:
                waiting += [s, behind]


def path_of(border: Cut) -> Path:
    """The elements of the value right above a cut, up to the last that is not 0."""
    if len(border) == 1:
        return border
    kind, value = border
    if isinstance(value, str):
        # Right after s is right before s + NUL: one above s, where all begins that goes on behind its seven bytes.
        *front, last = slices(value.removesuffix("\0"))
        return STRING, *front, last + value.endswith("\0")
    if kind != NUMBER:
        return kind, int(value) + (_HALF if kind == TIME else 0)
    near, above = number_elements(value)
    return (NUMBER, near, above) if above else (NUMBER, near)


def elements(value: Any) -> Iterator[int]:
    """A value as positions, each within the layer behind the one before."""
    if isinstance(value, bool):
        yield from (BOOLEAN, int(value))
    elif isinstance(value, Mapping):
        yield from (BOOLEAN, OBJECT)
    elif isinstance(value, str):
        yield from (STRING, *slices(value))
    elif isinstance(value, date):
        yield from (TIME, microseconds(value) + _HALF)
    elif isinstance(value, int) and not INT_MIN <= value <= INT_MAX:
        raise EventError(f"{value} does not fit 64 bits: give it as a float")
    elif isinstance(value, int | float) and not math.isnan(value):
        yield from (NUMBER, *number_elements(value))
    else:
        raise EventError(f"{value!r} is no value: give a number, a string, a Boolean or a date")


def number_elements(value: int | float) -> tuple[int, int]:
    """The float at or below a number, in the order of unsigned words, and how far above it the number lies."""
    near = float(value)
    if near > value:
        near = math.nextafter(near, -math.inf)
    return ordered_bits(near) + _HALF, int(value - int(near)) if near != value else 0


def slices(text: str) -> list[int]:
    """A string as the slices that string_trie.py makes of it."""
    data = np.array(bytearray(text.encode("utf-8", "surrogatepass")), np.uint8)
    return [int(slice_at(data, 0, len(data), layer)) for layer in range(max(-(-len(data) // 7), 1))]
