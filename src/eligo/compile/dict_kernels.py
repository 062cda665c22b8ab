"""From an event as a dict to entries of an event buffer, by a walk that follows the names that rules name.

The names are those that events as JSON are read with (json_kernels.py): from node to node by the keys of dicts within
dicts. What is read of a value is what the value is if its type is exactly that of a text, a number, a Boolean, None, a
dict, or a list or tuple of these.

    odd value     of any other type: it is put on a list, beside its node, for the encoder (encode.py) to read
    odd event     what may have to be read otherwise, or refused: a key that is no text, a name that it comes to twice,
                  a list where there may be one value, half a character, a whole number of more than 64 bits

Invariant: an event is either read, and then its entries are those that `Encoder.encode` gives, in whatever order of
attributes; or it is odd, and nothing of it is kept.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eligo.compile.codes import BOOLEAN, INTEGER, NO_VALUE, OBJECT, RAW_FLOAT, STRING
from eligo.compile.codes import TEXT as TEXT_ENTRY
from eligo.compile.encode import PATTERN, SEVERAL, TEXT
from eligo.compile.json_kernels import filter_bit, find_node
from eligo.compile.python_values import (
    IS_BOOL,
    IS_DICT,
    IS_FLOAT,
    IS_INT,
    IS_LIST,
    IS_NONE,
    IS_OTHER,
    IS_STR,
    IS_TUPLE,
    KEY,
    OVERFLOW,
    PLACE,
    SIZE,
    TRUE,
    VALUE,
    copy_bytes,
    dict_next,
    forget_exception,
    kind_of,
    list_append,
    list_item,
    list_size,
    real_of,
    tuple_item,
    tuple_size,
    utf8_of,
    whole_of,
)
from eligo.compile.strings import find_at
from eligo.jit import address_of, bits_of, handle, holding, inline, int32_at, int64_at

# How reading ends, if it does not return how many entries there are: there are texts or odd values besides, which
# `ends` tells; the event is odd; there is no room for entries, or for texts.
MORE: Final = -1
IS_ODD: Final = -2
NO_ENTRIES: Final = -3
NO_TEXTS: Final = -4
ENTRIES, TEXTS, TEXT_BYTES, ODD_VALUES, ENDS = range(5)  # places in `ends`: entries, texts, their bytes, odd values

DEPTH: Final = 64  # dicts within each other
ODD: Final = 64  # odd values of an event

# `types` and `cells` are what python_values.py says; `dicts`, `places` and `nodes` are the way to where the walk is;
# left[0] is the address of the list for odd values, whose nodes stand in `odd`.
make_dict_reader = handle("DictReader", ("reader", "types", "cells", "dicts", "places", "nodes", "odd", "ends", "left"))


@inline
def read_one(w, event, nth, n, rows, used):
    """Reads a dict, given by its address, as the `nth` event of a buffer that has `n` entries, and `rows` texts of
    `used` bytes. Returns how many entries there are then, or how it ended.
    """
    r, dicts, places, nodes, cells, odd = w.reader, w.dicts, w.places, w.nodes, w.cells, w.odd
    types, cell, left = address_of(w.types), address_of(cells), w.left[0]
    table, e, node_flags, seen = r.table, r.events, r.node_flags, r.seen
    names, branches, slots = address_of(table.names), address_of(table.branches), address_of(table.slots)
    slot_count, node_meta, node_filter = len(table.slots), table.node_meta, table.node_filter
    string_data, string_begin = address_of(r.string_data), address_of(r.string_begin)
    string_stop, string_slots, string_count = address_of(r.string_end), address_of(r.string_slots), len(r.string_slots)
    metas, keys, text, text_size = e.meta, e.key, address_of(e.text), len(e.text)
    text_number, text_low, text_high = e.text_number, e.text_low, e.text_high
    if list_size(left) != 0:
        return IS_ODD  # somebody was stopped before the values on it were read
    r.clock[0] += 1
    stamp, before, odds, depth = r.clock[0], rows, np.int64(0), np.int64(0)
    dicts[0], places[0], nodes[0] = event, 0, 0
    while depth >= 0:
        # A key, and the node of its value.
        cells[PLACE] = places[depth]
        if dict_next(dicts[depth], cell + 8 * PLACE, cell + 8 * KEY, cell + 8 * VALUE) == 0:
            depth -= 1
            continue
        places[depth] = cells[PLACE]
        here, value = nodes[depth], cells[VALUE]
        if kind_of(cells[KEY], types) != IS_STR:
            return IS_ODD
        name = utf8_of(cells[KEY], cell + 8 * SIZE)
        if name == 0:
            forget_exception()
            return IS_ODD
        size = cells[SIZE]
        if node_filter[here] & filter_bit(name, 0, size) == np.uint64(0):
            continue
        node = find_node(names, branches, slots, slot_count, here, name, 0, size, size)
        if node < 0:
            continue
        if seen[node] == stamp:
            return IS_ODD
        seen[node] = stamp
        meta, flags, kind = node_meta[node], np.int64(node_flags[node]), kind_of(value, types)
        if kind == IS_DICT and node_filter[node] != np.uint64(0):
            if depth + 2 > DEPTH:
                return IS_ODD
            depth += 1
            dicts[depth], places[depth], nodes[depth] = value, 0, node
        if kind == IS_NONE or (meta < 0 and kind != IS_OTHER):
            continue
        # Its value, or the values of a list or tuple.
        whole, count, first, first_row, first_byte = value, np.int64(1), n, rows, used
        several = kind in (IS_LIST, IS_TUPLE)
        if several:
            if flags & SEVERAL == 0:
                return IS_ODD
            count = list_size(whole) if kind == IS_LIST else tuple_size(whole)
        if n + max(count, 1) > len(metas):
            return NO_ENTRIES
        one = kind
        for i in range(count):
            if several:
                value = list_item(whole, i) if kind == IS_LIST else tuple_item(whole, i)
                one = kind_of(value, types)
            if one == IS_STR:
                begin = utf8_of(value, cell + 8 * SIZE)
                if begin == 0:
                    forget_exception()
                    return IS_ODD
                size = cells[SIZE]
                number = np.int64(
                    find_at(string_data, string_begin, string_stop, string_slots, string_count, begin, 0, size)
                )
                if flags & (TEXT | PATTERN) != 0:
                    if used + size > text_size or rows >= len(text_number):
                        return NO_TEXTS
                    copy_bytes(begin, text, used, size)
                    text_number[rows], text_low[rows], text_high[rows] = number, used, used + size
                    metas[n], keys[n] = meta + TEXT_ENTRY, rows
                    rows, used = rows + 1, used + size
                else:
                    metas[n], keys[n] = meta + STRING, number
            elif one == IS_INT:
                metas[n], keys[n] = meta + INTEGER, whole_of(value, cell + 8 * OVERFLOW)
                if int32_at(cell + 8 * OVERFLOW, 0) != 0:
                    return IS_ODD
            elif one == IS_FLOAT:
                real = real_of(value)
                if real != real:
                    continue
                metas[n], keys[n] = meta + RAW_FLOAT, bits_of(real)
            elif one == IS_BOOL:
                metas[n], keys[n] = meta + BOOLEAN, np.int64(value == int64_at(types, TRUE))
            elif one == IS_DICT:
                metas[n], keys[n] = meta + BOOLEAN, OBJECT
            elif one == IS_NONE:
                continue
            else:
                one = np.int64(IS_OTHER)
                break
            n += 1
        if one == IS_OTHER:
            n, rows, used = first, first_row, first_byte
            if odds >= len(odd) or list_append(left, whole) != 0:
                forget_exception()
                return IS_ODD
            odd[odds] = node
            odds += 1
        elif several and n == first:
            metas[n], keys[n] = meta + NO_VALUE, 0
            n += 1
    e.offsets[nth + 1] = n
    if rows == before and odds == 0:
        return n
    w.ends[ENTRIES], w.ends[TEXTS], w.ends[TEXT_BYTES], w.ends[ODD_VALUES] = n, rows, used, odds
    return np.int64(MORE)


@holding
def read_dict(w, event):
    """Reads a dict, given by its address, into an empty buffer. Returns how many entries it has, or how it ended."""
    zero = np.int64(0)
    return read_one(w, event, zero, zero, zero, zero)


@holding
def read_dicts(w, events, number, stop, n, rows, used):
    """Reads dicts number … stop-1 of a list, given by its address, behind what is in the buffer, until one is odd or
    has odd values, or there is no room. Returns how that one ended, its number, and how many entries, texts and bytes
    of texts there are before it.
    """
    ended, types = np.int64(0), address_of(w.types)
    while number < stop:
        event = list_item(events, number)
        ended = read_one(w, event, number, n, rows, used) if kind_of(event, types) == IS_DICT else np.int64(IS_ODD)
        if ended == MORE and w.ends[ODD_VALUES] == 0:
            ended, rows, used = w.ends[ENTRIES], w.ends[TEXTS], w.ends[TEXT_BYTES]
        if ended < 0:
            break
        n = ended
        number += 1
    return ended, number, n, rows, used
