"""Arrays in one file, to be mapped into memory.

    0        magic, 64 bytes
    64       first array, as its bytes lie in memory, little-endian
    …        each further array at the next multiple of 64

What lies where (name, type, shape, offset, CRC-32) is not in the file but in the manifest that names it. A file is
named by the hash of its content, so a name never means two things, and a changed file never passes for an old one.
"""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
from numpy.typing import NDArray

from eligo.compile.compiled import Arrays
from eligo.errors import SnapshotError

MAGIC = b"eligo arrays 1\n".ljust(64, b"\0")
_ALIGNED = 64
_READ = 1 << 20  # bytes at a time


class Entry(msgspec.Struct, frozen=True):
    """The place of an array in a file, with its type, shape and checksum."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    crc32: int


class ArrayFile(msgspec.Struct, frozen=True):
    """A file of arrays, as a manifest describes it."""

    file: str
    size: int
    arrays: tuple[Entry, ...]


def write_arrays(directory: Path, prefix: str, arrays: Arrays) -> ArrayFile:
    """Writes the arrays to a file that is named by its content. All of it is on disk when this returns."""
    digest = hashlib.blake2b(MAGIC, digest_size=16)
    entries = []
    temporary = directory / f"{prefix}-{uuid4().hex}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(MAGIC)
            position = len(MAGIC)
            for name, array in arrays.items():
                flat = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
                raw = flat.reshape(-1).view(np.uint8).data if flat.size else memoryview(b"")
                padding = b"\0" * (-position % _ALIGNED)
                file.write(padding)
                file.write(raw)
                digest.update(padding)
                digest.update(raw)
                position += len(padding)
                entries.append(Entry(name, flat.dtype.str, flat.shape, position, zlib.crc32(raw)))
                position += len(raw)
            file.flush()
            os.fsync(file.fileno())
        name = f"{prefix}-{digest.hexdigest()}.bin"
        os.replace(temporary, directory / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return ArrayFile(name, position, tuple(entries))


def map_arrays(directory: Path, described: ArrayFile, verify: bool) -> Arrays:
    """Maps a file and returns its arrays. `verify` reads all of it and compares checksums.

    Raises SnapshotError if the file is damaged. It is mapped copy-on-write and not read-only, because read-only arrays
    are another type to the kernels, each of which would be compiled twice.
    """
    path = directory / described.file
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size != described.size:
            state = "truncated" if size < described.size else "too long"
            raise SnapshotError(
                f"{path}: {state}, {size:,} bytes where the manifest says {described.size:,}; make it again"
            )
        if file.read(len(MAGIC)) != MAGIC:
            raise SnapshotError(f"{path}: damaged, it does not begin as an eligo array file; make it again")
        mapped = np.memmap(file, np.uint8, mode="c")
        arrays: dict[str, NDArray[Any]] = {}
        for entry in described.arrays:
            array: NDArray[Any] = np.ndarray(entry.shape, entry.dtype, mapped, entry.offset)
            if verify and _checksum(file, entry.offset, array.nbytes) != entry.crc32:
                raise SnapshotError(f"{path}: damaged, the checksum of array {entry.name!r} is wrong; make it again")
            arrays[entry.name] = array
    return arrays


def _checksum(file: io.FileIO, offset: int, size: int) -> int:
    """Returns the CRC-32 of a part of the file, which is read because mapped pages count as the process's own."""
    buffer = memoryview(bytearray(min(size, _READ)))
    crc = 0
    file.seek(offset)
    while size > 0:
        count = file.readinto(buffer[: min(size, _READ)])
        if not count:
            break
        crc = zlib.crc32(buffer[:count], crc)
        size -= count
    return crc
