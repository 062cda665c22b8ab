"""Makes the archive of compiled kernels that a wheel brings along: python -m eligo.packing FOLDER.

Kernels of indexes from other packages are not in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from eligo.errors import EligoError
from eligo.index.registry import INDEXES
from eligo.kernels import store
from eligo.kernels.archive import write_archive
from eligo.kernels.finding import archive_name
from eligo.warm import tasks, warm


def pack(folder: Path) -> Path:
    """Writes every kernel to an archive in a folder, and returns its path. Those not in the cache are compiled."""
    kernels = {}
    for key in warm(only=tasks(INDEXES.own)):
        entry = store.find(key, archive_name())
        if entry is None:
            raise EligoError(f"the kernel {key} was compiled but not kept: is {store.cache_folder()} writable?")
        kernels[key] = store.packed(entry)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{archive_name()}.kernels"
    write_archive(path, kernels)
    return path


if __name__ == "__main__":
    path = pack(Path(sys.argv[1]))
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
