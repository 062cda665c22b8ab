"""`shared`: one DAG of all sub-expressions, each evaluated at most once an event.

complex-boolean-expressions.txt leaves common sub-expressions to the future; here they are parts that rules name
(compile/sharing.py). Two ways lead from the satisfied conjunctions to the rules, and the cheaper one is taken:

    from below   a conjunction starts the units that it is a starter of (programs.py); a unit that is started is asked
                 from the top, and a part that becomes true so starts others. What a unit asks about is looked up (a
                 conjunction), remembered (a part asked before) or asked in turn
    in layers    all nodes are evaluated, height by height (layers.py): where a large share of the labels is satisfied,
                 reading everything in order takes less time than finding out what need not be read

While one event is evaluated `truth` has a bit for each conjunction or, in layers, `value` a byte for each conjunction
and node; `state` has a byte for each part, `seen` one for each rule. Invariant: between events all of them are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.experimental import structref

from eligo.compile.compiled import F64, I32, I64, U8, Arrays, Compiled
from eligo.compile.sharing import share
from eligo.errors import LimitError
from eligo.evaluate.base import Evaluator, EvaluatorScratch
from eligo.evaluate.layers import COUNT, build_layers, settle_layers
from eligo.evaluate.leaves import EVERYTHING, in_order
from eligo.evaluate.programs import COMPLETES, SOLE, chances, find_starters, write_programs
from eligo.evaluate.registry import register
from eligo.jit import define_handle, inline, kernel, trailing_zeros

_OWN = ("start", "code", "up_offsets", "up", "groups", "kid", "root", "deepest")
_MOST = 1 << 29  # units that a label has room for
# Reading a child in layers is the unit of time: from below a conjunction takes about 14 of it, a label 7 times that.
DENSE, LABEL = 14, 7
SCATTERED = 8  # with fewer satisfied conjunctions than this share of the words of `truth`, they are taken as they come

FALSE, TRUE, STARTED = 1, 2, 3  # states of a part: asked and false, asked and true, true and its units started
CALL = 2  # on the stack, beside AND (0) and OR (1): the part that is being asked


class SharedScratch(EvaluatorScratch):
    """Bits, states, lists and a stack for one evaluation at a time."""

    def __init__(self, rules: int, conjunctions: int, parts: int, places: int, deepest: int) -> None:
        super().__init__(rules)
        self.satisfied: tuple[I32, int] = np.zeros(0, np.int32), 0
        self.handle = make_shared_scratch(
            np.zeros(conjunctions // 64 + 1, np.uint64),
            np.zeros(places, np.uint8),
            np.zeros(conjunctions, np.int32),
            np.zeros(parts, np.uint8),
            np.zeros(rules, np.uint8),
            np.zeros(parts, np.int32),
            np.zeros(parts, np.int32),
            np.zeros(rules, np.int32),
            np.zeros((deepest, 3), np.int64),
            np.zeros((rules + 63) // 64, np.uint64),
            self.matched,
        )


@register
class Shared(Evaluator):
    """One DAG; see the top of this file."""

    name = "shared"
    summary = "one DAG of all sub-expressions, each evaluated at most once an event"

    def __init__(self, conjunctions: int, own: Arrays) -> None:
        self._conjunctions, self._own = conjunctions, own
        self._rules = len(own["root"])
        self._parts = len(own["start"]) - 1 - self._rules
        self.handle = make_shared(*(own[name] for name in _OWN), conjunctions)

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
        deepest = deepest_stack(code, start, conjunctions)
        own = (start, code, up_offsets, up, groups, kid, root, deepest)
        return cls(conjunctions, dict(zip(_OWN, own, strict=True)))

    @classmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Shared:
        return cls(compiled.conjunctions, {name: arrays[name] for name in _OWN})

    def arrays(self) -> Arrays:
        return self._own

    def scratch(self) -> SharedScratch:
        places = self._conjunctions + int(self._own["groups"][:, COUNT].sum()) + 1
        return SharedScratch(self._rules, self._conjunctions, self._parts, places, int(self._own["deepest"][0]))

    def group(self, found: I32, count: int, scratch: SharedScratch) -> int:
        scratch.satisfied = found, count
        return shared_group(self.handle, found, count)  # type: ignore[no-any-return]

    def complete(self, touched: int, allowed: U8, scratch: SharedScratch) -> int:
        found, count = scratch.satisfied
        return shared_complete(self.handle, touched, found, count, allowed, scratch.handle)  # type: ignore[no-any-return]

    def evaluate(self, found: I32, count: int, allowed: U8, scratch: SharedScratch) -> int:
        return shared_one(self.handle, found, count, allowed, scratch.handle)  # type: ignore[no-any-return]

    def evaluate_batch(self, found: I32, offsets: I64, events: int, allowed: U8, scratch: Any, ends: I64) -> int:
        return shared_batch(self.handle, found, offsets, events, allowed, scratch.handle, ends)  # type: ignore[no-any-return]


@structref.register
class SharedHandleType(types.StructRef):
    """The arrays of the evaluator as one argument of kernels."""


class SharedHandle(structref.StructRefProxy):
    pass


define_handle(SharedHandle, SharedHandleType, (*_OWN, "conjunctions"))


@structref.register
class SharedScratchType(types.StructRef):
    """The memory of one evaluation as one argument of kernels."""


class SharedScratchHandle(structref.StructRefProxy):
    pass


define_handle(
    SharedScratchHandle,
    SharedScratchType,
    ("truth", "value", "ordered", "state", "seen", "asked", "queue", "touched", "stack", "bits", "matched"),
)


@kernel
def make_shared(start, code, up_offsets, up, groups, kid, root, deepest, conjunctions):  # type: ignore[no-untyped-def]
    return SharedHandle(start, code, up_offsets, up, groups, kid, root, deepest, conjunctions)


@kernel
def make_shared_scratch(  # type: ignore[no-untyped-def]
    truth, value, ordered, state, seen, asked, queue, touched, stack, bits, matched
):
    return SharedScratchHandle(truth, value, ordered, state, seen, asked, queue, touched, stack, bits, matched)


@kernel
def deepest_stack(code, start, conjunctions):  # type: ignore[no-untyped-def]
    """How many nodes and parts can be under way at once when a unit is asked."""
    deepest, height = np.ones(1, np.int64), np.zeros(len(code) + 1, np.int32)
    after = np.zeros(len(code) + 1, np.int32)
    for u in range(len(start) - 1):
        for t in range(start[u + 1] - 1, start[u] - 1, -1):
            token = code[t]
            after[t] = t + 1
            if token >= conjunctions:
                height[t] = height[start[token - conjunctions]] + 1
            elif token < 0:
                child = t + 1
                for _ in range((-token) // 2):
                    height[t] = max(height[t], height[child])
                    child = after[child]
                height[t] += 1
                after[t] = child
            deepest[0] = max(deepest[0], height[t])
    return deepest


@inline
def choose_way(dag, found, first, stop):  # type: ignore[no-untyped-def]
    """How many labels found[first:stop] have, or EVERYTHING: layers are cheaper."""
    up_offsets, count = dag.up_offsets, stop - first
    room = (len(dag.kid) + len(dag.root)) // DENSE
    # By the average first: to look at each one's labels is a part of the way from below.
    labels = count * len(dag.up) // max(1, dag.conjunctions)
    if count + LABEL * labels <= 2 * room:
        labels = 0
        for i in range(first, stop):
            labels += up_offsets[found[i] + 1] - up_offsets[found[i]]
    return EVERYTHING if count + LABEL * labels > room else labels


@inline
def in_layers(dag, found, first, stop, allowed, w, k):  # type: ignore[no-untyped-def]
    """The rules that hold, in their order, into matched from k on; where they end."""
    value, matched, root = w.value, w.matched, dag.root
    all_allowed = len(allowed) == 0
    for i in range(first, stop):
        value[found[i]] = 1
    settle_layers(dag.groups, dag.kid, value)
    for rule in range(len(root)):
        matched[k] = rule  # no branch: half of the rules may match
        k += value[root[rule]] and (all_allowed or allowed[rule] != 0)
    for place in range(len(value)):
        value[place] = 0
    return k


@inline
def from_below(dag, found, first, stop, allowed, w, k):  # type: ignore[no-untyped-def]
    """The rules that hold into matched from k on, in ascending order; where they end."""
    start, code, up_offsets, up, conjunctions = dag.start, dag.code, dag.up_offsets, dag.up, dag.conjunctions
    truth, state, seen, asked, queue, touched = w.truth, w.state, w.seen, w.asked, w.queue, w.touched
    stack, matched = w.stack, w.matched
    parts = len(state)
    all_allowed = len(allowed) == 0
    begin, n_asked, n_touched, waiting, taken = k, 0, 0, 0, 0
    # Conjunctions are numbered as rules name them, so in ascending order all that follows is read in order too.
    ordered = w.ordered
    for j in range(first, stop):
        truth[found[j] >> 6] |= np.uint64(1) << np.uint64(found[j] & 63)
    i, count = 0, stop - first
    if count * SCATTERED > len(truth):
        for word in range(len(truth)):
            left_bits = truth[word]
            while left_bits:
                ordered[i] = (word << 6) + np.int64(trailing_zeros(left_bits))
                left_bits &= left_bits - np.uint64(1)
                i += 1
    else:
        for j in range(count):
            ordered[j] = found[first + j]
    i = 0
    while i < count or taken < waiting:
        # The next that has become true: a conjunction, or a part that one of them started.
        if i < count:
            x = np.int64(ordered[i])
            i += 1
        else:
            x = np.int64(queue[taken]) + conjunctions
            taken += 1
        for d in range(up_offsets[x], up_offsets[x + 1]):
            label = up[d]
            unit = label >> 2
            rule = unit - parts
            value = label & COMPLETES != 0
            if rule >= 0:
                if label & SOLE == 0:
                    if seen[rule]:
                        continue
                    seen[rule] = 1
                    touched[n_touched] = rule
                    n_touched += 1
                if not all_allowed and allowed[rule] == 0:
                    continue
            elif state[unit] == TRUE:
                value = True
            elif state[unit] != 0:
                continue
            # Ask the unit from the top. A row of the stack: AND, OR or CALL; children still to come; or, of a call, the
            # part and where to go on.
            t, depth, going = np.int64(start[unit]), 0, not value
            while going:
                token = code[t]
                t += 1
                if token < 0:
                    stack[depth, 0], stack[depth, 1] = token & 1, (-token) // 2
                    depth += 1
                    continue
                if token < conjunctions:
                    value = truth[token >> 6] >> np.uint64(token & 63) & np.uint64(1) != 0
                else:
                    p = token - conjunctions
                    if state[p] == 0:
                        stack[depth, 0], stack[depth, 1], stack[depth, 2] = CALL, p, t
                        depth += 1
                        t = np.int64(start[p])
                        continue
                    value = state[p] != FALSE
                # Up, as far as this value settles what is above it.
                while depth > 0:
                    kind, left = stack[depth - 1, 0], stack[depth - 1, 1] - 1
                    if kind == CALL:
                        depth -= 1
                        state[left + 1] = TRUE if value else FALSE
                        asked[n_asked] = left + 1
                        n_asked += 1
                        t = stack[depth, 2]
                        continue
                    stack[depth - 1, 1] = left
                    if value != (kind == 1):
                        if left > 0:
                            break
                        depth -= 1
                        continue
                    # Settled: the other children are left out, unless what is above goes on elsewhere anyway.
                    depth -= 1
                    if depth > 0 and stack[depth - 1, 0] != CALL:
                        while left > 0:
                            token = code[t]
                            t += 1
                            left += (-token) // 2 - 1 if token < 0 else -1
                going = depth > 0
            if rule >= 0:
                if value:
                    matched[k] = rule
                    k += 1
                continue
            if state[unit] == 0:
                asked[n_asked] = unit
                n_asked += 1
            state[unit] = STARTED if value else FALSE
            if value:
                queue[waiting] = unit
                waiting += 1
    for i in range(count):
        truth[ordered[i] >> 6] = 0
    for i in range(n_asked):
        state[asked[i]] = 0
    for i in range(n_touched):
        seen[touched[i]] = 0
    in_order(matched, begin, k, w.bits)
    return k


@inline
def finish_shared(dag, way, found, first, stop, allowed, w, k):  # type: ignore[no-untyped-def]
    if way == EVERYTHING:
        return in_layers(dag, found, first, stop, allowed, w, k)
    return from_below(dag, found, first, stop, allowed, w, k)


@kernel
def shared_group(dag, found, count):  # type: ignore[no-untyped-def]
    return choose_way(dag, found, 0, count)


@kernel
def shared_complete(dag, touched, found, count, allowed, w):  # type: ignore[no-untyped-def]
    return finish_shared(dag, touched, found, 0, count, allowed, w, 0)


@kernel
def shared_one(dag, found, count, allowed, w):  # type: ignore[no-untyped-def]
    return finish_shared(dag, choose_way(dag, found, 0, count), found, 0, count, allowed, w, 0)


@kernel
def shared_batch(dag, found, offsets, events, allowed, w, ends):  # type: ignore[no-untyped-def]
    k = 0
    ends[0] = 0
    i = 0
    while i < events and len(w.matched) - k > len(dag.root):  # one more: a rule is written before it is known
        touched = choose_way(dag, found, offsets[i], offsets[i + 1])
        k = finish_shared(dag, touched, found, offsets[i], offsets[i + 1], allowed, w, k)
        i += 1
        ends[i] = k
    return i
