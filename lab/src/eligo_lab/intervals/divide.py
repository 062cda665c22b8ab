"""Spaces divided into windows (windows.py): of a new tree all, later those whose window no longer fits them."""

from __future__ import annotations

import numpy as np

from eligo.index.ps_tree.borders import fill
from eligo.index.ps_tree.spaces import end_of, space_at
from eligo.index.rows.allocator import give_block, heap_class, heap_words, take_block
from eligo.index.rows.int_pair import lower, pair, upper
from eligo.jit import kernel
from eligo_lab.intervals.locate import position
from eligo_lab.intervals.windows import (
    BEGIN,
    FEW,
    FREE_WINDOW,
    LINE,
    LISTS,
    MOST,
    RUN,
    SIZES,
    SMALL,
    WINDOWS,
    end_entry,
    next_window,
    numbers_of,
    resize,
    room_of,
    sort_ends,
    spaces_in,
)


@kernel
def divide(count, bounds, n):
    """Where windows begin in n spaces, of which count[i] intervals cover each and bounds[i] lie before it; how many."""
    starts, k, weight, spaces = np.zeros(n + 1, np.int64), 1, 0, 1
    least = count[0]
    for i in range(1, n):
        least = min(least, count[i])
        weight += bounds[i]
        if weight >= max(SMALL, least) or spaces == MOST:
            starts[k] = i
            k += 1
            weight, spaces, least = 0, 0, count[i]
        spaces += 1
    starts[k] = n
    return starts, k


@kernel
def new_window(d):
    state = d.state
    v = state[FREE_WINDOW]
    if v >= 0:
        state[FREE_WINDOW] = d.window[4 * v]
        return v
    state[WINDOWS] += 1
    return state[WINDOWS] - 1


