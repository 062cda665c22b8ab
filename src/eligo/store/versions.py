"""Versions of a rule set, or of documents, in one directory: what is in it, and how a reader takes hold of one.

    rules.eligo/
      CURRENT                      the version that new readers take, and the checksum of these digits; see below
      publish.lock                 locked while a process publishes or sweeps (publish.py, gc.py)
      versions/<20 digits>.json    the manifest of a version; never changed; its readers lock it together
      data/                        files named by their content, each of one or more versions
        strings-<hash>.bin         dictionary of a version, complete
        segment-<hash>.bin         a shard or a delta; instead of texts it has locators (tables.py)
        dead-<hash>.bin            rows of segments that are no longer there
        rules-<hash>.parquet       id, expression, weight, tags of one unit
        rejects-<hash>.parquet     rules that were refused, and why
        statistics-<hash>.parquet  statistics of events (statistics.py)
        documents-<hash>.parquet   of a directory of documents, which has no others: some of them
      values/                      of documents: what is made of these files when it is needed (documents/frozen.py)
      staging/<job>/               files of a job until they are published

    CURRENT   00000000000000000007 5ae1d780        and a line feed

CURRENT has a checksum, because one flipped bit could name another version that is there too.

A version becomes visible when CURRENT is replaced, which is one rename. All that it names is there before, and stays
until the version is removed, which a reader's lock prevents: a reader sees one version or another, never a mixture.

Within a lineage, which `compile_rules` begins and updates continue, numbers of strings, attributes and units keep their
meaning, so that a segment made by one version serves the next.
"""

from __future__ import annotations

import os
import re
import time
import weakref
import zlib
from collections.abc import Callable
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Final, Generic, Literal, TypeVar

import msgspec

from eligo.compile.signature import BUCKETS
from eligo.errors import SnapshotError
from eligo.language.limits import Limits
from eligo.segments.joining import NO_JOINS, Joining
from eligo.store.arrays import ArrayFile
from eligo.store.files import lock
from eligo.store.manifest import unsealed

FORMAT: Final = 6
CURRENT: Final = "CURRENT"
VERSIONS: Final = "versions"
DATA: Final = "data"
STAGING: Final = "staging"
VALUES: Final = "values"
LOCK: Final = "publish.lock"

_MANIFEST: Final = re.compile(r"([0-9]{20})\.json")
_ATTEMPTS: Final = 100  # to take hold of the newest version while others publish and sweep
PATIENCE: Final = 60.0  # seconds to wait for a newer CURRENT: NFS keeps what it knows of a folder for so long, at most
_PAUSE: Final = 0.25


M = TypeVar("M", bound="Manifest")


class TableFile(msgspec.Struct, frozen=True):
    """A Parquet file, as a manifest describes it. The checksum is that of the whole file."""

    file: str
    size: int
    rows: int
    crc32: int


class Part(msgspec.Struct, frozen=True):
    """A segment: a shard or a delta. `rules` counts all its rows, including the dead ones."""

    segment: ArrayFile
    rules: int
    dead: int
    conjunctions: int
    units: tuple[int, ...] = ()  # where the texts of its rules are
    positions: tuple[float, float] = (0.0, 256.0)  # of a shard: which rules belong into it (compile/signature.py)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest of a version says, its checksum apart, whatever it is a version of; filled in by `publish`."""

    eligo: str = ""
    version: int = 0
    parent: int = 0  # the version that was current before, 0: none
    made: str = ""  # UTC, ISO 8601
    job: str = ""  # that published it

    def files(self) -> dict[str, int]:
        """Returns the files in data/ that the version needs, with their sizes."""
        raise NotImplementedError

    @property
    def size(self) -> str:
        """What it holds, as the log says it."""
        raise NotImplementedError


class DocumentSet(Manifest, frozen=True):
    """A version of documents."""

    documents: int
    schema: str  # of the columns, as Spark writes it in JSON
    tables: tuple[TableFile, ...]
    kind: Literal["documents"] = "documents"

    def files(self) -> dict[str, int]:
        return {table.file: table.size for table in self.tables}

    @property
    def size(self) -> str:
        return f"{self.documents} documents"


