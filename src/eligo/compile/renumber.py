"""Compiled rules under other numbers: a piece compiled elsewhere names attributes and strings by numbers of its own.

A `Compiled` names no space, so three of its arrays are all there is to change: the attribute of a predicate, the string
of its pattern, and the cuts right before or after a string.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from eligo.compile.codes import STRING_CUT
from eligo.compile.compiled import I32, I64, U8, Compiled, unique


def renumbered(compiled: Compiled, attributes: I32, strings: I32) -> Compiled:
    """The same rules where attribute a is attributes[a] and string s is strings[s]."""
    return replace(
        compiled,
        attribute=attributes[compiled.attribute],
        pattern=np.where(compiled.pattern >= 0, _taken(strings, compiled.pattern), np.int32(-1)).astype(np.int32),
        low_key=_string_cuts(compiled.low_kind, compiled.low_key, strings),
        high_key=_string_cuts(compiled.high_kind, compiled.high_key, strings),
    )


def mark_used(compiled: Compiled, attributes: NDArray[np.bool_], strings: NDArray[np.bool_]) -> None:
    """Set what stands at the numbers of the attributes and strings that some predicate names."""
    attributes[compiled.attribute] = True
    strings[compiled.pattern[compiled.pattern >= 0]] = True
    strings[compiled.low_key[compiled.low_kind == STRING_CUT] >> 1] = True
    strings[compiled.high_key[compiled.high_kind == STRING_CUT] >> 1] = True


def rules_between(compiled: Compiled, first: int, stop: int) -> Compiled:
    """Rules first … stop-1, and of predicates and conjunctions what they use."""
    if first == 0 and stop == compiled.rules:
        return compiled
    offsets = compiled.tree_offsets[first : stop + 1]
    tree = compiled.tree[offsets[0] : offsets[-1]]
    return unique(replace(compiled, tree=tree, tree_offsets=offsets - offsets[0]))


def _string_cuts(kinds: U8, keys: I64, strings: I32) -> I64:
    """A cut at a string is twice its number, and one more if it lies after it."""
    moved = keys.copy()
    at = kinds == STRING_CUT
    if at.any():
        moved[at] = 2 * strings[keys[at] >> 1].astype(np.int64) + (keys[at] & 1)
    return moved


def _taken(strings: I32, numbers: I32) -> I32:
    return strings[np.maximum(numbers, 0)] if len(strings) else numbers
