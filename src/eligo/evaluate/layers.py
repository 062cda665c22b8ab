"""All nodes of all trees in layers, to be evaluated one after another without a branch.

    place      a byte of `value`, 0 or 1: of a conjunction at its number, behind them of the nodes; the last is always 0
    group g    nodes of one height, kind and number of children: a row of `groups`, its columns are named below. Node j
               has place FIRST + j, and its k-th child has place kid[KIDS + k * COUNT + j]
    root[n]    the place of rule n

Groups stand in ascending order of height, so that every child's value is known when it is read. Nodes of one group take
the same steps, so that no branch can be mispredicted; their first children lie side by side, then their second ones, so
that every step is one plain loop. Places are unsigned: a signed index costs a test for being negative.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64
from eligo.jit import inline, kernel

U32: TypeAlias = NDArray[np.uint32]

KIND, SIZE, COUNT, FIRST, KIDS = 0, 1, 2, 3, 4


def build_layers(code: I32, start: I32, parts: int, conjunctions: int) -> tuple[I64, U32, U32]:
    """Returns `groups`, `kid` and `root` for the units of programs.py."""
    token, height, size, kind = measure_nodes(code, start, conjunctions)
    order = np.lexsort((size, kind, height))
    key = np.stack((height[order], kind[order].astype(np.int32), size[order]))
    new = np.ones(len(order), np.bool_)
    new[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
    firsts = np.nonzero(new)[0]
    counts = np.diff(np.append(firsts, len(order)))
    sizes = key[2][firsts].astype(np.int64)
    first = conjunctions + firsts
    groups: I64 = np.stack((key[1][firsts], sizes, counts, first, _before(counts * sizes)), axis=1).astype(np.int64)
    within = np.arange(len(order)) - np.repeat(firsts, counts)
    place = np.zeros(len(code), np.uint32)
    place[token[order]] = conjunctions + np.arange(len(order))
    kid = np.empty(int((counts * sizes).sum()), np.uint32)
    first_kid, stride = np.empty(len(code), np.int32), np.empty(len(code), np.int32)
    first_kid[token[order]] = np.repeat(groups[:, KIDS], counts) + within
    stride[token[order]] = np.repeat(counts, counts)
    never = conjunctions + len(order)
    return groups, kid, wire_nodes(code, start, parts, conjunctions, place, first_kid, stride, kid, never)


def _before(sizes: NDArray[np.int64]) -> I64:
    return np.cumsum(sizes) - sizes


@kernel
def measure_nodes(code, start, conjunctions):
    """Returns for every node where it stands in the code, its height, its number of children, and its kind."""
    nodes = 0
    for token in code:
        nodes += token < 0
    place, height = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    size, kind = np.empty(nodes, np.int32), np.empty(nodes, np.uint8)
    levels, after = np.zeros(len(code), np.int32), np.zeros(len(code), np.int32)
    n = 0
    for u in range(len(start) - 1):
        for t in range(start[u + 1] - 1, start[u] - 1, -1):
            token = code[t]
            after[t] = t + 1
            if token >= conjunctions:
                levels[t] = levels[start[token - conjunctions]]
            if token >= 0:
                continue
            child, level = t + 1, 0
            for _ in range((-token) // 2):
                level = max(level, levels[child])
                child = after[child]
            levels[t], after[t] = level + 1, child
            place[n], height[n], size[n], kind[n] = t, level + 1, (-token) // 2, token & 1
            n += 1
    return place, height, size, kind


@kernel
def wire_nodes(code, start, parts, conjunctions, place, first_kid, stride, kid, never):
    """Fills `kid`. Returns the places of all rules; that of a rule without a tree is `never`."""
    after = np.zeros(len(code), np.int32)
    rules = len(start) - 1 - parts
    root = np.empty(rules, np.uint32)
    for u in range(len(start) - 1):
        for t in range(start[u + 1] - 1, start[u] - 1, -1):
            token = code[t]
            after[t] = t + 1
            if token >= conjunctions:
                place[t] = place[start[token - conjunctions]]
            elif token >= 0:
                place[t] = token
            else:
                child = t + 1
                for k in range((-token) // 2):
                    kid[first_kid[t] + k * stride[t]] = place[child]
                    child = after[child]
                after[t] = child
        if u >= parts:
            root[u - parts] = place[start[u]] if start[u + 1] > start[u] else never
    return root


@inline
def settle_layers(groups, kid, value):
    """Sets the values of all nodes from those of the conjunctions, reading up to four children at once."""
    for g in range(len(groups)):
        size, count = groups[g, SIZE], np.uint64(groups[g, COUNT])
        at, a = np.uint64(groups[g, FIRST]), np.uint64(groups[g, KIDS])
        b, c = a + count, a + count + count
        d = c + count
        if groups[g, KIND]:
            if size == 2:
                for j in range(count):
                    value[at + j] = value[kid[a + j]] | value[kid[b + j]]
            elif size == 3:
                for j in range(count):
                    value[at + j] = value[kid[a + j]] | value[kid[b + j]] | value[kid[c + j]]
            else:
                for j in range(count):
                    left, right = value[kid[a + j]] | value[kid[b + j]], value[kid[c + j]] | value[kid[d + j]]
                    value[at + j] = left | right
            for _ in range(4, size):
                d += count
                for j in range(count):
                    value[at + j] |= value[kid[d + j]]
        else:
            if size == 2:
                for j in range(count):
                    value[at + j] = value[kid[a + j]] & value[kid[b + j]]
            elif size == 3:
                for j in range(count):
                    value[at + j] = value[kid[a + j]] & value[kid[b + j]] & value[kid[c + j]]
            else:
                for j in range(count):
                    left, right = value[kid[a + j]] & value[kid[b + j]], value[kid[c + j]] & value[kid[d + j]]
                    value[at + j] = left & right
            if size > 5:
                for _ in range(5, size, 2):
                    d += count
                    b = d + count
                    for j in range(count):
                        value[at + j] &= value[kid[d + j]] & value[kid[b + j]]
                    d = b
            if size > 4 and size & 1:
                d += count
                for j in range(count):
                    value[at + j] &= value[kid[d + j]]
