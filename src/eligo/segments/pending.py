"""The delta: rules added since the last segment was sealed, few enough to be compiled anew after every change."""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.compile.builder import Builder
from eligo.compile.compiled import U8, Compiled, permuted_slices, unique
from eligo.language.tree import Node
from eligo.rule import RuleId
from eligo.segments.rule_table import RuleTable, make_rule_table
from eligo.segments.segment import Recipe, Segment

FEW = 64


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
        self._built: tuple[object, Segment] | None = None
        self._dropped: list[RuleId] = []  # since then

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
        self._dropped.append(rule)
        return self.sequence[self.rows.pop(rule)]

    def state(self) -> Any:
        """What `restore` takes to undo all that comes after: rows stay where they are, so who is alive is enough."""
        return dict(self.rows), self._built, list(self._dropped)

    def restore(self, state: Any) -> None:
        self.rows, self._built, self._dropped = state

    def segment(self, recipe: Recipe) -> tuple[Segment, U8]:
        """The rules as a segment, built anew only if some were added, and which of its rows are alive."""
        state = len(self.ids), recipe.sample
        if self._built is None or self._built[0] != state:
            self._built = state, self.build(recipe)
            self._dropped = []
        segment = self._built[1]
        if not self._dropped:
            return segment, np.zeros(0, np.uint8)
        alive = np.ones(len(segment), np.uint8)
        alive[[segment.table.row(rule) for rule in self._dropped]] = 0
        return segment, alive

    def build(self, recipe: Recipe) -> Segment:
        """The living rules as a segment."""
        return recipe.build(*self.finish())

    def finish(self) -> tuple[RuleTable, Compiled]:
        """The living rules in the order of their sequence numbers."""
        rows = np.fromiter(self.rows.values(), np.int64, len(self.rows))
        order = rows[np.argsort(np.array(self.sequence, np.int64)[rows], kind="stable")]
        compiled = self.builder.finish()
        columns: tuple[list[Any], ...] = (self.sequence, self.ids, self.texts, self.weights, self.tags)
        if len(rows) < len(self.ids) or not np.array_equal(order, rows):
            # Some have died, or one that replaced another stands at its old place.
            columns = tuple([column[i] for i in order] for column in columns)
            tree, offsets = permuted_slices(compiled.tree, compiled.tree_offsets, order)
            compiled = Compiled(**{**compiled.arrays(), "tree": tree, "tree_offsets": offsets})
        if len(self.ids) > FEW:  # a delta is compiled again and again, and its merge does this anyway
            compiled = unique(compiled)
        return make_rule_table(*columns), compiled
