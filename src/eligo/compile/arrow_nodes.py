"""Arrays of Arrow as kernels read them: where their values are, and what each of them is as an entry of an event.

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
"""

from __future__ import annotations

from typing import Final

import numpy as np

from eligo.compile import codes
from eligo.compile.json_words import is_utf8
from eligo.compile.strings import find_at
from eligo.jit import address_of, bits_of, byte_at, float32_at, inline, int32_at, int64_at, kernel, put_int64, word_at

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

# Strings by addresses (strings.py): those that rules name or, with a word more, the names of a map's keys. Behind that
# is a word for each name: the attribute's meta and, in its place for a kind, the flags.
DATA_AT, BEGIN_AT, END_AT, SLOTS_AT, SLOT_COUNT, METAS_AT = range(6)
NAMES: Final = 6  # words for the names of a map's keys

BRANCHES: Final = 128  # of a union: the number of the node of each type id, or -1
UNKNOWN, UNSURE = 0, -1  # in place of a code: not looked at yet; the readable way must say
NO_PAIR: Final = -1  # in place of the number of a name

_DAY: Final = 86_400
NO_BITS, _ALL_BITS = np.uint64(0), np.uint64(2**64 - 1)
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
            is_same = len(before) > 0
            for field in range(LENGTH + 1 if is_same else 0):
                is_same &= nodes[n, field] == before[n, field]
            nodes[n, KNOWN] = before[n, KNOWN] if is_same else known
            if not is_same:
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
        while end - begin >= 8 and word_at(data, begin) & _NO_ASCII == NO_BITS:
            begin += 8
        return number, is_utf8(data, begin, end)
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
        if shift != NO_BITS:
            word = word >> shift | np.uint64(byte_at(bits, first + 8)) << (np.uint64(64) - shift)
        return word
    word = NO_BITS
    for i in range(first, ((place + count - 1) >> 3) + 1):
        at = 8 * (i - first) - np.int64(shift)
        byte = np.uint64(byte_at(bits, i))
        word |= byte << np.uint64(at) if at >= 0 else byte >> np.uint64(-at)
    return word & (_ALL_BITS >> np.uint64(64 - count))


@inline
def valid_rows(node, i, count):
    """Which of at most 64 values, from value i on, are not null, nor the structs that they are in: a bit for each."""
    word = _ALL_BITS >> np.uint64(64 - count)
    while node != 0 and word != NO_BITS:
        bits = int64_at(node, VALIDITY)
        if int64_at(node, KIND) == NOTHING:
            word = NO_BITS
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
def is_whole(node):
    """Whether all values are there, as is seen without looking at them."""
    return int64_at(node, SURE) != 0 and int64_at(node, VALIDITY) == 0 and int64_at(node, PARENT) == 0


@inline
def node_at(nodes, stretch, number):
    return address_of(nodes) + 8 * FIELDS * (stretch * nodes.shape[1] + number)
