"""The normal form of a rule, made while it is read: what `language.normalize` makes of a tree.

NOT is a polarity that the grammar knows when it begins an operand, so nodes come here from the leaves up, already
negated, as they do in `normalize`. Joining operands flattens, merges predicates on one attribute, and puts predicates
first. Wherever a constant would come out, or it is not certain what equals what, the rule is odd.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.codes import RESIDUAL
from eligo.compile.compiled import mixed
from eligo.compile.rule_text.layout import (
    ABSORBED,
    AND,
    CHILDREN,
    CONJUNCTIONS,
    ITEMS,
    JOIN,
    MULTI,
    NODES,
    OPERANDS,
    OR,
    PREDICATE,
    SEVERAL,
    TREE,
)
from eligo.compile.rule_text.sets import combine, is_said_by_one, mergeable, same_predicate
from eligo.jit import inline

_MANY = 64  # children of one node that are compared with each other; a rule with more to compare is odd


@inline
def push_predicate(s, p):
    """Put a predicate among the operands."""
    node = new_node(s, PREDICATE, p, 0, s.hash[p])
    s.stack[s.state[OPERANDS]] = node
    s.state[OPERANDS] += 1


@inline
def new_node(s, kind, first, count, code):
    node = s.state[NODES]
    s.node_kind[node], s.node_first[node], s.node_count[node] = kind, first, count
    s.node_hash[node] = code
    s.state[NODES] = node + 1
    return node


@inline
def is_composite(s, node):
    return s.node_kind[node] >= AND


@inline
def join(s, kind, count):
    """Make one operand of the last `count`, two or more: their AND or OR. False if that makes the rule odd."""
    top = s.state[OPERANDS] - count
    first = stop = s.state[CHILDREN]
    for i in range(top, top + count):
        node = s.stack[i]
        if stop + s.node_count[node] + 1 > len(s.child) // 2:
            return False
        if s.node_kind[node] == kind:
            for k in range(s.node_first[node], s.node_first[node] + s.node_count[node]):
                s.child[stop] = s.child[k]
                stop += 1
        else:
            s.child[stop] = node
            stop += 1
    if meets_attribute_twice(s, first, stop):
        stop = merge_children(s, kind, first, stop)
        if stop < 0:
            return False
    stop = order_children(s, first, stop)
    if stop < 0:
        return False
    s.state[OPERANDS] = top + 1
    if stop == first + 1 and s.node_kind[s.child[first]] != SEVERAL:
        s.stack[top] = s.child[first]
        return True
    code = np.uint64(kind)
    for i in range(first, stop):
        code = mixed(code, s.node_hash[s.child[i]])
    s.state[CHILDREN] = stop
    s.stack[top] = new_node(s, kind, first, stop - first, code)
    return True


@inline
def meets_attribute_twice(s, first, stop):
    """Whether two of these children are predicates on one attribute; marks all attributes."""
    s.state[JOIN] += 1
    number, twice = s.state[JOIN], False
    for i in range(first, stop):
        node = s.child[i]
        if not is_composite(s, node):
            attribute = s.attribute[s.node_first[node]]
            twice = twice or s.mark[attribute] == number
            s.mark[attribute] = number
    return twice


@inline
def alike(s, node, other):
    """Whether two nodes are predicates on one attribute, and both or neither residual."""
    if is_composite(s, node) or is_composite(s, other):
        return False
    p, q = s.node_first[node], s.node_first[other]
    return s.attribute[p] == s.attribute[q] and (s.flags[p] & RESIDUAL) == (s.flags[q] & RESIDUAL)


@inline
def merge_children(s, kind, first, stop):
    """Merge the predicates on each attribute among these children. Where the children end then, -1 if that is odd."""
    if stop - first > _MANY:
        return np.int64(-1)
    for i in range(first, stop):
        node = s.child[i]
        if node < 0 or is_composite(s, node):
            continue
        met = False
        for j in range(first, i):
            met = met or (s.child[j] >= 0 and alike(s, s.child[j], node))
        if met:
            continue  # with those before it
        p = np.int64(s.node_first[node])
        apart = s.attribute[p] < s.state[MULTI] or s.flags[p] & RESIDUAL != 0
        merged, form, equal = p, s.form[p], False
        for j in range(i + 1, stop):
            other = s.child[j]
            if other < 0 or not alike(s, node, other):
                continue
            q = np.int64(s.node_first[other])
            for k in range(i, j):
                if s.child[k] >= 0 and alike(s, node, s.child[k]) and s.hash[s.node_first[s.child[k]]] == s.hash[q]:
                    equal = True
            form |= s.form[q]
            if not apart:
                if not mergeable(form):
                    return np.int64(-1)
                merged = combine(s, merged, q, kind == AND)
                if merged < 0:
                    return np.int64(-1)
        if merged == p:
            if equal:
                return np.int64(-1)
            continue
        said = is_said_by_one(s, merged)
        if said < 0 or (said == 0 and equal):
            return np.int64(-1)
        if said == 0 and kind == OR:
            continue
        s.child[i] = new_node(s, PREDICATE if said else SEVERAL, merged, 0, s.hash[merged])
        for j in range(i + 1, stop):
            if s.child[j] >= 0 and alike(s, node, s.child[j]):
                s.child[j] = -1
    to = first
    for i in range(first, stop):
        if s.child[i] >= 0:
            s.child[to] = s.child[i]
            to += 1
    return to


@inline
def order_children(s, first, stop):
    """Put predicates first, and leave out what one of them absorbs: `a and (a or b)`. Where the children end then, -1
    if nested ones are equal to each other, or it is not known what is equal.
    """
    nested = 0
    for i in range(first, stop):
        nested += is_composite(s, s.child[i])
    if nested == 0:
        return stop
    if nested > _MANY:
        return np.int64(-1)
    s.state[JOIN] += 1
    number = s.state[JOIN]
    to, behind = first, stop
    for i in range(first, stop):
        node = s.child[i]
        if is_composite(s, node):
            s.child[behind] = node
            behind += 1
        else:
            s.mark[s.attribute[s.node_first[node]]] = number
            s.child[to] = node
            to += 1
    predicates = to
    for i in range(stop, behind):
        node, absorbed = s.child[i], 0
        for j in range(stop, i):
            if s.node_hash[s.child[j]] == s.node_hash[node]:
                return np.int64(-1)
        for k in range(s.node_first[node], s.node_first[node] + s.node_count[node]):
            part = s.child[k]
            if is_composite(s, part) or s.mark[s.attribute[s.node_first[part]]] != number:
                continue
            found = is_among(s, part, first, predicates)
            if found < 0:
                return np.int64(-1)
            absorbed |= found
        if absorbed:
            s.state[ABSORBED] = 1
        else:
            s.child[to] = node
            to += 1
    return to


@inline
def is_among(s, part, first, stop):
    """Whether a predicate is one of these, -1 if that is not known: several that were merged may have been it."""
    p, found = s.node_first[part], 0
    for i in range(first, stop):
        node = s.child[i]
        q = s.node_first[node]
        if s.attribute[p] == s.attribute[q]:
            if s.node_kind[node] == SEVERAL or s.node_kind[part] == SEVERAL:
                return -1
            same = same_predicate(s, p, q)
            if same < 0:
                return -1
            found |= same
    return found


@inline
def write_tree(s, root):
    """Append the tree of a rule and its conjunctions, as `compile.builder` does."""
    waiting, depth = s.stack, 1
    waiting[0] = root
    while depth > 0:
        depth -= 1
        node = waiting[depth]
        if not is_composite(s, node):
            add_item(s, node)
            end_conjunction(s)
            continue
        first, count = s.node_first[node], s.node_count[node]
        own = 0
        if s.node_kind[node] == AND:
            while own < count and not is_composite(s, s.child[first + own]):
                add_item(s, s.child[first + own])
                own += 1
            if own < count:
                s.tree[s.state[TREE]] = -2 * (count - own + np.int64(own > 0))
                s.state[TREE] += 1
            if own:
                end_conjunction(s)
        else:
            s.tree[s.state[TREE]] = -2 * count - 1
            s.state[TREE] += 1
        for i in range(count - 1, own - 1, -1):
            waiting[depth] = s.child[first + i]
            depth += 1


@inline
def add_item(s, node):
    s.conjunction[s.state[ITEMS]] = s.node_first[node]
    s.state[ITEMS] += 1


@inline
def end_conjunction(s):
    """The items since the last conjunction are one, and the next token of the tree."""
    number = s.state[CONJUNCTIONS]
    s.conjunction_offsets[number + 1] = s.state[ITEMS]
    s.tree[s.state[TREE]] = number
    s.state[CONJUNCTIONS], s.state[TREE] = number + 1, s.state[TREE] + 1
