"""Rows by content: which are equal, and what they ask of events; whatever order their checks stand in."""

from __future__ import annotations

from typing import Any

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import mixed
from eligo.index.rows.line import ANY, STRING, high_at, low_at
from eligo.index.rows.packed_predicate import (
    ASK,
    INSIDE,
    LONG,
    OUTSIDE,
    attribute_of,
    check_words,
    extra_words,
    first_check,
    flags_of,
    high_coordinate_of,
    high_of,
    kind_of,
    low_coordinate_of,
    low_of,
    row_words,
    shape_of,
)
from eligo.jit import inline, kernel, named_kernel


@kernel
def number_rows(words, offsets, numbers):
    """Give row i the number numbers[i]."""
    for i in range(len(numbers)):
        words[offsets[i]] = np.int64(numbers[i]) << 32 | (words[offsets[i]] & 0xFFFF_FFFF)


def searching_rows(one: Any) -> Any:
    """Returns the kernel that searches for events first … stop-1, as far as there is room for `most` conjunctions each,
    and returns the first event not done, given one that searches for an event.

    one(t, e, event, s, strings, w, found, k, counters) writes into `found` from k on, and returns where that ends.
    """

    def search_many(t, e, first, stop, s, strings, w, found, counters, most, offsets):
        k = 0
        offsets[0] = 0
        event = first
        while event < stop and len(found) - k >= most:
            k = one(t, e, event, s, strings, w, found, k, counters)
            event += 1
            offsets[event - first] = k
        return event

    return named_kernel(search_many, one)


def copying(find_row: Any) -> Any:
    """Returns the kernel that copies the rows of conjunctions first … stop-1 of an index, given one that says where a
    row lies, or -1: words and offsets; a row that is not there has no words.
    """

    def copy_rows(t, first, stop):
        words, offsets = t.words, np.zeros(stop - first + 1, np.int64)
        places = np.empty(stop - first, np.int64)
        for i in range(stop - first):
            places[i] = find_row(t, first + i)
            offsets[i + 1] = offsets[i] + (row_words(words, places[i]) if places[i] >= 0 else 0)
        rows = np.empty(offsets[-1], np.int64)
        for i in range(stop - first):
            for k in range(offsets[i + 1] - offsets[i]):
                rows[offsets[i] + k] = words[places[i] + k]
        return rows, offsets

    return named_kernel(copy_rows, find_row)


@inline
def hash_check(words, q):
    h = np.uint64(0)
    for i in range(check_words(words[q])):
        h = mixed(h, words[q + i])
    return h


@kernel
def row_hashes(words, offsets):
    """A hash of 32 bits of the checks of each row."""
    hashes = np.zeros(len(offsets) - 1, np.uint32)
    for r in range(len(hashes)):
        q, end = first_check(words, offsets[r]), offsets[r] + row_words(words, offsets[r])
        total = np.uint64(0)
        while q < end:
            total += hash_check(words, q)
            q += check_words(words[q])
        hashes[r] = np.uint32(mixed(np.uint64(0), np.int64(total)) >> np.uint64(32))
    return hashes


@kernel
def same_row(a, at, b, bt):
    """Whether two rows have the same checks. No row has one twice."""
    end, stop = at + row_words(a, at), bt + row_words(b, bt)
    if end - at != stop - bt:
        return False
    q = first_check(a, at)
    while q < end:
        size, found = check_words(a[q]), False
        p = first_check(b, bt)
        while p < stop and not found:
            if check_words(b[p]) == size:
                found = True
                for i in range(size):
                    found = found and a[q + i] == b[p + i]
            p += check_words(b[p])
        if not found:
            return False
        q += size
    return True


@kernel
def count_texts(words, offsets, first, stop, by, text, pattern):
    """Add to text[a] for each check of rows first … stop-1 that asks an attribute's strings themselves, in order or by
    a pattern, and to pattern[a] for each that has a pattern.
    """
    for r in range(first, stop):
        q, end = first_check(words, offsets[r]), offsets[r] + row_words(words, offsets[r])
        while q < end:
            code = words[q]
            if asks_text(code):
                text[attribute_of(code)] += by
                pattern[attribute_of(code)] += by if flags_of(code) & codes.RESIDUAL else 0
            q += check_words(code)


@kernel
def text_checks(words, offsets):
    """Returns attribute << 1 | (it has a pattern) for each check of some rows that asks an attribute's strings
    themselves.
    """
    found = np.empty(len(words), np.int64)
    k = 0
    for r in range(len(offsets) - 1):
        q, end = first_check(words, offsets[r]), offsets[r + 1]
        while q < end:
            code = words[q]
            if asks_text(code):
                found[k] = attribute_of(code) << 1 | np.int64(flags_of(code) & codes.RESIDUAL != 0)
                k += 1
            q += check_words(code)
    return found[:k].copy()


@kernel
def looks_at(words, wanted):
    """Whether a row has a check on an attribute that is wanted."""
    q = first_check(words, 0)
    while q < len(words):
        if wanted[attribute_of(words[q])]:
            return True
        q += check_words(words[q])
    return False


@inline
def asks_text(code):
    """Whether a check asks an attribute's strings themselves, in order or by a pattern."""
    return shape_of(code) == ASK and (kind_of(code) == STRING or kind_of(code) == ANY)


@inline
def mark_between(strings, low, high):
    for number in range(max(low, np.int64(0)), min(high, np.int64(len(strings) - 1)) + 1):
        strings[number] = True


@kernel
def mark_strings(words, q, strings):
    """Set strings[n] for every string n that the check at words[q] names. Plain checks name single strings."""
    code = words[q]
    shape, extra = shape_of(code), q + (3 if code & LONG else 2)
    if code >= 0 and shape == ASK:
        if words[extra] >= 0:
            strings[words[extra]] = True
        for cut in range(extra + 1, extra + extra_words(code), 3):
            if words[cut] == codes.STRING_CUT:
                strings[words[cut + 1] >> 1] = True
    elif kind_of(code) == STRING:
        low, high = low_coordinate_of(words, q), high_coordinate_of(words, q)
        if shape in (INSIDE, OUTSIDE):
            mark_between(strings, low, high)
        elif code < 0:
            for bit in range(64):
                if words[q + 1] >> bit & 1:
                    mark_between(strings, low + bit, low + bit)
        else:
            step = 2 if code & LONG else 1
            for at in range(extra, extra + extra_words(code), step):
                low, high = low_of(code, words, at), high_of(code, words, at)
                if code & LONG:
                    mark_between(strings, low, high)
                else:
                    mark_between(strings, low_at(low), high_at(high))


@kernel
def mark_row(words, at, attributes, strings):
    """Set what stands at the numbers of the attributes and strings that a row names."""
    q, end = first_check(words, at), at + row_words(words, at)
    while q < end:
        attributes[attribute_of(words[q])] = True
        mark_strings(words, q, strings)
        q += check_words(words[q])
