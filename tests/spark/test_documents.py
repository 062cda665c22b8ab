"""Rules that ask about documents give on Spark what a local matcher gives over the same documents."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

import eligo
from eligo import spark
from eligo.spark.document_files import open_values
from eligo.spark.documents import ensure_values
from eligo.spark.worker_cache import facts
from eligo.store.versions import current_version, hold_documents

pytestmark = pytest.mark.spark

# Attribute, type, values. Events and documents have the same columns, so that every join has something to compare.
COLUMNS: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "n": ("bigint", (0, 1, 2, 5, 2**53, 2**53 + 1)),
    "f": ("double", (0.0, -0.0, 1.0, 1.5, float("nan"), float("inf"))),
    "p": ("decimal(20,2)", (Decimal("0.50"), Decimal("1.00"), Decimal("5.25"))),
    "s": ("string", ("", "a", "ab", "prefix-1", "prefix-12", "é")),
    "b": ("boolean", (True, False)),
    "day": ("date", (date(2026, 1, 31), date(2026, 2, 1))),
    "at": ("timestamp", (datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 1, 31, 12, tzinfo=UTC))),
    "words": ("array<string>", ("", "a", "ab", "prefix-1")),
}
SCHEMA: Final = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items()) + ", o struct<x: int>"
PAIRS: Final = [
    ("n", "n"), ("n", "f"), ("f", "n"), ("n", "p"), ("p", "f"), ("s", "s"), ("s", "words"), ("words", "s"),
    ("words", "words"), ("b", "b"), ("day", "at"), ("at", "at"), ("n", "s"), ("o.x", "n"), ("n", "o.x"), ("o", "n"),
    ("n", "nowhere"), ("nowhere", "n"),
]  # fmt: skip
CONSTANTS: Final = [
    "d.n >= 2", "d.s = 'a'", "d.words contains any ('a', 'ab')", "d.f is null", "d.day = date '2026-01-31'", "d.p < 1",
    "d.s like 'prefix%'", "d.words is not null", "n > 1", "b = true", "d.o is not null",
]  # fmt: skip
OPERATORS: Final = ("=", "!=", "<", "<=", ">", ">=")


def record(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (kind, values) in COLUMNS.items():
        roll = rng.random()
        if kind.startswith("array"):
            found[name] = None if roll < 0.3 else [rng.choice((*values, None)) for _ in range(rng.randrange(3))]
        else:
            found[name] = None if roll < 0.2 else rng.choice(values)
    found["o"] = None if rng.random() < 0.3 else {"x": rng.choice((None, 0, 1, 5))}
    return found


def join(rng: random.Random) -> str:
    mine, theirs = rng.choice(PAIRS)
    operators = ("=", "!=") if mine == "b" else OPERATORS
    return f"{mine} {rng.choice(operators)} d.{theirs}"


def body(rng: random.Random, single: bool) -> str:
    if single:
        return join(rng) if rng.random() < 0.7 else rng.choice(CONSTANTS)
    parts = [join(rng), rng.choice(CONSTANTS) if rng.random() < 0.6 else join(rng)]
    whole = f" {rng.choice(('and', 'and', 'or'))} ".join(parts)
    return whole if rng.random() < 0.8 else f"not ({whole})"


def rule(rng: random.Random, single: bool) -> str:
    text = f"{rng.choice(('exists', 'forall'))} d ({body(rng, single)})"
    text = text if rng.random() < 0.7 else f"not {text}"
    roll = rng.random()
    if roll < 0.2:
        return f"n >= 1 and {text}"
    return f"(s = 'a' or {text})" if roll < 0.4 else text


def rules(seed: int, count: int, single: bool = False) -> dict[str, str]:
    rng = random.Random(seed)
    return {f"r{i:03}": rule(rng, single or i % 2 == 0) for i in range(count)}


def frame(session: Any, records: list[dict[str, Any]], schema: str = SCHEMA) -> Any:
    return session.createDataFrame([tuple(one.values()) for one in records], schema)


def rules_df(session: Any, texts: dict[str, str]) -> Any:
    return session.createDataFrame(list(texts.items()), "id string, expression string")


def local(texts: dict[str, str], documents: list[dict[str, Any]], events: list[dict[str, Any]]) -> set[tuple[int, str]]:
    kept = eligo.Documents(keep=None)
    matcher = eligo.Matcher(documents=kept, multi=["words"])
    matcher.add_many(list(texts.items()))
    kept.add_many(documents)
    return {(number, str(found)) for number, event in enumerate(events) for found in matcher.match(event)}


def numbered(session: Any, events: list[dict[str, Any]]) -> Any:
    return frame(session, [{"id": i, **event} for i, event in enumerate(events)], f"id int, {SCHEMA}")


def pairs(answer: Any) -> set[tuple[int, str]]:
    return {(row.id, row.rule) for row in answer.collect()}


@pytest.fixture(scope="module")
def records() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rng = random.Random(3)
    return [record(rng) for _ in range(40)], [record(rng) for _ in range(60)]


@pytest.fixture
def folders(tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "rules"), str(tmp_path / "documents")


Records = tuple[list[dict[str, Any]], list[dict[str, Any]]]
Folders = tuple[str, str]


def test_answers_are_those_of_a_local_matcher(session: Any, records: Records, folders: Folders, tmp_path: Path) -> None:
    documents, events = records
    path, where = folders
    texts = rules(1, 120)
    # Before there are documents.
    assert spark.compile_rules(rules_df(session, texts), path, multi=["words"], shards=2).rejected == 0
    assert spark.compile_documents(frame(session, documents), where, file_documents=16).documents == len(documents)
    expected = local(texts, documents, events)
    frame_of_events = numbered(session, events)
    assert pairs(spark.match(frame_of_events, path, documents=where, keep=["id"])) == expected
    frame_of_events.coalesce(1).write.parquet(str(tmp_path / "events"))
    assert pairs(spark.match_files(tmp_path / "events", path, documents=where, session=session)) == expected
    one_by_one = spark.match(frame_of_events, path, documents=where, keep=["id"], memory=1)  # a pass for each shard
    assert pairs(one_by_one) == expected


def test_single_joins_need_no_documents_in_memory(session: Any, records: Records, folders: Folders) -> None:
    documents, events = records
    path, where = folders
    scalars = [{**one, "words": None} for one in documents]  # where each has one value, every single join is of values
    texts = {name: text for name, text in rules(2, 120, single=True).items() if " like " not in text}
    spark.compile_rules(rules_df(session, texts), path, multi=["words"])
    joining = facts(path, None, False).joining
    assert joining.searching == 0
    assert joining.rules == sum("d (" in text for text in texts.values())
    spark.compile_documents(frame(session, scalars).repartition(4), where)
    answer = spark.match(numbered(session, events), path, documents=where, keep=["id"], most_documents=0)
    assert pairs(answer) == local(texts, scalars, events)
    assert {entry.suffix for entry in (Path(where) / "values").iterdir()} == {".json", ".bin"}


def test_documents_come_and_go(session: Any, records: Records, folders: Folders) -> None:
    documents, events = records
    path, where = folders
    texts = rules(4, 60)
    spark.compile_rules(rules_df(session, texts), path, multi=["words"])
    spark.compile_documents(frame(session, documents[:20]), where)
    first = spark.match(numbered(session, events), path, documents=where, keep=["id"])
    assert pairs(first) == local(texts, documents[:20], events)
    done = spark.update_documents(where, frame(session, documents[20:]), remove="n >= 2 or words contains any ('a')")
    left = [one for one in documents[:20] if not ((one["n"] or 0) >= 2 or "a" in (one["words"] or ()))]
    assert (done.version, done.parent, done.documents) == (2, 1, len(left) + 20)
    second = spark.match(numbered(session, events), path, documents=where, keep=["id"])
    assert pairs(second) == local(texts, left + documents[20:], events)
    # What was planned with the first version keeps it.
    assert pairs(first) == local(texts, documents[:20], events)
    # A column that is missing is absent; nothing to do is no version.
    few = frame(session, documents[:2]).select("s", "n")
    assert spark.update_documents(where, few).documents == done.documents + 2
    assert spark.update_documents(where, remove="n = 77", session=session).version == 3
    emptied = spark.update_documents(where, remove="n is null or n is not null", session=session)
    assert (emptied.documents, emptied.files) == (0, 0)
    third = spark.match(numbered(session, events), path, documents=where, keep=["id"])
    assert pairs(third) == local(texts, [], events)


def test_many_small_files_become_one(session: Any, folders: Folders) -> None:
    path, where = folders
    spark.compile_rules(rules_df(session, {"new": "not exists d (n = d.n)", "low": "exists d (n < d.n)"}), path)
    spark.compile_documents(session.range(0).selectExpr("id as n"), where)
    events = session.range(30).selectExpr("cast(id as int) as id", "id as n")
    expected = {(i, "new") for i in range(30)}
    assert pairs(spark.match(events, path, documents=where)) == expected
    done = spark.update_documents(where, session.range(0, 20, 1, 12).selectExpr("id as n"))
    assert (done.documents, done.files) == (20, 1)
    expected = {(i, "new") for i in range(20, 30)} | {(i, "low") for i in range(19)}
    assert pairs(spark.match(events, path, documents=where)) == expected


def test_a_folder_that_was_made_anew_is_seen(session: Any, folders: Folders) -> None:
    path, where = folders
    spark.compile_rules(
        rules_df(session, {"known": "exists d (id = d.n)", "two": "exists d (id = d.n and id < d.n)"}), path
    )
    for number in (1, 2):
        spark.compile_documents(session.range(number, number + 1).selectExpr("id as n"), where)
        events = session.range(3).selectExpr("cast(id as int) as id")
        assert pairs(spark.match(events, path, documents=where)) == {(number, "known")}
        shutil.rmtree(where)


def test_values_of_files_go_with_the_files_and_are_made_again_if_damaged(session: Any, folders: Folders) -> None:
    where = folders[1]
    data = os.path.join(where, "data")

    def compiled(count: int) -> Any:
        spark.compile_documents(session.range(count).selectExpr("id as n"), where)
        with hold_documents(where) as held:
            return held.content

    first = compiled(3)
    ensure_values(session, where, data, first.tables, first.schema, ["n"])
    second = compiled(5)
    made = Path(where) / "values"
    assert {entry.name.partition("~")[0] for entry in made.iterdir()} == {*first.files(), *second.files()}
    spark.sweep(where, keep=1, grace=0)
    assert {entry.name.partition("~")[0] for entry in made.iterdir()} == {*second.files()}
    for entry in made.glob("*.bin"):
        entry.write_bytes(b"damaged")
    values = [open_values(where, data, table, second.schema, "n") for table in second.tables]
    assert sum(len(part.key) for part in values) == 5


def test_stream_takes_the_documents_that_are_current(
    session: Any, folders: Folders, tmp_path: Path, drained: Callable[..., list[list[Any]]]
) -> None:
    path, where = folders
    source = tmp_path / "events"
    source.mkdir()
    texts = {"new": "forall d (n != d.n)", "same": "exists d (n = d.n and s = d.s)"}
    spark.compile_rules(rules_df(session, texts), path)
    schema = "n bigint, s string"
    spark.compile_documents(session.createDataFrame([(1, "a")], schema), where)
    stream = session.readStream.schema(f"id int, {schema}").parquet(str(source))
    answer = spark.match(stream, path, documents=where, keep=["id"])

    def run() -> list[tuple[int, str]]:
        rows = [(0, 1, "a"), (1, 2, "b"), (2, 3, "c"), (3, None, None)]
        session.createDataFrame(rows, f"id int, {schema}").coalesce(1).write.mode("append").parquet(str(source))
        (batch,) = drained(answer)
        return sorted((row.id, row.rule) for row in batch)

    assert run() == [(0, "same"), (1, "new"), (2, "new")]
    spark.update_documents(where, session.createDataFrame([(2, "b")], schema))
    assert run() == [(0, "same"), (1, "same"), (2, "new")]
    spark.update_documents(where, remove="s = 'a'", session=session)
    # A rule that asks for what nobody asked before, and one without documents.
    changes = [("later", "exists d (s < d.s)"), ("plain", "n = 3")]
    spark.update_rules(path, session.createDataFrame(changes, "id string, expression string"))
    assert run() == [(0, "later"), (0, "new"), (1, "same"), (2, "new"), (2, "plain")]


def test_rules_that_ask_need_documents(session: Any, folders: Folders, tmp_path: Path) -> None:
    path, where = folders
    texts = {"ask": "exists d (n < d.n and s = d.s)", "plain": "n = 1", "got": "exists d in received (n = d.n)"}
    done = spark.compile_rules(rules_df(session, texts), path)
    assert (done.rules, done.rejected) == (2, 1)
    assert "on Spark nothing is delivered" in done.rejects(session).collect()[0].message
    events = session.createDataFrame([(1, 1, "a")], "id int, n bigint, s string")
    with pytest.raises(eligo.OptionError, match=r"1 of the rules .* spark.compile_documents"):
        spark.match(events, path)
    stream = session.readStream.schema(events.schema).parquet(str(tmp_path))
    with pytest.raises(eligo.OptionError, match="documents="):
        spark.match(stream, path)
    spark.register(session)
    with pytest.raises(Exception, match="functions of SQL have none"):
        session.sql(f"SELECT eligo_rules('{path}', struct(1 as n))").collect()
    with pytest.raises(eligo.SnapshotError, match="there are no documents at"):
        spark.match(events, path, documents=where)
    with pytest.raises(eligo.SnapshotError, match="holds rules, not documents"):
        spark.match(events, path, documents=path)
    spark.compile_documents(session.createDataFrame([(2, "a"), (3, "b")], "n bigint, s string"), where)
    with pytest.raises(eligo.SnapshotError, match="holds documents, not rules"):
        spark.match(events, where)
    with pytest.raises(eligo.OptionError, match=r"\('ask'\): they ask several things .* most_documents=1"):
        spark.match(events, path, documents=where, most_documents=1)
    assert pairs(spark.match(events, path, documents=where)) == {(1, "ask"), (1, "plain")}
    # When the rule goes, so does the need.
    change = session.createDataFrame([("ask", None, "remove")], "id string, expression string, change string")
    spark.update_rules(path, change)
    assert pairs(spark.match(events, path)) == {(1, "plain")}


def test_rules_that_cannot_be_asked_do_not_stop_a_stream(
    session: Any, folders: Folders, tmp_path: Path, drained: Callable[..., list[list[Any]]]
) -> None:
    path, where = folders
    source = tmp_path / "events"
    texts = {"one": "exists d (n < d.n)", "plain": "n = 1", "binary": "exists d (raw = d.n)"}
    spark.compile_rules(rules_df(session, texts), path)
    spark.compile_documents(session.range(3).selectExpr("id as n"), where)
    events = session.createDataFrame([(1, 1, "a", b"x")], "id int, n bigint, s string, raw binary")
    events.coalesce(1).write.parquet(str(source))
    stream = session.readStream.schema(events.schema).parquet(str(source))
    with_documents = spark.match(stream, path, documents=where, keep=["id"], most_documents=3, observe="seen")
    without = spark.compile_rules(rules_df(session, {"plain": "n = 1"}), f"{path}-plain")
    plain = spark.match(stream, without.path, keep=["id"])
    # From now on there are more documents than a worker may hold, and a rule that needs them.
    changes = session.createDataFrame([("two", "exists d (n < d.n and n = d.n)")], "id string, expression string")
    spark.update_rules(path, changes)
    spark.update_rules(without.path, changes)
    spark.update_documents(where, session.range(3).selectExpr("id as n"))
    assert [sorted(row.rule for row in batch) for batch in drained(with_documents)] == [["one", "plain"]]
    assert [[row.rule for row in batch] for batch in drained(plain, "other")] == [["plain"]]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("cast('a' as binary) as raw", "'raw' of the documents is of type binary, which no rule can compare: cast it"),
        ("array(array(1)) as m", "'m' of the documents is of type array<array<int>>"),
        ("named_struct('x', cast('a' as binary)) as s", "'s.x' of the documents is of type binary"),
        ("map(1, 2) as m", "whose keys are no strings"),
        ("parse_json('1') as v", "with variant_get"),
        ("1 as `a.b`, named_struct('b', 1) as a", "'a.b' of the documents is there more than once"),
        ("1 as a, 2 as a", "two columns of the documents have the name 'a'"),
    ],
)
def test_columns_that_no_rule_can_ask_are_refused(column: str, words: str, session: Any, folders: Folders) -> None:
    with pytest.raises(eligo.EventError) as error:
        spark.compile_documents(session.range(1).selectExpr(*split(column)), folders[1])
    assert words in str(error.value)


def split(columns: str) -> list[str]:
    """Expressions separated by commas outside of parentheses."""
    found, depth = [""], 0
    for letter in columns:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            found.append("")
        else:
            found[-1] += letter
    return found


def test_updates_that_do_not_fit_are_refused(session: Any, folders: Folders) -> None:
    where = folders[1]
    spark.compile_documents(session.range(3).selectExpr("id as number"), where)
    with pytest.raises(eligo.EventError, match="no column 'nubmer': did you mean 'number'"):
        spark.update_documents(where, session.range(3).selectExpr("id as nubmer"))
    with pytest.raises(eligo.EventError, match="of type string, and that of the documents is of type bigint: cast it"):
        spark.update_documents(where, session.range(3).selectExpr("cast(id as string) as number"))
    with pytest.raises(eligo.OptionError, match=r"remove names 'nubmer', .*did you mean 'number'"):
        spark.update_documents(where, remove="nubmer = 1", session=session)
    with pytest.raises(eligo.RuleSyntaxError):
        spark.update_documents(where, remove="number = ", session=session)
    with pytest.raises(eligo.OptionError, match="needs documents to add"):
        spark.update_documents(where)
    bad = session.range(1).selectExpr("cast(unhex('ff') as string) as number")
    with pytest.raises(eligo.EventError, match="no valid UTF-8"):
        spark.compile_documents(bad, f"{where}-bad")
    assert current_version(where) == 1


def test_events_with_values_that_cannot_be_compared_are_matched_by_other_rules(session: Any, folders: Folders) -> None:
    path, where = folders
    spark.compile_rules(rules_df(session, {"same": "exists d (s = d.s)", "plain": "id >= 0"}), path)
    spark.compile_documents(session.createDataFrame([("a",)], "s string"), where)
    events = session.range(3).selectExpr("cast(id as int) as id", "if(id = 1, cast(unhex('ff') as string), 'a') as s")
    found = pairs(spark.match(events, path, documents=where, keep=["id"]))
    assert found == {(0, "plain"), (0, "same"), (1, "plain"), (2, "plain"), (2, "same")}
