"""Selective predicates carried into the trees beside them, so that a rule is noticed by these alone.

    tenant = 't7' and (a or b) and (c or d)      becomes

    tenant = 't7' and (tenant = 't7' and a or tenant = 't7' and b) and (tenant = 't7' and c or tenant = 't7' and d)

which says the same. But now every conjunction has a predicate that seldom holds, and an index that leads to each
conjunction by its least likely predicate asks about a … d only where the tenant is t7. (A-Tree and the monitor of
Lucene notice an AND by one of its children, too, and then look at the tree; here the tree is looked at as before.)

A predicate is carried only where it holds much less often than what stands there: conjunctions that many rules share
become different ones by it. Rules that were gated before come out as they went in.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import F64, Compiled, grown, unique
from eligo.jit import inline, kernel

LEAST = 64  # fewer rules are not worth the time
SELDOM = 4.0  # a gate holds so many times less often than a conjunction that it is carried into

_RANGE, _ABSENT = 1 / 3, 0.9  # how often a range holds, and a predicate that absence satisfies, if nothing is known


def gate(compiled: Compiled, least: int = LEAST, seldom: float = SELDOM) -> Compiled:
    """Returns the rules with gates in their trees, or `compiled` itself if they are fewer than `least` or nothing was
    carried. A predicate is carried into a conjunction if it holds `seldom` times less often than that.
    """
    if compiled.rules < least or not (compiled.tree < 0).any():
        return compiled
    tree, offsets, items = push_gates(
        compiled.tree,
        compiled.tree_offsets,
        compiled.conjunction_offsets,
        compiled.conjunction,
        guessed_chances(compiled),
        compiled.flags,
        seldom,
    )
    if len(offsets) == len(compiled.conjunction_offsets):
        return compiled
    changed = {"tree": tree, "conjunction_offsets": offsets, "conjunction": items}
    if compiled.parts:  # their tokens stand behind all conjunctions
        more = len(offsets) - len(compiled.conjunction_offsets)
        changed["part"] = np.where(compiled.part >= compiled.conjunctions, compiled.part + more, compiled.part).astype(
            np.int32
        )
    return unique(Compiled(**{**compiled.arrays(), **changed}))


def gated(compiled: Compiled) -> int:
    """Returns how many conjunctions have a predicate that was carried into them, not counting shared sub-trees."""
    if not (compiled.tree < 0).any():
        return 0
    parts = compiled.tree, compiled.tree_offsets, compiled.conjunction_offsets, compiled.conjunction
    return int(count_gated(*parts, compiled.predicates))


def guessed_chances(compiled: Compiled) -> F64:
    """Returns how often each predicate holds, guessed from the rules alone: all values of an attribute that rules name
    are taken to be equally frequent.
    """
    chances: F64 = guess_chances(
        compiled.attribute, compiled.flags, compiled.pattern, compiled.run_offsets, compiled.low_kind, compiled.low_key,
        compiled.low_key2, compiled.high_kind, compiled.high_key, compiled.high_key2,
    )  # fmt: skip
    return chances


@inline
def is_point(r, low_kind, low_key, low_key2, high_kind, high_key, high_key2):
    """Tests whether a run is one value: a string, a moment, or one float with the integer that equals it."""
    if low_kind[r] != high_kind[r]:
        return False
    if low_kind[r] == codes.NUMBER_CUT:
        return high_key2[r] == low_key2[r] + 1
    return high_key[r] == low_key[r] + 1


@kernel
def guess_chances(attribute, flags, pattern, run_offsets, low_kind, low_key, low_key2, high_kind, high_key, high_key2):
    attributes = 0
    for p in range(len(attribute)):
        attributes = max(attributes, attribute[p] + 1)
    values = np.zeros(attributes, np.int64)
    points = np.zeros(len(attribute), np.int64)  # of each predicate, if it is nothing else
    for p in range(len(attribute)):
        first, stop = run_offsets[p], run_offsets[p + 1]
        points[p] = stop - first
        for r in range(first, stop):
            if not is_point(r, low_kind, low_key, low_key2, high_kind, high_key, high_key2):
                points[p] = 0
        if points[p] == 1:
            values[attribute[p]] += 1
    chance = np.zeros(len(attribute))
    for p in range(len(attribute)):
        if flags[p] & (codes.ABSENT_HOLDS | codes.ALL_VALUES):
            chance[p] = _ABSENT
        elif points[p] and pattern[p] < 0:
            chance[p] = min(_RANGE, points[p] / max(1, values[attribute[p]]))
        else:
            chance[p] = _RANGE
    return chance


@kernel
def push_gates(tokens, offsets, conjunction_offsets, conjunction, chance, flags, seldom):
    """Returns the trees with gates, and the offsets and items of all conjunctions, new ones behind the others."""
    conjunctions = len(conjunction_offsets) - 1
    made = np.zeros(len(tokens), np.int32)  # the new conjunction in the place of a token, 0 for none
    new_offsets = np.zeros(conjunctions + 65, np.int64)
    for c in range(conjunctions + 1):
        new_offsets[c] = conjunction_offsets[c]
    items = np.zeros(len(conjunction) + 64, np.int32)
    for i in range(len(conjunction)):
        items[i] = conjunction[i]
    many = conjunctions
    end = np.zeros(64, np.int64)
    waiting = np.zeros(64, np.int64)
    left = np.zeros(64, np.int64)  # of each tree that is open, the children still to come
    gates = np.zeros(64, np.int64)  # and what is carried into it, -1 for nothing
    for rule in range(len(offsets) - 1):
        begin, stop = offsets[rule], offsets[rule + 1]
        if stop - begin < 3:
            continue
        size = stop - begin + 1
        end, waiting = grown(end, size), grown(waiting, size)
        left, gates = grown(left, size), grown(gates, size)
        top = 0
        for i in range(stop - 1, begin - 1, -1):
            end[i - begin] = i + 1
            if tokens[i] < 0:
                for _ in range(-tokens[i] >> 1):
                    top -= 1
                    end[i - begin] = end[waiting[top] - begin]
            waiting[top] = i
            top += 1
        depth = 0
        for i in range(begin, stop):
            gate = gates[depth - 1] if depth else np.int64(-1)
            token = tokens[i]
            if depth:
                left[depth - 1] -= 1
            if token < 0:
                if -token & 1 == 0:
                    child = i + 1
                    for _ in range(-token >> 1):
                        if 0 <= tokens[child] < conjunctions:
                            gate = better_gate(tokens[child], gate, conjunction_offsets, conjunction, chance, flags)
                        child = end[child - begin]
                left[depth], gates[depth] = -token >> 1, gate
                depth += 1
            elif token < conjunctions and gate >= 0:
                first, last = conjunction_offsets[token], conjunction_offsets[token + 1]
                best = 1.0
                for j in range(first, last):
                    best = min(best, chance[conjunction[j]] if conjunction[j] != gate else 0.0)
                if chance[gate] * seldom <= best:
                    new_offsets = grown(new_offsets, many + 2)
                    at = new_offsets[many]
                    items = grown(items, at + last - first + 1)
                    for j in range(first, last):
                        items[at + j - first] = conjunction[j]
                    items[at + last - first] = gate
                    new_offsets[many + 1] = at + last - first + 1
                    made[i] = many
                    many += 1
            while depth and left[depth - 1] == 0:
                depth -= 1
    for i in range(len(tokens)):
        if made[i] == 0:
            made[i] = tokens[i] if tokens[i] < conjunctions else tokens[i] + many - conjunctions  # a part
    return made, new_offsets[: many + 1], items[: new_offsets[many]]


@kernel
def count_gated(tokens, offsets, conjunction_offsets, conjunction, predicates):
    """Returns how many conjunctions have a predicate of a conjunction that stands beside a tree that they are in."""
    conjunctions = len(conjunction_offsets) - 1
    above = np.zeros(predicates, np.int32)  # ANDs around that have a conjunction with it among their children
    is_gated = np.zeros(conjunctions, np.uint8)
    left, begun = np.zeros(64, np.int64), np.zeros(64, np.int64)  # of each tree that is open, as in `push_gates`
    for rule in range(len(offsets) - 1):
        depth = 0
        for i in range(offsets[rule], offsets[rule + 1]):
            token = tokens[i]
            if depth:
                left[depth - 1] -= 1
            if token < 0:
                left, begun = grown(left, depth + 1), grown(begun, depth + 1)
                left[depth], begun[depth] = -token >> 1, -1
                # The conjunction of an AND is the first of its children.
                if -token & 1 == 0 and 0 <= tokens[i + 1] < conjunctions:
                    begun[depth] = tokens[i + 1]
                    for j in range(conjunction_offsets[tokens[i + 1]], conjunction_offsets[tokens[i + 1] + 1]):
                        above[conjunction[j]] += 1
                depth += 1
            elif token < conjunctions:
                own = depth > 0 and begun[depth - 1] == token
                for j in range(conjunction_offsets[token], conjunction_offsets[token + 1]):
                    is_gated[token] |= above[conjunction[j]] > own
            while depth and left[depth - 1] == 0:
                depth -= 1
                if begun[depth] >= 0:
                    for j in range(conjunction_offsets[begun[depth]], conjunction_offsets[begun[depth] + 1]):
                        above[conjunction[j]] -= 1
    total = 0
    for c in range(conjunctions):
        total += is_gated[c]
    return total


@inline
def better_gate(c, gate, offsets, conjunction, chance, flags):
    """Returns what holds least often: `gate` (-1 for none), or a predicate of conjunction `c` that needs a value."""
    for i in range(offsets[c], offsets[c + 1]):
        p = np.int64(conjunction[i])
        if flags[p] & (codes.ABSENT_HOLDS | codes.ALL_VALUES) == 0 and (gate < 0 or chance[p] < chance[gate]):
            gate = p
    return gate
