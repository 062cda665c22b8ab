"""Batches in which some events cannot be used: the others are matched, and these are named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.arrow import arrow_of
from eligo.compile.json_texts import JsonEvents
from eligo.compile.unusable import UnusableValuesError
from eligo.errors import EventError
from eligo.rule import Reject
from eligo.segments.encoding import Events, slices
from eligo.segments.pace import Found

Search: TypeAlias = Callable[[Events], Iterable[Found]]

_NAMED = re.compile(r"event (\d+): ", re.ASCII)


def matched_or_rejected(search: Search, events: Any, rejects: list[Reject]) -> Iterator[Found]:
    """Yields the matches of `search`, and appends a `Reject` to `rejects` for each event that cannot be used.

    An error names the event, or all events of a table whose value of an attribute cannot be used. These are taken out,
    and the rest is tried again. An error that names no event, such as that of a column that no rule can use, is raised.
    """
    found = matched_beside_rejected(search, events, rejects)
    if not isinstance(events, JsonEvents):
        return found
    every, rejected = list(found), np.zeros(len(events), np.bool_)
    rejected[[reject.row for reject in rejects]] = True
    return without(every, rejected)


def matched_beside_rejected(search: Search, events: Any, rejects: list[Reject]) -> Iterator[Found]:
    """Does the same, except that an unusable JSON text is rejected and also matched, as an event without attributes.
    `without` removes these matches.
    """
    for first, part in slices(events):
        numbers, left = np.arange(first, first + len(part)), part
        while len(left):
            refused: dict[int, str] = {}
            if isinstance(left, JsonEvents):
                left.refused = refused
            try:
                found = list(search(left))
            except EventError as error:
                rows, why = _at_fault(error)
                # Documents may have been asked about a text that cannot be used; then that is what is wrong with it.
                refused = dict.fromkeys(rows, why) | refused
                rejects.extend(Reject(int(numbers[row]), None, refused[row]) for row in refused)
                if isinstance(left, list):  # all before the one that is named can be used
                    found = list(search(left[: rows[0]]))
                    yield from ((numbers[mine], *others) for mine, *others in found)
                    numbers, left = numbers[rows[0] + 1 :], left[rows[0] + 1 :]
                else:
                    good = np.ones(len(left), np.bool_)
                    good[[*refused]] = False
                    numbers, left = numbers[good], left.filtered(good)
                continue
            rejects.extend(Reject(int(numbers[row]), None, why) for row, why in refused.items())
            yield from ((numbers[mine], *others) for mine, *others in found)
            break


def without(found: Iterable[Found], rejected: NDArray[np.bool_]) -> Iterator[Found]:
    """Yields the matches without those of the marked events. More may be marked while `found` is being read."""
    for part in found:
        bad = rejected[part[0]]
        if not bad.any():
            yield part
            continue
        good = ~bad
        yield tuple(column.filter(arrow_of(good)) if isinstance(column, pa.Array) else column[good] for column in part)


def _at_fault(error: EventError) -> tuple[list[int], str]:
    """Returns the rows that an error is about, and what it says of each. Raises the error if it names no event."""
    named = _NAMED.match(str(error))
    if named is None:
        raise error
    why = str(error)[named.end() :]
    if isinstance(error, UnusableValuesError) and error.rows is not None:
        return np.unique(error.rows).tolist(), why
    return [int(named[1])], why
