"""Journals: what was acknowledged is read again, and nothing else, whatever happens to the file."""

from __future__ import annotations

import errno
import gc
import logging
import os
import resource
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo.store import journal as module
from eligo.store.journal import HEADER, Journal, Record, SyncPolicy, is_locked, read_journal

RECORDS: list[Record] = [
    (1, b"first"),
    (2, b""),
    (255, b"\0" * 9),
    (1, b"\xff\x00"),
    (7, bytes(range(256))),
    (1, b"last"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal-1.log"


def written(path: Path, records: list[Record] = RECORDS, sync: SyncPolicy = "never") -> list[int]:
    """Write records; the size of the file after each."""
    with Journal.open(path, "snapshot", sync) as journal:
        sizes = [journal.size]
        for record in records:
            journal.append(*record)
            sizes.append(journal.size)
    assert sizes[-1] == path.stat().st_size
    return sizes


def reopened(path: Path) -> list[Record]:
    with Journal.open(path, "snapshot") as journal:
        return list(journal.replayed)


@pytest.mark.parametrize("sync", ["always", "second", 0.01, "never"])
def test_records_come_back_in_order_and_more_can_follow(path: Path, sync: SyncPolicy) -> None:
    written(path, sync=sync)
    with Journal.open(path, "snapshot", sync) as journal:
        assert list(journal.replayed) == RECORDS
        assert list(journal.replayed) == []
        journal.append(9, b"more")
        journal.sync()
        assert read_journal(path, "snapshot") == [*RECORDS, (9, b"more")]  # while it is open
    assert reopened(path) == [*RECORDS, (9, b"more")]


def test_no_records_need_no_room(path: Path) -> None:
    assert read_journal(path, "snapshot") == []
    assert not path.exists()
    with Journal.open(path, "snapshot") as journal:
        assert journal.size == HEADER == path.stat().st_size
    assert reopened(path) == []


@pytest.mark.parametrize("sync", ["", "Always", 0, -1, True, None, float("nan"), float("inf"), [1]])
def test_other_policies_are_refused(path: Path, sync: Any) -> None:
    with pytest.raises(eligo.OptionError, match="sync is 'always', 'second', 'never' or a number"):
        Journal.open(path, "snapshot", sync)
    assert not path.exists()


# -- damage


def test_cut_at_every_byte_whole_records_are_left(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sizes = written(path)
    whole = path.read_bytes()
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        kept = max(0, sum(size <= length for size in sizes) - 1)
        expected = RECORDS[:kept]
        assert read_journal(path, "snapshot") == expected
        assert path.read_bytes() == whole[:length]
        caplog.clear()
        with Journal.open(path, "snapshot", "never") as journal:
            assert list(journal.replayed) == expected
            assert path.stat().st_size == journal.size == sizes[kept]
            assert len(caplog.records) == (length >= HEADER and length not in sizes)
            journal.append(5, b"after")
        assert reopened(path) == [*expected, (5, b"after")]


def test_every_flipped_bit_is_found(path: Path) -> None:
    sizes = written(path)
    good = path.read_bytes()
    for place in range(len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[place] ^= 1 << bit
            path.write_bytes(bad)
            try:
                found = read_journal(path, "snapshot")
            except eligo.JournalError as error:
                assert str(path) in str(error)
                assert place < sizes[-2]
            else:  # of the last record nobody can say that it was whole once
                assert place >= sizes[-2]
                assert found == RECORDS[:-1]


def test_damage_in_the_middle_changes_nothing_and_names_the_place_and_the_remedy(path: Path) -> None:
    sizes = written(path)
    bad = bytearray(path.read_bytes())
    bad[sizes[2]] ^= 1
    path.write_bytes(bad)
    with pytest.raises(eligo.JournalError, match=rf"record at {sizes[2]} is wrong, .* truncate -s {sizes[2]} "):
        Journal.open(path, "snapshot")
    assert path.read_bytes() == bad
    assert not is_locked(path)
    os.truncate(path, sizes[2])
    assert reopened(path) == RECORDS[:2]


@pytest.mark.parametrize(
    "tail",
    [b"\0" * 100_000, b"\xff" * 5000, b"\1\0\0\0" * 5000, os.urandom(5_000_000)],
    ids=["zeros", "ones", "lengths", "random"],
)
def test_a_tail_of_garbage_is_cut_off(path: Path, tail: bytes) -> None:
    sizes = written(path)
    path.write_bytes(path.read_bytes() + tail)
    assert reopened(path) == RECORDS
    assert path.stat().st_size == sizes[-1]


def test_records_within_a_payload_or_at_another_place_are_none(path: Path, tmp_path: Path) -> None:
    """A payload that holds a whole journal is torn off in the middle: what is left of it is no record."""
    written(tmp_path / "other")
    inner = (tmp_path / "other").read_bytes()
    sizes = written(path, [(1, b"x"), (1, inner + b"y" * 50)])
    os.truncate(path, sizes[-1] - 10)
    assert reopened(path) == [(1, b"x")]
    record = path.read_bytes()[sizes[0] :]
    path.write_bytes(path.read_bytes() + record)  # a good record, repeated
    assert reopened(path) == [(1, b"x")]


def test_foreign_files_other_formats_and_other_snapshots_are_refused(path: Path, tmp_path: Path) -> None:
    def refused(raw: bytes, message: str) -> None:
        path.write_bytes(raw)
        for attempt in (lambda: Journal.open(path, "snapshot"), lambda: read_journal(path, "snapshot")):
            with pytest.raises(eligo.JournalError, match=message) as caught:
                attempt()
            assert isinstance(caught.value, eligo.SnapshotError)
            assert str(path) in str(caught.value)
        assert path.read_bytes() == raw

    written(path)
    good = path.read_bytes()
    refused(b"a letter to somebody", "no journal, it does not begin as one; remove it")
    refused(b"x", "no journal")
    for number, word in ((module.FORMAT + 1, "a newer"), (0, "an older")):
        refused(good[:16] + struct.pack("<I", number) + good[20:], f"format {number}, written by {word} eligo")
    other = good[:24] + b"other".ljust(36, b"\0")
    refused(other + struct.pack("<I", zlib.crc32(other)) + good[64:], r"another snapshot \(other, not snapshot\)")
    refused(good[:24] + b"S" + good[25:], "the checksum of its header is wrong; restore")
    with pytest.raises(ValueError, match="36 bytes"):
        Journal.open(tmp_path / "new", "x" * 37)
    path.unlink()
    path.mkdir()
    with pytest.raises(eligo.JournalError, match="cannot be written"):
        Journal.open(path, "snapshot")
    with pytest.raises(eligo.JournalError, match="cannot be written"):
        Journal.open(tmp_path / "nowhere" / "journal", "snapshot")


# -- disks that are full or broken

Broken = Callable[..., Any]


def failing(number: int, after: int = 0, returning: int | None = None) -> Broken:
    """An `os.write` that writes a little and then fails."""
    real = os.write
    calls = [0]

    def write(handle: int, raw: Any) -> int:
        calls[0] += 1
        if calls[0] == 1 and returning is not None:
            return real(handle, bytes(raw)[:returning])
        if calls[0] > after:
            raise OSError(number, os.strerror(number))
        return real(handle, raw)

    return write


@pytest.mark.parametrize("sync", ["always", "second", "never"])
@pytest.mark.parametrize(
    "write", [lambda: failing(errno.ENOSPC), lambda: failing(errno.ENOSPC, 1, 5), lambda: failing(errno.EIO, 1, 12)]
)
def test_an_append_without_room_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, sync: SyncPolicy, write: Callable[[], Broken]
) -> None:
    written(path, sync=sync)
    with Journal.open(path, "snapshot", sync) as journal:
        size = journal.size
        monkeypatch.setattr(os, "write", write())
        with pytest.raises(eligo.JournalError, match=rf"not made, .* at {size} .*make room") as caught:
            journal.append(1, b"too much")
        monkeypatch.undo()
        assert isinstance(caught.value.__cause__, OSError)
        assert journal.size == size == path.stat().st_size
        assert read_journal(path, "snapshot") == RECORDS
        journal.append(1, b"room again")
    assert reopened(path) == [*RECORDS, (1, b"room again")]


def test_a_short_write_is_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.open(path, "snapshot") as journal:
        monkeypatch.setattr(os, "write", failing(0, 100, 3))
        journal.append(1, b"in two pieces")
        monkeypatch.setattr(os, "write", lambda handle, raw: 0)
        with pytest.raises(eligo.JournalError, match="No space"):
            journal.append(1, b"never")
    assert reopened(path) == [(1, b"in two pieces")]


def test_a_real_limit_on_the_size(path: Path) -> None:
    with Journal.open(path, "snapshot") as journal:
        journal.append(1, b"a" * 100)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (journal.size + 50, hard))
        try:
            with pytest.raises(eligo.JournalError, match="File too large"):
                journal.append(1, b"b" * 100)
            journal.append(2, b"small")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        journal.append(1, b"c" * 100)
    assert reopened(path) == [(1, b"a" * 100), (2, b"small"), (1, b"c" * 100)]


def broken(*_: object) -> Any:
    raise OSError(errno.EIO, "Input/output error")


def test_a_failed_sync_takes_the_record_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = module._to_disk
    failures = [1]

    def once(handle: int) -> None:
        if failures:
            failures.pop()
            broken()
        real(handle)

    with Journal.open(path, "snapshot") as journal:
        journal.append(1, b"kept")
        monkeypatch.setattr(module, "_to_disk", once)
        with pytest.raises(eligo.JournalError, match="not made"):
            journal.append(1, b"refused")
        journal.append(1, b"next")
    assert reopened(path) == [(1, b"kept"), (1, b"next")]


def test_what_cannot_be_taken_back_ends_writing_but_not_reading(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal.open(path, "snapshot") as journal:
        journal.append(1, b"kept")
        monkeypatch.setattr(os, "write", failing(errno.ENOSPC, 1, 5))
        monkeypatch.setattr(os, "ftruncate", broken)
        with pytest.raises(eligo.JournalError, match="not made"):
            journal.append(1, b"half")
        monkeypatch.undo()
        for _ in range(2):
            with pytest.raises(eligo.JournalError, match=r"could not be taken out of it .* save the rules"):
                journal.append(1, b"refused")
        assert read_journal(path, "snapshot") == [(1, b"kept")]
        with journal.successor(path.with_name("journal-2.log"), "second", HEADER) as take_over:
            take_over()
        journal.append(1, b"works again")
    assert reopened(path) == [(1, b"kept")]
    assert read_journal(path.with_name("journal-2.log"), "second") == [(1, b"kept"), (1, b"works again")]


def test_a_journal_that_cannot_be_begun_is_not_left_half(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", failing(errno.ENOSPC, 1, 5))
    with pytest.raises(eligo.JournalError, match=r"cannot be written .*No space.* make room"):
        Journal.open(path, "snapshot")
    assert not path.exists()


# -- when it is on the disk


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times: list[float] = []
    real = module._to_disk

    def noted(handle: int) -> None:
        times.append(time.monotonic())
        real(handle)

    monkeypatch.setattr(module, "_to_disk", noted)
    return times


def test_always_syncs_before_it_returns(path: Path, syncs: list[float]) -> None:
    with Journal.open(path, "snapshot", "always") as journal:
        del syncs[:]
        for number in range(3):
            journal.append(1, b"x")
            assert len(syncs) == number + 1


def test_never_leaves_it_to_the_system(path: Path, syncs: list[float]) -> None:
    with Journal.open(path, "snapshot", "never") as journal:
        del syncs[:]
        for _ in range(100):
            journal.append(1, b"x")
    assert syncs == []


def test_seconds_sync_within_that_time_also_the_last_record(path: Path, syncs: list[float]) -> None:
    with Journal.open(path, "snapshot", 0.1) as journal:
        del syncs[:]
        begin = time.monotonic()
        while time.monotonic() < begin + 0.35:
            journal.append(1, b"x")
            time.sleep(0.001)
        last = time.monotonic()
        while not syncs or syncs[-1] < last:
            assert time.monotonic() < last + 5
            time.sleep(0.005)
        assert len(syncs) <= 6
        time.sleep(0.25)
        assert len(syncs) <= 6  # nothing new, nothing to do
        journal.append(1, b"y")
        before = len(syncs)
    assert len(syncs) > before  # closing waits for no timer


def test_without_a_thread_for_later_it_syncs_at_once(
    path: Path, syncs: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    with Journal.open(path, "snapshot", 0.01) as journal:
        del syncs[:]
        monkeypatch.setattr(threading.Timer, "start", refused)
        for number in range(2):
            journal.append(1, b"x")
            assert len(syncs) == number + 1
        monkeypatch.setattr(module, "_to_disk", broken)
        with pytest.raises(eligo.JournalError, match="not made"):
            journal.append(1, b"y")
    assert reopened(path) == [(1, b"x")] * 2


def test_records_are_kept_until_the_interpreter_ends(path: Path) -> None:
    """Also those that come when others have ended."""
    code = f"""
import atexit
from eligo.store.journal import Journal
for number, sync in enumerate(("always", "second", "never")):
    journal = Journal.open({str(path)!r} + str(number), "snapshot", sync)
    journal.append(1, b"x")
    atexit.register(journal.append, 2, b"y")
    globals()[sync] = journal
"""
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    for number in range(3):
        assert reopened(path.with_name(path.name + str(number))) == [(1, b"x"), (2, b"y")]


def test_a_failed_sync_beside_is_told_to_whoever_appends_next(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Journal.open(path, "snapshot", 0.01) as journal:
        monkeypatch.setattr(module, "_to_disk", broken)
        journal.append(1, b"x")
        deadline = time.monotonic() + 5
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.005)
        assert [record.levelno for record in caplog.records] == [logging.ERROR]
        with pytest.raises(eligo.JournalError, match=r"could not be synced .* save the rules"):
            journal.append(1, b"y")
        monkeypatch.undo()
        with pytest.raises(eligo.JournalError, match="could not be synced"):
            journal.sync()


# -- one writer


def test_a_second_writer_is_refused_until_the_first_closes(path: Path) -> None:
    journal = Journal.open(path, "snapshot")
    assert is_locked(path)
    with pytest.raises(eligo.JournalError, match="open for writing; close it"):
        Journal.open(path, "snapshot")
    journal.append(1, b"x")
    journal.close()
    journal.close()
    assert not is_locked(path)
    with pytest.raises(eligo.JournalError, match="closed; open the rules again"):
        journal.append(1, b"y")
    with pytest.raises(eligo.JournalError, match="closed"):
        journal.sync()
    assert reopened(path) == [(1, b"x")]


@pytest.mark.parametrize("sync", ["always", 0.05])
def test_a_forgotten_journal_is_closed(path: Path, sync: SyncPolicy) -> None:
    journal = Journal.open(path, "snapshot", sync)
    journal.append(1, b"x")
    del journal
    gc.collect()
    assert reopened(path) == [(1, b"x")]
    time.sleep(0.1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_does_not_write_and_keeps_no_lock(path: Path) -> None:
    journal = Journal.open(path, "snapshot", 0.01)
    journal.append(1, b"parent")
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            journal.append(1, b"child")
        except eligo.JournalError as error:
            said = str(error).encode()
        try:
            journal.close()
            del journal
            gc.collect()
            Journal.open(path, "snapshot")
        except eligo.JournalError as error:
            said += b" / " + str(error).encode()
        os.write(into, said)
        time.sleep(30)
        os._exit(0)
    try:
        said = os.read(out, 10_000).decode()
        assert "is written by the process that this one was forked from" in said
        assert "open for writing; close it" in said
        journal.append(1, b"parent again")
        journal.close()
        assert not is_locked(path)
        assert reopened(path) == [(1, b"parent"), (1, b"parent again")]
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(out)
        os.close(into)


def test_threads_append_whole_records(path: Path) -> None:
    with Journal.open(path, "snapshot", 0.01) as journal:

        def work(number: int) -> None:
            for i in range(200):
                payload = bytes([number]) * (i + 1)
                if i % 3 == 0:
                    journal.append(number, payload)
                else:
                    with journal.entry(number, payload):
                        pass

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = reopened(path)
    for number in range(4):
        sizes = [len(payload) for kind, payload in found if kind == number]
        assert sizes == [i + 1 for i in range(200)]
        assert all(set(payload) == {number} for kind, payload in found if kind == number)


# -- entries and successors


def test_an_entry_is_kept_before_the_block_and_taken_back_if_it_fails(path: Path) -> None:
    with Journal.open(path, "snapshot") as journal:
        with journal.entry(1, b"good"):
            assert read_journal(path, "snapshot") == [(1, b"good")]
        with pytest.raises(KeyError), journal.entry(1, b"bad"):
            raise KeyError
        journal.append(1, b"next")
    assert reopened(path) == [(1, b"good"), (1, b"next")]


@pytest.fixture
def begun(path: Path) -> Iterator[tuple[Journal, int]]:
    with Journal.open(path, "snapshot") as journal:
        journal.append(1, b"old")
        since = journal.size
        journal.append(1, b"new")
        journal.append(2, b"new as well")
        yield journal, since


def test_a_successor_has_what_came_since(path: Path, begun: tuple[Journal, int]) -> None:
    journal, since = begun
    then = path.with_name("journal-2.log")
    then.write_bytes(b"of another time")
    with journal.successor(then, "later", since) as take_over:
        assert read_journal(then, "later") == [(1, b"new"), (2, b"new as well")]
        take_over()
        assert is_locked(then)
    assert not is_locked(path)
    journal.append(3, b"there")
    assert read_journal(then, "later") == [(1, b"new"), (2, b"new as well"), (3, b"there")]
    assert read_journal(path, "snapshot") == [(1, b"old"), (1, b"new"), (2, b"new as well")]
    assert sorted(os.listdir(path.parent)) == [path.name, then.name]


def test_a_successor_that_is_not_taken_is_removed(path: Path, begun: tuple[Journal, int]) -> None:
    journal, since = begun
    then = path.with_name("journal-2.log")
    with pytest.raises(KeyError), journal.successor(then, "later", since):
        raise KeyError
    assert os.listdir(path.parent) == [path.name]
    journal.append(3, b"here")
    assert len(read_journal(path, "snapshot")) == 4


def test_a_successor_of_the_same_name_takes_over_at_once(path: Path, begun: tuple[Journal, int]) -> None:
    journal, since = begun
    with pytest.raises(KeyError), journal.successor(path, "snapshot", since):
        raise KeyError
    journal.append(3, b"here")
    assert read_journal(path, "snapshot") == [(1, b"new"), (2, b"new as well"), (3, b"here")]
    assert is_locked(path)


@pytest.mark.parametrize("same", [False, True])
def test_a_successor_without_room_leaves_the_journal(
    path: Path, begun: tuple[Journal, int], monkeypatch: pytest.MonkeyPatch, same: bool
) -> None:
    journal, since = begun
    monkeypatch.setattr(os, "write", failing(errno.ENOSPC, 1, 5))
    then = path if same else path.with_name("journal-2.log")
    with pytest.raises(OSError, match="No space"), journal.successor(then, "snapshot", since):
        pass
    monkeypatch.undo()
    assert os.listdir(path.parent) == [path.name]
    journal.append(3, b"here")
    assert len(read_journal(path, "snapshot")) == 4
