"""How the rules of a segment lie for a batch.

    row r         a conjunction; items[row_offsets[r] … [r+1]] are its predicates one after another, the access
                  predicate first, then the short ones by how seldom they hold, then the long ones:
                      slot of the first space, slot behind the last     one run of spaces, and nothing else to ask
                      ~n, predicate, attribute, n slots                 the XOR of their planes (block.py) is what it
                                                                        says; 0 slots where more is to be asked
    cluster       rows with one access predicate, next to each other:
                      equal_offsets[slot] … [slot + 1]                  it is one space
                      range_offsets[k] … [k + 1]                        it is another; those of attribute a are
                                                                        range_start[a] … [a + 1]
                      range_offsets[-2] … range_offsets[-1]             there is none
    attribute a   the rows whose access predicate is on it ask about asked[asked_offsets[a] … [a + 1]], which have
                  asked_slots[a] slots together
    gate          a row, or a part (compiled.py) numbered behind the rows: opens units opened[opens[g] … opens[g+1]].
                  A unit is a rule n, or a part ~n, and `program` what must hold beside the gate, -1 for nothing
    program       a tree in prefix order: a row, a part (+ rows), or -2k for AND and -2k-1 for OR, then the length of
                  the tree, then its k trees

A rule is noticed by its gates alone: of an AND by those of the child that opens least often, of an OR by those of all
children. The rows behind the gates are asked when a gate has opened and never otherwise; they are last, in the order in
which the programs of the gates come to them, so that the processor reads them one after another. A rule with
several gates has a part of its own, which they open and which opens the rule; no program asks about it.

Invariant: if a unit holds, then one of its gates does, and the program beside it.
"""

from __future__ import annotations

import numpy as np

from eligo.batch.block import slot_starts
from eligo.compile import codes
from eligo.compile.compiled import F64, I32, I64, Arrays, Compiled, grown
from eligo.compile.conjunctions import Conjunctions
from eligo.evaluate.sharing import share
from eligo.index.access import access_predicates, leading
from eligo.index.selectivity import likelihood, unlikeliness
from eligo.jit import handle, inline, kernel

LAYOUT_ARRAYS = (
    "starts", "row_offsets", "items", "equal_offsets", "range_start", "range_offsets", "asked_offsets", "asked",
    "asked_slots", "opens", "opened", "program", "code", "part_offsets", "sizes",
)  # fmt: skip

# In `sizes`; DEPTH is that of the deepest program, with the parts that it asks; STRAIGHT: rows open rules, and no more.
RULES, PARTS, DEPTH, ROWS, STRAIGHT = 0, 1, 2, 3, 4

# The layout as one argument of kernels, with the spaces and predicates that it stands on.
make_layout = handle("LayoutHandle", ("spaces", "predicates", *LAYOUT_ARRAYS))

ODD = codes.ABSENT_HOLDS | codes.ALL_VALUES | codes.RESIDUAL


def build_layout(
    compiled: Compiled, conjunctions: Conjunctions, rank: I64 | None = None, chance: F64 | None = None
) -> Arrays:
    """Returns the arrays drawn above. `rank` and `chance`: how seldom, and how often, predicates hold, where known."""
    rank = unlikeliness(conjunctions) if rank is None else rank
    chance = likelihood(conjunctions) if chance is None else chance
    if (compiled.tree < 0).any() and not compiled.parts:
        compiled = share(compiled)
    access = access_predicates(conjunctions.offsets, conjunctions.items, rank, leading(conjunctions))
    costs = np.ones(len(access))
    costs[access >= 0] = chance[access[access >= 0]]
    tokens = np.concatenate((compiled.part, compiled.tree))
    unit_offsets = np.concatenate((compiled.part_offsets, compiled.tree_offsets[1:] + len(compiled.part)))
    gate, unit, program, code, depth = find_gates(tokens, unit_offsets, compiled.parts, costs)
    gate, unit, program, parts = _meeting(gate, unit, program, len(access), compiled.parts)
    p, starts = conjunctions.predicates, slot_starts(conjunctions)
    every = write_items(p.attribute(), p.flags, p.run_offsets, p.run_low, p.run_high, starts)
    order, clusters = _clusters(conjunctions, access, gate, every[0])
    whole, whole_starts = whole_programs(compiled.part, compiled.part_offsets)
    code, part_offsets = np.concatenate((code, whole)), whole_starts + len(code)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    is_row = gate < len(place)
    gate = np.where(is_row, place[np.where(is_row, gate, 0)] if len(place) else gate, gate)
    by_gate = np.argsort(gate, kind="stable")
    behind = int(clusters["range_offsets"][-1])
    uses = find_uses(code, np.concatenate((program[by_gate], part_offsets[:-1])), len(order))
    order[behind:] = order[behind:][np.argsort(uses[order[behind:]], kind="stable")]
    place[order[behind:]] = np.arange(behind, len(order), dtype=np.int32)
    number_rows(code, place)
    opens = np.searchsorted(gate[by_gate], np.arange(len(place) + parts + 1)).astype(np.int64)
    row_offsets, items = write_rows(conjunctions.offsets, conjunctions.items, order, access, rank, *every)
    asked = list_asked(conjunctions.offsets, conjunctions.items, order, p.attribute(), starts, *clusters.values())
    straight = parts == 0 and bool((program < 0).all())
    return {
        "starts": starts,
        "row_offsets": row_offsets,
        "items": items,
        **clusters,
        **dict(zip(("asked_offsets", "asked", "asked_slots"), asked, strict=True)),
        "opens": opens,
        "opened": unit[by_gate],
        "program": program[by_gate],
        "code": code,
        "part_offsets": part_offsets,
        "sizes": np.array([compiled.rules, parts, depth, len(order), straight], np.int64),
    }


