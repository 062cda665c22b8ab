"""Intervals come and go (the PS-Tree paper §4.2, §4.4): InsertPredicate, Partition, DeletePredicate, on windows
(windows.py).

A border is there as long as an interval has a bound at it. Its intervals are ends of the windows on both sides, so that
they need not be counted: whoever takes an interval away looks there for another one that still has the bound.
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.borders import add_border, drop_border, fill
from eligo.index.ps_tree.nodes import (
    LAST,
)
from eligo.index.ps_tree.spaces import end_of, space_at
from eligo.index.rows.int_pair import lower, upper
from eligo.jit import kernel
from eligo_lab.intervals.divide import redivide
from eligo_lab.intervals.locate import position
from eligo_lab.intervals.windows import (
    BEGIN,
    LINE,
    LISTS,
    MOST,
    RUN,
    SIZES,
    SMALL,
    SPACES,
    TOO_MANY,
    end_entry,
    first_rank,
    last_rank,
    next_window,
    numbers_of,
    put_end,
    put_through,
    spaces_in,
    take_end,
    take_through,
    window_of,
)

ONE = np.uint64(1)


@kernel
def shift_ranks(d, v, rank, by):
    """Behind a rank there is a space more in a window, by 1, or one less, by -1."""
    first, stop = numbers_of(d, v)
    for s in range(first, stop):
        d.rank[s] += by if d.rank[s] > rank else 0
    words, o = d.pools.words, 2 * upper(d.window[4 * v + LISTS])
    last = rank if by > 0 else rank + 1  # whoever covers a space covers both of its parts
    for i in range(o, o + upper(d.window[4 * v + SIZES])):
        if first_rank(words[i]) > rank:
            words[i] += by << 16
        elif last_rank(words[i]) >= last:
            words[i] += by
    d.window[4 * v + RUN] += by
    d.state[SPACES] += by


@kernel
def cut(d, x):
    """Partition (Algorithm 2): let a space begin at position x."""
    t = d.pools
    s = space_at(t, LINE, x)
    if x == 0 or space_at(t, LINE, x - ONE) != s:
        return
    v = window_of(d, s)
    first, stop = numbers_of(d, v)
    if spaces_in(d, v) == stop - first:
        redivide(d, v, 0, False)
        s = space_at(t, LINE, x)
        v = window_of(d, s)
        first, stop = numbers_of(d, v)
    made = first
    while d.count[made] >= 0:
        made += 1
    end, rank = end_of(t, LINE, s, x), np.int64(d.rank[s])
    shift_ranks(d, v, rank, 1)
    d.count[made], d.rank[made] = d.count[s], rank + 1
    if len(d.seen):
        d.seen[made] = d.seen[s]
    add_border(t, LINE, x, np.uint64(0))
    fill(t, LINE, x, end, made)


@kernel
def join(d, x):
    """Give the space that begins at position x, where no interval has a bound any more, to the one before it."""
    t = d.pools
    v, u = window_of(d, space_at(t, LINE, x)), window_of(d, space_at(t, LINE, x - ONE))
    if u != v:
        redivide(d, u, 1, True)
        v = u
    s, before = space_at(t, LINE, x), space_at(t, LINE, x - ONE)
    fill(t, LINE, x, end_of(t, LINE, s, x), before)
    drop_border(t, LINE, x)
    shift_ranks(d, v, np.int64(d.rank[before]), -1)
    d.count[s] = -1
    if len(d.seen):
        d.seen[before] = max(d.seen[before], d.seen[s])  # both have what came before they were cut
    settle(d, v)


@kernel
def settle(d, v):
    """Divide a window anew that has lost a space, if it has become too large for what goes through it, or small."""
    first, stop = numbers_of(d, v)
    spaces, ends, least = spaces_in(d, v), upper(d.window[4 * v + SIZES]), np.int64(1 << 31)
    for s in range(first, stop):
        least = min(least, d.count[s] if d.count[s] >= 0 else least)
    following, begin = next_window(d, v), np.uint64(d.window[4 * v + BEGIN])
    if spaces > MOST or (spaces > 1 and ends > 2 * TOO_MANY * max(SMALL, least)):
        redivide(d, v, 0, False)
    elif 4 * spaces < stop - first:
        if following >= 0:
            if spaces + spaces_in(d, following) <= MOST:
                redivide(d, v, 1, False)
        elif begin > 0:
            u = window_of(d, space_at(d.pools, LINE, begin - ONE))
            if spaces + spaces_in(d, u) <= MOST:
                redivide(d, u, 1, False)
        elif stop - first > SMALL:
            redivide(d, v, 0, False)


@kernel
def count_in(d, v, first, last, by):
    """One interval more covers the spaces of these ranks, or one less."""
    count, rank = d.count, d.rank
    begin, stop = numbers_of(d, v)
    for s in range(begin, stop):
        count[s] += by if count[s] >= 0 and first <= rank[s] <= last else 0


@kernel
def is_crowded(d, v):
    """Whether far more go through a window than if it had been made now. Looked at now and then: it may have to be."""
    ends, through = upper(d.window[4 * v + SIZES]), lower(d.window[4 * v + SIZES])
    return through & (through - 1) == 0 and through > TOO_MANY * max(SMALL, ends, spaces_in(d, v))


@kernel
def cover(d, number, a, b, by):
    """Put an interval into the lists of the windows that positions a … b lie in, by 1, or take it out, by -1; whether a
    window has become crowded.
    """
    head, tail = space_at(d.pools, LINE, a), space_at(d.pools, LINE, b)
    begin, end, crowded = window_of(d, head), window_of(d, tail), False
    v = begin
    while True:
        first = np.int64(d.rank[head]) if v == begin else np.int64(0)
        last = np.int64(d.rank[tail]) if v == end else spaces_in(d, v) - 1
        count_in(d, v, first, last, by)
        if v in (begin, end):
            if by > 0:
                put_end(d, v, end_entry(number, first, last))
            else:
                take_end(d, v, number)
        elif by > 0:
            put_through(d, v, number)
            crowded = crowded or is_crowded(d, v)
        else:
            take_through(d, v, number)
        if v == end:
            return crowded
        v = next_window(d, v)


@kernel
def is_held(d, x):
    """Whether an interval begins at position x or ends right before it."""
    words, bounds = d.pools.words, d.bounds
    for side in range(2):
        s = space_at(d.pools, LINE, x - np.uint64(side))
        v, rank = window_of(d, s), np.int64(d.rank[s])
        o = 2 * upper(d.window[4 * v + LISTS])
        for i in range(o, o + upper(d.window[4 * v + SIZES])):
            of = first_rank(words[i]) if side == 0 else last_rank(words[i])
            bound = bounds[2 * (words[i] >> 32) + side]
            if of == rank and position(bound if side == 0 else ~bound) == x - np.uint64(side):
                return True
    return False


@kernel
def insert_interval(d, number, low, high):
    """InsertPredicate (Algorithm 1)."""
    a, b = position(low), position(high)
    cut(d, a)
    if b != np.uint64(LAST):
        cut(d, b + ONE)
    d.bounds[2 * number], d.bounds[2 * number + 1] = low, ~high
    if not cover(d, number, a, b, 1):
        return
    v = window_of(d, space_at(d.pools, LINE, a))
    while v >= 0 and np.uint64(d.window[4 * v + BEGIN]) <= b:
        following = next_window(d, v)
        if is_crowded(d, v) and following >= 0 and spaces_in(d, v) + spaces_in(d, following) <= MOST:
            redivide(d, v, 1, False)
        v = next_window(d, v)


@kernel
def delete_interval(d, number):
    """DeletePredicate (§4.4): spaces that nothing tells apart any more become one."""
    a, b = position(d.bounds[2 * number]), position(~d.bounds[2 * number + 1])
    cover(d, number, a, b, -1)
    if a != 0 and not is_held(d, a):
        join(d, a)
    if b != np.uint64(LAST) and not is_held(d, b + ONE):
        join(d, b + ONE)
