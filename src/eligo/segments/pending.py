"""The delta: rules added since the last segment was sealed, few enough to be compiled anew after every change."""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.compile.builder import Builder
from eligo.compile.compiled import U8, Compiled, permuted_slices
from eligo.language.tree import Node
from eligo.segments.rule_table import RuleId, make_rule_table
from eligo.segments.segment import Recipe, Segment


class Pending:
    """Rules on their way into a segment. Rows keep their number when others die."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.rows: dict[RuleId, int] = {}  # of the living
        self.sequence: list[int] = []
        self.ids: list[RuleId] = []
        self.texts: list[str] = []
        self.weights: list[float] = []
        self.tags: list[tuple[str, ...]] = []

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, rule: RuleId, root: Node, text: str, weight: float, tags: tuple[str, ...], sequence: int) -> None:
        """Take a rule in normal form. Fails before anything is changed, or not at all."""
        self.builder.add(root)
        self.rows[rule] = len(self.ids)
        self.sequence.append(sequence)
        self.ids.append(rule)
        self.texts.append(text)
        self.weights.append(weight)
        self.tags.append(tags)

    def drop(self, rule: RuleId) -> int:
        """Take a rule out again; its sequence number."""
        return self.sequence[self.rows.pop(rule)]

    def build(self, recipe: Recipe) -> tuple[Segment, U8]:
        """The rules as a segment, and which of its rows are alive (no bytes at all: all of them)."""
        compiled = self.builder.finish()
        alive = np.zeros(len(self.ids), np.uint8)
        alive[list(self.rows.values())] = 1
        order = np.argsort(np.array(self.sequence, np.int64), kind="stable")
        columns: tuple[list[Any], ...] = (self.sequence, self.ids, self.texts, self.weights, self.tags)
        if not np.array_equal(order, np.arange(len(order))):  # a replaced rule has kept its old place
            columns = tuple([column[i] for i in order] for column in columns)
            tree, offsets = permuted_slices(compiled.tree, compiled.tree_offsets, order)
            compiled = Compiled(**{**compiled.arrays(), "tree": tree, "tree_offsets": offsets})
            alive = alive[order]
        table = make_rule_table(*columns)
        return recipe.build(table, compiled), alive if not alive.all() else np.zeros(0, np.uint8)