def _meeting(gate: I32, unit: I32, program: I64, conjunctions: int, parts: int) -> tuple[I32, I32, I64, int]:
    """Makes the gates of each rule that has several open a part, which opens the rule, so that it is noted once.
    Returns all gates, what they open, the programs beside them, and how many parts there are then.
    """
    rules, gates = np.unique(unit[unit >= 0], return_counts=True)
    several = rules[gates > 1]
    found = np.searchsorted(several, unit)
    meets = (unit >= 0) & (found < len(several))
    meets[meets] = several[found[meets]] == unit[meets]
    new = parts + np.arange(len(several))
    unit = np.where(meets, ~(parts + found), unit)
    return (
        np.concatenate((gate, conjunctions + new)).astype(np.int32),
        np.concatenate((unit, several)).astype(np.int32),
        np.concatenate((program, np.full(len(several), -1, np.int64))),
        parts + len(several),
    )


def _clusters(conjunctions: Conjunctions, access: I32, gates: I32, every: I64) -> tuple[I64, Arrays]:
    """Returns the conjunctions in the order of their clusters, those that are no gate last, and where the clusters are.

    In a cluster those of one size, and of about one length, stand together, so that the processor predicts branches
    better. `every`: where the items of each predicate end.
    """
    p, starts = conjunctions.predicates, slot_starts(conjunctions)
    attribute = p.attribute()
    is_gate = np.zeros(len(access), np.bool_)
    is_gate[gates[gates < len(access)]] = True
    slots = int(starts[-1])
    has = (access >= 0) & is_gate
    one_space = np.zeros(len(access), np.bool_)
    one_space[has] = (p.low[access[has]] == p.high[access[has]]) & (p.flags[access[has]] & codes.RESIDUAL == 0)
    ranges = np.unique(access[has & ~one_space])  # sorted, therefore by attribute
    cluster = np.full(len(access), slots + len(ranges), np.int64)
    cluster[one_space] = starts[attribute[access[one_space]]] + p.low[access[one_space]]
    cluster[has & ~one_space] = slots + np.searchsorted(ranges, access[has & ~one_space])
    cluster[~is_gate] = slots + len(ranges) + 1
    lengths = np.diff(np.concatenate(([0], np.cumsum(np.diff(every)[conjunctions.items])))[conjunctions.offsets])
    alike = np.minimum(np.diff(conjunctions.offsets), 255) << 8 | np.minimum(lengths, 255)
    order = np.argsort(cluster << 16 | alike, kind="stable")
    ends = np.searchsorted(cluster[order], np.arange(slots + len(ranges) + 2)).astype(np.int32)
    return order, {
        "equal_offsets": ends[: slots + 1].copy(),
        "range_start": np.searchsorted(attribute[ranges], np.arange(len(starts))).astype(np.int32),
        "range_offsets": ends[slots:].copy(),
    }


@kernel
def write_items(attribute, flags, run_offsets, run_low, run_high, starts):
    """Returns where the items of each predicate begin, and the items."""
    offsets = np.zeros(len(attribute) + 1, np.int64)
    items = np.zeros(64, np.int32)
    end = 0
    for p in range(len(attribute)):
        a = attribute[p]
        first, stop = run_offsets[p], run_offsets[p + 1]
        items = grown(items, end + 2 * (stop - first) + 8)
        if flags[p] & ODD == 0 and stop == first + 1:
            items[end] = starts[a] + run_low[first]
            items[end + 1] = starts[a] + run_high[first] + 1
            end += 2
        else:
            begin = end
            items[begin + 1], items[begin + 2] = p, a
            end += 3
            if flags[p] & (codes.ALL_VALUES | codes.RESIDUAL) == 0:
                for r in range(first, stop):
                    items[end], items[end + 1] = starts[a] + run_low[r], starts[a] + run_high[r] + 1
                    end += 2
                if flags[p] & codes.ABSENT_HOLDS:  # all events, but those that have the attribute and another value
                    items[end], items[end + 1] = starts[a + 1] - 1, starts[-1]
                    end += 2
            items[begin] = ~(end - begin - 3)
        offsets[p + 1] = end
    return offsets, items[:end].copy()


