"""What a public function is given is checked where it comes in: nothing but an EligoError, in one sentence, comes out."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import eligo
from eligo import EligoError, Limits, Matcher, OptionError, RuleTypeError, UnknownRuleError
from eligo.exchange import Exchange


class NoRepr:
    """A value whose own code fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no equality")

    __hash__ = None  # type: ignore[assignment]


ODD: dict[str, Any] = {
    "None": None, "True": True, "np.True_": np.True_, "-1": -1, "2**70": 2**70, "10**5000": 10**5000, "1.5": 1.5,
    "1.0": 1.0, "nan": math.nan, "inf": math.inf, "'a'": "a", "''": "", "bytes": b"a", "[1]": [1], "[[1]]": [[1]],
    "dict": {"a": 1}, "set": {1}, "object": object(), "no repr": NoRepr(), "array": np.array([1, 2]), "type": int,
    "function": len, "surrogate": "\ud800", "NUL": "\0", "date": date(2026, 1, 31), "Decimal": Decimal(1),
    "long": "x" * 10_000,
}  # fmt: skip


def matcher(index: str = "auto") -> Matcher:
    m = Matcher(index=index)
    m.add("a", "x = 1", tags=["t"])
    return m


def exchange() -> Exchange:
    e = Exchange()
    e.add_node("P", "publisher")
    e.add_node("A", "advertiser")
    e.connect("P", "A", "x = 1")
    e.book("c", "A", "P", "x = 1")
    return e


