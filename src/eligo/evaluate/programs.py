"""Trees with parts as programs: what to ask in which order, and whose truth starts which of them.

    unit u      a part (0 … parts-1) or a rule (parts …): tokens code[start[u] … start[u+1]] in prefix order, as in
                `Compiled`; a token behind the conjunctions names a part
    id x        a conjunction, or a part + the number of conjunctions
    up[up_offsets[x] … [x+1]]     units that x starts: unit << 1 | COMPLETES
    starting                      a bit for each conjunction that starts something

A unit can only be true if one of its starters is. The starters of an AND are those of one child, the one that holds
least often; of an OR those of all children; a conjunction or a part starts itself. A part that starts nothing is not
noticed when it becomes true, so nothing starts it either: it is asked when a unit that names it is.

Children of an AND are asked in the order in which they are likely to fail, of an OR likely to hold. In a rule, the
child that starts it comes last: it holds already.
"""

from __future__ import annotations

import numpy as np

from eligo.jit import inline, kernel

COMPLETES = 1  # the starter alone makes the unit true


@kernel
def chances(offsets, items, likelihood):
    """Returns how often each conjunction holds if its predicates are independent."""
    chance = np.ones(len(offsets) - 1, np.float64)
    for c in range(len(chance)):
        for i in range(offsets[c], offsets[c + 1]):
            chance[c] *= max(likelihood[items[i]], 1e-3)
    return chance


@inline
def sort_by(keys, ids, count):
    """Sorts ids[:count] by their keys, ascending."""
    if count > 32:
        order = np.argsort(keys[ids[:count]])
        sorted_ids = ids[:count][order]
        for i in range(count):
            ids[i] = sorted_ids[i]
        return
    for i in range(1, count):
        value = ids[i]
        j = i - 1
        while j >= 0 and keys[ids[j]] > keys[value]:
            ids[j + 1] = ids[j]
            j -= 1
        ids[j + 1] = value


