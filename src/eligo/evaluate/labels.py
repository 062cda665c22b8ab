"""Labels: where each conjunction stands in its rule's tree (the paper on complex expressions §3.1 and §4.2).

Interval labels have a begin and an end, from 1 to the rule's own leaf count M. Invariants of a valid labelling (§4.1):
children of an OR have its interval; children of an AND divide it between them; no two children of ANDs, first children
apart, begin at the same place. An AND of one child gives it the whole interval.

Dewey labels are the numbers of the children on the way from the root, the last child of an AND marked.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import grown
from eligo.jit import kernel


@kernel
def label_intervals(tree, offsets):
    """Returns begin and end of every tree token, and every rule's leaf count: LABEL (§4.2, Algorithm 4) for all rules.

    The recursion is a loop over the prefix order. M is the rule's own leaf count.
    """
    n = len(tree)
    begin, end = np.zeros(n, np.int32), np.zeros(n, np.int32)
    rules = len(offsets) - 1
    span = np.zeros(rules, np.int32)
    deepest = 1
    for r in range(rules):
        deepest = max(deepest, offsets[r + 1] - offsets[r])
    size = np.zeros(deepest, np.int32)  # leaves below each token of the rule at hand
    after = np.zeros(deepest, np.int32)  # token after its subtree
    for r in range(rules):
        first, stop = offsets[r], offsets[r + 1]
        # Subtrees from the last token to the first: children stand behind their parent.
        for t in range(stop - 1, first - 1, -1):
            if tree[t] >= 0:
                size[t - first], after[t - first] = 1, t + 1 - first
            else:
                total, child = 0, t + 1 - first
                for _ in range((-tree[t]) // 2):
                    total += size[child]
                    child = after[child]
                size[t - first], after[t - first] = total, child
        if stop > first:
            span[r] = size[0]
            begin[first], end[first] = 1, size[0]
        left = 0  # leaves before the token, in prefix order
        for t in range(first, stop):
            if tree[t] >= 0:
                left += 1
                continue
            children = (-tree[t]) // 2
            child = t + 1 - first
            current = begin[t]
            for k in range(children):
                c = first + child
                if tree[t] & 1:  # OR
                    begin[c], end[c] = begin[t], end[t]
                else:
                    begin[c] = current
                    if k == children - 1:
                        end[c] = end[t]
                    elif k == 0:
                        end[c] = left + size[child]
                    else:
                        end[c] = current + size[child] - 1
                    current = end[c] + 1
                child = after[child]
    return begin, end, span


@kernel
def dewey_components(tree, offsets):
    """Returns the Dewey IDs (§3.1) of all leaves: leaf i has parts[starts[i] … starts[i+1]], from the root down.

    A component is 2 * child number, + 1 where the child is the last one of an AND (the paper's *); children of ORs have
    no mark. Nodes at even depths are ANDs, at odd depths ORs, as in the paper. Where a tree does not alternate so, a
    node with one child is put between: an OR between two ANDs, an AND between two ORs, and an AND above a root that is
    an OR or a conjunction.
    """
    rules = len(offsets) - 1
    leaves = 0
    for t in range(len(tree)):
        if tree[t] >= 0:
            leaves += 1
    starts = np.zeros(leaves + 1, np.int64)
    parts = np.zeros(max(16, 4 * leaves), np.int32)
    used, leaf = 0, 0
    path = np.zeros(16, np.int32)  # component of every level
    waiting = np.zeros(16, np.int32)  # children of the level's node still to come
    is_and = np.zeros(16, np.bool_)
    for r in range(rules):
        depth = 0
        if offsets[r + 1] > offsets[r] and (tree[offsets[r]] >= 0 or tree[offsets[r]] & 1):
            path[0], waiting[0], is_and[0], depth = 0, 1, True, 1
        for t in range(offsets[r], offsets[r + 1]):
            if depth > 0:
                waiting[depth - 1] -= 1
                number = (path[depth - 1] >> 1) + 1
                path[depth - 1] = 2 * number + (1 if is_and[depth - 1] and waiting[depth - 1] == 0 else 0)
            if tree[t] >= 0:
                parts = grown(parts, used + depth)
                for k in range(depth):
                    parts[used + k] = path[k]
                used += depth
                leaf += 1
                starts[leaf] = used
                while depth > 0 and waiting[depth - 1] == 0:
                    depth -= 1
                continue
            if depth + 1 >= len(path):
                path = np.append(path, np.zeros(depth, np.int32))
                waiting = np.append(waiting, np.zeros(depth, np.int32))
                is_and = np.append(is_and, np.zeros(depth, np.bool_))
            if depth > 0 and is_and[depth - 1] == (tree[t] & 1 == 0):
                between = not is_and[depth - 1]
                path[depth], waiting[depth], is_and[depth] = 2 + (1 if between else 0), 0, between
                depth += 1
            path[depth], waiting[depth], is_and[depth] = 0, (-tree[t]) // 2, tree[t] & 1 == 0
            depth += 1
    return starts, parts[:used]
