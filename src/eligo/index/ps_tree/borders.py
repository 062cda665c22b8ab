"""How borders come to a line and go from it (the PS-Tree paper §4.2, §4.4): what Partition means for inner nodes."""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.nodes import (
    FULL,
    LAST,
    borders_of,
    bucket_links,
    build_tree,
    free_tree,
    get_root,
    is_bucket,
    keys_up_to,
    locate,
    new_bucket,
    node_words,
    set_link,
    step,
)
from eligo.index.rows.allocator import give_block, take_block
from eligo.index.rows.int_pair import upper
from eligo.jit import kernel

COUNTED = 1 << 32


@kernel
def with_border(keys, spaces, n, before, b):
    """Borders with one at b too, where there is the same space on both sides; positions, spaces, how many."""
    more, others = np.empty(n + 1, np.uint64), np.empty(n + 1, np.int64)
    i = 0
    while i < n and keys[i] < b:
        more[i], others[i] = keys[i], spaces[i]
        i += 1
    if i < n and keys[i] == b:
        return keys, spaces, n
    more[i] = b
    others[i] = spaces[i - 1] if i else before
    for j in range(i, n):
        more[j + 1], others[j + 1] = keys[j], spaces[j]
    return more, others, n + 1


@kernel
def rebuild(t, cell, place, first, last, b, other):
    """Build the tree of the link at a place anew, which is for positions first … last, with borders at b and at another
    position too, if it lies there; 0: none.
    """
    link = get_root(t, cell) if place < 0 else np.int64(t.links[place])
    keys, spaces, before, n = borders_of(t, link, first, last)
    if b:
        keys, spaces, n = with_border(keys, spaces, n, before, b)
    if first < other <= last:
        keys, spaces, n = with_border(keys, spaces, n, before, other)
    free_tree(t, link)
    set_link(t, cell, place, build_tree(t, keys, spaces, n, before))


@kernel
def count_border(t, cell, b):
    """One border more in the tables on the way to b."""
    link, first, last = get_root(t, cell), np.uint64(0), np.uint64(LAST)
    while link < 0 and not is_bucket(t.tree[2 * ~link]):
        o = 2 * ~link
        t.tree[o] += COUNTED
        place, first, last = step(t.tree, t.links, o, b, first, last)
        link = np.int64(t.links[place])


