"""Events as columns, before they are a table, and how often a draft's rules hold for them.

    event e       pairs offsets[e] … offsets[e+1]
    pair i        attribute[i] and value[i]: an integer, or the place of a string, as in the draft of the rules

Measuring takes some of the events as a matrix, and for each attribute the events that have it:

    columns[a, e]                             the value, or NOWHERE
    holders[holder_offsets[a] … [a+1]]        events with attribute a, by their value, which is in `held`

A comparison is satisfied by consecutive holders. A conjunction starts with those of the predicate that has fewest, and
its other predicates leave fewer still.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64
from eligo.jit import kernel
from eligo_lab.workload.draft import Draft

NOWHERE = -(2**62)
_CELLS = 8_000_000  # of the matrix: more dimensions, fewer events
_SAMPLE = 1_000  # events measured, unless told otherwise


@dataclass(frozen=True)
class EventDraft:
    """The columns drawn above; names and strings are those of the rules' draft."""

    attributes: tuple[str, ...]
    offsets: I64
    attribute: I32
    value: I64
    textual: NDArray[np.bool_] | None = None
    strings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def take(self, rows: I64) -> EventDraft:
        """Some of the events, in that order; one may come twice."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
        pairs = np.arange(offsets[-1]) + np.repeat(self.offsets[:-1][rows] - offsets[:-1], sizes)
        return EventDraft(
            self.attributes, offsets, self.attribute[pairs], self.value[pairs], self.textual, self.strings
        )

    def sampled(self, most: int) -> I64:
        """At most so many of the events, evenly spaced."""
        some = min(len(self), max(1, min(most, _CELLS // max(1, len(self.attributes)))))
        return np.arange(some) * len(self) // max(1, some)

    def table(self, every: bool = False) -> pa.Table:
        """A column for every attribute that occurs, null where an event has it not.

        With `every` also for those that do not occur, and of types that no value decides: parts then fit together.
        """
        row = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        order = np.argsort(self.attribute, kind="stable")
        row, value = row[order], self.value[order]
        ends = np.concatenate(([0], np.cumsum(np.bincount(self.attribute, minlength=len(self.attributes)))))
        small = not every and (len(value) == 0 or np.abs(value).max() < 2**31)
        kind = np.int32 if small else np.int64
        words = pa.array(self.strings, pa.string())
        columns = {}
        for a, name in enumerate(self.attributes):
            some = slice(ends[a], ends[a + 1])
            if ends[a] == ends[a + 1] and not every:
                continue
            cells, missing = np.zeros(len(self), kind), np.ones(len(self), np.bool_)
            cells[row[some]], missing[row[some]] = value[some], False
            column = pa.array(cells, mask=missing)
            columns[name] = words.take(column) if self.textual is not None and self.textual[a] else column
        return pa.table(columns)

    def matrix(self) -> tuple[I64, I64, I64, I64]:
        """The arrays drawn above: columns, holder_offsets, holders, held."""
        row = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        value = self._ranked(self.value, self.attribute)
        columns = np.full((len(self.attributes), len(self)), NOWHERE, np.int64)
        columns[self.attribute, row] = value
        counts = np.bincount(self.attribute, minlength=len(self.attributes))
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))
        order = np.lexsort((value, self.attribute))
        return columns, ends, row[order], value[order]

    def _ranked(self, value: I64, attribute: I32) -> I64:
        """Strings by their rank instead of their place, so that numbers are in the order of the strings."""
        if self.textual is None or not self.strings:
            return value
        return np.where(
            self.textual[attribute], ranks(self.strings)[np.where(self.textual[attribute], value, 0)], value
        )


def ranks(strings: tuple[str, ...]) -> I64:
    """For every string its place among all in order."""
    rank = np.empty(len(strings), np.int64)
    rank[sorted(range(len(strings)), key=strings.__getitem__)] = np.arange(len(strings))
    return rank


def matches_of(draft: Draft, events: EventDraft, own: I64 | None = None) -> I64:
    """For every rule how many of the events it matches, its own event (a number, or -1) left out."""
    operand = draft.operand
    if draft.strings:
        of_text = np.repeat(draft.textual[draft.attribute], np.diff(draft.operand_offsets))
        operand = np.where(of_text, ranks(draft.strings)[np.where(of_text, operand, 0)], operand)
    counts: I64 = count_matches(
        draft.tree_offsets,
        draft.tree,
        draft.conjunction_offsets,
        draft.attribute,
        draft.operator,
        draft.operand_offsets,
        operand,
        *events.matrix(),
        np.full(len(draft), -1, np.int64) if own is None else own,
    )
    return counts


def match_probability(draft: Draft, events: EventDraft, most: int = _SAMPLE) -> float:
    """The share of pairs of a rule and an event that match, over all rules and a sample of the events."""
    some = events.take(events.sampled(most))
    return float(matches_of(draft, some).sum()) / (len(draft) * len(some)) if len(draft) and len(some) else 0.0


@kernel
def count_matches(
    tree_offsets, tree, conjunction_offsets, attribute, operator, operand_offsets, operand, columns, holder_offsets,
    holders, held, own,
):  # fmt: skip
    """For every rule how many events it matches; an absent attribute satisfies nothing."""
    events = columns.shape[1]
    rules = len(tree_offsets) - 1
    counts = np.zeros(rules, np.int64)
    left = np.empty(events, np.int64)
    deepest = 1
    for n in range(rules):
        deepest = max(deepest, tree_offsets[n + 1] - tree_offsets[n])
    stack = np.zeros((deepest, events if deepest > 1 else 0), np.bool_)
    for n in range(rules):
        first_token, stop_token = tree_offsets[n], tree_offsets[n + 1]
        top = 0
        # From the last token to the first: the children of a token are then on the stack, the first one on top.
        for t in range(stop_token - 1, first_token - 1, -1):
            c = tree[t]
            if c < 0:
                children = (-c) // 2
                top -= children
                for k in range(top + 1, top + children):
                    for e in range(events):
                        stack[top, e] = stack[top, e] | stack[k, e] if c & 1 else stack[top, e] & stack[k, e]
                top += 1
                continue
            first, stop = conjunction_offsets[c], conjunction_offsets[c + 1]
            some, start = events, -1
            for p in range(first, stop):
                a, o, low, high = attribute[p], operator[p], operand_offsets[p], operand_offsets[p + 1] - 1
                begin, end = holder_offsets[a], holder_offsets[a + 1]
                if o in (0, 4, 5, 8):
                    begin += np.searchsorted(held[begin:end], operand[low] + (1 if o == 4 else 0))
                if o in (0, 2, 3, 8):
                    end = begin + np.searchsorted(held[begin:end], operand[high] + (0 if o == 2 else 1))
                if end - begin <= some:
                    some, start = end - begin, begin
            for i in range(some):
                left[i] = i if start < 0 else holders[start + i]
            for p in range(first, stop):
                if some == 0:
                    break
                a, o, low, high = attribute[p], operator[p], operand_offsets[p], operand_offsets[p + 1] - 1
                kept = 0
                for i in range(some):
                    value = columns[a, left[i]]
                    if o == 0:
                        holds = value == operand[low]
                    elif o == 2:
                        holds = value < operand[low]
                    elif o == 3:
                        holds = value <= operand[low]
                    elif o == 4:
                        holds = value > operand[low]
                    elif o == 5:
                        holds = value >= operand[low]
                    elif o == 8:
                        holds = operand[low] <= value and value <= operand[high]
                    else:
                        holds = o == 1 or o == 7
                        for k in range(low, high + 1):
                            if operand[k] == value:
                                holds = o == 6
                                break
                    if holds and value != NOWHERE:
                        left[kept] = left[i]
                        kept += 1
                some = kept
            if stop_token - first_token == 1:
                for i in range(some):
                    if left[i] != own[n]:
                        counts[n] += 1
                break
            stack[top, :] = False
            for i in range(some):
                stack[top, left[i]] = True
            top += 1
        if stop_token - first_token > 1:
            for e in range(events):
                if stack[0, e] and e != own[n]:
                    counts[n] += 1
    return counts
