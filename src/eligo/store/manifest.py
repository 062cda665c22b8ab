"""Manifests: JSON files that know when they are damaged.

    {"format": 5, "checksum": 2874613, "content": {…}}      checksum: CRC-32 of the content's bytes as they stand there

The format is read first: what else a newer manifest holds is not known here.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import TypeVar

import msgspec

from eligo.errors import SnapshotError

T = TypeVar("T")


class Version(msgspec.Struct, frozen=True):
    """The part that manifests of all formats have."""

    format: int


class Manifest(msgspec.Struct, frozen=True):
    """A manifest. `checksum` is the CRC-32 of the content, encoded as it is in the file."""

    format: int
    checksum: int
    content: msgspec.Raw


def sealed(content: msgspec.Struct, number: int) -> bytes:
    """Returns the bytes of a manifest with this content. `number` is its format."""
    raw = msgspec.json.encode(content)
    return msgspec.json.encode(Manifest(number, zlib.crc32(raw), msgspec.Raw(raw)))


def unsealed(path: Path, raw: bytes, number: int, kind: type[T]) -> T:
    """Returns the content of a manifest. Raises SnapshotError, which names `path`, if it is damaged or has another
    format than `number`.
    """
    again = "make the snapshot again"
    try:
        written = msgspec.json.decode(raw, type=Version).format
        if written > number:
            raise SnapshotError(
                f"{path}: format {written}, written by a newer eligo; this one reads up to {number}: upgrade it"
            )
        if written < number:
            raise SnapshotError(
                f"{path}: format {written}, written by an older eligo; this one reads {number}: {again} from its rules"
            )
        manifest = msgspec.json.decode(raw, type=Manifest)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{path}: damaged, {error}; {again}") from None
    if zlib.crc32(bytes(manifest.content)) != manifest.checksum:
        raise SnapshotError(f"{path}: damaged, its checksum is wrong; {again}")
    try:
        return msgspec.json.decode(manifest.content, type=kind)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{path}: damaged, {error}; {again}") from None
