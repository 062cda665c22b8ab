"""Batches in which some events cannot be used: the others are matched, and these are named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from eligo.arguments import tag_names
from eligo.arrow import arrow_of
from eligo.compile.arrow_events import TableEvents
from eligo.compile.compiled import I64
from eligo.compile.json_texts import JsonEvents
from eligo.compile.unusable import UnusableValuesError
from eligo.errors import EventError
from eligo.rule import Reject
from eligo.segments.encoding import between, slices
from eligo.segments.rules import View

_NAMED = re.compile(r"event (\d+): ", re.ASCII)


def matched_or_rejected(
    view: View, events: Any, tags: Iterable[str] | None, limit: int | None, rejects: list[Reject]
) -> Iterator[tuple[I64, pa.Array]]:
    """Yields what `View.batch` yields; events that cannot be used are appended to `rejects` instead.

    An error names the event, or all events of a table whose value of an attribute cannot be used. These are taken out,
    and the rest is tried again. What names none, such as a column that no rule can use, is nobody's fault and raises.
    """
    wanted = None if tags is None else tag_names("tags", tags)
    for first, part in slices(events):
        numbers, left = np.arange(first, first + len(part)), part
        while len(left):
            try:
                found = _batch(view, left, wanted, limit, numbers, rejects)
            except EventError as error:
                rows, why = _at_fault(error)
                rejects.extend(Reject(int(numbers[row]), None, why) for row in rows)
                if isinstance(left, TableEvents):
                    good = np.ones(len(left), np.bool_)
                    good[rows] = False
                    numbers, left = numbers[good], left.filtered(good)
                else:  # all before the one that is named can be used
                    found = _batch(view, between(left, 0, rows[0]), wanted, limit, numbers, rejects)
                    yield from ((numbers[number], ids) for number, ids in found)
                    numbers, left = numbers[rows[0] + 1 :], between(left, rows[0] + 1)
                continue
            yield from ((numbers[number], ids) for number, ids in found)
            break


def _batch(
    view: View, events: Any, tags: Iterable[str] | None, limit: int | None, numbers: I64, rejects: list[Reject]
) -> list[tuple[I64, pa.Array]]:
    """What `View.batch` yields. JSON texts that cannot be used are not tried one by one: they are left out here."""
    if not isinstance(events, JsonEvents):
        return list(view.batch(events, tags, limit))
    refused: dict[int, str] = {}
    events.refused = refused
    try:
        found = list(view.batch(events, tags, limit))
    except EventError:  # of documents, which may have been asked about an event that is refused anyway
        if not refused:
            raise
        row = min(refused)
        raise EventError(f"event {row}: {refused[row]}") from None
    if refused:
        rejects.extend(Reject(int(numbers[row]), None, why) for row, why in refused.items())
        unused = np.array([*refused])
        kept = [(~np.isin(number, unused), number, ids) for number, ids in found]
        found = [(number[good], ids.filter(arrow_of(good))) for good, number, ids in kept]
    return found


def _at_fault(error: EventError) -> tuple[list[int], str]:
    """The rows that an error is about, and what it says of each; if it is about none, it is raised."""
    named = _NAMED.match(str(error))
    if named is None:
        raise error
    why = str(error)[named.end() :]
    if isinstance(error, UnusableValuesError) and error.rows is not None:
        return np.unique(error.rows).tolist(), why
    return [int(named[1])], why
