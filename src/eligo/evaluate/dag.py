"""Evaluating a DAG of expressions: the kernels of `shared`, whose file says what they do.

dag    the evaluator's arrays; w    the memory of one evaluation; found[first:stop]    the satisfied conjunctions
"""

from __future__ import annotations

import numpy as np

from eligo.evaluate.layers import settle_layers
from eligo.evaluate.leaves import EVERYTHING, in_order
from eligo.evaluate.programs import COMPLETES
from eligo.jit import handle, inline, kernel, trailing_zeros

DAG_ARRAYS = ("start", "code", "up_offsets", "up", "groups", "kid", "root", "facts", "starting")

# Reading a child in layers is the unit of time: from below a conjunction takes about 9 of it, a label 10 times that.
DENSE, LABEL = 9, 10
TOGETHER = 3  # 64 events in layers take so many times as long as one
SCATTERED = 8  # with fewer satisfied conjunctions than this share of the words of `truth`, they are taken as they come

FALSE, TRUE, STARTED = 1, 2, 3  # states of a part: asked and false, asked and true, true and its labels taken
WAITING = 4  # a label has come, and it is not known yet
CALL = 2  # on the stack, beside AND (0) and OR (1): the part that is being asked


# The arrays of the evaluator as one argument of kernels.
make_shared = handle("SharedHandle", (*DAG_ARRAYS, "conjunctions"))


# The memory of one evaluation as one argument of kernels.
make_shared_scratch = handle(
    "SharedScratchHandle",
    ("truth", "value", "state", "asked", "queue", "waiting", "touched", "stack", "bits", "whole", "matched"),
)


@inline
def choose_way(dag, found, first, stop):
    """Returns how many labels found[first:stop] has, or EVERYTHING if evaluating in layers is cheaper."""
    up_offsets, count = dag.up_offsets, stop - first
    room = (len(dag.kid) + len(dag.root)) // DENSE
    # By the average first: counting each one's labels takes a good part of the time that the way from below does.
    labels = count * len(dag.up) // max(1, dag.conjunctions)
    if count + LABEL * labels <= 2 * room:
        labels = 0
        for i in range(first, stop):
            labels += up_offsets[found[i] + 1] - up_offsets[found[i]]
    return EVERYTHING if count + LABEL * labels > room else labels


@inline
def in_layers(dag, found, first, stop, allowed, w, k):
    """Evaluates one event in layers. Writes its rules to `matched` from k on, ascending, and returns where they end."""
    value, matched, root = w.value, w.matched, dag.root
    all_allowed = len(allowed) == 0
    for i in range(first, stop):
        value[np.uint32(found[i])] = 1
    settle_layers(dag.groups, dag.kid, value)
    # Branch-free: half of the rules may match, and a mispredicted branch costs more than a write.
    if all_allowed:
        for rule in range(len(root)):
            matched[k] = rule
            k += value[root[rule]]
    else:
        for rule in range(len(root)):
            matched[k] = rule
            k += value[root[rule]] & (allowed[rule] != 0)
    for c in range(dag.conjunctions):
        value[c] = 0
    return k


@inline
def in_layers_together(dag, found, offsets, i, many, allowed, w, words, k, ends):
    """Evaluates the `many` (at most 64) events from i on in layers, as far as `matched` has room. Writes where the
    rules of each one end to ends[i+1 …], and returns the number of events done.
    """
    matched, root = w.matched, dag.root
    for e in range(many):
        bit = np.uint64(1) << np.uint64(e)
        for j in range(offsets[i + e], offsets[i + e + 1]):
            words[found[j]] |= bit
    settle_layers(dag.groups, dag.kid, words)
    # Count the rules of each event, find where they go, and then write all rules in their order.
    all_allowed = len(allowed) == 0
    place = np.zeros(65, np.int64)
    for rule in range(len(root)):
        left = words[root[rule]] if all_allowed or allowed[rule] else np.uint64(0)
        while left:
            place[trailing_zeros(left) + np.uint64(1)] += 1
            left &= left - np.uint64(1)
    place[0] = k
    fit = 0
    while fit < many and place[fit] + place[fit + 1] <= len(matched):
        place[fit + 1] += place[fit]
        fit += 1
        ends[i + fit] = place[fit]
    some = ~np.uint64(0) >> np.uint64(64 - fit)
    for rule in range(len(root)):
        left = words[root[rule]] & some if all_allowed or allowed[rule] else np.uint64(0)
        while left:
            e = trailing_zeros(left)
            matched[place[e]] = rule
            place[e] += 1
            left &= left - np.uint64(1)
    for j in range(offsets[i], offsets[i + many]):
        words[found[j]] = 0
    return fit


