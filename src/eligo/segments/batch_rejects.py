"""Batches in which some events cannot be used: the others are matched, and these are named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from eligo.compile.compiled import I64
from eligo.errors import ColumnError, EventError
from eligo.rule import Reject
from eligo.segments.encoding import slices
from eligo.segments.rules import View


def matched_or_rejected(
    view: View, events: Any, tags: Iterable[str] | None, limit: int | None, rejects: list[Reject]
) -> Iterator[tuple[I64, pa.Array]]:
    """Yields what `View.batch` yields; events that cannot be used are appended to `rejects` instead.

    A slice with such an event is halved until the event is alone. A column that no rule can use is nobody's fault among
    the events, and raises.
    """
    for first, part in slices(events):
        waiting = [(first, part)]
        while waiting:
            start, some = waiting.pop()
            try:
                found = list(view.batch(some, tags, limit))
            except ColumnError:
                raise
            except EventError as error:
                if len(some) == 1:
                    rejects.append(Reject(start, None, str(error).removeprefix("event 0: ")))
                    continue
                half = len(some) // 2
                waiting += [(start + half, _cut(some, half, len(some))), (start, _cut(some, 0, half))]
                continue
            for number, ids in found:
                yield number + start, ids


def _cut(part: pa.Table | pa.RecordBatch | list[Any], first: int, stop: int) -> Any:
    return part[first:stop] if isinstance(part, list) else part.slice(first, stop - first)
