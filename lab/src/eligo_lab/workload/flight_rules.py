"""Alert rules over the flights of `flights.py`, as travellers, crews, airlines and airports would write them.

Each rule starts from a real flight and asks for some of what was true of it, so that routes, carriers, aircraft and
hours occur together as they do in the data and nearly every rule holds for at least one flight. A few kinds are broad
(a bad day at an airport), most are narrow (one flight number, one aircraft); 10,000 rules give some 8 matches a
flight.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

FlightRule: TypeAlias = tuple[str, str, float, tuple[str, ...]]
Flight: TypeAlias = dict[str, Any]

_POOL: Final = 5_000  # flights to draw from, of each sort
_COLUMNS: Final = [
    "month",
    "day",
    "hour",
    "sched_dep_time",
    "dep_delay",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "distance",
    "time_hour",
    "temp",
    "wind_speed",
    "precip",
    "visib",
    "plane_year",
    "plane_type",
    "manufacturer",
    "seats",
    "airline",
    "dest_name",
]


class Draw:
    """The random choices of one run: flights of each sort, thresholds and lists."""

    def __init__(self, flights: pa.Table, seed: int) -> None:
        self.random = random.Random(seed)
        late = pc.greater_equal(flights["dep_delay"], 60)
        rough = pc.or_(pc.less(flights["visib"], 3), pc.greater(flights["precip"], 0.05))
        registered = pc.is_valid(flights["manufacturer"])
        self._pools = {
            "any": self._sample(flights.filter(pc.is_valid(flights["tailnum"]))),
            "late": self._sample(flights.filter(late)),
            "cancelled": self._sample(flights.filter(pc.is_null(flights["dep_time"]))),
            "rough": self._sample(flights.filter(rough)),
            "registered": self._sample(flights.filter(pc.and_(registered, pc.is_valid(flights["plane_year"])))),
        }

    def _sample(self, table: pa.Table) -> list[Flight]:
        size = min(_POOL, table.num_rows)
        rows = sorted(self.random.sample(range(table.num_rows), size))
        drawn: list[Flight] = table.select(_COLUMNS).take(pa.array(rows, pa.int64())).to_pylist()
        return drawn

    def flight(self, sort: str = "any") -> Flight:
        return self.random.choice(self._pools[sort])

    def value(self, column: str) -> Any:
        """A value of one column as often as it occurs, never null."""
        return self.random.choice([f[column] for f in self._pools["any"] if f[column] is not None])

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def some(self, column: str, first: Any, most: int = 4) -> str:
        """A list of two or more values of one column, `first` among them, as text."""
        values = {first} | {self.flight()[column] for _ in range(self.random.randint(1, most - 1))}
        if len(values) == 1:
            values.add(self.flight()[column])
        return "(" + ", ".join(quote(v) for v in sorted(values)) + ")"


def quote(value: Any) -> str:
    """A literal of the rule language."""
    if value is None:
        raise ValueError("a rule cannot name a null: draw from a pool where the column is present")
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"timestamp '{value:%Y-%m-%d %H:%M:%S}Z'"
    return str(value)


def _route(f: Flight) -> str:
    return f"origin = {quote(f['origin'])} and dest = {quote(f['dest'])}"


def _traveller(d: Draw) -> str:
    f = d.flight("late")
    late = d.one(30, 45, 60, 90, 120, 180)
    condition = d.one(f"dep_delay >= {late}", f"arr_delay > {late}", f"dep_delay between {late} and {late + 60}")
    return f"{_route(f)} and carrier = {quote(f['carrier'])} and {condition}"


def _flight_number(d: Draw) -> str:
    f = d.flight("late")
    late = d.one(15, 30, 60)
    return (
        f"carrier = {quote(f['carrier'])} and flight = {f['flight']} and "
        f"(dep_delay > {late} or arr_delay > {late + 15} or dep_time is null)"
    )


def _aircraft(d: Draw) -> str:
    f = d.flight("any")
    condition = d.one(
        f"dest = {quote(f['dest'])}",
        "dep_time is null",
        f"(arr_delay >= {d.one(30, 60, 120)} or dep_time is null)",
        f"not (origin = {quote(f['origin'])} and dep_delay < 30)",
    )
    return f"tailnum = {quote(f['tailnum'])} and {condition}"


def _fleet(d: Draw) -> str:
    f = d.flight("registered")
    pattern = d.one(f["tailnum"][:2] + "%", f["tailnum"][:3] + "%", f["tailnum"][:4] + "%", "%" + f["tailnum"][-2:])
    return (
        f"tailnum like {quote(pattern)} and airline = {quote(f['airline'])} and dest = {quote(f['dest'])} "
        f"and arr_delay > {d.one(20, 45, 90)}"
    )


def _cancelled(d: Draw) -> str:
    f = d.flight("cancelled")
    where = d.one(f"origin = {quote(f['origin'])} and ", "")
    return (
        f"dep_time is null and {where}dest in {d.some('dest', f['dest'])} "
        f"and carrier in {d.some('carrier', f['carrier'], 3)}"
    )


def _diverted(d: Draw) -> str:
    f = d.flight("late")
    return f"air_time is null and dep_time is not null and dest = {quote(f['dest'])}"


def _weather(d: Draw) -> str:
    f = d.flight("rough")
    condition = d.one(
        f"visib < {d.one(1, 1.5, 2, 3)}",
        f"(visib <= 2 or precip >= {d.one(0.05, 0.1, 0.25)})",
        f"wind_speed > {d.one(18, 20.5, 25)} and precip > 0",
        f"temp < {d.one(20, 28, 32)} and not visib >= 5",
    )
    who = d.one(f"carrier = {quote(f['carrier'])}", f"dest in {d.some('dest', f['dest'])}")
    return f"origin = {quote(f['origin'])} and {condition} and {who} and hour between {f['hour']} and {f['hour'] + 2}"


def _time_of_day(d: Draw) -> str:
    f = d.flight("any")
    start = f["sched_dep_time"] // 100 * 100
    month = d.one(f"month = {f['month']}", f"month in {d.some('month', f['month'], 3)}")
    return (
        f"dest = {quote(f['dest'])} and sched_dep_time between {start} and {start + d.one(59, 159)} and {month} "
        f"and carrier not in {d.some('carrier', 'HA', 3)} and dep_delay > {d.one(0, 15, 30)}"
    )


def _window(d: Draw) -> str:
    f = d.flight("late")
    begin: datetime = f["time_hour"]
    end = begin + timedelta(hours=d.one(2, 4, 8))
    return (
        f"time_hour >= {quote(begin)} and time_hour < {quote(end)} and origin = {quote(f['origin'])} "
        f"and dep_delay is not null and (dep_delay > {d.one(45, 90)} or carrier = {quote(f['carrier'])})"
    )


def _plane_type(d: Draw) -> str:
    f = d.flight("registered")
    maker = f["manufacturer"].split()[0] + "%"
    build = d.one(f"plane_year <= {f['plane_year']}", f"plane_year = {f['plane_year']}", f"seats >= {f['seats']}")
    return f"{_route(f)} and manufacturer like {quote(maker)} and {build} and distance > {f['distance'] // 2}"


def _audience(d: Draw) -> str:
    f = d.flight("registered")
    return (
        f"dest in {d.some('dest', f['dest'], 3)} and hour between {f['hour']} and {f['hour'] + d.one(1, 3)} "
        f"and (seats >= {f['seats']} or carrier = {quote(f['carrier'])}) and not dep_time is null"
    )


def _nested(d: Draw) -> str:
    f, g = d.flight("late"), d.flight("rough")
    late = d.one(30, 45, 60)
    return (
        f"({_route(f)} or {_route(g)} and (visib < 3 or wind_speed >= 20)) and "
        f"not (carrier = {quote(d.flight()['carrier'])} or arr_delay < {late}) and "
        f"(dep_delay between {late} and {late * 4} or hour in {d.some('hour', f['hour'])} and "
        f"not (plane_type = 'Fixed wing single engine' or seats < 50))"
    )


def _operations(d: Draw) -> str:
    f = d.flight("late")
    late = d.random.randint(90, 300)
    return str(
        d.one(
            f"dep_delay >= {late} or arr_delay >= {late + d.one(15, 30, 60)}",
            f"origin = {quote(f['origin'])} and dep_delay >= {late}",
            f"dep_time is null and origin = {quote(f['origin'])} and month = {f['month']}",
            f"airline = {quote(f['airline'])} and arr_delay > {late} and not month = {f['month']}",
            f"dest_name = {quote(d.value('dest_name'))} and precip > 0.2",
        )
    )


class Kind(NamedTuple):
    share: int  # of all rules, in percent
    team: str  # the tag of its rules: who wants to know
    write: Callable[[Draw], str]


KINDS: Final[dict[str, Kind]] = {
    "traveller": Kind(21, "travel", _traveller),
    "flight": Kind(16, "travel", _flight_number),
    "aircraft": Kind(12, "maintenance", _aircraft),
    "fleet": Kind(7, "maintenance", _fleet),
    "plane": Kind(5, "maintenance", _plane_type),
    "cancelled": Kind(7, "operations", _cancelled),
    "diverted": Kind(1, "operations", _diverted),
    "weather": Kind(5, "operations", _weather),
    "time": Kind(6, "planning", _time_of_day),
    "window": Kind(5, "planning", _window),
    "audience": Kind(5, "planning", _audience),
    "nested": Kind(8, "planning", _nested),
    "broad": Kind(2, "operations", _operations),
}


def generate(flights: pa.Table, n: int, seed: int) -> list[FlightRule]:
    """`n` rules as (id, text, weight, tags)."""
    draw = Draw(flights, seed)
    names = list(KINDS)
    drawn = draw.random.choices(names, weights=[KINDS[name].share for name in names], k=n)
    return [
        (f"{name}-{i:05d}", KINDS[name].write(draw), float(draw.random.randint(1, 50)) / 10, (KINDS[name].team,))
        for i, name in enumerate(drawn)
    ]