@kernel
def write_programs(tree, tree_offsets, part, part_offsets, chance):
    """Returns parts and rules as units, with their children in the order of asking: `start` and `code`."""
    parts, rules, conjunctions = len(part_offsets) - 1, len(tree_offsets) - 1, len(chance)
    longest = 1
    for offsets in (tree_offsets, part_offsets):
        for u in range(len(offsets) - 1):
            longest = max(longest, offsets[u + 1] - offsets[u])
    start, code = np.zeros(parts + rules + 1, np.int32), np.empty(len(tree) + len(part), np.int32)
    holds, cost = np.empty(longest, np.float64), np.empty(longest, np.float64)  # of the subtree at each token
    after, chosen = np.empty(longest, np.int64), np.empty(longest, np.int64)
    part_holds = np.empty(parts, np.float64)
    stack, below = np.empty(longest + 1, np.int64), np.empty(longest, np.int64)
    written = 0
    for u in range(parts + rules):
        tokens = part if u < parts else tree
        first = part_offsets[u] if u < parts else tree_offsets[u - parts]
        size = (part_offsets[u + 1] if u < parts else tree_offsets[u - parts + 1]) - first
        for t in range(size - 1, -1, -1):
            token = tokens[first + t]
            if token >= 0:
                holds[t] = chance[token] if token < conjunctions else part_holds[token - conjunctions]
                cost[t], after[t], chosen[t] = holds[t], t + 1, -1
                continue
            child, best = np.int64(t + 1), np.int64(t + 1)
            together, fails, total = 1.0, 1.0, 0.0
            for _ in range((-token) // 2):
                together *= holds[child]
                fails *= 1.0 - holds[child]
                total += cost[child]
                if cost[child] < cost[best]:
                    best = child
                child = after[child]
            after[t], chosen[t] = child, best
            holds[t], cost[t] = (1.0 - fails, total) if token & 1 else (together, cost[best])
        if u < parts:
            part_holds[u] = holds[0]
        # Written from the top; a negative entry of the stack is a token on the way to a starter.
        depth = 0
        if size:
            stack[0], depth = -1, 1
        while depth > 0:
            depth -= 1
            starting = stack[depth] < 0
            t = -stack[depth] - 1 if starting else stack[depth]
            token = tokens[first + t]
            code[written] = token
            written += 1
            if token >= 0:
                continue
            count, child = (-token) // 2, np.int64(t + 1)
            for k in range(count):
                below[k] = child
                child = after[child]
            sort_by(holds, below, count)
            # The stack turns the order round.
            for k in range(count):
                if token & 1:
                    stack[depth + k] = -below[k] - 1 if starting else below[k]
                else:
                    stack[depth + count - 1 - k] = below[k]
            if starting and token & 1 == 0:
                place = depth
                while stack[place] != chosen[t]:
                    place += 1
                if u < parts:
                    for k in range(place, depth + count - 1):
                        stack[k] = stack[k + 1]
                    stack[depth + count - 1] = -chosen[t] - 1
                else:
                    for k in range(place, depth, -1):
                        stack[k] = stack[k - 1]
                    stack[depth] = -chosen[t] - 1
            depth += count
        start[u + 1] = written
    return start, code


@kernel
def find_starters(code, start, parts, conjunctions):
    """Returns `up_offsets` and `up`. ANDs of these programs have their starting child last in rules, first in parts."""
    units = len(start) - 1
    longest = 1
    for u in range(units):
        longest = max(longest, start[u + 1] - start[u])
    after, stack = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    noticed = np.zeros(parts, np.bool_)
    up_offsets = np.zeros(conjunctions + parts + 1, np.int32)
    up = np.empty(0, np.int32)
    place = up_offsets
    for writing in range(2):
        for u in range(units - 1, -1, -1):  # rules first, and parts before those that they name
            if u < parts and not noticed[u]:
                continue
            first, size = start[u], start[u + 1] - start[u]
            for t in range(size - 1, -1, -1):
                child = np.int64(t + 1)
                if code[first + t] < 0:
                    for _ in range((-code[first + t]) // 2):
                        child = after[child]
                after[t] = child
            depth = 0
            if size:
                stack[0], depth = -1, 1  # a negative entry: nothing but ORs above it
            while depth > 0:
                depth -= 1
                alone = stack[depth] < 0
                t = -stack[depth] - 1 if alone else stack[depth]
                token = code[first + t]
                if token >= 0:
                    if writing:
                        up[place[token]] = u << 1 | (COMPLETES if alone else 0)
                        place[token] += 1
                    else:
                        up_offsets[token + 1] += 1
                        if token >= conjunctions:
                            noticed[token - conjunctions] = True
                    continue
                child = np.int64(t + 1)
                for k in range((-token) // 2):
                    if token & 1:
                        stack[depth] = -child - 1 if alone else child
                        depth += 1
                    elif k == (0 if u < parts else (-token) // 2 - 1):
                        stack[depth] = child
                        depth += 1
                    child = after[child]
        if writing == 0:
            for x in range(conjunctions + parts):
                up_offsets[x + 1] += up_offsets[x]
            up = np.empty(up_offsets[-1], np.int32)
            place = up_offsets[:-1].copy()
    return up_offsets, up


@kernel
def measure_units(code, start, parts, conjunctions):
    """Returns how many nodes and parts can be under way at once when a unit is asked, and how many leaves all rules
    have if their parts are written out.
    """
    facts = np.array([1, 0], np.int64)
    height, after = np.zeros(len(code) + 1, np.int32), np.zeros(len(code) + 1, np.int32)
    leaves = np.zeros(parts, np.int64)
    for u in range(len(start) - 1):
        own = 0
        for t in range(start[u + 1] - 1, start[u] - 1, -1):
            token = code[t]
            after[t] = t + 1
            if token >= conjunctions:
                height[t] = height[start[token - conjunctions]] + 1
                own += leaves[token - conjunctions]
            elif token >= 0:
                own += 1
            else:
                child = t + 1
                for _ in range((-token) // 2):
                    height[t] = max(height[t], height[child])
                    child = after[child]
                height[t] += 1
                after[t] = child
            facts[0] = max(facts[0], height[t])
        if u < parts:
            leaves[u] = own
        else:
            facts[1] += own
    return facts


@kernel
def mark_starters(up_offsets, starting):
    for c in range(min(len(up_offsets) - 1, 64 * len(starting))):
        if up_offsets[c + 1] > up_offsets[c]:
            starting[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