@kernel
def add_border(t, cell, b, other):
    """Let a link begin at position b > 0 of a line; it leads to where the one before leads. The border at another
    position, 0: none, is one to be kept though it may be as void as this one.
    """
    tree, links = t.tree, t.links
    place, link, grown, any_grown = np.int64(-1), get_root(t, cell), np.int64(-1), False
    first, last = np.uint64(0), np.uint64(LAST)
    begin, end = first, last  # of what has grown
    while link < 0:
        o = 2 * ~link
        if is_bucket(tree[o]):
            break
        if not any_grown and upper(tree[o]) + 1 >= np.int64(1) << (tree[o] >> 16 & 0xFF):
            grown, any_grown, begin, end = place, True, first, last
        place, first, last = step(tree, links, o, b, first, last)
        link = np.int64(links[place])
    if link >= 0:
        if first != b:
            count_border(t, cell, b)
            o = new_bucket(t, 2, 1, link)
            tree[o + 1] = np.int64(b)
            links[bucket_links(tree, o) + 1] = link
            set_link(t, cell, place, ~(o // 2))
        return
    o = 2 * ~link
    i, n, room = keys_up_to(tree, o, b), upper(tree[o]), tree[o] & 0xFF
    if first == b or (i and np.uint64(tree[o + i]) == b):
        return
    count_border(t, cell, b)
    if n == FULL:
        if any_grown:
            rebuild(t, cell, grown, begin, end, b, other)
        else:
            rebuild(t, cell, place, first, last, b, other)
        return
    if n == room:
        room *= 2
        other = take_block(tree, t.tree_heads, 1 + room + (room + 2) // 2)
        tree[other] = tree[o] - n + room
        for j in range(n):
            tree[other + 1 + j] = tree[o + 1 + j]
            links[2 * (other + 1 + room) + j] = links[2 * (o + 1 + n) + j]
        links[2 * (other + 1 + room) + n] = links[2 * (o + 1 + n) + n]
        give_block(tree, t.tree_heads, o, node_words(tree[o]))
        o = other
        set_link(t, cell, place, ~(o // 2))
    at = bucket_links(tree, o)
    for j in range(n, i, -1):
        tree[o + 1 + j] = tree[o + j]
        links[at + 1 + j] = links[at + j]
    tree[o + 1 + i] = np.int64(b)
    links[at + 1 + i] = links[at + i]
    tree[o] += COUNTED


@kernel
def drop_border(t, cell, b):
    """Forget the border at position b of a line, on both sides of which there is the same space."""
    tree, links = t.tree, t.links
    place, link, small, any_small = np.int64(-1), get_root(t, cell), np.int64(-1), False
    first, last = np.uint64(0), np.uint64(LAST)
    begin, end = first, last  # of what has become small
    while link < 0:
        o = 2 * ~link
        if is_bucket(tree[o]):
            i, n = keys_up_to(tree, o, b), upper(tree[o])
            if i and np.uint64(tree[o + i]) == b:
                at = bucket_links(tree, o)
                links[at + i - 1] = links[at + i]  # where the bucket begins at b the one before may be out of use
                for j in range(i, n):
                    tree[o + j] = tree[o + 1 + j]
                    links[at + j] = links[at + 1 + j]
                tree[o] -= COUNTED
                if n == 1:
                    set_link(t, cell, place, links[at])
                    give_block(tree, t.tree_heads, o, node_words(tree[o]))
            break
        tree[o] = max(tree[o] - COUNTED, tree[o] & (COUNTED - 1))
        if not any_small and 4 * upper(tree[o]) < np.int64(1) << (tree[o] >> 16 & 0xFF):
            small, any_small, begin, end = place, True, first, last
        place, first, last = step(tree, links, o, b, first, last)
        link = np.int64(links[place])
    if any_small:
        rebuild(t, cell, small, begin, end, np.uint64(0), np.uint64(0))


@kernel
def fill(t, cell, begin, end, space):
    """Let positions begin … end, between two borders, lead to a space."""
    tree, links = t.tree, t.links
    x, one = begin, np.uint64(1)
    while True:
        place, link = np.int64(-1), get_root(t, cell)
        first, last = np.uint64(0), np.uint64(LAST)
        o, bound = np.int64(-1), last
        while link < 0:
            o, bound = 2 * ~link, last
            if is_bucket(tree[o]):
                break
            place, first, last = step(tree, links, o, x, first, last)
            link = np.int64(links[place])
        if link < 0:
            i, n, at = keys_up_to(tree, o, x), upper(tree[o]), bucket_links(tree, o)
            links[at + i] = space
            while i < n and np.uint64(tree[o + 1 + i]) <= end:
                i += 1
                links[at + i] = space
        else:
            set_link(t, cell, place, space)
            if place >= 0:
                # On through the table, as far as its slots have no nodes.
                shift, slots = np.uint64(tree[o] & 0xFF), np.int64(1) << (tree[o] >> 8 & 0xFF)
                slot = place - (2 * o + 4)
                while 0 < slot < slots and last < end and links[2 * o + 5 + slot] >= 0:
                    slot += 1
                    links[2 * o + 4 + slot] = space
                    last = bound if bound - last < one << shift else last + (one << shift)
        if last >= end:
            return
        x = last + one


@kernel
def paint(t, cell, begin, end, space):
    """Let positions begin … end lead to a space, wherever they led to."""
    if begin:
        add_border(t, cell, begin, np.uint64(0))
    if end != np.uint64(LAST):
        add_border(t, cell, end + np.uint64(1), begin)
    fill(t, cell, begin, end, space)


@kernel
def tidy_border(t, cell, b):
    """Forget the border at position b if it is none any more."""
    if b == 0:
        return
    link = get_root(t, cell)
    if locate(t.tree, t.links, link, b - np.uint64(1)) == locate(t.tree, t.links, link, b):
        drop_border(t, cell, b)
