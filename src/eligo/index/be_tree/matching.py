"""Matching (be-tree.txt §6, Algorithms 1 and 2) as one loop over a stack of c-nodes.

A c-node on the stack stands beside the key of the p-node that led to it. Taken from the stack, its l-node is checked,
its p-directory is searched for the event's attributes, and the buckets within it that the event meets are put on the
stack. An attribute with several values, or a range of them, meets every bucket that one of them overlaps (§3).
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.index.be_tree.nodes import (
    BLOCK,
    CHILDREN,
    DIRECTORY,
    FILL,
    KEY,
    LEAF,
    PREFIX,
    SHAPE,
    TOP,
    find_partition,
    lower,
    unsigned,
    upper,
    within,
)
from eligo.index.dynamic.asking import ask_check
from eligo.index.dynamic.rows import (
    ANY,
    ASK,
    HEADER,
    LIST,
    LONG,
    check_words,
    high_of,
    low_of,
    row_words,
)
from eligo.index.dynamic.sight import ABSENT, FAILS, VARIOUS, see_keys
from eligo.jit import inline, kernel

LISTED, ASKING = LIST << 4, ASK << 4  # bits of a check's code
NOT_SIMPLE = LONG | LISTED | ASKING


@inline
def event_keys(s, n, keys):  # type: ignore[no-untyped-def]
    """The keys of p-nodes that an event with n attributes may go to; how many."""
    kinds, first, stop, entry_kind, present = s.kind, s.first, s.stop, s.entry_kind, s.present
    m = 0
    for i in range(n):
        a = np.int64(present[i])
        keys[m] = a << 3 | ANY
        m += 1
        if kinds[a] != VARIOUS:
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
def search_tree(t, e, event, s, strings, keys, stack, found, k, counters):  # type: ignore[no-untyped-def]
    """Put the conjunctions that an event satisfies into found from k on; where they end."""
    n = see_keys(e, event, s)
    m = event_keys(s, n, keys)
    cluster, partition, slot_key, slot_value, words = t.cluster, t.partition, t.slot_key, t.slot_value, t.words
    kinds, at, first, stop, entry_kind, lows, highs = s.kind, s.at, s.first, s.stop, s.entry_kind, s.low, s.high
    short = s.short
    candidates = evaluations = 0
    one, two = np.uint64(1), np.uint64(2)
    stack[0] = np.int64(-1) << 32
    depth = 1
    while depth > 0:
        depth -= 1
        key, c = upper(stack[depth]), lower(stack[depth])
        place = 8 * c
        # CheckSub: the rows of the l-node, one after the other.
        rows = upper(cluster[place + LEAF])
        if rows:
            candidates += rows
            # Unsigned places: a signed index costs a test for being negative.
            row = np.uint64(cluster[place + BLOCK])
            end = row + np.uint64(upper(cluster[place + FILL]))
            while row < end:
                q = row + np.uint64(HEADER)
                left = words[row + one] >> 32
                evaluations += left
                while left > 0:
                    code, bounds = words[q], words[q + one]
                    a = np.uint64(code >> 40)
                    kind = kinds[a]
                    if code & NOT_SIMPLE == 0 and kind < ABSENT:
                        value = short[a]
                        inside = (code & 15 == kind) & (bounds >> 32 <= value) & (value <= (bounds << 32) >> 32)
                        if np.int64(inside) == code >> 4 & 1:
                            break
                        q += two
                        left -= 1
                        continue
                    if kind == ABSENT:
                        answer = code >> 8 & codes.ABSENT_HOLDS
                    elif code & ASKING or kind == VARIOUS:
                        answer = ask_check(words, np.int64(q), s, e, strings)
                    else:
                        # One value, and an interval in two words or a list of intervals.
                        step = two if code & LONG else one
                        value = at[a] if code & LONG else short[a]
                        low = bounds if code & LONG else bounds >> 32
                        high = words[q + two] if code & LONG else (bounds << 32) >> 32
                        inside = (code & 15 == kind) & (low <= value) & (value <= high)
                        if inside and code & LISTED:
                            i, stop_at = q + one + step, q + np.uint64(check_words(code))
                            while i < stop_at and high_of(code, words, i) < value:
                                i += step
                            inside = i < stop_at and low_of(code, words, i) <= value
                        answer = np.int64(inside) ^ (code >> 4 & 1)
                    if answer == FAILS:
                        break
                    q += np.uint64(check_words(code))
                    left -= 1
                if left == 0:
                    found[k] = words[row] >> 32
                    k += 1
                evaluations -= left - (left > 0)
                row += np.uint64(row_words(words[row]))
        # SearchPDir: by the directory's p-nodes or by the event's attributes, whichever are fewer.
        p, count = upper(cluster[place + DIRECTORY]), lower(cluster[place + DIRECTORY])
        if count > m:
            for i in range(m):
                p = find_partition(slot_key, slot_value, c, keys[i])
                if p >= 0:
                    stack[depth] = keys[i] << 32 | upper(partition[4 * p + TOP])
                    depth += 1
        else:
            while p >= 0:
                mine = upper(partition[4 * p + KEY])
                kind, wanted = kinds[mine >> 3], mine & 7
                there = kind == wanted or (wanted == ANY and kind != ABSENT)
                if kind == VARIOUS and not there:
                    for j in range(first[mine >> 3], stop[mine >> 3]):
                        there = there or entry_kind[j] == wanted
                if there:
                    stack[depth] = mine << 32 | upper(partition[4 * p + TOP])
                    depth += 1
                p = lower(partition[4 * p + TOP])
        # SearchCDir: the halves that the event meets.
        children = cluster[place + CHILDREN]
        if children == -1:
            continue
        a = key >> 3
        for side in range(2):
            child = lower(children) if side else upper(children)
            if child < 0:
                continue
            prefix, bits = cluster[8 * child + PREFIX], cluster[8 * child + SHAPE] & 0xFF
            if kinds[a] != VARIOUS:
                meets = within(unsigned(at[a]), prefix, bits)
            else:
                low = np.uint64(prefix)
                high = low | (~np.uint64(0) >> np.uint64(bits)) if bits < 64 else low
                meets = False
                for j in range(first[a], stop[a]):
                    if entry_kind[j] == key & 7:
                        meets = meets or (unsigned(lows[j]) <= high and low <= unsigned(highs[j]))
            if meets:
                stack[depth] = key << 32 | child
                depth += 1
    counters[0] += candidates
    counters[1] += evaluations
    return k


@kernel
def search_one(t, e, event, s, strings, keys, stack, found, counters):  # type: ignore[no-untyped-def]
    return search_tree(t, e, event, s, strings, keys, stack, found, 0, counters)


@kernel
def search_many(t, e, first, stop, s, strings, keys, stack, found, counters, most, offsets):  # type: ignore[no-untyped-def]
    """Events first … stop-1 as far as there is room for `most` conjunctions each; the first event not done."""
    k = 0
    offsets[0] = 0
    event = first
    while event < stop and len(found) - k >= most:
        k = search_tree(t, e, event, s, strings, keys, stack, found, k, counters)
        event += 1
        offsets[event - first] = k
    return event
