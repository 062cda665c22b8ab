"""Which attribute a conjunction is best found by (the BE-Tree paper §5).

The paper ranks a node by what it spares, less the predicate evaluations that it wastes. Here the rank of an attribute
for an expression is how seldom an event will come to look at it there: the chance that an event has the attribute,
times the share of the values in the smallest bucket that encloses the expression's predicate. Less is better.

    presence    events seen with the attribute, out of all; before events are seen, rules with it out of all rules.
                The rules count as if they had been PRIOR events, and a margin is taken off as long as events are few:
                what is not known well is tried (exploration), and what is known is used (exploitation)
    share       values of a bucket, out of those between the lowest and the highest that rules name
    trust       the feedback of matching: what an attribute's p-node below the root cost, over what its rank promised
                (adapt.py)

All are by key: attribute << 3 | kind of value, kind ANY for the attribute being there at all.
"""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.events import float_bits
from eligo.index.be_tree.nodes import EVENTS, EXPLORE, ROWS
from eligo.index.rows.line import ANY, MAX, MIN, NUMBER, unsigned
from eligo.index.rows.packed_predicate import (
    ASK,
    DISTANCES,
    INSIDE,
    NEGATIVE,
    OUTSIDE,
    attribute_of,
    check_words,
    first_check,
    flags_of,
    high_coordinate_of,
    kind_of,
    low_coordinate_of,
    row_words,
    shape_of,
)
from eligo.jit import inline, leading_zeros

PRIOR = 64.0  # events that rules count for
USELESS = 0.7  # a p-node that more events than this go to spares too little


@inline
def directory_key(code):
    """The key of the p-node that a check could lie below, or -1: an absent attribute satisfies it."""
    flags, shape = flags_of(code), shape_of(code)
    if flags & codes.ABSENT_HOLDS:
        return np.int64(-1)
    kind = kind_of(code)
    # A negated predicate on several values holds for a list without any.
    if flags & codes.ALL_VALUES or (shape != ASK and shape & NEGATIVE):
        kind = np.int64(ANY)
    return attribute_of(code) << 3 | kind


@inline
def is_subsumed(words, q, prefix, bits):
    """Whether everything that comes to a bucket satisfies the check: the two are the same set (§5)."""
    code = words[q]
    shape = shape_of(code)
    if flags_of(code):
        return False
    low, high = low_coordinate_of(words, q), high_coordinate_of(words, q)
    if shape == OUTSIDE:
        return low > high  # the attribute is there, and that is all
    if shape != INSIDE or bits == 0:
        return False
    first = np.uint64(prefix)
    last = first if bits == 64 else first | (~np.uint64(0) >> np.uint64(bits))
    return unsigned(low) == first and unsigned(high) == last


@inline
def common_bits(a, b):
    """How many first bits two words have in common."""
    return np.int64(64) if a == b else np.int64(leading_zeros(a ^ b))


@inline
def as_number(kind, coordinate):
    """A coordinate as a number on a scale where equal steps are about equally likely."""
    return float_bits(coordinate) if kind == NUMBER else np.float64(coordinate)


@inline
def share_of(words, q, key, least, most):
    """The share of the values between the lowest and the highest that lie in the home bucket of a check."""
    kind = key & 7
    if kind == ANY or least > most:
        return 1.0
    low, high = low_coordinate_of(words, q), high_coordinate_of(words, q)
    extent = most - least + 1.0
    if low == high:
        return 1.0 / extent
    first, last = unsigned(low), unsigned(high)
    bits = common_bits(first, last)
    if bits == 0:
        return 1.0
    free = ~np.uint64(0) >> np.uint64(bits) if bits < 64 else np.uint64(0)
    lowest = as_number(kind, np.int64(unsigned(np.int64(first & ~free))))
    highest = as_number(kind, np.int64(unsigned(np.int64(first | free))))
    # Not-a-number, which the last bucket of the line holds too, compares as false.
    lowest = lowest if lowest > least else least
    highest = highest if highest < most else most
    return min(1.0, max(1.0, highest - lowest + 1.0) / extent)


@inline
def presence_of(seen, popular, rows, events, explore):
    """The chance that an event has a key, as far as known."""
    chance = (seen + PRIOR * popular / max(rows, 1.0)) / (events + PRIOR)
    margin = explore * np.sqrt(chance * (1.0 - min(chance, 1.0)) / (events + PRIOR))
    return max(chance - margin, 0.25 * chance)


@inline
def score_of(t, words, q, key):
    """How often an event will come to the p-node of a check and to its bucket there: less is better."""
    state = t.state
    presence = presence_of(
        np.float64(t.seen[key]), np.float64(t.popular[key]), np.float64(state[ROWS]), np.float64(state[EVENTS]),
        np.float64(state[EXPLORE]) / 100.0,
    )  # fmt: skip
    return min(presence, 1.0) * share_of(words, q, key, t.least[key], t.most[key]) * t.trust[key]


@inline
def chance_of(t, code):
    """The chance that an event satisfies a plain check."""
    key, state = directory_key(code), t.state
    presence = presence_of(
        np.float64(t.seen[key]), np.float64(t.popular[key]), np.float64(state[ROWS]), np.float64(state[EVENTS]), 0.0
    )
    extent = t.most[key] - t.least[key] + 1.0
    values = np.float64(code & DISTANCES) / (2.0 if key & 7 == NUMBER else 1.0) + 1.0
    return min(presence, 1.0) * min(1.0, values / extent) if extent > 0.0 else min(presence, 1.0)


@inline
def interval_of(words, at, key):
    """Where a row has its check of that key (-1: nowhere), and its interval in unsigned order.

    A row may have several on an attribute with several values: the narrowest counts, then the lowest one, in whatever
    order they stand.
    """
    q, end = first_check(words, at), at + row_words(words, at)
    best, low, high = np.int64(-1), np.uint64(0), ~np.uint64(0)
    while q < end:
        code = words[q]
        if directory_key(code) == key:
            first, last = np.uint64(0), ~np.uint64(0)
            if key & 7 != ANY:
                first, last = unsigned(low_coordinate_of(words, q)), unsigned(high_coordinate_of(words, q))
            narrower = last - first < high - low or (last - first == high - low and first < low)
            if best < 0 or narrower:
                best, low, high = q, first, last
        q += check_words(code)
    return best, low, high


@inline
def note_row(t, words, at, by):
    """Note for every key of a row that one expression more, or one less, has it, and the values that it names."""
    popular, least, most = t.popular, t.least, t.most
    q, end = first_check(words, at), at + row_words(words, at)
    while q < end:
        key = directory_key(words[q])
        if key >= 0:
            popular[key] += by
            if by > 0 and key & 7 != ANY:
                low, high = low_coordinate_of(words, q), high_coordinate_of(words, q)
                if popular[key] == 1:
                    least[key], most[key] = np.inf, -np.inf
                for bound in (low, high):
                    if bound != MIN and bound != MAX:
                        value = as_number(key & 7, bound)
                        least[key], most[key] = min(least[key], value), max(most[key], value)
        q += check_words(words[q])
