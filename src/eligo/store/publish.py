"""Publishing a version: files written aside become the current version by one rename.

    1  staging/<job>/     files named by their content; written by any number of processes
    2  publish.lock       one publisher at a time; an update is refused if its parent is no longer current
    3  data/              the files take their place
    4  versions/<m>.json  the manifest, linked under a number that was never used
    5  CURRENT            replaced: from here on readers take the new version
    6                     old versions without readers, and leftovers of dead jobs, are removed (gc.py)

A crash before 5 leaves the old version current and files that no version names; the next publisher removes a manifest
above CURRENT, a sweep the rest. A crash after 5 leaves the new version, whole. A caller that lost the answer may
publish the same job again, and gets the version that it became.
"""

from __future__ import annotations

import filecmp
import logging
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec

from eligo.errors import SnapshotError
from eligo.store.files import lock, sync_directory, turn, write_through
from eligo.store.gc import GRACE, is_due, remove_staging, remove_unpublished, sweep
from eligo.store.manifest import sealed
from eligo.store.snapshot import MANIFEST
from eligo.store.versions import (
    CURRENT,
    DATA,
    FORMAT,
    LOCK,
    STAGING,
    VALUES,
    VERSIONS,
    M,
    Manifest,
    current_line,
    current_version,
    manifest_path,
    of_kind,
    place,
    read_version,
    version_numbers,
)

log = logging.getLogger("eligo")

_OURS: Final = frozenset((CURRENT, LOCK, VERSIONS, DATA, STAGING, VALUES))


class Staging:
    """A folder for the files of one job, which `begin` makes. It is locked while the job lives."""

    def __init__(self, directory: Path, job: str, handle: int) -> None:
        self.directory = directory
        self.job = job
        self.folder = directory / STAGING / job
        self.since = _newest_or_lost(directory)  # the version that was current when the job began
        self._handle = handle

    @classmethod
    def begin(cls, directory: str | PathLike[str]) -> Staging:
        """Makes the directory, if it is not there, and a folder in it for a new job."""
        root = Path(os.path.abspath(directory))
        _make_directory(root)
        while True:
            job = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid4().hex[:12]}"
            folder = root / STAGING / job
            folder.mkdir()
            with suppress(FileNotFoundError):
                handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
                lock(handle, "exclusive", wait=True)
                if os.fstat(handle).st_nlink:  # else a sweep without grace came between
                    return cls(root, job, handle)
                os.close(handle)

    def close(self) -> None:
        """Removes what was not published, and frees the lock."""
        handle, self._handle = self._handle, -1
        if handle < 0:
            return
        shutil.rmtree(self.folder, ignore_errors=True)  # a late task may still write into it; a sweep takes the rest
        os.close(handle)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_directory(root: Path) -> None:
    """Makes the directory. Raises SnapshotError if it holds anything but versions."""
    try:
        root.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SnapshotError(f"{root}: is a file; versions need a directory, choose another name") from None
    found = sorted(entry.name for entry in root.iterdir())
    if MANIFEST in found:
        raise SnapshotError(
            f"{root}: holds a plain snapshot ({MANIFEST}), made by Matcher.save or `eligo compile`; choose another "
            f"path, or remove it first"
        )
    # File systems put things of their own there: .nfs…, .snapshot, lost+found.
    foreign = [name for name in found if name not in _OURS and name[0] != "." and name != "lost+found"]
    if foreign:
        raise SnapshotError(f"{root}: holds other things ({foreign[0]}); versions need a directory of their own")
    for name in (VERSIONS, DATA, STAGING):
        (root / name).mkdir(exist_ok=True)
    sync_directory(root)


def publishing(directory: str | PathLike[str]) -> AbstractContextManager[bool]:
    """Keeps others from publishing; the same thread may publish inside. Gives whether the file system has locks."""
    return turn(Path(directory) / LOCK)


