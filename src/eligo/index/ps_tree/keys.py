"""Keys of `pst-hash`: spaces of several lines at once, and the blocks of the rules there (the PS-Tree paper §6.1).

    key      of one space: its number; its block is posting[space]
             of two: first << 32 | second
             of more, those behind the first in the order of their lines: a hash of all, with the highest bit set; the
             block has them all, and a hash that belongs to others is hashed again
    slots    key, block: open addressing, no tombstones
    extra    by space: the attributes of the spaces that follow it in keys, a bit out of 64 each
    uses     by space of a line of ranges: words[o] keys, room; then the keys of several spaces that it is part of

What is not in `extra` need not be looked for; and most spaces, which have few rules, are never the first of several.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import mixed
from eligo.index.ps_tree.lines import is_range
from eligo.index.ps_tree.pools import ACCESSES, KEYS, SLOTS, hashed
from eligo.index.ps_tree.postings import new_posting
from eligo.index.rows.allocator import give_block, heap_class, heap_words, move_block, take_block
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.jit import inline, kernel


@inline
def attribute_bit(attribute):
    return np.uint64(1) << ((np.uint64(attribute) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58))


@inline
def find_slot(slots, key):
    """Where a key lies among the slots, or -1."""
    mask, one = np.uint64(len(slots) // 2 - 1), np.uint64(1)
    at = hashed(key) & mask
    while True:
        there = slots[np.uint64(2) * at]
        if there == key:
            return np.int64(np.uint64(2) * at)
        if there == -1:
            return np.int64(-1)
        at = (at + one) & mask


@inline
def deep_key(spaces, n):
    h = np.uint64(n)
    for i in range(n):
        h = mixed(h, spaces[i])
    return np.int64(h | np.uint64(1 << 63))


@inline
def again(key):
    return np.int64(mixed(np.uint64(7), key) | np.uint64(1 << 63))


@inline
def is_of(words, o, spaces, n, most):
    """Whether a block of three spaces or more is of these."""
    for i in range(most):
        word = words[o + 3 + i // 2]
        if (upper(word) if i % 2 == 0 else lower(word)) != (spaces[i] if i < n else -1):
            return False
    return True


@inline
def next_turn(turn, counts, n):
    """Advances turn[:n] to the next combination of spaces; returns False after the last of them."""
    i = n - 1
    while i >= 0 and turn[i] + 1 == counts[i]:
        turn[i] = 0
        i -= 1
    if i < 0:
        return False
    turn[i] += 1
    return True


@inline
def find_block(t, spaces, n):
    """The block of some spaces, or 0, and their key."""
    if n == 1:
        return t.posting[spaces[0]], np.int64(spaces[0])
    key = np.int64(spaces[0]) << 32 | np.int64(spaces[1]) if n == 2 else deep_key(spaces, n)
    while True:
        at = find_slot(t.slots, key)
        if at < 0:
            return np.int64(0), key
        if n == 2 or is_of(t.words, t.slots[at + 1], spaces, n, t.state[ACCESSES]):
            return t.slots[at + 1], key
        key = again(key)


@kernel
def put_key(t, key, block):
    slots, one = t.slots, np.uint64(1)
    mask = np.uint64(len(slots) // 2 - 1)
    at = hashed(key) & mask
    while slots[np.uint64(2) * at] != -1:
        at = (at + one) & mask
    slots[np.uint64(2) * at], slots[np.uint64(2) * at + one] = key, block
    t.state[SLOTS] += 1


@kernel
def drop_key(t, key):
    """Forget a key; those behind it that were pushed on by it move up."""
    slots, one, two = t.slots, np.uint64(1), np.uint64(2)
    mask = np.uint64(len(slots) // 2 - 1)
    hole = np.uint64(find_slot(slots, key)) // two
    at = hole
    while True:
        at = (at + one) & mask
        there = slots[two * at]
        if there == -1:
            break
        home = hashed(there) & mask
        if (at - home) & mask >= (at - hole) & mask:
            slots[two * hole], slots[two * hole + one] = there, slots[two * at + one]
            hole = at
    slots[two * hole] = -1
    t.state[SLOTS] -= 1


@kernel
def add_use(t, s, key):
    words, o = t.words, t.uses[s]
    if o == 0:
        o = take_block(words, t.heads, 4)
        words[o] = pair(0, heap_words(heap_class(4)))
    count, room = upper(words[o]), lower(words[o])
    if count + 1 == room:
        o, room = move_block(words, t.heads, o, room, room, 2 * room), heap_words(heap_class(2 * room))
    words[o] = pair(count + 1, room)
    words[o + count + 1] = key
    t.uses[s] = o


@kernel
def drop_use(t, s, key):
    words, o = t.words, t.uses[s]
    count = upper(words[o])
    for i in range(1, count + 1):
        if words[o + i] == key:
            words[o + i] = words[o + count]
            words[o] = pair(count - 1, lower(words[o]))
            break
    if upper(words[o]) == 0:
        give_block(words, t.heads, o, lower(words[o]))
        t.uses[s] = 0


@kernel
def new_block(t, spaces, lines, n, key, size):
    """A block for rules of some spaces, on so many lines, with room for so many words of rows."""
    o = new_posting(t, key, size)
    if n == 1:
        t.posting[spaces[0]] = o
        return o
    if n > 2:
        most = t.state[ACCESSES]
        for i in range(0, most, 2):
            t.words[o + 3 + i // 2] = pair(spaces[i] if i < n else -1, spaces[i + 1] if i + 1 < n else -1)
    put_key(t, key, o)
    t.state[KEYS] += 1
    for i in range(n):
        if i:
            t.extra[spaces[0]] |= np.int64(attribute_bit(lines[i] >> 4))
        if is_range(lines[i] & 15):
            add_use(t, spaces[i], key)
    return o


@kernel
def moved_block(t, key, o):
    """Say where the block of a key lies now; -1: nowhere, of a key of one space."""
    if 0 <= key < 1 << 32:
        t.posting[key] = max(o, 0)
    else:
        t.slots[find_slot(t.slots, key) + 1] = o


@kernel
def drop_block(t, spaces, lines, n, key):
    """Forget the key of a block that is no more."""
    if n == 1:
        t.posting[spaces[0]] = 0
        return
    drop_key(t, key)
    t.state[KEYS] -= 1
    for i in range(n):
        if is_range(lines[i] & 15):
            drop_use(t, spaces[i], key)