@inline
def from_below(dag, found, first, stop, allowed, w, k):
    """Evaluates one event from below. Writes its rules to `matched` from k on, ascending, and returns where they end.

    Labels of what has become true are followed first: they mark rules and put parts in a list. Then one unit is
    evaluated, a part before any rule, because a part that holds has labels of its own. Unless they are few,
    conjunctions and rules are taken in ascending order, so that all memory that they lead to is read in order too.
    """
    start, code, up_offsets, up, conjunctions = dag.start, dag.code, dag.up_offsets, dag.up, dag.conjunctions
    truth, starting, state, asked, queue, waiting = w.truth, dag.starting, w.state, w.asked, w.queue, w.waiting
    marked, whole, touched, stack, matched = w.bits, w.whole, w.touched, w.stack, w.matched
    parts, one = len(state), np.uint64(1)
    all_allowed = len(allowed) == 0
    begin, n_asked, n_touched, n_waiting, n_queue, taken = k, 0, 0, 0, 0, 0
    for j in range(first, stop):
        truth[found[j] >> 6] |= one << np.uint64(found[j] & 63)
    in_words = (stop - first) * SCATTERED > len(truth)
    i = -1 if in_words else first  # a word of `truth`, or a place in `found`
    bits = np.uint64(0)  # of the word, those still to come
    rule_word, rule_bits, n_rules, rules_in_words = -1, np.uint64(0), 0, False
    labelling = True
    while True:
        # The labels of the next that has become true: a conjunction, or a part.
        if labelling:
            x = np.int64(-1)
            if taken < n_queue:
                x = np.int64(queue[taken]) + conjunctions
                taken += 1
            elif in_words:
                while bits == 0 and i + 1 < len(truth):
                    i += 1
                    bits = truth[i] & starting[i]
                if bits:
                    x = (i << 6) + np.int64(trailing_zeros(bits))
                    bits &= bits - one
            elif i < stop:
                x = np.int64(found[i])
                i += 1
            if x < 0:
                labelling = False
                rules_in_words = n_touched * SCATTERED > len(marked)
                continue
            for d in range(up_offsets[x], up_offsets[x + 1]):
                label = up[d]
                unit = label >> 1
                if unit >= parts:
                    rule = unit - parts
                    word, bit = rule >> 6, one << np.uint64(rule & 63)
                    if marked[word] & bit == 0:
                        marked[word] |= bit
                        touched[n_touched] = rule
                        n_touched += 1
                    if label & COMPLETES:
                        whole[word] |= bit
                    continue
                if state[unit] == 0:
                    asked[n_asked] = unit
                    n_asked += 1
                    state[unit] = WAITING
                    if label & COMPLETES == 0:
                        waiting[n_waiting] = unit
                        n_waiting += 1
                if state[unit] == TRUE or (label & COMPLETES and state[unit] == WAITING):
                    state[unit] = STARTED
                    queue[n_queue] = unit
                    n_queue += 1
            continue
        # The next unit to ask, unless it is known already.
        value = False
        if n_waiting:
            n_waiting -= 1
            unit = np.int64(waiting[n_waiting])
            if state[unit] != WAITING and state[unit] != TRUE:
                continue
            value = state[unit] == TRUE
        else:
            rule = np.int64(-1)
            if rules_in_words:
                while rule_bits == 0 and rule_word + 1 < len(marked):
                    rule_word += 1
                    rule_bits = marked[rule_word]
                    marked[rule_word] = 0
                if rule_bits:
                    rule = (rule_word << 6) + np.int64(trailing_zeros(rule_bits))
                    rule_bits &= rule_bits - one
            elif n_rules < n_touched:
                rule = np.int64(touched[n_rules])
                marked[rule >> 6] &= ~(one << np.uint64(rule & 63))
                n_rules += 1
            if rule < 0:
                break
            value = whole[rule >> 6] >> np.uint64(rule & 63) & one != 0
            whole[rule >> 6] &= ~(one << np.uint64(rule & 63))
            if not all_allowed and allowed[rule] == 0:
                continue
            unit = rule + parts
        # From the top. A row of the stack: AND, OR or CALL; children still to come; or, of a call, the part and where
        # to go on.
        t, depth, going = np.int64(start[unit]), 0, not value
        while going:
            token = code[t]
            t += 1
            if token < 0:
                stack[depth, 0], stack[depth, 1] = token & 1, (-token) // 2
                depth += 1
                continue
            if token < conjunctions:
                value = truth[token >> 6] >> np.uint64(token & 63) & one != 0
            else:
                p = token - conjunctions
                if state[p] & 3 == 0:
                    stack[depth, 0], stack[depth, 1], stack[depth, 2] = CALL, p, t
                    depth += 1
                    t = np.int64(start[p])
                    continue
                value = state[p] != FALSE
            # Up, as far as this value settles what is above it.
            while depth > 0:
                kind, left = stack[depth - 1, 0], stack[depth - 1, 1] - 1
                if kind == CALL:
                    depth -= 1
                    if state[left + 1] == 0:
                        asked[n_asked] = left + 1
                        n_asked += 1
                    state[left + 1] = TRUE if value else FALSE
                    t = stack[depth, 2]
                    continue
                stack[depth - 1, 1] = left
                if value != (kind == 1):
                    if left > 0:
                        break
                    depth -= 1
                    continue
                # Settled: the other children are left out, unless what is above goes on elsewhere anyway.
                depth -= 1
                if depth > 0 and stack[depth - 1, 0] != CALL:
                    while left > 0:
                        token = code[t]
                        t += 1
                        left += (-token) // 2 - 1 if token < 0 else -1
            going = depth > 0
        if unit >= parts:
            matched[k] = unit - parts
            k += value
            continue
        state[unit] = STARTED if value else FALSE
        if value:
            queue[n_queue] = unit
            n_queue += 1
            labelling = True
    for j in range(first, stop):
        truth[found[j] >> 6] = 0
    for j in range(n_asked):
        state[asked[j]] = 0
    if not rules_in_words:
        in_order(matched, begin, k, marked)
    return k


