"""Removal of versions without readers, and of files that crashes left.

    a version    older than the current one, not among the newest `keep`, superseded longer than `grace` ago, and its
                 manifest not locked by a reader: the manifest goes first, then what no other manifest names
    data/        files that no manifest names and that are older than `grace`
    staging/     folders whose job has ended, its lock being free, and where nothing was written for `grace`

The manifest is locked alone before it is removed, so a reader either has its lock first and the version stays, or finds
the manifest gone and takes a newer one. Mapped files survive their removal on a local disk but not over a network,
which is why the lock comes first. Where there are no locks, only `grace` protects readers.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Final

from eligo.arguments import local_path, shown, whole_number
from eligo.errors import OptionError, SnapshotError
from eligo.store.files import lock, sync_directory, turn
from eligo.store.versions import (
    DATA,
    LOCK,
    STAGING,
    VALUES,
    VERSIONS,
    current_version,
    manifest_path,
    read_version,
    version_numbers,
)

log = logging.getLogger("eligo")

GRACE: Final = 3600.0  # seconds: longer than a query waits between its planning and its first task, or a task lives on


def sweep(path: str | PathLike[str], *, keep: int = 2, grace: float = GRACE) -> int:
    """Removes old versions and leftovers. Returns the number of files removed.

    `keep` is how many of the newest versions stay, the current one included. `grace` is for how many seconds a
    superseded version stays in any case.
    """
    keep = whole_number("keep", keep, least=1)
    if not isinstance(grace, int | float) or isinstance(grace, bool) or not grace >= 0:
        raise OptionError(f"grace is a number of seconds, 0 or more, not {shown(grace)}")
    directory = Path(local_path(path))
    newest = current_version(directory)
    with turn(directory / LOCK) as alone:
        newest = current_version(directory)
        removed = remove_unpublished(directory, newest, 0.0 if alone else max(grace, GRACE))
        removed += _remove_versions(directory, newest, keep, grace)
        removed += _remove_data(directory, grace)
        removed += remove_staging(directory, grace)
    if removed:
        log.info("%s: %d files swept away", directory, removed)
    return removed


def is_due(directory: Path, keep: int = 2, grace: float = GRACE) -> bool:
    """Tests whether a version could have been removed a whole `grace` ago. A sweep reads every manifest, which is too
    much to do each time if a version is published every second.
    """
    there = version_numbers(directory)
    return len(there) > keep and _age(manifest_path(directory, there[1])) >= 2 * grace


def remove_unpublished(directory: Path, newest: int, age: float) -> int:
    """Removes manifests above the current version that are at least `age` seconds old: their publisher crashed, unless
    it holds the lock now. Returns how many.
    """
    removed = 0
    for number in version_numbers(directory):
        manifest = manifest_path(directory, number)
        if number > newest and _age(manifest) >= age:
            manifest.unlink(missing_ok=True)
            removed += 1
    return removed


def _remove_versions(directory: Path, newest: int, keep: int, grace: float) -> int:
    """Removes the manifests of superseded versions that are not locked by a reader. Returns how many."""
    published = [number for number in version_numbers(directory) if number <= newest]
    removed = 0
    for number, successor in list(pairwise(published))[: max(0, len(published) - keep)]:
        # A version was superseded when the next one was made.
        if _age(manifest_path(directory, successor)) < grace:
            break
        removed += _remove_unread(manifest_path(directory, number))
    if removed:
        sync_directory(directory / VERSIONS)  # before the files go: a manifest must not come back without them
    return removed


def _remove_unread(manifest: Path) -> int:
    """Removes a manifest, unless a reader has it locked. Returns 1 if it was removed, else 0."""
    try:
        handle = os.open(manifest, os.O_RDWR)  # over a network an exclusive lock needs the right to write
    except (PermissionError, FileNotFoundError):  # not ours to remove, or gone already where there are no locks
        return 0
    try:
        if lock(handle, "exclusive", wait=False) is False:
            return 0
        manifest.unlink(missing_ok=True)
        return 1
    finally:
        os.close(handle)


def _remove_data(directory: Path, grace: float) -> int:
    """Removes files that no manifest names. Returns how many; none if a manifest cannot be read."""
    named: set[str] = set()
    for number in version_numbers(directory):
        try:
            named.update(read_version(directory, number).files())
        except FileNotFoundError:  # another sweep, where there are no locks
            continue
        except SnapshotError as error:  # the files that it names are unknown, so none can be removed
            log.warning("%s: no data is swept away while this stands: %s", directory, error)
            return 0
    removed = 0
    made = directory / VALUES  # of a file in data/, under its name and an attribute's
    for entry in [*sorted((directory / DATA).iterdir()), *(sorted(made.iterdir()) if made.is_dir() else ())]:
        if entry.name.partition("~")[0] not in named and _age(entry) >= grace:
            entry.unlink(missing_ok=True)
            removed += 1
    return removed


def remove_staging(directory: Path, grace: float = GRACE) -> int:
    """Removes the folders of dead jobs in which nothing was written for `grace` seconds. Returns how many files."""
    removed = 0
    for folder in sorted((directory / STAGING).glob("*")):  # a copy of the directory may lack it, being empty
        if not _is_dead(folder / "lock"):
            continue
        inside = [entry for entry in folder.rglob("*") if entry.is_file()]
        # Tasks of a driver that died may still write, so the newest file counts, not the folder's beginning.
        if min(map(_age, [folder, *inside])) >= grace:
            shutil.rmtree(folder, ignore_errors=True)
            removed += len(inside)
    return removed


def _is_dead(path: Path) -> bool:
    """Tests whether a job's lock is free, so that the job has ended."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    try:
        return lock(handle, "exclusive", wait=False) is not False
    finally:
        os.close(handle)


def _age(path: Path) -> float:
    """Seconds since a file was written; negative if it is gone, or if the clock was put back."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return -1.0
