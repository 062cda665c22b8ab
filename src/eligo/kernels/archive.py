"""All compiled kernels in one file, which a wheel brings along.

    magic      what it is, and the version of this format
    count      of kernels, and a checksum of the table
    table      key, place and length of each
    kernels    as store.py packs them, each with a checksum of its own

The file is mapped into memory, and a kernel is read when it is called first.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

_MAGIC = b"eligo kernels 1\n"
_HEAD = struct.Struct("<II")
_ROW = struct.Struct("<16sQQ")


class ArchiveError(Exception):
    """A file that is no archive of kernels, or a damaged one."""


class Archive:
    """The kernels of a file, by their keys."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ArchiveError("it is no archive of kernels of this version")
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                raise ArchiveError("it is cut short")
            count, checksum = _HEAD.unpack(head)
            table = file.read(count * _ROW.size)
            if zlib.crc32(table) != checksum:
                raise ArchiveError("its table is damaged")
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._places = {key.hex(): (begin, length) for key, begin, length in _ROW.iter_unpack(table)}

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> bytes | None:
        """Returns the packed kernel under a key, or None. Raises an `ArchiveError` if the file is cut short."""
        place = self._places.get(key)
        if place is None:
            return None
        begin, length = place
        if begin + length > len(self._bytes):
            raise ArchiveError("the archive is cut short")
        return self._bytes[begin : begin + length]


def write_archive(path: Path, kernels: Mapping[str, bytes]) -> None:
    """Writes the file of these kernels, by their keys. The same kernels always give the same bytes."""
    at = len(_MAGIC) + _HEAD.size + len(kernels) * _ROW.size
    rows = []
    for key in sorted(kernels):
        rows.append(_ROW.pack(bytes.fromhex(key), at, len(kernels[key])))
        at += len(kernels[key])
    table = b"".join(rows)
    with path.open("wb") as file:
        file.write(_MAGIC + _HEAD.pack(len(rows), zlib.crc32(table)) + table)
        for key in sorted(kernels):
            file.write(kernels[key])