@inline
def finish_shared(dag, way, found, first, stop, allowed, w, k):
    if way == EVERYTHING:
        return in_layers(dag, found, first, stop, allowed, w, k)
    return from_below(dag, found, first, stop, allowed, w, k)


@kernel
def shared_group(dag, found, count):
    return choose_way(dag, found, 0, count)


@kernel
def shared_complete(dag, touched, found, count, allowed, w):
    return finish_shared(dag, touched, found, 0, count, allowed, w, 0)


@kernel
def shared_one(dag, found, count, allowed, w):
    return finish_shared(dag, choose_way(dag, found, 0, count), found, 0, count, allowed, w, 0)


@kernel
def shared_batch(dag, found, offsets, events, allowed, w, words, ends):
    k = 0
    ends[0] = 0
    i = 0
    room = TOGETHER * (len(dag.kid) + len(dag.root)) // DENSE
    while i < events and len(w.matched) - k > len(dag.root):  # not >=: a rule is written before it is known
        many = min(64, events - i)
        count = offsets[i + many] - offsets[i]
        if many > TOGETHER and count + LABEL * (count * len(dag.up) // max(1, dag.conjunctions)) > room:
            i += in_layers_together(dag, found, offsets, i, many, allowed, w, words, k, ends)
            k = ends[i]
            continue
        first, stop = offsets[i], offsets[i + 1]
        k = finish_shared(dag, choose_way(dag, found, first, stop), found, first, stop, allowed, w, k)
        i += 1
        ends[i] = k
    return i
