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
import logging
import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from eligo.engine import Engine
from eligo.errors import OptionError, SnapshotError
from eligo.segments.joining import NO_JOINS, Joining
from eligo.spark.document_cache import AskedDocuments
from eligo.spark.document_files import schema_of
from eligo.spark.event_columns import locate, type_at, variant_depth
from eligo.spark.partial_events import Searcher
from eligo.spark.set_aside import SetAside, set_aside, set_aside_joins
from eligo.store.arrays import ArrayFile
from eligo.store.opening import let_go, open_engine, open_held
from eligo.store.snapshot import MANIFEST, kept_changes
from eligo.store.versions import PATIENCE, Content, hold, is_versioned, manifest_path

log = logging.getLogger("eligo.spark")

_OPEN: Final = 4  # a worker lives for many queries


@dataclass(frozen=True)
class Source:
    """Where the rules of a query are."""

    path: str
    manifest: str = ""  # of a plain snapshot the content hash that the driver saw, of a version the job that made it
    version: int = 0  # 0: a plain snapshot, or the version comes with the events
    shards: tuple[int, ...] | None = None  # some only: a query goes through them one after another
    memory: int = 0  # bytes of rules that a process keeps open, 0: any
    aside: frozenset[str] = frozenset()  # attributes whose rules are set aside, as the driver found
    # In a stream, where rules change and columns do not: the events' schema as JSON, and the attributes that are sent.
    schema: str = field(default="", repr=False)
    sent: frozenset[str] = frozenset()
    documents: str = ""  # where the documents are that rules with quantifiers ask about
    most_documents: int = 0  # that a process holds in memory


class Open(NamedTuple):
    """Rules as a worker has them open."""

    engine: Engine
    searcher: Searcher
    asked: frozenset[str]  # the attributes that rules look at, without those whose rules are set aside
    aside: SetAside
    identity: tuple[int, int, int] | None  # of a version: which file its manifest is
    files: dict[str, int]
    joining: Joining = NO_JOINS
    listable: frozenset[str] = frozenset()  # attributes that may be lists


Key = tuple[Source, int, bool]
_matchers: OrderedDict[Key, Open] = OrderedDict()
# By version of the documents, and which file its manifest is.
_asked: OrderedDict[tuple[Key, int, Any], tuple[Open, AskedDocuments]] = OrderedDict()


@dataclass(frozen=True)
class Facts:
    """What the driver has to know of a rule set in order to plan."""

    attributes: tuple[str, ...]  # that rules look at
    multi: frozenset[str]  # those that may be lists
    integers: bool
    version: int  # 0: a plain snapshot
    manifest: str
    shard_bytes: tuple[int, ...]  # of a set with versions
    shared_bytes: int  # of its strings, which every shard needs, and of its deltas
    joining: Joining = NO_JOINS

    @property
    def bytes(self) -> int:
        """All that a process maps which has all shards."""
        return sum(self.shard_bytes) + self.shared_bytes


def facts(path: str, version: int | None, check: bool) -> Facts:
    """Look at a rule set on the driver; `check` compares all its checksums."""
    if not is_versioned(path):
        manifest = manifest_hash(path)
        engine = _snapshot(path, version)
        rules = engine.rules
        return Facts(tuple(rules.view.attributes()), rules.multi, engine.loader.id_type is int, 0, manifest, (), 0)
    if check:
        open_held(path, version).held.close()
    with hold(path, version) as held:
        content = held.content
        return Facts(
            content.asked,
            content.listable,
            content.id_type == "int",
            content.version,
            content.job,
            tuple(part.segment.size for part in content.shards),
            sum(file.size for file in _shared(content)),
            content.joining,
        )


def _snapshot(path: str, version: int | None = None) -> Engine:
    """The engine of a plain snapshot."""
    engine = open_engine(path, version=version)
    if engine.rules.count and engine.rules.view.joins():
        raise OptionError(
            f"{path!r} is a plain snapshot with rules that ask about documents, and its rules may change in place: "
            "compile them with spark.compile_rules, and match with documents=…"
        )
    return engine


def look_aside(path: str, found: Facts, reasons: Mapping[str, str]) -> SetAside:
    """On the driver: the rules that are to be set aside because of these attributes; a warning names them."""
    if not reasons:
        return SetAside()
    aside = set_aside(open_engine(path, version=found.version or None, verify=False), reasons)
    if aside.rules:
        log.warning("%s: %s", path, aside.sentence())
    return aside


def _shared(content: Content) -> list[ArrayFile]:
    """The files of a version that are of no shard."""
    dead = [content.dead] if content.dead is not None else []
    return [content.strings, *dead, *(part.segment for part in content.deltas)]


def manifest_hash(path: str) -> str:
    """Hash of a snapshot's manifest, which itself holds the hashes of its files, and of the changes kept since."""
    manifest = Path(path) / MANIFEST
    try:
        raw = manifest.read_bytes()
        return hashlib.sha256(raw + kept_changes(Path(path), raw)).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        if not Path(path).exists():
            raise SnapshotError(
                f"there is no snapshot at {path!r} on this machine; spark.compile_rules and Matcher.save make one, "
                "in a folder that the driver and every worker can read"
            ) from None
        raise SnapshotError(f"{path!r} is not a snapshot: it has no {MANIFEST}, and no version") from None


