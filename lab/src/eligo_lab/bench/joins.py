"""Rules as joins, as a good Spark user would write them without an index.

rule r       a few attributes, each with low ≤ value ≤ high; at least one with low = high
nested loop  every event with every rule, broadcast, and one condition over all attributes; null: not asked
hash         events exploded to (attribute, value), joined with each rule's rarest equality, then the condition
"""

from __future__ import annotations

import random
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ATTRIBUTES: Final = 20
VALUES: Final = 50


class JoinRule(NamedTuple):
    """A conjunction of ranges."""

    id: int
    ranges: dict[str, tuple[int, int]]

    @property
    def text(self) -> str:
        return " and ".join(
            f"{name} = {low}" if low == high else f"{name} between {low} and {high}"
            for name, (low, high) in self.ranges.items()
        )

    @property
    def access(self) -> tuple[str, int]:
        """An equality to be found by; any is as rare as another here."""
        return next((name, low) for name, (low, high) in self.ranges.items() if low == high)


def join_rules(count: int, seed: int = 5) -> list[JoinRule]:
    """Two equalities and two ranges each."""
    rng = random.Random(seed)
    rules = []
    for number in range(count):
        ranges = {}
        for place, attribute in enumerate(rng.sample(range(ATTRIBUTES), 4)):
            low = rng.randrange(VALUES)
            ranges[f"a{attribute}"] = (low, low if place < 2 else min(VALUES - 1, low + rng.randrange(5, 25)))
        rules.append(JoinRule(number, ranges))
    return rules


def join_events(session: SparkSession, count: int) -> DataFrame:
    """Events with all attributes."""
    from pyspark.sql import functions as f

    columns = [f.pmod(f.xxhash64("id", f.lit(i)), VALUES).cast("int").alias(f"a{i}") for i in range(ATTRIBUTES)]
    return session.range(count).select("id", *columns)


def _condition(event: str, rule: str) -> Column:
    from pyspark.sql import functions as f

    def holds(i: int) -> Column:
        low, high = f.col(f"{rule}.low{i}"), f.col(f"{rule}.high{i}")
        return low.isNull() | f.col(f"{event}.a{i}").between(low, high)

    return reduce(lambda a, b: a & b, [holds(i) for i in range(ATTRIBUTES)])


def _table(session: SparkSession, rules: list[JoinRule]) -> DataFrame:
    rows = []
    for rule in rules:
        bounds: list[Any] = []
        for i in range(ATTRIBUTES):
            bounds += rule.ranges.get(f"a{i}", (None, None))
        rows.append((rule.id, *rule.access, *bounds))
    bounds_ddl = ", ".join(f"low{i} int, high{i} int" for i in range(ATTRIBUTES))
    return session.createDataFrame(rows, f"rule long, attribute string, value int, {bounds_ddl}")


def nested_loop_join(events: DataFrame, rules: list[JoinRule]) -> DataFrame:
    """Every event with every rule."""
    from pyspark.sql import functions as f

    table = f.broadcast(_table(events.sparkSession, rules)).alias("r")
    return events.alias("e").join(table, _condition("e", "r")).select("e.id", "r.rule")


def exploded_hash_join(events: DataFrame, rules: list[JoinRule]) -> DataFrame:
    """Every event with the rules whose equality it has, then verified."""
    from pyspark.sql import functions as f

    pairs = f.explode(
        f.array(*(f.struct(f.lit(f"a{i}").alias("name"), f.col(f"a{i}").alias("is")) for i in range(ATTRIBUTES)))
    )
    exploded = events.withColumn("pair", pairs).alias("e")
    table = f.broadcast(_table(events.sparkSession, rules)).alias("r")
    by = (f.col("e.pair.name") == f.col("r.attribute")) & (f.col("e.pair.is") == f.col("r.value"))
    return exploded.join(table, by).where(_condition("e", "r")).select("e.id", "r.rule")
