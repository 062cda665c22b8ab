"""The inner nodes of PS-Trees (the PS-Tree paper §4.1): from a position on a line to the space that it lies in.

A line is the ordered set of values of one kind, each a position of 64 bits (lines.py). The paper's inner node has a
link for each element, a group of bits, and three more: to the spaces below, at and above its value. On a line of
positions a space is known by where it begins, so that below, at and above v are what begins at or before v - 1, v and
v + 1; and instead of an array for each element of each value there are two kinds of node, as wide as what they hold.

    link      of a space: its number; of a node: ~(where it begins / 2)
    table     tree[o]      count << 32 | log2 of the count when built << 16 | k << 8 | shift
              tree[o+1]    base; then links: below the base, 2^k slots of 2^shift positions each, above the last slot
    bucket    tree[o]      count << 32 | BUCKET << 8 | room
              tree[o+1 …]  so many positions, ascending; then links: before the first, and from each on

A few small whole numbers so become a table with a slot for each, and one step finds the space. A bucket that overflows
is built anew as a table, together with the tables above it that have doubled since they were built: no sequence of
positions makes the tree deep. `count` is of borders, about: it decides when to build, and nothing else.

    cell      of a line: where its root link lies. From 0 on: root[cell], of an attribute's line; below: the second half
              of the last word of space ~cell, which stands for a layer of strings (string_trie.py)
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import grown
from eligo.index.rows.allocator import give_block, take_block
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.jit import inline, kernel, leading_zeros

BUCKET = 255
FULL = 8  # positions of a bucket
DIRECT = 8  # log2 of the slots that a table may have for nothing: one for each position, where positions lie close
LAST = 0xFFFF_FFFF_FFFF_FFFF  # position
LOW, LINKS, COUNTS, SEEN = 0, 1, 2, 3  # words of a space (spaces.py)


@inline
def get_root(t, cell):
    return np.int64(t.root[cell]) if cell >= 0 else lower(t.space[4 * ~cell + SEEN])


@inline
def set_link(t, cell, place, link):
    """Change the link at a place, -1: the root of the line."""
    if place >= 0:
        t.links[place] = link
    elif cell >= 0:
        t.root[cell] = link
    else:
        t.space[4 * ~cell + SEEN] = pair(upper(t.space[4 * ~cell + SEEN]), link)


@inline
def locate(tree, links, link, x):
    """MatchPair (Algorithm 3): the space that position x lies in, in the tree that a link leads to."""
    one = np.uint64(1)
    while link < 0:
        o = np.uint64(2 * ~np.int64(link))
        head = np.uint64(tree[o])
        k, shift = head >> np.uint64(8) & np.uint64(0xFF), head & np.uint64(0xFF)
        if k == np.uint64(BUCKET):
            i, n = np.uint64(0), head >> np.uint64(32)
            while i < n and np.uint64(tree[o + one + i]) <= x:
                i += one
            return np.int64(links[np.uint64(2) * (o + one + shift) + i])
        base, slots = np.uint64(tree[o + one]), one << k
        slot = np.uint64(0)
        if x >= base:
            slot = min((x - base) >> shift, slots) + one
        link = np.int64(links[np.uint64(2) * (o + np.uint64(2)) + slot])
    return np.int64(link)


@inline
def step(tree, links, o, x, first, last):
    """In the table at o: the place of the link for x, and the first and last position that it is for, out of those that
    the table is for.
    """
    head, one = np.uint64(tree[o]), np.uint64(1)
    k, shift = head >> np.uint64(8) & np.uint64(0xFF), head & np.uint64(0xFF)
    base, place = np.uint64(tree[o + 1]), np.int64(2 * o + 4)
    if x < base:
        return place, first, base - one
    slot = (x - base) >> shift
    if slot >= one << k:
        end = base + ((one << k) << shift)
        return place + 1 + np.int64(one << k), end, last
    begin = base + (slot << shift)
    end = begin + ((one << shift) - one)
    return place + 1 + np.int64(slot), begin, last if end < begin else min(end, last)


@inline
def is_bucket(head):
    return head >> 8 & 0xFF == BUCKET


@inline
def keys_up_to(tree, o, x):
    """How many positions of the bucket at o are at or below x."""
    i, n = np.int64(0), upper(tree[o])
    while i < n and np.uint64(tree[o + 1 + i]) <= x:
        i += 1
    return i


@inline
def bucket_links(tree, o):
    return 2 * (o + 1 + (tree[o] & 0xFF))


@kernel
def stretch(tree, links, link, x):
    """The space at x, and a position up to which it goes on at least."""
    first, last = np.uint64(0), np.uint64(LAST)
    while link < 0:
        o = 2 * ~np.int64(link)
        if is_bucket(tree[o]):
            i = keys_up_to(tree, o, x)
            end = last if i == upper(tree[o]) else np.uint64(tree[o + 1 + i]) - np.uint64(1)
            return np.int64(links[bucket_links(tree, o) + i]), end
        place, first, last = step(tree, links, o, x, first, last)
        link = np.int64(links[place])
    return np.int64(link), last


@inline
def node_words(head):
    k = head >> 8 & 0xFF
    return 1 + (head & 0xFF) + ((head & 0xFF) + 2) // 2 if k == BUCKET else 2 + ((1 << k) + 2) // 2


@kernel
def new_bucket(t, room, count, link):
    o = take_block(t.tree, t.tree_heads, 1 + room + (room + 2) // 2)
    t.tree[o] = np.int64(count) << 32 | BUCKET << 8 | room
    t.links[2 * (o + 1 + room)] = link
    return o


@kernel
def free_tree(t, link):
    """Give back all nodes that a link leads to."""
    waiting, n = np.empty(64, np.int64), 1
    waiting[0] = link
    while n:
        n -= 1
        link = waiting[n]
        if link >= 0:
            continue
        o = 2 * ~link
        head = t.tree[o]
        if not is_bucket(head):
            slots = (1 << (head >> 8 & 0xFF)) + 2
            waiting = grown(waiting, n + slots)
            for i in range(2 * o + 4, 2 * o + 4 + slots):
                if t.links[i] < 0:
                    waiting[n] = t.links[i]
                    n += 1
        give_block(t.tree, t.tree_heads, o, node_words(head))


@kernel
def borders_of(t, link, first, last):
    """Where spaces begin in the tree of a link behind position `first` and up to `last`, which is what the link is for:
    positions, spaces, the space at `first`, how many. Slots of a table may reach further; what they say there is void.
    """
    keys, spaces, n = np.empty(64, np.uint64), np.empty(64, np.int64), 0
    space, end = stretch(t.tree, t.links, link, first)
    before = space
    while end < last:
        x = end + np.uint64(1)
        following, end = stretch(t.tree, t.links, link, x)
        if following != space:
            keys, spaces = grown(keys, n + 1), grown(spaces, n + 1)
            keys[n], spaces[n] = x, following
            n += 1
        space = following
    return keys, spaces, before, n


@inline
def bits(word):
    """Bits that a number takes."""
    return np.int64(64) - np.int64(leading_zeros(word)) if word else np.int64(0)


@kernel
def build_tree(t, keys, spaces, n, before):
    """A tree for n borders in ascending order; its link. From keys[i] on lies spaces[i], and `before` ahead of all."""
    tree, links = t.tree, t.links
    waiting, waits = np.empty(1024, np.int64), 1  # four words each: first and last border, leaf, place of the link
    waiting[0], waiting[1], waiting[2], waiting[3] = 0, n, before, -1
    root = np.int64(before)
    while waits:
        waits -= 1
        at = 4 * waits
        begin, end, leaf, place = waiting[at], waiting[at + 1], waiting[at + 2], waiting[at + 3]
        count = end - begin
        if count == 0:
            link = np.int64(leaf)
        elif count <= FULL:
            room = 2 if count <= 2 else 4 if count <= 4 else FULL
            o = new_bucket(t, room, count, leaf)
            for i in range(count):
                tree[o + 1 + i] = np.int64(keys[begin + i])
                links[2 * (o + 1 + room) + 1 + i] = spaces[begin + i]
            link = ~(o // 2)
        else:
            base, width = keys[begin], keys[end - 1] - keys[begin]
            k = bits(width)
            if k > DIRECT and width >= np.uint64(4 * count):
                k = min(max(bits(np.uint64(count)) - 1, 4), 16)
            shift = np.uint64(max(0, bits(width) - k))
            slots = np.int64(1) << k
            o = take_block(tree, t.tree_heads, 2 + (slots + 2) // 2)
            tree[o] = np.int64(count) << 32 | bits(np.uint64(count)) << 16 | k << 8 | np.int64(shift)
            tree[o + 1] = np.int64(base)
            link = ~(o // 2)
            at = 2 * o + 4
            links[at] = leaf
            i = begin
            for slot in range(slots):
                start = base + (np.uint64(slot) << shift)
                if i < end and keys[i] == start:
                    leaf = spaces[i]
                    i += 1
                j = i
                while j < end and (keys[j] - base) >> shift == np.uint64(slot):
                    j += 1
                links[at + 1 + slot] = leaf
                if j > i:
                    waiting = grown(waiting, 4 * waits + 4)
                    top = 4 * waits
                    waiting[top], waiting[top + 1], waiting[top + 2], waiting[top + 3] = i, j, leaf, at + 1 + slot
                    waits += 1
                    leaf = spaces[j - 1]
                i = j
            links[at + 1 + slots] = leaf
        if place < 0:
            root = link
        else:
            links[place] = link
    return root
