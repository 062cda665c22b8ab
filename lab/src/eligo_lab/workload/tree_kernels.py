"""Growing random trees, filling their leaves, and evaluating all of them on all events at once.

    tree tokens   prefix order as in compile/compiled.py: c ≥ 0 a conjunction, -2k an AND, -2k-1 an OR of k trees
    truth         truth[v, w]   bit e of word w: event 64w + e has value v (values of all attributes in one numbering)
                  known[a, w]   bit e of word w: event 64w + e has some value of attribute a

A predicate is an OR of rows of `truth`, a conjunction an AND of predicates; a prefix-ordered tree is evaluated from its
end, where operands stand before their operator, on a stack of rows. One pass of eight words settles 512 events.

No kernel here recurses: what is still to be grown or walked lies on a stack.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import grown
from eligo.jit import inline, kernel

BLOCK = 8  # words that one pass evaluates; rows of `truth` are a multiple of it


@inline
def drawn(cumulative, first, last, point):
    """The first place in [first, last) whose cumulative share is above `point`."""
    low, high = first, last - 1
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] > point:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def grow_trees(rng, rules, top, minimum, maximum, cumulative):
    """Trees as §5.1 grows them: tokens and offsets. cumulative[k] is the probability of at most k children.

    Roots have the depth `top`, 0 for whole rules; nodes of even depth are ANDs, of odd depth ORs. A node above the
    minimum depth has a child, one at the maximum depth none; conjunctions are numbered as they come.
    """
    most = len(cumulative) - 1
    waiting = np.empty(most * maximum + 2, np.int64)  # depths of the nodes still to be grown
    offsets = np.zeros(rules + 1, np.int64)
    tokens = np.empty(16 + 4 * rules, np.int32)
    used = 0
    conjunctions = 0
    for r in range(rules):
        waiting[0] = top
        left = 1
        while left > 0:
            left -= 1
            depth = waiting[left]
            children = 0
            if depth < maximum:
                least = cumulative[0] if depth < minimum else 0.0
                children = drawn(cumulative, 0, most + 1, least + (1.0 - least) * rng.random())
            tokens = grown(tokens, used + 1)
            if children == 0:
                tokens[used] = conjunctions
                conjunctions += 1
            else:
                tokens[used] = -2 * children - (depth & 1)
                for _ in range(children):
                    waiting[left] = depth + 1
                    left += 1
            used += 1
        offsets[r + 1] = used
    return tokens[:used].copy(), offsets


@kernel
def leaves_that_must_fail(rng, tokens, offsets):
    """For every conjunction, whether it has to be false so that no tree can be true.

    An AND fails by one of its children, drawn here; an OR only by all. So as few leaves as possible are touched.
    """
    must = np.zeros(len(tokens), np.bool_)
    flags = np.zeros(16, np.bool_)  # of the nodes still to come; the nearest is on top
    conjunctions = 0
    for r in range(len(offsets) - 1):
        flags[0] = True
        left = 1
        for i in range(offsets[r], offsets[r + 1]):
            left -= 1
            failing = flags[left]
            token = tokens[i]
            if token >= 0:
                must[conjunctions] = failing
                conjunctions += 1
                continue
            children = (-token) >> 1
            while left + children > len(flags):
                flags = np.concatenate((flags, flags))
            is_or = ((-token) & 1) == 1
            chosen = int(rng.random() * children)
            for k in range(children):
                flags[left] = failing and (is_or or k == chosen)
                left += 1
    return must[:conjunctions].copy()


@kernel
def draw_attributes(rng, conjunction_offsets, targeted, lengths, shunned):
    """Attributes, list lengths and exclusions of all predicates; none twice in a conjunction (§5.1)."""
    n = conjunction_offsets[-1]
    attribute = np.empty(n, np.int32)
    count = np.empty(n, np.int64)
    excludes = np.empty(n, np.bool_)
    attributes = len(targeted)
    longest = lengths.shape[1] - 1
    for c in range(len(conjunction_offsets) - 1):
        first = conjunction_offsets[c]
        for p in range(first, conjunction_offsets[c + 1]):
            while True:
                a = drawn(targeted, 0, attributes, rng.random())
                fresh = True
                for q in range(first, p):
                    if attribute[q] == a:
                        fresh = False
                if fresh:
                    break
            attribute[p] = a
            point = rng.random()
            length = 1
            while length < longest and lengths[a, length] <= point:
                length += 1
            count[p] = length
            excludes[p] = rng.random() < shunned[a]
    return attribute, count, excludes


@kernel
def draw_targets(rng, attribute, operand_offsets, value_offsets, cumulative):
    """Distinct values for each predicate, by p_attribute(target), ascending; numbered over all attributes."""
    operand = np.empty(operand_offsets[-1], np.int64)
    for p in range(len(attribute)):
        low, high = value_offsets[attribute[p]], value_offsets[attribute[p] + 1]
        first = operand_offsets[p]
        for i in range(first, operand_offsets[p + 1]):
            while True:
                value = drawn(cumulative, low, high, rng.random())
                at = i
                while at > first and operand[at - 1] > value:
                    at -= 1
                if at == first or operand[at - 1] != value:
                    break
            for j in range(i, at, -1):
                operand[j] = operand[j - 1]
            operand[at] = value
    return operand


@kernel
def truth_of_events(value, value_offsets, words):
    """The rows `truth` and `known` of events; value[a, e] is a value's number, -1 where it is not known."""
    attributes, events = value.shape
    truth = np.zeros((value_offsets[-1], words), np.uint64)
    known = np.zeros((attributes, words), np.uint64)
    for a in range(attributes):
        for e in range(events):
            v = value[a, e]
            if v >= 0:
                bit = np.uint64(1) << np.uint64(e & 63)
                truth[v, e >> 6] |= bit
                known[a, e >> 6] |= bit
    return truth, known


