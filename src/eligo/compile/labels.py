"""Labels: where each conjunction stands in its rule's tree (complex-boolean-expressions.txt §3.1 and §4.2).

Rules whose tree needs no label are told apart first. Any leaf whose interval is the whole of its rule's (the only
conjunction of a rule, a conjunction under the root's OR) completes the rule by itself:

    direct[direct_offsets[c] … [c+1]]     rules that conjunction c completes alone
    leaf[leaf_offsets[c] … [c+1]]         leaves where it stands otherwise, as numbers of the two arrays below
    begin, end                            intervals of those leaves, from 1 to the rule's own leaf count
    rule_leaves[n] … rule_leaves[n+1]     leaves of rule n, in ascending order of begin
    span[n]                               the rule's leaf count M, where its interval ends
    leaf_rule                             the rule of every leaf

Invariants of a valid labelling (§4.1): children of an OR have its interval; children of an AND divide it between
them; no two children of ANDs, first children apart, begin at the same place. An AND of one child gives it the whole
interval.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from eligo.compile.compiled import I32, Arrays, Compiled
from eligo.jit import kernel


@dataclass(frozen=True)
class IntervalLabels:
    """The arrays drawn above."""

    direct_offsets: I32
    direct: I32
    leaf_offsets: I32
    leaf: I32
    begin: I32
    end: I32
    rule_leaves: I32
    span: I32
    leaf_rule: I32

    def arrays(self) -> Arrays:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def interval_labels(compiled: Compiled) -> IntervalLabels:
    """Label every tree."""
    arrays = interval_arrays(compiled.tree, compiled.tree_offsets, compiled.conjunctions)
    direct_offsets, direct, leaf_offsets, leaf, begin, end, rule_leaves, span, leaf_rule = arrays
    if len(end) == 0 or int(span.max()) < 65536:
        begin, end = begin.astype(np.uint16), end.astype(np.uint16)
    return IntervalLabels(direct_offsets, direct, leaf_offsets, leaf, begin, end, rule_leaves, span, leaf_rule)


@kernel
def interval_arrays(tree, offsets, conjunctions):  # type: ignore[no-untyped-def]
    """The arrays drawn at the top of this file: one walk to count, one to put everything in its place."""
    begins, ends, span = label_intervals(tree, offsets)
    rules = len(offsets) - 1
    direct_offsets, leaf_offsets = np.zeros(conjunctions + 1, np.int32), np.zeros(conjunctions + 1, np.int32)
    rule_leaves = np.zeros(rules + 1, np.int32)
    last = np.full(conjunctions, -1, np.int32)  # the last rule that a conjunction completes: a rule may name it twice
    widest = 0
    for r in range(rules):
        widest = max(widest, span[r])
        for t in range(offsets[r], offsets[r + 1]):
            c = tree[t]
            if c < 0:
                continue
            if begins[t] != 1 or ends[t] != span[r]:
                leaf_offsets[c + 1] += 1
                rule_leaves[r + 1] += 1
            elif last[c] != r:
                last[c] = r
                direct_offsets[c + 1] += 1
    for c in range(conjunctions):
        direct_offsets[c + 1] += direct_offsets[c]
        leaf_offsets[c + 1] += leaf_offsets[c]
    for r in range(rules):
        rule_leaves[r + 1] += rule_leaves[r]
    leaves = rule_leaves[rules]
    direct, leaf = np.empty(direct_offsets[conjunctions], np.int32), np.empty(leaves, np.int32)
    begin, end, leaf_rule = np.empty(leaves, np.int32), np.empty(leaves, np.int32), np.empty(leaves, np.int32)
    next_direct, next_leaf = direct_offsets[:-1].copy(), leaf_offsets[:-1].copy()
    last[:] = -1
    starts = np.zeros(widest + 2, np.int32)  # counting sort of a rule's leaves by begin
    for r in range(rules):
        some = rule_leaves[r + 1] > rule_leaves[r]
        if some:
            starts[: span[r] + 2] = 0
            for t in range(offsets[r], offsets[r + 1]):
                if tree[t] >= 0 and (begins[t] != 1 or ends[t] != span[r]):
                    starts[begins[t] + 1] += 1
            for x in range(span[r] + 1):
                starts[x + 1] += starts[x]
        for t in range(offsets[r], offsets[r + 1]):
            c = tree[t]
            if c < 0:
                continue
            if begins[t] != 1 or ends[t] != span[r]:
                at = rule_leaves[r] + starts[begins[t]]
                starts[begins[t]] += 1
                begin[at], end[at], leaf_rule[at] = begins[t], ends[t], r
                leaf[next_leaf[c]] = at
                next_leaf[c] += 1
            elif last[c] != r:
                last[c] = r
                direct[next_direct[c]] = r
                next_direct[c] += 1
    return direct_offsets, direct, leaf_offsets, leaf, begin, end, rule_leaves, span, leaf_rule


@kernel
def label_intervals(tree, offsets):  # type: ignore[no-untyped-def]
    """LABEL (§4.2, Algorithm 4) for all rules: begin and end of every tree token, and every rule's leaf count.

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
def dewey_components(tree, offsets):  # type: ignore[no-untyped-def]
    """Dewey IDs (§3.1) of all leaves: for leaf i the components parts[starts[i] … starts[i+1]], from the root down.

    A component is 2 * child number, + 1 where the child is the last one of an AND (the paper's *). The root counts as
    an AND: an OR or a lone conjunction gets an artificial one above it. Children of ORs carry no mark.
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
                while used + depth > len(parts):
                    bigger = np.zeros(2 * len(parts), np.int32)
                    bigger[:used] = parts[:used]
                    parts = bigger
                for k in range(depth):
                    parts[used + k] = path[k]
                used += depth
                leaf += 1
                starts[leaf] = used
                while depth > 0 and waiting[depth - 1] == 0:
                    depth -= 1
                continue
            if depth == len(path):
                more = np.zeros(2 * depth, np.int32)
                more[:depth] = path
                path = more
                more = np.zeros(2 * depth, np.int32)
                more[:depth] = waiting
                waiting = more
                flags = np.zeros(2 * depth, np.bool_)
                flags[:depth] = is_and
                is_and = flags
            path[depth], waiting[depth], is_and[depth] = 0, (-tree[t]) // 2, tree[t] & 1 == 0
            depth += 1
    return starts, parts[:used]
