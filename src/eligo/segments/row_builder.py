"""A builder that has the conjunctions of a rule as rows as soon as the rule is added."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.compile.builder import Builder
from eligo.compile.compiled import I32, I64
from eligo.index.rows.row_encoder import make_rows
from eligo.jit import kernel
from eligo.language.tree import Node

_REMEMBERED = 1 << 15  # predicates that are kept; with more, all are forgotten


class RowBuilder(Builder):
    """Builds rows (index/rows/packed_predicate.py) beside the arrays that every builder makes."""

    @property
    def multi(self) -> frozenset[str]:
        """Attributes that may have several values."""
        return self._multi

    def one(self, root: Node) -> tuple[I32, I64, I64]:
        """Returns the tree of a rule in normal form, and the rows of its conjunctions as words and offsets.

        Forgets all earlier rules, but keeps their predicates, because rules often have some in common.
        """
        self._forget_rules()
        self.add(root)
        return np.array(self._tree, np.int32), *self.rows_from(0)

    def rows_from(self, first: int) -> tuple[I64, I64]:
        """Returns the rows of all conjunctions from number `first` on, as words and offsets."""
        columns = (self._attribute, self._flags, self._pattern, self._run_offsets, self._kinds, self._keys)
        begin = self._conjunction_offsets[first]
        words, offsets = rows_of_some(
            *map(_over, columns),
            np.array(self._conjunction[begin:], np.int32),
            np.array(self._conjunction_offsets[first:], np.int64) - begin,
            self._strings.spans(),
        )
        return words, offsets

    def last_tree(self) -> I32:
        """Returns the tree of the rule that was added last."""
        return np.array(self._tree[self._tree_offsets[-2] :], np.int32)

    def forget_from(self, rule: int) -> None:
        """Forgets a rule, given by its number, and those behind it, if any. Their conjunctions stay, unused."""
        del self._tree_offsets[rule + 1 :]
        del self._tree[self._tree_offsets[rule] :]

    def _forget_rules(self) -> None:
        """Forgets all rules, and also the predicates once these are many."""
        self._conjunction_numbers.clear()
        del self._conjunction[:]
        del self._conjunction_offsets[1:]
        del self._tree[:]
        del self._tree_offsets[1:]
        if len(self._attribute) > _REMEMBERED or len(self._keys) > 16 * _REMEMBERED:
            self._predicate_numbers.clear()
            for column in (self._attribute, self._flags, self._pattern, self._kinds, self._keys):
                del column[:]
            del self._run_offsets[1:]


_TYPES: dict[str, Any] = {"i": np.int32, "B": np.uint8, "q": np.int64}


def _over(column: array[int]) -> NDArray[Any]:
    """Returns a NumPy array over the memory of a column, which must not grow as long as the array exists."""
    return np.frombuffer(column, _TYPES[column.typecode]) if column else np.zeros(0, _TYPES[column.typecode])


@kernel
def rows_of_some(attribute, flags, pattern, run_offsets, kinds, keys, items, offsets, strings):
    """Returns the rows of conjunctions, which are given by the numbers of their predicates in the columns."""
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
        low_kind, ends[0], ends[1], high_kind, ends[2], ends[3], strings,
    )  # fmt: skip
