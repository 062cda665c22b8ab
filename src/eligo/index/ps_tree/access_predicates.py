"""Which predicates a rule is found by (the PS-Tree paper §3.3, §5.2, §6.2): those that fewest events satisfy.

    chance      that an event satisfies a predicate: that it has the attribute, times the share of its values
    presence    events seen with the attribute, out of those watched; the rules count as if they had been PRIOR of them
    share       by the counters of spaces (events that came there), where spaces exist and events were watched; by the
                last values seen of the attribute; before any were seen, by the values that rules name. Then it ranks
                operators as the paper does: one value, some, a range, a wider one, all but some

More spaces mean more copies of a rule. So what is made small is the chance that all chosen predicates hold, plus COPY
for each copy: a copy has to spare that share of the events a look at the rule. A predicate that would cost more is
taken by its attribute alone: the event has it.
"""

from __future__ import annotations

import numpy as np

from eligo.compile.compiled import mixed
from eligo.compile.events import float_bits
from eligo.index.ps_tree.lines import (
    FLOAT,
    MOST_POINTS,
    NAMED,
    POINTS,
    PRESENT,
    RANGE,
    TEXT,
    TIME,
    TRUTH,
    WHOLE,
    hull_of,
    is_range,
    is_usable,
    line_of,
    named_by,
    point_at,
)
from eligo.index.ps_tree.nodes import SEEN
from eligo.index.ps_tree.pools import EVENTS, GAP, RECENT, ROWS
from eligo.index.ps_tree.spaces import space_at
from eligo.index.rows.int_pair import upper
from eligo.index.rows.line import unsigned
from eligo.index.rows.packed_predicate import attribute_of, bits_in, check_words, first_check, row_words
from eligo.jit import inline, kernel

PRIOR = 64.0  # events that rules count for
TRUST = 4.0  # values seen that what rules name counts for
COPY = 1e-4
NARROW = 1.0 / 64  # share of the values up to which a range is for a fine line
WORTH = 0.7  # chance of a predicate up to which it is worth to be a further one
FEW = 32  # checks of a row that are looked at


@inline
def scale(form, x):
    """A position as a number on a scale where equal steps are about equally likely."""
    if form == FLOAT:
        return float_bits(np.int64(unsigned(np.int64(x))))
    return np.float64(np.int64(unsigned(np.int64(x)))) if form == TIME else np.float64(x)


@inline
def presence_of(t, a):
    state = t.state
    by_rules = np.float64(t.popular[a]) / max(np.float64(state[ROWS]), 1.0)
    return min(1.0, (np.float64(t.seen[a]) + PRIOR * by_rules) / (np.float64(state[EVENTS]) + PRIOR))


@inline
def values_named(t, line, form):
    """About how many values rules name on a line of single values."""
    if form == TRUTH:
        return 2.0
    extent = t.most[line] - t.least[line] + 1.0
    if form == WHOLE and extent >= 1.0:
        return max(extent, 2.0)
    return max(np.float64(t.spaces[line]), 2.0) if form != NAMED else max(distinct(t.marks[line >> 4]), 2.0)


@inline
def distinct(marks):
    """About how many values left their marks among 64 bits."""
    return 64.0 * np.log(64.0 / max(64.0 - np.float64(bits_in(marks)), 0.125))


@inline
def share_of_range(t, words, q, form, line):
    """The share of the values that rules name between which a range lies; `line`: of equality."""
    if form == TEXT:
        return 0.05
    least, most = t.least[line], t.most[line]
    low, high = hull_of(words, q, form)
    begin, end = max(scale(form, low), least), min(scale(form, high), most)
    one = 1.0 if form == WHOLE else 0.0
    extent = most - least + one
    if not extent > 0.0:
        return 1.0
    return min(1.0, max(end - begin + one, 0.01 * one) / extent)


@inline
def seen_share(t, words, q, named, form, n):
    """Of the values seen last: how many a check names, and out of how many."""
    a, hits, known = attribute_of(words[q]), 0.0, 0.0
    recent, kinds = t.recent, t.recent_kind
    for i in range(a * RECENT, (a + 1) * RECENT):
        if kinds[i] == 0:
            break
        known += 1.0
        if kinds[i] - 1 != form or form == TEXT:
            continue
        x = np.uint64(recent[i])
        if named == RANGE:
            low, high = hull_of(words, q, form)
            hits += 1.0 if low <= x <= high else 0.0
        else:
            for j in range(n):
                if point_at(words, q, form, j) == x:
                    hits += 1.0
                    break
    return hits, known


