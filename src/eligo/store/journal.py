"""Journals: changes that are on disk before they are made. A file of records that is only ever appended to.

    0     magic, 16 bytes
    16    format u32, salt u32                                       little-endian, like all numbers here
    24    what it belongs to, 36 bytes: the digest of a snapshot's manifest, filled up with zeros
    60    CRC-32 of all that stands before
    64    records, one after another:

          mark u32      salt + STEP × the record's offset in the file, modulo 2^32
          length u32    of the payload
          CRC-32 u32    of the mark, the length, the kind and the payload
          kind u8       what the payload is
          payload

Invariant: all acknowledged records lie before `size`, whole and in order; bytes behind it are cut off.

A process that dies while it writes leaves half a record at the end. It was not acknowledged, and the next opening cuts
it off. A bad record with good ones behind it is damage, and an error. Good ones are found by their marks, in one pass
over the bytes behind. The random salt and the offset keep old blocks of the disk, and records inside a payload, from
passing for good ones.

One process writes a journal: the file is locked for as long as it is open. Readers need no lock. They read as far as
the records are whole.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import Struct
from typing import Any, Final, Literal
from weakref import WeakMethod, finalize, ref

import numpy as np

from eligo.arguments import shown
from eligo.errors import JournalError, OptionError
from eligo.forking import INNER, Forked, fork_lock
from eligo.store.files import lock, sync_directory, unlock

log = logging.getLogger("eligo")

FORMAT: Final = 1
MAGIC: Final = b"eligo journal\n\0\0"
HEADER: Final = 64  # bytes
MOST: Final = 2**32 - 1  # bytes of a payload
STEP: Final = 2_654_435_761  # odd, so that no two places within 4 GB have one mark

_HEADER: Final = Struct("<16sII36s")
_NUMBER: Final = Struct("<I")
_RECORD: Final = Struct("<IIIB")  # mark, length, CRC-32, kind
_CHECKED: Final = Struct("<IIB")  # mark, length, kind
_SCANNED: Final = 1 << 20  # places that are compared at a time with the marks of good records
_BINARY: Final = getattr(os, "O_BINARY", 0)

SyncPolicy = Literal["always", "second", "never"] | float
Record = tuple[int, bytes]  # kind, payload


def sync_interval(sync: object) -> float:
    """Returns the seconds between two syncs that a policy asks for: 0 for "always", infinity for "never"."""
    if isinstance(sync, str) and sync in _INTERVALS:
        return _INTERVALS[sync]
    if isinstance(sync, int | float | np.number) and not isinstance(sync, bool) and 0 < sync < math.inf:
        return float(sync)
    raise OptionError(f"sync is 'always', 'second', 'never' or a number of seconds above 0, not {shown(sync)}")


_INTERVALS: Final = {"always": 0.0, "second": 1.0, "never": math.inf}


class Journal:
    """A journal that is open for writing. Threads may share it.

    `sync` says when records are on the disk, and not only with the operating system: "always", before `append` returns;
    "second", or a number of seconds, at most so long afterwards; "never", when the operating system sees fit. With each
    of them a record survives the end of the process, however it ends, once `append` has returned.

        journal = Journal.open(path, digest)
        for kind, payload in journal.replayed: …
        journal.append(1, b"payload")

    An append that fails, as on a full disk, leaves nothing behind: the next one works when there is room. If what it
    wrote cannot be removed, or a sync in the background fails, `append` is refused until there is a `successor`.
    """

    def __init__(self, path: Path, handle: int, interval: float, header: _Header, end: int) -> None:
        self._interval = interval
        self._lock = fork_lock(self, "_lock", INNER)
        self._refusal = ""  # why nothing can be appended
        self._unsynced = False
        self._timer: threading.Timer | None = None
        self._found: list[Record] = []
        self._syncing = -1  # another handle of the file, while a thread syncs it
        self._use(path, handle, header, end)
        self._child = _InChild(self)

    def _use(self, path: Path, handle: int, header: _Header, end: int) -> None:
        """Takes an open file as the one to append to, and sees to it that it is closed with this object."""
        self.path, self._handle, self._header, self._end = path, handle, header, end
        syncs_later = 0.0 < self._interval < math.inf
        self._release = finalize(self, _close, handle, syncs_later)
        self._release.atexit = False  # others may still append then; the end of the process closes the file
        self._last_sync = finalize(self, _sync_quietly, handle) if syncs_later else None

    @classmethod
    def open(cls, path: str | os.PathLike[str], belongs_to: str, sync: SyncPolicy = "always") -> Journal:
        """Opens a journal, or begins one, and locks it.

        `belongs_to` is the digest that it must carry, of at most 36 characters. Half a record at the end is cut off. A
        journal that is locked, damaged, of another format or of something else is a `JournalError`, and stays as it is.
        """
        where, interval = Path(path), sync_interval(sync)
        try:
            handle = _locked_handle(where)
            try:
                raw = _read(handle, 0)
                header, records, end = _understood(where, raw, belongs_to)
                if header is None:
                    header = _Header.new(belongs_to)
                    _begin(where, handle, header)
                elif end < len(raw):
                    log.warning("%s: cut off at %d: the last %d bytes are no whole record", where, end, len(raw) - end)
                    os.ftruncate(handle, end)
                    _to_disk(handle)
            except BaseException:
                _close(handle)
                raise
        except OSError as error:
            if isinstance(error, JournalError):
                raise
            raise JournalError(
                f"{where}: cannot be written ({_reason(error)}); make room or get the right to write there, or open "
                "the rules without writable=True"
            ) from error
        journal = cls(where, handle, interval, header, end)
        journal._found = records
        return journal

    @property
    def replayed(self) -> Iterator[Record]:
        """Iterator over the records that were there when the journal was opened. They are given once."""
        found, self._found = self._found, []
        return iter(found)

    @property
    def size(self) -> int:
        """Number of bytes of the acknowledged part of the file, which is the place of the next record."""
        return self._end

    @property
    def waits(self) -> bool:
        """Whether `append` waits for the disk."""
        return self._interval == 0.0

    def is_open_in(self, directory: Path) -> bool:
        """Tests whether this is a file of that directory that is open, and not inherited by a forked process."""
        return self._handle >= 0 and self.path.exists() and os.path.samefile(self.path.parent, directory)

    def append(self, kind: int, payload: bytes) -> None:
        """Adds a record, of a kind from 0 to 255. It is kept, as `sync` promises, when this returns."""
        with self._lock:
            self._append(kind, payload)

    @contextmanager
    def entry(self, kind: int, payload: bytes) -> Iterator[None]:
        """Appends a record around a change: it is kept before the block begins, and taken back if the block fails.

        Other threads cannot append until the block ends, so that changes are made in the order of the records.
        """
        with self._lock:
            start = self._end
            self._append(kind, payload)
            try:
                yield
            except BaseException:
                self._cut_off(start)
                raise

    def sync(self) -> None:
        """Waits until all records are on the disk."""
        with self._lock:
            self._check_usable()
            self._sync()

    def close(self) -> None:
        """Syncs what "second" has not synced yet, closes the file and frees the lock. A second call does nothing."""
        with self._lock:
            if self._handle < 0:
                return
            self._stop_timer()
            try:
                if self._unsynced and not self._refusal and self._interval < math.inf:
                    self._sync()
            finally:
                handle = self._handle
                self._forget_handle()
                self._disown(f"{self.path}: closed; open the rules again with eligo.open(path, writable=True)")
                _close(handle)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def successor(self, path: Path, belongs_to: str, since: int) -> Iterator[Callable[[], None]]:
        """Begins another journal with the records from the size `since` on. No thread appends until the block ends.

        It is on disk, whole, when the block begins. The block gets a function, and calls it as soon as the new journal
        is the one that counts: from then on records go there. If it is never called, the new journal is removed.
        """
        with self._lock:
            if self._handle < 0:
                self._check_usable()
            header = _Header.new(belongs_to)
            raw = _joined(header, self._records_since(since))
            temporary = path.with_suffix(".tmp")
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | _BINARY, 0o666)
            placed = taken = settled = False

            def take_over() -> None:
                nonlocal taken, settled
                if not taken:
                    taken, settled = True, False
                    old = self._handle
                    self._stop_timer()
                    self._forget_handle()
                    self._use(path, handle, header, len(raw))
                    self._refusal, self._unsynced = "", False
                    _close(old)

            try:
                lock(handle, "exclusive", wait=False)
                _write_all(handle, raw)
                _to_disk(handle)
                os.replace(temporary, path)
                placed = True
                if os.path.samefile(path.parent, self.path.parent) and path.name == self.path.name:
                    take_over()  # it has the name that counts already
                sync_directory(path.parent)
                settled = True
                yield take_over
            except BaseException:
                if taken and not settled:
                    self._refusal = (
                        f"{path}: its name may not be on the disk, should the power fail; save the rules again"
                    )
                raise
            finally:
                if not taken:
                    _close(handle)
                    (path if placed else temporary).unlink(missing_ok=True)

    # -- with the lock held

    def _records_since(self, since: int) -> list[Record]:
        """The records from that place on."""
        raw = _read(self._handle, since)[: self._end - since]
        records, end = _walk(raw, self._header.salt, since)
        if end < len(raw):
            raise JournalError(
                f"{self.path}: damaged, the record at {since + end:,} is wrong, though it was written well; look after "
                "the disk, and save the rules to another path"
            )
        return records

    def _append(self, kind: int, payload: bytes) -> None:
        """Writes a record at the end. If this fails, nothing of it is left."""
        self._check_usable()
        start = self._end
        if len(payload) > MOST:
            raise JournalError(
                f"{self.path}: a change of {len(payload):,} bytes is too large for one record; make it in several parts"
            )
        record = self._header.record(start, kind, payload)
        try:
            _write_all(self._handle, record)
            self._end = start + len(record)
            if self._interval == 0.0:
                _to_disk(self._handle)
            elif not self._unsynced:
                self._sync_later()
        except BaseException as error:
            self._cut_off(start)
            if isinstance(error, OSError):
                raise JournalError(
                    f"{self.path}: the change was not made, because it could not be written at {start:,} "
                    f"({_reason(error)}); what was there is kept: make room, or look after the disk, and try again"
                ) from error
            raise

    def _check_usable(self) -> None:
        if self._refusal:
            raise JournalError(self._refusal)

    def _cut_off(self, end: int) -> None:
        """Truncates the file there. If this fails, no record is accepted any more."""
        self._end = end
        try:
            os.ftruncate(self._handle, end)
            if self._interval == 0.0:
                _to_disk(self._handle)
        except OSError as error:
            self._refusal = (
                f"{self.path}: a change that failed could not be taken out of it at {end:,} ({_reason(error)}), so no "
                "other can follow; save the rules to this path, which begins a new journal, or to another"
            )

    def _sync(self) -> None:
        self._unsynced = False
        try:
            _to_disk(self._handle)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> JournalError:
        """Refuses all further records, because it is unknown which ones are on the disk. Returns the error."""
        self._refusal = (
            f"{self.path}: could not be synced ({_reason(error)}), so the last changes may not be on the disk; save "
            "the rules to this path, which begins a new journal, or to another"
        )
        return JournalError(self._refusal)

    def _sync_later(self) -> None:
        """Marks the file as not synced, and starts a timer for the sync if the policy has an interval."""
        if self._interval < math.inf:
            timer = threading.Timer(self._interval, _call, (WeakMethod(self._sync_beside),))
            timer.daemon = True
            try:
                timer.start()
            except RuntimeError:  # no more threads, as when the interpreter ends
                _to_disk(self._handle)
                return
            self._timer = timer
        self._unsynced = True

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _disown(self, refusal: str) -> None:
        self._refusal, self._handle = refusal, -1

    def _forget_handle(self) -> None:
        """Detaches the finalizers, so that the caller has to close the file."""
        self._release.detach()
        if self._last_sync is not None:
            self._last_sync.detach()

    # -- in a thread of its own

    def _sync_beside(self) -> None:
        """Syncs without holding the lock, so that appending threads do not wait for the disk."""
        with self._lock:
            self._timer = None
            if self._handle < 0 or not self._unsynced or self._refusal:
                return
            self._unsynced = False  # a later append asks for another sync
            handle = self._syncing = os.dup(self._handle)
            header = self._header
        try:
            _to_disk(handle)
        except OSError as error:
            with self._lock:
                if self._handle >= 0 and header is self._header:
                    log.error("%s", self._failed(error))
        finally:
            with self._lock:
                self._syncing = -1
                os.close(handle)


class _InChild(Forked):
    """Takes a journal away from forked children: it belongs to their parent, which holds the lock."""

    rank = INNER

    def __init__(self, journal: Journal) -> None:
        self._journal = ref(journal)
        self.register()

    def before_fork(self, deadline: float) -> None:
        pass

    def after_fork_in_parent(self) -> None:
        pass

    def after_fork_in_child(self) -> None:
        journal = self._journal()
        if journal is None or journal._handle < 0:
            return
        # The lock belongs to the open file, which parent and child share: it is left alone, the handles are closed.
        journal._forget_handle()
        for handle in (journal._handle, journal._syncing):
            with suppress(OSError):
                os.close(handle)
        journal._syncing = -1
        journal._disown(
            f"{journal.path}: is written by the process that this one was forked from, so here the rules can be "
            "matched but not changed; change them there, or open a snapshot of your own"
        )


class _Header:
    """The header of a journal: what it belongs to, and the salt of its records."""

    def __init__(self, belongs_to: str, salt: int) -> None:
        self.belongs_to, self.salt = belongs_to, salt

    @classmethod
    def new(cls, belongs_to: str) -> _Header:
        """Returns a header with a random salt."""
        if len(belongs_to.encode()) > 36:
            raise ValueError(f"a journal belongs to what at most 36 bytes name, not to {shown(belongs_to)}")
        return cls(belongs_to, int.from_bytes(os.urandom(4), "little"))

    def packed(self) -> bytes:
        raw = _HEADER.pack(MAGIC, FORMAT, self.salt, self.belongs_to.encode())
        return raw + _NUMBER.pack(zlib.crc32(raw))

    def record(self, offset: int, kind: int, payload: bytes) -> bytes:
        """Returns the bytes of a record that is to be written at this offset."""
        mark, length = _mark(self.salt, offset), len(payload)
        crc = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(mark, length, kind)))
        return _RECORD.pack(mark, length, crc, kind) + payload


def read_journal(path: str | os.PathLike[str], belongs_to: str) -> list[Record]:
    """Returns the whole records of a journal that another process may be writing, or none if there is no file.

    Takes no lock and changes nothing. Raises JournalError if it is damaged, or belongs to something else.
    """
    where, before = Path(path), b""
    while True:
        try:
            raw = where.read_bytes()
        except FileNotFoundError:
            return []
        try:
            return _understood(where, raw, belongs_to)[1]
        except JournalError:
            if raw == before:
                raise
            before = raw  # perhaps its writer was taking back a record; real damage is still there the next time


def is_locked(path: Path) -> bool:
    """Tests whether a journal is open for writing, in this process or another."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return lock(handle, "shared", wait=False) is False
    finally:
        _close(handle)


