"""`shared`: one DAG of all sub-expressions, each evaluated at most once an event.

The paper on complex expressions leaves common sub-expressions to the future; here they are parts that rules name
(evaluate/sharing.py). Two ways lead from the satisfied conjunctions to the rules, and the cheaper one is taken:

    from below   a conjunction starts the units that it is a starter of (programs.py); a unit that is started is asked
                 from the top, and a part that becomes true so starts others. What a unit asks about is looked up (a
                 conjunction), remembered (a part asked before) or asked in turn
    in layers    all nodes are evaluated, height by height (layers.py): where a large share of the labels is satisfied,
                 reading everything in order takes less time than finding out what need not be read

A batch is evaluated in layers 64 events at a time, a word instead of a byte for each place.

While one event is evaluated `truth` has a bit for each conjunction or, in layers, `value` a byte for each conjunction
and node; `state` has a byte for each part, `bits` and `whole` a bit for each rule: whether it is to be asked, and
whether it is known to hold. Invariant: between events all of them are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import F64, I32, I64, U8, Arrays, Compiled
from eligo.errors import LimitError
from eligo.evaluate.base import Evaluator, EvaluatorScratch
from eligo.evaluate.dag import (
    DAG_ARRAYS,
    make_shared,
    make_shared_scratch,
    shared_batch,
    shared_complete,
    shared_group,
    shared_one,
)
from eligo.evaluate.layers import COUNT, build_layers
from eligo.evaluate.programs import chances, find_starters, mark_starters, measure_units, write_programs
from eligo.evaluate.sharing import share
from eligo.forking import cached_property
from eligo.jit import entry

_ROOM = 1 << 21  # matches of a batch that are kept until the caller takes them
_MOST = 1 << 30  # units that a label has room for


class SharedScratch(EvaluatorScratch):
    """Bits, states, lists and a stack for one evaluation at a time."""

    def __init__(self, rules: int, conjunctions: int, parts: int, places: int, deepest: int) -> None:
        super().__init__(rules)
        self.matched = np.zeros(max(len(self.matched), min(_ROOM, 64 * rules)), np.int32)
        self._places = places
        self.one: Any = None  # the machine code for one event
        self.satisfied: tuple[I32, int] = np.zeros(0, np.int32), 0
        self.handle = make_shared_scratch(
            np.zeros(conjunctions // 64 + 1, np.uint64),
            np.zeros(places, np.uint8),
            np.zeros(parts, np.uint8),
            np.zeros(parts, np.int32),
            np.zeros(parts, np.int32),
            np.zeros(parts, np.int32),
            np.zeros(rules, np.int32),
            np.zeros((deepest, 3), np.int64),
            np.zeros((rules + 63) // 64, np.uint64),
            np.zeros((rules + 63) // 64, np.uint64),
            self.matched,
        )

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """Room for 64 events in layers, made at its first use: only batches need it."""
        return np.zeros(self._places, np.uint64)


class Shared(Evaluator):
    """Evaluator over one DAG; see the top of this file."""

    name = "shared"
    by_likelihood = True
    summary = "one DAG of all sub-expressions, each evaluated at most once an event"

    def __init__(self, conjunctions: int, own: Arrays) -> None:
        self._conjunctions, self._own = conjunctions, own
        self._rules = len(own["root"])
        self._parts = len(own["start"]) - 1 - self._rules
        self.handle = make_shared(*(own[name] for name in DAG_ARRAYS), conjunctions)

    @classmethod
    def arrange(cls, compiled: Compiled) -> Compiled:
        return share(compiled)

    @classmethod
    def build(cls, compiled: Compiled, likelihood: F64 | None = None) -> Shared:
        conjunctions, parts = compiled.conjunctions, compiled.parts
        if parts + compiled.rules > _MOST or len(compiled.tree) + len(compiled.part) >= 1 << 31:
            raise LimitError(
                f"evaluator 'shared' has room for {_MOST:,} rules and shared expressions in one segment, not for "
                f"{parts + compiled.rules:,}: split the rules over several matchers"
            )
        if likelihood is None:
            likelihood = np.full(compiled.predicates, 0.5)
        chance = chances(compiled.conjunction_offsets, compiled.conjunction, likelihood)
        start, code = write_programs(compiled.tree, compiled.tree_offsets, compiled.part, compiled.part_offsets, chance)
        up_offsets, up = find_starters(code, start, parts, conjunctions)
        groups, kid, root = build_layers(code, start, parts, conjunctions)
        facts, starting = measure_units(code, start, parts, conjunctions), np.zeros(conjunctions // 64 + 1, np.uint64)
        mark_starters(up_offsets, starting)
        own = (start, code, up_offsets, up, groups, kid, root, facts, starting)
        return cls(conjunctions, dict(zip(DAG_ARRAYS, own, strict=True)))

    @classmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Shared:
        return cls(compiled.conjunctions, {name: arrays[name] for name in DAG_ARRAYS})

    def arrays(self) -> Arrays:
        return self._own

    def notes(self) -> dict[str, object]:
        code = self._own["code"]
        return {
            "shared expressions": self._parts,
            "leaves of all rules": int(self._own["facts"][1]),
            "leaves after sharing": int(np.count_nonzero((code >= 0) & (code < self._conjunctions))),
        }

    def scratch(self) -> SharedScratch:
        places = self._conjunctions + int(self._own["groups"][:, COUNT].sum()) + 1
        return SharedScratch(self._rules, self._conjunctions, self._parts, places, int(self._own["facts"][0]))

    def group(self, found: I32, count: int, scratch: SharedScratch) -> int:
        scratch.satisfied = found, count
        return shared_group(self.handle, found, count)  # type: ignore[no-any-return]

    def complete(self, touched: int, allowed: U8, scratch: SharedScratch) -> int:
        found, count = scratch.satisfied
        return shared_complete(self.handle, touched, found, count, allowed, scratch.handle)  # type: ignore[no-any-return]

    def evaluate(self, found: I32, count: int, allowed: U8, scratch: SharedScratch) -> int:
        one = scratch.one
        if one is None:
            one = scratch.one = entry(shared_one, self.handle, found, count, allowed, scratch.handle)
        return one(self.handle, found, count, allowed, scratch.handle)  # type: ignore[no-any-return]

    def evaluate_batch(self, found: I32, offsets: I64, events: int, allowed: U8, scratch: Any, ends: I64) -> int:
        args = self.handle, found, offsets, events, allowed, scratch.handle, scratch.words, ends
        return (scratch.enter or scratch.bind(shared_batch, args))(*args)  # type: ignore[no-any-return]
