"""Sub-expressions that several rules share, written once: what the paper on complex expressions leaves to the future.

    node n    kind[n] (0 AND, 1 OR) of kids[kid_offsets[n] … [n+1]]: ids in ascending order, each once
    id        of a conjunction: its number; of a node: its number + the number of conjunctions

Equal nodes are one node, whichever rules they come from and in whatever order their children were written. A node of
one child is that child. Children have lower numbers than their parents.

Normalising flattens an AND in an AND, so an edge of an ad exchange that is ANDed into many campaigns is no node of its
own any more: only its children are, beside the campaign's. What always occurs together is put together again: children
with the same set of parents become one node, where that saves memory.

In the end a node with several uses becomes a part, which others name by one token; all others are written out where
they stand.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import Compiled, mixed
from eligo.jit import inline, kernel


def share(compiled: Compiled) -> Compiled:
    """Returns the same rules with everything that they share as parts. They may have parts already."""
    conjunctions = compiled.conjunctions
    kind, kid_offsets, kids, root = find_nodes(
        compiled.tree, compiled.tree_offsets, compiled.part, compiled.part_offsets, conjunctions
    )
    kind, kid_offsets, kids, root = put_together(kind, kid_offsets, kids, root, conjunctions)
    tree, tree_offsets, part, part_offsets = write_trees(kind, kid_offsets, kids, root, conjunctions)
    return Compiled(
        **{
            **compiled.arrays(),
            "tree": tree,
            "tree_offsets": tree_offsets,
            "part": part,
            "part_offsets": part_offsets,
        }
    )


@inline
def sort_ids(ids, count):
    """Sorts ids[:count] and removes repetitions. Returns how many are left."""
    if count > 32:
        ids[:count].sort()
    else:
        for i in range(1, count):
            value = ids[i]
            j = i - 1
            while j >= 0 and ids[j] > value:
                ids[j + 1] = ids[j]
                j -= 1
            ids[j + 1] = value
    kept = min(count, 1)
    for i in range(1, count):
        if ids[i] != ids[i - 1]:
            ids[kept] = ids[i]
            kept += 1
    return kept


@inline
def node_of(which, ids, count, kind, kid_offsets, kids, nodes, slots):
    """Returns the number of the node with these children. Adds it as number `nodes` if there is none yet."""
    mask = np.uint64(len(slots) - 1)
    h = np.uint64(which + 1)
    for i in range(count):
        h = mixed(h, ids[i])
    at = h & mask
    while True:
        n = slots[at] - 1
        if n < 0:
            break
        if kind[n] == which and kid_offsets[n + 1] - kid_offsets[n] == count:
            same = True
            for i in range(count):
                if kids[kid_offsets[n] + i] != ids[i]:
                    same = False
                    break
            if same:
                return n
        at = (at + np.uint64(1)) & mask
    slots[at] = nodes + 1
    kind[nodes] = which
    first = kid_offsets[nodes]
    for i in range(count):
        kids[first + i] = ids[i]
    kid_offsets[nodes + 1] = first + count
    return nodes


@inline
def slots_for(count):
    size = 16
    while size < 2 * count:
        size *= 2
    return np.zeros(size, np.int32)


@kernel
def find_nodes(tree, tree_offsets, part, part_offsets, conjunctions):
    """Returns all nodes, and the id of every rule's root, -1 for a rule that is never true."""
    parts, rules = len(part_offsets) - 1, len(tree_offsets) - 1
    most, longest = 0, 1
    for tokens in (tree, part):
        for token in tokens:
            most += token < 0
    for offsets in (tree_offsets, part_offsets):
        for u in range(len(offsets) - 1):
            longest = max(longest, offsets[u + 1] - offsets[u])
    kind, kid_offsets = np.empty(most, np.uint8), np.zeros(most + 1, np.int64)
    kids = np.empty(len(tree) + len(part), np.int32)
    slots = slots_for(most)
    nodes = 0
    known, root = np.empty(parts, np.int32), np.full(rules, -1, np.int32)
    ids, after = np.empty(longest, np.int32), np.empty(longest, np.int64)
    below = np.empty(longest, np.int32)
    for u in range(parts + rules):
        tokens = part if u < parts else tree
        first = part_offsets[u] if u < parts else tree_offsets[u - parts]
        stop = part_offsets[u + 1] if u < parts else tree_offsets[u - parts + 1]
        # From the last token to the first: children stand behind their parent.
        for t in range(stop - first - 1, -1, -1):
            token = tokens[first + t]
            if token >= 0:
                ids[t] = token if token < conjunctions else known[token - conjunctions]
                after[t] = t + 1
                continue
            child = np.int64(t + 1)
            count = (-token) // 2
            for k in range(count):
                below[k] = ids[child]
                child = after[child]
            after[t] = child
            count = sort_ids(below, count)
            if count == 1:
                ids[t] = below[0]
                continue
            n = node_of(token & 1, below, count, kind, kid_offsets, kids, nodes, slots)
            nodes = max(nodes, n + 1)
            ids[t] = conjunctions + n
        if u < parts:
            known[u] = ids[0]
        elif stop > first:
            root[u - parts] = ids[0]
    return kind[:nodes], kid_offsets[: nodes + 1], kids[: kid_offsets[nodes]], root


