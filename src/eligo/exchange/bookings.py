"""Campaigns as columns: which edges each one's path has, by reference.

    row r    rule[r]     the number, in the matcher, of the campaign's own expression; ascending, never used twice
             order[r]    when the campaign was first booked: booking it anew, or over another path, keeps its place
             path[path_offsets[r] … [r+1]]    its edges from publisher to advertiser, by number, four bytes each
             text[text_offsets[r] … [r+1]]    its own expression as it was written, UTF-8
             name[r]     what the caller calls it

Rows are only appended. A campaign that is changed gets a new row, and what is over stays until half of the rows are.
`published` is what a reader takes: views of the columns up to some row, which nobody writes to again.

A reader asks the matcher first and takes `published` afterwards, and needs no lock by these invariants: a row is
published before its rule is in the matcher; the rules of its edges are there before its own, and until that is gone. So
whoever finds a campaign's rule finds, in the same view of the matcher, what its edges say. While a campaign moves to a
new row both its rules are there for a moment, and it may be found twice, by its old path and by its new one. Rows are
left out behind the readers' backs now and then: `tidied` counts that, and whoever sees it change asks again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eligo.compile.compiled import I32, I64, kept_slices
from eligo.jit import kernel
from eligo.rule import RuleId

_FEW = 64  # rows that are over and may stay whatever their share


class Column:
    """An array that grows at its end; what was there is never written to again."""

    def __init__(self, values: Iterable[Any], kind: Any) -> None:
        self._data = np.array(values, kind)
        self._size = len(self._data)

    def extend(self, values: Sequence[Any] | NDArray[Any]) -> None:
        size = self._size + len(values)
        if size > len(self._data):
            larger = np.empty(max(size, 2 * self._size, 16), self._data.dtype)
            larger[: self._size] = self._data[: self._size]
            self._data = larger
        self._data[self._size : size] = values
        self._size = size

    @property
    def values(self) -> NDArray[Any]:
        return self._data[: self._size]


class Row(NamedTuple):
    """A row to be appended; `order` -1 is that of a new campaign."""

    name: RuleId
    path: Sequence[int]
    text: str
    order: int = -1


class Published(NamedTuple):
    """What readers see; `edges` is one more than the highest number of an edge."""

    rule: I64
    order: I64
    path_offsets: I64
    path: I32
    name: list[RuleId]
    edges: int
    tidied: int

    @property
    def kind(self) -> pa.DataType:
        """The Arrow type of campaigns' ids: that of the last one, since all that are not over have one type."""
        return pa.int64() if len(self.rule) and isinstance(self.name[len(self.rule) - 1], int) else pa.string()


