"""What the checks of all conjunctions ask of events, counted by attribute as conjunctions come and go."""

from __future__ import annotations

import numpy as np

from eligo.compile.attributes import Attributes
from eligo.compile.compiled import I64, Arrays
from eligo.index.rows.content import count_texts
from eligo.index.rows.packed_predicate import attribute_of, check_words, first_check, row_words
from eligo.jit import kernel


class CheckCounts:
    """Number of checks of each attribute: all, those that need the bytes of strings, and those with a pattern."""

    def __init__(self, arrays: Arrays | None = None) -> None:
        given = arrays or {}
        none = np.zeros(0, np.int64)
        self.checks: I64 = given.get("checks", none)
        self.text: I64 = given.get("text", none)
        self.pattern: I64 = given.get("pattern", none)

    def arrays(self) -> Arrays:
        return {"checks": self.checks, "text": self.text, "pattern": self.pattern}

    def add(self, words: I64, offsets: I64, first: int, stop: int, by: int, attributes: int) -> bool:
        """Adds `by` (1 or -1) for each check of rows first … stop-1. `attributes` is above all their numbers, or 0 if
        they were counted before. Returns whether other attributes now need strings or have patterns.
        """
        if attributes > len(self.checks):
            more = np.zeros(max(attributes, 2 * len(self.checks)) - len(self.checks), np.int64)
            self.checks, self.text, self.pattern = (
                np.concatenate((array, more)) for array in (self.checks, self.text, self.pattern)
            )
        return bool(count_checks(words, offsets, first, stop, by, self.checks, self.text, self.pattern))

    def named(self, attributes: Attributes) -> list[str]:
        """Returns the names of the attributes that some check is about."""
        return [attributes.names[number] for number in np.nonzero(self.checks)[0].tolist()]

    def asked(self, attributes: Attributes) -> tuple[list[str], list[str]]:
        """Returns the names of the attributes with a check, and of those with a pattern."""
        return self.named(attributes), [attributes.names[number] for number in np.nonzero(self.pattern)[0].tolist()]


@kernel
def count_checks(words, offsets, first, stop, by, checks, text, pattern):
    before = np.count_nonzero(text) + np.count_nonzero(pattern)
    for r in range(first, stop):
        q, end = first_check(words, offsets[r]), offsets[r] + row_words(words, offsets[r])
        while q < end:
            checks[attribute_of(words[q])] += by
            q += check_words(words[q])
    count_texts(words, offsets, first, stop, by, text, pattern)
    return np.count_nonzero(text) + np.count_nonzero(pattern) != before
