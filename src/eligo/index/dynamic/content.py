"""Rows by content: which are equal, and what they ask of events; whatever order their checks stand in."""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import mixed
from eligo.index.dynamic.line import ANY, STRING
from eligo.index.dynamic.rows import ASK, attribute_of, check_words, first_check, flags_of, kind_of, row_words, shape_of
from eligo.jit import inline, kernel


@kernel
def number_rows(words, offsets, numbers):  # type: ignore[no-untyped-def]
    """Give row i the number numbers[i]."""
    for i in range(len(numbers)):
        words[offsets[i]] = np.int64(numbers[i]) << 32 | (words[offsets[i]] & 0xFFFF_FFFF)


@inline
def hash_check(words, q):  # type: ignore[no-untyped-def]
    h = np.uint64(0)
    for i in range(check_words(words[q])):
        h = mixed(h, words[q + i])
    return h


@kernel
def row_hashes(words, offsets):  # type: ignore[no-untyped-def]
    """A hash of the checks of each row."""
    hashes = np.zeros(len(offsets) - 1, np.uint64)
    for r in range(len(hashes)):
        q, end = first_check(words, offsets[r]), offsets[r] + row_words(words, offsets[r])
        total = np.uint64(0)
        while q < end:
            total += hash_check(words, q)
            q += check_words(words[q])
        hashes[r] = mixed(np.uint64(0), np.int64(total))
    return hashes


@kernel
def same_row(a, at, b, bt):  # type: ignore[no-untyped-def]
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
def count_texts(words, offsets, first, stop, by, text, pattern):  # type: ignore[no-untyped-def]
    """Add to text[a] for each check of rows first … stop-1 that asks an attribute's strings themselves, in order or by
    a pattern, and to pattern[a] for each that has a pattern.
    """
    for r in range(first, stop):
        q, end = first_check(words, offsets[r]), offsets[r] + row_words(words, offsets[r])
        while q < end:
            code = words[q]
            if shape_of(code) == ASK and (kind_of(code) == STRING or kind_of(code) == ANY):
                text[attribute_of(code)] += by
                pattern[attribute_of(code)] += by if flags_of(code) & codes.RESIDUAL else 0
            q += check_words(code)
