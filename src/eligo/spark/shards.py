"""Events × shards, by size: the smaller side is replicated.

    loop      all shards of the rule set in every worker, which maps them: while they fit `memory`
    spread    else one pass over the events for each shard; a worker has one shard open at a time. Spark
              runs the tasks of one pass after those of another. Where one row an event is wanted, or its best matches,
              every pass gives each event an array of (order, sequence, rule, weight), and these are put together by
              the columns that tell events apart.

Nothing is shuffled in the first case, nor in the second for one row a match.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from eligo.errors import OptionError
from eligo.spark import worker
from eligo.spark.event_columns import few, quoted
from eligo.spark.worker import Plan
from eligo.spark.worker_cache import Facts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

log = logging.getLogger("eligo.spark")

_FOUND: Final = "eligo_found"


def matched_by(chosen: DataFrame, plan: Plan, answer: StructType) -> DataFrame:
    """The events through the workers, each with all the rules that the plan names."""

    def match_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return worker.run(plan, batches)

    return chosen.mapInArrow(match_partition, answer)


def spread(
    chosen: DataFrame,
    plan: Plan,
    answer: StructType,
    found: Facts,
    key: tuple[str, ...],
    memory: int,
) -> DataFrame:
    """A pass over the events for each shard, the answers put together."""
    shards = len(found.shard_bytes)
    size = f"{found.bytes / 2**30:.1f} GiB of rules in {shards} shards, memory={memory:,}"
    if chosen.isStreaming:
        raise OptionError(f"{size}: a stream maps all shards at once; give it a larger memory=")
    log.info("%s: one pass over the events for each shard", size)
    if max(found.shard_bytes) + found.shared_bytes > memory:
        log.warning("%s: even one shard, with the strings that all of them need, is more than that", size)
    if plan.output == "exploded" and plan.top_k is None:
        return _passes(chosen, plan, answer, shards)
    if not key:
        raise OptionError(
            f"{size}: the answers of the shards must be put together event by event; say with key=[…] which kept "
            "columns tell events apart, or use output='exploded' without top_k, or a larger memory="
        )
    for name in key:
        if name not in plan.kept:
            raise OptionError(f"key names {name!r}, which is not among the kept columns ({few(plan.kept)})")
    return _together(
        _passes(chosen, replace(plan, output=worker.RANKED), _ranked(plan, answer), shards),
        plan,
        answer,
        key,
        shards,
    )


def _passes(chosen: DataFrame, plan: Plan, answer: StructType, shards: int) -> DataFrame:
    sources = [replace(plan.source, shards=(shard,)) for shard in range(shards)]
    branches = [matched_by(chosen, replace(plan, source=source), answer) for source in sources]
    return reduce(lambda a, b: a.unionAll(b), branches)


def _ranked(plan: Plan, answer: StructType) -> StructType:
    """What a pass gives: the kept columns and an array of matches."""
    from pyspark.sql.types import ArrayType, DoubleType, LongType, StringType, StructField, StructType

    match = StructType(
        [
            StructField("order", DoubleType(), False),
            StructField("sequence", LongType(), False),
            StructField("rule", LongType() if plan.integers else StringType(), False),
            StructField("weight", DoubleType(), False),
        ]
    )
    kept = [answer[name] for name in plan.kept]
    counts = [answer[worker.PARTIAL]] if plan.counts_partial else []
    return StructType([*kept, StructField(_FOUND, ArrayType(match, False), False), *counts])


def _together(union: DataFrame, plan: Plan, answer: StructType, key: tuple[str, ...], shards: int) -> DataFrame:
    """One row an event, or its best k matches, of what the passes gave."""
    from pyspark.sql import functions as f

    firsts = [f.first(quoted(name)).alias(name) for name in plan.kept if name not in key]
    ordered = f.array_sort(f.flatten(f.collect_list(_FOUND)))  # by order, then by sequence
    if plan.top_k is not None:
        ordered = f.slice(ordered, 1, min(plan.top_k, 2**31 - 1))
    message = f"key={list(key)} does not tell events apart: two events have the same, or none"
    once = f.count(f.lit(1)) == f.lit(shards)
    found = f.when(once, ordered).otherwise(f.raise_error(f.lit(message)))
    firsts += [f.max(worker.PARTIAL).alias(worker.PARTIAL)] if plan.counts_partial else []
    grouped = union.groupBy(*map(quoted, key)).agg(found.alias(_FOUND), *firsts)
    columns: dict[str, Any] = {name: f.col(quoted(name)) for name in plan.kept}
    columns[worker.PARTIAL] = f.col(worker.PARTIAL)
    if plan.output == "exploded" and plan.counts_partial:  # as in worker.py, with a row that is no match
        parts = {"order": f.lit(0.0), "sequence": f.lit(-1).cast("bigint"), "weight": f.lit(0.0)}
        parts["rule"] = f.lit(0).cast("bigint") if plan.integers else f.lit("")
        counting = f.array(f.struct(*(parts[name].alias(name) for name in ("order", "sequence", "rule", "weight"))))
        is_partial = f.col(worker.PARTIAL) > 0
        grouped = grouped.withColumn(_FOUND, f.when(is_partial, f.concat(counting, _FOUND)).otherwise(f.col(_FOUND)))
        is_counting = f.col(_FOUND).getField("sequence") < 0
        columns[worker.PARTIAL] = f.when(is_counting, f.col(worker.PARTIAL)).otherwise(f.lit(0).cast("bigint"))
    if plan.output == "exploded":
        grouped = grouped.withColumn(_FOUND, f.explode(_FOUND))
    plural = "" if plan.output == "exploded" else "s"
    columns[f"rule{plural}"] = f.col(_FOUND).getField("rule")
    columns[f"weight{plural}"] = f.col(_FOUND).getField("weight")
    if plan.version_column is not None:
        columns[plan.version_column] = f.lit(plan.source.version).cast("bigint")
    return grouped.select(*(columns[name].alias(name) for name in answer.names))
