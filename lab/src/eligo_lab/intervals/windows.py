"""Which intervals cover a space: lists for runs of neighbouring spaces, which have most of their intervals in common.

    spaces     |0 |1    |2 |3      |4   |5 |6      |7  …      on the line, in order
    windows    ├──────── v ────────┼──────── u ────────┤
    interval a       [──────────────────]                     an end of v and of u: a bound lies in each
    interval b  ────────────────────────────────]             goes through v; an end of u

    window v   window[4v …]
               BEGIN   the position where its first space begins
               RUN     the first of the numbers set aside for its spaces << 32 | how many, by 16 << 18 | spaces
               LISTS   half the place of its block of words, 0: none; the window behind it, -1: none
               SIZES   ends; intervals that go through
    block      words   ends, forward: number << 32 | rank of the first space << 16 | how many more
               halves  backward from the block's end: numbers of the intervals that go through
    space s    owner[s >> 4]: its window; rank[s]: its place there; count[s]: intervals that cover it, -1: not in use;
               seen[s]: events that came to it, once somebody has asked to watch them

Invariant: an interval is in the list of each window that it covers a space of, once: as an end where one of its bounds
lies in the window, at its beginning or at its end, else as one that goes through. Those that cover a space are all that
go through, and the ends from whose first to whose last rank it lies. More than FEW ends are in order: from the window's
beginning on, longest first; then up to its end, longest first; then those within. Two beginnings of these are answers.

A window takes in spaces as long as there are no more bounds in it than intervals that hold all of it, or 16. So what is
looked at for a point is of the order of what is found; there are at most twice as many ends as intervals, and those
that go through a window are no more than the bounds up to the next one: all lists together are linear in the number of
intervals, however wide these are (Chazelle, Filtering Search, 1986), unless MOST spaces are too few for a window. What
no longer fits is divided anew (divide.py).
"""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.spaces import space_at
from eligo.index.rows.allocator import give_block, heap_class, heap_words, take_block
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.jit import handle, inline, kernel

SMALL = 16  # numbers that a window has, at least; bounds in it that are always few enough
MOST = 1 << 15  # spaces of a window: two together, and their ranks still fit 16 bits
TOO_MANY = 4  # times as many in a list as there may be in a window made anew
FEW = 64  # ends that are looked at one by one
BEGIN, RUN, LISTS, SIZES = 0, 1, 2, 3
WINDOWS, FREE_WINDOW, SPACES = 0, 1, 2  # what `state` holds: windows made, the first free one (-1), spaces
LINE = 0  # of the tree

FIELDS = ("pools", "count", "rank", "owner", "window", "bounds", "runs", "seen", "state")


# Tree, spaces, windows and intervals as one argument of kernels.
make_handle = handle("WindowsHandle", FIELDS)


@inline
def window_of(d, s):
    return np.int64(d.owner[s >> 4])


@inline
def next_window(d, v):
    return lower(d.window[4 * v + LISTS])


@inline
def spaces_in(d, v):
    return d.window[4 * v + RUN] & 0x3_FFFF


@inline
def numbers_of(d, v):
    """The first of a window's numbers, and one behind the last."""
    run = d.window[4 * v + RUN]
    return run >> 32, (run >> 32) + (run >> 18 & 0x3FFF) * 16


@inline
def room_of(ends, through):
    """Words of the block of lists so long."""
    words = ends + (through + 1) // 2
    return heap_words(heap_class(words)) if words else np.int64(0)


@inline
def end_entry(number, first, last):
    return np.int64(number) << 32 | first << 16 | (last - first)


@inline
def first_rank(entry):
    return entry >> 16 & 0xFFFF


@inline
def last_rank(entry):
    return (entry >> 16 & 0xFFFF) + (entry & 0xFFFF)


@inline
def order_of(entry, spaces):
    """What ends are sorted by in a window of so many spaces."""
    if first_rank(entry) == 0:
        return spaces - 1 - last_rank(entry)
    return spaces + first_rank(entry) if last_rank(entry) == spaces - 1 else 2 * spaces