@kernel
def put_together(kind, kid_offsets, kids, root, conjunctions):
    """Returns the nodes and roots after replacing children that have the same parents of one kind by one node.

    A set of parents is told by its size and a sum of hashes. Two sets that look alike by chance would only make a node
    that saves nothing: an AND of some of an AND's children is never wrong.
    """
    nodes = len(kind)
    everything = conjunctions + nodes
    look, parents = np.zeros((2, everything), np.uint64), np.zeros((2, everything), np.int32)
    widest = 2
    for n in range(nodes):
        widest = max(widest, kid_offsets[n + 1] - kid_offsets[n])
        h = mixed(mixed(np.uint64(0x632BE59BD9B4E019), n), n)
        for i in range(kid_offsets[n], kid_offsets[n + 1]):
            look[kind[n], kids[i]] += h
            parents[kind[n], kids[i]] += 1
    room = nodes + len(kids) // 4 + 16
    new_kind, new_offsets = np.empty(room, np.uint8), np.zeros(room + 1, np.int64)
    new_kids = np.empty(2 * len(kids) + 16, np.int32)
    slots = slots_for(room)
    made = 0
    new_id = np.empty(everything, np.int32)
    for c in range(conjunctions):
        new_id[c] = c
    mine, some = np.empty(widest, np.int32), np.empty(widest, np.int32)
    looks, nothing = np.empty(widest, np.uint64), np.zeros(0, np.int64)
    for n in range(nodes):
        which, first = kind[n], kid_offsets[n]
        count = kid_offsets[n + 1] - first
        common = 0
        for i in range(count):
            mine[i] = new_id[kids[first + i]]
            looks[i] = look[which, kids[first + i]]
            common += parents[which, kids[first + i]] > 1
        left, i = count, 0
        if common > 1:
            order = np.argsort(looks[:count])
            left = 0
        else:
            order, i = nothing, count
        while i < count:
            one = kids[first + order[i]]
            j = i + 1
            while j < count and looks[order[j]] == looks[order[i]]:
                j += 1
            size, times = j - i, np.int64(parents[which, one])
            if times > 1 and 2 <= size < count and (size - 1) * times > size + 3:
                for k in range(size):
                    some[k] = new_id[kids[first + order[i + k]]]
                size = sort_ids(some, size)
                mine[left] = some[0]
                if size > 1:
                    g = node_of(which, some, size, new_kind, new_offsets, new_kids, made, slots)
                    made = max(made, g + 1)
                    mine[left] = conjunctions + g
                left += 1
            else:
                for k in range(size):
                    mine[left] = new_id[kids[first + order[i + k]]]
                    left += 1
            i = j
        left = sort_ids(mine, left)
        if left == 1:  # its children have become one and the same
            new_id[conjunctions + n] = mine[0]
            continue
        g = node_of(which, mine, left, new_kind, new_offsets, new_kids, made, slots)
        made = max(made, g + 1)
        new_id[conjunctions + n] = conjunctions + g
    new_root = root.copy()
    for r in range(len(root)):
        if root[r] >= 0:
            new_root[r] = new_id[root[r]]
    return new_kind[:made], new_offsets[: made + 1], new_kids[: new_offsets[made]], new_root


@kernel
def write_trees(kind, kid_offsets, kids, root, conjunctions):
    """Writes the nodes as trees in prefix order: one for each rule, and a part for each node with several uses. Returns
    the trees, their offsets, the parts, and their offsets.
    """
    nodes, rules = len(kind), len(root)
    uses = np.zeros(conjunctions + nodes, np.int32)
    for i in kids:
        uses[i] += 1
    for i in root:
        if i >= 0:
            uses[i] += 1
    number = np.full(nodes, -1, np.int32)
    parts = 0
    for n in range(nodes):
        if uses[conjunctions + n] > 1:
            number[n] = parts
            parts += 1
    # Every node is written once, as a part or where it stands.
    part, part_offsets = np.empty(nodes + len(kids), np.int32), np.zeros(parts + 1, np.int64)
    tree, tree_offsets = np.empty(nodes + len(kids) + rules, np.int32), np.zeros(rules + 1, np.int64)
    stack = np.empty(64, np.int32)
    written = 0
    for u in range(nodes + rules):
        if u < nodes and number[u] < 0:
            continue
        if u == nodes:
            written = 0
        out = part if u < nodes else tree
        own = np.int32(conjunctions + u) if u < nodes else root[u - nodes]
        depth = 0
        if own >= 0:
            stack[0] = own
            depth = 1
        while depth > 0:
            depth -= 1
            one = stack[depth]
            n = one - conjunctions
            if n < 0:
                out[written] = one
                written += 1
                continue
            if number[n] >= 0 and not (u < nodes and one == own):
                out[written] = conjunctions + number[n]
                written += 1
                continue
            count = kid_offsets[n + 1] - kid_offsets[n]
            out[written] = -2 * count - kind[n]
            written += 1
            while depth + count > len(stack):
                stack = np.append(stack, stack)
            for i in range(count):
                stack[depth + i] = kids[kid_offsets[n + 1] - 1 - i]
            depth += count
        if u < nodes:
            part_offsets[number[u] + 1] = written
        else:
            tree_offsets[u - nodes + 1] = written
    return tree[: tree_offsets[rules]].copy(), tree_offsets, part[: part_offsets[parts]].copy(), part_offsets