class Content(Manifest, frozen=True):
    """A version of a rule set."""

    lineage: str  # the job that began it
    index: str
    evaluator: str
    absent: Literal["fails", "classical"]
    multi: tuple[str, ...]
    limits: Limits
    options: dict[str, bool | int | float | str]
    id_type: Literal["int", "str", ""]
    rules: int  # the living
    next_sequence: int
    next_unit: int
    attributes: tuple[str, ...]
    strings: ArrayFile  # data, offsets, slots
    shards: tuple[Part, ...]
    deltas: tuple[Part, ...]
    dead: ArrayFile | None  # arrays named by the segment's file: its dead rows, int32, ascending
    texts: dict[int, TableFile]  # by unit
    rejects: tuple[TableFile, ...]
    rejected: int
    statistics: TableFile | None = None
    shard_bytes: int = 0  # about how large a shard is to be; 0: their number was given, and stays
    naming: dict[str, int] | None = None  # attribute → how many living rules look at it; None: not counted
    joining: Joining = NO_JOINS  # of the living rules, those that ask about documents

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.shards + self.deltas

    @property
    def asked(self) -> tuple[str, ...]:
        """Attributes that living rules look at. Those of dead rules keep their numbers in `attributes`."""
        naming = self.naming
        named = self.attributes if naming is None else tuple(name for name in self.attributes if naming.get(name, 0))
        return (*named, *sorted(self.joining.event.keys() - set(named)))

    @property
    def listable(self) -> frozenset[str]:
        """Attributes of events that may be lists: the multi-valued ones, and those that are only compared with
        documents, for which the index knows no predicate.
        """
        alone = self.joining.event.keys() - set(self.attributes)
        return frozenset(self.multi) | alone

    def shard_positions(self) -> list[tuple[float, float]]:
        """From where to where each shard reaches; together they cover all positions, also of shards that were empty."""
        firsts = [part.positions[0] for part in self.shards]
        return list(pairwise([0.0, *firsts[1:], float(BUCKETS)])) if firsts else []

    @property
    def size(self) -> str:
        return f"{self.rules} rules"

    def files(self) -> dict[str, int]:
        described: list[ArrayFile | TableFile] = [self.strings, *(part.segment for part in self.parts)]
        described += [*self.texts.values(), *self.rejects]
        described += [file for file in (self.dead, self.statistics) if file is not None]
        return {file.file: file.size for file in described}


def is_versioned(path: str | PathLike[str]) -> bool:
    """Tests whether a directory holds versions, or is to hold them, rather than a plain snapshot."""
    directory = Path(path)
    return (directory / CURRENT).is_file() or (directory / VERSIONS).is_dir()


def place(directory: Path, name: str) -> Path:
    """Returns the path of a file that a manifest names."""
    return directory / DATA / name


def manifest_path(directory: Path, version: int) -> Path:
    """Returns the path of the manifest of a version."""
    return directory / VERSIONS / f"{version:020d}.json"


def current_line(version: int) -> str:
    """The line that CURRENT has for a version."""
    digits = f"{version:020d}"
    return f"{digits} {zlib.crc32(digits.encode()):08x}"


def current_version(directory: str | PathLike[str]) -> int:
    """Returns the version that new readers take. Raises SnapshotError if there is none."""
    path = Path(directory) / CURRENT
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise _no_version(Path(directory)) from None
    line = raw[:-1].decode("latin-1") if raw.endswith(b"\n") else repr(raw)
    digits = line[:20]
    if not (digits.isascii() and digits.isdigit() and line == current_line(int(digits)) and int(digits)):
        raise SnapshotError(
            f"{path}: damaged, {line!r:.60} is no version with its checksum; compile the rules again, or write into "
            f"it what `eligo.store.versions.current_line` gives for the newest version that is good"
        )
    return int(digits)


def _no_version(directory: Path) -> SnapshotError:
    """Returns the error that says why there is no current version."""
    if not directory.exists():
        return SnapshotError(f"{directory}: there is nothing there; `spark.compile_rules` and Matcher.save make one")
    if (directory / "manifest.json").is_file():
        return SnapshotError(
            f"{directory}: is a plain snapshot, which has no versions; `spark.compile_rules` makes them"
        )
    if version_numbers(directory):
        return SnapshotError(f"{directory / CURRENT}: missing, so nobody knows which version counts; compile again")
    return SnapshotError(f"{directory}: has no {CURRENT}, no version has been published yet; compile the rules into it")


def version_numbers(directory: Path) -> list[int]:
    """Returns the versions that have a manifest, ascending. Those above the current one are not published."""
    try:
        names = os.listdir(directory / VERSIONS)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(int(found[1]) for found in map(_MANIFEST.fullmatch, names) if found)


