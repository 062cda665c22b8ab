"""update_rules gives what the same changes to a Matcher give; compacting changes nothing that can be seen."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo import RuleSyntaxError, RuleTypeError, SnapshotError, spark

pytestmark = pytest.mark.spark

RULES = "id string, expression string, weight double, tags array<string>"
CHANGES = RULES + ", change string"


def text(rng: random.Random) -> str:
    made = f"a = {rng.randrange(9)} and s = 's{rng.randrange(200)}'"
    if rng.random() < 0.3:
        made += f" or b > {rng.randrange(20)}"
    if rng.random() < 0.1:
        made += f" or many contains any ({rng.randrange(4)})"
    return made


def event(rng: random.Random) -> dict[str, Any]:
    return {"a": rng.randrange(9), "b": rng.randrange(20), "s": f"s{rng.randrange(200)}", "many": [rng.randrange(4)]}


def same(path: str, matcher: eligo.Matcher, events: list[dict[str, Any]], session: Any) -> None:
    """The rule set on disk is the matcher: its rules, their order, what they match, here and on Spark."""
    opened = eligo.open(path)
    assert list(opened) == list(matcher)
    assert len(opened) == len(matcher)
    assert opened.multi == matcher.multi
    assert [opened.match(one) for one in events] == [matcher.match(one) for one in events]
    assert all(opened.get(rule) == matcher.get(rule) for rule in list(matcher)[::7])
    frame = session.createDataFrame([{"id": i, **one} for i, one in enumerate(events)])
    found = spark.match(frame, path, keep=["id"], output="array").collect()
    assert {row.id: row.rules for row in found} == {i: matcher.match(one) for i, one in enumerate(events)}


def test_updates_are_those_of_a_matcher(session: Any, tmp_path: Path) -> None:
    rng = random.Random(11)
    path = str(tmp_path / "rules")
    rules = [(f"r{i:03d}", text(rng), float(i % 5), [f"t{i % 3}"]) for i in range(200)]
    spark.compile_rules(session.createDataFrame(rules, RULES), path, shards=3)
    matcher = eligo.Matcher()
    matcher.add_many(rules)
    events = [event(rng) for _ in range(60)]
    for step in range(4):
        changes: list[tuple[Any, ...]] = []
        for number in sorted(rng.sample(range(260), 40)):
            rule = f"r{number:03d}"
            if rule in matcher and rng.random() < 0.5:
                changes.append((rule, None, None, None, "remove"))
            else:
                changes.append((rule, text(rng), float(step), ["new"], rng.choice(["put", None])))
        for rule, _, _, _, change in changes:
            if change == "remove":
                matcher.remove(rule)
        matcher.add_many([row[:4] for row in changes if row[4] != "remove"], replace=True)
        done = spark.update_rules(path, session.createDataFrame(changes, CHANGES).repartition(3), compact=False)
        assert (done.version, done.parent, done.rules, done.rejected) == (step + 2, step + 1, len(matcher), 0)
        assert done.shards == 3
        assert done.deltas <= 4
    same(path, matcher, events, session)
    # Strings and attributes that only the deltas have, and the units of merged deltas, survive the compaction.
    compacted = spark.compact_rules(path, session)
    assert (compacted.rules, compacted.shards, compacted.deltas) == (len(matcher), 3, 0)
    same(path, matcher, events, session)
    spark.update_rules(path, session.createDataFrame([("after", "a = 1", 1.0, None, "add")], CHANGES))
    matcher.add("after", "a = 1")
    same(path, matcher, events[:10], session)
    assert list(eligo.open(path, version=1)) == [rule[0] for rule in rules]
    swept = spark.sweep(path, keep=1, grace=0)
    assert swept > 0
    same(path, matcher, events[:10], session)


def test_shards_that_have_grown_are_cut(session: Any, tmp_path: Path) -> None:
    rng = random.Random(12)
    path = str(tmp_path / "rules")
    rules = [(f"r{i:03d}", text(rng), 1.0, None) for i in range(40)]
    first = spark.compile_rules(session.createDataFrame(rules, RULES), path, shard_bytes=100_000)
    # Half of the new rules are equal, so they are in one bucket.
    changes = [(f"n{i:04d}", "a = 3" if i % 2 else text(rng), 1.0, None, "add") for i in range(2_000)]
    spark.update_rules(path, session.createDataFrame(changes, CHANGES), compact=False)
    matcher = eligo.Matcher()
    matcher.add_many([*rules, *(row[:4] for row in changes)])
    sizes = []
    for _ in range(3):
        done = spark.compact_rules(path, session)
        sizes.append(done.shards)
        assert done.rules == len(matcher)
    assert first.shards < sizes[0] <= sizes[1] <= sizes[2]
    same(path, matcher, [event(rng) for _ in range(20)], session)


def test_changes_that_are_rejected(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rules")
    spark.compile_rules(session.createDataFrame([("a", "x = 1"), ("b", "x = 2")], "id string, expression string"), path)
    bad = [
        ("a", "x = 9", 1.0, None, "add"),
        ("nobody", "x = 9", 1.0, None, "replace"),
        ("ghost", None, None, None, "remove"),
        ("c", "x =", 1.0, None, "put"),
        ("d", None, 1.0, None, "put"),
        ("e", "x = 1", 1.0, None, "upsert"),
        ("f", "x = 1", 1.0, None, "put"),
        ("f", "x = 2", 1.0, None, "put"),
        (None, "x = 1", 1.0, None, "put"),
    ]
    frame = session.createDataFrame([*bad, ("b", "x = 3", 1.0, None, "replace")], CHANGES)
    with pytest.raises(RuleSyntaxError, match="9 of 10 changes were rejected"):
        spark.update_rules(path, frame, on_error="raise")
    assert spark.versions(path)[-1].version == 1
    done = spark.update_rules(path, frame, compact=False)
    said = {row.id: row.message for row in done.rejects(session).collect()}
    assert len(said) == 8
    for rule, words in {
        "a": "already", "nobody": "no rule 'nobody'", "ghost": "no rule 'ghost'", "c": "expected a value",
        "d": "no expression", "e": "put, add, replace, remove", "f": "2 changes", None: "no id",
    }.items():  # fmt: skip
        assert words in said[rule]
    opened = eligo.open(path)
    assert list(opened) == ["a", "b"]
    assert opened.match({"x": 3}) == ["b"]
    nothing = spark.update_rules(path, frame.limit(0))
    assert (nothing.version, nothing.rejected, nothing.rejects(session).count()) == (done.version, 0, 0)


def test_removing_alone_needs_no_expression_and_all_may_go(session: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "rules")
    spark.compile_rules(session.createDataFrame([(1, "x = 1"), (2, "x = 2")], "id int, expression string"), path)
    gone = session.createDataFrame([(1, "remove"), (2, "remove")], "id int, change string")
    done = spark.update_rules(path, gone)
    assert done.rules == 0
    events = session.createDataFrame([(1,), (2,)], "x int")
    assert spark.match(events, path).count() == 0
    # Nothing is left, so ids may be of another kind.
    spark.update_rules(path, session.createDataFrame([("r", "x = 2")], "id string, expression string"))
    assert [row.rule for row in spark.match(events, path).collect()] == ["r"]


def test_what_is_no_update(session: Any, tmp_path: Path) -> None:
    frame = session.createDataFrame([("r", "x = 2")], "id string, expression string")
    with pytest.raises(SnapshotError, match="there is nothing there"):
        spark.update_rules(tmp_path / "nowhere", frame)
    path = tmp_path / "rules"
    spark.compile_rules(session.createDataFrame([(1, "x = 1")], "id int, expression string"), str(path))
    with pytest.raises(RuleTypeError, match="are integers, those of the changes strings"):
        spark.update_rules(path, frame)
    with pytest.raises(RuleTypeError, match="missing expression"):
        spark.update_rules(path, frame.select("id"))
    unchanged = spark.update_rules(path, session.createDataFrame([], "id int, expression string"))
    assert unchanged.version == 1
