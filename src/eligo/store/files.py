"""Directories that one process writes at a time, and files that are on disk before they are named.

Locks are `flock`: the kernel frees them when their process ends, however it ends, so a lock that is held has a living
holder. If a file system has no locks, work goes on without them.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

try:
    import fcntl
except ImportError:  # a system without it: writers of one path have to take turns by themselves
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("eligo")

_HELD: Final = (errno.EWOULDBLOCK, errno.EACCES)
_turns = threading.local()  # .depth: how often this thread has entered `turn`, by path


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a directory, so that no other thread or process saves to it and removes what this one writes; readers need
    no lock.
    """
    handle = os.open(directory, os.O_RDONLY) if fcntl is not None else -1
    try:
        if handle >= 0:
            lock(handle, "exclusive", wait=True)
        yield
    finally:
        if handle >= 0:
            # Closing is not enough: a process forked meanwhile has the directory open too, and would keep the lock.
            unlock(handle)
            os.close(handle)


def lock(handle: int, kind: Literal["shared", "exclusive"], *, wait: bool) -> bool | None:
    """Locks an open file until it is closed. Returns whether this succeeded, or None if there are no locks."""
    if fcntl is None:
        return None
    how = (fcntl.LOCK_SH if kind == "shared" else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    try:
        fcntl.flock(handle, how)
    except OSError as error:
        return False if not wait and error.errno in _HELD else None
    return True


def unlock(handle: int) -> None:
    """Frees the lock of an open file, also for processes that were forked meanwhile and have it open."""
    if fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


@contextmanager
def turn(path: Path) -> Iterator[bool]:
    """Admits one thread of one process at a time, by a lock on a file that is made for it. A thread may enter again.

    Yields whether the lock is real, which is False if the file system has none.
    """
    depth: dict[str, tuple[int, bool]] = _turns.__dict__.setdefault("depth", {})
    name = os.path.realpath(path)
    entered = depth.get(name)
    if entered is not None:
        depth[name] = entered[0] + 1, entered[1]
        try:
            yield entered[1]
        finally:
            depth[name] = entered
        return
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        alone = lock(handle, "exclusive", wait=False)
        if alone is False:
            log.info("%s: another process has it; waiting for my turn", path)
            alone = lock(handle, "exclusive", wait=True)
        depth[name] = 1, bool(alone)
        try:
            yield bool(alone)
        finally:
            del depth[name]
    finally:
        unlock(handle)
        os.close(handle)


def write_through(path: Path, raw: bytes) -> None:
    """Writes a file and waits until it is on disk."""
    with path.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Waits until the names in a directory are on disk."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return  # not every system lets a directory be opened
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