@inline
def goes_before(a, b, access, rank, offsets):
    """Tests whether predicate `a` is asked before `b`: the access predicate first, long ones last, and else by rank."""
    if a == access or b == access:
        return a == access
    if (offsets[a + 1] - offsets[a] == 2) != (offsets[b + 1] - offsets[b] == 2):
        return offsets[a + 1] - offsets[a] == 2
    return rank[a] < rank[b]


@kernel
def write_rows(given_offsets, given, order, access, rank, every_offsets, every):
    """Returns the offsets and the items of the rows."""
    offsets = np.zeros(len(order) + 1, np.int64)
    for row in range(len(order)):
        offsets[row + 1] = offsets[row]
        for i in range(given_offsets[order[row]], given_offsets[order[row] + 1]):
            offsets[row + 1] += every_offsets[given[i] + 1] - every_offsets[given[i]]
    items = np.zeros(offsets[-1], np.int32)
    sorted_ones = np.zeros(16, np.int32)
    end = 0
    for row in range(len(order)):
        c = order[row]
        count = given_offsets[c + 1] - given_offsets[c]
        sorted_ones = grown(sorted_ones, count)
        for i in range(count):
            predicate = given[given_offsets[c] + i]
            j = i
            while j > 0 and goes_before(predicate, sorted_ones[j - 1], access[c], rank, every_offsets):
                sorted_ones[j] = sorted_ones[j - 1]
                j -= 1
            sorted_ones[j] = predicate
        for i in range(count):
            for j in range(every_offsets[sorted_ones[i]], every_offsets[sorted_ones[i] + 1]):
                items[end] = every[j]
                end += 1
    return offsets, items


@kernel
def list_asked(given_offsets, given, order, attribute, starts, equal_offsets, range_start, range_offsets):
    """Returns, for the rows with an access predicate on each attribute, where the attributes that they ask about begin,
    these attributes, and how many slots they have.
    """
    attributes = len(starts) - 1
    offsets = np.zeros(attributes + 1, np.int64)
    slots = np.zeros(attributes, np.int64)
    asked = np.zeros(64, np.int32)
    seen = np.full(attributes, -1, np.int32)
    n = 0
    for a in range(attributes):
        for some in range(2):
            if some == 0:
                first, stop = equal_offsets[starts[a]], equal_offsets[starts[a + 1]]
            else:
                first, stop = range_offsets[range_start[a]], range_offsets[range_start[a + 1]]
            for row in range(first, stop):
                for i in range(given_offsets[order[row]], given_offsets[order[row] + 1]):
                    other = attribute[given[i]]
                    if seen[other] != a:
                        seen[other] = a
                        asked = grown(asked, n + 1)
                        asked[n] = other
                        slots[a] += starts[other + 1] - starts[other]
                        n += 1
        offsets[a + 1] = n
    return offsets, asked[:n].copy(), slots


