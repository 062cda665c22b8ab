"""Strings as conjunctions of equality predicates, one for a q-gram (the BE-Tree paper §7.1, "Real Dataset").

    "string"  →  str tri rin ing  →  st = 'r' and tr = 'i' and ri = 'n' and in = 'g'

A 3-gram's first two characters are the attribute, its third is the value. Characters are a … z and one class for all
others, runs of which count once: 26² attributes of two letters and one, `other`, for every pair with something else in
it, the paper's 677; values are 26 letters and `_`. A rule or an event has one value of an attribute, so that of grams
with the same attribute the first one stands.
"""

from __future__ import annotations

from string import ascii_lowercase
from typing import Final

import numpy as np
import pyarrow as pa

from eligo.jit import inline, kernel
from eligo_lab.workload.events import EventDraft

ATTRIBUTES: Final = (*(a + b for a in ascii_lowercase for b in ascii_lowercase), "other")
VALUES: Final = ("_", *ascii_lowercase)


def grams(strings: pa.Array) -> EventDraft:
    """For every string its pairs of attribute and value, in the order of the string."""
    strings = strings.cast(pa.large_string())
    offsets = np.frombuffer(strings.buffers()[1], np.int64)[strings.offset :][: len(strings) + 1]
    content = strings.buffers()[2]
    data = np.frombuffer(content, np.uint8) if content is not None else np.zeros(0, np.uint8)
    pair_offsets, attribute, value = pairs_of(data, offsets)
    return EventDraft(ATTRIBUTES, pair_offsets, attribute, value, np.ones(len(ATTRIBUTES), np.bool_), VALUES)


@inline
def is_letter(byte):
    return (byte >= 97 and byte <= 122) or (byte >= 65 and byte <= 90)


@kernel
def pairs_of(data, offsets):
    """Offsets, attributes and values of the pairs of all strings."""
    strings = len(offsets) - 1
    room = offsets[strings] - offsets[0]
    attribute, value = np.empty(room, np.int32), np.empty(room, np.int64)
    ends = np.zeros(strings + 1, np.int64)
    seen = np.full(677, -1, np.int64)  # the last string that has the attribute
    used = 0
    for s in range(strings):
        one, two, length = 0, 0, 0  # classes of the two characters before: 0 for others, 1 … 26 for letters
        stop = offsets[s + 1]
        while stop > offsets[s] and not is_letter(data[stop - 1]):
            stop -= 1
        for i in range(offsets[s], stop):
            letter = np.int64(data[i] | 32) - 96 if is_letter(data[i]) else 0
            if letter == 0 and two == 0:
                continue  # a run of others counts once, and at the beginning not at all
            if length >= 2:
                a = 26 * (one - 1) + two - 1 if one > 0 and two > 0 else 676
                if seen[a] != s:
                    seen[a] = s
                    attribute[used], value[used] = a, letter
                    used += 1
            one, two = two, letter
            length += 1
        ends[s + 1] = used
    return ends, attribute[:used].copy(), value[:used].copy()
