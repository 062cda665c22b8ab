"""Verification: which of some rows does an event satisfy? One stretch of rows after the other.

Most of the time would go into waiting for memory. So stretches are asked for a few before they are looked at, and
within a stretch what lies AHEAD. In a row the plain checks are looked at eight at once, without a branch.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.index.rows.event_view import FAILS, KIND_ABSENT, KIND_VARIOUS
from eligo.index.rows.growable import prefetch
from eligo.index.rows.line import BITS, SEVERAL, STRING
from eligo.index.rows.packed_predicate import (
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
from eligo.index.rows.slow_path import ask_check
from eligo.jit import inline

LISTED, ASKING = LIST << 4, ASK << 4  # bits of a check's code
EVENTS_SEARCHED = 2  # of the counters, behind candidates and evaluations
AHEAD = 64  # words before a row is looked at that the cache is told of it
STRETCHES = 8  # and stretches


@inline
def verify_rows(words, starts, ends, count, single, s, e, strings, found, k, counters):
    """Put the conjunctions that an event satisfies, out of the row at words[starts[i]] and those behind it up to
    ends[i], into found from k on; where they end. Not `single`: checks that are guaranteed are looked at too.
    starts[i] then says how many checks of rows that were not satisfied were looked at.
    """
    places, kinds, at = s.place, s.kind, s.at
    evaluations = np.int64(0)
    one, two, four = np.uint64(1), np.uint64(2), np.uint64(4)
    fields, mask = np.uint64(TINY_ATTRIBUTES - 1), np.uint64(DISTANCES)
    attribute, lowest, all_places = np.uint64(ATTRIBUTE), np.uint64(PLACE), np.uint64(PLACES)
    line = np.uint64(8)
    for i in range(min(count, STRETCHES)):
        for j in range(3):
            prefetch(words, np.uint64(starts[i]) + np.uint64(j) * line)
    for i in range(count):
        if i + STRETCHES < count:
            coming, until = np.uint64(starts[i + STRETCHES]), np.uint64(ends[i + STRETCHES])
            prefetch(words, coming)
            prefetch(words, coming + line)
            prefetch(words, coming + two * line)
            if until > coming + np.uint64(24):
                for j in range(3, AHEAD // 8):
                    prefetch(words, coming + np.uint64(j) * line)
        row, end = np.uint64(starts[i]), np.uint64(ends[i])
        more, wasted = True, evaluations
        while more:
            head = np.uint64(words[row])
            if end > row + np.uint64(AHEAD):
                prefetch(words, row + np.uint64(AHEAD))
                prefetch(words, row + np.uint64(AHEAD) + line)
            mark = evaluations
            q, size, plain = row + one, head & np.uint64(0xFFF), head >> np.uint64(24) & np.uint64(0xFF)
            stop = q + (head >> np.uint64(12) & np.uint64(0xFFF))
            if size == 0:  # a large row
                size = np.uint64(row_words(words, np.int64(row)))
                q = np.uint64(first_check(words, np.int64(row)))
                stop = q + np.uint64(words_in_use(words, np.int64(row)))
            row += size
            more = row < end
            if not single:
                stop = row
            # The narrowest check, which fails most often, by itself; in a row without plain ones this is another word.
            word = np.uint64(words[q])
            off = np.uint64(places[word >> attribute & fields]) - (word >> lowest & all_places)
            if plain == one and (single or off <= word & mask):
                evaluations += 1
                if off > word & mask:
                    continue
                q += one
            elif plain:
                if off > word & mask and single:
                    evaluations += 1
                    continue
                # Plain checks, eight at once without a branch; what lies behind them is looked at too and forgotten.
                failed = np.uint64(0)
                while True:
                    for j in range(8):
                        word = np.uint64(words[q + np.uint64(j)])
                        off = np.uint64(places[word >> attribute & fields]) - (word >> lowest & all_places)
                        failed |= np.uint64(off > word & mask) << np.uint64(j)
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
                if kinds[a] == KIND_ABSENT:
                    if code >> 8 & codes.ABSENT_HOLDS == 0:
                        break
                elif code & ASKING or kinds[a] == KIND_VARIOUS:
                    if code & 15 == STRING and kinds[a] == STRING and length > np.uint64(4):
                        # No need to ask where the first eight bytes tell that the string lies below or above all runs.
                        prefix, least, most = s.prefix[a], words[q + two + four], words[q + length - one]
                        if prefix < least or prefix > most:
                            break
                        if least < prefix < most and length == np.uint64(10) and code >> 8 & codes.RESIDUAL == 0:
                            q += length
                            continue
                    if ask_check(words, np.int64(q), s, e, strings) == FAILS:
                        break
                elif code & LONG == 0:
                    value, bounds = np.uint64(places[a]), np.uint64(words[q + one])
                    inside = bounds >> np.uint64(32) <= value and value <= bounds & np.uint64(0xFFFF_FFFF)
                    if inside and code & LISTED:
                        p, last = q + two, q + length
                        while p < last and np.uint64(words[p]) & np.uint64(0xFFFF_FFFF) < value:
                            p += one
                        inside = p < last and np.uint64(words[p]) >> np.uint64(32) <= value
                    if np.int64(inside) == code >> 4 & 1:
                        break
                else:
                    number = at[a]
                    inside = code & 15 == kinds[a] and words[q + one] <= number and number <= words[q + two]
                    if inside and code & LISTED:
                        p, last = q + two + one, q + length
                        while p < last and words[p + one] < number:
                            p += two
                        inside = p < last and words[p] <= number
                    if np.int64(inside) == code >> 4 & 1:
                        break
                q += length
            if q == stop:
                found[k] = head >> np.uint64(32)
                k += 1
                wasted += evaluations - mark
        starts[i] = evaluations - wasted
    counters[1] += evaluations
    return k


@inline
def verify_stretches(words, word_offsets, starts, ends, count, s, e, strings, found, k, counters):
    """Does the same for the rows that have the numbers starts[i] … ends[i] - 1, and counts them."""
    for i in range(count):
        counters[0] += ends[i] - starts[i]
        starts[i], ends[i] = word_offsets[starts[i]], word_offsets[ends[i]]
    return verify_rows(words, starts, ends, count, s.count[1] == 0, s, e, strings, found, k, counters)


@inline
def once_each(some, found, k):
    """Put each of some numbers into found from k on, once; where they end."""
    some.sort()
    for i in range(len(some)):
        if i == 0 or some[i] != some[i - 1]:
            found[k] = some[i]
            k += 1
    return k
