"""Versions are opened as the matcher that they were made of, share what they can, and may be changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import eligo
from eligo.cli.files import is_snapshot
from eligo.segments.rule_set import RuleSet
from eligo.store import opening
from eligo.store.gc import sweep
from eligo.store.opening import open_held
from eligo.store.tables import TabledRules
from unit.store.making import Maker

EVENTS = [{"a": i % 9, "b": float(i), "s": f"s{i % 6}z", "c": ["x", "y"][: i % 3]} for i in range(0, 200, 7)]


def filled(path: Path, rules: int = 300, m: eligo.Matcher | None = None) -> Maker:
    m = m or eligo.Matcher("propagation", multi=["c"])
    m.add_many(
        (f"r{i}", f"(a = {i % 7} or s like 's{i % 5}%') and b > {i / 3} and not c = 'x'", i, ("t",))
        for i in range(rules)
    )
    return Maker(path, m)


def same(left: eligo.Matcher, right: eligo.Matcher) -> None:
    assert list(left) == list(right)
    assert [left.match(e) for e in EVENTS] == [right.match(e) for e in EVENTS]
    assert left.match_batch(EVENTS).equals(right.match_batch(EVENTS))
    assert [left.get(rule) for rule in left] == [right.get(rule) for rule in right]


def test_opened_is_as_published(path: Path) -> None:
    maker = filled(path)
    maker.publish()
    m = eligo.open(path)
    same(m, maker.matcher)
    assert m.top(EVENTS[-1], 3) == maker.matcher.top(EVENTS[-1], 3)
    assert (m.multi, m.absent, m.attributes) == (maker.matcher.multi, maker.matcher.absent, maker.matcher.attributes)
    assert str(m.explain(EVENTS[5], "r7")) == str(maker.matcher.explain(EVENTS[5], "r7"))
    assert is_snapshot(str(path))
    with pytest.raises(eligo.DuplicateRuleError):
        m.add("r7", "a = 1")


def test_deltas_dead_rules_and_old_versions(path: Path) -> None:
    maker = filled(path)
    first = maker.publish()
    maker.matcher.add("new", "a = 1 and z = 'never seen'")
    maker.matcher.add("r2", "a = 1", replace=True)
    maker.matcher.remove("r1")
    second = maker.publish()
    assert (second.parent, len(second.deltas), second.shards[0].dead) == (first.version, 1, 2)
    same(eligo.open(path), maker.matcher)
    old = eligo.open(path, version=first.version)
    same(old, filled(path).matcher)
    assert old.match({"a": 1, "z": "never seen"}) == []
    with pytest.raises(eligo.SnapshotError, match="no version 7, the newest is 2"):
        eligo.open(path, version=7)


def test_no_rules_and_integer_ids(path: Path) -> None:
    maker = Maker(path, eligo.Matcher("propagation", absent="classical"))
    maker.publish()
    m = eligo.open(path)
    assert (len(m), m.absent, m.match({"a": 1})) == (0, "classical", [])
    m.add("s", "a = 1")
    assert m.match({"a": 1}) == ["s"]
    maker.matcher.add(7, "a = 1")
    maker.publish()
    assert eligo.open(path).match_batch([{"a": 1}])["rule"].to_pylist() == [7]
    assert eligo.open(path).rule_type == pa.int64()


def test_an_index_that_changes_in_place_lies_in_segments_here(path: Path) -> None:
    m = eligo.Matcher("be-tree", "interval", multi=["c"])
    m.engine.take(RuleSet(m.engine.rules.recipe.index, m.engine.rules.recipe.evaluator, "fails", ["c"]))
    maker = filled(path, 40, m)
    maker.publish()
    opened = open_held(path)
    assert opened.engine.rules.kind == "segments"
    assert opened.content.version == opened.held.version == 1
    eligo.Matcher.of(opened.engine).add("new", "a = 1")
    maker.matcher.add("new", "a = 1")
    same(eligo.Matcher.of(opened.engine), maker.matcher)


def test_some_shards_alone(path: Path) -> None:
    maker = filled(path, 40)
    maker.matcher.add("new", "a = 1")
    content = maker.publish()
    assert (len(content.shards), len(content.deltas)) == (1, 1)
    assert len(eligo.Matcher.of(open_held(path, shards=[0]).engine)) == 41
    none = eligo.Matcher.of(open_held(path, shards=[]).engine)
    assert (len(none), none.match(EVENTS[0]), none.rule_type) == (0, [], pa.string())
    with pytest.raises(eligo.OptionError, match="1 shards"):
        open_held(path, shards=[1])


def test_a_later_version_opens_only_what_is_new(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maker = filled(path)
    maker.publish()
    first = eligo.open(path)
    maker.matcher.add("new", "a = 1")
    content = maker.publish()
    read: list[str] = []
    whole = opening.map_arrays
    monkeypatch.setattr(opening, "map_arrays", lambda d, f, v: (read.append(f.file), whole(d, f, v))[1])
    second = eligo.open(path)
    assert second.engine.rules.segments[0] is first.engine.rules.segments[0]  # type: ignore[attr-defined]
    assert content.shards[0].segment.file not in read
    assert content.deltas[0].segment.file in read
    same(second, maker.matcher)
    assert len(first) == 300
    assert "new" not in first


def test_a_file_is_verified_once(path: Path, monkeypatch: pytest.MonkeyPatch, forget: object) -> None:
    filled(path, 40).publish()
    asked: list[bool] = []
    whole = opening.map_arrays
    monkeypatch.setattr(opening, "map_arrays", lambda d, f, v: (asked.append(v), whole(d, f, v))[1])
    eligo.open(path)
    assert asked == [True, True]
    opening._segments.clear()
    opening._latest.clear()
    eligo.open(path)
    assert asked == [True, True, False, False]


def test_changes_stay_in_the_process(path: Path, tmp_path: Path) -> None:
    maker = filled(path)
    maker.publish()
    m, like = eligo.open(path), maker.matcher
    for one in (m, like):
        one.add("new", "a = 1 and z = 'never seen'")
        one.remove("r1")
        one.add("r2", "a = 1", replace=True)
        one.add_many([(f"m{i}", f"a = {i % 9} or k = 'k{i}'") for i in range(100)])
        one.add_many([("r3", "b < 9"), ("r4", "s = 's4z'")], replace=True)
    same(m, like)
    assert str(m.explain(EVENTS[5], "r7")) == str(like.explain(EVENTS[5], "r7"))
    m.save(tmp_path / "plain")
    same(eligo.open(tmp_path / "plain"), like)
    same(eligo.open(path), filled(path).matcher)


def test_a_rule_that_makes_others_multi_valued(path: Path) -> None:
    maker = filled(path)
    maker.publish()
    m, like = eligo.open(path), maker.matcher
    for one in (m, like):
        one.add("several", "a contains any (1, 2)")
        assert one.multi == {"a", "c"}
        assert "several" in one.match({"a": [1, 5], "b": 0.0, "c": []})
    same(m, like)
    for one in (m, like):
        one.remove("several")
    same(m, like)


def test_saved_as_it_was_opened(path: Path, tmp_path: Path) -> None:
    maker = filled(path)
    maker.publish()
    eligo.open(path).save(tmp_path / "plain")
    maker.matcher.save(tmp_path / "other")
    assert sorted(f.name for f in (tmp_path / "plain").iterdir()) == sorted(
        f.name for f in (tmp_path / "other").iterdir()
    )
    with pytest.raises(eligo.SnapshotError, match="holds versions"):
        maker.matcher.save(path)
    with pytest.raises(eligo.OptionError, match="plain snapshot"):
        eligo.open(tmp_path / "plain", version=1)


def test_merging_what_lies_in_one_place_reads_no_text(path: Path) -> None:
    maker = filled(path)
    maker.publish()
    maker.matcher.add("new", "a = 1")
    maker.publish()
    rules = eligo.open(path).engine.rules
    merged, _ = rules._merged([0, 1])  # type: ignore[attr-defined]
    assert isinstance(merged.table, TabledRules)
    assert merged.table.text(300) == "a = 1"
    assert merged.table.text_array().to_pylist() == [maker.matcher.get(rule).expression for rule in maker.matcher]
    assert not isinstance(merged.table.written(), TabledRules)


def test_a_matcher_holds_its_version(path: Path) -> None:
    maker = filled(path, 40)
    maker.publish()
    m = eligo.open(path)
    for i in range(3):
        maker.matcher.add(f"new{i}", "a = 1")
        maker.matcher.remove(f"r{i}")
        maker.publish()
    sweep(path, keep=1, grace=0)
    assert m.get("r5") == maker.matcher.get("r5")
    assert len(eligo.open(path, version=1)) == 40
    del m
    sweep(path, keep=1, grace=0)
    with pytest.raises(eligo.SnapshotError, match="version 1 was removed"):
        eligo.open(path, version=1)
    same(eligo.open(path), maker.matcher)
