"""An exchange on disk.

    market.exchange/
      exchange.json               format version, nodes, edges, and what lies in which file
      rules-<token>/              the matcher, a snapshot of its own (store/snapshot.py)
      campaigns-<token>.arrow     ids, paths and own expressions

All files of a snapshot carry its token. It becomes visible when `exchange.json` is put in place, which is one rename:
whoever opens it finds the old one or the new one, whole. What belongs to another token is removed afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa

from eligo.arguments import directory_path, flag
from eligo.errors import EligoError, SnapshotError
from eligo.exchange.graph import Role
from eligo.language import Limits
from eligo.matcher import open_rules
from eligo.store.files import locked, sync_directory, write_through
from eligo.store.manifest import Manifest, Version, sealed

if TYPE_CHECKING:
    from eligo.exchange.exchange import Exchange

FORMAT = 1
MANIFEST = "exchange.json"
_OURS = re.compile(r"exchange\.json|rules-[0-9a-f]{32}|campaigns-[0-9a-f]{32}\.arrow|exchange-[0-9a-f]{32}\.tmp")


class Content(msgspec.Struct, frozen=True):
    """What the manifest says. An edge is seller, buyer, expression, and the number of its rule or -1."""

    eligo: str
    token: str
    checksum: int  # CRC-32 of the campaigns' file
    limits: Limits
    kind: str  # of campaigns' ids: str, int, or "" for none
    next_rule: int
    next_order: int
    nodes: dict[str, Role]
    edges: tuple[tuple[str, str, str, int], ...]


def save(exchange: Exchange, directory: Path) -> None:
    """Write everything to a directory, replacing a snapshot that is there. Visits are answered meanwhile."""
    from eligo import __version__

    _make_directory(directory)
    token = uuid4().hex
    with locked(directory):
        try:
            with exchange._lock:
                ledger = exchange._ledger
                ledger.matcher.save(directory / f"rules-{token}")
                campaigns = _encoded(ledger.bookings.columns(), ledger.kind)
                content = Content(
                    eligo=__version__,
                    token=token,
                    checksum=zlib.crc32(campaigns),
                    limits=exchange.limits,
                    kind=ledger.kind.__name__ if ledger.kind is not None else "",
                    next_rule=ledger.bookings.next_rule,
                    next_order=ledger.bookings.next_order,
                    nodes=ledger.graph.roles,
                    edges=tuple((link.seller, link.buyer, link.expression, link.number) for link in ledger.graph),
                )
                manifest = sealed(content, FORMAT)
            write_through(directory / f"campaigns-{token}.arrow", campaigns)
            temporary = directory / f"exchange-{token}.tmp"
            write_through(temporary, manifest)
            os.replace(temporary, directory / MANIFEST)
        except BaseException:
            _sweep(directory, lambda name: token in name)
            raise
        sync_directory(directory)
        _sweep(directory, lambda name: name != MANIFEST and token not in name)


def open_exchange(path: str | PathLike[str], *, verify: bool = True) -> Exchange:
    """The exchange that was saved there. `verify` compares the checksums of all that is mapped."""
    from eligo.exchange.exchange import Exchange
    from eligo.exchange.ledger import Ledger

    directory = directory_path("path", path)
    flag("verify", verify)
    content, raw = _read_manifest(directory)
    try:
        matcher = open_rules(directory / f"rules-{content.token}", verify=verify)
        campaigns = (directory / f"campaigns-{content.token}.arrow").read_bytes()
    except (EligoError, OSError) as error:
        if _read_manifest(directory)[1] != raw:
            return open_exchange(path, verify=verify)  # replaced between the two readings
        raise SnapshotError(f"{directory}: damaged, {error}") from None
    if zlib.crc32(campaigns) != content.checksum:
        raise SnapshotError(f"{directory}: damaged, the checksum of its campaigns is wrong; make the snapshot again")
    ledger = Ledger(matcher, content.limits)
    for name, role in content.nodes.items():
        ledger.graph.add_node(name, role)
    for seller, buyer, expression, number in content.edges:
        link = ledger.graph.connect(seller, buyer, expression)
        if number >= 0:
            ledger.links.extend([None] * (number + 1 - len(ledger.links)))
            ledger.links[number], link.number = link, number
    ledger.free = [number for number, link in enumerate(ledger.links) if link is None]
    ledger.kind = {"int": int, "str": str}.get(content.kind)
    columns = _decoded(campaigns)
    counts = np.bincount(columns["path"], minlength=len(ledger.links)).tolist()
    for known, count in zip(ledger.links, counts, strict=True):
        if known is not None:
            known.campaigns = count
    ledger.bookings.restore(columns, content.next_rule, content.next_order, len(ledger.links))
    exchange = Exchange(limits=content.limits)
    exchange._ledger = ledger
    return exchange


def _encoded(columns: dict[str, Any], kind: type | None) -> bytes:
    lists = (("path", pa.int32()), ("text", pa.uint8()))
    table = {"name": pa.array(columns["name"], pa.int64() if kind is int else pa.string())}
    for name in ("rule", "order"):
        table[name] = pa.array(columns[name], pa.int64())
    for name, of in lists:
        values = columns[name] if of != pa.uint8() else np.frombuffer(columns[name], np.uint8)
        table[name] = pa.LargeListArray.from_arrays(pa.array(columns[f"{name}_offsets"]), pa.array(values, of))
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(table)
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _decoded(raw: bytes) -> dict[str, Any]:
    batch = pa.ipc.open_file(raw).get_batch(0)
    columns: dict[str, Any] = {"name": batch["name"].to_pylist()}
    for name in ("rule", "order"):
        columns[name] = batch[name].to_numpy()
    for name in ("path", "text"):
        columns[f"{name}_offsets"] = batch[name].offsets.to_numpy()
        columns[name] = batch[name].values.to_numpy()
    columns["text"] = columns["text"].tobytes()
    return columns


def _read_manifest(directory: Path) -> tuple[Content, bytes]:
    path = directory / MANIFEST
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise SnapshotError(f"{directory}: no exchange, there is no {MANIFEST}; Exchange.save makes one") from None
    try:
        written = msgspec.json.decode(raw, type=Version).format
        if written != FORMAT:
            raise SnapshotError(f"{path}: format {written}, and this eligo reads {FORMAT}: make the snapshot again")
        manifest = msgspec.json.decode(raw, type=Manifest)
        if zlib.crc32(bytes(manifest.content)) != manifest.checksum:
            raise SnapshotError(f"{path}: damaged, its checksum is wrong; make the snapshot again")
        return msgspec.json.decode(manifest.content, type=Content), raw
    except msgspec.DecodeError as error:
        raise SnapshotError(f"{path}: damaged, {error}; make the snapshot again") from None


def _make_directory(directory: Path) -> None:
    """Make it, or make sure that it holds nothing but an exchange."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise SnapshotError(f"{directory}: is a file; an exchange is a directory, choose another name") from None
    foreign = [entry.name for entry in directory.iterdir() if not _OURS.fullmatch(entry.name)]
    if foreign:
        raise SnapshotError(f"{directory}: holds other things ({foreign[0]}); an exchange needs a directory of its own")


def _sweep(directory: Path, which: Callable[[str], bool]) -> None:
    """Remove files of ours."""
    for entry in directory.iterdir():
        if _OURS.fullmatch(entry.name) and which(entry.name):
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
