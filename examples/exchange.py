"""An advertising exchange: the small one of the paper on complex expressions §1.1, then one with 100,000 campaigns.

    publishers ──▶ intermediaries ──▶ advertisers      every edge has an expression: who sells which visits to whom
         ▲                                 │
      visit                             campaign       eligible if its own expression and those on its path hold

Run it with `python examples/exchange.py`, in an environment that has eligo-lab (`make venv` makes one); it takes
about half a minute and writes nothing.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from eligo.exchange import Exchange
from eligo.language import parse
from eligo.language.reference import matches
from eligo_lab.workload.base import generate

PUBLISHERS, BROKERS, NETWORKS, ADVERTISERS = 100, 40, 40, 200
CAMPAIGNS = 100_000
VISITS = 2_000
CHECKED = 5  # visits whose answer is compared with that of the reference evaluator

console = Console()


def main() -> int:
    small()
    return large()


def small() -> None:
    """The example of the paper, in the paper's words."""
    console.print("[bold]The exchange of §1.1[/bold]\n")
    exchange = Exchange()
    exchange.add_node("P", "publisher")
    exchange.add_node("X", "intermediary")
    exchange.add_node("Y", "intermediary")
    exchange.add_node("A", "advertiser")
    exchange.connect("P", "X")
    exchange.connect(
        "X",
        "Y",
        "(gender in ('Male') and category in ('Sports')) or (gender in ('Female') and category not in ('Finance'))",
    )
    exchange.connect("Y", "A")
    # The paper has AND between the two groups, which no visitor satisfies; OR is meant.
    exchange.book(
        "football and basketball",
        "A",
        "P",
        "(age in (4) and interest in ('NFL')) or (age in (5) and interest in ('NBA'))",
    )
    console.print(graph(exchange))
    for name in exchange:
        console.print(f"campaign [bold]{name}[/bold], over {' → '.join(exchange.path(name))}, runs where")
        console.print(Text(f"  {exchange.expression(name)}\n"))
    visit = {"gender": "Male", "interest": "NFL", "category": "Sports", "age": 4}
    for change in ({}, {"category": "Movies"}, {"category": "Movies", "gender": "Female"}):
        shown = {**visit, **change}
        console.print(Text(f"visit {shown}\n  eligible: {exchange.eligible('P', shown) or 'nothing'}"))
    movies = {**visit, "category": "Movies"}
    console.print("\nWhy not for a man who looks at films?")
    console.print(Panel(Text(str(exchange.explain(movies, "football and basketball"))), expand=False))
    exchange.connect("X", "Y", "category in ('Sports', 'Movies')", replace=True)
    console.print("X now sells to Y everything about sports and films, whoever the visitor is:")
    console.print(Text(f"visit {movies}\n  eligible: {exchange.eligible('P', movies)}\n"))


def graph(exchange: Exchange) -> Table:
    table = Table("seller", "buyer", "sells the visits with", title_justify="left")
    for edge in exchange.edges:
        table.add_row(edge.seller, edge.buyer, edge.expression)
    return table


def large() -> int:
    """1,000 edges and 100,000 campaigns: what a visit costs, and what changing an edge does."""
    console.print(f"[bold]An exchange with {CAMPAIGNS:,} campaigns[/bold]\n")
    rng = random.Random(1)
    with step("expressions and visits from the statistics of display advertising"):
        # Campaigns are conjunctions, edges ANDs of ORs of them; see docs/workloads.md.
        work = generate("trees", rules=CAMPAIGNS, events=VISITS, max_depth=1, seed=1)
        sold = generate("trees", rules=1_000, events=1, max_depth=2, seed=2)
        wanted, edges = work.rules["expression"].to_pylist(), iter(sold.rules["expression"].to_pylist())
    exchange = Exchange()
    publishers = nodes(exchange, "publisher", "publisher", PUBLISHERS)
    brokers = nodes(exchange, "broker", "intermediary", BROKERS)
    networks = nodes(exchange, "network", "intermediary", NETWORKS)
    advertisers = nodes(exchange, "advertiser", "advertiser", ADVERTISERS)
    with step("connect them"):
        for sellers, buyers, each in ((publishers, brokers, 2), (brokers, networks, 5)):
            for seller in sellers:
                for buyer in rng.sample(buyers, each):
                    exchange.connect(seller, buyer, next(edges))
        for advertiser in advertisers:
            for network in rng.sample(networks, 3):
                exchange.connect(network, advertiser, next(edges))
    with step(f"book {CAMPAIGNS:,} campaigns, each over the path with the fewest hops"):
        exchange.book_many(bookings(exchange, wanted, publishers, rng))
    places = [publishers[number % PUBLISHERS] for number in range(VISITS)]
    table = work.events.append_column("publisher", pa.array(places))
    visits = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    with step("look at past visits, so that the index knows what is rare"):
        exchange.observe(table)
        exchange.eligible(places[0], visits[0])
        exchange.eligible_batch(table.slice(0, 10))

    start = time.perf_counter()
    found = [exchange.eligible(place, visit) for place, visit in zip(places, visits, strict=True)]
    one = (time.perf_counter() - start) / VISITS
    start = time.perf_counter()
    batch = exchange.eligible_batch(table)
    many = (time.perf_counter() - start) / VISITS
    summary(exchange, sum(map(len, found)) / VISITS, one, many)
    changed(exchange, table, batch)
    return check(exchange, places, visits)


