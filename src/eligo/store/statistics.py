"""The table of statistics of events, beside the rules of a version.

attribute │ what                               │ kind                    │ value   │ count
          │ events, present, value or quantile │ bool int float str time │ as JSON │ of events
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eligo.compile.attributes import Attributes
from eligo.compile.strings import Strings
from eligo.segments.statistics import Statistics, values_of
from eligo.store.tables import verify_table
from eligo.store.versions import TableFile

SCHEMA: Final = pa.schema(
    [
        ("attribute", pa.string()),
        ("what", pa.string()),
        ("kind", pa.string()),
        ("value", pa.string()),
        ("count", pa.float64()),
    ]
)


def read_statistics(path: Path, described: TableFile, attributes: Attributes, strings: Strings) -> Statistics:
    """Reads a table of statistics, for one numbering. Raises SnapshotError if it is missing or damaged."""
    verify_table(path, described)
    table = pq.read_table(path, page_checksum_verification=True)
    rows = zip(*(table[name].to_pylist() for name in ("attribute", "what", "kind", "value", "count")), strict=True)
    return Statistics(*values_of(_valued(rows)), attributes, strings)


def _valued(rows: Iterable[tuple[str, str, str, str, float]]) -> Iterator[tuple[str, str, Any, float]]:
    """Yields the rows with their values decoded."""
    for attribute, what, kind, text, count in rows:
        value = msgspec.json.decode(text) if kind else ""
        if kind == "float":
            value = float(value)
        elif kind == "time":
            value = np.datetime64(value, "us")
        yield attribute, what, value, count
