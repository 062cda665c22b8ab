"""Publishing and sweeping: one version or another, whatever crashes and whoever else is at it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import eligo
from eligo.store import publish as publishing_module
from eligo.store.gc import is_due, sweep
from eligo.store.opening import open_held
from eligo.store.publish import Staging, publish, publishing
from eligo.store.versions import Content, current_version, hold, is_versioned, manifest_path, version_numbers, versions
from unit.store.making import Maker

CALLS = ("replace", "link", "unlink", "fsync", "utime", "open")  # what `publish` asks of the system


def child(work: Callable[[], object]) -> int:
    """Run it in a process of its own, which ends without any cleaning up; the process."""
    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return process


def code_of(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def publish_and_crash(staging: Staging, prepared: tuple[list[str], object], calls: int) -> None:
    """Publish, but end the process before the system call of this number."""
    left = [calls]

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def instead(*given: object, **named: object) -> object:
            if left[0] == 0:
                os._exit(9)
            left[0] -= 1
            return call(*given, **named)

        return instead

    for name in CALLS:
        setattr(os, name, counted(getattr(os, name)))
    publish(staging, *prepared)  # type: ignore[arg-type]


def test_a_crash_anywhere_leaves_one_version_or_the_other(path: Path) -> None:
    maker = Maker(path)
    maker.matcher.add_many((f"r{i}", f"a = {i}") for i in range(20))
    maker.publish()
    crashes, outcomes = 0, set()
    while True:
        before = len(eligo.open(path))
        maker.matcher.add(f"n{crashes}", "b = 1")
        after = len(maker.matcher)
        staging, known = Staging.begin(path), maker._known
        prepared = maker.prepare(staging)
        code = code_of(child(lambda s=staging, p=prepared, n=crashes: publish_and_crash(s, p, n)))
        os.close(staging._handle)  # its driver has died too
        newest = current_version(path)
        assert code in (0, 9)
        found = eligo.open(path)
        assert len(found) in (before, after)
        outcomes.add((code, len(found) == after))
        assert found.match({"b": 1}) == [f"n{i}" for i in range(crashes + (len(found) == after))]
        del found  # it holds its version
        maker._known = known
        content = maker.publish()
        assert content.version > newest
        sweep(path, keep=1, grace=0)
        assert version_numbers(path) == [content.version]
        assert {file.name for file in (path / "data").iterdir()} == set(content.files())
        assert not list((path / "staging").iterdir())
        assert len(eligo.open(path)) == after
        if code == 0:
            break
        crashes += 1
    assert outcomes == {(9, False), (9, True), (0, True)}
    assert crashes > 12


def test_a_first_version_that_crashed(path: Path) -> None:
    maker = Maker(path)
    maker.matcher.add("r", "a = 1")
    staging = Staging.begin(path)
    prepared = maker.prepare(staging)

    def work() -> None:
        publishing_module._set_current = lambda *_: os._exit(9)  # type: ignore[assignment]
        publish(staging, *prepared)

    assert code_of(child(work)) == 9
    assert is_versioned(path)
    with pytest.raises(eligo.SnapshotError, match="CURRENT"):
        eligo.open(path)
    maker.publish()
    assert (current_version(path), version_numbers(path)) == (2, [2])  # a number is not used again
    assert eligo.open(path).match({"a": 1}) == ["r"]


def test_a_lost_pointer_is_not_taken_for_a_beginning(path: Path) -> None:
    maker = Maker(path)
    maker.publish()
    maker.publish()
    (path / "CURRENT").unlink()
    for attempt in (lambda: maker.publish(expect_parent=2), lambda: eligo.open(path)):
        with pytest.raises(eligo.SnapshotError, match="CURRENT: missing"):
            attempt()
    assert version_numbers(path) == [1, 2]
    # What replaces all rules needs nothing of what was there; its number is a new one.
    assert maker.publish().version == 3
    assert len(eligo.open(path)) == len(maker.matcher)


def test_publishing_a_job_again_changes_nothing(path: Path) -> None:
    maker = Maker(path)
    maker.matcher.add("r", "a = 1")
    with Staging.begin(path) as staging:
        prepared = maker.prepare(staging)
        first = publish(staging, *prepared)
        assert publish(staging, *prepared, expect_parent=0) == first
        Maker(path).publish()
        assert publish(staging, *prepared) == first
    assert current_version(path) == 2


def test_an_update_of_another_version_is_refused(path: Path) -> None:
    maker = Maker(path)
    maker.publish(expect_parent=0)
    with pytest.raises(eligo.SnapshotError, match="run the update again"):
        maker.publish(expect_parent=0)
    maker.publish(expect_parent=1)
    assert [content.version for content in versions(path)] == [1, 2]


def test_what_would_not_open_is_not_published(path: Path) -> None:
    maker = Maker(path)
    maker.matcher.add("r", "a = 1")
    maker.publish()
    next((path / "data").glob("segment-*")).unlink()
    maker.matcher.add("s", "a = 2")
    with pytest.raises(eligo.SnapshotError, match=r"segment-.*missing.*nothing was published"):
        maker.publish()
    assert current_version(path) == 1


def test_many_publishers_take_turns(path: Path) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            maker = Maker(path)
            for _ in range(5):
                maker.publish()
        except BaseException as error:
            failures.append(error)
            raise

    other = child(work)
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert code_of(other) == 0
    chain = versions(path)
    assert [content.version for content in chain] == list(range(1, 21))
    assert [content.parent for content in chain] == list(range(20))
    assert len({content.job for content in chain}) == 20


def test_an_update_may_hold_the_lock_for_all_of_its_run(path: Path) -> None:
    Maker(path).publish()
    order = []
    with publishing(path):
        other = threading.Thread(target=lambda: order.append(("other", Maker(path).publish().version)))
        other.start()
        time.sleep(0.05)
        order.append(("ours", Maker(path).publish(expect_parent=1).version))
        sweep(path)
    other.join()
    assert order == [("ours", 2), ("other", 3)]


def test_a_reader_in_another_process_keeps_its_version(path: Path) -> None:
    maker = Maker(path)
    maker.matcher.add("r", "a = 1")
    maker.publish()
    ready, done = os.pipe(), os.pipe()

    def read() -> None:
        held = hold(path)
        os.write(ready[1], b"x")
        os.read(done[0], 1)
        os._exit(held.version)

    reader = child(read)
    os.read(ready[0], 1)
    for i in range(3):
        maker.matcher.add(f"n{i}", "a = 1")
        maker.publish()
    assert sweep(path, keep=1, grace=0) > 0
    assert version_numbers(path) == [1, 4]
    assert eligo.open(path, version=1).get("r").expression == "a = 1"
    os.write(done[1], b"x")
    assert code_of(reader) == 1
    for handle in (*ready, *done):
        os.close(handle)
    sweep(path, keep=1, grace=0)
    assert version_numbers(path) == [4]
    with pytest.raises(eligo.SnapshotError, match="version 1 was removed"):
        hold(path, 1)


def test_readers_while_versions_come_and_go(path: Path) -> None:
    maker = Maker(path)
    maker.matcher.add("last", "k = 0")
    maker.publish()
    stop = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        newest = 0
        while not stop.is_set():
            try:
                opened = open_held(path)
                assert opened.content.version >= newest
                newest = opened.content.version
                matcher = eligo.Matcher.of(opened.engine)
                assert matcher.match({"k": len(matcher) - 1}) == ["last"]
            except BaseException as error:
                failures.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(15):
        maker.matcher.add(f"n{i}", f"a = {i}")
        maker.matcher.add("last", f"k = {i + 1}", replace=True)
        maker.publish()
        sweep(path, keep=1, grace=0)
    stop.set()
    reader.join()
    assert not failures


def test_a_copy_without_empty_folders_can_be_swept(path: Path) -> None:
    Maker(path).publish()
    (path / "staging").rmdir()
    assert sweep(path, keep=1, grace=0) == 0


def test_what_a_sweep_leaves_alone(path: Path) -> None:
    maker = Maker(path)
    for _ in range(4):
        maker.publish()
    living, dead = Staging.begin(path), Staging.begin(path)
    os.close(dead._handle)
    (path / "data" / "segment-nobody-names.bin").write_bytes(b"x")
    assert not is_due(path)
    assert sweep(path) == 0
    hours_ago = time.time() - 3 * 3600
    for file in [*(path / "versions").iterdir(), *(path / "data").iterdir(), dead.folder / "lock", dead.folder]:
        os.utime(file, (hours_ago, hours_ago))
    assert is_due(path)
    assert sweep(path) == 4  # versions 1 and 2, the file without a version, the lock of the dead job
    assert version_numbers(path) == [3, 4]
    assert [folder.name for folder in (path / "staging").iterdir()] == [living.job]
    living.close()
    living.close()
    assert sweep(path, keep=1, grace=0) == 1
    assert eligo.open(path).match({}) == []
    for keep, grace in ((0, 0.0), (1, -1.0)):
        with pytest.raises(eligo.OptionError):
            sweep(path, keep=keep, grace=grace)


def test_publishing_sweeps_up_after_dead_jobs(path: Path) -> None:
    maker = Maker(path)
    maker.publish()
    dead = Staging.begin(path)
    os.close(dead._handle)
    hours_ago = time.time() - 3 * 3600
    for file in (dead.folder / "lock", dead.folder):
        os.utime(file, (hours_ago, hours_ago))
    maker.publish()
    assert not list((path / "staging").iterdir())


def test_while_a_manifest_is_damaged_no_data_is_swept_away(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    maker = Maker(path)
    for _ in range(3):
        maker.publish()
    damaged = manifest_path(path, 2)
    damaged.write_bytes(damaged.read_bytes()[:-40])
    orphan = path / "data" / "segment-nobody-names.bin"
    orphan.write_bytes(b"x")
    assert sweep(path, keep=2, grace=0) == 1  # version 1
    assert orphan.exists()
    assert str(damaged) in caplog.text
    assert sweep(path, keep=1, grace=0) == 2  # the damaged version and the file
    assert eligo.open(path).match({}) == []


def test_a_directory_of_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    with pytest.raises(eligo.SnapshotError, match=r"precious\.txt"):
        Staging.begin(tmp_path)
    with pytest.raises(eligo.SnapshotError, match="is a file"):
        Staging.begin(tmp_path / "precious.txt")
    eligo.Matcher().save(tmp_path / "plain")
    with pytest.raises(eligo.SnapshotError, match="plain snapshot"):
        Staging.begin(tmp_path / "plain")
    with pytest.raises(eligo.SnapshotError, match="nothing there"):
        hold(tmp_path / "nowhere")
    Staging.begin(tmp_path / "fresh").close()
    with pytest.raises(eligo.SnapshotError, match="no version has been published"):
        eligo.open(tmp_path / "fresh")


def test_versions_lists_what_is_published(path: Path) -> None:
    maker = Maker(path)
    maker.matcher.add("r", "a = 1")
    contents: list[Content] = [maker.publish() for _ in range(3)]
    assert versions(path) == contents
    with hold(path, 2) as held:
        assert (held.version, held.content) == (2, contents[1])
    held.close()