@kernel
def find_gates(tokens, offsets, parts, costs):
    """Returns the gates (conjunctions, or parts behind them), the unit that each opens, the program beside it, all the
    programs, and how deep they are. costs[c]: how often a conjunction is looked at.
    """
    conjunctions = len(costs)
    units = len(offsets) - 1
    end = np.zeros(len(tokens), np.int64)  # of the tree that begins at a token
    size = np.zeros(len(tokens), np.int64)  # of its program
    cost = np.zeros(len(tokens))
    height = np.zeros(len(tokens), np.int64)
    unit_cost = np.zeros(parts)
    part_height = np.zeros(parts, np.int64)
    deepest = 1
    waiting = np.zeros(64, np.int64)
    contexts = np.zeros(64, np.int64)
    gate = np.zeros(units + 16, np.int32)
    unit = np.zeros(units + 16, np.int32)
    program = np.zeros(units + 16, np.int64)
    code = np.zeros(64, np.int32)
    count = 0
    used = 0
    for u in range(units):
        begin, stop = offsets[u], offsets[u + 1]
        if begin == stop:
            continue
        waiting = grown(waiting, stop - begin + 1)
        contexts = grown(contexts, stop - begin + 1)
        top = 0
        for i in range(stop - 1, begin - 1, -1):
            token = tokens[i]
            if token >= 0:
                end[i], size[i] = i + 1, 1
                if token < conjunctions:
                    cost[i], height[i] = costs[token], 0
                else:
                    cost[i], height[i] = unit_cost[token - conjunctions], part_height[token - conjunctions] + 1
            else:
                is_or = -token & 1
                children = -token >> 1
                size[i], height[i], end[i] = 2, 0, i + 1
                cost[i] = 0.0 if is_or or children == 0 else np.inf
                for _ in range(children):
                    top -= 1
                    child = waiting[top]
                    size[i] += size[child]
                    end[i] = end[child]
                    height[i] = max(height[i], height[child] + 1)
                    cost[i] = cost[i] + cost[child] if is_or else min(cost[i], cost[child])
            waiting[top] = i
            top += 1
        if u < parts:
            unit_cost[u] = cost[begin]
            part_height[u] = height[begin]
        deepest = max(deepest, 2 * height[begin] + 4)  # a program repeats what stands around it, a level each
        top = 1
        waiting[0] = begin
        contexts[0] = -1
        while top:
            top -= 1
            i, context = waiting[top], contexts[top]
            token = tokens[i]
            if token >= 0:
                if count == len(gate):
                    gate, unit, program = grown(gate, count + 1), grown(unit, count + 1), grown(program, count + 1)
                gate[count], program[count] = token, context
                unit[count] = u - parts if u >= parts else ~u
                count += 1
                continue
            children = -token >> 1
            if -token & 1:
                child = i + 1
                for _ in range(children):
                    waiting[top], contexts[top] = child, context
                    top += 1
                    child = end[child]
                continue
            best = child = i + 1
            for _ in range(children):
                if cost[child] < cost[best]:
                    best = child
                child = end[child]
            # Beside the gates of `best`: what was to hold beside this AND, and its other children.
            before = 0
            if context >= 0:
                before = code[context + 1] if code[context] < 0 else 1
            length = before + size[i] - 2 - size[best]
            trees = children - 1 + (context >= 0)
            if trees:
                code = grown(code, used + length + 2)
                start = used
                if trees > 1:
                    code[used], code[used + 1] = -2 * trees, length + 2
                    used += 2
                for j in range(before):
                    code[used] = code[context + j]
                    used += 1
                child = i + 1
                for _ in range(children):
                    if child != best:
                        used = write_program(tokens, size, child, end[child], code, used)
                    child = end[child]
                context = start
            waiting[top], contexts[top] = best, context
            top += 1
    return gate[:count], unit[:count], program[:count], code[:used], deepest


@inline
def write_program(tokens, size, begin, stop, code, used):
    """Writes the tree of tokens[begin:stop] to `code` from `used` on. Returns where it ends."""
    for i in range(begin, stop):
        code[used] = tokens[i]
        used += 1
        if tokens[i] < 0:
            code[used] = size[i]
            used += 1
    return used


@kernel
def find_uses(code, programs, conjunctions):
    """Returns for each conjunction a number that says when the programs, one after another, first ask about it."""
    uses = np.full(conjunctions, np.iinfo(np.int64).max, np.int64)
    now = 0
    for i in programs:
        stop = i
        if 0 <= i < len(code):
            stop += code[i + 1] if code[i] < 0 else 1
        while i < stop:
            token = code[i]
            if 0 <= token < conjunctions:
                uses[token] = min(uses[token], now)
            now += 1
            i += 2 if token < 0 else 1
    return uses


@kernel
def number_rows(code, place):
    """Replaces the number of each conjunction by that of its row, in all programs."""
    i = 0
    while i < len(code):
        if code[i] < 0:
            i += 1
        elif code[i] < len(place):
            code[i] = place[code[i]]
        i += 1


@kernel
def whole_programs(tokens, offsets):
    """Returns trees as programs, and where each begins and ends."""
    starts = np.zeros(len(offsets), np.int64)
    code = np.zeros(2 * len(tokens), np.int32)
    size = np.zeros(len(tokens), np.int64)
    waiting = np.zeros(len(tokens) + 1, np.int64)
    used = 0
    for u in range(len(offsets) - 1):
        top = 0
        for i in range(offsets[u + 1] - 1, offsets[u] - 1, -1):
            size[i] = 1
            if tokens[i] < 0:
                size[i] = 2
                for _ in range(-tokens[i] >> 1):
                    top -= 1
                    size[i] += size[waiting[top]]
            waiting[top] = i
            top += 1
        used = write_program(tokens, size, offsets[u], offsets[u + 1], code, used)
        starts[u + 1] = used
    return code[:used], starts
