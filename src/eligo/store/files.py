"""Directories that one process writes at a time, and files that are on disk before they are named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """One saver at a time, whether thread or process, lest one sweep away what another writes; readers do not care."""
    try:
        import fcntl
    except ImportError:  # a system without it: savers of one path have to take turns by themselves
        yield
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def write_through(path: Path, raw: bytes) -> None:
    """Write a file and wait until it is on disk."""
    with path.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on disk."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return  # not every system lets a directory be opened
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
