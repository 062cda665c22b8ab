"""Which spaces an event lies in (the PS-Tree paper §4.3, Algorithm 3 for each attribute-value pair)."""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.index.ps_tree.lines import (
    FLOAT,
    FLOAT_COARSE,
    FLOAT_FINE,
    NAMED,
    PRESENT,
    TEXT,
    TIME,
    TIME_COARSE,
    TRUTH,
    WHOLE,
    WHOLE_COARSE,
)
from eligo.index.ps_tree.nodes import LAST, SEEN, locate, stretch
from eligo.index.ps_tree.pools import EVENTS, GAP, RECENT
from eligo.index.ps_tree.spaces import is_layer, next_space
from eligo.index.ps_tree.string_trie import locate_text
from eligo.index.rows.event_view import KIND_VARIOUS, view_event
from eligo.index.rows.growable import prefetch
from eligo.index.rows.line import BOOLEAN, NUMBER, STRING, TOP, unsigned
from eligo.index.rows.line import TIME as TIMES
from eligo.jit import inline, kernel


@inline
def meet(t, s, e, n, spaces, lines):
    """Put the spaces that an event with n attributes lies in, and their lines, into two lists; how many, or more than
    there is room for, and whether each line has one alone.
    """
    root, tree, links = t.root, t.tree, t.links
    kinds, at, places, present = s.kind, s.at, s.place, s.present
    m, single = 0, True
    for i in range(n):
        prefetch(root, np.uint64(16 * np.int64(present[i])))
    for i in range(n):
        for form in range(WHOLE, WHOLE_COARSE + 1):
            link = np.int64(root[16 * np.int64(present[i]) + form])
            if link < 0:
                prefetch(tree, np.uint64(2 * ~link))
    for i in range(n):
        if m + 16 > len(spaces):
            return len(spaces) + 1, False
        a = np.int64(present[i])
        line, kind = 16 * a, np.int64(kinds[a])
        if root[line]:
            spaces[m], lines[m] = root[line], line
            m += 1
        if kind == KIND_VARIOUS:
            m, single = meet_various(t, s, e, a, spaces, lines, m), False
            continue
        if kind == NUMBER:
            part = np.int64(places[a]) & TOP
            x, odd = np.uint64(part >> 1), part & 1
            if root[line + WHOLE] and not odd:
                spaces[m], lines[m] = locate(tree, links, np.int64(root[line + WHOLE]), x), line + WHOLE
                m += spaces[m] != GAP
            for form in range(WHOLE + 1, WHOLE_COARSE + 1):
                link = np.int64(root[line + form])
                if link:
                    spaces[m], lines[m] = locate(tree, links, link, x), line + form
                    m += 1
                    if odd:  # by the neighbours
                        single = False
                        spaces[m], lines[m] = locate(tree, links, link, x + np.uint64(1)), line + form
                        m += spaces[m] != spaces[m - 1]
            x = unsigned(at[a])
            if root[line + FLOAT]:
                spaces[m], lines[m] = locate(tree, links, np.int64(root[line + FLOAT]), x), line + FLOAT
                m += spaces[m] != GAP
            for form in range(FLOAT_FINE, FLOAT_COARSE + 1):
                link = np.int64(root[line + form])
                if link:
                    spaces[m], lines[m] = locate(tree, links, link, x), line + form
                    m += 1
        elif kind == STRING:
            if root[line + NAMED] and at[a] >= 0:
                spaces[m], lines[m] = locate(tree, links, np.int64(root[line + NAMED]), np.uint64(at[a])), line + NAMED
                m += spaces[m] != GAP
            source = s.source[s.first[a]]
            # Where no rule asks for the string itself, the event does not bring it.
            if root[line + TEXT] and e.meta[source] & 255 == codes.TEXT:
                spaces[m], lines[m] = space_of_text(t, line + TEXT, source, e), line + TEXT
                m += 1
        elif kind == BOOLEAN:
            if root[line + TRUTH]:
                spaces[m], lines[m] = locate(tree, links, np.int64(root[line + TRUTH]), np.uint64(at[a])), line + TRUTH
                m += spaces[m] != GAP
        elif kind == TIMES:
            x = unsigned(at[a])
            for form in range(TIME, TIME_COARSE + 1):
                link = np.int64(root[line + form])
                if link:
                    spaces[m], lines[m] = locate(tree, links, link, x), line + form
                    m += spaces[m] != GAP
    return m if m + 1 < len(spaces) else len(spaces) + 1, single


@kernel
def space_of_text(t, line, source, e):
    """The space of a string that the event brought, entry `source` of its buffer."""
    row = e.key[source]
    return locate_text(t, line, e.text, e.text_low[row], e.text_high[row], 0)