def bookings(
    exchange: Exchange, wanted: list[str], publishers: list[str], rng: random.Random
) -> Iterator[tuple[Any, ...]]:
    """Campaigns of advertisers who can be reached from their publisher."""
    reachable = {publisher: reached_from(exchange, publisher) for publisher in publishers}
    for number, expression in enumerate(wanted):
        publisher = rng.choice(publishers)
        yield number, rng.choice(reachable[publisher]), publisher, expression, None, rng.random()


def reached_from(exchange: Exchange, publisher: str) -> list[str]:
    """The advertisers that some path leads to."""
    buyers: dict[str, list[str]] = {}
    for edge in exchange.edges:
        buyers.setdefault(edge.seller, []).append(edge.buyer)
    seen, waiting = {publisher}, [publisher]
    while waiting:
        for buyer in buyers.get(waiting.pop(), ()):
            if buyer not in seen:
                seen.add(buyer)
                waiting.append(buyer)
    return sorted(name for name in seen if exchange.nodes[name] == "advertiser")


def nodes(exchange: Exchange, name: str, role: Any, count: int) -> list[str]:
    names = [f"{name} {number}" for number in range(count)]
    for one in names:
        exchange.add_node(one, role)
    return names


@contextmanager
def step(title: str) -> Iterator[None]:
    """One progress line: what is being done and, once it is, how long it took."""
    console.print(f"  {title} … ", end="")
    start = time.perf_counter()
    yield
    console.print(f"[green]{time.perf_counter() - start:.1f} s[/green]")


def summary(exchange: Exchange, eligible: float, one: float, many: float) -> None:
    stats = exchange.stats()
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in {
        "nodes": f"{stats.nodes:,}",
        "edges, and those with campaigns": f"{stats.edges:,}, {stats.edges_with_campaigns:,}",
        "campaigns": f"{stats.campaigns:,}",
        "edges on all paths": f"{stats.path_edges:,}",
        "bytes of all paths": f"{stats.path_bytes:,}",
        "eligible campaigns a visit": f"{eligible:.1f}",
        "visits a second, one by one": f"{1 / one:,.0f}",
        "visits a second, as a table": f"{1 / many:,.0f}",
    }.items():
        table.add_row(name, value)
    console.print()
    console.print(table)


def changed(exchange: Exchange, visits: pa.Table, before: pa.Table) -> None:
    """Close the edge that most campaigns run over, look at what is left, and open it again."""
    edge = max(exchange.edges, key=lambda edge: edge.campaigns)
    start = time.perf_counter()
    exchange.connect(edge.seller, edge.buyer, "false", replace=True)
    took = time.perf_counter() - start
    after = exchange.eligible_batch(visits)
    console.print(
        f"\nOver {edge.seller} → {edge.buyer} run {edge.campaigns:,} campaigns. Closing it took {1000 * took:.1f} ms; "
        f"of {before.num_rows:,} eligible campaigns {after.num_rows:,} are left."
    )
    exchange.connect(edge.seller, edge.buyer, edge.expression, replace=True)
    again = exchange.eligible_batch(visits)
    console.print(f"Opened again, there are {again.num_rows:,}.")


def check(exchange: Exchange, places: list[str], visits: list[dict[str, Any]]) -> int:
    """Every campaign of a visit's publisher, composed into one expression and asked of the reference evaluator."""
    composed: dict[Any, Any] = {}
    same = True
    for place, visit in list(zip(places, visits, strict=True))[:CHECKED]:
        here = [name for name in exchange if exchange.path(name)[0] == place]
        for name in here:
            composed[name] = parse(exchange.expression(name))
        expected = [name for name in here if matches(composed[name], visit)]
        same = same and exchange.eligible(place, visit) == expected
    verdict = "[green]the same[/green]" if same else "[red]NOT the same[/red]"
    console.print(
        f"\nCheck: for {CHECKED} visits, {len(composed):,} campaigns composed with the expressions on their paths and "
        f"evaluated one by one give {verdict} answer."
    )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
