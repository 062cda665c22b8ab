"""`generate`: the workloads of `eligo generate` as DataFrames, as large as one likes.

    range of block numbers ─ mapInArrow ─ each block made where its number arrives (workload/blocks.py) ─ DataFrame

Nothing is collected and nothing is shuffled. A block depends on the seed and its number alone, so that the rows are the
same for any number of partitions, and for a task that runs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from eligo.arguments import whole_number
from eligo.errors import EligoError
from eligo.spark.arguments import check_session
from eligo_lab.workload.base import WORKLOADS
from eligo_lab.workload.blocks import Blocks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_APART: Final = 64  # blocks up to here are a partition each;
_TOGETHER: Final = 16  # of more, so many are one: a million rows, and a file of it where they are written


@dataclass(frozen=True)
class Generated:
    """Rules (id, expression), events (a column for every attribute), and all parameters they were made with."""

    rules: DataFrame
    events: DataFrame
    parameters: dict[str, object]


def generate(
    session: SparkSession,
    workload: str,
    *,
    rules: int | None = None,
    events: int | None = None,
    seed: int | None = None,
    partitions: int | None = None,
    **parameters: object,
) -> Generated:
    """The workload of that name, made when the DataFrames are used; parameters that are not given have their defaults.

    Rows are those of `eligo generate --blocks` with the same parameters, whatever `partitions` is. A rule's id is its
    row number. Workloads that are made as a whole are refused, with the names of those that are not.
    """
    session = check_session(session)
    given = {"rules": rules, "events": events, "seed": seed}
    made = WORKLOADS[workload].blocks(**{name: n for name, n in given.items() if n is not None}, **parameters)
    return frames(session, made, partitions)


def frames(session: SparkSession, made: Blocks, partitions: int | None = None) -> Generated:
    """The same of blocks that are prepared."""
    partitions = None if partitions is None else whole_number("partitions", partitions, least=1)
    return Generated(
        _frame(session, made.rule_blocks, partitions, made.rules, made.rule_schema),
        _frame(session, made.event_blocks, partitions, made.events, made.event_schema),
        made.parameters,
    )


def _frame(
    session: SparkSession,
    blocks: int,
    partitions: int | None,
    make: Callable[[int], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    try:
        from pyspark.sql.types import LongType, StringType, StructField, StructType
    except ImportError as error:
        raise EligoError("Spark is not installed: pip install 'eligo[spark]'") from error

    def make_blocks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block in batch.column(0).to_pylist():
                yield from make(block)

    types = {pa.int64(): LongType(), pa.string(): StringType()}
    fields = [StructField(field.name, types[field.type]) for field in schema]
    numbers = session.range(0, blocks, 1, partitions or max(min(blocks, _APART), blocks // _TOGETHER))
    return numbers.mapInArrow(make_blocks, StructType(fields))
