"""Many rules at once are what they are one by one: the same rules, rejects and answers, however they come."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.rule_texts import drawn, mutated

import eligo
from eligo import bulk
from eligo.compile.rule_text import reader
from eligo.errors import EligoError
from eligo.evaluate.registry import EVALUATORS
from eligo.language import parse, to_json

EVENTS: list[dict[str, Any]] = [
    {"a": 1, "b": 2, "c": {"d": "x"}, "m": [1, "x"], "n": {"o": ["x", "y"]}},
    {"a": 2.5, "b": "abc", "_e9": True, "m": []},
    {"a": "x", "b": 3, "f g": 10, "or": "it's", "Date": 0},
    {"a": True, "b": False, "m": [2, 3, 2.5], "näme": 1},
    {},
]


def good(draw: random.Random) -> str:
    """A rule's text that is right more often than not."""
    while True:
        text = drawn(draw, draw.choice((1, 3, 4)))
        try:
            parse(text)
        except EligoError:
            if draw.random() < 0.9:
                continue
        return text if draw.random() < 0.95 else mutated(draw, text)


def rows_drawn(draw: random.Random, count: int, integers: bool) -> list[tuple[Any, ...]]:
    """Rows with some of all that may be wrong with them."""
    rows: list[tuple[Any, ...]] = []
    for number in range(count):
        rule: Any = number if draw.random() < 0.95 else draw.randrange(count)
        rule = rule if integers else f"rule {rule}"
        if draw.random() < 0.01:
            rule = None
        text = None if draw.random() < 0.01 else good(draw)
        weight = draw.choice((None, None, 1.0, 2.5, float("inf") if draw.random() < 0.1 else 3.0))
        tags = draw.choice((None, None, ["t"], ["t", "u", "t"], [""] if draw.random() < 0.1 else []))
        rows.append((rule, text, weight, tags, draw.choice((None, None, "who", "" if draw.random() < 0.1 else "me"))))
    return rows


def as_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    ids, texts, weights, tags, owners = zip(*rows, strict=True)
    return pa.table(
        {
            "id": pa.array(ids),
            "expression": pa.array(texts, pa.string()),
            "weight": pa.array(weights, pa.float64()),
            "tags": pa.array(tags, pa.list_(pa.string())),
            "owner": pa.array(owners, pa.string()),
        }
    )