@kernel
def meet_various(t, s, e, a, spaces, lines, m):
    """The same for an attribute with several values or a range of them; lines one after the other, spaces once each."""
    for form in range(PRESENT + 1, TEXT + 1):
        line = 16 * a + form
        link = np.int64(t.root[line])
        if link == 0:
            continue
        begin = m
        for j in range(s.first[a], s.stop[a]):
            kind = np.int64(s.entry_kind[j])
            wanted = NUMBER if form < TIME else TIMES if form < TRUTH else BOOLEAN if form == TRUTH else STRING
            if kind != wanted:
                continue
            value, source = s.low[j] == s.high[j], s.source[j]
            low, high = np.uint64(0), np.uint64(LAST)
            if form < FLOAT:
                # From the whole number below to the one above.
                low = np.uint64((s.low_place[j] & TOP) >> 1)
                high = np.uint64(((s.high_place[j] & TOP) + 1) >> 1)
            elif form < TRUTH:
                low, high = unsigned(s.low[j]), unsigned(s.high[j])
            elif form == TRUTH or (form == NAMED and source >= 0):
                low, high = np.uint64(max(s.low[j], 0)), np.uint64(min(max(s.high[j], 0), 1 << 40))
                if form == NAMED and (not value or s.low[j] < 0):
                    continue
            elif form == TEXT and source >= 0 and e.meta[source] & 255 == codes.TEXT:
                m = add_space(spaces, lines, begin, m, space_of_text(t, line, source, e), line)
                continue
            m = meet_range(t, line, link, low, high, spaces, lines, begin, m)
    return m


@kernel
def meet_range(t, line, link, low, high, spaces, lines, begin, m):
    """Add the spaces of a line that positions low … high lie in."""
    x = low
    while True:
        space, last = stretch(t.tree, t.links, link, x)
        if is_layer(t, space):
            # All of the layer: the alphabet is taken whole.
            space = np.int64(-1)
        if space > GAP:
            m = add_space(spaces, lines, begin, m, space, line)
        elif space < 0:
            return meet_all(t, line, spaces, lines, begin, m)
        if last >= high:
            return m
        x = last + np.uint64(1)


@kernel
def meet_all(t, line, spaces, lines, begin, m):
    """Add all spaces of a line of ranges."""
    space = locate(t.tree, t.links, np.int64(t.root[line]), np.uint64(0))
    while is_layer(t, space):  # down to the first space of its own
        space = locate(t.tree, t.links, (t.space[4 * space + SEEN] << 32) >> 32, np.uint64(0))
    while space >= 0:
        m = add_space(spaces, lines, begin, m, space, line)
        space = next_space(t, space)
    return m


@kernel
def add_space(spaces, lines, begin, m, space, line):
    """Add a space to a list, unless it has it from `begin` on."""
    # Spaces of one range come in order; those of several values are few.
    for i in range(min(m, len(spaces)) - 1, max(begin, m - 64) - 1, -1):
        if spaces[i] == space:
            return m
    if m < len(spaces):
        spaces[m], lines[m] = space, line
    return m + 1 if m <= len(spaces) else m


@inline
def watch(t, s, n, m, spaces):
    """Count an event for its attributes and spaces, and remember its values. Several searches may do so at once, and a
    count that gets lost does no harm.
    """
    for i in range(n):
        a = np.int64(s.present[i])
        t.seen[a] += 1
        kind = np.int64(s.kind[a])
        if kind == KIND_VARIOUS:
            continue
        form, x = np.int64(NAMED), np.uint64(s.at[a])
        if kind == NUMBER:
            part = np.int64(s.place[a]) & TOP
            form = np.int64(WHOLE if part & 1 == 0 else FLOAT)
            x = np.uint64(part >> 1) if part & 1 == 0 else unsigned(s.at[a])
        elif kind == TIMES:
            form, x = np.int64(TIME), unsigned(s.at[a])
        elif kind == BOOLEAN:
            form = np.int64(TRUTH)
        place = a * RECENT + (t.seen[a] - 1) % RECENT
        t.recent_kind[place], t.recent[place] = form + 1, np.int64(x)
    for i in range(m):
        t.space[4 * spaces[i] + SEEN] += np.int64(1) << 32
    t.state[EVENTS] += 1


@kernel
def observe_events(t, e, events, s, w):
    """Count events that nobody searches for."""
    spaces, lines = w.spaces, w.lines
    for event in range(events):
        n = view_event(e, event, s, len(t.popular))
        m, _ = meet(t, s, e, n, spaces, lines)
        watch(t, s, n, m if m <= len(spaces) else 0, spaces)
