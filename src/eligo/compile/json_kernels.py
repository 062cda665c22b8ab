"""From JSON texts to entries of an event buffer, by a walk that follows the names that rules name and skips the rest.

    node 0        the event itself; node i > 0 stands for a dotted name: of an attribute, or of a path to some
    node_meta     the attribute as an entry wants it, -1 if the node is a path alone
    node_flags    what is special about it (encode.py)
    branch b      words 5b … of `branches`: a hash; the node that it starts from; where its key begins in `names`, and
                  the length of the key; the node that it leads to
    slots         a power of two of them: branch + 1, or 0 for free; linear probing from the hash
    node_filter   64 bits, those that are set by the keys of the node's branches (`filter_bit`): most other keys have
                  another bit, and need not be looked for

The dotted name `a.b` has a branch from `a` by the key `b`, and one from the event by the key `a.b`: JSON may have it
either way. A node that an event comes to twice makes the event odd, and so does all that an encoder would refuse.

Invariant: an event is either read to its end, and then its entries are those that decoding it and `Encoder.encode`
would give, in whatever order of attributes; or it is odd, and nothing of it is kept.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eligo.compile.codes import BOOLEAN, NO_VALUE, OBJECT, STRING
from eligo.compile.codes import TEXT as TEXT_ENTRY
from eligo.compile.encode import PATTERN, SEVERAL, TEXT
from eligo.compile.json_numbers import number_end, number_key
from eligo.compile.json_words import (
    BEGINS,
    CLOSES,
    COLON,
    COMMA,
    ENDS,
    MINUS,
    ODD,
    OPENS,
    QUOTE,
    after_blanks,
    literal_end,
    plain_end,
    string_end,
    unescape,
)
from eligo.compile.strings import find_at
from eligo.jit import address_of, byte_at, handle, inline, int32_at, int64_at, kernel, word_at

# How reading ends: all events are read, one is odd, or there is no room for entries, or for texts.
DONE: Final = 0
IS_ODD: Final = 1
NO_ENTRIES: Final = 2
NO_TEXTS: Final = 3

DEPTH: Final = 64  # objects and lists within each other; a decoder may refuse more
# What a container on the way is, if it is no object of which rules name something: then it is its node.
_SKIPPED: Final = -1  # an object of which they name nothing
_LIST: Final = -2
_VALUES: Final = -3  # a list whose elements are values of an attribute
_NOTHING: Final = -1  # the node of what no rule names

make_json_names = handle("JsonNames", ("names", "branches", "slots", "node_meta", "node_filter"))
# `seen` has the number of the event that last came to each node, `clock` the number of the last event.
make_json_reader = handle(
    "JsonReader",
    ("table", "node_flags", "string_data", "string_begin", "string_end", "string_slots", "events", "seen", "clock",
     "stack", "begin", "end"),
)  # fmt: skip


@inline
def mixed(hashed, word):
    hashed = (hashed ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return hashed ^ hashed >> np.uint64(29)


@inline
def short_word(data, at, stop, size):
    """At most 8 bytes as one number; `size` is the size of all that can be read."""
    if at >= stop:
        return np.uint64(0)
    if at + 8 <= size:
        unused = np.uint64(64 - 8 * (stop - at))
        return word_at(data, at) << unused >> unused
    word = np.uint64(0)
    for i in range(stop - at):
        word |= np.uint64(byte_at(data, at + i)) << np.uint64(8 * i)
    return word


@inline
def key_hash(parent, data, at, stop, size):
    """The hash of a branch from a node by the key data[at:stop]."""
    hashed = np.uint64(parent) << np.uint64(32) | np.uint64(stop - at)
    while stop - at > 8:
        hashed = mixed(hashed, word_at(data, at))
        at += 8
    hashed = mixed(hashed, short_word(data, at, stop, size))
    return hashed ^ hashed >> np.uint64(32)


@inline
def filter_bit(data, first, stop):
    """The bit that a key sets, by its length and its first and last byte."""
    if first == stop:
        return np.uint64(1)
    sum = 3 * np.int64(byte_at(data, first)) + 5 * np.int64(byte_at(data, stop - 1)) + 7 * (stop - first)
    return np.uint64(1) << np.uint64(sum & 63)


@kernel
def enter_branches(names, branches, slots, filters, first):
    """Computes the hashes of branches, all different, and enters them, from the first on, into slots and filters."""
    mask = np.uint64(len(slots) - 1)
    for b in range(first, len(branches) // 5):
        begin = branches[5 * b + 2]
        hashed = key_hash(branches[5 * b + 1], address_of(names), begin, begin + branches[5 * b + 3], len(names))
        branches[5 * b] = np.int64(hashed)
        filters[branches[5 * b + 1]] |= filter_bit(address_of(names), begin, begin + branches[5 * b + 3])
        at = hashed & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = b + 1


@inline
def find_node(names, branches, slots, count, parent, data, first, stop, size):
    """The node that the branch from another by the key data[first:stop] leads to, or -1; arrays by their addresses."""
    mask = np.uint64(count - 1)
    hashed = key_hash(parent, data, first, stop, size)
    at = hashed & mask
    while True:
        b = np.int64(int32_at(slots, np.int64(at))) * 5 - 5
        if b < 0:
            return np.int64(-1)
        if (
            int64_at(branches, b) == np.int64(hashed)
            and int64_at(branches, b + 1) == parent
            and int64_at(branches, b + 3) == stop - first
        ):
            begin, i = int64_at(branches, b + 2), np.int64(0)
            while i < stop - first and byte_at(names, begin + i) == byte_at(data, first + i):
                i += 1
            if i == stop - first:
                return int64_at(branches, b + 4)
        at = (at + np.uint64(1)) & mask


@inline
def read_events(r, data, begins, ends, first, count, texts, text_end):
    """Reads JSON texts data[begins[i]:ends[i]], from i = `first` on, each as one event of the buffer.

    Returns how it ended, the next text, and how many entries, texts and bytes of texts the buffer has then.
    """
    table, e, whole = r.table, r.events, address_of(data)
    size, last = len(data), len(data) - 31  # from the last place on no 32 bytes can be read at once
    names, branches, slots = address_of(table.names), address_of(table.branches), address_of(table.slots)
    slot_count, node_meta, node_filter = len(table.slots), table.node_meta, table.node_filter
    node_flags, seen, stack = r.node_flags, r.seen, r.stack
    string_data, string_begin = address_of(r.string_data), address_of(r.string_begin)
    string_stop, string_slots, string_count = address_of(r.string_end), address_of(r.string_slots), len(r.string_slots)
    offsets, metas, keys, text_number = e.offsets, e.meta, e.key, e.text_number
    text_low, text_high, text, text_size = e.text_low, e.text_high, address_of(e.text), len(e.text)
    for i in range(first, len(begins)):
        end = ends[i]
        n, rows, used = count, texts, text_end  # of the buffer, with what the event has so far
        r.clock[0] += 1
        stamp, ended = r.clock[0], IS_ODD
        depth, here = np.int64(-1), np.int64(_LIST)  # the containers around, and the one that we are in
        node, list_meta, list_flags, list_from = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        at = after_blanks(whole, begins[i], end)
        if at >= end or byte_at(whole, at) != OPENS:
            return IS_ODD, i, count, texts, text_end
        while True:
            # A value, of the node or, in a list of values, one of them.
            at = after_blanks(whole, at, end)
            if at >= end:
                break
            meta, flags = np.int64(-1), np.int64(0)
            if node >= 0:
                meta, flags = node_meta[node], np.int64(node_flags[node])
            elif here == _VALUES:
                meta, flags = list_meta, list_flags
            if meta >= 0 and n >= len(metas):
                ended = NO_ENTRIES
                break
            byte, closed = byte_at(whole, at), True
            if byte == QUOTE:
                start = at + 1
                at, escaped = plain_end(whole, start, end, last), False
                if at == ODD:
                    at, escaped = string_end(whole, start, end, last)
                    if at == ODD:
                        break
                if meta >= 0:
                    source, stop, kept = whole, at, flags & (TEXT | PATTERN) != 0
                    if escaped or kept:
                        if used + at - start > text_size or rows >= len(text_number):
                            ended = NO_TEXTS
                            break
                        source, stop, start = text, unescape(whole, start, at, text, used), used
                    number = np.int64(
                        find_at(string_data, string_begin, string_stop, string_slots, string_count, source, start, stop)
                    )
                    if kept:
                        text_number[rows], text_low[rows], text_high[rows] = number, start, stop
                        metas[n], keys[n] = meta + TEXT_ENTRY, rows
                        rows, used = rows + 1, stop
                    else:
                        metas[n], keys[n] = meta + STRING, number
                    n += 1
                at += 1
            elif byte == MINUS or 48 <= byte <= 57:
                at, kind, digits, power = number_end(whole, at, end, size)
                if at == ODD:
                    break
                if meta >= 0:
                    key, sure = number_key(kind, digits, power, byte == MINUS)
                    if not sure:
                        break
                    metas[n], keys[n] = meta + kind, key
                    n += 1
            elif byte == OPENS:
                if depth + 2 > DEPTH:
                    break
                if meta >= 0:
                    metas[n], keys[n] = meta + BOOLEAN, OBJECT
                    n += 1
                stack[depth + 1] = here
                depth, here = depth + 1, node if node >= 0 else np.int64(_SKIPPED)
                at = after_blanks(whole, at + 1, end)
                closed = at < end and byte_at(whole, at) == CLOSES
            elif byte == BEGINS:
                if depth + 2 > DEPTH or (meta >= 0 and (here == _VALUES or flags & SEVERAL == 0)):
                    break
                stack[depth + 1] = here
                depth, here = depth + 1, np.int64(_VALUES if meta >= 0 else _LIST)
                if meta >= 0:
                    list_meta, list_flags, list_from = meta, flags, n
                at = after_blanks(whole, at + 1, end)
                closed = at < end and byte_at(whole, at) == ENDS
            else:
                at, value = literal_end(whole, at, end)
                if at == ODD:
                    break
                if meta >= 0 and value >= 0:
                    metas[n], keys[n] = meta + BOOLEAN, value
                    n += 1
            # Behind a value: the ends of containers, and a comma.
            while closed:
                at = after_blanks(whole, at, end)
                if at >= end:
                    break
                byte = byte_at(whole, at)
                at += 1
                if byte == COMMA:
                    closed = False
                    break
                if byte != (CLOSES if here >= _SKIPPED else ENDS):
                    break
                if here == _VALUES and n == list_from:
                    if n >= len(metas):
                        ended = NO_ENTRIES
                        break
                    metas[n], keys[n] = list_meta + NO_VALUE, 0
                    n += 1
                here = stack[depth]
                depth -= 1
                if depth < 0:
                    ended = DONE if after_blanks(whole, at, end) >= end else IS_ODD
                    break
            if closed:
                break
            # The key of a member, and the node of its value.
            node = np.int64(_NOTHING)
            if here < _SKIPPED:
                continue
            at = after_blanks(whole, at, end)
            if at >= end or byte_at(whole, at) != QUOTE:
                break
            start = at + 1
            at, escaped = plain_end(whole, start, end, last), False
            if at == ODD:
                at, escaped = string_end(whole, start, end, last)
                if at == ODD:
                    break
            if here >= 0:
                if escaped:
                    if used + at - start > text_size:
                        ended = NO_TEXTS
                        break
                    stop = unescape(whole, start, at, text, used)
                    node = find_node(names, branches, slots, slot_count, here, text, used, stop, text_size)
                elif node_filter[here] & filter_bit(whole, start, at) != np.uint64(0):
                    node = find_node(names, branches, slots, slot_count, here, whole, start, at, size)
                if node >= 0:
                    if seen[node] == stamp:
                        break
                    seen[node] = stamp
            at = after_blanks(whole, at + 1, end)
            if at >= end or byte_at(whole, at) != COLON:
                break
            at += 1
        if ended != DONE:
            return ended, i, count, texts, text_end
        count, texts, text_end = n, rows, used
        offsets[i + 1] = count
    return DONE, len(begins), count, texts, text_end


@kernel
def read_event(r, data):
    """Reads one text, all of the bytes, into an empty buffer."""
    r.begin[0], r.end[0] = 0, len(data)
    return read_events(r, data, r.begin, r.end, 0, 0, 0, 0)


@kernel
def read_batch(r, data, begins, ends, first, count, texts, text_end):
    """Reads many; text i is event i of the buffer."""
    return read_events(r, data, begins, ends, first, count, texts, text_end)
