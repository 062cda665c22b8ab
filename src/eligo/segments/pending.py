"""Rules on their way into a segment: those that are added one by one, with their columns as Python values and their
trees in a builder; and those of a large load, as arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np

from eligo.compile.builder import Builder
from eligo.compile.compiled import I64, Compiled, concatenate, permuted_slices, unique
from eligo.language.tree import Node
from eligo.rule import RuleId
from eligo.segments.rule_table import RuleTable, join_rule_tables, make_rule_table

_FEW = 64  # rules among which equal predicates are not looked for, because a merge will do that


class Pending:
    """Rules that were added one after another. A row keeps its number when others are dropped."""

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
        """Adds a rule in normal form. If this fails, nothing has changed."""
        self.builder.add(root)
        self.append(rule, text, weight, tags, sequence)

    def append(self, rule: RuleId, text: str, weight: float, tags: tuple[str, ...], sequence: int) -> None:
        """Appends the columns of a rule whose tree the builder has already."""
        self.rows[rule] = len(self.ids)
        self.sequence.append(sequence)
        self.texts.append(text)
        self.weights.append(weight)
        self.tags.append(tags)
        self.ids.append(rule)

    def drop(self, rule: RuleId) -> int:
        """Removes a rule and returns its sequence number. Its columns and its tree stay until `finish`."""
        return self.sequence[self.rows.pop(rule)]

    def finish(self) -> tuple[RuleTable, Compiled]:
        """Returns the living rules in the order of their sequence numbers."""
        rows = np.fromiter(self.rows.values(), np.int64, len(self.rows))
        order = rows[np.argsort(np.array(self.sequence, np.int64)[rows], kind="stable")]
        compiled = self.builder.finish()
        columns: tuple[list[Any], ...] = (self.sequence, self.ids, self.texts, self.weights, self.tags)
        if len(rows) < len(self.ids) or not np.array_equal(order, rows):
            # Some were dropped, or one has the sequence number of the rule that it replaced.
            columns = tuple([column[i] for i in order] for column in columns)
            tree, offsets = permuted_slices(compiled.tree, compiled.tree_offsets, order)
            compiled = Compiled(**{**compiled.arrays(), "tree": tree, "tree_offsets": offsets})
        if len(self.ids) > _FEW:
            compiled = unique(compiled)
        return make_rule_table(*columns), compiled


class BulkPending:
    """Rules of a large load: those that came one by one in `pending`, the columns and trees of the others in `blocks`.

    Before `finish`, sequence numbers are arrivals: they count the rules in the order in which they came.
    """

    def __init__(self, pending: Pending) -> None:
        self.pending = pending
        self.blocks: list[tuple[RuleTable, Compiled]] = []

    def finish(
        self, dead: Collection[int] = (), numbers: Callable[[I64], I64] = lambda arrivals: arrivals
    ) -> tuple[RuleTable, Compiled]:
        """Returns the rules in the order of their sequence numbers. `dead` are the arrivals of rules in blocks that
        were removed or replaced, and `numbers` turns arrivals into sequence numbers.
        """
        pending = self.pending
        pending.sequence = numbers(np.array(pending.sequence, np.int64)).tolist()
        if not self.blocks:
            return pending.finish()
        gone = np.fromiter(dead, np.int64, len(dead))
        parts = [(t, c, ~np.isin(t.sequence, gone) if len(gone) else None) for t, c in self.blocks]
        parts = [(replace(t, sequence=numbers(t.sequence)), c, keep) for t, c, keep in parts]
        if pending.rows:
            parts.append((*pending.finish(), None))
        tables, kept = [table for table, _, _ in parts], [keep for _, _, keep in parts]
        order = np.argsort(
            np.concatenate([t.sequence if keep is None else t.sequence[keep] for t, _, keep in parts]), kind="stable"
        )
        whole = concatenate([compiled for _, compiled, _ in parts], kept)
        if not np.array_equal(order, np.arange(len(order))):
            tree, offsets = permuted_slices(whole.tree, whole.tree_offsets, order)
            whole = replace(whole, tree=tree, tree_offsets=offsets)
        return join_rule_tables(tables, kept, order), whole
