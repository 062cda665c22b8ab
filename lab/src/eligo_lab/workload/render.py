"""A draft as text: all expressions written into one buffer of UTF-8 bytes by one kernel.

    pieces   the bytes that repeat, one after another; piece i is pieces[starts[i] … starts[i+1]]:
             what stands between (", " and the like), operators with their blanks, attribute names, strings in quotes

AND binds tighter than OR, so parentheses stand only around an OR that is a child of an AND.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from eligo.jit import kernel
from eligo.language.render import render_value
from eligo.language.tokens import is_plain, quoted

if TYPE_CHECKING:
    from eligo.compile.compiled import I64
    from eligo_lab.workload.draft import Draft

_COMMA, _OPEN, _CLOSE, _AND, _OR, _TRUE, _FALSE, _OPERATORS = range(8)
_MARKS = (", ", "(", ")", " and ", " or ", "true", "false")
_SPELLED = (" = ", " != ", " < ", " <= ", " > ", " >= ", " in (", " not in (", " between ")
_NAMES = len(_MARKS) + len(_SPELLED)
_WIDEST = 20  # bytes of a 64-bit integer


def rendered(draft: Draft) -> pa.Array:
    """The expressions, as strings, or as large strings where all together pass two gigabytes."""
    names = [name if is_plain(name) else quoted(name) for name in draft.attributes]
    pieces = [text.encode() for text in (*_MARKS, *_SPELLED, *names, *map(render_value, draft.strings))]
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(piece) for piece in pieces], dtype=np.int64)))
    lengths = np.diff(starts)
    data = np.empty(_room(draft, lengths, len(names)), np.uint8)
    ends = np.zeros(len(draft) + 1, np.int64)
    write_rules(
        draft.tree_offsets,
        draft.tree,
        draft.conjunction_offsets,
        draft.attribute,
        draft.operator,
        draft.operand_offsets,
        draft.operand,
        draft.textual,
        np.frombuffer(b"".join(pieces), np.uint8),
        starts,
        data,
        ends,
    )
    content = pa.py_buffer(data[: ends[-1]])
    if ends[-1] < 2**31:
        return pa.StringArray.from_buffers(len(draft), pa.py_buffer(ends.astype(np.int32)), content)
    return pa.LargeStringArray.from_buffers(len(draft), pa.py_buffer(ends), content)


def _room(draft: Draft, lengths: I64, names: int) -> int:
    """What all rules could take at most; pages that nothing is written to cost nothing.

    By leaf, not by conjunction: many rules may name one.
    """
    operands = np.full(len(draft.operand), _WIDEST + 6, np.int64)  # with what stands between two of them
    if len(draft.strings):
        of_text = np.repeat(draft.textual[draft.attribute], np.diff(draft.operand_offsets))
        operands[of_text] += lengths[_NAMES + names :][draft.operand[of_text]]
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(operands)))
    predicates = lengths[_NAMES + draft.attribute] + 24 + np.diff(before[draft.operand_offsets])
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(predicates)))
    conjunctions = np.diff(before[draft.conjunction_offsets])
    leaves = draft.tree[draft.tree >= 0]
    return int(conjunctions[leaves].sum()) + 16 * len(draft.tree) + 8 * len(draft)


@kernel
def write_rules(
    tree_offsets, tree, conjunction_offsets, attribute, operator, operand_offsets, operand, textual, pieces, starts,
    data, ends,
):  # fmt: skip
    """Write every rule to `data`, and where it ends to `ends`."""
    deepest = 1
    for n in range(len(tree_offsets) - 1):
        deepest = max(deepest, tree_offsets[n + 1] - tree_offsets[n])
    waiting = np.zeros(deepest, np.int64)  # of every open AND and OR: children still to come,
    word = np.zeros(deepest, np.int64)  # the piece between them,
    closed = np.zeros(deepest, np.bool_)  # whether it is in parentheses
    strings = _NAMES + len(textual)
    at = 0
    for n in range(len(tree_offsets) - 1):
        if tree_offsets[n] == tree_offsets[n + 1]:
            for i in range(starts[_FALSE], starts[_FALSE + 1]):
                data[at] = pieces[i]
                at += 1
        depth = 0
        for t in range(tree_offsets[n], tree_offsets[n + 1]):
            c = tree[t]
            if c < 0:
                children, own = (-c) // 2, _OR if c & 1 else _AND
                if children == 1 and depth > 0:
                    own = word[depth - 1]  # of one child: the child, at this place
                within = depth > 0 and word[depth - 1] == _AND and own == _OR
                if within:
                    data[at] = pieces[starts[_OPEN]]
                    at += 1
                waiting[depth], word[depth], closed[depth] = children, own, within
                depth += 1
                continue
            if conjunction_offsets[c] == conjunction_offsets[c + 1]:
                for i in range(starts[_TRUE], starts[_TRUE + 1]):
                    data[at] = pieces[i]
                    at += 1
            for p in range(conjunction_offsets[c], conjunction_offsets[c + 1]):
                if p > conjunction_offsets[c]:
                    for i in range(starts[_AND], starts[_AND + 1]):
                        data[at] = pieces[i]
                        at += 1
                name, spelled = _NAMES + attribute[p], _OPERATORS + operator[p]
                for i in range(starts[name], starts[name + 1]):
                    data[at] = pieces[i]
                    at += 1
                for i in range(starts[spelled], starts[spelled + 1]):
                    data[at] = pieces[i]
                    at += 1
                between = _AND if operator[p] == 8 else _COMMA
                for o in range(operand_offsets[p], operand_offsets[p + 1]):
                    if o > operand_offsets[p]:
                        for i in range(starts[between], starts[between + 1]):
                            data[at] = pieces[i]
                            at += 1
                    if textual[attribute[p]]:
                        text = strings + operand[o]
                        for i in range(starts[text], starts[text + 1]):
                            data[at] = pieces[i]
                            at += 1
                        continue
                    value = operand[o]
                    if value < 0:
                        data[at] = 45  # -
                        at += 1
                        value = -value
                    digits, rest = 1, value
                    while rest >= 10:
                        rest //= 10
                        digits += 1
                    for i in range(digits):
                        data[at + digits - 1 - i] = 48 + value % 10
                        value //= 10
                    at += digits
                if operator[p] == 6 or operator[p] == 7:
                    data[at] = pieces[starts[_CLOSE]]
                    at += 1
            while depth > 0:
                waiting[depth - 1] -= 1
                if waiting[depth - 1] > 0:
                    for i in range(starts[word[depth - 1]], starts[word[depth - 1] + 1]):
                        data[at] = pieces[i]
                        at += 1
                    break
                depth -= 1
                if closed[depth]:
                    data[at] = pieces[starts[_CLOSE]]
                    at += 1
        ends[n + 1] = at
