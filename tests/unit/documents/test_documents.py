"""Documents, the matcher that keeps them, and delivery."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eligo
from eligo import Documents, Matcher
from eligo.language.ranges import Above


def alerts(*rules: tuple[str, str], **settings: Any) -> tuple[Matcher, Documents]:
    documents = Documents(keep=None)
    m = Matcher(documents=documents, **settings)
    m.add_many(rules)
    return m, documents


# The examples of Index Structures and Algorithms for Efficient Profile Matching.


def test_example_3() -> None:
    m, _ = alerts(("smith", "author = 'Smith' and 10 <= price and price <= 30 and forall d (isbn != d.isbn)"))
    book = {"author": "Smith", "price": 20, "isbn": "1"}
    assert m.publish(book) == ["smith"]  # over no documents forall is true
    assert m.publish(book) == []
    assert m.publish(book | {"isbn": "2", "price": 31}) == []
    assert m.match(book | {"isbn": "2"}) == []  # it was there, if not for this rule
    assert m.match(book | {"isbn": "3"}) == ["smith"]


def test_example_5() -> None:
    m, documents = alerts(
        ("P1", "exists d (price < d.price)"), ("P2", "forall d (year > d.year)"), ("P3", "exists d (author = d.author)")
    )
    documents.add({"price": 10, "year": 2000, "author": "Smith"})
    documents.add({"price": 25, "year": 1999})
    event = {"price": 30, "year": 2001, "author": "Smith"}
    assert m.match(event) == ["P2", "P3"]
    vectors = [
        "".join(
            "1" if eligo.language.reference.pair_holds(q.body, event, one, "fails", frozenset()) else "0"
            for one in documents
        )
        for rule in ("P1", "P2", "P3")
        for q in eligo.language.quantified.quantifiers(eligo.language.parse(m[rule].expression))
    ]
    assert vectors == ["00", "11", "10"]


def test_examples_6_and_7() -> None:
    m, documents = alerts(
        ("ten", "price = 10 and exists d (d.price = price)"), ("less", "price < 10 and exists d (d.price = price)")
    )
    documents.add({"price": 10})
    assert m.match({"price": 10}) == ["ten"]
    assert m.match({"price": 9}) == []
    documents.add({"price": 9.0})
    assert m.match({"price": 9}) == ["less"]


def test_a_rule_with_two_quantifiers_needs_both() -> None:
    m, documents = alerts(("both", "exists d (a = d.a) and exists d (b = d.b)"), ("none", "x = 1"))
    documents.add({"a": 1})
    assert m.match({"a": 1, "b": 1}) == []
    documents.add({"b": 1})
    assert m.match({"a": 1, "b": 1, "x": 1}) == ["both", "none"]


# Keeping.


def test_the_newest_are_kept() -> None:
    documents = Documents(keep=3)
    for i in range(10):
        assert documents.add({"i": i}) == i
    assert [one["i"] for one in documents] == [7, 8, 9]
    documents.add_many(pa.table({"i": list(range(100, 110))}))
    assert list(documents.items()) == [(17, {"i": 107}), (18, {"i": 108}), (19, {"i": 109})]
    documents.remove(18)
    assert len(documents) == 2
    documents.add({"i": 1})
    assert [number for number, _ in documents.items()] == [17, 19, 20]


def test_documents_are_kept_by_age() -> None:
    documents = Documents(keep="7d", at="published")
    m = Matcher(documents=documents)
    m.add("seen", "exists d (isbn = d.isbn)")
    first = datetime(2026, 1, 1, tzinfo=UTC)
    m.publish({"isbn": "a", "published": first})
    m.publish({"isbn": "b", "published": date(2026, 1, 5)})
    assert m.match({"isbn": "a"}) == ["seen"]
    m.publish({"isbn": "c", "published": first + timedelta(days=7)})
    assert len(documents) == 3  # exactly so old is kept
    m.publish({"isbn": "d", "published": first + timedelta(days=7, microseconds=1)})
    assert m.match({"isbn": "a"}) == []
    assert len(documents) == 3
    with pytest.raises(eligo.EventError, match="longer ago than documents are kept"):
        m.publish({"isbn": "e", "published": date(2025, 12, 1)})
    with pytest.raises(eligo.EventError, match=r"kept by age.*'published'.*nothing"):
        m.publish({"isbn": "e"})
    with pytest.raises(eligo.EventError, match="give a date or a datetime"):
        documents.add({"published": 5})
    rejects = documents.add_many([{"published": 5}, {"isbn": "f", "published": date(2026, 1, 8)}], on_error="collect")
    assert [reject.row for reject in rejects] == [0]
    assert m.match({"isbn": "f"}) == ["seen"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keep": 0}, "1 or more"),
        ({"keep": "7 days"}, "an age such as '7d'"),
        ({"keep": "7d"}, "at='published'"),
        ({"keep": timedelta(0), "at": "t"}, "an age"),
        ({"keep": 5, "at": "t"}, "kept by age"),
        ({"keep": 1.5}, "number of documents"),
        ({"keep": "999999999w", "at": "t"}, "an age"),
        ({"keep": "7d", "at": 5}, "name of an attribute"),
    ],
)
def test_odd_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(eligo.OptionError, match=message):
        Documents(**settings)


def test_removing() -> None:
    documents = Documents()
    documents.add_many([{"a": i, "b": [i, i + 1]} for i in range(10)])
    assert documents.remove("a between 2 and 4 or b contains any (10)") == 4
    assert [one["a"] for one in documents] == [0, 1, 5, 6, 7, 8]
    with pytest.raises(eligo.OptionError, match="no document 2"):
        documents.remove([0, 2])
    assert documents[0] == {"a": 0, "b": [0, 1]}
    documents.remove(0)
    with pytest.raises(eligo.OptionError, match="no document 0"):
        documents[0]
    documents.clear()
    assert len(documents) == 0
    assert documents.add({"a": 1}) == 10


def test_documents_come_back_as_they_were() -> None:
    given = {
        "t": datetime(2020, 1, 1, 12, tzinfo=UTC), "naive": datetime(2020, 1, 1), "d": date(2020, 1, 1), "n": None, "x": 1.5,
        "big": 2**63 - 1, "s": "é", "l": [1, "a", True], "o": {"p": {"q": 1}},
    }  # fmt: skip
    documents = Documents()
    documents.add(given)
    assert list(documents) == [given]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (5, "a document is a mapping"),
        ({"a": 2**70}, "does not fit 64 bits"),
        ({"a": Above(5)}, "a document has values"),
        ({"a": b"bytes"}, "of type bytes"),
        ({"a": "\ud800"}, "no valid Unicode"),
        ({"a.b": 1, "a": {"b": 2}}, "given twice"),
        ({"a": {"b.c": 1, "b": {"c": 2}}}, "given twice"),
        ({"a": timedelta(1)}, "of type timedelta"),
        ({"a": [[1]]}, "a list within a list"),
    ],
)
def test_bad_documents_are_refused_and_nothing_is_lost(document: Any, message: str) -> None:
    m, documents = alerts(("r", "exists d (a.b = d.a.b or c = d.c)"))
    documents.add({"c": 1})
    for call in (documents.add, m.publish, lambda one: documents.add_many([{"c": 2}, one])):
        with pytest.raises(eligo.EventError, match=message):
            call(document)
    assert list(documents) == [{"c": 1}]
    assert len(documents.add_many([{"c": 2}, document, {"c": 3}], on_error="collect")) == 1
    assert [one["c"] for one in documents] == [1, 2, 3]


# Rules.


def test_a_matcher_without_documents_refuses_joins() -> None:
    m = Matcher()
    with pytest.raises(eligo.RuleTypeError, match=r"Matcher\(documents=eligo.Documents\(\)\)"):
        m.add("j", "exists d (a = d.a)")
    with pytest.raises(eligo.OptionError, match="documents"):
        m.publish({})
    with pytest.raises(eligo.OptionError, match=r"is an eligo\.Documents"):
        Matcher(documents=[])  # type: ignore[arg-type]


def test_saved_rules_need_documents(tmp_path: Path) -> None:
    m, documents = alerts(("seen", "exists d (a = d.a)"))
    documents.add({"a": 1})
    m.save(tmp_path / "s")
    opened = eligo.open(tmp_path / "s")
    assert opened.match({"a": 1}) == ["seen"]
    other = Documents()
    assert eligo.open(tmp_path / "s", documents=other).match({"a": 1}) == []
    next((tmp_path / "s").glob("documents-*.log")).unlink()
    with pytest.raises(eligo.SnapshotError, match="missing"):
        eligo.open(tmp_path / "s")
    assert eligo.open(tmp_path / "s", documents=other).match({"a": 1}) == []
    engine = eligo.open(tmp_path / "s", documents=other).engine
    with pytest.raises(eligo.OptionError, match=r"documents=eligo\.Documents"):
        Matcher.of(engine)


def test_attributes_are_those_that_joins_look_at_too() -> None:
    m, _ = alerts(("r", "x = 1 and exists d (a < d.b) and not exists d (y = 2 and d.c = 3)"))
    assert set(m.attributes) == {"x", "a", "y"}


def test_rules_that_come_after_documents_see_them() -> None:
    documents = Documents()
    documents.add_many(pa.table({"a": [1, 2, None], "s": ["x", None, "y"]}))
    documents.add({"a": [5, "b"], "n": {"x": 1}})
    m = Matcher(documents=documents)
    m.add("a", "exists d (a = d.a)")
    m.add("s", "exists d (s < d.s and d.a is null)")
    m.add("n", "exists d (d.n.x = a)")
    assert m.match({"a": 5}) == ["a"]
    assert m.match({"a": 1, "s": "x"}) == ["a", "s", "n"]


@pytest.mark.parametrize("index", ["propagation", "pst-hash", "stab-interval"])
def test_tags_limit_top_and_batches(index: str) -> None:
    documents = Documents()
    m = Matcher(index=index, documents=documents)
    for i in range(20):
        m.add(i, f"exists d (a {'<' if i % 2 else '>'} d.a)", weight=i, tags=["odd" if i % 2 else "even"])
    documents.add({"a": 5})
    assert m.match({"a": 4}) == list(range(1, 20, 2))
    assert m.match({"a": 4}, limit=2) == [1, 3]
    assert m.match({"a": 4}, tags=["even"]) == []
    assert m.match({"a": 6}, tags=["even"], limit=1) == [0]
    assert m.top({"a": 4}, 2) == [(19, 19.0), (17, 17.0)]
    table = pa.table({"a": [4, 5, 6, None]})
    assert m.match_batch(table, limit=2).to_pydict() == {"event": [0, 0, 2, 2], "rule": [1, 3, 0, 2]}
    assert m.top_batch(table, 1).to_pydict() == {"event": [0, 2], "rule": [19, 18], "weight": [19.0, 18.0]}


def test_a_batch_is_published_one_after_another() -> None:
    m, documents = alerts(("new", "forall d (a != d.a)"))
    assert m.publish_batch([{"a": 1}, {"a": 1}, {"a": 2}]).to_pydict() == {"event": [0, 2], "rule": ["new", "new"]}
    assert m.publish_batch(pa.table({"a": [2, 3]})).to_pydict() == {"event": [1], "rule": ["new"]}
    assert len(documents) == 5
    with pytest.raises(eligo.EventError, match=r"event 1: .*the 1 before it were published"):
        m.publish_batch([{"a": 9}, {"a": b""}])


def test_explain_names_the_document() -> None:
    m, documents = alerts(("some", "exists d (a < d.a)"), ("all", "forall d (a < d.a and d.b is null)"))
    assert "there are no documents" in str(m.explain({"a": 1}, "all"))
    documents.add({"a": 0})
    documents.add({"a": 7, "b": 1})
    assert "document 1 does: a is 7" in str(m.explain({"a": 1}, "some"))
    assert "document 0 does not: a is 0" in str(m.explain({"a": 1}, "all"))
    assert "none of 2 documents does" in str(m.explain({"a": 7}, "some"))


def test_stats_say_how_documents_were_asked() -> None:
    m, documents = alerts(("r", "exists d (a < d.a)"))
    documents.add({"a": 1})
    for _ in range(3):
        m.match({"a": 0})
    notes = m.stats().notes
    assert notes["documents"] == 1
    assert notes["questions"] == 1
    assert str(notes["phase first"]).startswith(("constants", "joins"))


def test_both_orders_of_phases_give_the_same() -> None:
    m, documents = alerts(*((f"r{i}", f"x = {i % 3} and exists d (a {op} d.a)") for i, op in enumerate("<>=" * 4)))
    documents.add_many([{"a": 5}, {"a": 7}])
    events = [{"x": x, "a": a} for x in range(4) for a in (4, 5, 6, 8, "s", None)]
    phases = m._joins.phases  # type: ignore[union-attr]
    answers = []
    for order in ("constants", "joins"):
        phases.fixed = order  # type: ignore[assignment]
        answers.append([m.match(event) for event in events])
    assert answers[0] == answers[1]
    with pytest.raises(eligo.EventError):
        m.match({"x": b"", "a": 4})


def test_pre_filtering_waits_for_a_document() -> None:
    m, documents = alerts(("r", "a < 10 and exists d (a = d.a and b > d.b)"))
    documents.add({"a": 50, "b": 0})
    assert m.match({"a": 5, "b": 5}) == []
    assert m.stats().notes["waiting for a document"] == 1
    number = documents.add({"a": [5, 60], "b": 0})
    assert m.stats().notes["waiting for a document"] == 0
    assert m.match({"a": 5, "b": 5}) == ["r"]
    documents.remove(number)
    assert m.match({"a": 5, "b": 5}) == []
    documents.add_many([{"a": 5, "b": 1}] * 100)
    assert m.match({"a": 5, "b": 5}) == ["r"]


# What was once wrong.


def test_a_quantifier_with_many_terms() -> None:
    m, documents = alerts(("wide", "exists d (" + " or ".join(f"x{i} = d.a" for i in range(70)) + ")"))
    m.add("deep", "forall d (" + " and ".join(f"(d.a = {i} or x = d.b)" for i in range(70)) + ")")
    documents.add({"a": 1})
    assert m.match({"x3": 1}) == ["wide"]
    assert m.match({"x3": 2}) == []


def test_patterns_know_strings_that_took_the_place_of_others() -> None:
    m, documents = alerts(("like", "exists d (d.s like '%z%' and d.n = n)"))
    for i in range(3000):
        documents.add({"s": f"a{i}", "n": i})
        if i >= 10:
            documents.remove(i - 10)
        if i % 50 == 0:
            m.match({"n": i})
    for i in range(200):
        documents.add({"s": f"{'z' if i % 2 else 'y'}{i}", "n": -i})
        assert m.match({"n": -i}) == (["like"] if i % 2 else []), i


def test_what_follows_for_documents_is_no_more_than_follows() -> None:
    m, documents = alerts(
        ("negated", "a != 5 and exists d (a = d.b and d.k = 1)"), ("range", "x = 5 and exists d (x != d.y and d.z = 1)"),
        ("Boolean", "f = true and exists d (f < d.b and d.k = 2)"),
    )  # fmt: skip
    documents.add({"b": [5, 6], "k": 1, "y": 5, "z": 1})
    assert m.match({"a": 6}) == ["negated"]
    assert m.match({"x": eligo.OneOf(5)}) == ["range"]
    assert m.match({"f": True}) == []  # Booleans have no order
    documents.add({"b": False})
    assert m.explain({"f": True}, "Boolean").matched is False


def test_tables_one_after_another_take_no_more_than_they_need() -> None:
    m, documents = alerts()
    documents.keep = type(documents.keep)(count=100)
    m.add("r", "exists d (s = d.s and n = d.n)")
    for i in range(60):
        documents.add_many(pa.table({"s": [f"s{i}", f"t{i}"] * 20, "n": range(40)}))
    assert documents.stats()["index_bytes"] < 100_000
    assert m.match({"s": "s59", "n": 38}) == ["r"]
    assert m.match({"s": "s50", "n": 38}) == []


def test_columns_that_are_seldom_seen() -> None:
    m, documents = alerts(("s", "exists d (s = d.s)"), ("t", "exists d (t = d.t)"), ("m", "exists d (n.m.k = d.k)"))
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1]), pa.array(["a", None]))
    documents.add_many(
        pa.table({"s": words, "t": pa.array([-1, 999, 1000, None], pa.timestamp("ns")), "k": [1, 2, 3, 4]})
    )
    assert m.match({"s": "a"}) == ["s"]
    assert m.match_batch(pa.table({"t": pa.array([-1, 0, 5000], pa.timestamp("ns"))}))["event"].to_pylist() == [0, 1]
    nested = pa.array([{"m": [("k", 1)]}, {"m": [("k", 9)]}], pa.struct([("m", pa.map_(pa.string(), pa.int64()))]))
    assert m.match_batch(pa.table({"n": nested}))["event"].to_pylist() == [0]
    with pytest.raises(eligo.EventError, match="beyond"):
        documents.add_many(pa.table({"t": pa.array([2**60], pa.timestamp("s"))}))
    with pytest.raises(eligo.EventError, match="one name"):
        documents.add_many(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    assert len(documents) == 4


def test_events_that_joins_cannot_use_are_rejects() -> None:
    m, documents = alerts(("r", "exists d (x = d.x)"))
    documents.add({"x": 1})
    found, rejects = m.match_batch([{"x": 1}, {"x": object()}, {"x": 1}, {"x": [[1]]}], on_error="collect")
    assert found["event"].to_pylist() == [0, 2]
    assert [reject.row for reject in rejects] == [1, 3]
    assert "of type object" in rejects[0].message


def test_questions_that_were_forgotten_are_asked_anew() -> None:
    m, documents = alerts(("r", "a = 1 and exists d (d.k = 1 and x = d.x)"))
    assert m._joins is not None
    m._joins.phases.fixed = "joins"
    assert m.match({"a": 1, "x": 5}) == []
    m._joins.forget()
    documents.add({"k": 1, "x": 5})
    assert m.match({"a": 1, "x": 5}) == ["r"]


# Delivery.


def test_owners_get_what_matches_once_the_best_rule_first(caplog: pytest.LogCaptureFixture) -> None:
    m, _ = alerts()
    m.add("low", "a > 0", weight=1, owner="ann")
    m.add("high", "a > 0", weight=5, owner="ann")
    m.add("mine", "a > 0", weight=3, owner="bob")
    m.add("nobody's", "a > 0")
    got: list[tuple[str, list[object], int]] = []

    def take(delivered: Any) -> None:
        got.append((delivered.owner, [rule.id for rule in delivered.rules], delivered.document))

    def fail(_: Any) -> None:
        raise ValueError("full")

    m.subscribe("bob", take)
    m.subscribe("ann", fail)
    with caplog.at_level(logging.ERROR, "eligo"):
        assert m.publish({"a": 1}) == ["low", "high", "mine", "nobody's"]
    assert got == [("bob", ["mine"], 0)]
    (failure,) = m.delivery_failures
    assert (failure.owner, failure.document, str(failure.error)) == ("ann", 0, "full")
    assert "ann" in caplog.text
    m.subscribe("ann", take)
    m.unsubscribe("bob")
    m.publish({"a": 1})
    assert got[1:] == [("ann", ["high", "low"], 1)]
    with pytest.raises(eligo.OptionError, match="deliver"):
        m.subscribe("ann", 5)  # type: ignore[arg-type]
    with pytest.raises(eligo.RuleTypeError, match="owner"):
        m.add("x", "a = 1", owner="")
    assert m["high"].owner == "ann"


def test_received_is_what_the_owner_got(tmp_path: Path) -> None:
    m, _ = alerts()
    new = "kind = 'book' and not exists d in received (author = d.author)"
    m.add_many([("ann", new, 1.0, (), "ann"), {"id": "bob", "expression": new + " and price < 10", "owner": "bob"}])
    m.add("nobody", new)
    book = {"kind": "book", "author": "Smith", "price": 20}
    assert m.publish(book) == ["ann", "nobody"]
    assert m.publish(book | {"price": 5}) == ["bob", "nobody"]
    assert m.publish(book | {"price": 5}) == ["nobody"]
    m.save(tmp_path / "s")
    opened = eligo.open(tmp_path / "s")
    assert opened.match(book | {"price": 5}) == ["nobody"]
    assert opened.match(book | {"price": 5, "author": "Jones"}) == ["ann", "bob", "nobody"]


# Threads.


def test_each_new_value_is_new_once() -> None:
    m, documents = alerts(("new", "not exists d (v = d.v)"), ("order", "exists d (v < d.v) or forall d (v >= d.v)"))
    new: list[int] = []
    wrong: list[object] = []
    stop = threading.Event()

    def publish(start: int) -> None:
        for i in range(150):
            v = (start + i) % 150
            if "new" in m.publish({"v": v}):
                new.append(v)

    def match() -> None:
        while not stop.is_set():
            if m.match({"v": 10**9}) != ["new", "order"] or "order" not in m.match({"v": 75}):
                wrong.append(1)

    readers = [threading.Thread(target=match) for _ in range(2)]
    writers = [threading.Thread(target=publish, args=(start,)) for start in (0, 50, 100)]
    for thread in (*readers, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert sorted(new) == list(range(150))
    assert not wrong
    assert len(documents) == 450


def test_a_rule_past_the_usual_limits_waits_for_a_document_too() -> None:
    documents = Documents()
    m = Matcher(documents=documents, limits={"values": 200_000, "text": 10**7})
    m.add("many", f"exists d (a = d.a and d.b in ({', '.join(map(str, range(70_000)))}))")
    assert m.match({"a": 1}) == []
    documents.add({"a": 1, "b": 69_999})
    assert m.match({"a": 1}) == ["many"]
