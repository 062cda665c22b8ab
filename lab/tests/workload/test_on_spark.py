"""Workloads on Spark: the rows of `eligo generate --blocks`, for any number of partitions."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from eligo.cli import main
from eligo.errors import OptionError
from eligo_lab.workload.base import WORKLOADS
from eligo_lab.workload.blocks import BLOCK
from eligo_lab.workload.on_spark import generate

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("workload", "asked", "partitions"),
    [("profiles", {"rules": 7 * BLOCK + 1}, (1, 2, 7)), ("begen", {"rules": BLOCK + 1, "dimensions": 30}, (None,))],
)
def test_rows_are_the_same_for_any_number_of_partitions(
    workload: str, asked: dict[str, Any], partitions: tuple[Any], session: Any
) -> None:
    made = WORKLOADS[workload].blocks(events=BLOCK + 77, **asked)
    local_rules = pa.Table.from_batches([batch for b in range(made.rule_blocks) for batch in made.rules(b)])
    local_events = pa.Table.from_batches([batch for b in range(made.event_blocks) for batch in made.events(b)])
    for number in partitions:
        frames = generate(session, workload, events=BLOCK + 77, partitions=number, **asked)
        assert frames.parameters == made.parameters
        for frame, local in ((frames.rules, local_rules), (frames.events, local_events)):
            assert frame.toArrow().cast(local.schema).equals(local)  # ranges of blocks stay in order


def test_partitions_by_size(session: Any) -> None:
    frames = generate(session, "ads", rules=100_000_000, events=BLOCK + 1, matches=1000.0)
    assert frames.rules.rdd.getNumPartitions() == 95
    assert frames.events.rdd.getNumPartitions() == 2
    # Somewhere in the middle, without the rest: only the blocks that are asked for are made.
    some = frames.rules.limit(3).collect()
    assert [row["id"] for row in some] == [0, 1, 2]


def test_mistakes_are_told_on_the_driver(session: Any) -> None:
    with pytest.raises(OptionError, match="flights cannot be made in blocks"):
        generate(session, "flights")
    with pytest.raises(OptionError, match="did you mean 'zipf'"):
        generate(session, "begen", zipff=1.0)
    with pytest.raises(OptionError, match="partitions is a whole number of 1 or more, not 0"):
        generate(session, "profiles", partitions=0)
    with pytest.raises(OptionError, match="session is a SparkSession"):
        generate("session", "ads")


def test_the_command_writes_folders(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["eligo", "generate", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0), "".join(capfd.readouterr())

    asked = ("profiles", "--rules", BLOCK + 9, "--events", 50, "--seed", 3)
    assert run(*asked, "-o", "local", "--blocks")[0] == 0
    code, said = run(*asked, "-o", "there", "--engine", "spark")
    assert code == 0, said
    for name, key in (("rules", "id"), ("events", "a0")):
        local = pq.read_table(f"local/{name}.parquet")
        assert ds.dataset(f"there/{name}").to_table().sort_by(key).equals(local.sort_by(key))
    kept = [json.loads(Path(folder, "parameters.json").read_text()) for folder in ("local", "there")]
    assert kept[0] == kept[1]
    assert run(*asked, "-o", "there", "--engine", "spark")[0] == 2
    assert run(*asked, "-o", "there", "--engine", "spark", "--force")[0] == 0
    by_url = (tmp_path / "url").as_uri()
    assert run(*asked, "-o", by_url, "--engine", "spark")[0] == 0
    assert ds.dataset("url/rules").count_rows() == BLOCK + 9
    # The session of this process is used, stays, and cannot be moved to another master.
    code, said = run(*asked, "-o", "other", "--engine", "spark", "--master", "local[1]")
    assert (code, "leave --master out" in said) == (2, True)
    code, said = run(*asked, "-o", "other", "--engine", "spark", "--conf", "spark.sql.warehouse.dir=x")
    assert (code, "--conf spark.sql.warehouse.dir" in said) == (2, True)
    assert session.range(1).count() == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["local", "there", "url"]
