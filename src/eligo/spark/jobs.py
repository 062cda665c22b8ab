"""Small jobs that return one value a task, as a line of JSON, and what went wrong in them, in one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import pyarrow as pa

from eligo import errors
from eligo.arrow import texts_of
from eligo.errors import EligoError
from eligo.spark.memory import give_back

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

REPORT = pa.schema([pa.field("report", pa.string(), nullable=False)])
REPORT_DDL = "report string not null"
_NAMED = re.compile(
    r"^(?:eligo\.errors\.(\w+)): (.*?)(?=\n\n|\n\s*at |\n\s+File | SQLSTATE: |\Z)", re.MULTILINE | re.DOTALL
)


def run_tasks(session: SparkSession, count: int, task: Callable[[int], T], kind: type[T]) -> list[T]:
    """Run a function for the numbers 0 … count-1, each in a task of its own. Returns what they returned, in that order;
    `kind` is its type.
    """

    def numbered(batches: Iterator[pa.RecordBatch]) -> T:
        (number,) = (number for batch in batches for number in batch.column(0).to_pylist())
        return task(number)

    return run_partitions(session.range(0, count, 1, count), numbered, kind) if count else []


def run_partitions(frame: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], T], kind: type[T]) -> list[T]:
    """Run a function over each partition of a DataFrame. Returns what they returned: nothing at all where Spark knows
    that there are no rows.
    """

    def report(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            text = msgspec.json.encode(task(batches)).decode()
        finally:
            give_back()
        yield pa.RecordBatch.from_arrays([texts_of([text])], schema=REPORT)

    return reports(frame.mapInArrow(report, REPORT_DDL), kind)


def reports(frame: DataFrame, kind: type[T]) -> list[T]:
    """Run a job that gives lines of JSON; an error in a worker becomes the sentence that it raised."""
    from pyspark.errors import PySparkException

    try:
        return [msgspec.json.decode(row[0], type=kind) for row in frame.collect()]
    except PySparkException as error:
        raise original(error) from error


def reason(error: BaseException) -> str:
    """What eligo said in a worker, as one sentence without the two stack traces around it; of other errors the first
    line.
    """
    found = original(error)
    text = str(found).strip()
    return (text if isinstance(found, EligoError) else text.split("\n", 1)[0]) or type(error).__name__


def original(error: BaseException) -> Exception:
    """The error that eligo raised in a worker; other errors as they are."""
    if isinstance(error, EligoError):
        return error
    found = _NAMED.search(str(error))
    if found is None:
        return error if isinstance(error, Exception) else EligoError(str(error))
    kind: Any = getattr(errors, found[1], EligoError)
    try:
        return kind(found[2].strip())  # type: ignore[no-any-return]
    except TypeError:
        return EligoError(found[2].strip())
