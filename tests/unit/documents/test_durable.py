"""Documents that last: whatever ends the process, what was acknowledged is there again, once."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eligo
from eligo import Documents, Matcher
from eligo.documents import durable
from eligo.store import journal as journals

CHILD = """
import sys
from eligo import Documents, Matcher
documents = Documents(keep=40, path=sys.argv[1], sync="never")
m = Matcher(documents=documents)
m.add("seen", "exists d in received (v = d.v) or v > 0", owner="ann")
documents.remove([number for number, _ in documents.items() if number % 7 == 0])
for i in range(documents._next, 100_000):
    m.publish({"v": i})
    if i % 7 == 0:
        documents.remove(i)
    print(i, flush=True)
"""


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    rng = random.Random(5)
    done = -1
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for _ in range(rng.randrange(30, 200)):
            done = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        done = max([done, *(int(line) for line in child.stdout.read().split("\n")[:-1])])
        child.wait()
        with Documents(path=tmp_path) as documents:
            numbers = [number for number, _ in documents.items()]
            assert numbers == sorted(set(numbers))
            assert all(document == {"v": number} for number, document in documents.items())
            there = set(numbers)
            # What was acknowledged is there, unless it was removed or is too old; one more may have been on its way.
            expected = [i for i in range(done + 1) if i % 7]
            newest = [i for i in expected if i > done - 30]
            assert set(newest) <= there
            assert max(there) <= done + 1
            assert not {i for i in there if i % 7 == 0 and i <= done}
            assert len(there) <= 40
            assert len(documents.received("ann")) == len([i for i in there if i > 0])
    assert done > 100


def test_what_was_kept_is_there_again(tmp_path: Path) -> None:
    with Documents(keep=5, path=tmp_path) as documents:
        documents.add_many([{"a": i} for i in range(4)])
        documents.add_many(pa.table({"a": [10, 11, 12], "s": ["x", None, "y"]}))
        documents.remove([4, 6])
        before = list(documents.items())
        with pytest.raises(eligo.JournalError):
            Documents(path=tmp_path)
    assert list(Documents.read(tmp_path / "documents.log").items()) == before
    with pytest.raises(eligo.JournalError, match="closed"):
        documents.add({"a": 5})
    with Documents(path=tmp_path) as documents:
        assert list(documents.items()) == before == [(2, {"a": 2}), (3, {"a": 3}), (5, {"a": 11})]
        assert documents.add({"a": 9}) == 7
        assert documents.keep.count == 5
    with Documents(keep=2, path=tmp_path) as documents:
        assert [number for number, _ in documents.items()] == [5, 7]
    with Documents(keep=None, path=tmp_path) as documents:
        assert [number for number, _ in documents.items()] == [5, 7]  # what was let go stays away


def test_ages_are_remembered(tmp_path: Path) -> None:
    day = date(2026, 1, 10)
    with Documents(keep="2d", at="t", path=tmp_path) as documents:
        number = documents.add({"t": day})
        documents.add({"t": day - timedelta(days=1)})
        documents.remove(number)
    with Documents(path=tmp_path) as documents:
        assert len(documents) == 1
        with pytest.raises(eligo.EventError, match="longer ago"):
            documents.add({"t": day - timedelta(days=3)})
    log = durable.Log(tmp_path / "documents.log", "never")
    log.rewrite(documents)
    log.journal.close()
    with Documents(path=tmp_path) as documents, pytest.raises(eligo.EventError, match="longer ago"):
        documents.add({"t": day - timedelta(days=3)})


def test_a_long_journal_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "_WORTH", 2000)
    m = Matcher(documents=Documents(keep=10, path=tmp_path, sync="never"))
    m.add("all", "a >= 0", owner="ann")
    documents = m.documents
    assert documents is not None
    documents.add_many(pa.table({"a": [0, 0]}))
    for i in range(2000):
        m.publish({"a": i})
    assert (tmp_path / "documents.log").stat().st_size < 10_000
    documents.close()
    with Documents(path=tmp_path) as documents:
        assert [one["a"] for one in documents] == list(range(1990, 2000))
        assert len(documents.received("ann")) == 10


@pytest.mark.parametrize("sync", ["always", "second", 0.5, "never"])
def test_a_full_disk_fails_the_call_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: Any
) -> None:
    with Documents(path=tmp_path, sync=sync) as documents:
        m = Matcher(documents=documents)
        m.add("seen", "exists d (a = d.a)")
        m.publish({"a": 1})
        real = os.write

        def full(handle: int, data: bytes) -> int:
            real(handle, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(journals.os, "write", full)
        for change in (
            lambda: m.publish({"a": 2}),
            lambda: documents.add_many([{"a": 2}] * 3),
            lambda: documents.add_many(pa.table({"a": [2]})),
            lambda: documents.remove(0),
            documents.clear,
        ):
            with pytest.raises(eligo.JournalError, match="No space left"):
                change()
        assert list(documents) == [{"a": 1}]
        assert m.match({"a": 1}) == ["seen"]
        assert m.match({"a": 2}) == []
        monkeypatch.setattr(journals.os, "write", real)
        m.publish({"a": 3})
    with Documents(path=tmp_path) as documents:
        assert list(documents) == [{"a": 1}, {"a": 3}]


def test_foreign_and_damaged_files(tmp_path: Path) -> None:
    with Documents(path=tmp_path / "d") as documents:
        for i in range(20):
            documents.add({"a": i})
    path = tmp_path / "d" / "documents.log"
    raw = path.read_bytes()
    for end in range(len(raw) - 80, len(raw)):  # torn off anywhere: a prefix is there
        path.write_bytes(raw[:end])
        with Documents(path=tmp_path / "d") as documents:
            assert [one["a"] for one in documents] == list(range(len(documents)))
            assert len(documents) >= 15
    path.write_bytes(raw[:200] + b"?" + raw[201:])
    with pytest.raises(eligo.JournalError):
        Documents(path=tmp_path / "d")
    path.write_bytes(b"no journal at all, but long enough to be taken for one, if nobody looked at it at all")
    with pytest.raises(eligo.JournalError):
        Documents(path=tmp_path / "d")
    (tmp_path / "file").write_text("x")
    with pytest.raises(eligo.OptionError, match="is a file"):
        Documents(path=tmp_path / "file")


def test_an_opened_matcher_keeps_what_it_publishes(tmp_path: Path) -> None:
    m = Matcher(documents=Documents())
    m.add("new", "not exists d in received (a = d.a)", owner="ann")
    m.publish({"a": 1})
    m.save(tmp_path / "s")
    with eligo.open(tmp_path / "s", writable=True) as opened:
        assert opened.publish({"a": 1}) == []
        assert opened.publish({"a": 2}) == ["new"]
        opened.add("seen", "exists d (a = d.a)", owner="bob")
    again = eligo.open(tmp_path / "s")
    assert again.match({"a": 2}) == ["seen"]
    assert again["seen"].owner == "bob"
    assert len(again.documents or ()) == 3
    with eligo.open(tmp_path / "s", writable=True) as opened:
        opened.save(tmp_path / "s")
        opened.publish({"a": 5})
    assert eligo.open(tmp_path / "s").match({"a": 5}) == ["seen"]
