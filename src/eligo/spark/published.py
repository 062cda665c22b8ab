"""What a change to a rule set on Spark made: a version, and how it went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from eligo.spark.preflight import folder_of, local_url
from eligo.store.versions import Content, hold, place
from eligo.store.versions import versions as all_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Published:
    """A version of a rule set."""

    path: str
    version: int
    parent: int  # the version before it; 0: none
    rules: int
    rejected: int  # rows of the rules or changes that were refused when it was made
    shards: int
    deltas: int
    bytes: int  # of the files that matching maps
    made: str
    seconds: float = 0.0
    stages: Mapping[str, float] = field(default_factory=dict)  # seconds of each, where it was compiled

    def rejects(self, session: SparkSession) -> DataFrame:
        """The rows that were refused: id, message, position (of the character, -1 if none), expression."""
        if not self.rejected:
            return session.createDataFrame([], "id string, message string, position bigint, expression string")
        with hold(Path(self.path), self.version) as held:
            files = [local_url(place(Path(self.path), table.file)) for table in held.content.rejects]
        return session.read.parquet(*files)


def published(
    path: str, content: Content, seconds: float = 0.0, stages: Mapping[str, float] | None = None
) -> Published:
    """What a manifest says, for people."""
    parts = (*content.shards, *content.deltas)
    return Published(
        path=path,
        version=content.version,
        parent=content.parent,
        rules=content.rules,
        rejected=content.rejected,
        shards=len(content.shards),
        deltas=len(content.deltas),
        bytes=content.strings.size + sum(part.segment.size for part in parts),
        made=content.made,
        seconds=seconds,
        stages=stages or {},
    )


def versions(path: str | PathLike[str]) -> list[Published]:
    """The versions of a rule set that are still there, oldest first."""
    folder = folder_of(path)
    return [published(folder, content) for content in all_versions(Path(folder))]
