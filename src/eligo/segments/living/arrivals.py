"""Rules on their way into a living set: compiled, and all computed that does not depend on what is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, Compiled, unique
from eligo.evaluate.labels import label_intervals
from eligo.index.dynamic.content import row_hashes
from eligo.index.dynamic.row_encoder import rows_of
from eligo.rule import RuleId
from eligo.segments.rule_table import RuleTable, column_table, packed


@dataclass
class Arrivals:
    """Columns and trees of rules, with labels; `words`, `offsets` and `hashes` of their conjunctions, all used."""

    table: RuleTable
    tree: I32
    tree_offsets: I64
    begin: I32
    end: I32
    span: I32
    words: I64
    offsets: I64
    hashes: NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.tree_offsets) - 1

    @property
    def conjunctions(self) -> int:
        return len(self.hashes)


def many_arrivals(table: RuleTable, compiled: Compiled) -> Arrivals:
    """Many rules, as they are compiled for segments."""
    compiled = unique(compiled)
    return _arrivals(table, compiled.tree, compiled.tree_offsets, *rows_of(compiled))


def one_arrival(
    rule: RuleId, text: str, weight: float, tags: tuple[str, ...], sequence: int, tree: I32, words: I64, offsets: I64
) -> Arrivals:
    """One rule: its tree, and the rows of its conjunctions."""
    ids = packed([rule]) if isinstance(rule, str) else np.array([rule], np.int64)
    table = column_table(np.array([sequence], np.int64), ids, packed([text]), np.array([weight]), {0: tags})
    return _arrivals(table, tree, np.array([0, len(tree)], np.int64), words, offsets)


def _arrivals(table: RuleTable, tree: I32, tree_offsets: I64, words: I64, offsets: I64) -> Arrivals:
    begin, end, span = label_intervals(tree, tree_offsets)
    return Arrivals(table, tree, tree_offsets, begin, end, span, words, offsets, row_hashes(words, offsets))
