"""Which rules look at which attributes, as the compiled arrays say.

    rule ─ tokens of its tree ─▶ conjunctions, and parts (trees that several rules share) ─▶ predicates ─▶ attributes

An attribute counts once a rule, however many of its predicates are on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I64, U8, Compiled
from eligo.jit import kernel

Mask = NDArray[np.bool_]


def rules_naming(compiled: Compiled, wanted: Mask) -> Mask:
    """For every rule whether it looks at one of the attributes with wanted[attribute]."""
    if not wanted[compiled.attribute].any():
        return np.zeros(compiled.rules, np.bool_)
    return _walk(compiled, None, wanted)[0]


def attribute_counts(compiled: Compiled, names: Sequence[str], rows: Mask | U8 | None = None) -> Counter[str]:
    """How many of the rules look at each attribute; of some rows only, if they are given."""
    counts = _walk(compiled, rows, np.zeros(len(names), np.bool_))[1]
    return Counter({names[number]: int(counts[number]) for number in np.nonzero(counts)[0].tolist()})


def _walk(compiled: Compiled, rows: Mask | U8 | None, wanted: Mask) -> tuple[Mask, I64]:
    marks, counts = np.zeros(compiled.rules, np.bool_), np.zeros(len(wanted), np.int64)
    rows = np.ones(compiled.rules, np.bool_) if rows is None else rows.astype(np.bool_)
    walk(
        compiled.tree, compiled.tree_offsets, compiled.part, compiled.part_offsets,
        compiled.conjunction, compiled.conjunction_offsets, compiled.attribute, rows, wanted, marks, counts,
    )  # fmt: skip
    return marks, counts


@kernel
def walk(
    tree, tree_offsets, part, part_offsets, conjunction, conjunction_offsets, attribute, rows, wanted, marks, counts
):
    """Counts each attribute once a rule of `rows`, and marks the rules that look at a wanted one."""
    conjunctions, parts = len(conjunction_offsets) - 1, len(part_offsets) - 1
    longest = 1
    for n in range(len(rows)):
        longest = max(longest, tree_offsets[n + 1] - tree_offsets[n])
    stack = np.empty(longest + len(part), np.int32)  # a part is opened once a rule, so that all of this always fits
    opened_for = np.full(parts, -1, np.int64)
    counted_for = np.full(len(counts), -1, np.int64)
    for n in range(len(rows)):
        if not rows[n]:
            continue
        top = 0
        for i in range(tree_offsets[n], tree_offsets[n + 1]):
            if tree[i] >= 0:
                stack[top] = tree[i]
                top += 1
        while top:
            top -= 1
            token = stack[top]
            if token < conjunctions:
                for i in range(conjunction_offsets[token], conjunction_offsets[token + 1]):
                    a = attribute[conjunction[i]]
                    if counted_for[a] != n:
                        counted_for[a] = n
                        counts[a] += 1
                        if wanted[a]:
                            marks[n] = True
            elif opened_for[token - conjunctions] != n:
                opened_for[token - conjunctions] = n
                for i in range(part_offsets[token - conjunctions], part_offsets[token - conjunctions + 1]):
                    if part[i] >= 0:
                        stack[top] = part[i]
                        top += 1