@inline
def up_to(words, o, ends, spaces, most):
    """How many of a window's ends come up to an order; they are sorted."""
    low, high = np.int64(0), np.int64(ends)
    while low < high:
        middle = (low + high) >> 1
        if order_of(words[o + middle], spaces) <= most:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def sort_ends(words, o, ends, spaces):
    order = np.empty(ends, np.int64)
    for i in range(ends):
        order[i] = order_of(words[o + i], spaces) << 32 | i
    order.sort()
    copy = words[o : o + ends].copy()
    for i in range(ends):
        words[o + i] = copy[order[i] & 0xFFFF_FFFF]


@kernel
def resize(d, v, ends, through):
    """Make a window's lists so long; where its block begins and ends. Blocks are never larger than they have to be."""
    t = d.pools
    words, halves, at = t.words, t.halves, 4 * v
    o, sizes = 2 * upper(d.window[at + LISTS]), d.window[at + SIZES]
    had, room = room_of(upper(sizes), lower(sizes)), room_of(ends, through)
    d.window[at + SIZES] = pair(ends, through)
    if had != room:
        made = take_block(words, t.heads, room) if room else np.int64(0)
        for i in range(min(ends, upper(sizes))):
            words[made + i] = words[o + i]
        for i in range(1, min(through, lower(sizes)) + 1):
            halves[2 * (made + room) - i] = halves[2 * (o + had) - i]
        if had:
            give_block(words, t.heads, o, had)
        d.window[at + LISTS] = pair(made // 2, lower(d.window[at + LISTS]))
        o = made
    return o, o + room


@kernel
def put_end(d, v, entry):
    words, spaces = d.pools.words, spaces_in(d, v)
    ends = upper(d.window[4 * v + SIZES])
    o, _ = resize(d, v, ends + 1, lower(d.window[4 * v + SIZES]))
    at = ends if ends <= FEW else up_to(words, o, ends, spaces, order_of(entry, spaces))
    for i in range(o + ends, o + at, -1):
        words[i] = words[i - 1]
    words[o + at] = entry
    if ends == FEW:
        sort_ends(words, o, ends + 1, spaces)


@kernel
def take_end(d, v, number):
    words, o, ends = d.pools.words, 2 * upper(d.window[4 * v + LISTS]), upper(d.window[4 * v + SIZES])
    i = o
    while words[i] >> 32 != number:
        i += 1
    for j in range(i, o + ends - 1):
        words[j] = words[j + 1]
    resize(d, v, ends - 1, lower(d.window[4 * v + SIZES]))


@kernel
def put_through(d, v, number):
    ends, through = upper(d.window[4 * v + SIZES]), lower(d.window[4 * v + SIZES])
    _, stop = resize(d, v, ends, through + 1)
    d.pools.halves[2 * stop - 1 - through] = number


@kernel
def take_through(d, v, number):
    halves, ends, through = d.pools.halves, upper(d.window[4 * v + SIZES]), lower(d.window[4 * v + SIZES])
    i = 2 * (2 * upper(d.window[4 * v + LISTS]) + room_of(ends, through)) - through
    last = i
    while halves[i] != number:
        i += 1
    halves[i] = halves[last]
    resize(d, v, ends, through - 1)


@kernel
def move_lists(d, words, heads):
    """Put the blocks of all windows into another heap."""
    v = window_of(d, space_at(d.pools, LINE, np.uint64(0)))
    while v >= 0:
        o, sizes = 2 * upper(d.window[4 * v + LISTS]), d.window[4 * v + SIZES]
        room = room_of(upper(sizes), lower(sizes))
        made = take_block(words, heads, room) if room else np.int64(0)
        for i in range(room):
            words[made + i] = d.pools.words[o + i]
        d.window[4 * v + LISTS] = pair(made // 2, next_window(d, v))
        v = next_window(d, v)