@kernel
def option_of(t, words, q, presence):
    """How a check could be used: form of line, spaces that it would cover, about, chance."""
    code = words[q]
    named, form, n = named_by(words, q)
    if named < 0 or n > MOST_POINTS:
        return PRESENT, 1.0, presence
    line = line_of(code, form)
    if named == POINTS:
        share = min(1.0, n / values_named(t, line, form))
    else:
        share = share_of_range(t, words, q, form, line)
    chance = presence * share
    if t.state[EVENTS] > 0:
        hits, known = seen_share(t, words, q, named, form, n)
        chance = presence * (hits + TRUST * share) / (known + TRUST)
    if named == POINTS:
        if t.root[line] and t.state[EVENTS] > 0 and n <= 8:
            seen, there = 0.0, 0.0
            for j in range(n):
                s = space_at(t, line, point_at(words, q, form, j))
                if s != GAP:
                    seen += np.float64(upper(t.space[4 * s + SEEN]))
                    there += 1.0
            if there == n:
                chance = (seen + PRIOR * chance) / (np.float64(t.state[EVENTS]) + PRIOR)
        return form, np.float64(n), chance
    if form == TEXT:
        return TEXT, 2.0, chance
    if share <= NARROW:
        return form + 1, 1.0 + share * np.float64(t.spaces[line + 1]), chance
    return form + 2, 1.0 + share * max(np.float64(t.spaces[line + 2]), 8.0), chance


@inline
def has_twin(words, at, q):
    """Whether a row has another check of the same attribute."""
    p, end, a = first_check(words, at), at + row_words(words, at), attribute_of(words[q])
    while p < end:
        if p != q and attribute_of(words[p]) == a:
            return True
        p += check_words(words[p])
    return False


@kernel
def weigh(t, words, at, options, weights):
    """Put the line of each of a row's first checks that can be used into options, and into weights the spaces that it
    would cover, the chance that it holds, and that its attribute is there; how many.
    """
    q, end, n = first_check(words, at), at + row_words(words, at), 0
    while q < end and n < FEW:
        if is_usable(words[q]):
            presence = presence_of(t, attribute_of(words[q]))
            form, k, chance = option_of(t, words, q, presence)
            if form != PRESENT and has_twin(words, at, q):
                form, k, chance = PRESENT, 1.0, presence
            options[n] = line_of(words[q], form)
            weights[n, 0], weights[n, 1], weights[n, 2] = k, chance, presence
            n += 1
        q += check_words(words[q])
    return n


@inline
def is_taken(lines, n, line):
    """Whether one of n lines is of the same attribute."""
    taken = False
    for j in range(n):
        taken = taken or lines[j] >> 4 == line >> 4
    return taken


@kernel
def choose(options, weights, n, most, most_keys, chosen):
    """SelectAccPreds: put the lines of at most so many of n predicates that were weighed, with different attributes and
    no more than so many keys together, into chosen[0:], the one that holds least often first; how many.
    """
    taken, keys, together = 0, 1.0, 1.0
    while taken < most:
        best, least, alone = -1, 1e300, False
        for i in range(n):
            if is_taken(chosen, taken, options[i]):
                continue
            k, chance, presence = weights[i, 0], weights[i, 1], weights[i, 2]
            score = together * chance + COPY * keys * k
            if score < least and keys * k <= most_keys and (taken == 0 or chance <= WORTH):
                best, least, alone = i, score, False
            score = together * presence + COPY * keys
            if score < least and (taken == 0 or presence <= WORTH):
                best, least, alone = i, score, True
        if best < 0:
            break
        chosen[taken] = options[best] & ~15 if alone else options[best]
        keys *= 1.0 if alone else weights[best, 0]
        together *= weights[best, 2] if alone else weights[best, 1]
        taken += 1
    return taken


@kernel
def beside(options, weights, n, lines, taken, most):
    """The line of one more predicate, out of n that were weighed, that covers no more than so many spaces, beside those
    of some lines; -1: none. Where it may cover only one, ranges are no choice, for they may be cut later.
    """
    best, least = np.int64(-1), 0.95
    for i in range(n):
        line, k, chance = options[i], weights[i, 0], weights[i, 1]
        if k > most or (most == 1 and is_range(line & 15)):
            line, chance = line & ~15, weights[i, 2]
        if chance < least and not is_taken(lines, taken, line):
            best, least = line, chance
    return best


@inline
def note_row(t, words, at, by):
    """Note for every attribute of a row that one rule more, or one less, has it, and the values that it names."""
    q, end = first_check(words, at), at + row_words(words, at)
    while q < end:
        code = words[q]
        a = attribute_of(code)
        t.popular[a] += by
        if by > 0:
            named, form, n = named_by(words, q)
            line = line_of(code, form)
            if named == POINTS and form == NAMED:
                for i in range(min(n, 8)):
                    h = mixed(np.uint64(0), np.int64(point_at(words, q, form, i)))
                    t.marks[a] |= np.int64(np.uint64(1) << (h >> np.uint64(40) & np.uint64(63)))
            elif named == POINTS:
                for i in range(n):
                    x = scale(form, point_at(words, q, form, i))
                    t.least[line], t.most[line] = min(t.least[line], x), max(t.most[line], x)
            elif named == RANGE and form != TEXT:
                low, high = hull_of(words, q, form)
                if low and low <= high:
                    t.least[line] = min(t.least[line], scale(form, low))
                    t.most[line] = max(t.most[line], scale(form, low))
                if high < np.uint64((1 << 20) - 1) or (form != WHOLE and high != ~np.uint64(0)):
                    t.least[line] = min(t.least[line], scale(form, high))
                    t.most[line] = max(t.most[line], scale(form, high))
        q += check_words(code)
