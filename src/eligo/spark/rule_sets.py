"""Rule sets as queries name them: a plain snapshot by its content, one with versions by the number of a version.

    Source      what travels inside a query
    opened      the matcher of it, in a worker: opened once, memory-mapped, a few of them kept:

    (source, version) → matcher, files with their sizes       least recently used first

At most four are kept; of the shards that a query goes through one after another, one; and together no more bytes than
the query's `memory`, where files that several versions share count once. The last one opened always stays.

A query never mixes two: a plain snapshot that was replaced is refused, a version is the same for ever.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import eligo
from eligo.errors import SnapshotError
from eligo.store.arrays import ArrayFile
from eligo.store.opening import let_go, open_held
from eligo.store.snapshot import MANIFEST
from eligo.store.versions import PATIENCE, Content, hold, is_versioned, manifest_path

_OPEN: Final = 4  # a worker lives for many queries


@dataclass(frozen=True)
class Source:
    """Where the rules of a query are."""

    path: str
    manifest: str = ""  # of a plain snapshot the content hash that the driver saw, of a version the job that made it
    version: int = 0  # 0: a plain snapshot, or the version comes with the events
    shards: tuple[int, ...] | None = None  # some only: a query goes through them one after another
    memory: int = 0  # bytes of rules that a process keeps open, 0: any
    # In a stream, where rules change and columns do not: the events' schema as JSON, and the attributes that are sent.
    schema: str = field(default="", repr=False)
    sent: frozenset[str] = frozenset()


class _Open(NamedTuple):
    matcher: Any
    identity: tuple[int, int, int] | None  # of a version: which file its manifest is
    files: dict[str, int]


_matchers: OrderedDict[tuple[Source, int, bool], _Open] = OrderedDict()


@dataclass(frozen=True)
class Facts:
    """What the driver has to know of a rule set in order to plan."""

    attributes: tuple[str, ...]
    multi: frozenset[str]
    integers: bool
    version: int  # 0: a plain snapshot
    manifest: str
    shard_bytes: tuple[int, ...]  # of a set with versions
    shared_bytes: int  # of its strings, which every shard needs, and of its deltas

    @property
    def bytes(self) -> int:
        """All that a process maps which has all shards."""
        return sum(self.shard_bytes) + self.shared_bytes


def facts(path: str, version: int | None, check: bool) -> Facts:
    """Look at a rule set on the driver; `check` compares all its checksums."""
    if not is_versioned(path):
        manifest = manifest_hash(path)
        matcher = eligo.open(path, version=version)
        integers = str(matcher.rule_type) == "int64"
        return Facts(matcher.attributes, matcher.multi, integers, 0, manifest, (), 0)
    if check:
        open_held(path, version).held.close()
    with hold(path, version) as held:
        content = held.content
        return Facts(
            content.attributes,
            frozenset(content.multi) | content.containing.keys(),
            content.id_type == "int",
            content.version,
            content.job,
            tuple(part.segment.size for part in content.shards),
            sum(file.size for file in _shared(content)),
        )


def _shared(content: Content) -> list[ArrayFile]:
    """The files of a version that are of no shard."""
    dead = [content.dead] if content.dead is not None else []
    return [content.strings, *dead, *(part.segment for part in content.deltas)]


def manifest_hash(path: str) -> str:
    """Hash of a snapshot's manifest, which itself holds the hashes of its files. Reads one small file."""
    manifest = Path(path) / MANIFEST
    try:
        return hashlib.sha256(manifest.read_bytes()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        if not Path(path).exists():
            raise SnapshotError(
                f"there is no snapshot at {path!r} on this machine; spark.compile_rules and Matcher.save make one, "
                "in a folder that the driver and every worker can read"
            ) from None
        raise SnapshotError(f"{path!r} is not a snapshot: it has no {MANIFEST}, and no version") from None


def opened(source: Source, version: int, integers: bool) -> Any:
    """The matcher of a version (0: of the plain snapshot that the query was planned with)."""
    key = (source, version, integers)
    found = _matchers.get(key)
    if found is None or (version and found.identity != _identity(source.path, version)):
        _matchers.pop(key, None)
        if source.shards is not None:  # those of another pass are closed before this one is opened
            for other in [other for other in _matchers if other[0].shards is not None]:
                _close(other)
        found = _matchers[key] = _open(source, version, integers)
        while len(_matchers) > _OPEN or (source.memory and len(_matchers) > 1 and _mapped() > source.memory):
            _close(next(iter(_matchers)))
    _matchers.move_to_end(key)
    return found.matcher


def _close(key: tuple[Source, int, bool]) -> None:
    del _matchers[key]
    let_go(key[0].path)


def _mapped() -> int:
    """Bytes of all files that are open."""
    files: dict[str, int] = {}
    for found in _matchers.values():
        files.update(found.files)
    return sum(files.values())


def _identity(path: str, version: int) -> tuple[int, int, int] | None:
    """Which file the manifest of a version is: a folder that was removed and made anew has the same numbers again."""
    try:
        found = os.stat(manifest_path(Path(path), version))
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _open(source: Source, version: int, integers: bool) -> _Open:
    if not version:
        _refuse_another(source.path, source.manifest)
        matcher = eligo.open(source.path)
        _refuse_another(source.path, source.manifest)  # replaced while it was being opened
        sizes = {entry.path: entry.stat().st_size for entry in os.scandir(source.path) if entry.is_file()}
        return _Open(matcher, None, sizes)
    identity = _identity(source.path, version)
    found = open_held(source.path, version, shards=source.shards, patience=PATIENCE)
    matcher = found.matcher
    if source.manifest and found.content.job != source.manifest:
        raise SnapshotError(
            f"version {version} of {source.path!r} is not the one this query was planned with: the folder was made "
            "anew meanwhile, or this machine holds another copy; run the query again"
        )
    if source.schema:
        _refuse_unsent(source, version, matcher)
    if len(matcher) and (str(matcher.rule_type) == "int64") != integers:
        raise SnapshotError(
            f"version {version} of {source.path!r} has ids of another kind than this query was planned with: start it "
            "again"
        )
    chosen = range(len(found.content.shards)) if source.shards is None else source.shards
    parts = [*_shared(found.content), *(found.content.shards[number].segment for number in chosen)]
    return _Open(matcher, identity, {os.path.join(source.path, part.file): part.size for part in parts})


def _refuse_unsent(source: Source, version: int, matcher: Any) -> None:
    """Rules of a new version that look at a column which this stream does not send would find it absent."""
    import json

    from pyspark.sql.types import MapType, StructType, VariantType

    from eligo.spark.event_columns import paths_of, type_at

    schema = StructType.fromJson(json.loads(source.schema))
    there = paths_of(schema, matcher.attributes, matcher.multi)
    unsent = sorted(there.keys() - source.sent)
    if unsent:
        path = there[unsent[0]]
        keyed = any(isinstance(type_at(schema, path[:n]), MapType | VariantType) for n in range(1, len(path)))
        raise SnapshotError(
            f"version {version} of {source.path!r} looks at {unsent[0]!r}, which the events have and this query does "
            "not send to its workers: start it again"
            + (" (a key that no rule named: columns='all' does not help)" if keyed else ", or once with columns='all'")
        )


def _refuse_another(path: str, manifest: str) -> None:
    found = manifest_hash(path)
    if found != manifest:
        raise SnapshotError(
            f"the snapshot at {path!r} is not the one this query was planned with (manifest {found[:12]}…, expected "
            f"{manifest[:12]}…): it was replaced meanwhile, or this machine holds another copy; run the query again, "
            "and give every new snapshot a path of its own where queries run for long"
        )
