"""Rows: conjunctions in 64-bit keys, each whole in itself. All indexes verify candidates in this form.

Spaces are numbered anew whenever a predicate brings a new cut. Rows go on without renumbering, because they speak in
coordinates: one ordered 64-bit line for each kind of value.

    number    the ordered bits of the nearest float        time      microseconds
    Boolean   0 or 1                                       string    its number in the string table, -1: not in there

Most of the time goes into fetching rows from memory, and most values are small whole numbers or strings: these have
places on a short line (line.py), and a check of an interval there is one word.

    row       number << 32 | plain ones << 24 | words in use << 12 | words of the row;  then its checks
              of more than 4,095 words: number << 32;  words in use << 32 | words of the row;  then its checks
    check     tiny   1 << 63 | attribute << ATTRIBUTE | lowest place << PLACE | highest place - lowest place
                     with MASKED (1 << 62) a second word: a bit for each value from the lowest on, that it may be
              or     code     attribute << 40 │ extra words << 16 │ flags << 8 │ LONG (128) │ shape << 4 │ kind of value
                     bounds   an interval, both ends in it: low << 32 | high as places or, LONG, two coordinates;
                              empty: from the last place of the line to the first
                     extra    as the shape has them:
        INSIDE      nothing: the value lies in the interval; without flags such a check is tiny
        OUTSIDE     nothing: it does not, or is of another kind
        AMONG       pairs in ascending order, each as the bounds are, which are their hull: it lies in one of
                    them; without flags, and with few values close to each other, such a check is tiny and MASKED
        EXCEPT      pairs: it lies in none of them, or is of another kind
        ASK         the predicate's pattern (-1: none) and its cuts, six words a run: see slow_path.py. The interval
                    holds all values of the kind that could satisfy it; kind ANY: values of several kinds could.
                    The third word of a cut among strings is the first eight bytes of its string (`prefix_of`)

Checks in use come first, `words in use` of them in all; behind them are those that the way to the row guarantees. Plain
ones, tiny and not MASKED, stand before others, one that is likely to fail first; their number is known, so that they
can be looked at several at once. Bounds between 2^53 and 2^64 go to ASK, because integers there have no float of their
own; everywhere else the nearest float of an integer lies on the same side of every bound as the integer itself.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.index.rows.line import BITS, MAX, MIN, NUMBER, high_at, low_at
from eligo.jit import inline

INSIDE, OUTSIDE, AMONG, EXCEPT, ASK = 0, 1, 2, 3, 4
NEGATIVE, LIST = 1, 2  # bits of the first four
LONG = 128
ATTRIBUTE, PLACE = 47, 23  # bits where a tiny check's attribute and lowest place begin
TINY_ATTRIBUTES, PLACES, DISTANCES = 1 << 15, (1 << 24) - 1, (1 << PLACE) - 1  # how many there are, all bits of one
MASKED = 1 << 62
BEHIND = 8  # words behind the last row that verification may read and ignores
LARGE = 1 << 12  # words of a row that its first word cannot say


@inline
def row_words(words, at):
    """Words of the row that begins at words[at], all in all."""
    size = words[at] & 0xFFF
    return size if size else words[at + 1] & 0xFFFF_FFFF


@inline
def first_check(words, at):
    """Where the checks of a row begin."""
    return at + 1 if words[at] & 0xFFF else at + 2


@inline
def words_in_use(words, at):
    return words[at] >> 12 & 0xFFF if words[at] & 0xFFF else words[at + 1] >> 32


@inline
def is_plain_check(code):
    """Whether a check is tiny and not MASKED."""
    return code < 0 and code & MASKED == 0


@inline
def use_words(words, at, used):
    """Say how many words of a row's checks are in use."""
    if words[at] & 0xFFF == 0:
        words[at + 1] = used << 32 | (words[at + 1] & 0xFFFF_FFFF)
        return
    plain = np.int64(0)
    while plain < min(used, 255) and is_plain_check(words[at + 1 + plain]):
        plain += 1
    words[at] = words[at] >> 32 << 32 | plain << 24 | used << 12 | (words[at] & 0xFFF)


@inline
def extra_words(code):
    return (code >> 16) & 0xFF_FFFF


@inline
def check_words(code):
    """Words of a check, all in all."""
    return 1 + (code >> 62 & 1) if code < 0 else (3 if code & LONG else 2) + ((code >> 16) & 0xFF_FFFF)


@inline
def attribute_of(code):
    return code >> ATTRIBUTE & (TINY_ATTRIBUTES - 1) if code < 0 else code >> 40


@inline
def flags_of(code):
    return np.int64(0) if code < 0 else code >> 8 & 0xF


@inline
def shape_of(code):
    return (code >> 62 & 1) * AMONG if code < 0 else code >> 4 & 7


@inline
def bits_in(mask):
    """How many bits of a word are set."""
    n, word = np.int64(0), np.uint64(mask)
    while word:
        word &= word - np.uint64(1)
        n += 1
    return n


@inline
def mask_step(place):
    """How many places a bit of a mask stands for, as a shift: the places between whole numbers have none."""
    return np.int64(1) if place >> BITS == NUMBER else np.int64(0)


@inline
def in_mask(mask, place, lowest):
    """Whether a place at or above the lowest one has its bit in a mask."""
    step, off = mask_step(lowest), place - lowest
    return off & step == 0 and mask >> (off >> step) & 1 == 1


@inline
def kind_of(code):
    return code >> (PLACE + BITS) & 3 if code < 0 else code & 15


@inline
def low_of(code, words, at):
    """The lower one of the bounds that begin at words[at] in a check that is not tiny, as the code has them."""
    return words[at] if code & LONG else words[at] >> 32


@inline
def high_of(code, words, at):
    return words[at + 1] if code & LONG else words[at] & 0xFFFF_FFFF


@inline
def low_coordinate_of(words, q):
    """The lower bound of the check that begins at words[q], as a coordinate."""
    code = words[q]
    if code < 0:
        return low_at(code >> PLACE & PLACES)
    return words[q + 1] if code & LONG else low_at(words[q + 1] >> 32)


@inline
def high_coordinate_of(words, q):
    code = words[q]
    if code < 0:
        return high_at((code >> PLACE & PLACES) + (code & DISTANCES))
    return words[q + 2] if code & LONG else high_at(words[q + 1] & 0xFFFF_FFFF)


@inline
def low_coordinate(kind, key, key2):
    """The first coordinate above a cut."""
    if kind == codes.NUMBER_CUT or kind == codes.HIGH_NUMBER_CUT:
        return key2
    if kind == codes.BOOLEAN_CUT or kind == codes.TIME_CUT:
        return key
    if kind == codes.STRING_CUT:
        return key >> 1
    return np.int64(0) if kind == codes.START_BOOLEAN else np.int64(MIN)


@inline
def high_coordinate(kind, key, key2):
    """The last coordinate below a cut; of one that starts a kind, the last of the kind before."""
    if kind == codes.NUMBER_CUT or kind == codes.HIGH_NUMBER_CUT:
        return key2 - 1
    if kind == codes.BOOLEAN_CUT or kind == codes.TIME_CUT:
        return key - 1
    if kind == codes.STRING_CUT:
        return key >> 1
    return np.int64(codes.OBJECT) if kind == codes.START_TIME else np.int64(MAX)