# A function of one value, and the odd values that it takes; all others it refuses.
CALLS: dict[str, tuple[Callable[[Any], object], set[str]]] = {
    "index": (lambda v: Matcher(index=v), set()),
    "evaluator": (lambda v: Matcher(evaluator=v), set()),
    "absent": (lambda v: Matcher(absent=v), set()),
    "multi": (lambda v: Matcher(multi=v), set()),
    "limits": (lambda v: Matcher(limits=v), {"None"}),
    "limits: depth": (lambda v: Matcher(limits={"depth": v}), {"2**70", "10**5000"}),
    "Limits(terms)": (lambda v: Matcher(limits=Limits(terms=v)), {"2**70", "10**5000"}),
    "add: id": (lambda v: Matcher().add(v, "x = 1"), {"-1", "'a'", "''", "NUL", "long"}),
    "add: expression": (lambda v: matcher().add("b", v), {"True", "'a'", "long"}),
    "add: weight": (lambda v: matcher().add("b", "x = 1", v), {"None", "-1", "2**70", "1.5", "1.0", "''", "Decimal"}),
    "add: tags": (lambda v: matcher().add("b", "x = 1", tags=v), {"None", "'a'", "''", "NUL", "long"}),
    "add: replace": (lambda v: matcher().add("b", "x = 1", replace=v), {"True", "np.True_"}),
    "add_many: rules": (lambda v: matcher().add_many(v), set()),
    "add_many: rule": (lambda v: matcher().add_many([v]), set()),
    "add_many: on_error": (lambda v: matcher().add_many([], v), set()),
    "add_many: replace": (lambda v: matcher().add_many([], replace=v), {"True", "np.True_"}),
    "remove": (lambda v: matcher().remove(v), {"'a'"}),
    "get": (lambda v: matcher().get(v), {"'a'"}),
    "match: event": (lambda v: matcher().match(v), {"dict"}),
    "match: tags": (lambda v: matcher().match({}, tags=v), {"None", "'a'", "''", "NUL", "long"}),
    "match: limit": (lambda v: matcher().match({"x": 1}, limit=v), {"None", "2**70", "10**5000"}),
    "match_batch: events": (lambda v: matcher().match_batch(v), set()),
    "match_batch: event": (lambda v: matcher().match_batch([v]), {"dict"}),
    "match_batch: tags": (lambda v: matcher().match_batch([], tags=v), {"None", "'a'", "''", "NUL", "long"}),
    "match_batch: limit": (lambda v: matcher().match_batch([{"x": 1}], limit=v), {"None", "2**70", "10**5000"}),
    "match_batch: pairs": (lambda v: matcher().match_batch(pa.table({"x": [1]}), pairs=v), {"None"}),
    "top: k": (lambda v: matcher().top({"x": 1}, v), {"2**70", "10**5000"}),
    "top: tags": (lambda v: matcher().top({"x": 1}, tags=v), {"None", "'a'", "''", "NUL", "long"}),
    "top_batch: k": (lambda v: matcher().top_batch([{"x": 1}], v), {"2**70", "10**5000"}),
    "explain: rule": (lambda v: matcher().explain({"x": 1}, v), {"'a'"}),
    "observe": (lambda v: matcher().observe(v), set()),
    "Exchange: multi": (lambda v: Exchange(multi=v), set()),
    "add_node: name": (lambda v: exchange().add_node(v, "publisher"), {"'a'", "NUL", "long"}),
    "add_node: role": (lambda v: exchange().add_node("Q", v), set()),
    "remove_node": (lambda v: exchange().remove_node(v), set()),
    "connect: seller": (lambda v: exchange().connect(v, "A"), set()),
    "connect: replace": (lambda v: exchange().connect("P", "A", replace=v), {"True", "np.True_"}),
    "disconnect: campaigns": (lambda v: exchange().disconnect("P", "A", v), set()),
    "book: campaign": (lambda v: exchange().book(v, "A", "P", "x = 1"), {"'a'", "''", "NUL", "long"}),
    "book: path": (lambda v: exchange().book("n", "A", "P", "x = 1", v), {"None"}),
    "book: weight": (
        lambda v: exchange().book("n", "A", "P", "x = 1", None, v),
        {"None", "-1", "2**70", "1.5", "1.0", "''", "Decimal"},
    ),
    "book_many": (lambda v: exchange().book_many(v), set()),
    "cancel": (lambda v: exchange().cancel(v), set()),
    "eligible: publisher": (lambda v: exchange().eligible(v, {}), set()),
    "eligible: visit": (lambda v: exchange().eligible("P", v), {"dict"}),
    "exchange top: k": (lambda v: exchange().top("P", {"x": 1}, v), {"2**70", "10**5000"}),
    "eligible_batch: publisher": (lambda v: exchange().eligible_batch([{"publisher": "P"}], v), set()),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_an_odd_argument_is_refused_in_one_sentence(call: str) -> None:
    function, taken = CALLS[call]
    for name, value in ODD.items():
        if name in taken:
            function(value)
            continue
        with pytest.raises(EligoError) as refused:
            function(value)
        assert isinstance(refused.value, ValueError | TypeError | KeyError), name
        assert 0 < len(str(refused.value)) < 600 or name == "long", name


@pytest.mark.parametrize("where", ["matcher", "exchange"])
def test_a_path_names_a_directory(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = matcher() if where == "matcher" else exchange()
    read = eligo.open if where == "matcher" else eligo.exchange.open
    for name, value in ODD.items():
        if name == "'a'":
            continue
        with pytest.raises(OptionError):
            made.save(value)
        with pytest.raises(OptionError):
            read(value)
    made.save("a")
    made.save(tmp_path / "a")
    assert len(read(np.str_("a"))) == 1  # type: ignore[operator]
    for name, value in ODD.items():
        if name not in ("True", "np.True_"):
            with pytest.raises(OptionError, match="verify is True or False"):
                read("a", verify=value)
    if where == "matcher":
        for value in (1.5, "1", True, -1, 2**70):
            with pytest.raises(OptionError, match="version"):
                eligo.open("a", version=value)  # type: ignore[arg-type]


def test_generators_are_read_once_and_kept() -> None:
    m = Matcher(multi=(name for name in ["x"]))
    assert m.multi == {"x"}
    m.add("a", "x = 1", tags=(tag for tag in ["s", "t"]))
    assert m.get("a").tags == ("s", "t")
    assert m.match({"x": [1, 2]}, tags=(tag for tag in ["t"])) == ["a"]
    assert Exchange(multi=(name for name in ["x"]))._ledger.matcher.multi == {"x"}


def test_limits_are_positive() -> None:
    for wrong in (0, -5, True, 1.0):
        with pytest.raises(OptionError, match="limits: depth is a whole number of 1 or more"):
            Matcher(limits={"depth": wrong})
        with pytest.raises(OptionError, match="limits: depth is a whole number of 1 or more"):
            Matcher(limits=Limits(depth=wrong))  # type: ignore[arg-type]
    assert Matcher(limits={"depth": np.int64(7)}).limits == Limits(depth=7)  # type: ignore[dict-item]


@pytest.mark.parametrize("index", ["auto", "be-tree"])
def test_a_limit_beyond_all_rules_is_none_at_all(index: str) -> None:
    m = matcher(index)
    assert m.match({"x": 1}, limit=2**70) == m.match({"x": 1}, limit=np.int8(1)) == ["a"]
    assert m.match_batch([{"x": 1}], limit=2**70).num_rows == 1
    assert m.match_batch([{"x": 1}], limit=0).num_rows == 0
    assert m.top({"x": 1}, 2**70) == [("a", 1.0)]
    assert m.top({"x": 1}, k=0) == []
    assert m.top_batch([{"x": 1}], 2**70).num_rows == 1


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


@pytest.mark.parametrize("wrong", [{"limit": "1"}, {"tags": [1]}, {"on_error": "ignore"}, {"threads": 0}])
def test_arguments_are_checked_before_events_are_read(wrong: dict[str, Any]) -> None:
    m = Matcher()
    m.add(1, "x = 1")
    batch = pa.record_batch({"x": [1, 2]})
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    with pytest.raises(eligo.OptionError, match=next(iter(wrong))):
        m.match_batch(reader, **wrong)
    assert m.match_batch(reader).num_rows == 1


def test_ids_of_numpy_and_of_enums_are_plain_ids() -> None:
    for given, plain in ((np.int64(1), 1), (Number.ONE, 1), (np.str_("red"), "red"), (Colour.RED, "red")):
        m = Matcher()
        m.add(given, "x = 1")
        assert m.match({"x": 1}) == [plain]
        assert type(m.match({"x": 1})[0]) is type(plain)
        m.add_many([(given, "x = 2")], replace=True)
        assert given in m
        assert m.get(given).expression == "x = 2"
        assert m.explain({"x": 2}, given)
        m.remove(given)
        assert len(m) == 0
    with pytest.raises(RuleTypeError, match="a string or an integer, not True"):
        Matcher().add(True, "x = 1")
    with pytest.raises(UnknownRuleError):
        matcher().remove(True)


def test_one_string_of_tags_is_separated_as_in_a_csv_file() -> None:
    text = "id,expression,weight,tags\na,x = 1,2.5,tenant-5;email\nb,x = 1,, one ; \nc,x = 1,,\n"
    expected = {"a": (2.5, ("tenant-5", "email")), "b": (1.0, ("one",)), "c": (1.0, ())}
    rows = list(csv.DictReader(io.StringIO(text)))
    tables: list[Any] = [rows, csv.DictReader(io.StringIO(text)), [tuple(row.values()) for row in rows]]
    tables.append(pa.Table.from_pylist(rows))
    for given in tables:
        m = Matcher()
        m.add_many(given)
        assert {name: (m.get(name).weight, m.get(name).tags) for name in m} == expected
    assert m.match({"x": 1}, tags="email") == m.match({"x": 1}, tags="email;unknown") == ["a"]
    m.add("d", "x = 1", tags="s; t")
    m.add("e", "x = 1", tags=["s; t"])  # a list holds whole tags
    assert (m.get("d").tags, m.get("e").tags) == (("s", "t"), ("s; t",))


def test_repr_counts_as_a_person_does() -> None:
    assert repr(matcher()).startswith("<eligo.Matcher: 1 rule, index")
    assert repr(Matcher()).startswith("<eligo.Matcher: 0 rules, index")
    assert repr(exchange()) == "<eligo.exchange.Exchange: 2 nodes, 1 campaign>"


@pytest.mark.parametrize("mark", ["\U0010ffff", "\U0010fffe", "\U000ffffe"])
@pytest.mark.parametrize("index", ["auto", "pst-hash"])
def test_no_tag_is_taken_for_a_hidden_one(mark: str, index: str) -> None:
    m = eligo.Matcher(index, documents=eligo.Documents())
    with pytest.raises(eligo.EligoError, match=f"U\\+{ord(mark):X}"):
        m.add("a", "x = 1", tags=[f"{mark}bob"])
    columns = {"id": ["a", "b"], "expression": ["x = 1"] * 2, "tags": [[f"{mark}bob"], ["c"]]}
    for rules in ([("a", "x = 1", 0, [f"{mark}bob"]), ("b", "x = 1", 0, ["c"])], pa.table(columns)):
        rejects = m.add_many(rules, on_error="collect", replace=True)
        assert [reject.id for reject in rejects] == ["a"]
    assert m.match({"x": 1}) == ["b"]
    with pytest.raises(eligo.OptionError):
        m.match({"x": 1}, tags=[f"{mark}bob"])
