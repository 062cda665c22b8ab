"""Alerts that depend on what was seen before: a month of flights from New York City, published as they left.

    flight ─▶ publish ─▶ rules against the flights of the last three days ─▶ airlines, airports, a plane spotter
                 └─────▶ kept as a document, for the flights to come

Run it with `python examples/flight_alerts.py [days]`, in an environment that has eligo-lab and its flights (`make venv`
makes one); 31 days take about ten seconds, and nothing is written.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow.compute as pc
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import eligo
from eligo.documents.delivery import Delivered
from eligo_lab.workload import flights

KEPT = timedelta(days=3)  # more than any flight was late
COLUMNS = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "seats", "time_hour"]
LATE, LARGE = 60, 300  # minutes, and seats
SPOTTER = "spotter"

console = Console()


def main(days: int = 31) -> int:
    stream = departures(days)
    alerts = service({flight["carrier"] for flight in stream}, {flight["origin"] for flight in stream})
    inbox: list[tuple[str, str, int]] = []  # who, why, which document

    def receive(got: Delivered) -> None:
        inbox.extend((got.owner, str(rule.id), got.document) for rule in got.rules)

    for owner in {rule.owner for rule in alerts.rules() if rule.owner}:
        alerts.subscribe(owner, receive)
    start = time.perf_counter()
    for flight in stream:
        alerts.publish(flight)
    took = time.perf_counter() - start
    assert alerts.documents is not None
    console.print(
        f"{len(stream):,} flights of {days} days published in {took:.1f} s, {1e6 * took / len(stream):.0f} µs each; "
        f"{len(alerts.documents):,} are kept.\n"
    )
    console.print(summary(inbox, stream))
    record_of_the_day(alerts, inbox, stream)
    return check(inbox, stream)


def departures(days: int) -> list[dict[str, Any]]:
    """The flights that left, in the order in which they did; `date` is the day of the timetable."""
    table = flights.events()
    first = pc.and_(pc.equal(table["month"], 1), pc.less_equal(table["day"], days))
    table = table.filter(pc.and_(first, pc.is_valid(table["dep_delay"])))
    found = []
    for row in table.select([*COLUMNS, "year", "month", "day", "minute"]).to_pylist():
        flight = {name: row[name] for name in COLUMNS if row[name] is not None}
        flight["date"] = date(row["year"], row["month"], row["day"])
        flight["left"] = row["time_hour"] + timedelta(minutes=row["minute"] + row["dep_delay"])
        found.append(flight)
    return sorted(found, key=lambda flight: flight["left"])


def service(carriers: set[str], airports: set[str]) -> eligo.Matcher:
    """A rule for every airline and every airport, and one of somebody who looks for large planes."""
    alerts = eligo.Matcher(documents=eligo.Documents(keep=KEPT, at="left"))
    for carrier in sorted(carriers):
        alerts.add(
            f"{carrier}: later than any flight of ours today",
            f"carrier = '{carrier}' and dep_delay >= {LATE} "
            "and not exists d (carrier = d.carrier and date = d.date and dep_delay <= d.dep_delay)",
            owner=carrier,
        )
    for airport in sorted(airports):
        alerts.add(
            f"{airport}: first flight to this destination today",
            f"origin = '{airport}' and not exists d (date = d.date and origin = d.origin and dest = d.dest)",
            owner=airport,
        )
    alerts.add(
        "a large plane that I was not told of in three days",
        f"seats >= {LARGE} and not exists d in received (tailnum = d.tailnum)",
        owner=SPOTTER,
    )
    return alerts


def summary(inbox: list[tuple[str, str, int]], stream: list[dict[str, Any]]) -> Table:
    table = Table(title="The busiest alerts, and a flight of each", title_justify="left")
    table.add_column("alert")
    table.add_column("sent", justify="right")
    table.add_column("the last one")
    last = {rule: document for _, rule, document in inbox}
    for rule, count in Counter(rule for _, rule, _ in inbox).most_common(8):
        table.add_row(rule, f"{count:,}", named(stream[last[rule]]))
    return table


def named(flight: dict[str, Any]) -> str:
    left: datetime = flight["left"]
    return (
        f"{flight['carrier']} {flight['flight']} {flight['origin']}–{flight['dest']}, {left:%d %B %H:%M} UTC, "
        f"{flight['dep_delay']:+} min"
    )


def record_of_the_day(alerts: eligo.Matcher, inbox: list[tuple[str, str, int]], stream: list[dict[str, Any]]) -> None:
    """The last flight that was later than all of its airline, explained as if it came again: now it is no record."""
    document, rule = max((document, rule) for _, rule, document in inbox if "later" in rule)
    why = alerts.explain(stream[document], rule)
    console.print(
        Panel(Text(str(why)), title=f"{named(stream[document])}, once more", title_align="left", expand=False)
    )


def check(inbox: list[tuple[str, str, int]], stream: list[dict[str, Any]]) -> int:
    """The same alerts, found by a few dicts that know what these three kinds of rules need."""
    worst: dict[tuple[str, date], int] = {}
    routes: set[tuple[date, str, str]] = set()
    told: dict[str, datetime] = {}
    expected: Counter[tuple[str, int]] = Counter()
    for number, flight in enumerate(stream):
        carrier_day = (flight["carrier"], flight["date"])
        route = (flight["date"], flight["origin"], flight["dest"])
        if flight["dep_delay"] >= LATE and flight["dep_delay"] > worst.get(carrier_day, -LATE):
            expected[flight["carrier"], number] += 1
        if route not in routes:
            expected[flight["origin"], number] += 1
        before = told.get(flight.get("tailnum", ""))
        newest = stream[number - 1]["left"] if number else flight["left"]
        if flight.get("seats", 0) >= LARGE and (before is None or before < newest - KEPT):
            expected[SPOTTER, number] += 1
            told[flight["tailnum"]] = flight["left"]
        worst[carrier_day] = max(flight["dep_delay"], worst.get(carrier_day, flight["dep_delay"]))
        routes.add(route)
    same = Counter((owner, document) for owner, _, document in inbox) == expected
    verdict = "[green]the same[/green]" if same else "[red]NOT the same[/red]"
    console.print(f"\nCheck: {len(inbox):,} alerts; a program written for these rules alone sends {verdict}.")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
