"""Trees that grow into each other: AND/OR nodes by level, whose children are drawn from pools of lower levels.

    level 0            conjunctions
    level 1, 3, 5 …    ORs:  2 to 4 children of even levels, one of them a level below
    level 2, 4, 6 …    ANDs: 2 or 3 children, ORs but for one conjunction at most; one of them a level below

    level L            [ pool: drawn by anyone, the r-th with weight r^-zipf │ fresh: made for one place ]
    node i             one numbering over all levels, lower levels first: level L has starts[L] … starts[L+1]
                       children child[offsets[i] … [i+1]], ascending; none at level 0
    same[i]            the first node that says the same; children are such firsts

Two passes. From the top, `shaped` decides how many children nodes have, of which level, and which of them are fresh: so
the number of fresh nodes of each level is known before any is made. From the bottom, `filled` draws the others.

Invariant: a tree is what the language's normal form makes of it. ANDs and ORs alternate, children differ, no OR has two
lone predicates on one attribute (they would be merged), and no lone predicate stands beside a conjunction that has it
(it would absorb that one). Where no such children are found after many tries, `filled` gives None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import F64, I32, I64, first_equal_slice
from eligo.jit import inline, kernel
from eligo_lab.workload.tree_kernels import drawn

OR_CHILDREN = np.array([0.0, 0.0, 0.6, 0.9, 1.0])  # of at most that many; the last number is the most
AND_CHILDREN = np.array([0.0, 0.0, 0.65, 1.0])
_PLAIN = 0.8  # share of conjunctions among the other children of an OR
_OWN = 0.75  # share of ANDs that have a conjunction, where they have room for it
_NEAR = 0.75  # of nested children at the lowest level that can be, and so on upwards
_TRIES = 64


@dataclass(frozen=True)
class Thicket:
    """Nodes of all levels as drawn above; `roots` are the rules, by node."""

    starts: I64
    offsets: I64
    child: I32
    same: I32
    roots: I32

    def level(self) -> NDArray[np.uint8]:
        """By node."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.uint8), np.diff(self.starts))

    def used(self) -> NDArray[np.bool_]:
        """Which nodes some rule has."""
        marked: NDArray[np.bool_] = reached(self.offsets, self.child, self.roots)
        return marked

    def trees(self) -> tuple[I32, I64]:
        """All rules in prefix order, as in draft.py: tokens and offsets. Conjunctions are those of level 0."""
        size = tree_sizes(self.offsets, self.child, self.starts[1])[self.roots]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(size, dtype=np.int64)))
        return written(self.offsets, self.child, self.level(), self.roots, offsets), offsets


@dataclass(frozen=True)
class Shape:
    """What the pass from the top leaves: of every child and root its node, or -1 - level for one of that pool."""

    starts: I64
    offsets: I64
    child: I64
    roots: I64


def shaped(rng: np.random.Generator, levels: I64, pool: I64, fresh: float, repeated: float) -> Shape:
    """The shapes of all nodes, for rules whose roots have these levels; pool[L] nodes of level L are in the pool."""
    top = len(pool) - 1
    used = pool.copy()  # by level, how many nodes there are so far
    roots = shape_roots(rng, levels, repeated, used)
    counts, children = [], []
    for level in range(top, 0, -1):
        sums = AND_CHILDREN if level % 2 == 0 else OR_CHILDREN
        many = np.searchsorted(sums, rng.random(used[level]), side="right")
        counts.append(many)
        children.append(shape_children(rng, level, many, fresh, used))
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(used)))
    sizes = np.concatenate([np.zeros(used[0], np.int64), *counts[::-1]])
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    child = np.concatenate([np.zeros(0, np.int64), *children[::-1]])
    return Shape(starts, offsets, numbered(child, starts), numbered(roots, starts))


def filled(
    rng: np.random.Generator, shape: Shape, popularity: list[F64], same_leaf: I32, leaf_offsets: I64, leaf: I64
) -> Thicket | None:
    """The nodes with all their children drawn, None where no different ones are found.

    leaf[leaf_offsets[c] … [c+1]] are the predicates of conjunction c: attribute · 2³² + a number, equal ones alike.
    """
    starts, offsets = shape.starts, shape.offsets
    child = np.zeros(len(shape.child), np.int32)
    same = np.arange(starts[-1], dtype=np.int32)
    same[: starts[1]] = same_leaf
    sums = np.concatenate(popularity)
    places = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(one) for one in popularity])))
    for level in range(1, len(starts) - 1):
        first, stop = starts[level], starts[level + 1]
        if not draw_children(
            rng,
            first,
            stop,
            level % 2 == 1,
            offsets,
            shape.child,
            child,
            same,
            starts,
            sums,
            places,
            leaf_offsets,
            leaf,
        ):
            return None
        own = offsets[first : stop + 1]
        same[first:stop] = first + first_equal_slice(child[own[0] : own[-1]], own - own[0])
    return Thicket(starts, offsets, child, same, draw_roots(rng, shape.roots, same, starts, sums, places))


@inline
def pooled(rng, level, starts, sums, places):
    """A node of that level, from its pool."""
    first = places[level]
    return starts[level] + drawn(sums, first, places[level + 1], rng.random()) - first


@inline
def nested_level(rng, lowest, highest):
    """A level from `lowest` up in steps of two, most often the lowest."""
    level = lowest
    while level + 2 <= highest and rng.random() >= _NEAR:
        level += 2
    return level


@kernel
def shape_roots(rng, levels, repeated, used):
    """Roots as level · 2³² + number, or -1 - level for one of the pool."""
    roots = np.empty(len(levels), np.int64)
    for r in range(len(levels)):
        level = levels[r]
        if rng.random() < repeated:
            roots[r] = -1 - level
        else:
            roots[r] = (level << 32) + used[level]
            used[level] += 1
    return roots