def read_version(directory: Path, version: int) -> Manifest:
    """Returns the content of a manifest. Raises FileNotFoundError if there is none."""
    path = manifest_path(directory, version)
    return _content(path, path.read_bytes(), version)


class _Kind(msgspec.Struct, frozen=True):
    kind: str = "rules"


def _content(path: Path, raw: bytes, version: int) -> Manifest:
    is_documents = unsealed(path, raw, FORMAT, _Kind).kind == "documents"
    content: Manifest = unsealed(path, raw, FORMAT, DocumentSet if is_documents else Content)
    if content.version != version:
        raise SnapshotError(f"{path}: is the manifest of version {content.version}, under a wrong name; restore it")
    return content


def of_kind(directory: Path, content: Manifest, kind: type[M]) -> M:
    """Returns the content if it is of that kind, and refuses it otherwise."""
    if isinstance(content, kind):
        return content
    if isinstance(content, DocumentSet):
        raise SnapshotError(f"{directory}: holds documents, not rules: give the folder that `compile_rules` made")
    raise SnapshotError(f"{directory}: holds rules, not documents: give the folder that `compile_documents` made")


def versions(directory: str | PathLike[str]) -> list[Content]:
    """Returns the published versions that are still there, oldest first."""
    folder = Path(directory)
    newest = current_version(folder)
    found = []
    for number in version_numbers(folder):
        try:
            if number <= newest:
                found.append(of_kind(folder, read_version(folder, number), Content))
        except FileNotFoundError:
            continue  # swept away meanwhile
    return found


def wait_for_version(directory: str | PathLike[str], least: Callable[[], int], patience: float) -> int:
    """Returns the version that CURRENT names, once this is at least `least` or `patience` seconds have passed."""
    deadline = time.monotonic() + patience
    while (version := current_version(directory)) < least() and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    return version


class Held(Generic[M]):
    """A version that is not removed until this object is closed or collected as garbage."""

    def __init__(self, directory: Path, content: M, handle: int) -> None:
        self.directory = directory
        self.content = content
        self.version = content.version
        self._release = weakref.finalize(self, os.close, handle)

    def close(self) -> None:
        self._release()  # does nothing the second time

    def __enter__(self) -> Held[M]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def hold(directory: str | PathLike[str], version: int | None = None, *, patience: float = 0.0) -> Held[Content]:
    """Holds a version of a rule set, by default the current one. Raises SnapshotError if there is no such version.

    `patience` is how many seconds to wait while CURRENT names an earlier one, as on a machine that sees an old file.
    """
    return _hold_kind(directory, version, patience, Content)


def hold_documents(
    directory: str | PathLike[str], version: int | None = None, *, patience: float = 0.0
) -> Held[DocumentSet]:
    """Take hold of a version of documents, as `hold` does."""
    return _hold_kind(directory, version, patience, DocumentSet)


def _hold_kind(directory: str | PathLike[str], version: int | None, patience: float, kind: type[M]) -> Held[M]:
    folder = Path(directory)
    if version is not None:
        wait_for_version(folder, lambda: version, patience)
    for _ in range(_ATTEMPTS):
        newest = current_version(folder)
        wanted = newest if version is None else version
        if not 0 < wanted <= newest:
            raise SnapshotError(f"{folder}: has no version {wanted}, the newest is {newest}")
        held = _hold(folder, wanted, kind)
        if held is not None:
            return held
        if version is not None or current_version(folder) == newest:
            break
    if version is not None:
        there = ", ".join(str(number) for number in version_numbers(folder)[-8:])
        raise SnapshotError(
            f"{folder}: version {version} was removed; plan the query again, or sweep with a longer grace (there are "
            f"still: {there})"
        )
    raise SnapshotError(f"{manifest_path(folder, newest)}: missing, though {CURRENT} names it; compile the rules again")


def _hold(folder: Path, version: int, kind: type[M]) -> Held[M] | None:
    """Locks the manifest of a version and returns the version, or None if it was removed."""
    path = manifest_path(folder, version)
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        lock(handle, "shared", wait=True)
        if os.fstat(handle).st_nlink == 0:  # swept away between the opening and the lock
            os.close(handle)
            return None
        with open(handle, "rb", closefd=False) as file:
            return Held(folder, of_kind(folder, _content(path, file.read(), version), kind), handle)
    except BaseException:
        os.close(handle)
        raise
