"""`walk` and `scan`: trees walked from the top (the paper on complex expressions §5.2), what labels must beat.

    rule n    tokens tree[tree_offsets[n] … [n+1]] in prefix order, as compiled; after[t]: the token behind t's subtree

`scan` walks the tree of every rule for every event. `walk` ("scan with conjunction match") walks those of the rules
that name a satisfied conjunction: rule[rule_offsets[c] … [c+1]]. Both look at a bit for each conjunction, and leave out
what cannot change a node's result: the other children of an AND after one that fails, of an OR after one that holds.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from eligo.compile.compiled import F64, I32, I64, U8, Arrays, Compiled
from eligo.evaluate.base import Evaluator, EvaluatorScratch
from eligo.evaluate.leaves import in_order
from eligo.jit import handle, inline, kernel

_OWN = ("after", "deepest", "rule_offsets", "rule")


class TreeScratch(EvaluatorScratch):
    """A bit for each conjunction, a byte for each rule, and a stack."""

    def __init__(self, rules: int, conjunctions: int, deepest: int) -> None:
        super().__init__(rules)
        self.handle = make_tree_scratch(
            np.zeros(conjunctions // 64 + 1, np.uint64),
            np.zeros(rules, np.uint8),
            np.zeros(rules, np.int32),
            np.zeros((deepest + 1, 3), np.int64),
            np.zeros((rules + 63) // 64, np.uint64),
            self.matched,
        )


class TreeEvaluator(Evaluator):
    """Evaluator that walks trees from the top; see the top of this file."""

    everything: ClassVar[bool]

    def __init__(self, compiled: Compiled, own: Arrays) -> None:
        self._rules, self._conjunctions, self._own = compiled.rules, compiled.conjunctions, own
        self.handle = make_trees(compiled.tree, compiled.tree_offsets, *(own[name] for name in _OWN), self.everything)

    @classmethod
    def build(cls, compiled: Compiled, likelihood: F64 | None = None) -> TreeEvaluator:
        after, deepest = subtree_ends(compiled.tree, compiled.tree_offsets)
        if cls.everything:
            rule_offsets, rule = np.zeros(1, np.int32), np.zeros(0, np.int32)
        else:
            rule_offsets, rule = rules_of(compiled.tree, compiled.tree_offsets, compiled.conjunctions)
        return cls(compiled, {"after": after, "deepest": deepest, "rule_offsets": rule_offsets, "rule": rule})

    @classmethod
    def restore(cls, compiled: Compiled, arrays: Arrays) -> TreeEvaluator:
        return cls(compiled, arrays)

    def arrays(self) -> Arrays:
        return self._own

    def scratch(self) -> TreeScratch:
        return TreeScratch(self._rules, self._conjunctions, int(self._own["deepest"][0]))

    def group(self, found: I32, count: int, scratch: TreeScratch) -> int:
        return trees_group(self.handle, found, count, scratch.handle)  # type: ignore[no-any-return]

    def complete(self, touched: int, allowed: U8, scratch: TreeScratch) -> int:
        return trees_complete(self.handle, touched, allowed, scratch.handle)  # type: ignore[no-any-return]

    def evaluate_batch(
        self, found: I32, offsets: I64, events: int, allowed: U8, scratch: TreeScratch, ends: I64
    ) -> int:
        args = self.handle, found, offsets, events, allowed, scratch.handle, ends
        return (scratch.enter or scratch.bind(trees_batch, args))(*args)  # type: ignore[no-any-return]


class Walk(TreeEvaluator):
    name = "walk"
    summary = "walks the trees of rules that name a satisfied conjunction, from the top"
    everything = False


class ScanTrees(TreeEvaluator):
    name = "scan"
    summary = "walks every tree for every event; what others must beat"
    everything = True


@kernel
def subtree_ends(tree, offsets):
    """Returns for every token where its subtree ends, and the depth of the deepest tree."""
    after = np.empty(len(tree), np.int32)
    for r in range(len(offsets) - 1):
        for t in range(offsets[r + 1] - 1, offsets[r] - 1, -1):
            at = t + 1
            if tree[t] < 0:
                for _ in range((-tree[t]) // 2):
                    at = after[at]
            after[t] = at
    deepest = np.zeros(1, np.int64)
    ends = np.zeros(16, np.int64)
    for r in range(len(offsets) - 1):
        depth = 0
        for t in range(offsets[r], offsets[r + 1]):
            while depth > 0 and ends[depth - 1] <= t:
                depth -= 1
            if tree[t] < 0:
                if depth == len(ends):
                    ends = np.append(ends, np.zeros(depth, np.int64))
                ends[depth] = after[t]
                depth += 1
                deepest[0] = max(deepest[0], depth)
    return after, deepest


@kernel
def rules_of(tree, offsets, conjunctions):
    """Returns the rules that name each conjunction, each once: offsets by conjunction, and rules."""
    rule_offsets = np.zeros(conjunctions + 1, np.int32)
    rule = np.empty(0, np.int32)
    filled = rule_offsets
    for writing in range(2):
        last = np.full(conjunctions, -1, np.int32)
        for r in range(len(offsets) - 1):
            for t in range(offsets[r], offsets[r + 1]):
                c = tree[t]
                if c >= 0 and last[c] != r:
                    last[c] = r
                    if writing:
                        rule[filled[c]] = r
                        filled[c] += 1
                    else:
                        rule_offsets[c + 1] += 1
        if not writing:
            for c in range(conjunctions):
                rule_offsets[c + 1] += rule_offsets[c]
            rule = np.empty(rule_offsets[-1], np.int32)
            filled = rule_offsets[:-1].copy()
    return rule_offsets, rule


# The trees as one argument of kernels.
make_trees = handle("Trees", ("tree", "tree_offsets", *_OWN, "everything"))


# The memory of one evaluation as one argument of kernels.
make_tree_scratch = handle("TreeScratchHandle", ("truth", "seen", "touched", "stack", "bits", "matched"))


@inline
def touch_rules(trees, found, first, stop, w):
    """Sets the truth of found[first:stop] and lists the rules to be walked in `touched`. Returns their number."""
    truth, seen, touched, rule_offsets, rule = w.truth, w.seen, w.touched, trees.rule_offsets, trees.rule
    everything = trees.everything
    n = 0
    for i in range(first, stop):
        c = found[i]
        truth[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
        if not everything:
            for d in range(rule_offsets[c], rule_offsets[c + 1]):
                if seen[rule[d]] == 0:
                    seen[rule[d]] = 1
                    touched[n] = rule[d]
                    n += 1
    return len(seen) if everything else n


@inline
def walk_trees(trees, n, allowed, w, start):
    """Writes the touched rules whose trees hold to `matched` from `start` on, ascending. Returns where they end."""
    tree, tree_offsets, after = trees.tree, trees.tree_offsets, trees.after
    truth, seen, touched, stack, matched = w.truth, w.seen, w.touched, w.stack, w.matched
    everything = trees.everything
    all_allowed = len(allowed) == 0
    k = start
    for i in range(n):
        rule = i if everything else touched[i]
        seen[rule] = 0
        t, stop = tree_offsets[rule], tree_offsets[rule + 1]
        value = False
        depth = 0
        while t < stop:
            token = tree[t]
            if token < 0:
                stack[depth, 0], stack[depth, 1], stack[depth, 2] = token & 1, (-token) // 2, after[t]
                depth += 1
                t += 1
                continue
            value = truth[token >> 6] >> np.uint64(token & 63) & np.uint64(1) != 0
            t += 1
            # Up, as far as this child settles its parent: an OR (1) by one that holds, an AND (0) by one that fails.
            while depth > 0:
                stack[depth - 1, 1] -= 1
                if value == (stack[depth - 1, 0] == 1):
                    t = stack[depth - 1, 2]
                elif stack[depth - 1, 1] > 0:
                    break
                depth -= 1
        if value and (all_allowed or allowed[rule]):
            matched[k] = rule
            k += 1
    for word in range(len(truth)):
        truth[word] = 0
    if not everything:
        in_order(matched, start, k, w.bits)
    return k


@kernel
def trees_group(trees, found, count, w):
    return touch_rules(trees, found, 0, count, w)


@kernel
def trees_complete(trees, touched, allowed, w):
    return walk_trees(trees, touched, allowed, w, 0)


@kernel
def trees_batch(trees, found, offsets, events, allowed, w, ends):
    k = 0
    ends[0] = 0
    i = 0
    while i < events and len(w.matched) - k >= len(w.seen):
        k = walk_trees(trees, touch_rules(trees, found, offsets[i], offsets[i + 1], w), allowed, w, k)
        i += 1
        ends[i] = k
    return i