def opened(source: Source, version: int, integers: bool) -> Open:
    """The rules of a version (0: of the plain snapshot that the query was planned with)."""
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
    return found


def asked_documents(source: Source, version: int, integers: bool, documents: int) -> AskedDocuments | None:
    """A version of the documents, as the rules of a version ask it; None if these do not."""
    rules = opened(source, version, integers)
    if not rules.joining.rules or not source.documents:
        return None
    key = ((source, version, integers), documents, _identity(source.documents, documents))
    known = _asked.pop(key, None)
    if known is None or known[0] is not rules:
        made = AskedDocuments(source.documents, documents, source.most_documents, rules.engine, rules.joining)
        known = rules, made
        while len(_asked) >= _OPEN or (source.memory and _asked and made.size + _mapped() > source.memory):
            _asked.popitem(last=False)
    _asked[key] = known
    return known[1]


def _close(key: Key) -> None:
    del _matchers[key]
    for other in [other for other in _asked if other[0] == key]:
        del _asked[other]
    let_go(key[0].path)


def _mapped() -> int:
    """Bytes of all files that are open, and of documents in memory."""
    files: dict[str, int] = {}
    for found in _matchers.values():
        files.update(found.files)
    return sum(files.values()) + sum(asked.size for _, asked in _asked.values())


def _identity(path: str, version: int) -> tuple[int, int, int] | None:
    """Which file the manifest of a version is: a folder that was removed and made anew has the same numbers again."""
    try:
        found = os.stat(manifest_path(Path(path), version))
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _open(source: Source, version: int, integers: bool) -> Open:
    if not version:
        _refuse_another(source.path, source.manifest)
        engine = _snapshot(source.path)
        _refuse_another(source.path, source.manifest)  # replaced while it was being opened
        sizes = {entry.path: entry.stat().st_size for entry in os.scandir(source.path) if entry.is_file()}
        aside = dict.fromkeys(source.aside, "")
        return _ready(engine, engine.rules.view.attributes(), aside, None, sizes, NO_JOINS, engine.rules.multi)
    identity = _identity(source.path, version)
    found = open_held(source.path, version, shards=source.shards, patience=PATIENCE)
    engine, content = found.engine, found.content
    if source.manifest and found.content.job != source.manifest:
        raise SnapshotError(
            f"version {version} of {source.path!r} is not the one this query was planned with: the folder was made "
            "anew meanwhile, or this machine holds another copy; run the query again"
        )
    if engine.rules.count and (engine.loader.id_type is int) != integers:
        raise SnapshotError(
            f"version {version} of {source.path!r} has ids of another kind than this query was planned with: start it "
            "again"
        )
    chosen = range(len(content.shards)) if source.shards is None else source.shards
    parts = [*_shared(content), *(content.shards[number].segment for number in chosen)]
    sizes = {os.path.join(source.path, part.file): part.size for part in parts}
    reasons = _unaskable(source, content) if source.schema else dict.fromkeys(source.aside, "")
    done = _ready(engine, content.asked, reasons, identity, sizes, content.joining, content.listable)
    if source.schema and done.aside.rules:
        log.warning("version %d of %s: %s", version, source.path, done.aside.sentence())
    if content.joining.rules and not source.documents:
        joins = set_aside_joins(engine, "ask about documents, and this query has none: start it again with documents=…")
        log.warning("version %d of %s: %s", version, source.path, joins.sentence())
        done = done._replace(aside=replace(done.aside, rules=done.aside.rules + joins.rules))
    return done


def _ready(engine: Engine, named: Iterable[str], unaskable: dict[str, str], *rest: Any) -> Open:
    aside = set_aside(engine, unaskable)
    asked = frozenset(named) - unaskable.keys()
    return Open(engine, Searcher(engine, asked), asked, aside, *rest)


def _unaskable(source: Source, content: Content) -> dict[str, str]:
    """Attributes that rules of this version look at and that cannot be asked of a running stream, and why.

    An attribute that the events have and that is not sent would look absent.
    """
    from pyspark.sql.types import MapType

    schema = schema_of(source.schema)
    found = locate(schema, content.asked, content.listable)
    reasons = dict(found.unusable)
    for name in sorted(found.paths.keys() - source.sent):
        path, *_ = found.paths[name]
        keyed = any(isinstance(type_at(schema, path[:n]), MapType) for n in range(1, len(path)))
        keyed = keyed or variant_depth(schema, path) is not None
        reasons[name] = "is in the events, but this query does not send it to its workers: start it again" + (
            " (a key that no rule named: columns='all' does not help)" if keyed else ", or once with columns='all'"
        )
    return reasons


def _refuse_another(path: str, manifest: str) -> None:
    found = manifest_hash(path)
    if found != manifest:
        raise SnapshotError(
            f"the snapshot at {path!r} is not the one this query was planned with (manifest {found[:12]}…, expected "
            f"{manifest[:12]}…): it was replaced meanwhile, or this machine holds another copy; run the query again, "
            "and give every new snapshot a path of its own where queries run for long"
        )
