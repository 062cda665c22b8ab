"""One rule at a time, compiled for indexes that change, with memory of the predicates seen before."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.builder import Builder
from eligo.compile.compiled import I32, I64
from eligo.index.dynamic.row_encoder import make_rows
from eligo.jit import kernel
from eligo.language.tree import Node

_REMEMBERED = 1 << 15  # predicates; then it begins anew


class RowBuilder(Builder):
    """A builder that keeps the predicates of earlier rules and nothing else of them."""

    @property
    def multi(self) -> frozenset[str]:
        return self._multi

    def one(self, root: Node) -> tuple[I32, I64, I64]:
        """The tree of a rule in normal form, and the rows of its conjunctions: words and offsets."""
        self._forget_rules()
        self.add(root)
        if len(self._attribute) > self._columns.rows:
            self._columns.extend(
                self._attribute, self._flags, self._pattern, self._run_offsets, self._kinds, self._keys
            )
        words, offsets = rows_of_some(
            *self._columns.arrays,
            np.array(self._conjunction, np.int32),
            np.array(self._conjunction_offsets, np.int64),
        )
        return np.array(self._tree, np.int32), words, offsets

    def _forget_rules(self) -> None:
        self._conjunction_numbers.clear()
        del self._conjunction[:]
        del self._conjunction_offsets[1:]
        del self._tree[:]
        del self._tree_offsets[1:]
        if not hasattr(self, "_columns") or len(self._attribute) > _REMEMBERED or len(self._keys) > 16 * _REMEMBERED:
            self._columns = Columns()
            self._predicate_numbers.clear()
            for column in (self._attribute, self._flags, self._pattern, self._kinds, self._keys):
                del column[:]
            del self._run_offsets[1:]


class Columns:
    """The predicates of a builder in arrays that kernels take, with room for more."""

    def __init__(self) -> None:
        self.rows = self._runs = 0
        self.arrays: list[NDArray[Any]] = [
            np.zeros(1, kind) for kind in (np.int32, np.uint8, np.int32, np.int64, np.uint8, np.int64)
        ]

    def extend(self, *given: array[int]) -> None:
        """Copy what is new: attribute, flags, pattern, run offsets; two kinds and four keys of each run."""
        rows, runs = len(given[0]), len(given[4]) // 2
        places = (self.rows, self.rows, self.rows, self.rows + 1, 2 * self._runs, 4 * self._runs)
        for i, (column, first) in enumerate(zip(given, places, strict=True)):
            if len(column) > len(self.arrays[i]):
                larger = np.zeros(2 * len(column), self.arrays[i].dtype)
                larger[: len(self.arrays[i])] = self.arrays[i]
                self.arrays[i] = larger
            self.arrays[i][first : len(column)] = column[first:]
        self.rows, self._runs = rows, runs


@kernel
def rows_of_some(attribute, flags, pattern, run_offsets, kinds, keys, items, offsets):  # type: ignore[no-untyped-def]
    """The rows of conjunctions, given by the numbers of their predicates in the columns."""
    n, runs = len(items), 0
    for p in items:
        runs += run_offsets[p + 1] - run_offsets[p]
    own_attribute, own_flags, own_pattern = np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.int32)
    own_runs, low_kind, high_kind = np.zeros(n + 1, np.int64), np.empty(runs, np.uint8), np.empty(runs, np.uint8)
    ends = np.empty((4, runs), np.int64)
    to = 0
    for i in range(n):
        p = items[i]
        own_attribute[i], own_flags[i], own_pattern[i] = attribute[p], flags[p], pattern[p]
        for r in range(run_offsets[p], run_offsets[p + 1]):
            low_kind[to], high_kind[to] = kinds[2 * r], kinds[2 * r + 1]
            for k in range(4):
                ends[k, to] = keys[4 * r + k]
            to += 1
        own_runs[i + 1] = to
    return make_rows(
        offsets, np.arange(n).astype(np.int32), own_attribute, own_flags, own_pattern, own_runs,
        low_kind, ends[0], ends[1], high_kind, ends[2], ends[3],
    )  # fmt: skip
