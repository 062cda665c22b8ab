"""Snapshots: what is saved is what is opened, and nothing damaged passes for whole."""

from __future__ import annotations

import errno
import os
import threading
import zlib
from pathlib import Path

import msgspec
import pytest

import eligo
from eligo.store import files, snapshot


@pytest.fixture(autouse=True, params=["propagation", "be-tree"])
def index(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Segments, and rules that change in place."""
    monkeypatch.setitem(globals(), "INDEX", request.param)
    return str(request.param)


def filled(rules: int = 300) -> eligo.Matcher:
    m = eligo.Matcher(INDEX, multi=["c"])
    m.add_many(
        (f"r{i}", f"(a = {i % 7} or s like 's{i % 5}%') and b > {i / 3} and not c = 'x'", i, ("t",))
        for i in range(rules)
    )
    return m


INDEX = ""
EVENTS = [{"a": i % 9, "b": float(i), "s": f"s{i % 6}z", "c": ["x", "y"][: i % 3]} for i in range(0, 200, 3)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rules.eligo"


def test_opened_is_as_saved(path: Path) -> None:
    m = filled()
    m.remove("r5")
    m.save(path)
    n = eligo.open(path)
    assert list(n) == list(m)
    assert [n.match(e) for e in EVENTS] == [m.match(e) for e in EVENTS]
    assert n.match_batch(EVENTS).equals(m.match_batch(EVENTS))
    assert n.get("r7") == m.get("r7")
    assert n.top(EVENTS[-1], 3) == m.top(EVENTS[-1], 3)
    assert (n.multi, n.absent, n.attributes) == (m.multi, m.absent, m.attributes)
    with pytest.raises(eligo.DuplicateRuleError):
        n.add("r7", "a = 1")


def test_an_opened_matcher_can_change_and_be_saved_in_its_place(path: Path) -> None:
    filled().save(path)
    n = eligo.open(path)
    n.add("new", "a = 1 and z = 'a string that was never seen'")
    n.remove("r1")
    n.add("r2", "a = 1", replace=True)
    before = {file.name for file in path.iterdir()}
    n.save(path)
    after = {file.name for file in path.iterdir()}
    assert len(after) == 3
    assert before != after
    k = eligo.open(path)
    assert k.match({"a": 1, "z": "a string that was never seen"}) == ["r2", "new"]
    assert [n.match(e) for e in EVENTS] == [k.match(e) for e in EVENTS]


def test_an_empty_matcher_and_integer_ids(path: Path) -> None:
    eligo.Matcher(INDEX, absent="classical").save(path)
    m = eligo.open(path)
    assert (len(m), m.absent, m.match({"a": 1})) == (0, "classical", [])
    m.add(7, "a = 1")
    m.save(path)
    assert eligo.open(path).match({"a": 1}) == [7]
    assert eligo.open(path).match_batch([{"a": 1}])["rule"].to_pylist() == [7]


def test_a_snapshot_without_options_opens(path: Path) -> None:
    """One that was written before there were any."""
    filled().save(path)
    manifest = msgspec.json.decode((path / "manifest.json").read_bytes())
    assert manifest["content"].pop("options") == {}
    content = msgspec.json.encode(manifest["content"])
    manifest["checksum"] = zlib.crc32(content)
    (path / "manifest.json").write_bytes(msgspec.json.encode({**manifest, "content": msgspec.Raw(content)}))
    assert len(eligo.open(path)) == 300
    assert eligo.open(path).options == filled(1).options


def test_saving_twice_gives_the_same_files(path: Path, tmp_path: Path) -> None:
    filled().save(path)
    filled().save(tmp_path / "other")
    assert sorted(os.listdir(path)) == sorted(os.listdir(tmp_path / "other"))
    assert (path / "manifest.json").read_bytes() == (tmp_path / "other" / "manifest.json").read_bytes()


def test_every_flipped_bit_is_found(path: Path) -> None:
    m = filled(40)
    m.save(path)
    expected = [m.match(e) for e in EVENTS]
    for file in path.iterdir():
        good = file.read_bytes()
        for place in range(0, len(good), max(1, len(good) // 97)):
            bad = bytearray(good)
            bad[place] ^= 4
            file.write_bytes(bad)
            try:
                opened = eligo.open(path)
            except eligo.SnapshotError as error:
                assert file.name in str(error)
            else:  # a byte between two arrays
                assert [opened.match(e) for e in EVENTS] == expected
                assert good[place] == 0
        file.write_bytes(good)
    eligo.open(path)


def test_truncated_missing_and_foreign_files_are_named(path: Path, tmp_path: Path) -> None:
    filled(40).save(path)
    segment = next(file for file in path.glob("*.bin") if not file.name.startswith("strings"))
    good = segment.read_bytes()
    segment.write_bytes(good[: len(good) // 2])
    with pytest.raises(eligo.SnapshotError, match="truncated"):
        eligo.open(path)
    segment.unlink()
    with pytest.raises(eligo.SnapshotError, match="missing"):
        eligo.open(path)
    manifest = path / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:50])
    with pytest.raises(eligo.SnapshotError, match="damaged"):
        eligo.open(path)
    manifest.write_bytes(b"")
    with pytest.raises(eligo.SnapshotError, match="damaged"):
        eligo.open(path)
    for place, message in [(tmp_path / "nowhere", "nothing there"), (tmp_path, "no manifest"), (manifest, "a file")]:
        with pytest.raises(eligo.SnapshotError, match=message):
            eligo.open(place)


@pytest.mark.parametrize(("step", "message"), [(1, "newer"), (-1, "older")])
def test_another_format_is_refused(path: Path, step: int, message: str) -> None:
    filled(3).save(path)
    manifest = path / "manifest.json"
    content = msgspec.json.decode(manifest.read_bytes())
    manifest.write_bytes(msgspec.json.encode({**content, "format": snapshot.FORMAT + step}))
    with pytest.raises(eligo.SnapshotError, match=message):
        eligo.open(path)


def test_saving_over_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    with pytest.raises(eligo.SnapshotError, match=r"precious\.txt"):
        filled(3).save(tmp_path)
    with pytest.raises(eligo.SnapshotError, match="is a file"):
        filled(3).save(tmp_path / "precious.txt")
    assert (tmp_path / "precious.txt").read_text() == "x"


def test_a_failed_save_leaves_the_old_snapshot(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(10).save(path)
    before = sorted((f.name, f.read_bytes()) for f in path.iterdir())

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        filled(20).save(path)
    monkeypatch.undo()
    assert len(eligo.open(path)) == 10
    assert sorted((f.name, f.read_bytes()) for f in path.iterdir()) == before


def test_opening_while_saving(path: Path) -> None:
    m = filled(50)
    m.save(path)
    stop = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        while not stop.is_set():
            try:
                n = eligo.open(path)
                assert n.match({"k": len(n)}) == ["last"] or len(n) == 50
            except BaseException as error:
                failures.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(30):
        m.add(f"n{i}", f"a = {i}")
        m.add("last", f"k = {len(m) + ('last' not in m)}", replace=True)
        m.save(path)
    stop.set()
    reader.join()
    assert not failures


def test_directories_are_written_where_a_file_system_has_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(files.fcntl, "flock", refused)
    with files.locked(tmp_path):
        pass
    with files.turn(tmp_path / "lock") as alone:
        assert not alone
    m = eligo.Matcher()
    m.add("a", "x = 1")
    m.save(tmp_path / "rules")
    assert eligo.open(tmp_path / "rules").match({"x": 1}) == ["a"]
