"""Batches in which some events cannot be used: the others are matched, and these are named."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

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
    """Yields what `search` finds; events that cannot be used are appended to `rejects` instead.

    An error names the event, or all events of a table whose value of an attribute cannot be used. These are taken out,
    and the rest is tried again. What names none, such as a column that no rule can use, is nobody's fault and raises.

    JSON texts that cannot be used raise nothing: what they match, as events without attributes, is left out.
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
            yield from ((numbers[mine], *others) for mine, *others in _without(found, refused))
            break


def _without(found: list[Found], refused: Collection[int]) -> Iterator[Found]:
    """The matches of the other events."""
    unused = np.array([*refused])
    for part in found:
        if not len(unused):
            yield part
            continue
        good = ~np.isin(part[0], unused)
        yield tuple(column.filter(arrow_of(good)) if isinstance(column, pa.Array) else column[good] for column in part)


def _at_fault(error: EventError) -> tuple[list[int], str]:
    """The rows that an error is about, and what it says of each; if it is about none, it is raised."""
    named = _NAMED.match(str(error))
    if named is None:
        raise error
    why = str(error)[named.end() :]
    if isinstance(error, UnusableValuesError) and error.rows is not None:
        return np.unique(error.rows).tolist(), why
    return [int(named[1])], why
