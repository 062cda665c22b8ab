"""Rules on their way into a living set: compiled, and all computed that does not depend on what is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, Compiled, kept_slices
from eligo.evaluate.labels import label_intervals
from eligo.index.dynamic.content import row_hashes, same_row
from eligo.index.dynamic.row_encoder import rows_of
from eligo.jit import kernel
from eligo.rule import RuleId
from eligo.segments.rule_table import RuleTable, column_table, packed


@dataclass
class Arrivals:
    """Columns and trees of rules; `words`, `offsets` and `hashes` of their conjunctions, each once.

    `which` has for every conjunction of the compiled rules the one that it is of these, -1 where no rule uses it.
    """

    table: RuleTable
    tree: I32
    tree_offsets: I64
    begin: I32
    end: I32
    span: I32
    words: I64
    offsets: I64
    hashes: NDArray[np.uint32]
    which: I64

    def __len__(self) -> int:
        return len(self.tree_offsets) - 1

    @property
    def conjunctions(self) -> int:
        return len(self.hashes)


def many_arrivals(table: RuleTable, compiled: Compiled) -> Arrivals:
    """Many rules, as they are compiled for segments."""
    return _arrivals(table, compiled.tree, compiled.tree_offsets, *rows_of(compiled))


def one_arrival(
    rule: RuleId, text: str, weight: float, tags: tuple[str, ...], sequence: int, tree: I32, words: I64, offsets: I64
) -> Arrivals:
    """One rule: its tree, and the rows of its conjunctions."""
    ids = packed([rule]) if isinstance(rule, str) else np.array([rule], np.int64)
    table = column_table(np.array([sequence], np.int64), ids, packed([text]), np.array([weight]), {0: tags})
    return _arrivals(table, tree, np.array([0, len(tree)], np.int64), words, offsets)


def _arrivals(table: RuleTable, tree: I32, tree_offsets: I64, words: I64, offsets: I64) -> Arrivals:
    begin, end, span, hashes, which, kept = study(tree, tree_offsets, words, offsets)
    if kept < len(hashes):
        seen = np.maximum.accumulate(which)
        keep = np.diff(seen, prepend=-1) > 0  # the first of each number, which ascend
        words, offsets = kept_slices(words, offsets, keep)
        hashes = hashes[keep]
    return Arrivals(table, tree, tree_offsets, begin, end, span, words, offsets, hashes, which)


@kernel
def study(tree, tree_offsets, words, offsets):
    """Labels of leaves; the hash of each row, and for those that a tree uses the first equal one, by its number among
    those to keep; how many these are.
    """
    begin, end, span = label_intervals(tree, tree_offsets)
    full = row_hashes(words, offsets)
    n = len(full)
    hashes = np.empty(n, np.uint32)
    for i in range(n):
        hashes[i] = np.uint32(full[i] >> np.uint64(32))
    used = np.zeros(n, np.bool_)
    for t in tree:
        if t >= 0:
            used[t] = True
    which = np.full(n, -1, np.int64)
    size = 16
    while size < 2 * n:
        size *= 2
    slots, mask, kept = np.zeros(size, np.int32), np.int64(size - 1), 0
    for i in range(n):
        if not used[i]:
            continue
        at = np.int64(hashes[i]) & mask
        while slots[at] != 0:
            j = slots[at] - 1
            if hashes[j] == hashes[i] and same_row(words, offsets[j], words, offsets[i]):
                which[i] = which[j]
                break
            at = (at + 1) & mask
        if which[i] < 0:
            slots[at] = i + 1
            which[i] = kept
            kept += 1
    return begin, end, span, hashes, which, kept
