"""Matching (be-tree.txt §6, Algorithms 1 and 2) in two loops: which l-nodes an event comes to, which rows there hold.

A c-node on the stack stands beside the key of the p-node that led to it. Taken from the stack, its l-node is noted, its
p-directory is searched for the event's attributes, and the buckets within it that the event meets are put on the stack.
An attribute with several values, or a range of them, meets every bucket that one of them overlaps (§3).

Much of the time would go into waiting for memory. So a c-node is asked for when it goes onto the stack, an l-node's
first rows when it is noted, and by the time that they are looked at they are there.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.index.be_tree.blocks import bits_of_cluster
from eligo.index.be_tree.directories import find_partition
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
    lower,
    unsigned,
    upper,
    within,
)
from eligo.index.dynamic.asking import ask_check
from eligo.index.dynamic.line import ANY, BITS, SEVERAL
from eligo.index.dynamic.pool import prefetch
from eligo.index.dynamic.rows import (
    ASK,
    ATTRIBUTE,
    DISTANCES,
    LIST,
    LONG,
    PLACE,
    PLACES,
    TINY_ATTRIBUTES,
    check_words,
    first_check,
    row_words,
    words_in_use,
)
from eligo.index.dynamic.sight import ABSENT, FAILS, VARIOUS, see_keys
from eligo.jit import inline, kernel

LISTED, ASKING = LIST << 4, ASK << 4  # bits of a check's code
AHEAD = 64  # words before a row is looked at that the cache is told of it
WATCH = 16  # one event of so many is watched: its attributes, and where its evaluations were wasted


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
def find_leaves(t, s, m, keys, stack):  # type: ignore[no-untyped-def]
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
                    there = kind == wanted or (wanted == ANY and kind != ABSENT)
                    if kind == VARIOUS and not there:
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
        if kinds[a] != VARIOUS:
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
def search_tree(t, e, event, s, strings, keys, stack, found, k, counters):  # type: ignore[no-untyped-def]
    """Put the conjunctions that an event satisfies into found from k on; where they end."""
    n = see_keys(e, event, s)
    m = event_keys(s, n, keys)
    leaves = find_leaves(t, s, m, keys, stack)
    cluster, words, places, kinds, at = t.cluster, t.words, s.place, s.kind, s.at
    watched, single = s.count[1] % WATCH == 0, s.count[2] == 0
    candidates = evaluations = np.int64(0)
    begin = k
    one, two, fields, mask = np.uint64(1), np.uint64(2), np.uint64(TINY_ATTRIBUTES - 1), np.uint64(DISTANCES)
    attribute, lowest, all_places = np.uint64(ATTRIBUTE), np.uint64(PLACE), np.uint64(PLACES)
    bottom = np.uint64(len(stack) - 1)
    for leaf in range(np.int64(leaves)):
        c = stack[bottom - np.uint64(leaf)]
        place = np.uint64(8 * c)
        candidates += upper(cluster[place + np.uint64(LEAF)])
        # CheckSub: the rows of the l-node, one after the other.
        row = np.uint64(cluster[place + np.uint64(BLOCK)])
        end = row + np.uint64(upper(cluster[place + np.uint64(FILL)]))
        wasted = evaluations
        while row < end:
            head = np.uint64(words[row])
            prefetch(words, row + np.uint64(AHEAD))
            q, size, plain = row + one, head & np.uint64(0xFFF), head >> np.uint64(24) & np.uint64(0xFF)
            stop = q + (head >> np.uint64(12) & np.uint64(0xFFF))
            if size == 0:  # a large row
                size = np.uint64(row_words(words, np.int64(row)))
                q = np.uint64(first_check(words, np.int64(row)))
                stop = q + np.uint64(words_in_use(words, np.int64(row)))
            row += size
            if not single:
                stop = row  # a range comes to buckets that it does not lie in whole: nothing is guaranteed
            mark = evaluations
            # The narrowest check, which fails most often, by itself; in a row without plain ones this is another word.
            word = np.uint64(words[q])
            off = np.uint64(places[word >> attribute & fields]) - (word >> lowest & all_places)
            if off > word & mask and plain and single:
                evaluations += 1
                continue
            # Plain checks, eight at once without a branch; what lies behind them is looked at too and forgotten.
            failed = np.uint64(0)
            while True:
                for i in range(8):
                    word = np.uint64(words[q + np.uint64(i)])
                    off = np.uint64(places[word >> attribute & fields]) - (word >> lowest & all_places)
                    failed |= np.uint64(off > word & mask) << np.uint64(i)
                if plain <= np.uint64(8):
                    failed &= (one << plain) - one
                    evaluations += np.int64(plain)
                    q += plain
                    break
                evaluations += 8
                if failed:
                    break
                q += np.uint64(8)
                plain -= np.uint64(8)
            if failed:
                if single:
                    continue
                q = row - size + one  # one by one, because some attribute has several values
            while q < stop:
                word = np.uint64(words[q])
                evaluations += 1
                if word >> np.uint64(63):
                    value = np.uint64(places[word >> attribute & fields])
                    off = value - (word >> lowest & all_places)
                    if off <= word & mask:
                        q += one
                        if word >> np.uint64(62) == one + two:
                            step = np.uint64(word >> np.uint64(PLACE + BITS) & one == 0)  # NUMBER or STRING
                            if off & step or np.uint64(words[q]) >> (off >> step) & one == 0:
                                q -= one
                                break
                            q += one
                        continue
                    if value != np.uint64(SEVERAL) or ask_check(words, np.int64(q), s, e, strings) == FAILS:
                        break
                    q += np.uint64(check_words(np.int64(word)))
                    continue
                # Not tiny. A place tells the kind of value too.
                code, length = np.int64(word), np.uint64(check_words(np.int64(word)))
                a = word >> np.uint64(40)
                if kinds[a] == ABSENT:
                    if code >> 8 & codes.ABSENT_HOLDS == 0:
                        break
                elif code & ASKING or kinds[a] == VARIOUS:
                    if ask_check(words, np.int64(q), s, e, strings) == FAILS:
                        break
                elif code & LONG == 0:
                    value, bounds = np.uint64(places[a]), np.uint64(words[q + one])
                    inside = bounds >> np.uint64(32) <= value and value <= bounds & np.uint64(0xFFFF_FFFF)
                    if inside and code & LISTED:
                        i, last = q + two, q + length
                        while i < last and np.uint64(words[i]) & np.uint64(0xFFFF_FFFF) < value:
                            i += one
                        inside = i < last and np.uint64(words[i]) >> np.uint64(32) <= value
                    if np.int64(inside) == code >> 4 & 1:
                        break
                else:
                    number = at[a]
                    inside = code & 15 == kinds[a] and words[q + one] <= number and number <= words[q + two]
                    if inside and code & LISTED:
                        i, last = q + two + one, q + length
                        while i < last and words[i + one] < number:
                            i += two
                        inside = i < last and words[i] <= number
                    if np.int64(inside) == code >> 4 & 1:
                        break
                q += length
            if q == stop:
                found[k] = head >> np.uint64(32)
                k += 1
                wasted += evaluations - mark
        if watched:
            cluster[place + np.uint64(SHAPE)] += (evaluations - wasted) << 32
    if watched:
        note_keys(t, m, keys)
        t.state[WATCHED] += 1
        t.state[SATISFIED] += k - begin
    counters[0] += candidates
    counters[1] += evaluations
    return k


@inline
def note_keys(t, m, keys):  # type: ignore[no-untyped-def]
    """Note the keys of an event. Several searches may do so at once, and a count that gets lost does no harm."""
    seen = t.seen
    for i in range(m):
        seen[keys[i]] += 1
    t.state[EVENTS] += 1


@kernel
def observe_events(t, e, events, s, keys):  # type: ignore[no-untyped-def]
    """Note the keys of events that nobody searches for."""
    for event in range(events):
        note_keys(t, event_keys(s, see_keys(e, event, s), keys), keys)


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
