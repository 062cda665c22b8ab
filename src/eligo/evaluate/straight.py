"""Rules that are one conjunction each: what a segment without trees is evaluated with, whichever evaluator was chosen.

    conjunction c   completes the rules rules[offsets[c] … offsets[c+1]], ascending; both arrays are empty where
                    conjunction c completes rule c, as it does where no two rules are alike

Rules are put in order by setting a bit for each and reading all bits: nothing is compared. `high` has a bit for each
word of `bits` that has one, so that a few rules of a million are found at once. Invariant: between events all are 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.compile.compiled import F64, I32, I64, U8, Arrays, Compiled
from eligo.evaluate.base import Evaluator, EvaluatorScratch
from eligo.jit import handle, inline, kernel, trailing_zeros


class StraightScratch(EvaluatorScratch):
    """A bit for each rule, and one for each word of them."""

    def __init__(self, rules: int) -> None:
        super().__init__(rules)
        self.satisfied: tuple[I32, int] = np.zeros(0, np.int32), 0
        self.handle = make_straight_scratch(
            self.matched, np.zeros(rules // 64 + 1, np.uint64), np.zeros(rules // 4096 + 1, np.uint64)
        )


class Straight(Evaluator):
    """Evaluator from conjunctions straight to rules; see the top of this file."""

    name = "straight"
    summary = "rules that are one conjunction each"

    def __init__(self, offsets: I64, rules: I32, count: int) -> None:
        self._offsets, self._rules, self._count = offsets, rules, count

    @classmethod
    def takes(cls, compiled: Compiled) -> bool:
        """Tests whether every rule is one conjunction, or is never true."""
        tokens = compiled.tree
        return bool((tokens >= 0).all() and (tokens < max(1, compiled.conjunctions)).all())

    @classmethod
    def build(cls, compiled: Compiled, likelihood: F64 | None = None) -> Straight:
        tokens = compiled.tree
        rules = np.repeat(np.arange(compiled.rules, dtype=np.int32), np.diff(compiled.tree_offsets))
        if compiled.conjunctions == compiled.rules == len(tokens) and np.array_equal(tokens, rules):
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int32), compiled.rules)
        order = np.argsort(tokens, kind="stable")
        offsets = np.searchsorted(tokens[order], np.arange(compiled.conjunctions + 1)).astype(np.int64)
        return cls(offsets, rules[order], compiled.rules)

    @classmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> Straight:
        return cls(arrays["offsets"], arrays["rules"], compiled.rules)

    def arrays(self) -> Arrays:
        return {"offsets": self._offsets, "rules": self._rules}

    def scratch(self) -> StraightScratch:
        return StraightScratch(self._count)

    def group(self, found: I32, count: int, scratch: StraightScratch) -> int:
        scratch.satisfied = found, count
        return count

    def complete(self, touched: int, allowed: U8, scratch: StraightScratch) -> int:
        found, count = scratch.satisfied
        return self.evaluate(found, count, allowed, scratch)

    def evaluate_batch(self, found: I32, offsets: I64, events: int, allowed: U8, scratch: Any, ends: I64) -> int:
        args = self._offsets, self._rules, found, offsets, events, allowed, scratch.handle, ends
        return (scratch.enter or scratch.bind(straight_batch, args))(*args)  # type: ignore[no-any-return]


# The memory of one evaluation as one argument of kernels.
make_straight_scratch = handle("StraightScratchHandle", ("matched", "bits", "high"))


@kernel
def straight_batch(rule_offsets, rules, found, offsets, events, allowed, w, ends):
    """Writes the rules of each event to `matched`, ascending, as far as there is room. Returns how many events fit."""
    matched, bits, high = w.matched, w.bits, w.high
    k = 0
    ends[0] = 0
    i = 0
    while i < events and len(matched) - k >= 64 * len(bits):
        for j in range(offsets[i], offsets[i + 1]):
            c = np.int64(found[j])
            if len(rule_offsets) == 0:
                mark(bits, high, c)
            else:
                for r in range(rule_offsets[c], rule_offsets[c + 1]):
                    mark(bits, high, np.int64(rules[r]))
        k = take_marked(bits, high, allowed, matched, k)
        i += 1
        ends[i] = k
    return i


@inline
def take_marked(bits, high, allowed, matched, k):
    """Writes the marked rules that are allowed to `matched` from k on, ascending, and unmarks all. Returns the end."""
    all_allowed, one = len(allowed) == 0, np.uint64(1)
    for some in range(len(high)):
        words = high[some]
        high[some] = 0
        while words:
            word = np.int64(some) * 64 + np.int64(trailing_zeros(words))
            words &= words - one
            left = bits[word]
            bits[word] = 0
            while left:
                rule = 64 * word + np.int64(trailing_zeros(left))
                left &= left - one
                if all_allowed or allowed[rule]:
                    matched[k] = rule
                    k += 1
    return k


@inline
def mark(bits, high, rule):
    """Sets the bit of a rule."""
    bits[rule >> 6] |= np.uint64(1) << np.uint64(rule & 63)
    high[rule >> 12] |= np.uint64(1) << np.uint64((rule >> 6) & 63)
