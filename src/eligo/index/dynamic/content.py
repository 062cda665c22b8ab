"""Rows by content: which are equal, and what they ask of events; whatever order their checks stand in."""

from __future__ import annotations

import numpy as np

from eligo.compile import codes
from eligo.compile.compiled import mixed
from eligo.index.dynamic.rows import ANY, ASK, HEADER, STRING, check_words
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
        q, total = offsets[r] + HEADER, np.uint64(0)
        for _ in range(words[offsets[r] + 1] & 0xFFFF_FFFF):
            total += hash_check(words, q)
            q += check_words(words[q])
        hashes[r] = mixed(np.uint64(0), np.int64(total))
    return hashes


@kernel
def same_row(a, at, b, bt):  # type: ignore[no-untyped-def]
    """Whether two rows have the same checks. No row has one twice."""
    checks = a[at + 1] & 0xFFFF_FFFF
    if checks != b[bt + 1] & 0xFFFF_FFFF or a[at] & 0xFFFF_FFFF != b[bt] & 0xFFFF_FFFF:
        return False
    q = at + HEADER
    for _ in range(checks):
        size, found = check_words(a[q]), False
        p = bt + HEADER
        for _ in range(checks):
            if check_words(b[p]) == size:
                same = True
                for i in range(size):
                    same = same and a[q + i] == b[p + i]
                found = found or same
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
        q = offsets[r] + HEADER
        for _ in range(words[offsets[r] + 1] & 0xFFFF_FFFF):
            code = words[q]
            if (code >> 4) & 7 == ASK and (code & 15 == STRING or code & 15 == ANY):
                text[code >> 40] += by
                pattern[code >> 40] += by if code >> 8 & codes.RESIDUAL else 0
            q += check_words(code)