class Bookings:
    """The columns drawn above. Methods that change them are called with the exchange's lock held."""

    def __init__(self) -> None:
        self._fill([], [], [0], [], [0], b"", [])
        self.rules: dict[RuleId, int] = {}  # of the campaigns that there are
        self.next_rule = self.next_order = self._tidied = 0
        self.publish(0)

    def _fill(
        self, rule: Any, order: Any, path_offsets: Any, path: Any, text_offsets: Any, text: bytes, name: list[RuleId]
    ) -> None:
        self._rule, self._order = Column(rule, np.int64), Column(order, np.int64)
        self._path_offsets, self._path = Column(path_offsets, np.int64), Column(path, np.int32)
        self._text_offsets = Column(text_offsets, np.int64)
        self._text = Column(np.frombuffer(text, np.uint8), np.uint8)
        self._name = name

    def append(self, rows: Sequence[Row]) -> list[int]:
        """Rows for campaigns; the numbers that their rules get. They count once they stand in `rules`."""
        rules = list(range(self.next_rule, self.next_rule + len(rows)))
        texts = [row.text.encode() for row in rows]
        self.next_rule += len(rows)
        self._rule.extend(rules)
        self._name.extend(row.name for row in rows)
        orders = [row.order for row in rows]
        for i, order in enumerate(orders):
            if order < 0:
                orders[i] = self.next_order
                self.next_order += 1
        self._order.extend(orders)
        self._path.extend([edge for row in rows for edge in row.path])
        self._path_offsets.extend(self._path_offsets.values[-1] + np.cumsum([len(row.path) for row in rows]))
        self._text.extend(np.frombuffer(b"".join(texts), np.uint8))
        self._text_offsets.extend(self._text_offsets.values[-1] + np.cumsum([len(text) for text in texts]))
        return rules

    def publish(self, edges: int) -> None:
        """Let readers see the rows that there are."""
        self.published = Published(
            self._rule.values,
            self._order.values,
            self._path_offsets.values,
            self._path.values,
            self._name,
            edges,
            self._tidied,
        )

    def tidy(self, edges: int) -> None:
        """Leave out the rows that are over, once they are most."""
        rows = len(self._rule.values)
        if rows - len(self.rules) > max(_FEW, rows // 2):
            self._fill(**self.columns())
            self._tidied += 1
            self.publish(edges)

    # -- one campaign, by its rule

    def path(self, rule: int) -> list[int]:
        row = self._row(rule)
        offsets = self._path_offsets.values
        return self._path.values[offsets[row] : offsets[row + 1]].tolist()  # type: ignore[no-any-return]

    def text(self, rule: int) -> str:
        row = self._row(rule)
        offsets = self._text_offsets.values
        return self._text.values[offsets[row] : offsets[row + 1]].tobytes().decode()

    def order(self, rule: int) -> int:
        return int(self._order.values[self._row(rule)])

    def _row(self, rule: int) -> int:
        return int(np.searchsorted(self._rule.values, rule))

    # -- all of them

    def names(self, edge: int = -1) -> list[RuleId]:
        """The campaigns in booking order: all, or those whose path has the edge."""
        rows = np.arange(len(self._rule.values))
        if edge >= 0:
            places = np.nonzero(self._path.values == edge)[0]
            rows = np.searchsorted(self._path_offsets.values, places, side="right") - 1
        rules = self._rule.values
        living = [row for row in rows.tolist() if self.rules.get(self._name[row]) == rules[row]]
        order = self._order.values
        return [self._name[row] for row in sorted(living, key=order.__getitem__)]

    def columns(self) -> dict[str, Any]:
        """What a snapshot keeps: the rows of the campaigns that there are."""
        rules = zip(self._name, self._rule.values.tolist(), strict=True)
        keep = np.array([self.rules.get(name) == rule for name, rule in rules], np.bool_)
        path, path_offsets = kept_slices(self._path.values, self._path_offsets.values, keep)
        text, text_offsets = kept_slices(self._text.values, self._text_offsets.values, keep)
        return {
            "rule": self._rule.values[keep],
            "order": self._order.values[keep],
            "path_offsets": path_offsets,
            "path": path,
            "text_offsets": text_offsets,
            "text": text.tobytes(),
            "name": [name for name, living in zip(self._name, keep.tolist(), strict=True) if living],
        }

    def restore(self, columns: dict[str, Any], next_rule: int, next_order: int, edges: int) -> None:
        """Put back what `columns` gave."""
        self._fill(**columns)
        self.rules = dict(zip(self._name, self._rule.values.tolist(), strict=True))
        self.next_rule, self.next_order = next_rule, next_order
        self.publish(edges)


def eligible(number: I64, matched: I64, seen: Published) -> tuple[I64, I64, I64]:
    """Of matched rules, ascending by the event's number, the campaigns whose edges all matched too, in booking order.

    The event's number, the row, and the place among the matched of each.
    """
    number, row, place = eligible_rows(number, matched, seen.rule, seen.path_offsets, seen.path, seen.edges)
    order = seen.order[row]
    # Mostly it is in order already; a campaign that is just moving may be there twice.
    later = (order[1:] > order[:-1]) | (number[1:] > number[:-1])
    if not later.all():
        by = np.lexsort((order, number))
        by = by[np.concatenate(([True], (np.diff(order[by]) != 0) | (np.diff(number[by]) != 0)))]
        number, row, place = number[by], row[by], place[by]
    return number, row, place


@kernel
def eligible_rows(number, matched, rules, path_offsets, path, edges):
    """Event, row and place of every matched campaign of whose path all edges matched the same event.

    Rules of edges are negative: -1 - number.
    """
    held = np.full(edges, -1, np.int64)  # by edge, the last event that it matched
    events, rows, places = (
        np.empty(len(matched), np.int64),
        np.empty(len(matched), np.int64),
        np.empty(len(matched), np.int64),
    )
    count = 0
    first = 0
    while first < len(matched):
        event = number[first]
        stop = first
        while stop < len(matched) and number[stop] == event:
            edge = -1 - matched[stop]
            if 0 <= edge < edges:
                held[edge] = event
            stop += 1
        for i in range(first, stop):
            rule = matched[i]
            if rule < 0:
                continue
            row = np.searchsorted(rules, rule)
            if row == len(rules) or rules[row] != rule:
                continue  # cancelled since the matcher was asked
            holds = True
            for at in range(path_offsets[row], path_offsets[row + 1]):
                if held[path[at]] != event:
                    holds = False
                    break
            if holds:
                events[count], rows[count], places[count] = event, row, i
                count += 1
        first = stop
    return events[:count].copy(), rows[:count].copy(), places[:count].copy()
