"""Matching (the BE-Tree paper §6, Algorithms 1 and 2) in two loops: which l-nodes an event comes to, which rows
there hold.

A c-node on the stack stands beside the key of the p-node that led to it. Taken from the stack, its l-node is noted, its
p-directory is searched for the event's attributes, and the buckets within it that the event meets are put on the stack.
An attribute with several values, or a range of them, meets every bucket that one of them overlaps (§3).

Much of the time would go into waiting for memory. So a c-node is asked for when it goes onto the stack, an l-node's
first rows when it is noted, and by the time that they are looked at they are there.
"""

from __future__ import annotations

import numpy as np

from eligo.index.be_tree.blocks import bits_of_cluster, find_partition
from eligo.index.be_tree.nodes import (
    BLOCK,
    CHILDREN,
    DIRECTORY,
    EVENTS,
    FILL,
    LEAF,
    PREFIX,
    SATISFIED,
    SHAPE,
    TOP,
    WATCHED,
    within,
)
from eligo.index.rows.content import searching_rows
from eligo.index.rows.event_view import KIND_ABSENT, KIND_VARIOUS, view_event
from eligo.index.rows.growable import prefetch
from eligo.index.rows.int_pair import lower, upper
from eligo.index.rows.line import ANY, unsigned
from eligo.index.rows.verify import AHEAD, EVENTS_SEARCHED, verify_rows
from eligo.jit import handle, inline, kernel

WATCH = 16  # one event of so many is watched: its attributes, and where its evaluations were wasted


@inline
def event_keys(s, n, keys):
    """The keys of p-nodes that an event with n attributes may go to; how many."""
    kinds, first, stop, entry_kind, present = s.kind, s.first, s.stop, s.entry_kind, s.present
    m = 0
    for i in range(n):
        a = np.int64(present[i])
        keys[m] = a << 3 | ANY
        m += 1
        if kinds[a] != KIND_VARIOUS:
            keys[m] = a << 3 | kinds[a]
            m += 1
            continue
        seen = 0
        for j in range(first[a], stop[a]):
            if seen >> entry_kind[j] & 1 == 0:
                seen |= 1 << entry_kind[j]
                keys[m] = a << 3 | entry_kind[j]
                m += 1
    return m


