"""Rules on their way into a living set: compiled, and all computed that does not depend on what is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, Compiled, unique
from eligo.evaluate.labels import label_intervals
from eligo.evaluate.leaf_order import order_leaves
from eligo.index.dynamic.content import row_hashes
from eligo.index.dynamic.row_encoder import rows_of
from eligo.jit import kernel
from eligo.rule import RuleId
from eligo.segments.rule_table import RuleTable, column_table, packed


@dataclass
class Arrivals:
    """Columns of rules; `words`, `offsets` and `hashes` of their conjunctions, all used; and their leaves.

    Those of rule n are leaf_start[n] … leaf_start[n+1], ascending by where their intervals begin: of each its
    conjunction, and begin and end of its interval.
    """

    table: RuleTable
    words: I64
    offsets: I64
    leaf_start: I32
    leaf: I32
    begin: I32
    end: I32
    hashes: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.leaf_start) - 1

    @property
    def conjunctions(self) -> int:
        return len(self.hashes)


def many_arrivals(table: RuleTable, compiled: Compiled) -> Arrivals:
    """Many rules, as they are compiled for segments."""
    compiled = unique(compiled)
    words, offsets = rows_of(compiled)
    return Arrivals(table, words, offsets, *study(compiled.tree, compiled.tree_offsets, words, offsets))


def one_arrival(
    rule: RuleId, text: str, weight: float, tags: tuple[str, ...], sequence: int, tree: I32, words: I64, offsets: I64
) -> Arrivals:
    """One rule: its tree, and the rows of its conjunctions."""
    ids = packed([rule]) if isinstance(rule, str) else np.array([rule], np.int64)
    table = column_table(np.array([sequence], np.int64), ids, packed([text]), np.array([weight]), {0: tags})
    return Arrivals(table, words, offsets, *study(tree, np.array([0, len(tree)], np.int64), words, offsets))


@kernel
def study(tree, tree_offsets, words, offsets):
    """Leaves of rules, and hashes of the rows of their conjunctions: the last fields of `Arrivals`."""
    begin, end, span = label_intervals(tree, tree_offsets)
    leaf_start = np.zeros(len(span) + 1, np.int32)
    for rule in range(len(span)):
        leaf_start[rule + 1] = leaf_start[rule] + span[rule]
    every = np.arange(len(span)).astype(np.int32)
    token = order_leaves(tree, tree_offsets, begin, every, leaf_start, True)
    return leaf_start, tree[token], begin[token], end[token], row_hashes(words, offsets)
