"""Signatures of spaces (the PS-Tree paper §5.1): a Bloom filter over the rules that have a predicate covering the
space.

    signature    words[o]       log2 of its words, rules that have gone since it was built
                 words[o+1 …]   64 bits each; a rule has three bits of one of them
    members      words[o]       rules, words of the block; then the rules, two to a word

A rule is known here by where its row lies, halved: link. Filters cannot be emptied or widened, so the members are
kept; the filter is built anew once it has too few bits for them (8 a rule; 16 when built), or half of them have gone.
Signature 0 is that of no rule: words[0] is 0; and words[1], all ones, stands for that of all.
"""

from __future__ import annotations

import numpy as np

from eligo.index.rows.allocator import give_block, heap_class, heap_words, move_block, take_block
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.jit import inline, kernel


@inline
def spread(link):
    """A rule's hash: the upper half says which word."""
    h = np.uint64(link) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@inline
def bits_of_rule(h):
    one, six = np.uint64(1), np.uint64(63)
    return one << (h & six) | one << (h >> np.uint64(6) & six) | one << (h >> np.uint64(12) & six)


@inline
def add_bits(words, o, size, link):
    h = spread(link)
    at = o + 1 + np.int64(h >> np.uint64(20) & np.uint64(size - 1))
    words[at] = np.int64(np.uint64(words[at]) | bits_of_rule(h))


@kernel
def build_signature(t, s):
    """Build the filter of a space from its members."""
    words, halves = t.words, t.halves
    old, m = t.extra[s], t.uses[s]
    if old:
        give_block(words, t.heads, old, 1 + (1 << upper(words[old])))
    count = upper(words[m])
    k = 0
    while 4 << k < count:
        k += 1
    o = take_block(words, t.heads, 1 + (1 << k))
    words[o] = pair(k, 0)
    for i in range(1 << k):
        words[o + 1 + i] = 0
    for i in range(count):
        add_bits(words, o, 1 << k, halves[2 * (m + 1) + i])
    t.extra[s] = o


@kernel
def add_member(t, s, link):
    """Let a rule be in the signature of a space."""
    words = t.words
    m = t.uses[s]
    if m == 0:
        m = take_block(words, t.heads, 2)
        words[m] = pair(0, heap_words(heap_class(2)))
        t.uses[s] = m
    count, room = upper(words[m]), lower(words[m])
    if count == 2 * (room - 1):
        size = room + max(room // 4, 2)
        m, room = move_block(words, t.heads, m, room, room, size), heap_words(heap_class(size))
        t.uses[s] = m
    t.halves[2 * (m + 1) + count] = link
    words[m] = pair(count + 1, room)
    o = t.extra[s]
    if o == 0 or count + 1 > 8 << upper(words[o]):
        build_signature(t, s)
    else:
        add_bits(words, o, 1 << upper(words[o]), link)


@kernel
def drop_member(t, s, link):
    """Take a rule out of the signature of a space."""
    words, halves, m = t.words, t.halves, t.uses[s]
    if m == 0:
        return
    count, first = upper(words[m]), 2 * (m + 1)
    for i in range(count - 1, -1, -1):
        if halves[first + i] == link:
            halves[first + i] = halves[first + count - 1]
            count -= 1
            words[m] = pair(count, lower(words[m]))
            words[t.extra[s]] += 1
            break
    if count == 0:
        give_block(words, t.heads, m, lower(words[m]))
        give_block(words, t.heads, t.extra[s], 1 + (1 << upper(words[t.extra[s]])))
        t.uses[s] = t.extra[s] = 0
    elif lower(words[t.extra[s]]) > count:
        build_signature(t, s)
