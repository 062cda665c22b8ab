"""`eligo match --engine spark` gives what the local engine gives."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import Run

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("session")]  # which commands use, being active

EVENTS = [{"age": n % 61, "country": ("US", "CA", "FR")[n % 3]} if n % 7 else {"country": "US"} for n in range(2_000)]
SCHEMA = pa.schema([("age", pa.int64()), ("country", pa.string())])


def test_spark_gives_what_the_local_engine_gives(run: Run, rules: str) -> None:
    pq.write_table(pa.Table.from_pylist(EVENTS, SCHEMA), "events.parquet", row_group_size=300)
    lines = [msgspec.json.encode(event) for event in EVENTS]
    lines[50:50] = [b"", b'{"age": ', b""]
    Path("events.ndjson").write_bytes(b"\n".join(lines) + b"\n")
    cells = [f"{event.get('age', '')},{event['country']}" for event in EVENTS]
    cells[70:70] = ["1,2,3"]
    Path("events.csv").write_text("age,country\n" + "\n".join(cells) + "\n")
    for name, code in (("events.parquet", 0), ("events.ndjson", 1), ("events.csv", 1)):
        local = run("match", rules, name)
        distributed = run("match", rules, name, "--engine", "spark")
        assert (local.code, distributed.code) == (code, code), distributed.err
        assert distributed.rows == local.rows
        assert len(local.rows) > 1_000


def test_what_spark_cannot_do(run: Run, rules: str) -> None:
    done = run("match", rules, "-", "--engine", "spark", "--format", "ndjson")
    assert done.code == 2
    assert "--engine local" in done.err
    Path("events.ndjson").write_text("{}\n")
    assert run("match", rules, "events.ndjson", "--engine", "spark", "--limit", "1").code == 2