@inline
def ones(word):
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@kernel
def count_matches(attribute, excludes, operand_offsets, operand, conjunction_offsets, tree_offsets, tree, truth, known):
    """For every rule, how many of the events make it true."""
    rules = len(tree_offsets) - 1
    words = truth.shape[1]
    counts = np.zeros(rules, np.int64)
    longest = 1
    for r in range(rules):
        longest = max(longest, tree_offsets[r + 1] - tree_offsets[r])
    stack = np.zeros((longest + 1, BLOCK), np.uint64)
    held = np.zeros(BLOCK, np.uint64)
    every = ~np.uint64(0)
    for r in range(rules):
        for w in range(0, words, BLOCK):
            top = -1
            for i in range(tree_offsets[r + 1] - 1, tree_offsets[r] - 1, -1):
                token = tree[i]
                if token >= 0:
                    top += 1
                    for b in range(BLOCK):
                        stack[top, b] = every
                    for p in range(conjunction_offsets[token], conjunction_offsets[token + 1]):
                        for b in range(BLOCK):
                            held[b] = np.uint64(0)
                        for o in range(operand_offsets[p], operand_offsets[p + 1]):
                            v = operand[o]
                            for b in range(BLOCK):
                                held[b] |= truth[v, w + b]
                        if excludes[p]:
                            a = attribute[p]
                            for b in range(BLOCK):
                                stack[top, b] &= known[a, w + b] & ~held[b]
                        else:
                            for b in range(BLOCK):
                                stack[top, b] &= held[b]
                    continue
                children = (-token) >> 1
                base = top - children + 1
                is_or = ((-token) & 1) == 1
                for k in range(base + 1, top + 1):
                    if is_or:
                        for b in range(BLOCK):
                            stack[base, b] |= stack[k, b]
                    else:
                        for b in range(BLOCK):
                            stack[base, b] &= stack[k, b]
                top = base
            total = np.uint64(0)
            for b in range(BLOCK):
                total += ones(stack[0, b])
            counts[r] += np.int64(total)
    return counts


@kernel
def with_paths(tokens, offsets, chosen, path_tokens, path_offsets):
    """Each rule ANDed with path trees: chosen[r, h] is the number of one, -1 for none.

    The root is an AND or a single conjunction; the paths become its last children.
    """
    rules, hops = chosen.shape
    size = len(tokens)
    for r in range(rules):
        for h in range(hops):
            if chosen[r, h] >= 0:
                size += path_offsets[chosen[r, h] + 1] - path_offsets[chosen[r, h]]
    joined = np.empty(size + rules, np.int32)
    joined_offsets = np.zeros(rules + 1, np.int64)
    used = 0
    for r in range(rules):
        more = 0
        for h in range(hops):
            if chosen[r, h] >= 0:
                more += 1
        first = offsets[r]
        if more > 0 and tokens[first] >= 0:
            joined[used] = -2 * (1 + more)
            joined[used + 1] = tokens[first]
            used += 2
        else:
            joined[used] = tokens[first] - 2 * more
            used += 1
        for i in range(first + 1, offsets[r + 1]):
            joined[used] = tokens[i]
            used += 1
        for h in range(hops):
            if chosen[r, h] >= 0:
                for i in range(path_offsets[chosen[r, h]], path_offsets[chosen[r, h] + 1]):
                    joined[used] = path_tokens[i]
                    used += 1
        joined_offsets[r + 1] = used
    return joined[:used].copy(), joined_offsets


@kernel
def draw_paths(rng, rules, hops, shared, popularity):
    """For every rule the different paths that it is ANDed with, all -1 where it has none."""
    chosen = np.full((rules, hops), -1, np.int64)
    for r in range(rules):
        if rng.random() >= shared:
            continue
        for h in range(hops):
            while True:
                path = drawn(popularity, 0, len(popularity), rng.random())
                fresh = True
                for g in range(h):
                    if chosen[r, g] == path:
                        fresh = False
                if fresh:
                    break
            chosen[r, h] = path
    return chosen
