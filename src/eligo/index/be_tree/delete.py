"""Deletion (the BE-Tree paper §4): rows leave their l-nodes, those that hold little are merged, empty nodes are
removed.

On the way up from the l-node that lost a row, each of these is undone once it is half as large as what would make it:

    a p-node      whose expressions would fit the l-node of its c-node beside what that has; of the root, an empty one
    a split       of a bucket without a p-directory, whose halves could lie in it
    a bucket      that nothing lies across, with one half: the half takes its place
"""

from __future__ import annotations

import numpy as np

from eligo.index.be_tree.blocks import bits_of_cluster, change_block, drop_cluster, drop_partition
from eligo.index.be_tree.nodes import (
    BELOW,
    BLOCK,
    CHILDREN,
    CLUSTERS,
    DEAD,
    DIRECTORY,
    FILL,
    HIGHEST,
    KEY,
    LEAF,
    MAX_CAP,
    ROWS,
    SHAPE,
    SPLIT,
    TOP,
    UP,
)
from eligo.index.be_tree.place import add_row
from eligo.index.be_tree.rank import note_row
from eligo.index.rows.content import copying, mark_row
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.index.rows.packed_predicate import row_words
from eligo.jit import kernel


@kernel
def find_row(t, conjunction):
    """Where the row of a conjunction lies, or -1."""
    cluster, words = t.cluster, t.words
    if not 0 <= conjunction < t.state[HIGHEST]:
        return np.int64(-1)
    c = np.int64(t.where[conjunction])
    at = cluster[8 * c + BLOCK]
    end = at + upper(cluster[8 * c + FILL])
    while at < end:
        if words[at] >> 32 == conjunction:
            return at
        at += row_words(words, at)
    return np.int64(-1)


@kernel
def take_row(t, c, at):
    """Take the row at a place out of a c-node's l-node."""
    cluster, words, state = t.cluster, t.words, t.state
    block, used = cluster[8 * c + BLOCK], upper(cluster[8 * c + FILL])
    note_row(t, words, at, -1)
    size = row_words(words, at)
    for i in range(at, block + used - size):
        words[i] = words[i + size]
    used -= size
    cluster[8 * c + FILL] = pair(used, lower(cluster[8 * c + FILL]))
    rows = upper(cluster[8 * c + LEAF]) - 1
    cap = max(1, (rows + state[MAX_CAP] - 1) // state[MAX_CAP]) * state[MAX_CAP]
    cluster[8 * c + LEAF] = pair(rows, cap)
    if 2 * used < lower(cluster[8 * c + FILL]):
        change_block(t, c, used)


@kernel
def move_all(t, c, to):
    """Move all rows of one c-node's l-node to another's."""
    at = t.cluster[8 * c + BLOCK]
    end = at + upper(t.cluster[8 * c + FILL])
    while at < end:
        add_row(t, to, t.words, at)
        at += row_words(t.words, at)


@kernel
def fold_partition(t, p):
    """Undo a p-node: everything below it goes to the l-node of its c-node."""
    cluster, partition, work = t.cluster, t.partition, t.work
    owner = lower(partition[4 * p + KEY])
    waiting = 1
    work[0] = partition[4 * p + TOP]
    drop_partition(t, p)
    while waiting:
        waiting -= 1
        c = np.int64(work[waiting])
        move_all(t, c, owner)
        for child in (upper(cluster[8 * c + CHILDREN]), lower(cluster[8 * c + CHILDREN])):
            if child >= 0:
                work[waiting] = child
                waiting += 1
        while lower(cluster[8 * c + DIRECTORY]) > 0:
            top = lower(t.words[upper(cluster[8 * c + DIRECTORY])])
            work[waiting] = top
            waiting += 1
            drop_partition(t, lower(cluster[8 * top + UP]))
        drop_cluster(t, c)


@kernel
def replace_child(t, parent, old, new):
    children = t.cluster[8 * parent + CHILDREN]
    left, right = upper(children), lower(children)
    t.cluster[8 * parent + CHILDREN] = pair(new, right) if left == old else pair(left, new)


@kernel
def tidy(t, c):
    """Go up from a c-node and undo what has become too small."""
    cluster, partition, state = t.cluster, t.partition, t.state
    few = state[MAX_CAP] // 2
    while True:
        at = 8 * c
        parent, owner = upper(cluster[at + UP]), lower(cluster[at + UP])
        if owner < 0:
            return
        rows, left, right = upper(cluster[at + LEAF]), upper(cluster[at + CHILDREN]), lower(cluster[at + CHILDREN])
        if partition[4 * owner + TOP] == c:
            # The top bucket: with it stands or falls the p-node.
            below = partition[4 * owner + BELOW]
            if below == 0 or (parent > 0 and below + upper(cluster[8 * parent + LEAF]) <= few):
                fold_partition(t, owner)
                c = parent
                continue
        elif lower(cluster[at + DIRECTORY]) == 0 and rows == 0 and (left < 0 or right < 0):
            # Nothing lies across its middle: the half that has something takes its place, if there is one.
            child = max(left, right)
            replace_child(t, parent, c, child)
            if child >= 0:
                cluster[8 * child + UP] = pair(parent, owner)
            drop_cluster(t, c)
            c = parent
            continue
        if (
            lower(cluster[at + DIRECTORY]) == 0
            and cluster[at + SHAPE] & SPLIT
            and bits_of_cluster(cluster[at + SHAPE]) < 64
        ):
            total, plain = rows, True
            for child in (left, right):
                if child >= 0:
                    total += upper(cluster[8 * child + LEAF])
                    plain = (
                        plain and cluster[8 * child + SHAPE] & SPLIT == 0 and lower(cluster[8 * child + DIRECTORY]) == 0
                    )
            if plain and total <= few:
                cluster[at + SHAPE] &= ~SPLIT
                cluster[at + CHILDREN] = pair(-1, -1)
                for child in (left, right):
                    if child >= 0:
                        move_all(t, child, c)
                        drop_cluster(t, child)
        c = parent


copy_rows = copying(find_row)


@kernel
def mark_rows(t, attributes, strings):
    """Set what stands at the numbers of the attributes and strings that some row names."""
    cluster, words = t.cluster, t.words
    for c in range(t.state[CLUSTERS]):
        if cluster[8 * c + SHAPE] & 0x7F == DEAD:
            continue
        at = cluster[8 * c + BLOCK]
        end = at + upper(cluster[8 * c + FILL])
        while at < end:
            mark_row(words, at, attributes, strings)
            at += row_words(words, at)


@kernel
def delete_row(t, conjunction):
    """Delete the row of a conjunction, if it is there, and undo what has become too small."""
    cluster, partition = t.cluster, t.partition
    at = find_row(t, conjunction)
    if at < 0:
        return
    c = np.int64(t.where[conjunction])
    take_row(t, c, at)
    t.state[ROWS] -= 1
    level = c
    owner = lower(cluster[8 * level + UP])
    while owner >= 0:
        partition[4 * owner + BELOW] -= 1
        level = np.int64(lower(partition[4 * owner + KEY]))
        owner = lower(cluster[8 * level + UP])
    tidy(t, c)


@kernel
def delete_rows(t, conjunctions, first, stop):
    """Delete the rows of conjunctions first … stop-1 of a list."""
    for i in range(first, stop):
        delete_row(t, conjunctions[i])