@inline
def find_leaves(t, s, m, keys, stack):
    """MatchBETree and SearchCDir (Algorithms 1 and 2): the c-nodes with rows that an event comes to, at the end of the
    stack, last one first; how many.
    """
    cluster, words, crown = t.cluster, t.words, t.crown
    kinds, at, first, stop, entry_kind, lows, highs = s.kind, s.at, s.first, s.stop, s.entry_kind, s.low, s.high
    leaves = np.uint64(0)
    last = np.uint64(len(stack) - 1)
    one = np.uint64(1)
    depth = np.uint64(0)
    # The root: its p-directory by key.
    if upper(cluster[LEAF]):
        stack[last] = 0
        leaves += one
    for i in range(m):
        top = np.int64(crown[np.uint64(keys[i])]) - 1
        if top >= 0:
            prefetch(cluster, np.uint64(8 * top))
            stack[depth] = keys[i] << 32 | top
            depth += one
    while depth > 0:
        depth -= one
        key, c = stack[depth] >> 32, stack[depth] & 0xFFFF_FFFF
        place = np.uint64(8 * c)
        if upper(cluster[place + np.uint64(LEAF)]):
            for line in range(0, AHEAD, 8):
                prefetch(words, np.uint64(cluster[place + np.uint64(BLOCK)] + line))
            stack[last - leaves] = c
            leaves += one
        directory = cluster[place + np.uint64(DIRECTORY)]
        if directory:
            # SearchPDir: by the directory's p-nodes or by the event's attributes, whichever are fewer.
            entry, count = np.uint64(upper(directory)), lower(directory)
            if count > 4 * m:
                for i in range(m):
                    p = find_partition(t, c, keys[i])
                    if p >= 0:
                        top = t.partition[4 * p + TOP]
                        prefetch(cluster, np.uint64(8 * top))
                        stack[depth] = keys[i] << 32 | top
                        depth += one
            else:
                for _ in range(count):
                    mine = words[entry] >> 32
                    entry += one
                    kind, wanted = kinds[np.uint64(mine >> 3)], mine & 7
                    there = kind == wanted or (wanted == ANY and kind != KIND_ABSENT)
                    if kind == KIND_VARIOUS and not there:
                        for j in range(first[mine >> 3], stop[mine >> 3]):
                            there = there or entry_kind[j] == wanted
                    if there:
                        top = words[entry - one] & 0xFFFF_FFFF
                        prefetch(cluster, np.uint64(8 * top))
                        stack[depth] = mine << 32 | top
                        depth += one
        children = cluster[place + np.uint64(CHILDREN)]
        if children == -1:
            continue
        # SearchCDir: the halves that the event meets.
        a = np.uint64(key >> 3)
        if kinds[a] != KIND_VARIOUS:
            value = unsigned(at[a])
            bits = bits_of_cluster(cluster[place + np.uint64(SHAPE)])
            child = lower(children) if value >> np.uint64(63 - bits) & one else upper(children)
            if child >= 0:
                # It may skip halves, and lie elsewhere.
                record = np.uint64(8 * child)
                deep = bits_of_cluster(cluster[record + np.uint64(SHAPE)])
                if within(value, cluster[record + np.uint64(PREFIX)], deep):
                    stack[depth] = key << 32 | child
                    depth += one
            continue
        for side in range(2):
            child = lower(children) if side else upper(children)
            if child < 0:
                continue
            prefix, bits = cluster[8 * child + PREFIX], bits_of_cluster(cluster[8 * child + SHAPE])
            low = np.uint64(prefix)
            high = low | (~np.uint64(0) >> np.uint64(bits)) if bits < 64 else low
            meets = False
            for j in range(first[a], stop[a]):
                if entry_kind[j] == key & 7:
                    meets = meets or (unsigned(lows[j]) <= high and low <= unsigned(highs[j]))
            if meets:
                stack[depth] = key << 32 | child
                depth += one
    return leaves


@inline
def search_tree(t, e, event, s, strings, w, found, k, counters):
    """Put the conjunctions that an event satisfies into found from k on; where they end."""
    keys, stack, starts, ends = w.keys, w.stack, w.starts, w.ends
    n = view_event(e, event, s, len(t.popular) >> 3)
    m = event_keys(s, n, keys)
    leaves = np.int64(find_leaves(t, s, m, keys, stack))
    cluster, bottom, begin = t.cluster, np.uint64(len(stack) - 1), k
    for leaf in range(leaves):
        place = np.uint64(8 * stack[bottom - np.uint64(leaf)])
        counters[0] += upper(cluster[place + np.uint64(LEAF)])
        starts[leaf] = cluster[place + np.uint64(BLOCK)]
        ends[leaf] = starts[leaf] + upper(cluster[place + np.uint64(FILL)])
    # CheckSub. A range comes to buckets that it does not lie in whole: then nothing is guaranteed.
    k = verify_rows(t.words, starts, ends, leaves, s.count[1] == 0, s, e, strings, found, k, counters)
    counters[EVENTS_SEARCHED] += 1
    if counters[EVENTS_SEARCHED] % WATCH == 0:
        for leaf in range(leaves):
            cluster[8 * stack[bottom - np.uint64(leaf)] + SHAPE] += starts[leaf] << 32
        note_keys(t, m, keys)
        t.state[WATCHED] += 1
        t.state[SATISFIED] += k - begin
    return k


@inline
def note_keys(t, m, keys):
    """Note the keys of an event. Several searches may do so at once, and a count that gets lost does no harm."""
    seen = t.seen
    for i in range(m):
        seen[keys[i]] += 1
    t.state[EVENTS] += 1


@kernel
def observe_events(t, e, events, s, keys):
    """Note the keys of events that nobody searches for."""
    for event in range(events):
        note_keys(t, event_keys(s, view_event(e, event, s, len(t.popular) >> 3), keys), keys)


# What a search writes to, as one argument of kernels.
make_work = handle("TreeWork", ("keys", "stack", "starts", "ends"))

search_many = searching_rows(search_tree)