def _understood(path: Path, raw: bytes, belongs_to: str) -> tuple[_Header | None, list[Record], int]:
    """The header, the records, and where the last one ends.

    The header is None if the file is shorter than one: then nothing was ever appended. Raises JournalError if the file
    is damaged, of another format, or belongs to something else.
    """
    if not MAGIC.startswith(raw[: len(MAGIC)]):
        raise JournalError(f"{path}: no journal, it does not begin as one; remove it, or choose another path")
    if len(raw) < HEADER:
        return None, [], HEADER
    _, number, salt, owner = _HEADER.unpack_from(raw)
    if number != FORMAT:
        newer = "a newer" if number > FORMAT else "an older"
        raise JournalError(
            f"{path}: format {number}, written by {newer} eligo; this one reads {FORMAT}: open the rules with that "
            "one, and save them"
        )
    if zlib.crc32(raw[: _HEADER.size]) != _NUMBER.unpack_from(raw, _HEADER.size)[0]:
        raise JournalError(
            f"{path}: damaged, the checksum of its header is wrong; restore the rules from a backup, or remove the "
            "file to give up the changes in it"
        )
    if owner.rstrip(b"\0") != belongs_to.encode():
        raise JournalError(
            f"{path}: a journal of another snapshot ({owner.rstrip(bytes(1)).decode('latin-1')}, not {belongs_to}); "
            "put the snapshot that it belongs to back in place, or remove the file"
        )
    header = _Header(belongs_to, salt)
    records, end = _walk(raw, salt, 0, HEADER)
    if end < len(raw) and (good := _good_record(raw, end + 1, salt)) >= 0:
        raise JournalError(
            f"{path}: damaged, the record at {end:,} is wrong, and one at {good:,} is good; restore the rules from a "
            f"backup, or give up the changes from there on: truncate -s {end} {path}"
        )
    return header, records, end


