"""Where machine code is kept: in the package, and in the cache of the user.

    <package>/kernels/<python>-<target>.kernels    all kernels in one file, made with a wheel (archive.py)
    ~/.cache/eligo/kernels/<key>                   one file for each kernel that was compiled here, swept by age
    ~/.cache/eligo/kernels/<key>.lock              held while a process compiles it

A key stands for what a kernel means, so that whatever is found under it is right: no checkout, path or time matters. A
file that cannot be read, is damaged or cut short is as good as none: the kernel is compiled, and the log has a line.
"""

from __future__ import annotations

import logging
import os
import pickle
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from eligo.kernels.archive import Archive, ArchiveError
from eligo.kernels.native import Entry

try:
    import fcntl
except ImportError:  # Windows: without a lock, what two processes compile at once is compiled twice
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("eligo")

_PATIENCE: Final = 600.0  # seconds that a process waits for another's kernel before it compiles it too
_GLANCE: Final = 0.02  # seconds between two looks
_DAY: Final = 86_400.0
_AGE: Final = 60 * _DAY  # seconds without use after which a kernel is removed


def cache_folder() -> Path | None:
    """Returns where compiled kernels are kept: in NUMBA_CACHE_DIR, or in the user's cache; None if there is no home."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given:
        return Path(given) / "eligo-kernels"
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eligo" / "kernels"
    except RuntimeError:
        return None


@cache
def _archive(name: str) -> Archive | None:
    path = Path(__file__).parent / f"{name}.kernels"
    try:
        return Archive(path)
    except FileNotFoundError:
        return None
    except (ArchiveError, OSError) as error:
        log.warning("the compiled kernels in %s cannot be used, so they are compiled here: %s", path, error)
        return None


def find(key: str, archive: str) -> Entry | None:
    """Returns the entry under a key, of the package or of the cache, or None. A damaged one is logged and ignored."""
    packed = _archive(archive)
    if packed is not None:
        try:
            raw = packed.get(key)
            if raw is not None:
                return unpacked(raw)
        except (ArchiveError, ValueError) as error:
            log.warning("a compiled kernel of the package cannot be used, so it is compiled here: %s", error)
    folder = cache_folder()
    if folder is None:
        return None
    path = folder / key
    try:
        raw = path.read_bytes()
        if time.time() - path.stat().st_mtime > _DAY:
            with suppress(OSError):
                os.utime(path)
        return unpacked(raw)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.warning("the compiled kernel %s cannot be used, so it is compiled again: %s", path, error)
        return None


def keep(key: str, entry: Entry) -> None:
    """Keeps an entry under a key. A failure is logged, and the next process compiles the kernel again."""
    folder = cache_folder()
    if folder is None:
        return
    new = folder / f"{key}.{os.getpid()}.new"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new.write_bytes(packed(entry))
        new.replace(folder / key)
    except OSError as error:
        _unkept(str(error))
        with suppress(OSError):
            new.unlink()
        return
    _sweep(folder)


@cache
def _unkept(error: str) -> None:
    log.warning("compiled kernels cannot be kept for the next process: %s", error)


@cache
def _sweep(folder: Path) -> None:
    """Removes, once a day, what was not used for _AGE: here, and in the folders that earlier versions had."""
    mark = folder / "swept"
    now = time.time()
    with suppress(OSError):
        if mark.exists() and now - mark.stat().st_mtime < _DAY:
            return
        mark.touch()
        for path in (*folder.iterdir(), *folder.parent.glob("kernels-*/*"), *folder.parent.glob("kernels-*")):
            with suppress(OSError):
                if path != mark and now - path.stat().st_mtime > _AGE:
                    path.rmdir() if path.is_dir() else path.unlink()


def packed(entry: Entry) -> bytes:
    raw = pickle.dumps((entry.name, entry.symbol, entry.environments, entry.code), 5)
    return zlib.crc32(raw).to_bytes(4, "little") + raw


def unpacked(raw: bytes) -> Entry:
    """Returns the entry in some bytes. Raises a ValueError if they are damaged, or of another version."""
    if len(raw) < 4 or zlib.crc32(raw[4:]).to_bytes(4, "little") != raw[:4]:
        raise ValueError("it is damaged")
    try:
        return Entry(*pickle.loads(raw[4:]))
    except Exception as error:
        raise ValueError(f"it is of another version: {error}") from None


@contextmanager
def compiling(key: str) -> Iterator[None]:
    """Waits until no other process compiles this kernel, and keeps others from it within the block. Where files cannot
    be locked, or another process takes longer than _PATIENCE, both may compile it.
    """
    folder = cache_folder()
    file = -1 if folder is None or fcntl is None else _opened(folder / f"{key}.lock")
    try:
        if file >= 0:
            _locked(file)
        yield
    finally:
        if file >= 0:
            # Unlocked before it is closed: a process forked meanwhile has the file open too, and would keep the lock.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)
            os.close(file)
            with suppress(OSError):
                (folder / f"{key}.lock").unlink()  # type: ignore[operator]


def _opened(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError:
        return -1


def _locked(file: int) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_GLANCE)
        except OSError:  # a file system without locks
            return
