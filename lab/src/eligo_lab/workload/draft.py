"""Rules as columns, before any text: what the generators make.

    rule n         tree[tree_offsets[n] … [n+1]] in prefix order, as in compile/compiled.py: c ≥ 0 a conjunction,
                   -2k an AND of the k trees that follow, -2k-1 an OR of them; nothing at all: never true
    conjunction c  predicates conjunction_offsets[c] … [c+1], consecutive
    predicate p    attribute[p]  operator[p] (a place in OPERATORS)  operand[operand_offsets[p] … [p+1]]
    attribute a    attributes[a] its name; textual[a]: its operands are places in `strings`, else integers

Invariants: a conjunction has at most one predicate on an attribute; `in` and `not in` have one operand or more,
ascending and distinct; `between` has two, low ≤ high; every other operator one. Integers lie within ±2⁵³, where
floats are exact; strings hold no NUL.

A draft becomes text (`table`, as anybody would load it) or, without text in between, the arrays that indexes are
built from (`compile`). Both say the same rules; the second is what a benchmark of a million rules needs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I32, I64, U8, Compiled, kept_slices
from eligo.compile.strings import Strings
from eligo.errors import OptionError
from eligo.jit import kernel

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "not in", "between")
EQUAL, UNEQUAL, LESS, AT_MOST, MORE, AT_LEAST, IN, NOT_IN, BETWEEN = range(9)

LARGEST = 2**53  # integers up to here are floats too, so that their cuts are easy to write


@dataclass(frozen=True)
class Draft:
    """The columns drawn above."""

    attributes: tuple[str, ...]
    strings: tuple[str, ...]
    textual: NDArray[np.bool_]
    attribute: I32
    operator: U8
    operand_offsets: I64
    operand: I64
    conjunction_offsets: I64
    tree_offsets: I64
    tree: I32

    def __len__(self) -> int:
        return len(self.tree_offsets) - 1

    @property
    def predicates(self) -> int:
        return len(self.attribute)

    def table(self) -> pa.Table:
        """The rules as a table of id (0, 1, …) and expression."""
        from eligo_lab.workload.render import rendered

        self.check()
        return pa.table({"id": np.arange(len(self)), "expression": rendered(self)})

    def compile(self, attributes: Attributes, strings: Strings, absent: str = "fails") -> Compiled:
        """The rules as `Matcher.add_many(self.table())` would compile them, but for the rewrites of its normal form.

        Names and strings that the rules use are entered into the two tables.
        """
        from eligo_lab.workload.lower import lowered

        self.check()
        return lowered(self, attributes, strings, absent)

    def slice(self, n: int) -> Draft:
        """The first n rules."""
        if n >= len(self):
            return self
        offsets = self.tree_offsets[: n + 1]
        tree = self.tree[: offsets[-1]]
        used = np.zeros(len(self.conjunction_offsets) - 1, np.bool_)
        used[tree[tree >= 0]] = True
        number = np.cumsum(used, dtype=np.int32) - np.int32(1)
        rows, conjunction_offsets = kept_slices(np.arange(self.predicates), self.conjunction_offsets, used)
        kept = np.zeros(self.predicates, np.bool_)
        kept[rows] = True
        operand, operand_offsets = kept_slices(self.operand, self.operand_offsets, kept)
        return replace(
            self,
            attribute=self.attribute[kept],
            operator=self.operator[kept],
            operand_offsets=operand_offsets,
            operand=operand,
            conjunction_offsets=conjunction_offsets,
            tree_offsets=offsets,
            tree=np.where(tree >= 0, number[np.maximum(tree, 0)] if len(number) else 0, tree).astype(np.int32),
        )

    def check(self) -> None:
        """Refuse columns that break an invariant; a generator that made them has a bug."""
        for text in (*self.attributes, *self.strings):
            if "\0" in text:
                raise OptionError(f"the draft is broken: names and strings hold no NUL, and {text!r} does")
        fault, place = first_fault(
            self.attribute,
            self.operator,
            self.operand_offsets,
            self.operand,
            self.conjunction_offsets,
            self.tree_offsets,
            self.tree,
            self.textual,
            len(self.strings),
        )
        if fault:
            raise OptionError(f"the draft is broken: {_FAULTS[fault]} {place} {_REASONS[fault]}")


def conjunctive(
    attributes: tuple[str, ...],
    attribute: I32,
    operator: U8,
    operand_offsets: I64,
    operand: I64,
    rule_offsets: I64,
    textual: NDArray[np.bool_] | None = None,
    strings: tuple[str, ...] = (),
) -> Draft:
    """A draft whose rules are one conjunction each: rule n has the predicates rule_offsets[n] … [n+1]."""
    rules = len(rule_offsets) - 1
    return Draft(
        attributes,
        strings,
        np.zeros(len(attributes), np.bool_) if textual is None else textual,
        attribute,
        operator,
        operand_offsets,
        operand,
        rule_offsets,
        np.arange(rules + 1, dtype=np.int64),
        np.arange(rules, dtype=np.int32),
    )


_FAULTS = ("", "predicate", "predicate", "predicate", "predicate", "predicate", "conjunction", "rule")
_REASONS = (
    "",
    "names an attribute or operator that there is not",
    "has a wrong number of operands",
    "has operands that do not ascend",
    "names a string that there is not",
    "has an integer beyond ±2**53",
    "has two predicates on one attribute",
    "has a tree that does not end where it should, or names a conjunction that there is not",
)


@kernel
def first_fault(
    attribute, operator, operand_offsets, operand, conjunction_offsets, tree_offsets, tree, textual, strings
):
    """The first broken invariant as a place in _FAULTS, 0 for none, and where it is."""
    for p in range(len(attribute)):
        if attribute[p] < 0 or attribute[p] >= len(textual) or operator[p] > BETWEEN:
            return 1, p
        first, stop = operand_offsets[p], operand_offsets[p + 1]
        several = operator[p] == IN or operator[p] == NOT_IN
        wanted = max(1, stop - first) if several else 2 if operator[p] == BETWEEN else 1
        if stop - first != wanted:
            return 2, p
        text = textual[attribute[p]]
        for i in range(first, stop):
            # Strings are numbered in any order, so only a list's numbers ascend.
            if i > first and ((several and operand[i - 1] >= operand[i]) or (not text and operand[i - 1] > operand[i])):
                return 3, p
            if text and (operand[i] < 0 or operand[i] >= strings):
                return 4, p
            if operand[i] > LARGEST or operand[i] < -LARGEST:
                return 5, p
    last = np.full(len(textual), -1, np.int64)  # the last conjunction with a predicate on the attribute
    for c in range(len(conjunction_offsets) - 1):
        for p in range(conjunction_offsets[c], conjunction_offsets[c + 1]):
            if last[attribute[p]] == c:
                return 6, c
            last[attribute[p]] = c
    for n in range(len(tree_offsets) - 1):
        open_places = 1 if tree_offsets[n + 1] > tree_offsets[n] else 0
        for t in range(tree_offsets[n], tree_offsets[n + 1]):
            if open_places == 0 or tree[t] == -1 or tree[t] >= len(conjunction_offsets) - 1:
                return 7, n
            open_places += -1 if tree[t] >= 0 else (-tree[t]) // 2 - 1
        if open_places != 0:
            return 7, n
    return 0, 0