@kernel
def new_run(d, v, spaces, room):
    """Numbers for so many spaces, with room for so many; the first one."""
    room = heap_words(heap_class((room + 15) // 16 * 16))  # by 16, and of more than 64 anyway
    first = take_block(d.count, d.runs, room)
    for s in range(first, first + room):
        d.count[s] = -1
    for i in range(first >> 4, (first + room) >> 4):
        d.owner[i] = v
    d.window[4 * v + RUN] = first << 32 | room >> 4 << 18 | spaces
    return first


@kernel
def make_windows(d, v, low, count, seen, starts, k, behind, spare):
    """Windows without lists for spaces, of which the first is window v, -1: a new one, and behind the last of which is
    another. The windows; the number of each space.
    """
    windows, spaces = np.empty(k + 1, np.int64), np.empty(starts[k], np.int64)
    for j in range(k):
        windows[j] = v if j == 0 and v >= 0 else new_window(d)
    windows[k] = behind
    for j in range(k):
        begin, size = starts[j], starts[j + 1] - starts[j]
        first = new_run(d, windows[j], size, size + spare)
        d.window[4 * windows[j] + BEGIN] = np.int64(low[begin])
        d.window[4 * windows[j] + LISTS] = pair(0, windows[j + 1])
        d.window[4 * windows[j] + SIZES] = 0
        for i in range(size):
            spaces[begin + i] = first + i
            d.count[first + i] = count[begin + i]
            d.rank[first + i] = i
            if len(seen):
                d.seen[first + i] = seen[begin + i]
    return windows, spaces


@kernel
def list_sizes(starts, k, first, last, n):
    """Of windows that begin at these spaces: which one each space is in; how many of n intervals are ends of each, and
    how many go through it; how many words all lists take. An interval covers the spaces from first[i], -1: one before
    these windows, up to last[i], as many as there are spaces: one behind.
    """
    w = starts[k]
    which = np.empty(w, np.int64)
    for j in range(k):
        which[starts[j] : starts[j + 1]] = j
    ends, through = np.zeros(k, np.int64), np.zeros(k + 1, np.int64)
    for i in range(n):
        a, b = which[max(first[i], 0)], which[min(last[i], w - 1)]
        ends[a] += first[i] >= 0
        ends[b] += last[i] < w and not (a == b and first[i] >= 0)
        through[a] += 1
        through[b + 1] -= 1
    words, covering = np.int64(0), np.int64(0)
    for j in range(k):
        covering += through[j]
        through[j] = covering - ends[j]
        words += room_of(ends[j], through[j])
    return which, ends, through, words


@kernel
def fill_lists(d, windows, starts, k, numbers, first, last, n):
    """Put n intervals into the lists of windows without any; first, last: as above."""
    which, ends, through, _ = list_sizes(starts, k, first, last, n)
    words, halves = d.pools.words, d.pools.halves
    for j in range(k):
        o, end = resize(d, windows[j], ends[j], through[j])
        ends[j], through[j] = o, 2 * end  # from here on: where the next one goes
    for i in range(n):
        a, b = which[max(first[i], 0)], which[min(last[i], starts[k] - 1)]
        for j in range(a, b + 1):
            if (j == a and first[i] >= 0) or (j == b and last[i] < starts[k]):
                begin, stop = max(first[i], starts[j]), min(last[i] + 1, starts[j + 1])
                words[ends[j]] = end_entry(numbers[i], begin - starts[j], stop - 1 - starts[j])
                ends[j] += 1
            else:
                through[j] -= 1
                halves[through[j]] = numbers[i]
    for j in range(k):
        count = upper(d.window[4 * windows[j] + SIZES])
        if count > FEW:
            sort_ends(words, ends[j] - count, count, starts[j + 1] - starts[j])


@kernel
def redivide(d, v, more, as_one):
    """Divide the spaces of a window anew, and of so many more behind it, or make one window of all of them."""
    t = d.pools
    w, most, behind = np.int64(0), np.int64(0), np.int64(v)
    for _ in range(more + 1):
        w += spaces_in(d, behind)
        most += upper(d.window[4 * behind + SIZES]) + lower(d.window[4 * behind + SIZES])
        behind = next_window(d, behind)
    low, high, old = np.empty(w, np.uint64), np.empty(w, np.uint64), np.empty(w, np.int64)
    count, bounds = np.empty(w, np.int64), np.zeros(w + 1, np.int64)
    seen = np.empty(w if len(d.seen) else 0, np.int64)
    x = np.uint64(d.window[4 * v + BEGIN])
    for i in range(w):
        low[i], old[i] = x, space_at(t, LINE, x)
        high[i] = end_of(t, LINE, old[i], x)
        count[i] = d.count[old[i]]
        if len(seen):
            seen[i] = d.seen[old[i]]
        x = high[i] + np.uint64(1)
    numbers, first, last = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    n, u = 0, np.int64(v)
    while u != behind:
        sizes = d.window[4 * u + SIZES]
        o, end = resize(d, u, upper(sizes), lower(sizes))
        for i in range(upper(sizes) + lower(sizes)):
            number = t.words[o + i] >> 32 if i < upper(sizes) else np.int64(t.halves[2 * end - 1 + upper(sizes) - i])
            a, b = position(d.bounds[2 * number]), position(~d.bounds[2 * number + 1])
            if u != v and a < np.uint64(d.window[4 * u + BEGIN]):
                continue  # it has been met in the window before
            first[n] = -1 if a < low[0] else np.searchsorted(low, a)
            last[n] = w if b > high[w - 1] else np.searchsorted(low, b, "right") - 1
            bounds[max(first[n], 0)] += 1
            bounds[min(last[n] + 1, w)] += 1
            numbers[n] = number
            n += 1
        u = next_window(d, u)
    starts, k = divide(count, bounds, w)
    if as_one:
        starts[1], k = w, 1
    # The old numbers are given back last, so that no space gets one that another still has.
    given, runs, u = np.empty(more + 1, np.int64), np.empty((more + 1, 2), np.int64), np.int64(v)
    for i in range(more + 1):
        given[i], runs[i] = u, numbers_of(d, u)
        resize(d, u, 0, 0)
        u = next_window(d, u)
    windows, spaces = make_windows(d, v, low, count, seen, starts, k, behind, 1)
    for i in range(w):
        fill(t, LINE, low[i], high[i], spaces[i])
    fill_lists(d, windows, starts, k, numbers, first, last, n)
    for i in range(more + 1):
        give_block(d.count, d.runs, runs[i, 0], runs[i, 1] - runs[i, 0])
        if i:
            d.window[4 * given[i]] = d.state[FREE_WINDOW]
            d.state[FREE_WINDOW] = given[i]
