"""An exchange on disk: whole or not at all, and as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eligo
from eligo.exchange import Exchange
from eligo.exchange import snapshot as module

VISIT = {"category": "News", "age": 4}


def made(campaigns: int = 3, ids: type = str) -> Exchange:
    x = Exchange(absent="classical", limits={"leaves": 100}, multi=["tags"])
    x.add_node("P", "publisher")
    x.add_node("X", "intermediary")
    x.add_node("A", "advertiser")
    x.connect("P", "X", "category = 'Sports'")
    x.connect("X", "A")
    x.connect("P", "A", "category = 'News'  -- as written")
    x.book_many((ids(n), "A", "P", f"age >= {n}", None, n / 2) for n in range(campaigns))
    return x


@pytest.mark.parametrize("ids", [str, int])
def test_what_was_saved_comes_back(tmp_path: Path, ids: type) -> None:
    x = made(6, ids)
    x.cancel(ids(2))
    x.book(ids(1), "A", "P", "age = 4", ["P", "X", "A"], replace=True)
    x.save(tmp_path / "x")
    again = eligo.exchange.open(tmp_path / "x")
    assert (again.nodes, again.edges) == (x.nodes, x.edges)
    assert [again.get(name) for name in again] == [x.get(name) for name in x]
    for visit in (VISIT, {**VISIT, "category": "Sports"}):
        assert again.eligible("P", visit) == x.eligible("P", visit)
        assert again.top("P", visit) == x.top("P", visit)
    assert again.stats().path_edges == x.stats().path_edges
    assert again.limits.leaves == 100
    assert again.explain(VISIT, ids(0)).parts == x.explain(VISIT, ids(0)).parts
    for one in (x, again):  # and it goes on as if nothing had been
        one.book(ids(9), "A", "P", "age = 4")
        one.disconnect("P", "X", "reroute")
        assert one.eligible("P", VISIT) == [ids(0), ids(1), ids(3), ids(4), ids(9)]
    with pytest.raises(eligo.RuleTypeError):
        again.book(9 if ids is str else "9", "A", "P", "true")


def test_an_empty_exchange_comes_back(tmp_path: Path) -> None:
    Exchange().save(tmp_path / "x")
    again = eligo.exchange.open(tmp_path / "x")
    assert (len(again), again.nodes, again.edges) == (0, {}, [])
    again.add_node("P", "publisher")
    assert again.eligible("P", {}) == []


def test_saving_again_replaces_and_tidies(tmp_path: Path) -> None:
    x = made()
    x.save(tmp_path / "x")
    x.cancel("0")
    x.save(tmp_path / "x")
    assert len(list((tmp_path / "x").iterdir())) == 3
    assert eligo.exchange.open(tmp_path / "x").campaigns == ["1", "2"]


def test_a_failed_save_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = made()
    x.save(tmp_path / "x")
    before = sorted(tmp_path.rglob("*"))

    def broken(*_: object) -> None:
        raise OSError("no space left")

    for name in ("write_through", "_encoded"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, broken)
            with pytest.raises(OSError, match="no space left"):
                x.save(tmp_path / "x")
    assert sorted(tmp_path.rglob("*")) == before
    assert len(eligo.exchange.open(tmp_path / "x")) == 3


def test_damage_is_told(tmp_path: Path) -> None:
    place = tmp_path / "x"
    made().save(place)
    manifest, campaigns = place / "exchange.json", next(place.glob("campaigns-*"))
    raw = manifest.read_bytes()
    for broken in (raw[:-9], raw.replace(b"News", b"Mews"), b"[]"):
        manifest.write_bytes(broken)
        with pytest.raises(eligo.SnapshotError, match="damaged"):
            eligo.exchange.open(place)
    manifest.write_bytes(json.dumps({**json.loads(raw), "format": 99}).encode())
    with pytest.raises(eligo.SnapshotError, match="format 99"):
        eligo.exchange.open(place)
    manifest.write_bytes(raw)
    bytes_ = campaigns.read_bytes()
    campaigns.write_bytes(bytes_[:-1] + bytes([bytes_[-1] ^ 1]))
    with pytest.raises(eligo.SnapshotError, match="checksum of its campaigns"):
        eligo.exchange.open(place)
    campaigns.unlink()
    with pytest.raises(eligo.SnapshotError, match="damaged"):
        eligo.exchange.open(place)


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(eligo.SnapshotError, match="other things"):
        made().save(tmp_path)
    with pytest.raises(eligo.SnapshotError, match="is a file"):
        made().save(tmp_path / "letter.txt")
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / "letter.txt"):
        with pytest.raises(eligo.SnapshotError, match="no exchange"):
            eligo.exchange.open(place)