def _mark(salt: int, offset: int) -> int:
    return (salt + STEP * offset) & 0xFFFFFFFF


def _walk(raw: bytes, salt: int, base: int, start: int = 0) -> tuple[list[Record], int]:
    """Returns the good records one after another from `start` on, and where the last one ends.

    `base` is the place of these bytes in the file, from which the marks are computed.
    """
    records = []
    while (end := _end_of_record(raw, start, salt, base)) >= 0:
        body = start + _RECORD.size
        records.append((raw[body - 1], raw[body:end]))
        start = end
    return records, start


def _end_of_record(raw: bytes, start: int, salt: int, base: int) -> int:
    """Returns where the record that begins at `start` ends, or -1 if there is no good one."""
    body = start + _RECORD.size
    if body > len(raw):
        return -1
    mark, length, crc, kind = _RECORD.unpack_from(raw, start)
    end: int = body + length
    if end > len(raw) or mark != _mark(salt, base + start):
        return -1
    with memoryview(raw) as view:
        found = zlib.crc32(view[body:end], zlib.crc32(_CHECKED.pack(mark, length, kind)))
    return end if found == crc else -1


def _good_record(raw: bytes, start: int, salt: int) -> int:
    """Returns a place, from `start` on, where a good record begins, or -1 if there is none."""
    for phase in range(start, start + 4):  # every fourth place can be compared at once
        for begin in range(phase, len(raw) - _RECORD.size + 1, 4 * _SCANNED):
            found = np.frombuffer(raw, "<u4", min(_SCANNED, (len(raw) - begin) // 4), begin)
            steps = np.arange(len(found), dtype=np.uint32) * np.uint32(4 * STEP & 0xFFFFFFFF)
            for place in (np.nonzero(found == steps + np.uint32(_mark(salt, begin)))[0] * 4 + begin).tolist():
                if _end_of_record(raw, place, salt, 0) >= 0:
                    return int(place)
    return -1


def _joined(header: _Header, records: Sequence[Record]) -> bytes:
    """A journal with these records."""
    parts, size = [header.packed()], HEADER
    for kind, payload in records:
        parts.append(header.record(size, kind, payload))
        size += len(parts[-1])
    return b"".join(parts)


def _locked_handle(path: Path) -> int:
    """Opens a file, made if need be, and locks it. Raises JournalError if it is locked already."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | _BINARY, 0o666)
        try:
            if lock(handle, "exclusive", wait=False) is False:
                raise JournalError(
                    f"{path}: another process, or another matcher of this one, has these rules open for writing; close "
                    "it, or open them without writable=True"
                )
            if _is_named(handle, path):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # replaced or removed between opening and locking


def _is_named(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _begin(path: Path, handle: int, header: _Header) -> None:
    """Writes the header of an empty journal, and syncs the file and its name in the directory."""
    try:
        os.ftruncate(handle, 0)
        _write_all(handle, header.packed())
        _to_disk(handle)
        sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise


def _read(handle: int, start: int) -> bytes:
    """Returns all bytes of a file from `start` on. Appending is not affected by the position of reading."""
    os.lseek(handle, start, os.SEEK_SET)
    parts = []
    while part := os.read(handle, 1 << 24):
        parts.append(part)
    return b"".join(parts)


def _write_all(handle: int, raw: bytes) -> None:
    written = os.write(handle, raw)
    while written < len(raw):  # the disk is nearly full, or a limit near: the next write raises the error
        more = os.write(handle, raw[written:])
        if not more:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written += more


def _to_disk(handle: int) -> None:
    """Waits until the content and the size of a file are on disk."""
    getattr(os, "fdatasync", os.fsync)(handle)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _close(handle: int, sync: bool = False) -> None:
    """Closes a file and frees its lock, also if a process that was forked meanwhile has it open."""
    if sync:
        _sync_quietly(handle)
    unlock(handle)
    os.close(handle)


def _sync_quietly(handle: int) -> None:
    with suppress(OSError):
        _to_disk(handle)


def _call(method: Any) -> None:
    """Calls a method through a weak reference, unless its object is gone."""
    found = method()
    if found is not None:
        found()
