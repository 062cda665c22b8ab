"""Visits on their way to the matcher: events that also say, under the exchange's own name, where they take place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eligo.arguments import shown, text
from eligo.compile.events import EventBuffer
from eligo.errors import EventError
from eligo.exchange.expressions import PUBLISHER
from eligo.exchange.graph import Role
from eligo.segments.encoding import as_events


def event_of(publisher: str, visit: Mapping[str, Any]) -> dict[str, Any]:
    """A visit to a publisher as an event."""
    if not isinstance(visit, Mapping):
        raise EventError(f"a visit is a mapping from attribute to value, not {type(visit).__name__}: {shown(visit)}")
    if PUBLISHER in visit:
        raise _reserved()
    return {**visit, PUBLISHER: publisher}


def with_publishers(visits: Any, column: str, roles: Mapping[str, Role]) -> pa.Table | Iterator[dict[str, Any]]:
    """Many visits as events; their publishers stand in a column, or under a key, of that name."""
    text("publisher", column, "the name of the column with the visits' publishers")
    found = as_events(visits)
    if isinstance(found, pa.RecordBatch):
        found = pa.Table.from_batches([found])
    return _table(found, column, roles) if isinstance(found, pa.Table) else _events(found, column, roles)


def _table(visits: pa.Table, column: str, roles: Mapping[str, Role]) -> pa.Table:
    if PUBLISHER in visits.column_names:
        raise _reserved()
    if visits.column_names.count(column) != 1:
        raise EventError(
            f"visits need one column {shown(column)} that names the publisher; "
            f"there are {', '.join(visits.column_names)}"
        )
    try:
        publishers = visits[column].cast(pa.large_string())
    except pa.ArrowException:
        raise EventError(f"column {column!r} holds {visits[column].type}; publishers' names are strings") from None
    for name in pc.unique(publishers).to_pylist():
        if roles.get(name) != "publisher":
            raise EventError(_no_publisher(publishers.to_pylist().index(name), column, name))
    return visits.append_column(PUBLISHER, publishers)


def _events(visits: Iterable[Any], column: str, roles: Mapping[str, Role]) -> Iterator[dict[str, Any]]:
    for number, visit in enumerate(visits):
        if not isinstance(visit, Mapping):
            raise EventError(f"event {number}: a visit is a mapping from attribute to value, not {shown(visit)}")
        name = visit.get(column)
        if not isinstance(name, str) or roles.get(name) != "publisher":
            raise EventError(_no_publisher(number, column, name))
        yield event_of(name, visit)


def refuse_ranges(buffer: EventBuffer) -> None:
    """A range allows each of a path's expressions a value of its own, which no one visit has."""
    if buffer.ranges:
        raise EventError("a visit's values are known: a range such as Between(10, 20) may stand in an event, not here")


def _no_publisher(number: int, column: str, name: object) -> str:
    return f"event {number}: {shown(column)} is {shown(name)}, which is no publisher of this exchange"


def _reserved() -> EventError:
    return EventError(f"the attribute {PUBLISHER!r} is the exchange's own: leave it out of the visit")
