"""Rules as flat arrays that name no space yet: what every index is built from, and what merging concatenates.

    predicate p   attribute[p]  flags[p]  pattern[p] (string number, -1 for none)
                  its set of values: runs run_offsets[p] … run_offsets[p+1]
    run r         low_kind low_key low_key2 │ high_kind high_key high_key2      cuts as in codes.py, low ≤ x < high
    conjunction c predicates conjunction[conjunction_offsets[c] … [c+1]], ascending; one for a single-valued attribute
                  (the evaluator `dnf` makes some with several, which count each for itself)
    rule n        tree[tree_offsets[n] … [n+1]] in prefix order:  c ≥ 0 a conjunction,
                  -2k an AND of the k trees that follow, -2k-1 an OR of them; nothing at all: never true
    part p        part[part_offsets[p] … [p+1]], a tree that others name instead of copying it: their token for it is
                  p + the number of conjunctions. Parts name only parts of lower numbers. Most rules have none: they are
                  made for an evaluator that wants them (evaluate/sharing.py)

Invariants: after `unique` no two predicates and no two conjunctions are equal, however many rules share them; a
conjunction without predicates always holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eligo.jit import inline, kernel

I32: TypeAlias = NDArray[np.int32]
I64: TypeAlias = NDArray[np.int64]
U8: TypeAlias = NDArray[np.uint8]
F64: TypeAlias = NDArray[np.float64]
Arrays: TypeAlias = dict[str, NDArray[Any]]

_LARGE = 1 << 16  # items that a kernel copies in another order: NumPy would take 24 bytes for each of them

RUN_ARRAYS = ("low_kind", "low_key", "low_key2", "high_kind", "high_key", "high_key2")


@dataclass(frozen=True)
class Compiled:
    """Predicates, conjunctions and trees of some rules; the layout is drawn at the top of this file."""

    attribute: I32
    flags: U8
    pattern: I32
    run_offsets: I64
    low_kind: U8
    low_key: I64
    low_key2: I64
    high_kind: U8
    high_key: I64
    high_key2: I64
    conjunction_offsets: I64
    conjunction: I32
    tree_offsets: I64
    tree: I32
    part_offsets: I64 = field(default_factory=lambda: np.zeros(1, np.int64))
    part: I32 = field(default_factory=lambda: np.zeros(0, np.int32))

    @property
    def parts(self) -> int:
        return len(self.part_offsets) - 1

    @property
    def predicates(self) -> int:
        return len(self.attribute)

    @property
    def conjunctions(self) -> int:
        return len(self.conjunction_offsets) - 1

    @property
    def rules(self) -> int:
        return len(self.tree_offsets) - 1

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def trees(self) -> Arrays:
        """Returns the arrays that say how rules are made of conjunctions."""
        return {name: getattr(self, name) for name in ("tree_offsets", "tree", "part_offsets", "part")}


def trees_alone(trees: Arrays, conjunctions: int) -> Compiled:
    """Returns trees of so many conjunctions that are kept elsewhere, as if these had no predicates."""
    numbers, codes, keys = np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int64)
    runs: Arrays = {name: codes if name.endswith("kind") else keys for name in RUN_ARRAYS}
    offsets = np.zeros(conjunctions + 1, np.int64)  # memory that nobody touches
    empty: Arrays = {"attribute": numbers, "flags": codes, "pattern": numbers, "run_offsets": offsets[:1], **runs}
    return Compiled(**empty, conjunction_offsets=offsets, conjunction=numbers, **trees)


def concatenate(parts: Sequence[Compiled], keep: Sequence[NDArray[np.bool_] | None]) -> Compiled:
    """The kept rules of all parts as one, with equal predicates and equal conjunctions made one again."""
    every = sum(part.conjunctions for part in parts)
    predicates = conjunctions = runs = items = leaves = shared = shares = 0
    joined: dict[str, list[NDArray[Any]]] = {field.name: [] for field in fields(Compiled)}
    for name in ("tree_offsets", "part_offsets"):
        joined[name].append(np.zeros(1, np.int64))
    for part, mask in zip(parts, keep, strict=True):
        tree, offsets = kept_slices(part.tree, part.tree_offsets, mask)
        joined["tree"].append(moved_tokens(tree, part.conjunctions, conjunctions, every + shares))
        joined["tree_offsets"].append(offsets[1:] + leaves)
        joined["part"].append(moved_tokens(part.part, part.conjunctions, conjunctions, every + shares))
        joined["part_offsets"].append(part.part_offsets[1:] + shared)
        for name in ("attribute", "flags", "pattern", *RUN_ARRAYS):
            joined[name].append(getattr(part, name))
        joined["run_offsets"].append(part.run_offsets[:-1] + runs)
        joined["conjunction_offsets"].append(part.conjunction_offsets[:-1] + items)
        joined["conjunction"].append(part.conjunction + np.int32(predicates))
        predicates += part.predicates
        conjunctions += part.conjunctions
        runs += len(part.low_kind)
        items += len(part.conjunction)
        leaves += len(tree)
        shared += len(part.part)
        shares += part.parts
    joined["run_offsets"].append(np.array([runs], np.int64))
    joined["conjunction_offsets"].append(np.array([items], np.int64))
    return unique(Compiled(**{name: np.concatenate(arrays) for name, arrays in joined.items()}))


def moved_tokens(tokens: I32, conjunctions: int, to: int, parts_to: int) -> I32:
    """The same trees where conjunctions are numbered from `to` on, and the tokens for parts start at `parts_to`."""
    moved = np.where(tokens >= conjunctions, tokens - conjunctions + parts_to, tokens + to)
    return np.where(tokens >= 0, moved, tokens).astype(np.int32)


def unique(whole: Compiled) -> Compiled:
    """Equal predicates made one, equal conjunctions made one, and what no rule uses dropped."""
    runs = np.stack([getattr(whole, name) for name in RUN_ARRAYS], axis=1, dtype=np.int64)
    heads = np.stack((whole.attribute, whole.flags, whole.pattern), axis=1, dtype=np.int64)
    same = first_equal_slice(*headed_slices(heads, runs.ravel(), whole.run_offsets * len(RUN_ARRAYS)))
    conjunction = same[whole.conjunction]
    sort_within(conjunction, whole.conjunction_offsets)
    first = first_equal_slice(conjunction, whole.conjunction_offsets)
    # What tokens stand for, conjunctions and behind them parts: the equal one that is kept, and then its new number.
    kept = np.concatenate((first, np.arange(whole.conjunctions, whole.conjunctions + whole.parts, dtype=np.int32)))
    used = used_tokens(whole.tree, whole.part, whole.part_offsets, whole.conjunctions, kept)
    number = (np.cumsum(used, dtype=np.int32) - np.int32(1))[kept]
    conjunction, conjunction_offsets = kept_slices(conjunction, whole.conjunction_offsets, used[: whole.conjunctions])
    part, part_offsets = kept_slices(whole.part, whole.part_offsets, used[whole.conjunctions :])
    wanted = np.zeros(whole.predicates, np.bool_)
    wanted[conjunction] = True
    return Compiled(
        **predicate_rows(whole, wanted),
        conjunction_offsets=conjunction_offsets,
        conjunction=(np.cumsum(wanted, dtype=np.int32) - np.int32(1))[conjunction]
        if len(conjunction)
        else conjunction.astype(np.int32),
        tree_offsets=whole.tree_offsets,
        tree=_renumbered(whole.tree, number),
        part_offsets=part_offsets,
        part=_renumbered(part, number),
    )


def _renumbered(tokens: I32, number: I32) -> I32:
    if not len(number):
        return tokens.astype(np.int32)
    return np.where(tokens >= 0, number[np.maximum(tokens, 0)], tokens).astype(np.int32)


@kernel
def used_tokens(tree, part, part_offsets, conjunctions, kept):
    """Whether each conjunction and each part is used by a rule, itself or through parts."""
    parts = len(part_offsets) - 1
    used = np.zeros(conjunctions + parts, np.bool_)
    for t in tree:
        if t >= 0:
            used[kept[t]] = True
    for p in range(parts - 1, -1, -1):  # those that name a part stand behind it
        if used[conjunctions + p]:
            for i in range(part_offsets[p], part_offsets[p + 1]):
                if part[i] >= 0:
                    used[kept[part[i]]] = True
    return used


def predicate_rows(whole: Compiled, wanted: NDArray[np.bool_]) -> Arrays:
    """The predicate table, cut down to the wanted rows."""
    rows, run_offsets = kept_slices(np.arange(len(whole.low_kind)), whole.run_offsets, wanted)
    cut = {name: getattr(whole, name)[wanted] for name in ("attribute", "flags", "pattern")}
    for name in RUN_ARRAYS:
        cut[name] = getattr(whole, name)[rows]
    return {**cut, "run_offsets": run_offsets}


def kept_slices(items: NDArray[Any], offsets: I64, keep: NDArray[np.bool_] | None) -> tuple[NDArray[Any], I64]:
    """The slices items[offsets[i]:offsets[i+1]] with keep[i], and their new offsets."""
    if keep is None or bool(keep.all()):
        return items, offsets
    sizes = np.diff(offsets)
    chosen = items[np.repeat(keep, sizes)]
    return chosen, np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes[keep], dtype=np.int64)))


def headed_slices(heads: I64, items: I64, offsets: I64) -> tuple[I64, I64]:
    """The slices items[offsets[i]:offsets[i+1]], each behind the numbers heads[i], and their new offsets."""
    moved = offsets + heads.shape[1] * np.arange(len(offsets))
    headed = np.empty(moved[-1], np.int64)
    is_item = np.ones(len(headed), np.bool_)
    is_item[moved[:-1, None] + np.arange(heads.shape[1])] = False
    headed[~is_item], headed[is_item] = heads.ravel(), items
    return headed, moved


def permuted_slices(items: NDArray[Any], offsets: I64, order: I64) -> tuple[NDArray[Any], I64]:
    """The slices items[offsets[i]:offsets[i+1]] in another order."""
    sizes = np.diff(offsets)[order]
    moved = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
    if len(items) > _LARGE:
        return copied_slices(items, offsets[:-1][order], moved), moved
    take = np.arange(moved[-1]) + np.repeat(offsets[:-1][order] - moved[:-1], sizes)
    return items[take], moved


def sorted_unique(values: NDArray[Any]) -> NDArray[Any]:
    """As np.unique, which hashes and keeps the interpreter to itself meanwhile; sorting lets other threads run."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return ordered
    new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return ordered[new]


