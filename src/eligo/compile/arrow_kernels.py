"""Columns of Arrow tables to entries of an event buffer: what kernels read of them, and how.

Arrow describes an array in memory by a struct (the C data interface), which begins with eight words:

    length │ null_count │ offset │ n_buffers │ n_children │ buffers │ children │ dictionary │ …

A table is a sequence of *stretches*, rows that are one array in every column. Of each stretch `gather` writes a *node*
for every array that is read, so that nothing else of Arrow's is looked at for an event:

    KIND      how values are read; NOTHING where all are null in this stretch
    VALIDITY  address of the bits that say which values are not null; 0 if all are not
    VALUES    address of values, offsets, views, indices, or type ids
    DATA      address of strings' bytes, or of a union's offsets; of views the place of the addresses of buffers
    OFFSET    row i of the stretch, or item i of the lists that it is in, is value OFFSET + i
    LENGTH    how many values the array has; only a dictionary is asked
    PARENT    the node of the struct that this is a field of, whose nulls are nulls here; else 0
    CHILD     the node of a dictionary, of a list's items or of a map's keys; of a union its `branches`
    OTHER     the node of a map's values; of a union its first node; the kind of the indices of a dictionary's column
    KNOWN     of a dictionary: where what is known of its values begins, two words each: code and key
    SURE      1 if values are there just if they are not null; 0 if they may be NaN, or null in a dictionary

Nodes name each other by their addresses. Invariant: nothing is read but what Arrow says is there: of bits the bytes
that hold one of the rows, of buffers that are 0 nothing.

A column of the plan (`arrow_events.py`) reads a node in one of four modes:

    SCALAR    one value a row
    ITEMS     the items of a list, several values of one attribute
    PAIRS     a map, or a list of pairs: the key names the attribute, and the value is read from another node
    PART      entries that were made the readable way (`arrow.py`), sorted by row

Events are encoded in two passes: `count` says how many entries each row has, `fill` writes them. Both ask the same
functions whether a value is there, and so agree. A value that may be an error makes its column *odd*: the column is
then read the readable way, which says what is wrong, if anything is.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eligo.compile import codes
from eligo.compile.encode import PATTERN, SEVERAL, TEXT
from eligo.compile.json_words import ODD as NO_CHARACTER
from eligo.compile.json_words import after_character
from eligo.compile.strings import find_at
from eligo.jit import (
    address_of,
    bits_of,
    byte_at,
    float32_at,
    inline,
    int32_at,
    int64_at,
    kernel,
    put_int64,
    trailing_zeros,
    word_at,
)

# Kinds of nodes; those below FLOAT32 are integers.
NOTHING: Final = 0
INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64 = range(1, 9)
FLOAT32, FLOAT64, BOOLEAN, SECONDS, MILLISECONDS, MICROSECONDS, NANOSECONDS, DATE32, DATE64 = range(9, 18)
STRING, LARGE_STRING, STRING_VIEW = range(18, 21)
OBJECT, DICTIONARY, SPARSE_UNION, DENSE_UNION, LIST, LARGE_LIST, MAP = range(21, 28)

KIND, VALIDITY, VALUES, DATA, OFFSET, LENGTH, PARENT, CHILD, OTHER, KNOWN, SURE = range(11)
FIELDS: Final = 11  # of a node

# How a node is found: its kind, the node that it is in (-1: the table), which child of that (-1: its dictionary), and
# what becomes its CHILD and OTHER: numbers of nodes, but of a dictionary's column OTHER is the kind of the indices, and
# of a union CHILD is the row of its branches.
PATH_KIND, PATH_PARENT, PATH_PLACE, PATH_CHILD, PATH_OTHER = range(5)

# A column: its node (or part), its mode, the attribute's meta and flags, and which names the keys of its map have.
SCALAR, ITEMS, PAIRS, PART = range(4)
COLUMN_NODE, COLUMN_MODE, COLUMN_META, COLUMN_SPECIAL, COLUMN_NAMES = range(5)

# Strings by addresses (strings.py): those that rules name or, with a word more, the names of a map's keys. Behind that
# is a word for each name: the attribute's meta and, in its place for a kind, the flags.
DATA_AT, BEGIN_AT, END_AT, SLOTS_AT, SLOT_COUNT, METAS_AT = range(6)
NAMES: Final = 6  # words for the names of a map's keys
_SPECIAL: Final = 255

BRANCHES: Final = 128  # of a union: the number of the node of each type id, or -1
UNKNOWN, UNSURE = 0, -1  # in place of a code: not looked at yet; the readable way must say
NO_PAIR: Final = -1  # in place of the number of a name

_DAY: Final = 86_400
_CACHED: Final = 65_536  # entries that are written while others of their rows are in the cache
_TOGETHER: Final = 16  # columns whose entries of a row are written together, each array of two cache lines
_LINE: Final = 8  # integers in a cache line
_NO_BITS, _ALL_BITS, _ONE = np.uint64(0), np.uint64(2**64 - 1), np.uint64(1)
_NO_ASCII: Final = np.uint64(0x8080808080808080)


@kernel
def gather(batch, paths, branches, nodes, before, known):
    """Writes the nodes of a stretch, which is a record batch at an address. `before` are those of the stretch before
    it, if any: a dictionary that is the same is not looked at twice. Returns how many values dictionaries have, with
    the `known` ones of other stretches.
    """
    arrays = np.empty(len(paths), np.int64)
    first = address_of(nodes)
    for n in range(len(paths)):
        kind, parent, place = paths[n, PATH_KIND], paths[n, PATH_PARENT], paths[n, PATH_PLACE]
        outer, above = (batch, np.int64(NOTHING)) if parent < 0 else (arrays[parent], paths[parent, PATH_KIND])
        array = int64_at(outer, 7) if place < 0 else int64_at(int64_at(outer, 6), place)
        arrays[n] = array
        length, nulls, offset = int64_at(array, 0), int64_at(array, 1), int64_at(array, 2)
        count, buffers = int64_at(array, 3), int64_at(array, 5)
        is_union = kind in (SPARSE_UNION, DENSE_UNION)
        at = 0 if is_union else 1  # a union has no bits of its own
        nodes[n, KIND] = NOTHING if not is_union and 0 < length == nulls else kind
        nodes[n, VALIDITY] = int64_at(buffers, 0) if not is_union and count > 0 and nulls != 0 else 0
        nodes[n, VALUES] = int64_at(buffers, at) if count > at else 0
        nodes[n, DATA] = int64_at(buffers, at + 1) if count > at + 1 else 0
        if kind == STRING_VIEW:
            nodes[n, DATA] = buffers + 16
        if parent < 0:
            offset += int64_at(batch, 2)
        elif above in (OBJECT, SPARSE_UNION):  # whose parts are not cut as they are
            offset += nodes[parent, OFFSET]
        nodes[n, OFFSET], nodes[n, LENGTH] = offset, length
        nodes[n, PARENT] = first + 8 * FIELDS * parent if above == OBJECT else 0
        nodes[n, CHILD] = first + 8 * FIELDS * paths[n, PATH_CHILD]
        nodes[n, OTHER] = first + 8 * FIELDS * paths[n, PATH_OTHER]
        if kind == DICTIONARY:
            nodes[n, OTHER] = paths[n, PATH_OTHER]
        elif is_union:
            nodes[n, CHILD], nodes[n, OTHER] = address_of(branches) + 8 * BRANCHES * paths[n, PATH_CHILD], first
        nodes[n, KNOWN] = 0
        nodes[n, SURE] = kind < FLOAT32 or (FLOAT64 < kind <= OBJECT) or kind == MAP
        if place < 0:
            nodes[parent, SURE] = nodes[n, KIND] != NOTHING and nodes[n, SURE] and nodes[n, VALIDITY] == 0
            nodes[n, KNOWN] = known
            if len(before) and (nodes[n, : LENGTH + 1] == before[n, : LENGTH + 1]).all():
                nodes[n, KNOWN] = before[n, KNOWN]
            else:
                known += length
    return known


# -- one value of a node


@inline
def is_set(bits, place):
    return (byte_at(bits, place >> 3) >> np.uint8(place & 7)) & np.uint8(1) != 0


@inline
def is_valid(node, i):
    """Whether a value is not null, nor the struct that it is in."""
    while node != 0:
        bits = int64_at(node, VALIDITY)
        if int64_at(node, KIND) == NOTHING or (bits != 0 and not is_set(bits, int64_at(node, OFFSET) + i)):
            return False
        node = int64_at(node, PARENT)
    return True


@inline
def integer_at(kind, values, at):
    """An integer of some width; one of 64 bits without a sign may come out negative."""
    if kind in (INT64, UINT64):
        return np.int64(word_at(values, 8 * at))
    if kind == INT32:
        return np.int64(int32_at(values, at))
    if kind == UINT32:
        return np.int64(int32_at(values, at)) & np.int64(0xFFFFFFFF)
    if kind in (INT8, UINT8):
        byte = np.int64(byte_at(values, at))
        return byte - 256 if kind == INT8 and byte > 127 else byte
    short = np.int64(byte_at(values, 2 * at)) | np.int64(byte_at(values, 2 * at + 1)) << 8
    return short - 65536 if kind == INT16 and short > 32767 else short


@inline
def resolved(node, i):
    """The node of plain values that has value i of a node, and its number there: UNSURE if there is none such."""
    kind, at = int64_at(node, KIND), int64_at(node, OFFSET) + i
    if kind == DICTIONARY:
        number = integer_at(int64_at(node, OTHER), int64_at(node, VALUES), at)
        child = int64_at(node, CHILD)
        return child, (number if 0 <= number < int64_at(child, LENGTH) else np.int64(UNSURE))
    if kind in (SPARSE_UNION, DENSE_UNION):
        code = np.int64(byte_at(int64_at(node, VALUES), at))
        branch = int64_at(int64_at(node, CHILD), code) if code < BRANCHES else np.int64(-1)
        if branch < 0:
            return node, np.int64(UNSURE)
        if kind == DENSE_UNION:
            i = np.int64(int32_at(int64_at(node, DATA), at))
        return int64_at(node, OTHER) + 8 * FIELDS * branch, i
    return node, i


@inline
def is_there(node, i):
    """Whether a value is present: neither null nor NaN."""
    if not is_valid(node, i):
        return False
    kind = int64_at(node, KIND)
    if DICTIONARY <= kind <= DENSE_UNION:
        node, i = resolved(node, i)
        if i == UNSURE:
            return True
        if not is_valid(node, i):
            return False
        kind = int64_at(node, KIND)
    if kind in (FLOAT32, FLOAT64):
        return not is_nan(bits_of_number(kind, int64_at(node, VALUES), int64_at(node, OFFSET) + i))
    return True


@inline
def text_at(node, i):
    """String i of a node of strings: the address of its bytes, and of the one behind the last."""
    kind, values, at = int64_at(node, KIND), int64_at(node, VALUES), int64_at(node, OFFSET) + i
    if kind == STRING_VIEW:
        # Of 16 bytes the first four are the length; a string of up to 12 stands behind it, others have their number of
        # a buffer and their place in it at the end.
        view = values + 16 * at
        length = np.int64(int32_at(view, 0))
        begin = view + 4
        if length > 12:
            begin = int64_at(int64_at(node, DATA), np.int64(int32_at(view, 2))) + np.int64(int32_at(view, 3))
        return begin, begin + length
    data = int64_at(node, DATA)
    if kind == STRING:
        return data + np.int64(int32_at(values, at)), data + np.int64(int32_at(values, at + 1))
    return data + np.int64(word_at(values, 8 * at)), data + np.int64(word_at(values, 8 * at + 8))


@inline
def text_number(strings, node, i):
    """The number of a string among others, -1 if it has none, and whether it is UTF-8."""
    data, end = text_at(node, i)
    begin, end = np.int64(0), end - data
    number = np.int64(
        find_at(
            int64_at(strings, DATA_AT), int64_at(strings, BEGIN_AT), int64_at(strings, END_AT),
            int64_at(strings, SLOTS_AT), int64_at(strings, SLOT_COUNT), data, begin, end,
        )
    )  # fmt: skip
    if number < 0:  # those that have a number are UTF-8
        while end - begin >= 8 and word_at(data, begin) & _NO_ASCII == _NO_BITS:
            begin += 8
        while begin < end:
            if byte_at(data, begin) < 128:
                begin += 1
            else:
                begin = after_character(data, begin, end)
                if begin == NO_CHARACTER:
                    return number, False
    return number, True


@inline
def bits_of_number(kind, values, at):
    """A number, Boolean, date or timestamp: an integer as it is stored, or the bits of a float of 64 bits."""
    if kind in (FLOAT64, DATE64) or SECONDS <= kind <= NANOSECONDS:
        return np.int64(word_at(values, 8 * at))
    if kind == FLOAT32:
        return bits_of(float32_at(values, at))
    if kind == BOOLEAN:
        return np.int64(is_set(values, at))
    if kind == DATE32:
        return np.int64(int32_at(values, at))
    return integer_at(kind, values, at)


@inline
def is_nan(bits):
    return bits & np.int64(2**63 - 1) > np.int64(0x7FF0000000000000)


@inline
def measure(kind):
    """Of numbers, Booleans, dates and timestamps: their code, the least and the greatest that can be used, and what
    they are multiplied by then.
    """
    least, most = np.int64(-(2**63)), np.int64(2**63 - 1)
    if kind <= UINT64:
        return np.int64(codes.INTEGER), (np.int64(0) if kind == UINT64 else least), most, np.int64(1)
    if kind <= FLOAT64:
        return np.int64(codes.RAW_FLOAT), least, most, np.int64(1)
    if kind == BOOLEAN:
        return np.int64(codes.BOOLEAN), least, most, np.int64(1)
    factor = np.int64(1)
    if kind == SECONDS:
        factor = np.int64(1_000_000)
    elif kind in (MILLISECONDS, DATE64):
        factor = np.int64(1_000)
    elif kind == DATE32:
        factor = np.int64(_DAY * 1_000_000)
    if factor > 1:
        least, most = -(most // factor), most // factor
    return np.int64(codes.TIME), least, most, factor


@inline
def plain_value(strings, node, i):
    """Code and key of a value that is there, of a node of plain values."""
    kind = int64_at(node, KIND)
    if STRING <= kind <= STRING_VIEW:
        number, is_text = text_number(strings, node, i)
        return np.int64(codes.STRING if is_text else UNSURE), number
    if kind in (OBJECT, MAP):
        return np.int64(codes.BOOLEAN), np.int64(codes.OBJECT)
    key = bits_of_number(kind, int64_at(node, VALUES), int64_at(node, OFFSET) + i)
    code, least, most, factor = measure(kind)
    if not least <= key <= most or (kind == DATE64 and key % 1000 != 0):
        return np.int64(UNSURE), key
    return code, (key // 1000 if kind == NANOSECONDS else key * factor)


@inline
def value_at(strings, known, node, i):
    """Code and key of a value that is there; UNSURE if it may be an error. What dictionaries hold is remembered."""
    kind = int64_at(node, KIND)
    if not DICTIONARY <= kind <= DENSE_UNION:
        return plain_value(strings, node, i)
    node, i = resolved(node, i)
    if i == UNSURE:
        return np.int64(UNSURE), i
    if kind != DICTIONARY:
        return plain_value(strings, node, i)
    place = 2 * (int64_at(node, KNOWN) + i)
    code, key = int64_at(known, place), int64_at(known, place + 1)
    if code == UNKNOWN:
        code, key = plain_value(strings, node, i)
        put_int64(known, place, code)
        put_int64(known, place + 1, key)
    return code, key


@inline
def text_size(node, i):
    """The bytes of a value that is there, if it is a string; else -1."""
    node, i = resolved(node, i)
    if i == UNSURE or not STRING <= int64_at(node, KIND) <= STRING_VIEW:
        return np.int64(-1)
    begin, end = text_at(node, i)
    return end - begin


@inline
def name_number(names, node, i):
    """The number of the name that the key of a pair is, or NO_PAIR, and whether this is sure."""
    if not is_valid(node, i):
        return np.int64(NO_PAIR), False
    node, i = resolved(node, i)
    if i == UNSURE or not is_valid(node, i):
        return np.int64(NO_PAIR), False
    return text_number(names, node, i)


# -- many rows of a node


@inline
def bits_at(bits, place, count):
    """Bits from a place on, at most 64, as one word. No byte is looked at that holds none of them."""
    first, shift = place >> 3, np.uint64(place & 7)
    if count == 64:
        word = word_at(bits, first)
        if shift != _NO_BITS:
            word = word >> shift | np.uint64(byte_at(bits, first + 8)) << (np.uint64(64) - shift)
        return word
    word = _NO_BITS
    for i in range(first, ((place + count - 1) >> 3) + 1):
        at = 8 * (i - first) - np.int64(shift)
        byte = np.uint64(byte_at(bits, i))
        word |= byte << np.uint64(at) if at >= 0 else byte >> np.uint64(-at)
    return word & (_ALL_BITS >> np.uint64(64 - count))


@inline
def valid_rows(node, i, count):
    """Which of at most 64 values, from value i on, are not null, nor the structs that they are in: a bit for each."""
    word = _ALL_BITS >> np.uint64(64 - count)
    while node != 0 and word != _NO_BITS:
        bits = int64_at(node, VALIDITY)
        if int64_at(node, KIND) == NOTHING:
            word = _NO_BITS
        elif bits != 0:
            word &= bits_at(bits, int64_at(node, OFFSET) + i, count)
        node = int64_at(node, PARENT)
    return word


@inline
def items(node, i):
    """The first item of a list or a map, and the one behind the last."""
    values, at = int64_at(node, VALUES), int64_at(node, OFFSET) + i
    if int64_at(node, KIND) == LARGE_LIST:
        return np.int64(word_at(values, 8 * at)), np.int64(word_at(values, 8 * at + 8))
    return np.int64(int32_at(values, at)), np.int64(int32_at(values, at + 1))


@inline
def values_of(mode, node, i):
    """The node that has the values of row i, the first of them, and the one behind the last."""
    if mode == SCALAR:
        return node, i, i + 1
    begin, end = items(node, i)
    return int64_at(node, CHILD if mode == ITEMS else OTHER), begin, end


@inline
def is_whole(node):
    """Whether all values are there, as is seen without looking at them."""
    return int64_at(node, SURE) != 0 and int64_at(node, VALIDITY) == 0 and int64_at(node, PARENT) == 0


@inline
def node_at(nodes, stretch, number):
    return address_of(nodes) + 8 * FIELDS * (stretch * nodes.shape[1] + number)


@kernel
def locate_pairs(nodes, starts, columns, first, stop, places):
    """Writes for each stretch and column of maps the place that the pair 0 of its array has among the pairs of some
    rows. Returns how many pairs these rows have.
    """
    pairs = np.int64(0)
    for s in range(len(starts) - 1):
        low, high = max(first, starts[s]), min(stop, starts[s + 1])
        for c in range(len(columns)):
            node = node_at(nodes, s, columns[c, COLUMN_NODE])
            if low < high and columns[c, COLUMN_MODE] == PAIRS and int64_at(node, KIND) != NOTHING:
                begin = items(node, low - starts[s])[0]
                places[s, c] = pairs - begin
                pairs += items(node, high - starts[s] - 1)[1] - begin
    return pairs


@kernel
def count(
    nodes, starts, columns, names, first, stop, part_rows, places, pairs, seen, clock, counts, last, repeats, odd
):
    """Adds to counts[i + 1] the entries of row first + i, and writes to `pairs` the number of each pair's name, or
    NO_PAIR if the pair makes no entry; to last[i], if there is such, how many entries the last column makes; and to
    repeats[i] whether a map gives an attribute several values. Marks columns that are odd. Returns how many strings
    have their bytes looked at, how many bytes these are, and the clock, which tells the pairs of one row in `seen` from
    those of all others.
    """
    texts, size = np.int64(0), np.int64(0)
    for row in part_rows:
        counts[row + 1] += 1
    for s in range(len(starts) - 1):
        start = starts[s]
        low, high = max(first, start), min(stop, starts[s + 1])
        everywhere = np.int64(0)
        for c in range(len(columns) if low < high else 0):
            mode, special = columns[c, COLUMN_MODE], columns[c, COLUMN_SPECIAL]
            if mode == PART:
                continue
            node = node_at(nodes, s, columns[c, COLUMN_NODE])
            if int64_at(node, KIND) == NOTHING:
                continue
            has_text = special & (TEXT | PATTERN) != 0
            is_simple, is_sure = mode == SCALAR and not has_text, int64_at(node, SURE) != 0
            if is_simple and is_whole(node):
                everywhere += 1
                continue
            table, place = address_of(names) + 8 * NAMES * columns[c, COLUMN_NAMES], np.int64(0)
            if mode == PAIRS:
                place = places[s, c]
            for row in range(low, high, 64):
                word = valid_rows(node, row - start, min(np.int64(64), high - row))
                while word != _NO_BITS:
                    i = row + np.int64(trailing_zeros(word))
                    word &= word - _ONE
                    if is_simple:
                        if is_sure or is_there(node, i - start):
                            counts[i - first + 1] += 1
                        continue
                    values, begin, end = values_of(mode, node, i - start)
                    found = np.int64(0)
                    clock += 1
                    for j in range(begin, end):
                        there = is_there(values, j)
                        if mode == PAIRS:
                            number, is_name = name_number(table, int64_at(node, CHILD), j)
                            if not is_name:
                                odd[c] = 1
                            there &= number >= 0
                            pairs[place + j] = number if there else np.int64(NO_PAIR)
                            if there:
                                meta = int64_at(int64_at(table, METAS_AT), number)
                                attribute, special = meta >> 8, meta & _SPECIAL
                                has_text = special & (TEXT | PATTERN) != 0
                                if seen[attribute] == clock:
                                    repeats[i - first] = 1
                                    if special & SEVERAL == 0:
                                        odd[c] = 1
                                seen[attribute] = clock
                        if there:
                            found += 1
                            if has_text:
                                length = text_size(values, j)
                                if length >= 0:
                                    texts += 1
                                    size += length
                    if mode == ITEMS:
                        found = max(np.int64(1), found)  # present without values: an entry that satisfies nothing
                        if special & SEVERAL == 0:
                            odd[c] = 1
                    counts[i - first + 1] += found
                    if mode == PAIRS and len(last) and c == len(columns) - 1:
                        last[i - first] = found
        if everywhere:
            for row in range(low, high):
                counts[row - first + 1] += everywhere
    return texts, size, clock


@inline
def fill_whole(nodes, s, columns, c, start, first, upper, lower, cursor, metas, keys):
    """Writes the entries of some rows of columns of 64-bit integers that have no nulls, as many as come one after
    another. Returns the column behind the last of them.
    """
    values, metas_of, count = np.empty(_TOGETHER, np.int64), np.empty(_TOGETHER, np.int64), 0
    while count < _TOGETHER and c < len(columns) and columns[c, COLUMN_MODE] == SCALAR:
        node = node_at(nodes, s, columns[c, COLUMN_NODE])
        if int64_at(node, KIND) != INT64 or not is_whole(node):
            break
        values[count] = int64_at(node, VALUES) + 8 * (int64_at(node, OFFSET) - start)
        metas_of[count] = columns[c, COLUMN_META] + codes.INTEGER
        count += 1
        c += 1
    # By addresses: that each place lies within the arrays would be asked of every integer, and `count` has seen to it.
    # Arrays are named wherever their addresses are used: Numba frees one behind the last place that has its name.
    tile = np.empty(_LINE * _TOGETHER, np.int64)
    for row in range(upper, lower, _LINE):
        height = min(_LINE, lower - row)
        for k in range(count):
            begin = values[k] + 8 * row
            for i in range(height):
                put_int64(address_of(tile), _TOGETHER * i + k, np.int64(word_at(begin, 8 * i)))
        for i in range(height):
            at = cursor[row + i - first]
            cursor[row + i - first] = at + count
            to = address_of(metas) + 8 * at
            for k in range(count):
                put_int64(to, k, int64_at(address_of(metas_of), k))
            to = address_of(keys) + 8 * at
            for k in range(count):
                put_int64(to, k, int64_at(address_of(tile), _TOGETHER * i + k))
    return c


@inline
def fill_numbers(node, meta, start, first, upper, lower, cursor, metas, keys):
    """Writes the entries of some rows of a column of numbers, Booleans, dates or timestamps. Returns whether all are
    sure.
    """
    kind, values, ahead = int64_at(node, KIND), int64_at(node, VALUES), int64_at(node, OFFSET) - start
    code, least, most, factor = measure(kind)
    meta += code
    is_float, is_sure = kind in (FLOAT32, FLOAT64), True
    for row in range(upper, lower, 64):
        word = valid_rows(node, row - start, min(np.int64(64), lower - row))
        while word != _NO_BITS:
            i = row + np.int64(trailing_zeros(word))
            word &= word - _ONE
            key = bits_of_number(kind, values, ahead + i)
            if is_float and is_nan(key):
                continue
            is_sure &= least <= key <= most
            if kind == NANOSECONDS:
                key //= 1000
            elif kind == DATE64:
                is_sure &= key % 1000 == 0
            at = cursor[i - first]
            cursor[i - first] = at + 1
            metas[at], keys[at] = meta, key * factor
    return is_sure


@inline
def fill_strings(node, strings, known, meta, start, first, upper, lower, cursor, metas, keys):
    """The same of a column of strings, or of a dictionary, whose values are there just if they are not null and whose
    bytes nobody looks at.
    """
    is_dictionary, is_sure = int64_at(node, KIND) == DICTIONARY, True
    for row in range(upper, lower, 64):
        word = valid_rows(node, row - start, min(np.int64(64), lower - row))
        while word != _NO_BITS:
            i = row + np.int64(trailing_zeros(word))
            word &= word - _ONE
            code = np.int64(codes.STRING)
            if is_dictionary:
                code, key = value_at(strings, known, node, i - start)
                is_sure &= code != UNSURE
            else:
                key, is_text = text_number(strings, node, i - start)
                is_sure &= is_text
            at = cursor[i - first]
            cursor[i - first] = at + 1
            metas[at], keys[at] = meta + code, key
    return is_sure


@inline
def sort_by_attribute(metas, keys, low, high):
    """Puts the entries of one attribute next to each other, in the order that they have."""
    for i in range(low + 1, high):
        meta, key, at = metas[i], keys[i], i
        while at > low and metas[at - 1] >> 8 > meta >> 8:
            metas[at], keys[at] = metas[at - 1], keys[at - 1]
            at -= 1
        metas[at], keys[at] = meta, key


@kernel
def are_given_twice(offsets, metas, last, seen, clock):
    """Whether a row has entries of an attribute among its last ones, as many as `last` says, and before; and the clock,
    which tells rows apart in `seen`.
    """
    for i in range(len(offsets) - 1):
        clock += 1
        middle = offsets[i + 1] - last[i]
        for j in range(offsets[i], middle):
            seen[metas[j] >> 8] = clock
        for j in range(middle, offsets[i + 1]):
            if seen[metas[j] >> 8] == clock:
                return True, clock
    return False, clock


@kernel
def fill(
    nodes, starts, columns, names, strings, known, first, stop, part_rows, part_metas, part_keys, part_offsets,
    places, pairs, repeats, cursor, e, texts, text_end, odd,
):  # fmt: skip
    """Writes the entries of some rows where `cursor` says, and their strings behind `texts`. Marks columns that are
    odd: what is written is of no use then. Returns the ends of the text table.

    Rows are filled some at a time, so that entries of one row that come from many columns are in the cache together.
    """
    rows, metas, keys = stop - first, e.meta, e.key
    height = max(np.int64(64), rows * max(_CACHED, 4 * len(columns)) // (len(metas) + 1) // 64 * 64)
    part_at = part_offsets.copy()
    text_numbers, text_low, text_high, text = e.text_number, e.text_low, e.text_high, e.text
    strings_at, known_at = address_of(strings), address_of(known)
    for s in range(len(starts) - 1):
        start = starts[s]
        low, high = max(first, start), min(stop, starts[s + 1])
        for upper in range(low, high, height):
            lower = min(high, upper + height)
            behind = 0
            while behind < len(columns):
                c = behind
                behind += 1
                mode, special = columns[c, COLUMN_MODE], columns[c, COLUMN_SPECIAL]
                meta, n = columns[c, COLUMN_META], columns[c, COLUMN_NODE]
                if mode == PART:
                    j = part_at[n]
                    while j < part_offsets[n + 1] and part_rows[j] < lower - first:
                        at = cursor[part_rows[j]]
                        metas[at], keys[at] = part_metas[j], part_keys[j]
                        cursor[part_rows[j]] = at + 1
                        j += 1
                    part_at[n] = j
                    continue
                node = node_at(nodes, s, n)
                kind = int64_at(node, KIND)
                if kind == NOTHING:
                    continue
                if mode == SCALAR:
                    if kind == INT64 and is_whole(node):
                        behind = fill_whole(nodes, s, columns, c, start, first, upper, lower, cursor, metas, keys)
                        continue
                    if kind < STRING:
                        if not fill_numbers(node, meta, start, first, upper, lower, cursor, metas, keys):
                            odd[c] = 1
                        continue
                    is_text = STRING <= kind <= STRING_VIEW or kind == DICTIONARY
                    if is_text and special & (TEXT | PATTERN) == 0 and int64_at(node, SURE) != 0:
                        if not fill_strings(
                            node, strings_at, known_at, meta, start, first, upper, lower, cursor, metas, keys
                        ):
                            odd[c] = 1
                        continue
                table, place = address_of(names) + 8 * NAMES * columns[c, COLUMN_NAMES], np.int64(0)
                if mode == PAIRS:
                    place = places[s, c]
                for row in range(upper, lower, 64):
                    word = valid_rows(node, row - start, min(np.int64(64), lower - row))
                    while word != _NO_BITS:
                        i = row + np.int64(trailing_zeros(word))
                        word &= word - _ONE
                        values, begin, end = values_of(mode, node, i - start)
                        at = cursor[i - first]
                        for j in range(begin, end):
                            if mode == PAIRS:
                                number = pairs[place + j]
                                if number < 0:
                                    continue
                                meta = int64_at(int64_at(table, METAS_AT), number)
                                special = meta & _SPECIAL
                                meta -= special
                            elif not is_there(values, j):
                                continue
                            code, key = value_at(strings_at, known_at, values, j)
                            if code == UNSURE:
                                odd[c] = 1
                            elif code == codes.STRING and special & (TEXT | PATTERN) != 0:
                                source, t = resolved(values, j)
                                data, behind_data = text_at(source, t)
                                text_numbers[texts], text_low[texts] = key, text_end
                                for k in range(behind_data - data):
                                    text[text_end] = byte_at(data, k)
                                    text_end += 1
                                text_high[texts] = text_end
                                code, key = np.int64(codes.TEXT), texts
                                texts += 1
                            metas[at], keys[at] = meta + code, key
                            at += 1
                        if mode == ITEMS and at == cursor[i - first]:
                            metas[at], keys[at] = meta + codes.NO_VALUE, 0
                            at += 1
                        if mode == PAIRS and repeats[i - first]:
                            sort_by_attribute(metas, keys, cursor[i - first], at)
                        cursor[i - first] = at
    return texts, text_end
