"""Where kernels are kept: what is found, what is not, and what a bad file does."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from eligo.kernels import store
from eligo.kernels.archive import Archive, ArchiveError, write_archive
from eligo.kernels.native import Entry

ENTRY = Entry("kernel", "symbol", (("environment", "math", b"constants"),), b"code")
KEY = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for kept in (store._archive, store._unkept, store._sweep):
        kept.cache_clear()
    return tmp_path / "eligo-kernels"


def test_what_is_kept_is_found(folder: Path) -> None:
    assert store.find(KEY, "none") is None
    store.keep(KEY, ENTRY)
    assert store.find(KEY, "none") == ENTRY
    assert {path.name for path in folder.iterdir()} == {KEY, "swept"}


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: b"", lambda raw: raw[:9] + b"?" + raw[10:]])
def test_a_damaged_file_is_as_good_as_none(folder: Path, damage: Any, caplog: pytest.LogCaptureFixture) -> None:
    store.keep(KEY, ENTRY)
    (folder / KEY).write_bytes(damage((folder / KEY).read_bytes()))
    with caplog.at_level(logging.WARNING, "eligo"):
        assert store.find(KEY, "none") is None
    assert "compiled again" in caplog.text
    store.keep(KEY, ENTRY)
    assert store.find(KEY, "none") == ENTRY


def test_a_folder_that_cannot_be_written_is_said_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING, "eligo"):
        store.keep(KEY, ENTRY)
        store.keep(KEY, ENTRY)
    assert len(caplog.records) == 1
    assert "cannot be kept" in caplog.text
    assert store.find(KEY, "none") is None
    with store.compiling(KEY):
        pass
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert store.cache_folder() is None
    store.keep(KEY, ENTRY)
    assert store.find(KEY, "none") is None


def test_what_nobody_used_for_long_is_removed(folder: Path) -> None:
    old = time.time() - 100 * 86_400
    earlier = folder.parent / "kernels-0123" / "kernel.nbi"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("of an earlier version")
    folder.mkdir()
    for name in ("old", "used"):
        (folder / name).write_bytes(store.packed(ENTRY))
    for path in (folder / "old", folder / "used", earlier, earlier.parent):
        os.utime(path, (old, old))
    assert store.find("used", "none") == ENTRY
    store.keep(KEY, ENTRY)
    assert {path.name for path in folder.iterdir()} == {KEY, "used", "swept"}
    assert not earlier.exists()


def test_archive(tmp_path: Path) -> None:
    path = tmp_path / "all.kernels"
    kernels = {KEY: store.packed(ENTRY), "f" * 32: b"other"}
    write_archive(path, kernels)
    archive = Archive(path)
    assert len(archive) == 2
    assert {key: archive.get(key) for key in kernels} == kernels
    assert archive.get("0" * 32) is None
    whole = path.read_bytes()
    write_archive(path, dict(reversed(kernels.items())))
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda raw: raw[:10], "no archive"),
        (lambda raw: b"x" + raw[1:], "no archive"),
        (lambda raw: raw.replace(b"kernels 1", b"kernels 9"), "no archive"),
        (lambda raw: raw[:18], "cut short"),
        (lambda raw: raw[:40], "damaged"),
        (lambda raw: raw[:30] + b"?" + raw[31:], "damaged"),
    ],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, damage: Any, words: str) -> None:
    path = tmp_path / "all.kernels"
    write_archive(path, {KEY: store.packed(ENTRY)})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ArchiveError, match=words):
        Archive(path)


def test_an_archive_in_the_package(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store, "__file__", str(tmp_path / "store.py"))
    path = tmp_path / "mine.kernels"
    write_archive(path, {KEY: store.packed(ENTRY)})
    assert store.find(KEY, "mine") == ENTRY
    assert store.find(KEY, "other") is None
    # Cut short behind the table: it opens, and the kernel is not there.
    store._archive.cache_clear()
    path.write_bytes(path.read_bytes()[:-5])
    with caplog.at_level(logging.WARNING, "eligo"):
        assert store.find(KEY, "mine") is None
        store._archive.cache_clear()
        path.write_bytes(b"something else")
        assert store.find(KEY, "mine") is None
    assert len(caplog.records) == 2


PROGRAM = """
    import logging, sys, time
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    from eligo.jit import kernel
    from eligo.kernels import native
    {before}
    @kernel
    def double(x):
        return x + x
    print(double({value}), flush=True)
"""


def _start(value: object, before: str = "") -> subprocess.Popen[str]:
    program = textwrap.dedent(PROGRAM.format(value=value, before=textwrap.dedent(before).replace("\n", "\n    ")))
    return subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _said(process: subprocess.Popen[str]) -> list[str]:
    said = process.communicate(timeout=120)[0]
    assert process.returncode == 0, said
    return [line for line in said.splitlines() if line.split()[0] in ("compiled", "compiling") or "double" not in line]


SLOWLY = """
made = native.make_entry
def slowly(*given):
    print("compiling", flush=True)
    {what}
    return made(*given)
native.make_entry = slowly
"""


def test_who_wants_what_another_is_compiling_waits_and_loads_it(folder: Path) -> None:
    first = _start(2, SLOWLY.format(what="time.sleep(3)"))
    assert first.stdout is not None
    assert first.stdout.readline() == "compiling\n"
    assert _said(_start(2)) == ["4"]
    assert _said(first)[-1] == "4"
    assert _said(_start(2)) == ["4"]
    assert _said(_start(2.5))[-1] == "5.0"


def test_who_dies_while_compiling_holds_nobody_up(folder: Path) -> None:
    dying = _start(3, SLOWLY.format(what="import os; os._exit(1)"))
    dying.communicate(timeout=120)
    said = _said(_start(3))
    assert said[-1] == "6"
    assert any(line.startswith("compiled double") for line in said)
