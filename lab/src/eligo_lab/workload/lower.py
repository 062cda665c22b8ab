"""A draft as `Compiled` arrays, with no text and no Python object for a predicate in between.

    draft predicates ─ equal ones made one ─▶ each a list of runs between cuts (compile/codes.py) ─ `unique` ─▶ Compiled

The sets are those of `language.values.positive_set`, and for `!=` and `not in` their complement, which under classical
semantics an absent attribute satisfies too. For an integer v within ±2⁵³ the cut before it has the keys v and the
ordered bits of float(v), the cut after it both plus one: the least integer and the least float above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eligo.compile import codes
from eligo.compile.attributes import Attributes
from eligo.compile.compiled import (
    I32,
    I64,
    RUN_ARRAYS,
    U8,
    Compiled,
    first_equal_slice,
    headed_slices,
    kept_slices,
    sort_within,
    unique,
)
from eligo.compile.strings import Strings
from eligo.jit import kernel

if TYPE_CHECKING:
    from eligo_lab.workload.draft import Draft

_EQUAL, _UNEQUAL, _LESS, _AT_MOST, _MORE, _AT_LEAST, _IN, _NOT_IN, _BETWEEN = range(9)


def lowered(draft: Draft, attributes: Attributes, strings: Strings, absent: str) -> Compiled:
    """See `Draft.compile`."""
    same = same_predicates(draft.attribute, draft.operator, draft.operand_offsets, draft.operand)
    chosen = same == np.arange(len(same))
    number = np.cumsum(chosen, dtype=np.int32) - np.int32(1)
    operand, operand_offsets = kept_slices(draft.operand, draft.operand_offsets, chosen)
    attribute, operator = draft.attribute[chosen], draft.operator[chosen]
    textual = draft.textual[attribute]
    texts, of_text = _texts(draft, strings, operator, operand, operand_offsets, textual)
    negated = (operator == _UNEQUAL) | (operator == _NOT_IN)
    run_offsets = np.concatenate(
        (np.zeros(1, np.int64), np.cumsum(run_counts(operator, textual, operand_offsets, of_text, texts)))
    )
    used = np.bincount(attribute, minlength=len(draft.attributes)) > 0
    names = np.array(
        [attributes.intern(name) if some else -1 for name, some in zip(draft.attributes, used, strict=True)], np.int32
    )
    runs = write_runs(operator, textual, operand_offsets, of_text, _ordered(operand), texts, run_offsets)
    return unique(
        Compiled(
            attribute=names[attribute] if len(names) else attribute,
            flags=np.where(negated & (absent == "classical"), codes.ABSENT_HOLDS, 0).astype(np.uint8),
            pattern=np.full(len(attribute), -1, np.int32),
            run_offsets=run_offsets,
            **dict(zip(RUN_ARRAYS, runs, strict=True)),
            conjunction_offsets=draft.conjunction_offsets,
            conjunction=number[same],
            tree_offsets=draft.tree_offsets,
            tree=draft.tree,
        )
    )


def _texts(
    draft: Draft, strings: Strings, operator: U8, operand: I64, operand_offsets: I64, textual: NDArray[np.bool_]
) -> tuple[I64, I64]:
    """Operands with strings by their rank, lists ascending; and by rank the string's number, -1 for the empty one."""
    if not draft.strings:
        return np.zeros(0, np.int64), operand
    order = sorted(range(len(draft.strings)), key=draft.strings.__getitem__)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    rows = np.repeat(textual, np.diff(operand_offsets))
    ranked = operand.copy()
    ranked[rows] = rank[operand[rows]]
    if order != sorted(order):
        lists = np.repeat((operator == _IN) | (operator == _NOT_IN), np.diff(operand_offsets))
        ascending = ranked.copy()
        sort_within(ascending, operand_offsets)
        ranked = np.where(lists, ascending, ranked)
    used = np.bincount(ranked[rows], minlength=len(order)) > 0
    numbers = [strings.intern(draft.strings[s]) if some else 0 for s, some in zip(order, used, strict=True)]
    texts = np.array(numbers, np.int64)
    if draft.strings[order[0]] == "":
        texts[0] = -1 - texts[0]
    return texts, ranked


def _ordered(operand: I64) -> I64:
    """Floats as integers of the same order; see codes.ordered_bits."""
    bits = operand.astype(np.float64).view(np.int64)
    return np.where(bits >= 0, bits, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF))


def same_predicates(attribute: I32, operator: U8, offsets: I64, operand: I64) -> I32:
    """For every predicate the first one that equals it."""
    heads = np.stack((attribute, operator), axis=1, dtype=np.int64)
    same: I32 = first_equal_slice(*headed_slices(heads, operand, offsets))
    return same


@kernel
def run_counts(operator, textual, offsets, operand, texts):
    """How many runs each predicate's set has."""
    counts = np.ones(len(operator), np.int64)
    for p in range(len(operator)):
        o = operator[p]
        if o == _IN:
            counts[p] = offsets[p + 1] - offsets[p]
        elif o in (_NOT_IN, _UNEQUAL):
            counts[p] = offsets[p + 1] - offsets[p] + 1
        elif o == _LESS and textual[p] and texts[operand[offsets[p]]] < 0:
            counts[p] = 0  # nothing is less than the empty string
        elif o == _BETWEEN and operand[offsets[p]] > operand[offsets[p] + 1]:
            counts[p] = 0
    return counts


@kernel
def write_runs(operator, textual, offsets, operand, ordered, texts, run_offsets):
    """The cuts of every run: low kind, key, key2, then high.

    Even places of `cut_*` are low ends and odd ones high ends, so that a complement only begins one place earlier.
    """
    runs = run_offsets[-1]
    kind = np.zeros(2 * runs, np.uint8)
    key, key2 = np.zeros(2 * runs, np.int64), np.zeros(2 * runs, np.int64)
    for p in range(len(operator)):
        o, first, stop, text = operator[p], offsets[p], offsets[p + 1], textual[p]
        at, end = 2 * run_offsets[p], 2 * run_offsets[p + 1]
        if at == end:
            continue
        start = codes.START_STRING if text else codes.START_NUMBER
        if o in (_UNEQUAL, _NOT_IN):
            kind[at], kind[end - 1] = codes.START_NUMBER, codes.END_CUT
            at += 1
        elif o in (_LESS, _AT_MOST):
            kind[at] = start
            at += 1
        elif o in (_MORE, _AT_LEAST):
            kind[end - 1] = start + 4
        for i in range(first, stop):
            for past in range(2):
                if past == 1 and (o in (_LESS, _AT_LEAST) or (o == _BETWEEN and i == first)):
                    continue
                if past == 0 and (o in (_AT_MOST, _MORE) or (o == _BETWEEN and i > first)):
                    continue
                if not text:
                    kind[at], key[at], key2[at] = codes.NUMBER_CUT, operand[i] + past, ordered[i] + past
                else:
                    number = texts[operand[i]]
                    if number < 0 and past == 0:
                        kind[at] = codes.START_STRING  # right before the empty string
                    else:
                        number = -1 - number if number < 0 else number
                        kind[at], key[at] = codes.STRING_CUT, 2 * number + past
                at += 1
    low, high = slice(0, None, 2), slice(1, None, 2)
    return (
        kind[low].copy(),
        key[low].copy(),
        key2[low].copy(),
        kind[high].copy(),
        key[high].copy(),
        key2[high].copy(),
    )
