"""Match every flight that left New York City in 2013 against 10,000 alert rules, on Spark in local mode.

    flights (Parquet)  ─┐
                        ├─▶  spark.match  ─▶  demo-output/matches (Parquet)  ─▶  counts, explanations, a check
    rules  ─▶ snapshot ─┘

Run it with `make demo`. Everything it writes goes to demo-output/ beside the Makefile.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

import eligo
from eligo import spark
from eligo.warm import BATCHES, LOADS, TREES, Step, warm
from eligo_lab.workload import flights

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "demo-output"
SNAPSHOT = OUTPUT / "rules.eligo"
MATCHES = OUTPUT / "matches"
SPARK_LOG = OUTPUT / "spark.log"

RULES = 10_000
CHECKED = 2_000  # flights whose answer is compared with the one of this process
KEEP = ["id", "carrier", "flight", "time_hour"]  # the rest is in the flights, under `id`

console = Console()


@contextmanager
def step(title: str, seconds: dict[str, float], key: str) -> Iterator[None]:
    """One progress line: what is being done and, once it is, how long it took."""
    console.print(f"  {title} … ", end="")
    start = time.perf_counter()
    yield
    seconds[key] = time.perf_counter() - start
    console.print(f"[green]{seconds[key]:.1f} s[/green]")


@contextmanager
def errors_to(path: Path) -> Iterator[None]:
    """Processes started inside, the JVM and its workers, write their errors to a file for as long as they live."""
    saved = os.dup(2)
    with path.open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def main() -> int:
    try:
        java = spark.require_java()
    except eligo.EligoError as error:
        console.print(str(error), markup=False)
        return 2
    console.print(f"eligo {version('eligo')}, {os.cpu_count()} cores, Java {java.version}\n")
    seconds: dict[str, float] = {}
    compiled: list[Step] = []
    # What is not at hand, beside the preparation of data; Spark's workers then only load it.
    kernels = ThreadPoolExecutor(1).submit(warm, None, compiled.append, [LOADS, BATCHES, TREES])

    with step("flights with weather, plane and airline → Parquet", seconds, "flights"):
        events = flights.events(OUTPUT)
    with step(f"{RULES:,} alert rules from their distributions", seconds, "rules"):
        rules = flights.rules(RULES, flights=events)
    with step("kernels, compiled once for a machine (the rest of it)", seconds, "kernels"):
        kernels.result()
    with step("compile the rules", seconds, "compile"):
        matcher = eligo.Matcher()
        matcher.add_many(rules)
    with step(f"match {CHECKED:,} flights in this process, to compare", seconds, "local"):
        sample = pa.array(sorted(random.Random(1).sample(range(events.num_rows), CHECKED)), pa.int64())
        local = matcher.match_batch(events.take(sample))
    with step("save the snapshot, with what that batch has made it build", seconds, "save"):
        matcher.save(SNAPSHOT)
    with step("start Spark", seconds, "start"), errors_to(SPARK_LOG):
        # The default counts a file as 4 MB at least, which would leave most cores without a part of this small one.
        session = spark.local_session("eligo: flights", **{"spark.sql.files.openCostInBytes": "65536"})
    try:
        with step(f"match all {events.num_rows:,} flights on Spark → Parquet", seconds, "match"):
            frame = session.read.parquet(str(flights.cache_file(OUTPUT)))
            spark.match(frame, SNAPSHOT, keep=KEEP).write.mode("overwrite").parquet(str(MATCHES))
    except Exception:
        console.print(f"[red]failed[/red]; Spark's own log is {SPARK_LOG.relative_to(ROOT)}")
        raise
    finally:
        session.stop()

    found = pa.parquet.read_table(MATCHES, columns=["id", "rule"])
    summary(events, found, seconds, [one for one in compiled if one.kernel])
    busiest(matcher, events, found)
    return check(sample, local, found)


def summary(events: pa.Table, found: pa.Table, seconds: dict[str, float], compiled: list[Step]) -> None:
    busy = pc.count_distinct(found["rule"]).as_py()
    lines = {
        "rules": f"{RULES:,}",
        "rules that matched a flight": f"{busy:,}",
        "flights": f"{events.num_rows:,}",
        "matches": f"{found.num_rows:,}",
        "matches a flight": f"{found.num_rows / events.num_rows:.1f}",
        "flights and rules made": f"{seconds['flights'] + seconds['rules']:.1f} s",
        f"kernels compiled: {len(compiled)}": f"{sum(one.seconds for one in compiled):.1f} s",
        "rules compiled and saved": f"{seconds['compile'] + seconds['save']:.1f} s",
        "Spark started": f"{seconds['start']:.1f} s",
        "matched on Spark, with reading and writing": f"{seconds['match']:.1f} s",
        "flights a second": f"{events.num_rows / seconds['match']:,.0f}",
    }
    table = Table(title="Summary", show_header=False, title_justify="left")
    table.add_column()
    table.add_column(justify="right")
    for name, value in lines.items():
        table.add_row(name, value)
    console.print()
    console.print(table)


def busiest(matcher: Any, events: pa.Table, found: pa.Table, count: int = 5) -> None:
    """The rules with the most matches, each explained on a flight; the first also on one it did not match."""
    counts = found.group_by("rule").aggregate([("id", "count"), ("id", "min")])
    top = counts.sort_by([("id_count", "descending"), ("rule", "ascending")]).slice(0, count).to_pylist()
    console.print(f"\n[bold]The {count} busiest rules[/bold]")
    for place, line in enumerate(top):
        rule, first = line["rule"], line["id_min"]
        console.print(f"\n[bold]{rule}[/bold]: {line['id_count']:,} flights, for example")
        console.print(Text(f"  {matcher.get(rule).expression}"))
        console.print(explained(matcher, events, first, rule, "matched"))
        if place == 0:
            hits = set(found.filter(pc.equal(found["rule"], rule))["id"].to_pylist())
            other = next((i for i in range(events.num_rows) if i not in hits), None)
            if other is not None:
                console.print(explained(matcher, events, other, rule, "did not match"))


def explained(matcher: Any, events: pa.Table, row: int, rule: str, verdict: str) -> Panel:
    event = events.slice(row, 1).to_pylist()[0]
    name = f"{event['carrier']} {event['flight']} {event['origin']}–{event['dest']}, {event['time_hour']:%d %B %Y}"
    return Panel(Text(str(matcher.explain(event, rule))), title=f"{name}: {verdict}", title_align="left", expand=False)


def check(sample: pa.Array, local: pa.Table, found: pa.Table) -> int:
    """Spark's answer for the sample must be that of `match_batch` in this process, pair by pair."""
    numbers = sample.to_pylist()
    expected = {(numbers[row], rule) for row, rule in zip(*pairs(local, "event"), strict=True)}
    part = found.filter(pc.is_in(found["id"], value_set=sample))
    got = list(zip(*pairs(part, "id"), strict=True))
    same = len(got) == len(set(got)) and set(got) == expected
    verdict = "[green]the same[/green]" if same else "[red]NOT the same[/red]"
    console.print(
        f"\nCheck: on {CHECKED:,} flights × {RULES:,} rules ({len(expected):,} matches) Spark and this process give "
        f"{verdict} answer."
    )
    console.print(f"The matches are in {MATCHES.relative_to(ROOT)}/, the rules in {SNAPSHOT.relative_to(ROOT)}/.")
    console.print(f"Spark's own log is {SPARK_LOG.relative_to(ROOT)}.")
    return 0 if same else 1


def pairs(table: pa.Table, event: str) -> tuple[list[int], list[str]]:
    return table[event].to_pylist(), table["rule"].to_pylist()


if __name__ == "__main__":
    sys.exit(main())