@kernel
def copied_slices(items, begin, offsets):
    """The slices that begin at some places of an array, one after another up to each offset."""
    copied = np.empty(offsets[-1], items.dtype)
    for i in range(len(begin)):
        shift = begin[i] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            copied[k] = items[k + shift]
    return copied


@inline
def mixed(h, value):
    h = (h ^ np.uint64(value)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@inline
def grown(array, least):
    """Returns the same array with room for `least` items or more. (A slice that is assigned would do, but takes Numba a
    second to compile, once a process: for the message that shapes differ.)
    """
    if least <= len(array):
        return array
    bigger = np.zeros(max(least, 2 * len(array)), array.dtype)
    for i in range(len(array)):
        bigger[i] = array[i]
    return bigger


@kernel
def first_equal_slice(items, offsets):
    """For every slice items[offsets[i]:offsets[i+1]] the first one that equals it."""
    n = len(offsets) - 1
    size = 16
    while size < 2 * n:
        size *= 2
    slots = np.zeros(size, np.int32)
    mask = np.uint64(size - 1)
    first = np.empty(n, np.int32)
    for c in range(n):
        h = np.uint64(offsets[c + 1] - offsets[c])
        for i in range(offsets[c], offsets[c + 1]):
            h = mixed(h, items[i])
        at = h & mask
        while True:
            d = slots[at] - 1
            if d < 0:
                slots[at] = c + 1
                first[c] = c
                break
            same = offsets[c + 1] - offsets[c] == offsets[d + 1] - offsets[d]
            if same:
                shift = offsets[d] - offsets[c]
                for i in range(offsets[c], offsets[c + 1]):
                    if items[i] != items[i + shift]:
                        same = False
                        break
            if same:
                first[c] = d
                break
            at = (at + np.uint64(1)) & mask
    return first


@kernel
def sort_within(items, offsets):
    """Sort each slice in place; slices are short, so by insertion."""
    for c in range(len(offsets) - 1):
        for i in range(offsets[c] + 1, offsets[c + 1]):
            value = items[i]
            j = i - 1
            while j >= offsets[c] and items[j] > value:
                items[j + 1] = items[j]
                j -= 1
            items[j + 1] = value