@kernel
def shape_children(rng, level, many, fresh, used):
    """Children of all nodes of a level, as in `shape_roots`; the first is a level below."""
    children = np.empty(many.sum(), np.int64)
    is_or = (level & 1) == 1
    i = 0
    for n in range(len(many)):
        plain = not is_or and rng.random() < _OWN
        for k in range(many[n]):
            below = level - 1
            if k > 0 and is_or:
                below = 0
                if level > 2 and rng.random() >= _PLAIN:
                    below = nested_level(rng, 2, level - 1)
            elif k > 0:
                below = 0 if plain else nested_level(rng, 1, level - 1)
                plain = False
            if rng.random() < fresh:
                children[i] = (below << 32) + used[below]
                used[below] += 1
            else:
                children[i] = -1 - below
            i += 1
    return children


def numbered(place: I64, starts: I64) -> I64:
    """Level and number as one number over all levels."""
    level, number = np.maximum(place, 0) >> 32, place & 0xFFFF_FFFF
    return np.where(place < 0, place, starts[level] + number)


@kernel
def draw_children(rng, first, stop, is_or, offsets, planned, child, same, starts, sums, places, leaf_offsets, leaf):
    """Fill in the children of the nodes first … stop, different and in normal form; whether that could be done."""
    leaves = starts[1]
    for n in range(first, stop):
        begin = offsets[n]
        for i in range(begin, offsets[n + 1]):
            tries = 0
            while True:
                if tries > _TRIES:
                    return False
                plan = planned[i]
                if plan < 0 or tries > 0:
                    level = -1 - plan if plan < 0 else np.searchsorted(starts, plan, side="right") - 1
                    # By lot among all of the pool when the popular ones will not do.
                    if tries > _TRIES // 2:
                        plan = starts[level] + int(rng.random() * (places[level + 1] - places[level]))
                    else:
                        plan = pooled(rng, level, starts, sums, places)
                new = same[plan]
                fits = True
                for j in range(begin, i):
                    old = child[j]
                    if old == new:
                        fits = False
                    elif is_or:
                        fits = fits and not (
                            absorbs(old, new, leaves, offsets, child, leaf_offsets, leaf)
                            or absorbs(new, old, leaves, offsets, child, leaf_offsets, leaf)
                        )
                    elif old < leaves or new < leaves:
                        fits = fits and not shares_predicate(
                            min(old, new), max(old, new), leaves, offsets, child, leaf_offsets, leaf
                        )
                if fits:
                    break
                tries += 1
            at = i
            while at > begin and child[at - 1] > new:
                child[at] = child[at - 1]
                at -= 1
            child[at] = new
    return True


@inline
def absorbs(one, other, leaves, offsets, child, leaf_offsets, leaf):
    """Whether, in an OR, `one` is a lone predicate that the conjunction of `other` has, or could be merged with it."""
    if one >= leaves or leaf_offsets[one + 1] - leaf_offsets[one] != 1:
        return False
    predicate = leaf[leaf_offsets[one]]
    if other >= leaves:
        other = child[offsets[other]]  # an AND has its conjunction first
        if other >= leaves:
            return False
    elif leaf_offsets[other + 1] - leaf_offsets[other] == 1:
        return predicate >> 32 == leaf[leaf_offsets[other]] >> 32
    has = False
    for p in range(leaf_offsets[other], leaf_offsets[other + 1]):
        has = has or leaf[p] == predicate
    return has


@inline
def shares_predicate(own, nested, leaves, offsets, child, leaf_offsets, leaf):
    """Whether, in an AND, its conjunction has a lone predicate of the OR `nested`."""
    for i in range(offsets[nested], offsets[nested + 1]):
        other = child[i]
        if other >= leaves:
            break
        if leaf_offsets[other + 1] - leaf_offsets[other] == 1:
            for p in range(leaf_offsets[own], leaf_offsets[own + 1]):
                if leaf[p] == leaf[leaf_offsets[other]]:
                    return True
    return False


@kernel
def draw_roots(rng, planned, same, starts, sums, places):
    roots = np.empty(len(planned), np.int32)
    for r in range(len(planned)):
        plan = planned[r]
        roots[r] = same[pooled(rng, -1 - plan, starts, sums, places) if plan < 0 else plan]
    return roots


@kernel
def reached(offsets, child, roots):
    """Whether a node is a root or below one. Children stand before their parents."""
    marked = np.zeros(len(offsets) - 1, np.bool_)
    for root in roots:
        marked[root] = True
    for n in range(len(marked) - 1, -1, -1):
        if marked[n]:
            for i in range(offsets[n], offsets[n + 1]):
                marked[child[i]] = True
    return marked


@kernel
def tree_sizes(offsets, child, leaves):
    """By node, how many tokens its tree has."""
    size = np.ones(len(offsets) - 1, np.int64)
    for n in range(leaves, len(size)):
        for i in range(offsets[n], offsets[n + 1]):
            size[n] += size[child[i]]
    return size


@kernel
def written(offsets, child, level, roots, tree_offsets):
    """The trees of the roots in prefix order."""
    tokens = np.empty(tree_offsets[-1], np.int32)
    waiting = np.empty(4 * 256, np.int32)  # at most four children a node, and levels are numbered by a byte
    at = 0
    for root in roots:
        waiting[0] = root
        left = 1
        while left > 0:
            left -= 1
            node = waiting[left]
            if level[node] == 0:
                tokens[at] = node
            else:
                tokens[at] = -2 * (offsets[node + 1] - offsets[node]) - (level[node] & 1)
                for i in range(offsets[node + 1] - 1, offsets[node] - 1, -1):
                    waiting[left] = child[i]
                    left += 1
            at += 1
    return tokens
