"""Nothing damaged passes for whole: never a wrong answer, always an error that names the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import eligo
from eligo.store.tables import Texts
from eligo.store.versions import Content, _content, hold, manifest_path
from unit.store.making import Maker

Forget = Callable[[], None]


@pytest.fixture
def content(path: Path) -> Content:
    """Two versions, the second with a delta and dead rules."""
    maker = Maker(path)
    maker.matcher.add_many((f"r{i}", f"a = {i % 7} and s = 's{i}' or s like 's{i % 5}%x'") for i in range(60))
    maker.publish()
    maker.matcher.remove("r7")
    maker.matcher.add("new", "a = 1")
    return maker.publish()


def refused(path: Path, file: Path, ask: Callable[[], object] | None = None) -> None:
    with pytest.raises(eligo.SnapshotError) as caught:
        ask() if ask is not None else eligo.open(path)
    assert file.name in str(caught.value)


@pytest.mark.parametrize("which", ["CURRENT", "manifest"])
def test_every_flipped_bit_of_what_names_the_rest(path: Path, content: Content, which: str) -> None:
    file = path / "CURRENT" if which == "CURRENT" else manifest_path(path, content.version)
    good = file.read_bytes()
    for place in range(len(good)):
        for bit in range(8) if which == "CURRENT" else (2, place % 8):
            bad = bytearray(good)
            bad[place] ^= 1 << bit
            if which == "manifest":  # too many for the disk
                refused(path, file, lambda bad=bytes(bad): _content(file, bad, content.version))
                if place % 499 or bit != 2:
                    continue
            file.write_bytes(bad)
            refused(path, file, lambda: hold(path))
    for cut in (0, 1, len(good) // 2, len(good) - 1):
        file.write_bytes(good[:cut])
        refused(path, file)
    file.write_bytes(good + b"0")
    refused(path, file)
    file.unlink()
    refused(path, file)
    file.write_bytes(good)
    assert len(eligo.open(path)) == 60


def test_a_manifest_under_a_wrong_name(path: Path, content: Content) -> None:
    file = manifest_path(path, 1)
    manifest_path(path, content.version).write_bytes(file.read_bytes())
    with pytest.raises(eligo.SnapshotError, match="manifest of version 1, under a wrong name"):
        eligo.open(path)


def test_every_array_of_every_file(path: Path, content: Content, forget: Forget) -> None:
    assert content.dead is not None
    tried = 0
    for described in (content.strings, content.dead, *(part.segment for part in content.parts)):
        file = path / "data" / described.file
        good = file.read_bytes()
        for entry in described.arrays:
            size = np.dtype(entry.dtype).itemsize * int(np.prod(entry.shape))
            if not size:
                continue
            bad = bytearray(good)
            bad[entry.offset + tried * 7919 % size] ^= 1 << tried % 8
            tried += 1
            file.write_bytes(bad)
            forget()
            with pytest.raises(eligo.SnapshotError) as caught:
                eligo.open(path)
            assert file.name in str(caught.value)
            assert repr(entry.name) in str(caught.value)
        for cut in (0, 63, len(good) // 2, len(good) - 1):
            file.write_bytes(good[:cut])
            forget()
            refused(path, file)
        file.write_bytes(b"E" + good[1:])
        forget()
        refused(path, file)
        file.unlink()
        forget()
        refused(path, file)
        file.write_bytes(good)
    forget()
    assert len(eligo.open(path)) == 60
    assert tried > 50


def test_every_part_of_a_table(path: Path, content: Content, forget: Forget) -> None:
    described = content.texts[0]
    file = path / "data" / described.file
    good = file.read_bytes()
    for place in range(0, len(good), max(1, len(good) // 150)):
        bad = bytearray(good)
        bad[place] ^= 16
        file.write_bytes(bad)
        texts = Texts(path / "data", content.texts)
        refused(path, file, lambda texts=texts: texts.text(3))
        refused(path, file, lambda texts=texts: texts.many([3, 4]))
    for cut in (0, 4, len(good) // 2, len(good) - 1):
        file.write_bytes(good[:cut])
        forget()
        opened = eligo.open(path)
        refused(path, file, lambda opened=opened: opened.get("r3"))
        assert opened.match({"a": 3, "s": "s3"}) == ["r3"]  # no text is needed for that
    file.unlink()
    refused(path, file, lambda: Texts(path / "data", content.texts).text(3))
    file.write_bytes(good)
    assert Texts(path / "data", content.texts).text(3) == "a = 3 and s = 's3' or s like 's3%x'"


def test_a_page_has_a_checksum_of_its_own(path: Path, content: Content) -> None:
    """Damage after the file was verified, or where nobody asked for that."""
    file = path / "data" / content.texts[0].file
    metadata = pq.ParquetFile(file).metadata
    column = next(
        metadata.row_group(0).column(i)
        for i in range(metadata.num_columns)
        if metadata.row_group(0).column(i).path_in_schema == "expression"
    )
    good = file.read_bytes()
    for place in range(column.total_compressed_size - 40, column.total_compressed_size, 7):
        bad = bytearray(good)
        bad[column.data_page_offset + place] ^= 1
        file.write_bytes(bad)
        refused(path, file, lambda: Texts(path / "data", content.texts, verify=False).text(3))


def test_verification_can_be_left_out(path: Path, content: Content, forget: Forget) -> None:
    file = path / "data" / content.shards[0].segment.file
    entry = next(e for e in content.shards[0].segment.arrays if e.name == "rules/weight")
    bad = bytearray(file.read_bytes())
    bad[entry.offset + 3] ^= 1
    file.write_bytes(bad)
    forget()
    assert len(eligo.open(path, verify=False)) == 60
    forget()
    refused(path, file)