def publish(staging: Staging, files: Iterable[str], content: M, *, expect_parent: int | None = None) -> M:
    """Publish a version; `files` are those of the staging folder. Returns its content, with the fields of `Manifest`.

    With `expect_parent` (0: no version yet) it is refused if another version is current. A directory that holds
    versions of another kind is refused.
    """
    from eligo import __version__

    directory = staging.directory
    with publishing(directory) as alone:
        newest, parent = _parent(directory, lost=expect_parent is None)
        if parent is not None:
            of_kind(directory, parent, type(content))
        done = _published(staging, parent)
        if done is not None:
            return done  # type: ignore[return-value]
        if expect_parent is not None and expect_parent != newest:
            raise SnapshotError(
                f"{directory}: version {newest} was published meanwhile, and this update was made for "
                f"{expect_parent}; run the update again"
            )
        number = max([newest, *version_numbers(directory)]) + 1
        remove_unpublished(directory, newest, 0.0 if alone else GRACE)
        made = datetime.now(UTC).isoformat(timespec="seconds")
        content = msgspec.structs.replace(
            content, eligo=__version__, version=number, parent=newest, made=made, job=staging.job
        )
        _move(staging.folder, directory, files)
        _refuse_missing(directory, content)
        _write_manifest(staging.folder, directory, content)
        _set_current(staging.folder, directory, number)
        log.info("%s: version %d published, %s", directory, number, content.size)
        try:
            if is_due(directory):
                sweep(directory)
            elif alone:  # without locks a job that has been quiet for long looks like a dead one
                remove_staging(directory)
        except OSError as error:  # it is published; what could not be removed stays until the next time
            log.warning("%s: not swept: %s", directory, error)
        return content


def _newest(directory: Path) -> int:
    """Returns the current version, or 0 if none was published yet. Raises SnapshotError if CURRENT is lost."""
    if (directory / CURRENT).exists():
        return current_version(directory)
    for number in version_numbers(directory):
        # A first version that was never published has no parent. Any other was, so CURRENT has been lost.
        with suppress(FileNotFoundError):
            if read_version(directory, number).parent:
                current_version(directory)
    return 0


def _newest_or_lost(directory: Path) -> int:
    """Returns the current version or, if CURRENT is damaged, the last one that has a manifest."""
    try:
        return _newest(directory)
    except SnapshotError:
        return max(version_numbers(directory), default=0)


def _parent(directory: Path, lost: bool) -> tuple[int, Manifest | None]:
    """Returns the number and content of the version to follow. If it cannot be read an error is raised, unless `lost`
    says that all of it is replaced: then the content is None.
    """
    try:
        newest = _newest(directory)
        return newest, read_version(directory, newest) if newest else None
    except (SnapshotError, FileNotFoundError) as error:
        if not lost:
            raise
        log.warning("%s: the version that is there cannot be read, and is replaced: %s", directory, error)
        return max(version_numbers(directory), default=0), None


def _published(staging: Staging, content: Manifest | None) -> Manifest | None:
    """Returns the version that a job became, if it was published since it began, or None."""
    while content is not None and content.job != staging.job:
        try:
            content = read_version(staging.directory, content.parent) if content.parent > staging.since else None
        except FileNotFoundError:
            content = None
    return content


def _move(folder: Path, directory: Path, files: Iterable[str]) -> None:
    """Moves files of the staging folder into place. Those that an earlier attempt moved are skipped."""
    for name in files:
        ours, theirs = folder / name, place(directory, name)
        if not ours.exists() and theirs.exists():
            continue  # moved by an earlier attempt
        # A file of that name has that content, unless it was damaged. If it has, it is left alone: over a network
        # others may have it mapped.
        if theirs.exists() and filecmp.cmp(ours, theirs, shallow=False):
            ours.unlink()
        else:
            os.replace(ours, theirs)
        with suppress(PermissionError):
            os.utime(theirs)  # as new as its version, lest a sweep take it where there are no locks
    sync_directory(directory / DATA)


def _refuse_missing(directory: Path, content: Manifest) -> None:
    """Raises SnapshotError if a file of the content is missing or has another size than it should."""
    for name, size in content.files().items():
        path = place(directory, name)
        found = path.stat().st_size if path.exists() else -1
        if found != size:
            raise SnapshotError(
                f"{path}: {'missing' if found < 0 else f'of {found:,} bytes instead of {size:,}'}, and the new version "
                f"needs it; nothing was published"
            )


def _write_manifest(folder: Path, directory: Path, content: Manifest) -> None:
    """Writes the manifest to disk under its number. Raises SnapshotError if this number is taken."""
    temporary = folder / "manifest.tmp"
    write_through(temporary, sealed(content, FORMAT))
    try:
        # A link, not a rename: it refuses a name that another publisher has taken, where there are no locks.
        os.link(temporary, manifest_path(directory, content.version))
    except FileExistsError:
        raise SnapshotError(
            f"{directory}: another process publishes version {content.version} at this moment; try again"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(directory / VERSIONS)


def _set_current(folder: Path, directory: Path, version: int) -> None:
    """Replaces CURRENT, from which moment on readers take this version."""
    temporary = folder / "current.tmp"
    write_through(temporary, f"{current_line(version)}\n".encode())
    os.replace(temporary, directory / CURRENT)
    sync_directory(directory)
