"""The same matching over Spark DataFrames: DataFrame in, DataFrame out, batch and streaming alike.

    driver                                          every Python worker
    ------                                          -------------------
    open the snapshot: which attributes?            open the same snapshot, memory-mapped, once
    select those columns and the ones to keep  ──▶  Arrow batch → match_batch → take the kept columns  ──▶  DataFrame

Nothing here needs a SparkContext, so Spark Connect works as well; PySpark is imported only when it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eligo.spark.batch_writer import BatchWriter
from eligo.spark.compile import compile_rules
from eligo.spark.documents import PublishedDocuments, compile_documents, update_documents
from eligo.spark.files import match_files
from eligo.spark.jobs import reason
from eligo.spark.match import match
from eligo.spark.observe import observe
from eligo.spark.published import Published, versions
from eligo.spark.session import Java, find_java, local_session, require_java
from eligo.spark.sql import register
from eligo.spark.update import compact_rules, update_rules
from eligo.store.gc import sweep

if TYPE_CHECKING:
    from eligo.spark.redis_source import RedisStreams as RedisStreams


def __getattr__(name: str) -> Any:
    """What is built on classes of PySpark, imported when it is asked for."""
    if name == "RedisStreams":
        from eligo.spark.redis_source import RedisStreams

        return RedisStreams
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BatchWriter",
    "Java",
    "Published",
    "PublishedDocuments",
    "RedisStreams",
    "compact_rules",
    "compile_documents",
    "compile_rules",
    "find_java",
    "local_session",
    "match",
    "match_files",
    "observe",
    "reason",
    "register",
    "require_java",
    "sweep",
    "update_documents",
    "update_rules",
    "versions",
]