def in_other_forms(draw: random.Random, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The same rules as nodes, JSON forms and these encoded, some of which are wrong."""
    made = []
    for rule, text, *rest in rows:
        expression: Any = text
        if text is not None and draw.random() < 0.8:
            try:
                root = parse(text)
                form: Any = to_json(root)
                wrong = {"and": [form, {"attr": "a", "op": "=="}]} if draw.random() < 0.02 else form
                expression = draw.choice((root, wrong, json.dumps(wrong) if isinstance(wrong, dict) else wrong))
                expression = "{a = 1" if draw.random() < 0.02 else expression
            except EligoError:
                pass
        made.append((rule, expression, *rest))
    return made


def outcome(matcher: eligo.Matcher, given: Any, replace: bool, on_error: Any = "collect") -> tuple[Any, ...]:
    """All that can be seen of a load."""
    try:
        rejects: Any = matcher.add_many(given, on_error=on_error, replace=replace)
    except EligoError as error:
        rejects = type(error), str(error)
    rules = list(matcher.rules())
    matches = [answer(matcher, event) for event in EVENTS]
    tagged = [answer(matcher, event, ["t"]) for event in EVENTS]
    return rejects, rules, matches, tagged, sorted(matcher.engine.rules.multi), matcher.engine.rules.next_sequence


def answer(matcher: eligo.Matcher, event: dict[str, Any], tags: list[str] | None = None) -> Any:
    try:
        return matcher.match(event, tags=tags)
    except EligoError as error:  # lists, of attributes that no rule has made multi-valued
        return str(error)


def loaded(
    monkeypatch: pytest.MonkeyPatch, many: int, before: Any, given: Any, replace: bool, *settings: Any
) -> tuple[Any, ...]:
    monkeypatch.setattr(bulk, "MANY", many)
    matcher = eligo.Matcher(*settings[:2], absent=settings[2], limits=settings[3])
    if before:
        outcome(matcher, before, True)
    return outcome(matcher, given, replace)


@pytest.mark.parametrize(
    ("evaluator", "index"), [("interval", "pst-hash"), *((name, "auto") for name in EVALUATORS.own)]
)
def test_read_together_or_one_by_one_is_the_same(monkeypatch: pytest.MonkeyPatch, evaluator: str, index: str) -> None:
    for seed in range(6):
        draw = random.Random(f"{evaluator} {index} {seed}")
        integers = draw.random() < 0.5
        rows = rows_drawn(draw, 400, integers)
        before = rows_drawn(draw, 60, integers) if draw.random() < 0.5 else []
        settings = index, evaluator, draw.choice(("fails", "classical")), {"terms": 6} if draw.random() < 0.5 else None
        for given in (rows, in_other_forms(draw, rows), as_table(rows)):
            replace = draw.random() < 0.5
            slow = loaded(monkeypatch, 10**9, before, given, replace, *settings)
            monkeypatch.setattr(bulk, "_PIECE", draw.choice((64, 10**5)))
            monkeypatch.setattr(reader, "CHUNK", draw.choice((200, 5000, 10**6)))
            assert loaded(monkeypatch, 1, before, given, replace, *settings) == slow


def test_table_is_what_adding_each_rule_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MANY", 1)
    draw = random.Random(3)
    texts = [text for text in (good(draw) for _ in range(300)) if "contains" not in text]
    together, alone = eligo.Matcher(), eligo.Matcher()
    rejects = together.add_many(pa.table({"id": range(len(texts)), "expression": texts}), on_error="collect")
    for number, text in enumerate(texts):
        try:
            alone.add(number, text)
        except EligoError as error:
            assert [(one.message, one.position) for one in rejects if one.row == number] == [
                (str(error), getattr(error, "position", -1))
            ]
    assert list(together.rules()) == list(alone.rules())
    for event in EVENTS:
        assert answer(together, event) == answer(alone, event)


def test_first_bad_rule_is_named_and_nothing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(n, "a = 1") for n in range(50)]
    rows[20], rows[30] = (20, "a = "), (30, "b between 1")
    said = []
    for many in (1, 10**9):
        monkeypatch.setattr(bulk, "MANY", many)
        matcher = eligo.Matcher()
        with pytest.raises(EligoError) as caught:
            matcher.add_many(rows)
        said.append(str(caught.value))
        assert len(matcher) == 0
    assert said[0] == said[1]
    assert "rule 20 (row 20)" in said[0]


def test_attribute_that_becomes_multi_valued_within_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a >= 1 and a <= 3", "b = 1", "a contains any (7)", "a >= 1 and a <= 3", "b contains all (1, 2)", "b != 1"]
    results = []
    for many in (1, 10**9):
        monkeypatch.setattr(bulk, "MANY", many)
        matcher = eligo.Matcher()
        matcher.add_many(pa.table({"id": range(len(texts)), "expression": texts}))
        results.append([matcher.match(event) for event in ({"a": [0, 5]}, {"a": 2}, {"b": [1, 2]}, {"b": [3]})])
    assert results[0] == results[1]
    assert results[0][0] == [0, 3]


def test_journal_keeps_rules_that_were_read_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bulk, "MANY", 1)
    path = tmp_path / "rules.eligo"
    eligo.Matcher().save(path)
    draw = random.Random(5)
    rows = rows_drawn(draw, 200, False)
    with eligo.open(path, writable=True) as matcher:
        matcher.add_many(as_table(rows), on_error="collect")
        matcher.add_many(rows[:50], on_error="collect", replace=True)
        there = list(matcher.rules())
    with eligo.open(path) as again:
        assert list(again.rules()) == there


def test_ids_of_another_kind_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "MANY", 1)
    matcher = eligo.Matcher()
    matcher.add("x", "a = 1")
    rejects = matcher.add_many(pa.table({"id": [1, 2], "expression": ["a = 1", "b = 2"]}), on_error="collect")
    assert [reject.row for reject in rejects] == [0, 1]
    assert "the first rule's id is a string" in rejects[0].message


def test_unusual_columns_are_what_they_are_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a = 1", "a = 2 -- odd", "b = 'x'"]
    tables = [
        pa.table({"id": pa.array([1, 2, 2**63], pa.uint64()), "expression": texts}),
        pa.table({"id": pa.array([1, 2, 3], pa.int8()), "expression": pa.array(texts).dictionary_encode()}),
        pa.table({"id": pa.array(["é", "b", None], pa.large_string()), "expression": pa.array([*texts[:2], None])}),
        pa.table({"id": pa.array(["a", "b", "a"]).dictionary_encode(), "expression": texts, "weight": ["1", "x", ""]}),
        pa.table({"id": [1.5, 2.0, 3.0], "expression": texts}),
        pa.table({"id": [True, False, True], "expression": texts}),
        pa.table({"id": [1, 2, 3], "expression": [1, 2, 3]}),
        pa.table({"id": [1, 2, 3], "expression": texts, "tags": ["t;u", "", None], "owner": ["", "me", None]}),
        pa.table({"id": [1, 2, 3], "expression": texts, "tags": [[["t"]], [["u"]], [[]]], "weight": [1, None, 3]}),
        pa.table({"id": [1, 2, 3], "expression": texts, "tags": [{"t": 1}] * 3, "owner": [1, 2, 3]}),
        pa.concat_tables([pa.table({"id": [n], "expression": [text]}) for n, text in enumerate(texts)]),
        pa.table({"id": range(9), "expression": texts * 3}).slice(2, 5),
        pa.table({"id": range(9), "expression": texts * 3}).to_batches()[0].slice(1),
    ]
    for table in tables:
        for on_error in ("collect", "raise"):
            seen = []
            for many in (1, 10**9):
                monkeypatch.setattr(bulk, "MANY", many)
                seen.append(outcome(eligo.Matcher(), table, False, on_error))
            assert seen[0] == seen[1]


def test_unusual_rows_are_what_they_are_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(kind: str) -> list[Any]:
        texts = ["a = 1", "a = 2 -- odd", {"attribute": "a", "operator": "=", "value": 1}, "b = '\ud800'", None, "a =="]
        if kind == "generators":
            return [(n, text, 1, (tag for tag in ("t", "u"))) for n, text in enumerate(texts)]
        if kind == "numpy":
            return [(np.int64(n), text, np.float32(2), {"t"}) for n, text in enumerate(texts)]
        if kind == "mixed":
            return [(n if n % 2 else str(n), text) for n, text in enumerate(texts)]
        if kind == "dicts":
            return [{"id": n, "expression": text, "owner": "", "weight": "2"} for n, text in enumerate(texts)]
        return [*((str(n), text) for n, text in enumerate(texts)), 5, ("x",), (None, "a"), (True, "a"), ("\ud800", "a")]

    for kind in ("generators", "numpy", "mixed", "dicts", "no rules"):
        seen = []
        for many in (1, 10**9):
            monkeypatch.setattr(bulk, "MANY", many)
            seen.append(outcome(eligo.Matcher(), rows(kind), False))
        assert seen[0] == seen[1], kind
