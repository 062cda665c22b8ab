"""The cache of compiled kernels on disk, for several processes at once.

    a folder for each source file
      <kernel>.nbi              which versions (argument types, processor) there are, and their files
      <kernel>.<unique>.nbc     the machine code of one version
      <kernel>.nbi.lock         held while a process compiles a version

Numba numbers the files of versions. Two processes that compile two versions at once take the same number, and the index
then leads to code for other arguments, which crashes. Here a file has a name of its own, it is written before the index
leads to it, and a process that wants what another is compiling waits and loads it.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from numba.core.caching import FunctionCache, IndexDataCacheFile

try:
    import fcntl
except ImportError:  # Windows: nobody waits, and what two processes compile at once is compiled twice
    fcntl = None  # type: ignore[assignment]

_PATIENCE: Final = 600.0  # seconds that a process waits for another's kernel before it compiles it too
_GLANCE: Final = 0.02  # seconds between two looks


class KernelCache(FunctionCache):
    """The cache of one kernel, locked from a look that finds nothing until what is compiled then is saved."""

    def __init__(self, function: Callable[..., Any], folder: str = "") -> None:
        """Keep the versions in `folder`, which is named by the content of all sources they come from.

        So neither the place nor the time of a source file matters: another checkout of the same sources finds them.
        Without a folder Numba finds a place, and asks for the time.
        """
        super().__init__(function)
        self._cache_path = folder or self._cache_path
        stamp = None if folder else self._impl.locator.get_source_stamp()
        self._cache_file = _Versions(self._cache_path, self._impl.filename_base, stamp)
        self._lock = _Lock(self._cache_file._index_path + ".lock")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        if found is not None or not self._enabled or not self._lock.take():
            return found
        found = super().load_overload(sig, target_context)
        if found is not None:
            self._lock.give()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        finally:
            self._lock.give()


class _Versions(IndexDataCacheFile):
    def save(self, key: Any, data: Any) -> None:
        name = self._index_name.removesuffix("nbi") + f"{uuid.uuid4().hex[:16]}.nbc"
        self._save_data(name, data)
        versions = self._load_index()
        versions[key] = name
        self._save_index(versions)


class _Lock:
    """A lock between processes that the system gives back when its owner dies."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1

    def take(self) -> bool:
        """Wait for the lock; False where it is not to be had: then two may compile the same."""
        if fcntl is None or self._file >= 0:
            return False
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError:
            return False
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._file = file
                return True
            except BlockingIOError:
                if time.monotonic() > until:
                    break
                time.sleep(_GLANCE)
            except OSError:  # a file system without locks
                break
        os.close(file)
        return False

    def give(self) -> None:
        if self._file >= 0:
            # Said in so many words: a process forked meanwhile has the file open too, and would go on holding it.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = -1
